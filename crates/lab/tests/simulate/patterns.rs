//! The patterns: each is what it says, the same in every run, and says what it takes.

use std::time::Duration;

use tidegate_core::Time;
use tidegate_lab::simulate::{Arrival, Chosen, Ground, Pace, Pattern, Random, Reply};

use crate::run;

fn ground() -> Ground {
    Ground { limit: Pace::new(60, Duration::from_secs(60)), length_ns: 600_000_000_000, clients: None }
}

/// What arrives in ten minutes if nothing is denied.
fn arrivals(text: &str, seed: u64) -> (Vec<Arrival>, u32) {
    let mut traffic = text.parse::<Chosen>().unwrap().build(&ground(), Random::new(seed)).unwrap();
    let mut all = Vec::new();
    while let Some(arrival) = traffic.next().filter(|arrival| arrival.at < Time::from_secs(600)) {
        traffic.told(&arrival, Reply::Passed);
        all.push(arrival);
    }
    (all, traffic.clients())
}

#[test]
fn every_pattern_is_in_order_and_the_same_from_the_same_seed() {
    for Pattern { name, .. } in Pattern::all() {
        let (all, clients) = arrivals(name, 7);
        assert!(!all.is_empty(), "{name}");
        assert!(all.is_sorted_by_key(|arrival| arrival.at), "{name}");
        assert!(all.iter().all(|arrival| arrival.client < clients), "{name}");
        assert_eq!(arrivals(name, 7).0, all, "{name}");
    }
}

/// FNV-1a over what arrives, so that a run of today can be told from one of years ago.
#[test]
fn the_runs_of_a_seed_are_fixed_for_ever() {
    let digest = |name: &str| {
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for arrival in arrivals(name, 1).0 {
            let words = [arrival.at.as_nanos(), u64::from(arrival.client), arrival.cost.tokens()];
            let route = arrival.route.to_string();
            for byte in words.iter().flat_map(|word| word.to_le_bytes()).chain(route.bytes()) {
                hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
            }
        }
        format!("{name} {hash:016x}\n")
    };
    let all: String = Pattern::all().iter().map(|pattern| digest(pattern.name)).collect();
    crate::snapshot::check("patterns.txt", &all);
}

#[test]
fn the_patterns_by_chance_have_the_rates_that_they_say() {
    let (all, _) = arrivals("poisson:rate=600/s", 3);
    assert!(all.len().abs_diff(360_000) < 3_600, "{}", all.len());
    let (all, _) = arrivals("diurnal:peak=600/s,low=10", 3);
    // Half a smooth swing, from a tenth up to one: 0.55 on average.
    assert!(all.len().abs_diff(198_000) < 3_000, "{}", all.len());
    let around = |from: u64| {
        all.iter().filter(|arrival| (from..from + 30).contains(&(arrival.at.as_nanos() / 1_000_000_000))).count()
    };
    assert!(around(0) < 2_600 && around(285) > 17_000, "{} by night, {} by day", around(0), around(285));
}

#[test]
fn a_ramp_grows_evenly() {
    let (all, _) = arrivals("ramp:from=1/s,to=9/s", 1);
    let in_minute = |minute: u64| all.iter().filter(|arrival| arrival.at.as_nanos() / 60_000_000_000 == minute).count();
    // 1 + 8 t / 600 a second: 84 in the first minute, and 48 more in each.
    for minute in 0..10 {
        assert!(in_minute(minute).abs_diff(84 + 48 * minute as usize) <= 1, "{} in minute {minute}", in_minute(minute));
    }
    let (down, _) = arrivals("ramp:from=9/s,to=1/s", 1);
    assert!(down.len().abs_diff(3_000) <= 1, "{}", down.len());
}

#[test]
fn volleys_and_rests_are_where_they_are_said_to_be() {
    let at =
        |text: &str| arrivals(text, 1).0.iter().map(|arrival| arrival.at.as_nanos() / 1_000_000).collect::<Vec<_>>();
    assert_eq!(at("edge-burst:count=2,edge=10s,gap=1s"), [9_000, 9_000, 11_000, 11_000]);
    assert_eq!(at("burst:count=2,every=5min"), [0, 0, 300_000, 300_000]);
    let on_off = at("on-off:rate=1/s,on=3s,off=297s");
    assert_eq!(on_off, [0, 1_000, 2_000, 300_000, 301_000, 302_000]);
    assert_eq!(at("steady:rate=3/min,clients=2").len(), 60);
}

