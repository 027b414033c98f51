//! Which policies apply, who is let off, and whose limits are others.

use proptest::prelude::*;
use tidegate_core::{Cost, Limit};
use tidegate_policy::{
    Charging, CostRule, Counting, Exempt, Exemption, HeaderMatch, KeyText, Keys, Match, Override, Policies, Policy,
    PolicyError, Say, Statuses,
};

use crate::given::{Gate, Given, trusting};

const PEER: &str = "203.0.113.7";

fn limit(text: &str) -> Limit {
    text.parse().unwrap()
}

fn named(name: &str, key: &str) -> Policy {
    Policy::new(name, key.parse().unwrap()).with_limits([limit("1000/min")], Default::default())
}

fn paths(paths: &[&str]) -> Match {
    Match { paths: paths.iter().map(|path| path.parse().unwrap()).collect(), ..Match::default() }
}

fn policies(policies: Vec<Policy>) -> Policies {
    Policies::new(trusting(""), policies).unwrap()
}

/// The names of the policies that charge a request; `-` if it is free, `none` if nothing matches.
fn charged(policies: &Policies, request: &Given) -> String {
    let mut keys = Keys::new();
    match policies.charging(request, &mut keys) {
        Charging::Charged(charges) => {
            let names = (0..charges.len()).map(|i| charges.place(i).unwrap().policy.name().to_owned());
            names.collect::<Vec<_>>().join(" ")
        }
        Charging::Free => "-".to_owned(),
        Charging::Unmatched => "none".to_owned(),
        Charging::Denied { policy, missing } => format!("denied by {} for {missing}", policy.name()),
    }
}

/// The same, from asking each policy by itself.
fn considered(policies: &Policies, request: &Given) -> String {
    let considered = policies.consider(request);
    if considered.policies.iter().all(|(_, say)| matches!(say, Say::Mismatch(_))) {
        return "none".to_owned();
    }
    if considered.exemption.is_some() {
        return "-".to_owned();
    }
    let mut names = Vec::new();
    for (policy, say) in &considered.policies {
        match say {
            Say::Charges(charged) => names.extend(charged.charges.iter().map(|_| policy.name())),
            Say::Missing { part, is_denied: true } => return format!("denied by {} for {part}", policy.name()),
            _ => {}
        }
    }
    if names.is_empty() { "-".to_owned() } else { names.join(" ") }
}

#[track_caller]
fn check(policies: &Policies, request: &Given, expect: &str) {
    assert_eq!(charged(policies, request), expect);
    assert_eq!(considered(policies, request), expect);
}

#[test]
fn all_that_match_apply() {
    let header = |name: &str, values: &[&str]| HeaderMatch {
        name: name.parse().unwrap(),
        values: values.iter().map(|value| (*value).to_owned()).collect(),
    };
    let all = policies(vec![
        named("all", "client"),
        named("host", "client").with_match(Match { hosts: vec!["*.example.org".parse().unwrap()], ..Match::default() }),
        named("get", "client").with_match(Match { methods: vec!["get".parse().unwrap()], ..Match::default() }),
        named("api", "client").with_match(paths(&["/api/*", "/v2/*"])),
        named("gold", "client")
            .with_match(Match { headers: vec![header("X-Plan", &["gold", "silver"])], ..Match::default() }),
        named("keyed", "client").with_match(Match { headers: vec![header("x-key", &[])], ..paths(&["/api/*"]) }),
    ]);
    let request = || Given::from(PEER);
    check(&all, &request(), "all host get");
    check(&all, &request().by("HEAD").on("example.org"), "all get");
    check(&all, &request().by("POST").on("A.Example.org:8080").to("/api/x"), "all host api");
    check(&all, &request().to("/v2/"), "all host get api");
    check(&all, &request().with("x-plan", "gold").with("x-key", ""), "all host get gold");
    check(&all, &request().with("x-plan", "gold").with("x-plan", "gold"), "all host get");
    check(&all, &request().with("x-plan", "Gold"), "all host get");
    check(&all, &request().to("/api/").with("x-key", "1").with("x-key", "2"), "all host get api keyed");
    check(&policies(vec![named("api", "client").with_match(paths(&["/api/*"]))]), &request(), "none");
}

