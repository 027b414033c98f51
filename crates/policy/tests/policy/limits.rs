//! Which limits are charged.

use tidegate_core::{AtBound, Cost, Handling, Mode, Quota};
use tidegate_policy::{
    Charges, Charging, ClientAddress, CostRule, KeyText, Keys, Match, OnMissing, Policies, Policy, PolicyError,
};

use crate::given::{Gate, Given, policy, trusting};

const PEER: &str = "203.0.113.7";

fn named(name: &str, key: &str, limits: &[&str], mode: Mode) -> Policy {
    let limits: Vec<_> = limits.iter().map(|limit| limit.parse().unwrap()).collect();
    Policy::new(name, key.parse().unwrap()).with_limits(limits, mode)
}

fn policies(policies: Vec<Policy>) -> Policies {
    Policies::new(trusting(""), policies).unwrap()
}

/// One line per charge: policy, limit, quota, key.
fn lines(charges: &Charges<'_>) -> Vec<String> {
    let line = |i: usize| {
        let (charge, place) = (&charges[i], charges.place(i).unwrap());
        assert_eq!(charge.limit, place.limit.id);
        format!("{} {} {} {}", place.policy.name(), place.limit.name, charge.quota, KeyText(charge.key))
    };
    (0..charges.len()).map(line).collect()
}

#[track_caller]
fn check(policies: &Policies, request: &Given, expect: &[&str]) {
    let mut keys = Keys::new();
    let charging = policies.charging(request, &mut keys);
    assert!(charging.is_matched());
    let Charging::Charged(charges) = charging else { panic!("{charging:?}") };
    assert_eq!(lines(&charges), expect);
    assert!(charges.place(charges.len()).is_none());
}

#[test]
fn all_policies_apply_in_order() {
    let policies = policies(vec![
        named("a", "client", &["60/min", "1000/day burst 10"], Mode::Enforce),
        named("b", "header:k", &["5/s"], Mode::Enforce),
        named("c", "global", &["1/ms"], Mode::Shadow),
    ]);
    let request = Given::from(PEER).with("k", "v");
    let expect = [
        "a limit-1 60/min 203.0.113.7",
        "a limit-2 1000/day burst 10 203.0.113.7",
        "b limit-1 5/s \"v\"",
        "c limit-1 1/ms global",
    ];
    check(&policies, &request, &expect);
}

#[test]
fn many_charges_find_room() {
    let limits: Vec<_> = (1..=16).map(|i| format!("{i}/min")).collect();
    let limits: Vec<_> = limits.iter().map(String::as_str).collect();
    let expect: Vec<_> = (1..=16).map(|i| format!("p limit-{i} {i}/min 203.0.113.7")).collect();
    let expect: Vec<_> = expect.iter().map(String::as_str).collect();
    check(&policies(vec![policy("client", &limits)]), &Given::from(PEER), &expect);
}

#[test]
fn unlimited_makes_no_charge_and_zero_makes_one_of_zero() {
    let free = policies(vec![policy("header:k", &["unlimited"]).with_on_missing(OnMissing::Deny)]);
    assert!(matches!(free.charging(&Given::from(PEER), &mut Keys::new()), Charging::Free));
    let mixed = policies(vec![policy("client", &["unlimited", "0/min", "5/s"])]);
    let mut keys = Keys::new();
    let request = Given::from(PEER);
    let Charging::Charged(charges) = mixed.charging(&request, &mut keys) else { panic!("two charges") };
    assert_eq!(lines(&charges), ["p limit-2 0/min 203.0.113.7", "p limit-3 5/s 203.0.113.7"]);
    assert_eq!(charges[0].quota, Quota::block(std::time::Duration::from_secs(60)).unwrap());
    let (verdict, decisions) = Gate::new(trusting(""), vec![policy("client", &["0/min"])]).decide(&request, 0);
    assert!(!verdict.allowed && decisions[0].is_never());
}

#[test]
fn without_policies_nothing_matches() {
    let none = Policies::default();
    let mut keys = Keys::new();
    let charging = none.charging(&Given::from(PEER), &mut keys);
    assert!(matches!(charging, Charging::Unmatched) && !charging.is_matched());
}

