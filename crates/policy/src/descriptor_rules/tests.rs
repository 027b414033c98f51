//! The examples that the reference service documents, and what is refused.

use tidegate_core::{Algorithm, CHARGES_MAX, Charge, Cost, Handling, Limit, Mode};

use super::*;
use crate::{Keys, NamedKey};

fn rules(yaml: &str) -> DescriptorRules {
    read(&[RuleFile { name: "a.yaml", contents: yaml }], Algorithm::FixedWindow, Handling::default()).unwrap().0
}

fn errors(yaml: &str) -> String {
    let files = [RuleFile { name: "a.yaml", contents: yaml }];
    read(&files, Algorithm::FixedWindow, Handling::default()).unwrap_err().to_string()
}

/// `key=value` for each entry.
fn entries(texts: &[&'static str]) -> Vec<Entry<'static>> {
    texts.iter().map(|text| text.split_once('=').unwrap()).map(|(key, value)| Entry { key, value }).collect()
}

/// The path of the rule that is met, and its key.
fn met(rules: &DescriptorRules, domain: &str, texts: &[&'static str]) -> Option<(String, Vec<u8>)> {
    let entries = entries(texts);
    let rule = &rules.rules()[rules.place_of(domain, &entries)?];
    let mut keys = Keys::new();
    rule.push_key(&entries, &mut keys);
    Some((rule.path.clone(), keys.key(0).to_vec()))
}

fn path(rules: &DescriptorRules, domain: &str, texts: &[&'static str]) -> Option<String> {
    met(rules, domain, texts).map(|(path, _)| path)
}

#[test]
fn each_level_is_found_by_value_then_pattern_then_key() {
    let rules = rules(
        "
domain: example
descriptors:
  - key: path
    value: /a/exact
    rate_limit: {unit: minute, requests_per_unit: 1}
  - key: path
    value: /a/*
    rate_limit: {unit: minute, requests_per_unit: 2}
  - key: path
    value: /a/b*
    rate_limit: {unit: minute, requests_per_unit: 3}
  - key: path
    rate_limit: {unit: minute, requests_per_unit: 4}
",
    );
    let path = |value| path(&rules, "example", &[value]).unwrap();
    assert_eq!(path("path=/a/exact"), "path_/a/exact");
    // The first pattern of the file, though the second one is closer.
    assert_eq!(path("path=/a/bc"), "path_/a/*");
    assert_eq!(path("path=/b"), "path");
    assert_eq!(path("path="), "path");
}

#[test]
fn a_rule_is_met_at_its_own_depth_only() {
    // The second example of the reference's documentation.
    let rules = rules(
        "
domain: messaging
descriptors:
  - key: message_type
    value: marketing
    descriptors:
      - key: to_number
        rate_limit:
          unit: day
          requests_per_unit: 5
  - key: to_number
    rate_limit:
      unit: DAY
      requests_per_unit: 100
",
    );
    let path = |texts: &[&'static str]| path(&rules, "messaging", texts);
    assert_eq!(path(&["message_type=marketing", "to_number=2061111111"]).unwrap(), "message_type_marketing.to_number");
    assert_eq!(path(&["to_number=2061111111"]).unwrap(), "to_number");
    assert_eq!(path(&["message_type=marketing"]), None);
    assert_eq!(path(&["to_number=2061111111", "more=1"]), None);
    assert_eq!(path(&["to_number=2061111111", "more=1", "to_number=3"]), None);
    assert_eq!(path(&["message_type=other", "to_number=2061111111"]), None);
    assert_eq!(path(&[]), None);
    assert_eq!(super::DescriptorRules::place_of(&rules, "other", &entries(&["to_number=1"])), None);
    assert_eq!(rules.rules()[1].unit, Some(CallUnit::Day));
}

#[test]
fn values_that_the_file_leaves_open_tell_buckets_apart() {
    let rules = rules(
        "
domain: d
descriptors:
  - key: tenant
    descriptors:
      - key: file
        value: v/*
        rate_limit: {unit: hour, requests_per_unit: 9}
      - key: shared
        value: v/*
        share_threshold: true
        rate_limit: {unit: hour, requests_per_unit: 9}
  - key: all
    value: yes
    rate_limit: {unit: hour, requests_per_unit: 9}
",
    );
    let key = |texts: &[&'static str]| met(&rules, "d", texts).unwrap().1;
    let file = |tenant, value| key(&[tenant, value]);
    assert_ne!(file("tenant=a", "file=v/1"), file("tenant=a", "file=v/2"));
    assert_eq!(file("tenant=a", "shared=v/1"), file("tenant=a", "shared=v/2"));
    assert_ne!(file("tenant=a", "shared=v/1"), file("tenant=b", "shared=v/1"));
    assert_eq!(key(&["all=yes"]), [b'g', 0]);
    let ids: Vec<_> = rules.rules().iter().map(|rule| rule.id).collect();
    assert!(ids[0] != ids[1] && ids[1] != ids[2] && ids[0] != ids[2]);
}

#[test]
fn limits_units_and_modes_are_what_they_say() {
    let rules = rules(
        "
domain: d
descriptors:
  - key: a
    rate_limit: {unlimited: true, name: free, replaces: [{name: b}]}
  - key: b
    shadow_mode: true
    rate_limit: {unit: month, requests_per_unit: 0, name: b}
  - key: c
    quota_mode: true
    rate_limit: {unit: year, requests_per_unit: 7}
",
    );
    let [free, block, quota] = rules.rules() else { panic!() };
    assert_eq!((free.limit, free.unit, &free.replaces[..]), (Limit::Unlimited, None, &["b".to_owned()][..]));
    assert_eq!(free.charge(b"k", Cost::ONE), None);
    assert_eq!((block.limit, block.mode), (Limit::Block { period: 30 * CallUnit::Day.period() }, Mode::Shadow));
    assert_eq!(block.charge(b"k", Cost::ONE).unwrap().quota.burst(), 0);
    assert_eq!((quota.is_quota, quota.mode), (true, Mode::Shadow));
    assert_eq!(quota.limit.quota().unwrap().algorithm(), Algorithm::FixedWindow);
    assert_eq!(CallUnit::ALL.map(|unit| CallUnit::from_number(unit.number())), CallUnit::ALL.map(Some));
    assert_eq!(CallUnit::from_number(0), None);
}

#[test]
fn everything_that_is_wrong_is_told_at_once_with_its_place() {
    let errors = errors(
        "domain: d
descriptors:
  - key: a
    rate_limit: {unit: minuet, requests_per_unit: 1}
  - key: a
  - value: b
  - key: c
    ratelimit: {unit: minute}
  - key: e
    rate_limit: {unlimited: true, unit: day}
  - key: f
    share_threshold: true
    rate_limit: {unit: day, requests_per_unit: -1, name: x, replaces: [{name: x}]}
  - key: g
    rate_limit: {unit: second}
  - key: h
    rate_limit: {unit: second, requests_per_unit: 4000000000}
",
    );
    for expected in [
        "a.yaml:4:24: `minuet` is not known; did you mean `minute`?",
        "a.yaml:5:5: a descriptor `a` is there already",
        "a.yaml:6:5: the descriptor has no `key`",
        "a.yaml:8:5: a descriptor has no key `ratelimit`; did you mean `rate_limit`?",
        "a.yaml:10:35: what is unlimited has no `unit`; leave one of both out",
        "a.yaml:12:5: `share_threshold` is for a value with a `*`",
        "expected a whole number from 0 to 4294967295",
        "a rule cannot replace itself",
        "a.yaml:15:17: the rate limit has no `requests_per_unit` (0 lets nothing pass)",
        "a.yaml:17:51: the rate is above the maximum of 1000000000/s",
    ] {
        assert!(errors.contains(expected), "{expected}\n{errors}");
    }
    assert!(super::tests::errors("descriptors: []").contains("a.yaml:1:1: the file has no `domain`"));
    assert!(super::tests::errors("domain: ''").contains("the domain is empty"));
}

#[test]
fn a_domain_is_in_one_file() {
    let files = ["a.yaml", "b.yaml"].map(|name| RuleFile { name, contents: "domain: d" });
    let error = read(&files, Algorithm::FixedWindow, Handling::default()).unwrap_err().to_string();
    assert!(error.contains("b.yaml:1:9: the domain `d` is in a.yaml already"), "{error}");
}

#[test]
fn what_is_not_done_is_said() {
    let yaml = "
domain: d
descriptors:
  - {key: a, detailed_metric: true, metadata: {x: y}, rate_limit: {unit: day, requests_per_unit: 1}}
  - {key: b, detailed_metric: true, shadow_mode: true}
";
    let files = [RuleFile { name: "a.yaml", contents: yaml }];
    let (_, warnings) = read(&files, Algorithm::TokenBucket, Handling::default()).unwrap();
    assert_eq!(warnings.len(), 3, "{warnings:?}");
    assert!(warnings[0].starts_with("a.yaml:4:14: `detailed_metric` is read and not done"), "{warnings:?}");
    assert!(warnings[2].starts_with("a.yaml:5:37: `shadow_mode` has no effect here"), "{warnings:?}");
}

#[test]
fn a_limit_that_a_call_brings_has_buckets_of_its_own() {
    let brought = |requests| BroughtLimit { requests, unit: CallUnit::Minute };
    assert_ne!(brought(5).id("d"), brought(100).id("d"));
    let key = |texts: &[&'static str]| {
        let mut keys = Keys::new();
        BroughtLimit::push_key(&entries(texts), &mut keys);
        keys.key(0).to_vec()
    };
    assert_ne!(key(&["a=b", "c=d"]), key(&["a=bc", "=d"]));
    let long = vec!["a_key_of_some_length=a_value_of_some_length"; 100];
    assert_eq!(key(&long).len(), 34);
}

#[test]
fn as_many_keys_as_one_decision_takes_have_room() {
    let rule = DescriptorRule { is_open: vec![true; RULE_DEPTH_MAX], ..rules_with_one().rules()[0].clone() };
    let value = "v".repeat(crate::VALUE_BYTES_MAX);
    let entries = vec![Entry { key: "k", value: &value }; RULE_DEPTH_MAX];
    let mut keys = Keys::new();
    (0..CHARGES_MAX).for_each(|_| rule.push_key(&entries, &mut keys));
    assert_eq!(keys.key(CHARGES_MAX - 1).len(), RULE_DEPTH_MAX * (2 + value.len()));
}

fn rules_with_one() -> DescriptorRules {
    rules("{domain: d, descriptors: [{key: k, rate_limit: {unit: day, requests_per_unit: 3}}]}")
}

#[test]
fn a_rule_whose_number_is_another_is_in_force_since_then() {
    let now = Time::from_secs(7);
    let old = rules_with_one();
    let same = rules_with_one().in_place_of(&old, now);
    assert_eq!(same.rules()[0].handling.in_force_since, None);
    let raised = rules("{domain: d, descriptors: [{key: k, rate_limit: {unit: day, requests_per_unit: 4}}]}");
    let raised = raised.in_place_of(&old, now);
    assert_eq!(raised.rules()[0].id, old.rules()[0].id);
    assert_eq!(raised.rules()[0].handling.in_force_since, Some(now));
    let charge: Charge<'_> = raised.rules()[0].charge(b"k", Cost::new(2)).unwrap();
    assert_eq!((charge.quota.burst(), charge.cost), (4, Cost::new(2)));
}

#[test]
fn br_165_br_167_br_170_a_unit_is_one_word_and_never_a_guess() {
    let unit =
        |unit: &str| format!("{{domain: d, descriptors: [{{key: k, rate_limit: {{{unit}requests_per_unit: 3}}}}]}}");
    for word in ["second", "MINUTE", "Hour", "day", "week", "month", "year"] {
        assert_eq!(rules(&unit(&format!("unit: {word}, "))).rules().len(), 1, "{word}");
    }
    for word in ["m", "M", "min", "1m", "60", "1.5h", "-1s", "minutes", "''", "null", "[day]"] {
        let error = errors(&unit(&format!("unit: {word}, ")));
        assert!(error.starts_with("a.yaml:1:55: "), "{word}: {error}");
    }
    assert!(errors(&unit("")).contains("the rate limit has no `unit`"));
}

#[test]
fn br_169_what_is_no_list_or_table_is_refused_where_it_stands() {
    for wrong in ["descriptors: 5", "descriptors: x", "descriptors: {key: k}", "descriptors: [k]", "descriptors: [[]]"]
    {
        let error = errors(&format!("domain: d\n{wrong}\n"));
        assert!(error.starts_with("a.yaml:2:"), "{wrong}: {error}");
    }
    for nothing in ["", "descriptors:", "descriptors: []"] {
        assert!(rules(&format!("domain: d\n{nothing}\n")).rules().is_empty(), "{nothing}");
    }
    assert!(errors("[]").contains("a file of descriptors"), "{}", errors("[]"));
}

#[test]
fn a_key_that_an_operator_names_is_the_one_that_is_charged() {
    let yaml = "
domain: d
descriptors:
  - key: tenant
    descriptors:
      - key: path
        value: /a
        descriptors:
          - key: user
            rate_limit: {unit: minute, requests_per_unit: 1}
  - key: all
    value: everybody
    rate_limit: {unit: minute, requests_per_unit: 1}
";
    let rules = rules(yaml);
    let values = |texts: &[&str]| texts.iter().map(|text| text.as_bytes().to_vec()).collect::<Vec<_>>();
    let long = "x".repeat(300).leak();
    let user: &'static str = format!("user={long}").leak();
    for (texts, open) in [
        (&["tenant=acme", "path=/a", "user=ann"][..], &["acme", "ann"][..]),
        (&["tenant=", "path=/a", user], &["", long]),
        (&["all=everybody"], &[]),
    ] {
        let (path, key) = met(&rules, "d", texts).unwrap();
        let rule = rules.rules().iter().find(|rule| rule.path == path).unwrap();
        assert_eq!(rule.open_values(), open.len());
        assert_eq!(NamedKey::Values(&values(open)).of_values(rule.open_values()).as_ref(), Some(&key), "{path}");
        assert_eq!(NamedKey::Bytes(&key).of_values(rule.open_values()).as_ref(), Some(&key));
        assert_eq!(NamedKey::Values(&values(&["a", "b", "c"])).of_values(rule.open_values()), None);
        assert_eq!(NamedKey::Bytes(&key[1..]).of_values(rule.open_values()), None);
    }
}