#[test]
fn br_141_all_that_match_apply_unless_one_is_final() {
    let default = || Policy::new("default", "client".parse().unwrap()).with_limits([limit("1/s")], Default::default());
    let p1 = || {
        let limits = [limit("100/2s")];
        Policy::new("p1", "client".parse().unwrap()).with_match(paths(&["/p1"])).with_limits(limits, Default::default())
    };
    let request = |path: &str| Given::from(PEER).to(path);
    let mut gate = Gate::new(trusting(""), vec![default(), p1()]);
    assert_eq!(gate.passing((0..50).map(|_| request("/p1"))), 1);
    let (_, decisions) = gate.decide(&request("/p1"), 0);
    assert_eq!((decisions[0].retry_after().unwrap().as_millis(), decisions[1].remaining()), (1_000, 99));
    assert_eq!(gate.passing((0..2).map(|_| request("/other"))), 0);

    let mut gate = Gate::new(trusting(""), vec![p1().as_final(), default()]);
    assert_eq!(gate.passing((0..50).map(|_| request("/p1"))), 50);
    assert_eq!(gate.passing((0..2).map(|_| request("/other"))), 1);
    let policies = policies(vec![p1().as_final(), default()]);
    check(&policies, &request("/p1"), "p1");
    let considered = policies.consider(&request("/p1"));
    assert!(matches!(considered.policies[1].1, Say::BehindFinal(last) if last.name() == "p1"));
}

#[test]
fn br_130_a_probe_is_exempt_by_its_path_alone() {
    let exempt = Exempt { paths: vec!["/healthz".parse().unwrap()], ..Exempt::default() };
    let all = Policies::with_exempt(trusting(""), exempt.clone(), vec![named("p", "client")]).unwrap();
    let own = policies(vec![named("p", "client").with_exempt(exempt)]);
    for policies in [all, own] {
        let path = |path: &str| charged(&policies, &Given::from("10.0.0.1").to(path));
        assert_eq!(path("/healthz"), "-");
        let limited = ["/HEALTHZ", "//healthz", "/healthz/", "/healthz/../api", "/healthz/%2e%2e/api", "/healthz;x"];
        assert!(limited.iter().all(|limited| path(limited) == "p"));
        assert_eq!(path("/api/../healthz"), "-");
    }
}

#[test]
fn br_128_preflights_are_exempt_and_plain_options_are_not() {
    let preflight = || {
        let request = Given::from(PEER).by("OPTIONS").with("origin", "https://a.example");
        request.with("access-control-request-method", "PUT")
    };
    let plain = policies(vec![named("p", "client")]);
    check(&plain, &preflight(), "-");
    check(&plain, &Given::from(PEER).by("OPTIONS"), "p");
    check(&plain, &preflight().by("GET"), "p");
    let options = Match { methods: vec!["OPTIONS".parse().unwrap()], ..Match::default() };
    let naming = policies(vec![named("p", "client"), named("o", "client").with_match(options)]);
    check(&naming, &preflight(), "o");
    let counting = Exempt { preflights: false, ..Exempt::default() };
    check(&policies(vec![named("p", "client").with_exempt(counting.clone())]), &preflight(), "p");
    check(&Policies::with_exempt(trusting(""), counting, vec![named("p", "client")]).unwrap(), &preflight(), "p");
}

#[test]
fn addresses_keys_and_health_checks_are_exempt() {
    let exempt = Exempt {
        addresses: "10.0.0.0/8".parse().unwrap(),
        keys: vec![vec!["k1".to_owned()]],
        health_checks: true,
        ..Exempt::default()
    };
    let own = policies(vec![named("p", "header:k").with_exempt(exempt), named("q", "client")]);
    let request = || Given::from(PEER).with("k", "k2");
    check(&own, &request(), "p q");
    check(&own, &Given::from("10.0.0.1").with("k", "k2"), "q");
    check(&own, &Given::from(PEER).with("k", "k1"), "q");
    check(&own, &request().to("/grpc.health.v1.Health/Check"), "q");
    check(&own, &request().to("/livez"), "q");
    let why = |request: &Given| own.consider(request).policies[0].1.clone();
    assert_eq!(why(&Given::from(PEER).with("k", "k1")), Say::Exempt(Exemption::Key));
    assert_eq!(why(&Given::from("::ffff:10.0.0.1")), Say::Exempt(Exemption::Address));

    let all = Exempt { addresses: "10.0.0.0/8,unix".parse().unwrap(), ..Exempt::default() };
    let all = Policies::with_exempt(trusting("192.168.0.1"), all, vec![named("p", "client")]).unwrap();
    check(&all, &Given::from("10.0.0.1"), "-");
    check(&all, &Given::from("192.168.0.1").xff("10.0.0.1"), "-");
    check(&all, &Given::from("192.168.0.2").xff("10.0.0.1"), "p");
    check(&all, &Given::peer(tidegate_policy::Peer::Unix), "-");
}

