//! From decisions to what a call is told: a status for each descriptor, in their order, and one over all.

use std::time::Duration;

use tidegate::policy::Policies;
use tidegate_core::{Charge, Decision, LimitId, Verdict};
use tidegate_policy::descriptor_rules::CallUnit;

use super::asked::{Asked, Met};
use super::messages::{Code, CurrentLimit, DescriptorStatus};
use crate::imported::imports::Imported;

/// Where limits have names that a call is told.
#[derive(Clone, Copy)]
pub(super) struct Named<'a> {
    pub(super) policies: &'a Policies,
    pub(super) imported: &'a Imported,
}

impl Named<'_> {
    fn name_of(&self, limit: LimitId) -> String {
        let by_policies = self.policies.place(limit).map(|it| format!("{}.{}", it.policy.name(), it.limit.name));
        let imported = || Some(self.imported.by_id(limit)?.named.name.clone());
        by_policies.or_else(imported).unwrap_or_default()
    }
}

/// The status of each descriptor. `decisions[i]` is the answer to charge `i`.
pub(super) fn statuses(
    asked: &Asked<'_>,
    met: &[Met<'_>],
    named: Named<'_>,
    decisions: &[Decision],
) -> Vec<DescriptorStatus> {
    let each = asked.of.iter().zip(met).enumerate();
    each.map(|(i, (range, met))| {
        if asked.lacking.contains(&i) {
            return plain(Code::OverLimit);
        }
        let of = One { met, named, charges: &asked.charges[range.clone()], decisions: &decisions[range.clone()] };
        of.status()
    })
    .collect()
}

/// Is the call denied? By any limit, or by all quotas that it meets together.
pub(super) fn overall(statuses: &[DescriptorStatus], met: &[Met<'_>]) -> Code {
    let is_over = |status: &DescriptorStatus| status.code == Code::OverLimit as i32;
    let is_quota = |met: &Met<'_>| met.rule().is_some_and(|rule| rule.is_quota);
    let (quotas, limits): (Vec<_>, Vec<_>) = statuses.iter().zip(met).partition(|(_, met)| is_quota(met));
    let any_limit = limits.iter().any(|(status, _)| is_over(status));
    let all_quotas = !quotas.is_empty() && quotas.iter().all(|(status, _)| is_over(status));
    if any_limit || all_quotas { Code::OverLimit } else { Code::Ok }
}

fn plain(code: Code) -> DescriptorStatus {
    DescriptorStatus { code: code.into(), ..DescriptorStatus::default() }
}

/// One descriptor, with its charges and the decisions on them.
struct One<'a> {
    met: &'a Met<'a>,
    named: Named<'a>,
    charges: &'a [Charge<'a>],
    decisions: &'a [Decision],
}

impl One<'_> {
    /// What binds it. Of limits in shadow a call hears nothing; a quota is told of, whatever it decides.
    fn status(&self) -> DescriptorStatus {
        let verdict = Verdict::over(self.charges, self.decisions);
        let is_quota = self.met.rule().is_some_and(|rule| rule.is_quota) && self.met.is_charged();
        match verdict.binding {
            // Its charge is the first.
            _ if is_quota && verdict.allowed => self.of_charge(0, self.decisions[0].is_allowed()),
            Some(place) => self.of_charge(place, verdict.allowed),
            None => {
                let is_unlimited = self.met.rule().is_some_and(|rule| rule.unit.is_none());
                DescriptorStatus { limit_remaining: if is_unlimited { u32::MAX } else { 0 }, ..plain(Code::Ok) }
            }
        }
    }

    fn of_charge(&self, place: usize, is_allowed: bool) -> DescriptorStatus {
        let decision = &self.decisions[place];
        DescriptorStatus {
            code: if is_allowed { Code::Ok } else { Code::OverLimit }.into(),
            current_limit: Some(self.limit_of(place)),
            limit_remaining: small(decision.remaining()),
            duration_until_reset: until_reset(decision, is_allowed),
        }
    }

    fn limit_of(&self, place: usize) -> CurrentLimit {
        let charge = &self.charges[place];
        let rate = charge.quota.rate();
        let name = match self.met {
            Met::Rule(rule) if place == 0 && self.met.is_charged() => rule.name.clone(),
            Met::Brought(_) if place == 0 => String::new(),
            _ => self.named.name_of(charge.limit),
        };
        let unit = CallUnit::of(rate.period()).map_or(0, CallUnit::number);
        CurrentLimit { requests_per_unit: small(rate.count()), unit, name }
    }
}

/// How long who is denied must wait; how long until all is there again for who is not. Nothing if waiting does not help.
///
/// In whole seconds, rounded up: Envoy reads nothing else, and would be early otherwise.
fn until_reset(decision: &Decision, is_allowed: bool) -> Option<prost_types::Duration> {
    let span = if is_allowed { Some(decision.reset_after()) } else { decision.retry_after() };
    span.map(|span| prost_types::Duration { seconds: seconds_up(span), nanos: 0 })
}

pub(super) fn seconds_up(span: Duration) -> i64 {
    i64::try_from(span.as_secs()).unwrap_or(i64::MAX).saturating_add(i64::from(span.subsec_nanos() > 0))
}

fn small(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
