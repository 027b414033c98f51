//! Files of limits from outside: what calls are charged, and what is wrong with files.

use tidegate_core::{Algorithm, Cost, Handling, LimitId};

use super::*;
use crate::{Entry, KeyText, Keys};

#[track_caller]
fn limits(text: &str) -> Limits {
    read("limits.yaml", text, Algorithm::FixedWindow, Handling::default()).unwrap_or_else(|error| panic!("{error}"))
}

/// The labels and keys of what a call in namespace `ns` is charged. Each descriptor is `key=value` pairs.
fn charged(limits: &Limits, descriptors: &[&str]) -> String {
    let entry = |pair: &str| {
        let (key, value) = pair.split_once('=').unwrap();
        (key.to_owned(), value.to_owned())
    };
    let owned: Vec<Vec<_>> = descriptors.iter().map(|text| text.split_whitespace().map(entry).collect()).collect();
    let entries: Vec<Vec<_>> =
        owned.iter().map(|all| all.iter().map(|(key, value)| Entry { key, value }).collect()).collect();
    let slices: Vec<&[Entry<'_>]> = entries.iter().map(Vec::as_slice).collect();
    let mut keys = Keys::new();
    let Charged { charges, places } =
        limits.charging(&Call { namespace: "ns", descriptors: &slices }, Cost::ONE, &mut keys);
    let one = |(place, charge): (&usize, &tidegate_core::Charge<'_>)| {
        format!("{} {} {}", limits.as_slice()[*place].label, charge.quota, KeyText(charge.key))
    };
    places.iter().zip(&charges).map(one).collect::<Vec<_>>().join(" | ")
}

/// The limits that stand in limitador's own sandbox, for namespace `ns`.
const SANDBOX: &str = "---
- namespace: ns
  max_value: 10
  seconds: 60
  conditions:
    - \"descriptors[0]['req.method'] == 'GET'\"
    - \"descriptors[0]['req.path'] != '/json'\"
  variables: []
- namespace: ns
  max_value: 5
  seconds: 60
  conditions:
    - \"descriptors[0]['req.method'] == 'POST'\"
    - \"descriptors[0]['req.path'] != '/json'\"
  variables: []
- namespace: ns
  max_value: 3
  seconds: 60
  conditions:
    - \"descriptors[0]['keyA'] == 'valueA'\"
  variables:
    - descriptors[0]['varA']
- namespace: other
  max_value: 1
  seconds: 1
  conditions:
  variables:
";

#[test]
fn a_call_is_charged_by_the_limits_that_it_meets() {
    let limits = limits(SANDBOX);
    assert_eq!(charged(&limits, &["req.method=GET req.path=/a"]), "limit-1 10/min global");
    assert_eq!(charged(&limits, &["req.method=POST req.path=/a"]), "limit-2 5/min global");
    assert_eq!(charged(&limits, &["req.method=GET req.path=/json"]), "");
    // Without a path the condition about it has no value, and so the limit does not apply.
    assert_eq!(charged(&limits, &["req.method=GET"]), "");
    assert_eq!(charged(&limits, &["keyA=valueA varA=x"]), "limit-3 3/min \"x\"");
    assert_eq!(charged(&limits, &["keyA=valueA"]), "");
    let both = "req.method=GET req.path=/a keyA=valueA varA=x";
    assert_eq!(charged(&limits, &[both]), "limit-1 10/min global | limit-3 3/min \"x\"");
    assert_eq!(charged(&limits, &["a=b", both]), "");
    assert_eq!(charged(&limits, &[]), "");
}

#[test]
fn a_tuple_of_values_is_a_bucket_whatever_is_in_them() {
    let limits = limits("- {namespace: ns, max_value: 1, seconds: 1, variables: [a, b]}");
    let key = |pairs: &str| charged(&limits, &[pairs]);
    assert_ne!(key("a=x b=yz"), key("a=xy b=z"));
    assert_ne!(key("a=x\",\"y b=z"), key("a=x b=y\",\"z"));
    assert_ne!(key("a=x b="), key("a= b=x"));
    // Long values are hashed, and still tell buckets apart.
    let long = "v".repeat(10_000);
    assert_ne!(key(&format!("a={long} b=1")), key(&format!("a={long}w b=1")));
    assert!(key(&format!("a={long} b={long}")).len() < 400);
}

#[test]
fn a_limit_is_the_same_by_namespace_seconds_conditions_and_variables() {
    let id = |text: &str| limits(text).as_slice()[0].limit;
    let plain = id("- {namespace: ns, max_value: 1, seconds: 60, conditions: [a == 'b', c == 'd'], variables: [v, w]}");
    let same = "- {name: n, id: i, namespace: ns, max_value: 9, seconds: 60, conditions: [c == 'd', a == 'b'], \
                variables: [w, v]}";
    assert_eq!(id(same), plain);
    for other in [
        "- {namespace: ns2, max_value: 1, seconds: 60, conditions: [a == 'b', c == 'd'], variables: [v, w]}",
        "- {namespace: ns, max_value: 1, seconds: 61, conditions: [a == 'b', c == 'd'], variables: [v, w]}",
        "- {namespace: ns, max_value: 1, seconds: 60, conditions: [a == 'b'], variables: [v, w]}",
        "- {namespace: ns, max_value: 1, seconds: 60, conditions: [a == 'b', c == 'd'], variables: [v]}",
    ] {
        assert_ne!(id(other), plain, "{other}");
    }
    assert_ne!(plain, LimitId::of("ns", ""));
}

#[test]
fn another_max_value_says_since_when_it_is_in_force() {
    let now = tidegate_core::Time::from_nanos(7_000_000_000);
    let with = |max: u64| limits(&format!("- {{namespace: ns, max_value: {max}, seconds: 60}}"));
    let since = |limits: &Limits| limits.as_slice()[0].handling.in_force_since;
    assert_eq!(since(&with(10).in_place_of(&with(10), now)), None);
    let raised = with(100).in_place_of(&with(10), now);
    assert_eq!(since(&raised), Some(now));
    assert_eq!(since(&with(100).in_place_of(&raised, tidegate_core::Time::from_nanos(9))), Some(now));
}

#[test]
fn either_algorithm_enforces_a_limit() {
    let text = "- {namespace: ns, max_value: 7, seconds: 10}";
    for algorithm in [Algorithm::FixedWindow, Algorithm::TokenBucket] {
        let limits = read("limits.yaml", text, algorithm, Handling::default()).unwrap();
        let quota = limits.as_slice()[0].quota;
        assert_eq!((quota.algorithm(), quota.burst(), quota.rate().count()), (algorithm, 7, 7));
    }
    // Zero denies, whatever enforces it.
    assert_eq!(limits("- {namespace: ns, max_value: 0, seconds: 10}").as_slice()[0].quota.burst(), 0);
}

#[test]
fn limits_are_called_by_name_or_id_or_place() {
    let text = "
- {namespace: ns, max_value: 1, seconds: 1}
- {namespace: ns, max_value: 1, seconds: 2, name: Fast}
- {namespace: ns, max_value: 1, seconds: 3, id: by-id}
- {namespace: ns, max_value: 1, seconds: 4, name: Fast}
- {namespace: ns, max_value: 1, seconds: 5, name: null}";
    let labels: Vec<_> = limits(text).as_slice().iter().map(|limit| limit.label.clone()).collect();
    assert_eq!(labels, ["limit-1", "Fast", "by-id", "Fast-2", "limit-5"]);
}

#[test]
fn no_call_meets_more_limits_than_one_decision_takes() {
    let limit = |i: usize, condition: &str| {
        format!("- {{namespace: ns, max_value: 1, seconds: {}, conditions: [\"{condition}\"]}}\n", i + 1)
    };
    let apart: String = (0..200).map(|i| limit(i, &format!("descriptors[0].app == 'a{}'", i / 16))).collect();
    assert_eq!(limits(&apart).as_slice().len(), 200);
    let not: String = (0..17).map(|i| limit(i, if i < 16 { "m == 'GET'" } else { "m != 'GET'" })).collect();
    assert_eq!(limits(&not).as_slice().len(), 17);
    let lists: String = (0..17).map(|i| limit(i, if i < 16 { "m in ['a', 'b']" } else { "m == 'c'" })).collect();
    assert_eq!(limits(&lists).as_slice().len(), 17);
    let together: String = (0..17).map(|i| limit(i, &format!("descriptors[0].a{i} == 'x'"))).collect();
    let error = read("limits.yaml", &together, Algorithm::FixedWindow, Handling::default()).unwrap_err().to_string();
    assert!(
        error.contains("with this limit, more than 16 limits of namespace `ns` could apply to one call"),
        "{error}"
    );
}

#[track_caller]
fn check_wrong(text: &str, expect: &[&str]) {
    let error = read("l.yaml", text, Algorithm::FixedWindow, Handling::default()).expect_err(text);
    let told: Vec<_> = error.faults().iter().map(|it| format!("{}:{}: {}", it.line, it.column, it.message)).collect();
    assert_eq!(told, expect, "{text}");
}

#[test]
fn br_169_every_mistake_is_told_at_once_with_its_place() {
    let text = "\
- namespace: ns
  seconds: 60
  conditions: [\"descriptors[0].m = 'GET'\"]
- namespace: ns
  max_value: '10'
  minutes: 1
  variabels: []
  seconds: 0
";
    let most = "a limit needs `max_value`, how much may pass; limitador takes 0 if it is missing, which denies \
                everything: write `max_value: 0` if that is meant";
    check_wrong(
        text,
        &[
            &format!("1:3: {most}"),
            "3:34: `=` compares nothing; write `==`",
            "5:14: expected a whole number from 0 to 4294967296",
            "6:3: a limit has no key `minutes`; write `seconds`",
            "7:3: a limit has no key `variabels`; did you mean `variables`?",
            "8:12: expected a whole number from 1 to 31536000",
        ],
    );
}

#[test]
fn br_167_what_would_be_dropped_silently_is_refused() {
    check_wrong("limits: []", &["1:1: expected a list of limits, each behind `-`, found a table"]);
    check_wrong("100", &["1:1: expected a list of limits, each behind `-`, found a number"]);
    check_wrong("- 100", &["1:3: expected a limit as a table, found a number"]);
    check_wrong("- {namespace: ns, max_value: 100}", &["1:3: a limit needs `seconds`, the length of the window"]);
    check_wrong(
        "- {namespace: '', max_value: 1, seconds: 1}",
        &["1:15: expected 1 to 256 characters of printable ASCII"],
    );
    let same = "- {namespace: ns, max_value: 1, seconds: 1}\n- {namespace: ns, max_value: 2, seconds: 1}";
    let there = "this limit is there already, with the same namespace, seconds, conditions and variables";
    check_wrong(same, &[&format!("2:3: {there}")]);
    check_wrong(
        "- {namespace: ns, max_value: 4000000000, seconds: 1}",
        &["1:3: 4000000000 in 1 seconds: the rate is above the maximum of 1000000000/s"],
    );
    // An empty file is no mistake: it limits nothing.
    assert!(limits("").as_slice().is_empty() && limits("[]").as_slice().is_empty());
}

#[test]
fn br_165_and_br_170_seconds_have_no_other_unit() {
    for seconds in ["1m", "1min", "'60'", "1.5", "-1", "null"] {
        check_wrong(
            &format!("- {{namespace: ns, max_value: 1, seconds: {seconds}}}"),
            &["1:42: expected a whole number from 1 to 31536000"],
        );
    }
}

#[test]
fn br_169_a_list_of_conditions_may_be_one_text() {
    let one = limits("- {namespace: ns, max_value: 1, seconds: 1, conditions: \"m == 'a'\"}");
    assert_eq!(one, limits("- {namespace: ns, max_value: 1, seconds: 1, conditions: [\"m == 'a'\"]}"));
    check_wrong(
        "- {namespace: ns, max_value: 1, seconds: 1, conditions: [5]}",
        &[
            "1:58: expected a text, an expression such as \"descriptors[0].method == 'POST'\", found a number; put it in \
           double quotes",
        ],
    );
}