#[test]
fn a_final_policy_ends_the_list_also_for_whom_it_lets_off() {
    let exempt = Exempt { addresses: "10.0.0.0/8".parse().unwrap(), ..Exempt::default() };
    let both = policies(vec![named("p", "client").with_exempt(exempt).as_final(), named("q", "client")]);
    check(&both, &Given::from("10.0.0.1"), "-");
}

fn special(key: &[&str], limits: &[(&str, &str)], until_s: Option<u64>) -> Override {
    Override {
        key: key.iter().map(|value| (*value).to_owned()).collect(),
        limits: limits.iter().map(|(name, text)| ((*name).to_owned(), limit(text))).collect(),
        until_s,
    }
}

/// The quotas that a request is charged to, with its key.
fn quotas(policies: &Policies, request: &Given) -> Vec<String> {
    let mut keys = Keys::new();
    let Charging::Charged(charges) = policies.charging(request, &mut keys) else { return Vec::new() };
    charges.iter().map(|charge| format!("{} {}", charge.quota, KeyText(charge.key))).collect()
}

#[test]
fn a_key_has_limits_of_its_own() {
    let two = Policy::new("p", "client,header:k".parse().unwrap())
        .with_limit("a", limit("1/s"), Default::default())
        .with_limit("b", limit("unlimited"), Default::default())
        .with_override(special(&["2001:db8::7", "gold"], &[("a", "5/s")], None))
        .with_override(special(&[PEER, "gold"], &[("a", "unlimited"), ("b", "9/s")], Some(1_000)))
        .with_override(special(&[PEER, "free"], &[("a", "unlimited")], None));
    let all = policies(vec![two]);
    let request = |peer: &str, k: &str| Given::from(peer).with("k", k);
    assert_eq!(quotas(&all, &request(PEER, "x")), ["1/s 203.0.113.7, \"x\""]);
    assert_eq!(quotas(&all, &request("2001:db8::8", "gold")), ["5/s 2001:db8::, \"gold\""], "grouped as clients are");
    assert_eq!(quotas(&all, &request(PEER, "gold").at(999)), ["9/s 203.0.113.7, \"gold\""]);
    assert_eq!(quotas(&all, &request(PEER, "gold").at(1_000)), ["1/s 203.0.113.7, \"gold\""]);
    assert_eq!(quotas(&all, &request(PEER, "gold")), ["1/s 203.0.113.7, \"gold\""], "the time is not known");
    check(&all, &request(PEER, "free"), "-");
}

#[test]
fn br_074_a_key_that_is_given_more_keeps_what_it_owes() {
    let plain = || Policy::new("p", "client".parse().unwrap()).with_limits([limit("5/h")], Default::default());
    let mut gate = Gate::new(trusting(""), vec![plain()]);
    assert_eq!(gate.passing((0..6).map(|_| Given::from(PEER))), 5);
    gate.reload(vec![plain().with_override(special(&[PEER], &[("limit-1", "50/h")], None))]);
    let (verdict, decisions) = gate.decide(&Given::from(PEER), 60_000);
    assert!(verdict.allowed);
    assert_eq!(decisions[0].remaining(), 44);
}

#[test]
fn secrets_are_singled_out_too() {
    let keyed = Policy::new("p", "cookie:session,claim:plan".parse().unwrap())
        .with_limits([limit("1/s")], Default::default())
        .with_override(special(&["s3cret", "gold"], &[("limit-1", "7/s")], None));
    let request = |plan: &str| Given::from(PEER).with("cookie", "session=s3cret").with("claim-plan", plan);
    let all = policies(vec![keyed]);
    assert!(quotas(&all, &request("gold"))[0].starts_with("7/s sha256:"));
    assert!(quotas(&all, &request("lead"))[0].starts_with("1/s sha256:"));
}

#[test]
fn overrides_that_do_not_fit_are_refused() {
    let error = |key: &str, special: Override| {
        let policy = named("p", key).with_override(special);
        Policies::new(trusting(""), vec![policy]).unwrap_err().to_string()
    };
    let ok = [("limit-1", "5/s")];
    assert_eq!(
        error("client,header:k", special(&["k"], &ok, None)),
        "policy `p`: the policy's key has 2 parts, and here are 1 values; write one for each"
    );
    assert_eq!(
        error("global", special(&[], &ok, None)),
        "policy `p`: the policy's key is `global`, so there is no key to single out"
    );
    assert!(error("client", special(&["me"], &ok, None)).contains("`me` is no address"));
    assert!(error("client", special(&[PEER], &[("x", "5/s")], None)).contains("has no limit `x`"));
    let exempt = Exempt { keys: vec![vec![PEER.to_owned()]], ..Exempt::default() };
    let twice = named("p", "client").with_exempt(exempt.clone()).with_override(special(&[PEER], &ok, None));
    let error = Policies::new(trusting(""), vec![twice]).unwrap_err().to_string();
    assert_eq!(error, "policy `p`: the key `203.0.113.7` is there twice; only one of them can count");
    let error = Policies::with_exempt(trusting(""), exempt, vec![named("p", "client")]).unwrap_err();
    assert_eq!(error, PolicyError::KeyWithoutPolicy);
}

