//! Whatever can be said is printed so that reading it gives the same.

use std::num::NonZeroU32;
use std::time::Duration;

use proptest::prelude::*;
use tidegate_core::{AtBound, Cost, FailureMode, Fraction, Handling, Limit, Mode, Sharing};

use super::super::{Config, Format, Setting, read};
use crate::{
    ClientAddress, CostRule, Counting, Exempt, HeaderMatch, Match, Offence, Override, Penalty, Policies, Policy,
    Statuses,
};

fn limit() -> impl Strategy<Value = Limit> {
    prop::sample::select(vec!["60/min", "60/min burst 10", "10/15min", "0/h", "unlimited", "1/us", "7/week"])
        .prop_map(|text| text.parse().unwrap())
}

fn handling() -> impl Strategy<Value = Handling> {
    let at_bound = prop::sample::select(vec![AtBound::Displace, AtBound::Deny, AtBound::Pool]);
    let fraction = (1..=1_000_000_u32).prop_map(|parts| FailureMode::Local(Fraction::from_millionths(parts).unwrap()));
    let on_failure = prop_oneof![Just(FailureMode::Allow), Just(FailureMode::Deny), fraction];
    let sharing = prop_oneof![
        Just(Sharing::Exact),
        (1..u32::MAX).prop_map(|most| Sharing::Leased { most: NonZeroU32::new(most).unwrap() })
    ];
    (at_bound, on_failure, sharing).prop_map(|(at_bound, on_failure, sharing)| Handling {
        at_bound,
        on_failure,
        sharing,
        ..Handling::default()
    })
}

fn statuses() -> impl Strategy<Value = Statuses> {
    prop::collection::vec((100..600_u16, 0..3_u16), 1..5).prop_map(|runs| {
        let text = |(from, more): (u16, u16)| format!("{from}-{}", (from + more * 60).min(599));
        runs.into_iter().map(|run| text(run).parse::<Statuses>().unwrap()).fold(Statuses::default(), Statuses::and)
    })
}

fn cost() -> impl Strategy<Value = CostRule> {
    let number = || (0..1_u64 << 32).prop_map(Cost::new);
    let name = || "x-cost".parse().unwrap();
    prop_oneof![
        Just(CostRule::default()),
        number().prop_map(CostRule::Constant),
        number().prop_map(move |otherwise| CostRule::Header { name: name(), otherwise }),
        number().prop_map(move |estimate| CostRule::Response { name: name(), estimate }),
    ]
}

fn matching() -> impl Strategy<Value = Match> {
    let hosts = prop::sample::subsequence(vec!["a.org", "*.b.org", "[::1]"], 0..3);
    let methods = prop::sample::subsequence(vec!["GET", "POST", "OPTIONS"], 0..3);
    let paths = prop::sample::subsequence(vec!["/", "/a/*", "/*/b*", "/%2F\u{e9}\"\\"], 0..4);
    let values = prop::collection::vec(any::<String>(), 0..3);
    (hosts, methods, paths, prop::option::of(values)).prop_map(|(hosts, methods, paths, values)| Match {
        hosts: hosts.iter().map(|text| text.parse().unwrap()).collect(),
        methods: methods.iter().map(|text| text.parse().unwrap()).collect(),
        paths: paths.iter().map(|text| text.parse().unwrap()).collect(),
        headers: values.map(|values| HeaderMatch { name: "x-plan".parse().unwrap(), values }).into_iter().collect(),
    })
}

fn exempt() -> impl Strategy<Value = Exempt> {
    let networks = prop::sample::subsequence(vec!["10.0.0.0/8", "unix", "2001:db8::/32", "*"], 0..4);
    let paths = prop::sample::subsequence(vec!["/healthz", "/static/*"], 0..3);
    (networks, paths, any::<bool>(), any::<bool>()).prop_map(|(networks, paths, preflights, health_checks)| Exempt {
        addresses: networks.iter().map(|text| text.parse::<crate::Trust>().unwrap()).collect(),
        paths: paths.iter().map(|text| text.parse().unwrap()).collect(),
        keys: Vec::new(),
        preflights,
        health_checks,
    })
}

/// The values of a key, and its end.
fn special() -> impl Strategy<Value = (String, Option<u64>, Limit)> {
    (any::<String>(), prop::option::of(0..250_000_000_000_u64), limit())
}

prop_compose! {
    fn policy()(
        limits in prop::collection::vec((limit(), any::<bool>(), handling()), 1..4),
        (matching, exempt, cost) in (matching(), exempt(), cost()),
        specials in prop::collection::vec(special(), 0..4),
        counting in prop::option::of(statuses()),
        penalty in prop::option::of((prop::option::of(statuses()), 1..720_u64)),
        (is_final, is_plain) in any::<(bool, bool)>(),
        on_missing in prop::sample::select(vec![crate::OnMissing::Client, crate::OnMissing::Deny, crate::OnMissing::Skip]),
    ) -> Policy {
        let mut policy = Policy::new("p", "header:k".parse().unwrap()).with_match(matching).with_cost(cost);
        for (i, (limit, is_shadow, handling)) in limits.into_iter().enumerate() {
            let mode = if is_shadow && !is_plain { Mode::Shadow } else { Mode::Enforce };
            policy = policy.with_limit(&format!("limit-{}", i + 1), limit, mode);
            if !is_plain {
                policy.limits.last_mut().unwrap().handling = handling;
            }
        }
        policy = policy.with_exempt(exempt).with_on_missing(on_missing);
        policy.counting = counting.map_or(Counting::All, Counting::Responses);
        policy.penalty = penalty.map(|(statuses, hours)| Penalty {
            of: statuses.map_or(Offence::Denials, Offence::Responses),
            after: "5/15min".parse::<Limit>().unwrap().quota().unwrap(),
            hold: Duration::from_secs(hours * 3_600),
        });
        for (i, (value, until_s, limit)) in specials.into_iter().enumerate() {
            let key = vec![format!("{value}{i}")];
            policy.overrides.push(Override { key, limits: vec![("limit-1".to_owned(), limit)], until_s });
        }
        policy.exempt.keys.extend((0..2).map(|i| vec![format!("\u{1b}\"\\{i}x")]));
        if is_final { policy.as_final() } else { policy }
    }
}

proptest! {
    #[test]
    fn what_is_printed_is_read_back(policy in policy(), exempt in exempt(), bits in 0..=32_u8) {
        let mut client = ClientAddress { trust: "10.0.0.0/8,unix".parse().unwrap(), ..ClientAddress::default() };
        client.field = "cf-connecting-ip".parse().unwrap();
        client.grouping = client.grouping.with_v4_bits(bits).unwrap().with_v6_bits(bits).unwrap();
        let policies = Policies::with_exempt(client, exempt, vec![policy]).unwrap();
        let proxy = vec![Setting::new("listen", "127.0.0.1:80"), Setting::new("grace", "30")];
        let config = Config { policies, proxy };
        let printed = config.to_toml();
        let again = read("printed", &printed, Format::Toml);
        let again = again.map_err(|error| TestCaseError::fail(format!("{error}\n{printed}")))?;
        prop_assert_eq!(&again.policies, &config.policies, "{}", printed);
        prop_assert_eq!(again.to_toml(), printed);
    }

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,60}|(\\[|\\]|\\{|\\}|\"|'|=|:|,|-|policies|name|limits|1/s|\n| |&a|\\*a|!x|\\\\u){0,30}") {
        for format in [Format::Toml, Format::Yaml, Format::Json] {
            let _ = read("any", &text, format).map_err(|error| error.to_string());
        }
    }
}
