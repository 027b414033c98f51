//! Single keys, named by an operator.

use tidegate_core::{LimitId, Time};
use tidegate_policy::{ClientAddress, Exempt, NamedKey, Override, Policies, Policy, SingleKeyError};

use crate::given::{Given, key_of};

fn policies(all: Vec<Policy>) -> Policies {
    Policies::new(ClientAddress::default(), all).unwrap()
}

fn policy(key: &str, limits: &[&str]) -> Policy {
    crate::given::policy(key, limits)
}

/// The limits of a key of policy `p`, as they stand at second 100.
fn limits(policies: &Policies, values: &[&str]) -> Vec<String> {
    let values: Vec<_> = values.iter().map(|value| value.as_bytes().to_vec()).collect();
    let key = policies.single_key("p", NamedKey::Values(&values), 100).unwrap();
    key.limits().map(|(_, charge)| charge.map_or("none".into(), |charge| charge.quota.to_string())).collect()
}

fn special(key: &[&str], limit: &str, until_s: Option<u64>) -> Override {
    let limits = vec![("limit-1".to_owned(), limit.parse().unwrap())];
    Override { key: key.iter().map(|value| (*value).to_owned()).collect(), limits, until_s }
}

#[test]
fn a_key_that_is_named_is_the_one_that_a_request_is_charged_to() {
    let address = ClientAddress::default();
    let request = Given::from("2001:db8:1:2::9").with("x-api-key", "gold-1").with("authorization", "Bearer s");
    for (parts, values) in [
        ("client", &["2001:db8:1:2:7::"][..]),
        ("header:x-api-key", &["gold-1"]),
        ("header:authorization", &["Bearer s"]),
        ("header:x-api-key,client", &["gold-1", "2001:db8:1:2::1"]),
        ("global", &[]),
    ] {
        let all = policies(vec![policy(parts, &["1/min"])]);
        let values: Vec<_> = values.iter().map(|value| value.as_bytes().to_vec()).collect();
        let named = all.single_key("p", NamedKey::Values(&values), 0).unwrap();
        let bytes = key_of(&address, parts, &request);
        assert_eq!(named.bytes(), bytes, "{parts}");
        let again = all.single_key("p", NamedKey::Bytes(&bytes), 0).unwrap();
        assert_eq!(again.limits().count(), 1, "{parts}");
    }
}

#[test]
fn what_is_no_key_is_refused() {
    let all = policies(vec![policy("client", &["1/min"])]);
    let error = |policy: &str, key: NamedKey<'_>| all.single_key(policy, key, 0).unwrap_err().to_string();
    assert_eq!(error("q", NamedKey::Values(&[])), "there is no policy `q`");
    assert_eq!(
        error("p", NamedKey::Values(&[b"a".to_vec(), b"b".to_vec()])),
        "the policy's key has 1 parts, and here are 2 values; write one for each"
    );
    assert!(error("p", NamedKey::Values(&[b"a\xff".to_vec()])).contains("is no address"));
    for bytes in [&b""[..], b"v", b"v\x05gold", b"v\x01av\x01b"] {
        let error = all.single_key("p", NamedKey::Bytes(bytes), 0).unwrap_err();
        assert_eq!(error, SingleKeyError::NotBytes, "{bytes:?}");
    }
}

#[test]
fn an_override_that_is_added_stands_before_that_of_the_file_until_it_ends() {
    let file = policy("header:x-api-key", &["1/min"]).with_override(special(&["gold"], "5/min", None));
    let mut all = policies(vec![file]);
    assert_eq!(limits(&all, &["gold"]), ["5/min"]);
    all.add_override("p", special(&["gold"], "9/min", Some(101))).unwrap();
    assert_eq!(limits(&all, &["gold"]), ["9/min"]);
    assert_eq!(limits(&all, &["other"]), ["1/min"]);
    all.add_override("p", special(&["gold"], "7/min", Some(100))).unwrap();
    assert_eq!(limits(&all, &["gold"]), ["1/min"]);
    assert_eq!(all.as_slice()[0].overrides().len(), 1);
    all.add_override("p", special(&["gold"], "unlimited", None)).unwrap();
    assert_eq!(limits(&all, &["gold"]), ["none"]);
}

#[test]
fn an_override_that_cannot_be_is_refused_and_changes_nothing() {
    let keys = vec![vec!["free".to_owned()]];
    let file = policy("header:x-api-key", &["1/min"]).with_exempt(Exempt { keys, ..Exempt::default() });
    let mut all = policies(vec![file]);
    let before = all.clone();
    let mut error = |policy: &str, special: Override| all.add_override(policy, special).unwrap_err().to_string();
    assert_eq!(error("q", special(&["a"], "1/min", None)), "there is no policy `q`");
    let exempt = "the policy lets this key off, so no limit is charged to it";
    assert_eq!(error("p", special(&["free"], "1/min", None)), exempt);
    let other = Override { limits: vec![("day".to_owned(), "1/day".parse().unwrap())], ..special(&["a"], "1/s", None) };
    assert_eq!(error("p", other), "the policy has no limit `day`");
    assert_eq!(all, before);
}

#[test]
fn a_limit_that_an_override_brings_to_life_counts_among_the_charges_of_a_request() {
    let many = |name: &str, limit: &str, count: usize| {
        let limits = (0..count).map(|_| limit.parse().unwrap());
        Policy::new(name, "header:x-api-key".parse().unwrap()).with_limits(limits, Default::default())
    };
    let mut all = policies(vec![many("p", "unlimited", 1), many("q", "1/min", 15)]);
    all.add_override("p", special(&["a"], "1/min", None)).unwrap();
    assert_eq!(limits(&all, &["a"]), ["1/min"]);
    let mut all = policies(vec![many("p", "unlimited", 1), many("q", "1/min", 16)]);
    let error = all.add_override("p", special(&["a"], "1/min", None)).unwrap_err();
    assert!(error.to_string().starts_with("17 limits apply to one request; the maximum is 16"), "{error}");
}

#[test]
fn policies_of_which_nobody_knows_what_was_before_are_in_force_from_now() {
    let file = policy("client", &["1/min"]).with_override(special(&["192.0.2.1"], "2/min", None));
    let all = policies(vec![file]).in_force_from(Time::from_secs(7));
    let since: Vec<_> = all.claims().map(|(_, claim)| claim.handling.in_force_since).collect();
    assert_eq!(since, [Some(Time::from_secs(7)); 2]);
    assert_eq!(all.place(LimitId::of("p", "limit-1")).unwrap().limit.handling.in_force_since, since[0]);
}