#[test]
fn a_segment_of_the_path_is_a_key() {
    let keyed = policies(vec![named("p", "segment:2").with_on_missing(tidegate_policy::OnMissing::Skip)]);
    let key = |path: &str| quotas(&keyed, &Given::from(PEER).to(path));
    assert_eq!(key("/users/7/orders"), ["1000/min \"7\""]);
    assert_eq!(key("/users/x/../%37"), ["1000/min \"7\""]);
    assert_eq!(key("/users/"), [""; 0]);
}

#[test]
fn a_cost_is_read_from_a_trusted_peer_alone() {
    let cost = CostRule::Header { name: "x-cost".parse().unwrap(), otherwise: Cost::new(2) };
    let all = Policies::new(trusting("10.0.0.0/8"), vec![named("p", "client").with_cost(cost)]).unwrap();
    let cost = |request: &Given| {
        let mut keys = Keys::new();
        let Charging::Charged(charges) = all.charging(request, &mut keys) else { panic!("charged") };
        charges[0].cost.tokens()
    };
    let from = |value: &str| cost(&Given::from("10.0.0.1").with("x-cost", value));
    assert_eq!(["7", "0", " 12 ", "-1", "1.5", "", "x"].map(from), [7, 0, 12, 2, 2, 2, 2]);
    assert_eq!(from("99999999999999999999"), tidegate_policy::COST_MAX);
    assert_eq!(cost(&Given::from("10.0.0.1")), 2);
    assert_eq!(cost(&Given::from("10.0.0.1").with("x-cost", "7").with("x-cost", "7")), 2);
    assert_eq!(cost(&Given::from(PEER).with("x-cost", "7")), 2);
}

#[test]
fn the_engine_says_what_the_response_settles() {
    let failures = Counting::Responses("401".parse::<Statuses>().unwrap());
    let cost = CostRule::Response { name: "x-tokens".parse().unwrap(), estimate: Cost::new(50) };
    let all = policies(vec![
        named("plain", "client"),
        named("log-in", "client").with_counting(failures),
        named("tokens", "client").with_cost(cost),
    ]);
    let mut keys = Keys::new();
    let request = Given::from(PEER);
    let Charging::Charged(charges) = all.charging(&request, &mut keys) else { panic!("charged") };
    let settling = |i: usize| charges.place(i).unwrap().policy.settling();
    assert!(settling(0).is_none());
    let settled = |i: usize, status| settling(i).unwrap().cost(status, Some(b"9"), charges[i].cost).tokens();
    assert_eq!([settled(1, 401), settled(1, 200)], [1, 0]);
    assert_eq!([settled(2, 200), settled(2, 500), charges[2].cost.tokens()], [9, 9, 50]);
}

#[test]
fn only_policies_that_can_meet_are_counted_together() {
    let on = |i: usize| named(&format!("p{i}"), "client").with_match(paths(&[&format!("/p{i}/*")]));
    assert!(Policies::new(trusting(""), (0..500).map(on).collect()).is_ok());
    let mut many: Vec<_> = (0..100).map(on).collect();
    many.extend((0..15).map(|i| named(&format!("all{i}"), "client")));
    assert!(Policies::new(trusting(""), many.clone()).is_ok());
    many.push(named("one-more", "client"));
    let Err(PolicyError::TooManyLimits { count, policies }) = Policies::new(trusting(""), many) else {
        panic!("17 limits apply under each path")
    };
    assert_eq!((count, policies.len(), policies[0].as_str()), (17, 17, "p0"));
    let finals = (0..100).map(|i| on(i).with_match(Match::default()).as_final());
    assert!(Policies::new(trusting(""), finals.collect()).is_ok(), "only the first ever applies");
    let ladder =
        (0..17).map(|i| named(&format!("p{i}"), "client").with_match(paths(&[&format!("{}*", "/a".repeat(i + 1))])));
    assert!(Policies::new(trusting(""), ladder.collect()).is_err(), "all apply below the deepest");
}

