//! A door for whoever throws bytes at calls of the rate limit service.

use std::sync::OnceLock;

use prost::Message as _;
use tidegate_core::{Algorithm, CHARGES_MAX, Handling};
use tidegate_policy::descriptor_rules::{self, DescriptorRules, RuleFile};
use tidegate_policy::limitador::{self, Limits};
use tidegate_policy::{Peer, Policies};

use super::asked::{Asked, Asking, Entries, Manner, Met, Room};
use super::messages::RateLimitRequest;

const RULES: &str = "{domain: d, descriptors: [
    {key: a, rate_limit: {unit: second, requests_per_unit: 3, replaces: [{name: n}]}},
    {key: a, value: b*, shadow_mode: true, rate_limit: {unit: day, requests_per_unit: 0}},
    {key: b, rate_limit: {unlimited: true, name: n}, descriptors: [{key: c, rate_limit: {unit: week, requests_per_unit: 9}}]}]}";
const LIMITS: &str = "- {namespace: d, max_value: 7, seconds: 60, variables: ['descriptors[0].a', b]}";

/// Reads them as a call's message behind its prefix and without one, and asks of rules and limits what it charges.
///
/// # Panics
/// A message does not read as what it was written from, or a call charges more than one decision takes.
pub fn rate_limit_call(input: &[u8]) {
    let _ = crate::grpc::unary::unframed(input);
    let Ok(request) = RateLimitRequest::decode(input) else { return };
    assert_eq!(RateLimitRequest::decode(&*request.encode_to_vec()).as_ref(), Ok(&request));
    for asker in [Peer::Unix, Peer::Ip([192, 0, 2, 7].into())] {
        let mut room = Room::new(&Policies::default(), request.descriptors.len());
        charges(&request, asker, &mut room, |asked| {
            assert_eq!(asked.of.len(), request.descriptors.len(), "each descriptor has a place");
            assert!(asked.charges.len() <= CHARGES_MAX, "one decision takes them");
            assert!(asked.of.iter().all(|range| asked.charges.get(range.clone()).is_some()));
        });
    }
}

fn charges(request: &RateLimitRequest, asker: Peer, room: &mut Room, with: impl FnOnce(&Asked<'_>)) {
    let Some((rules, limits)) = imported() else { return };
    let policies = Policies::default();
    let Ok(entries) = Entries::new(request) else { return };
    let Ok(met) = Met::all(rules, request, &entries) else { return };
    let manner = Manner { algorithm: Algorithm::FixedWindow, handling: Handling::default() };
    let (policies, limitador, unix_s) = (&policies, Some(limits), 1_771_404_500);
    let asking = Asking { request, entries: &entries, met: &met, policies, limitador, manner, asker, unix_s };
    // A call can be wrong.
    let _ = asking.charges(room).map(|asked| with(&asked));
}

/// Rules and limits that it may meet.
fn imported() -> Option<&'static (DescriptorRules, Limits)> {
    static IMPORTED: OnceLock<Option<(DescriptorRules, Limits)>> = OnceLock::new();
    let read = || {
        let (handling, windows) = (Handling::default(), Algorithm::FixedWindow);
        let rules = descriptor_rules::read(&[RuleFile { name: "rules", contents: RULES }], windows, handling).ok()?;
        Some((rules.0, limitador::read("limits", LIMITS, windows, handling).ok()?))
    };
    IMPORTED.get_or_init(read).as_ref()
}

#[cfg(test)]
mod tests {
    use super::super::messages::{DescriptorEntry, RateLimitDescriptor};
    use super::*;

    #[test]
    fn behind_the_door_are_rules_and_limits_that_a_call_can_meet() {
        let entries = vec![DescriptorEntry { key: "a".to_owned(), value: "x".to_owned() }];
        let second = vec![DescriptorEntry { key: "b".to_owned(), value: "y".to_owned() }];
        let descriptors =
            [entries, second].map(|entries| RateLimitDescriptor { entries, ..RateLimitDescriptor::default() });
        let request = RateLimitRequest { domain: "d".to_owned(), descriptors: descriptors.into(), hits_addend: 0 };
        let (mut room, mut count) = (Room::new(&Policies::default(), 2), 0);
        charges(&request, Peer::Unix, &mut room, |asked| count = asked.charges.len());
        assert_eq!(count, 2, "one of a rule, and one of a limit");
        rate_limit_call(&request.encode_to_vec());
    }
}
