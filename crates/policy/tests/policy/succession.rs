//! Policies that take the place of others.

use tidegate_core::{LimitId, Time};
use tidegate_policy::{ClientAddress, Override, Policies, Policy, PolicyError};

fn policies(all: Vec<Policy>) -> Policies {
    Policies::new(ClientAddress::default(), all).unwrap()
}

fn api(key: &str, limits: &[&str]) -> Policy {
    let limits = limits.iter().map(|limit| limit.parse().unwrap());
    Policy::new("api", key.parse().unwrap()).with_limits(limits, Default::default())
}

/// Since when each of the policies' quotas is in force.
fn since(policies: &Policies) -> Vec<Option<Time>> {
    policies.claims().map(|(_, claim)| claim.handling.in_force_since).collect()
}

#[test]
fn a_quota_is_in_force_since_it_was_changed_last() {
    let at = |s| Time::from_secs(s);
    let first = policies(vec![api("client", &["3/min", "5/h"])]);
    assert_eq!(since(&first), [None, None]);
    let second = policies(vec![api("client", &["4/min", "5/h"])]).in_place_of(&first, at(10));
    assert_eq!(since(&second), [Some(at(10)), None]);
    let third = policies(vec![api("client", &["4/min", "6/h"])]).in_place_of(&second, at(20));
    assert_eq!(since(&third), [Some(at(10)), Some(at(20))]);
    assert_eq!(since(&policies(vec![api("client", &["4/min", "6/h"])]).in_place_of(&third, at(30))), since(&third));
}

#[test]
fn a_changed_override_counts_as_a_change_of_its_policy() {
    let special = |limit: &str| Override {
        key: vec!["192.0.2.1".into()],
        limits: vec![("limit-1".into(), limit.parse().unwrap())],
        until_s: None,
    };
    let first = policies(vec![api("client", &["3/min"]).with_override(special("9/min"))]);
    let second = policies(vec![api("client", &["3/min"]).with_override(special("8/min"))]);
    assert_eq!(since(&second.in_place_of(&first, Time::from_secs(7))), [Some(Time::from_secs(7)); 2]);
}

#[test]
fn other_key_parts_and_another_algorithm_start_fresh() {
    let fresh = |before: Policy, now: Policy| {
        let fresh = policies(vec![now]).fresh_after(&policies(vec![before]));
        fresh.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(fresh(api("client", &["3/min"]), api("client", &["9/min burst 2", "1/s"])), [""; 0]);
    assert_eq!(
        fresh(api("client", &["3/min"]), api("header:a,client", &["3/min"])),
        ["limit `limit-1` of policy `api` starts fresh: its key was client, and is header a, client"]
    );
    let window = |limit: &str| {
        let quota = limit.parse::<tidegate_core::Limit>().unwrap().quota().unwrap();
        let quota = quota.with_algorithm(tidegate_core::Algorithm::FixedWindow).unwrap();
        Policy::new("api", "client".parse().unwrap()).with_limits([quota.into()], Default::default())
    };
    assert_eq!(
        fresh(api("client", &["3/min"]), window("3/min")),
        ["limit `limit-1` of policy `api` starts fresh: another algorithm enforces it"]
    );
}

#[test]
fn a_limit_is_known_by_its_names_and_by_the_parts_of_its_key() {
    let id = |key: &str| api(key, &["3/min"]).limits()[0].id;
    assert_eq!(id("client"), LimitId::of("api", "limit-1"));
    let ids = ["client", "header:a", "header:b", "cookie:a", "header:a,client", "client,header:a", "global"].map(id);
    for (i, one) in ids.iter().enumerate() {
        assert!(ids[..i].iter().all(|other| other != one));
    }
    let twice = Policies::new(ClientAddress::default(), vec![api("client", &["1/s"]), api("header:a", &["1/s"])]);
    assert_eq!(twice, Err(PolicyError::SameLimit { policy: "api".into(), limit: "limit-1".into() }));
}