/// A policy of few words, so that requests meet it.
fn some_policy() -> impl Strategy<Value = Policy> {
    let host = prop::sample::select(vec!["", "a.org", "*.a.org", "b.a.org"]);
    let method = prop::sample::select(vec!["", "GET", "POST", "OPTIONS", "HEAD"]);
    let path =
        prop::sample::subsequence(vec!["/", "/a", "/a/*", "/a*", "/*/b", "/a/b", "/*", "/a/*/*", "/b/../a"], 0..3);
    let header = prop::sample::select(vec!["", "1", "2", "any"]);
    let exempt = prop::sample::select(vec!["", "/a", "/*/b", "10.0.0.0/8", "preflights"]);
    (host, method, path, header, exempt, any::<bool>()).prop_map(|(host, method, path, header, exempt, is_final)| {
        let one = |text: &'static str| (!text.is_empty()).then_some(text);
        let values = Some(header).filter(|header| *header != "any").map(str::to_owned).into_iter().collect();
        let matching = Match {
            hosts: one(host).map(|host| host.parse().unwrap()).into_iter().collect(),
            methods: one(method).map(|method| method.parse().unwrap()).into_iter().collect(),
            headers: one(header).map(|_| HeaderMatch { name: "h".parse().unwrap(), values }).into_iter().collect(),
            ..paths(&path)
        };
        let exempt = Exempt {
            addresses: one(exempt).filter(|e| e.contains("10.")).map(|e| e.parse().unwrap()).unwrap_or_default(),
            paths: one(exempt).filter(|e| e.starts_with('/')).map(|e| e.parse().unwrap()).into_iter().collect(),
            preflights: exempt != "preflights",
            ..Exempt::default()
        };
        let policy = named("p", "client").with_match(matching).with_exempt(exempt);
        if is_final { policy.as_final() } else { policy }
    })
}

fn some_request() -> impl Strategy<Value = Given> {
    let peer = prop::sample::select(vec![PEER, "10.0.0.1"]);
    let host = prop::sample::select(vec!["a.org", "b.a.org", "c.b.a.org", "org", "", "A.ORG:80"]);
    let method = prop::sample::select(vec!["GET", "POST", "HEAD", "OPTIONS", "PUT"]);
    let path = prop::sample::select(vec![
        "/",
        "/a",
        "/ab",
        "/a/",
        "/a/b",
        "/c/b",
        "/a/b/c",
        "/a/b/",
        "*",
        "",
        "//b",
        "/x/%2e%2e/a",
    ]);
    let headers = prop::collection::vec(prop::sample::select(vec!["1", "2", "3"]), 0..3);
    (peer, host, method, path, headers).prop_map(|(peer, host, method, path, headers)| {
        let request = Given::from(peer).on(host).by(method).to(path).with("origin", "x");
        let request = request.with("access-control-request-method", "x");
        headers.into_iter().fold(request, |request, value| request.with("h", value))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    /// What was prepared at load says the same as asking each policy, and no request is charged more than fits.
    #[test]
    fn asking_all_at_once_is_asking_each(some in prop::collection::vec(some_policy(), 1..24), requests in prop::collection::vec(some_request(), 1..8)) {
        let some = some.into_iter().enumerate().map(|(i, policy)| {
            let renamed = named(&format!("p{i}"), "client");
            let renamed = renamed.with_match(policy.matching().clone()).with_exempt(policy.exempt().clone());
            if policy.is_final() { renamed.as_final() } else { renamed }
        });
        let some: Vec<_> = some.collect();
        match Policies::new(trusting(""), some.clone()) {
            Ok(policies) => for request in &requests {
                prop_assert_eq!(charged(&policies, request), considered(&policies, request));
            },
            Err(error) => prop_assert!(matches!(error, PolicyError::TooManyLimits { count: 17, .. }), "{}", error),
        }
    }

    /// Two matches that one request meets overlap.
    #[test]
    fn what_meets_both_overlaps(one in some_policy(), other in some_policy(), request in some_request()) {
        let path = tidegate_policy::normal_path(tidegate_policy::Attributes::path(&request)).into_owned();
        if one.matching().fits(&request, &path).is_ok() && other.matching().fits(&request, &path).is_ok() {
            prop_assert!(one.matching().overlaps(other.matching()));
            prop_assert!(other.matching().overlaps(one.matching()));
        }
    }

    #[test]
    fn any_path_has_one_normal_form(path in "/(/|\\.|%2[eEfF]|%|a|b){0,12}") {
        let normal = tidegate_policy::normal_path(&path).into_owned();
        prop_assert_eq!(tidegate_policy::normal_path(&normal).into_owned(), normal.clone());
        prop_assert!(!normal.split('/').any(|segment| segment == "." || segment == ".."));
    }
}