#[test]
fn a_herd_that_obeys_asks_less_often_than_one_that_does_not() {
    let obeying = run("retry-herd:clients=1,count=120", "60/min");
    let ignoring = run("retry-herd:clients=1,count=120,obey=no,pause=250ms", "60/min");
    assert_eq!((obeying.admitted, ignoring.admitted), (120, 120), "both get through in the end");
    assert!(ignoring.arrivals > 3 * obeying.arrivals, "{} and {}", ignoring.arrivals, obeying.arrivals);
    // Sixty pass at once; each second brings one back, and all that are left ask each second: 60 + 59 + ... + 1.
    assert_eq!(obeying.denied, 60 * 61 / 2);
}

#[test]
fn patterns_add_up_each_with_clients_of_its_own() {
    let mix = run("mix", "600/min");
    assert_eq!(mix.keys, 20);
    let (all, clients) = arrivals("mix:clients=40", 1);
    let paths = |prefix: &str| all.iter().filter(|arrival| arrival.route.to_string().starts_with(prefix)).count();
    assert_eq!(clients, 40);
    assert!(paths("/items/") > 0 && paths("/assets/") > 0 && paths("/api") > 0);
}

#[test]
fn mistakes_name_what_is_known() {
    let parse = |text: &str| text.parse::<Chosen>().map_err(|error| error.to_string());
    let build = |text: &str| {
        parse(text)
            .and_then(|chosen| chosen.build(&ground(), Random::new(1)).map(|_| ()).map_err(|error| error.to_string()))
    };
    for (text, column, wanted) in [
        ("steddy", 1, "there is no pattern `steddy`; did you mean `steady`? There are edge-burst, steady, burst,"),
        ("what", 1, "there is no pattern `what`; there are edge-burst, steady, burst, on-off,"),
        ("steady:rte=1/s", 8, "pattern `steady` has no `rte`; did you mean `rate`? There are rate, clients, cost"),
        ("steady:rate", 8, "`rate` of pattern `steady` says no value; write `rate=VALUE`"),
        ("steady:rate=1/s, rate=2/s", 18, "pattern `steady` is given `rate` twice"),
        ("steady:rate=often", 13, "`rate=often`: expected a rate such as `60/min`"),
        ("steady:rate=1/m", 15, "`rate=1/m`: `1/m`: `m` could be a minute or a month; write `1/min` or `1/month`"),
        ("steady:rate=1e12", 14, "`rate=1e12`: expected a rate such as `60/min`"),
        ("steady:rate=9/s burst 1", 13, "`rate=9/s burst 1`: a rate of traffic has no burst"),
        ("steady:rate=2000000000/s", 13, "`rate=2000000000/s`: `2000000000/s`: the rate is above the maximum"),
        ("burst:every=0", 13, "`every=0`: expected a span such as `90s` or `5min`, of at most a year"),
        ("burst:count=0", 13, "`count=0`: expected a whole number from 1 to 1000000000"),
        ("retry-herd:obey=maybe", 17, "`obey=maybe`: expected yes or no"),
        ("retry-herd:clients=10,count=1000001", 29, "`count=1000001`: expected a whole number from 1 to 1000000"),
        ("page-load:assets=9999,clients=9,within=1h,every=1s", 18, "the pages that are loaded at once are made of"),
        ("mix:clients=0", 13, "`clients=0`: expected a whole number from 1 to 1000000"),
    ] {
        let error = build(text).unwrap_err();
        let (first, rest) = error.split_once('\n').unwrap();
        assert!(first.starts_with(&format!("column {column}: {wanted}")), "{text}: {error}");
        assert_eq!(rest, format!("  {text}\n  {:>column$}", "^"));
    }
    assert_eq!(parse("burst: count=3 , every=5s").unwrap().to_string(), "burst:count=3,every=5s");
}