#[test]
fn a_charge_says_what_its_limit_says() {
    let made = policy("client", &["5/s"])
        .with_cost(Cost::new(3))
        .with_handling(Handling::default().with_at_bound(AtBound::Pool));
    let policies = policies(vec![made.with_limit("watch", "1/s".parse().unwrap(), Mode::Shadow)]);
    let mut keys = Keys::new();
    let Charging::Charged(charges) = policies.charging(&Given::from(PEER), &mut keys) else { panic!("two charges") };
    assert!(charges.iter().all(|charge| charge.cost == Cost::new(3)));
    assert_eq!(charges.iter().map(|charge| charge.mode).collect::<Vec<_>>(), [Mode::Enforce, Mode::Shadow]);
    assert_eq!(
        charges.iter().map(|charge| charge.handling.at_bound).collect::<Vec<_>>(),
        [AtBound::Pool, AtBound::Displace]
    );
}

#[test]
fn a_request_without_its_key_is_denied_by_name() {
    let deny = |mode| named("keyed", "client,header:k", &["5/s"], mode).with_on_missing(OnMissing::Deny);
    let enforced = policies(vec![policy("client", &["1/s"]), deny(Mode::Enforce)]);
    let mut keys = Keys::new();
    let Charging::Denied { policy: denying, missing } = enforced.charging(&Given::from(PEER), &mut keys) else {
        panic!("the key is missing")
    };
    assert_eq!((denying.name(), missing.to_string().as_str()), ("keyed", "header k"));
    // In shadow it denies nobody, and the others are charged as ever.
    let shadow = policies(vec![deny(Mode::Shadow), policy("client", &["1/s"])]);
    check(&shadow, &Given::from(PEER), &["p limit-1 1/s 203.0.113.7"]);
}

#[test]
fn a_skipping_policy_leaves_the_others() {
    let skip = named("keyed", "client,header:k", &["5/s"], Mode::Enforce).with_on_missing(OnMissing::Skip);
    let both = policies(vec![skip, policy("client", &["1/s"])]);
    check(&both, &Given::from(PEER), &["p limit-1 1/s 203.0.113.7"]);
    let request = Given::from(PEER).with("k", "v");
    check(&both, &request, &["keyed limit-1 5/s 203.0.113.7, \"v\"", "p limit-1 1/s 203.0.113.7"]);
}

#[test]
fn br_066_the_same_limit_twice_is_refused() {
    let twice = vec![policy("client", &["600/min"]), policy("client", &["600/min"])];
    let error = Policies::new(trusting(""), twice).unwrap_err();
    assert_eq!(error.to_string(), "limit `limit-1` of policy `p` is there twice; give each limit a name of its own");
}

#[test]
fn too_many_limits_are_refused() {
    let error = Policies::new(trusting(""), vec![policy("client", &["1/s"; 17])]).unwrap_err();
    assert_eq!(error, PolicyError::TooManyLimits { count: 17, policies: vec!["p".to_owned()] });
    assert_eq!(error.to_string(), "17 limits apply to one request; the maximum is 16");
    assert!(Policies::new(trusting(""), vec![policy("client", &["unlimited"; 17])]).is_ok());
}

#[test]
fn br_067_two_limits_by_one_client_count_apart() {
    let mut gate = Gate::new(trusting(""), vec![policy("client", &["5/min", "50/day"])]);
    let request = Given::from(PEER);
    let mut passing = |now_ms: u64, count: usize| (0..count).filter(|_| gate.allows_at(&request, now_ms)).count();
    assert_eq!(passing(0, 5), 5);
    assert_eq!(passing(0, 1), 0);
    assert_eq!((1..=9).map(|k| passing(60_000 * k, 5)).sum::<usize>(), 45);
    assert_eq!(passing(600_000, 5), 0);
    let (verdict, decisions) = gate.decide(&request, 600_000);
    assert_eq!(verdict.binding, Some(1));
    assert_eq!(decisions[1].retry_after().unwrap().as_millis(), 1_128_000);
}

