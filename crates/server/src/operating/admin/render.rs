//! What the admin face says, as JSON.

use std::time::Duration;

use serde_json::{Value, json};
use tidegate::policy::file::instant;
use tidegate::policy::{KeyText, NamedLimit, Override, Policies, Policy};
use tidegate::{Decision, HeldBy, Limit, Mode, Sharing, Source, Time};

use crate::imported::imports::Imported;
use crate::imported::limit::ImportedLimit;
use crate::operating::runtime_overrides::RuntimeOverride;
use crate::{LimitMetrics, Metrics};

/// Seconds since the epoch of Unix.
pub(super) fn unix_s(time: Time) -> u64 {
    time.since(Time::ZERO).as_secs()
}

pub(super) fn mode(mode: Mode) -> &'static str {
    if mode == Mode::Shadow { "shadow" } else { "enforce" }
}

/// The policies in force, and how often each of their limits has decided.
pub(super) fn policies(policies: &Policies, metrics: &Metrics) -> Vec<Value> {
    // The metrics count limits in the order of the policies.
    let mut place = 0..;
    let mut limit = |named: &NamedLimit| limit(named, place.next().and_then(|place| metrics.limits.at(place)));
    let each = |policy: &Policy| {
        let limits: Vec<_> = policy.limits().iter().map(&mut limit).collect();
        let count =
            |limit: &Value| limit["decisions"].as_object().map(|all| all.values().filter_map(Value::as_u64).sum());
        json!({
            "name": policy.name(),
            "match": policy.matching().to_string(),
            "final": policy.is_final(),
            "key": policy.key().as_slice().iter().map(|part| part.to_text()).collect::<Vec<_>>(),
            "charged": limits.iter().filter_map(count).max().unwrap_or(0_u64),
            "limits": limits,
            "overrides": policy.overrides().len(),
            "penalty": policy.penalty().map(|penalty| json!({
                "after": penalty.after.to_string(),
                "hold": penalty.hold_text(),
            })),
        })
    };
    policies.as_slice().iter().map(each).collect()
}

/// What is in force of other services' files, and how often each of their limits has decided.
pub(super) fn imported(imported: &Imported) -> Vec<Value> {
    let all: Vec<_> = imported.counted().collect();
    let policies = all.chunk_by(|(one, _), (other, _)| one.policy == other.policy);
    let each = |limits: &[(&ImportedLimit, &LimitMetrics)]| {
        json!({
            "name": limits.first().map(|(first, _)| first.policy.as_str()),
            "limits": limits.iter().map(|(one, counted)| limit(&one.named, Some((*counted).clone()))).collect::<Vec<_>>(),
        })
    };
    policies.map(each).collect()
}

fn limit(named: &NamedLimit, counted: Option<LimitMetrics>) -> Value {
    let handling = &named.handling;
    let sharing = match handling.sharing {
        Sharing::Exact => "exact".to_owned(),
        Sharing::Leased { most } => format!("leased:{most}"),
    };
    json!({
        "name": named.name,
        "limit": named.limit.to_string(),
        "algorithm": named.limit.quota().map(|quota| quota.algorithm().name()),
        "mode": mode(named.mode),
        "on_store_failure": handling.on_failure.to_string(),
        "sharing": sharing,
        "decisions": counted.map(|counted| json!({
            "allowed": counted.allowed.get(),
            "denied": counted.denied.get(),
            "never": counted.never.get(),
        })),
    })
}

/// A key as people and as programs read it.
pub(super) fn key(bytes: &[u8]) -> [(&'static str, Value); 2] {
    [("key", KeyText(bytes).to_string().into()), ("bytes", hexadecimal(bytes).into())]
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// How it stands with one bucket, by a look at it.
pub(super) fn bucket(named: &NamedLimit, look: Option<(&Decision, Source)>) -> Value {
    let Some((decision, source)) = look else {
        return json!({ "name": named.name, "limit": Limit::Unlimited.to_string(), "mode": mode(named.mode) });
    };
    json!({
        "name": named.name,
        "limit": Limit::from(*decision.quota()).to_string(),
        "mode": mode(named.mode),
        "burst": decision.quota().burst(),
        "remaining": decision.remaining(),
        "deficit": decision.state().deficit(),
        "reset_after_s": seconds(decision.reset_after()),
        "next_token_after_s": seconds(decision.next_token_after()),
        "source": source.name(),
        "held_by": decision.held_by().map(|by| match by {
            HeldBy::StoreDown => "store-down",
            _ => "memory-bound",
        }),
    })
}

/// How it stands with a key's penalty, by looks at its hold and at the offences counted against it.
pub(super) fn penalty(hold: &Decision, offences: &Decision) -> Value {
    let wait = if hold.remaining() == 0 { hold.next_token_after() } else { Duration::ZERO };
    json!({
        "held": !wait.is_zero(),
        "held_after_s": seconds(wait),
        "offences_left": offences.remaining(),
    })
}

fn seconds(span: Duration) -> f64 {
    span.as_secs_f64()
}

/// An override that was put in force while the process ran.
pub(super) fn runtime_override(one: &RuntimeOverride) -> Value {
    let RuntimeOverride { policy, special: Override { key, limits, until_s }, since_s, put_off, .. } = one;
    let limits: serde_json::Map<_, _> =
        limits.iter().map(|(name, limit)| (name.clone(), limit.to_string().into())).collect();
    json!({
        "policy": policy,
        "key": key,
        "limits": limits,
        "until": until_s.map(instant),
        "since": instant(*since_s),
        "in_force": put_off.is_none(),
        "put_off": put_off,
    })
}