#[test]
fn br_139_a_denial_by_one_limit_charges_no_other() {
    for (limits, long) in [(["10/min", "30/30min"], 1), (["30/30min", "10/min"], 0)] {
        let mut gate = Gate::new(trusting(""), vec![policy("client", &limits)]);
        assert_eq!(gate.passing((0..31).map(|_| Given::from(PEER))), 10);
        let (verdict, decisions) = gate.decide(&Given::from(PEER), 0);
        assert_eq!(verdict.binding, Some(1 - long));
        assert_eq!(decisions[1 - long].retry_after().unwrap().as_millis(), 6_000);
        assert_eq!(decisions[long].remaining(), 20);
    }
}

#[test]
fn br_106_br_191_the_path_is_not_in_the_key() {
    let mut gate = Gate::new(trusting(""), vec![policy("client", &["5/5min"])]);
    assert_eq!(gate.passing((1..=20).map(|i| Given::from(PEER).to(&format!("/verify/c{i}")))), 5);
    assert_eq!(gate.buckets(), 1);
}

#[track_caller]
fn check_warnings(address: ClientAddress, policies: Vec<Policy>, expect: &[&str]) {
    let policies = Policies::new(address, policies).unwrap();
    let warnings: Vec<_> = policies.warnings().iter().map(ToString::to_string).collect();
    assert_eq!(warnings, expect);
}

#[test]
fn keys_that_callers_make_up_earn_a_warning() {
    let warning = "policy `p` is keyed by header x-api-key: nobody verifies header x-api-key, so whoever sends a new \
                   value gets a full bucket; put a limit by client beside it";
    let keyed = || policy("header:x-api-key", &["5/s"]);
    check_warnings(trusting(""), vec![keyed()], &[warning]);
    check_warnings(trusting(""), vec![keyed(), named("all", "global", &["5/s"], Mode::Enforce)], &[warning]);
    check_warnings(trusting(""), vec![keyed(), named("c", "client", &["unlimited"], Mode::Enforce)], &[warning]);
    check_warnings(trusting(""), vec![keyed(), named("c", "client", &["5/s"], Mode::Shadow)], &[warning]);
    check_warnings(trusting(""), vec![keyed(), named("c", "client", &["5/s"], Mode::Enforce)], &[]);
    check_warnings(trusting(""), vec![policy("client", &["5/s"])], &[]);
    check_warnings(trusting(""), vec![policy("header:k", &["unlimited"])], &[]);
    check_warnings(
        trusting(""),
        vec![policy("client,header:a,cookie:b", &["5/s"])],
        &[
            "policy `p` is keyed by client, header a, cookie b: nobody verifies header a and cookie b, so whoever sends a \
           new value gets a full bucket; put a limit by client beside it",
        ],
    );
}

#[test]
fn a_limit_by_client_holds_only_what_it_is_about() {
    let about = |path: &str| Match { paths: vec![path.parse().unwrap()], ..Match::default() };
    let keyed = || policy("header:k", &["5/s"]).with_match(about("/a"));
    let held_by = |path: &str| named("c", "client", &["5/s"], Mode::Enforce).with_match(about(path));
    let warned = |policies: Vec<Policy>| Policies::new(trusting(""), policies).unwrap().warnings().len();
    assert_eq!(warned(vec![keyed(), held_by("/b")]), 1);
    assert_eq!(warned(vec![keyed(), held_by("/a")]), 0);
    assert_eq!(warned(vec![keyed(), named("c", "client", &["5/s"], Mode::Enforce)]), 0);
}

#[test]
fn a_cost_that_nobody_may_say_earns_a_warning() {
    let cost = CostRule::Header { name: "x-cost".parse().unwrap(), otherwise: Cost::ONE };
    let costly = || policy("client", &["5/s"]).with_cost(cost.clone());
    let warning = "policy `p` takes the cost from x-cost, but nobody is trusted, so that field is never read; name the \
                   network of the layer that sets it as trusted";
    check_warnings(trusting(""), vec![costly()], &[warning]);
    check_warnings(trusting("10.0.0.0/8"), vec![costly()], &[]);
}

#[test]
fn trusting_everybody_earns_a_warning() {
    let warning = "everybody is trusted, so whoever writes a new address into x-forwarded-for is a new client; name the \
                   networks of your own proxies instead";
    for trust in ["*", "0.0.0.0/0", "10.0.0.0/8,::/0"] {
        check_warnings(trusting(trust), vec![policy("client", &["5/s"])], &[warning]);
    }
    check_warnings(trusting("private"), vec![policy("client", &["5/s"])], &[]);
}
