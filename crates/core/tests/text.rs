//! The text form of limits: what is read, what is refused and with which words, and what is written.

use core::time::Duration;

use proptest::prelude::*;
use tidegate_core::{BURST_MAX, COUNT_MAX, Limit, Quota, Rate};

const US: u64 = 1_000;
const S: u64 = 1_000_000_000;
const MIN: u64 = 60 * S;
const H: u64 = 60 * MIN;
const DAY: u64 = 24 * H;

fn parse(text: &str) -> Limit {
    text.parse().unwrap_or_else(|error| panic!("{text:?} was refused: {error}"))
}

/// Count, period in nanoseconds and burst of a limit that charges.
fn numbers(text: &str) -> (u64, u64, u64) {
    let quota = parse(text).quota().expect("a limit that charges");
    let period_ns = u64::try_from(quota.rate().period().as_nanos()).expect("at most a year");
    (quota.rate().count(), period_ns, quota.burst())
}

#[track_caller]
fn check_read(text: &str, expect: (u64, u64, u64), written: &str) {
    assert_eq!(numbers(text), expect, "{text:?}");
    assert_eq!(parse(text).to_string(), written);
    assert_eq!(parse(written), parse(text), "what is written is read as the same limit");
}

/// The text is refused with this message, the fault being at that byte.
#[track_caller]
fn check_refused(text: &str, at: usize, message: &str) {
    let Err(error) = text.parse::<Limit>() else { panic!("{text:?} was read") };
    assert_eq!((error.at(), error.to_string().as_str()), (at, message));
}

#[test]
fn counts_periods_and_bursts_are_read() {
    check_read("60/min", (60, MIN, 60), "60/min");
    check_read("60/min burst 10", (60, MIN, 10), "60/min burst 10");
    check_read("10/15min", (10, 15 * MIN, 10), "10/15min");
    check_read("1/day", (1, DAY, 1), "1/day");
    check_read("500/s", (500, S, 500), "500/s");
    check_read("10/15min burst 20", (10, 15 * MIN, 20), "10/15min burst 20");
    check_read("10/100ms", (10, S / 10, 10), "10/100ms");
    check_read("1/us", (1, US, 1), "1/us");
    check_read("1000000000/s", (1_000_000_000, S, 1_000_000_000), "1000000000/s");
    check_read("5/min burst 4294967296", (5, MIN, BURST_MAX), "5/min burst 4294967296");
    check_read("4294967296/year", (COUNT_MAX, 365 * DAY, BURST_MAX), "4294967296/year");
    check_read("8589934592/h burst 1", (8_589_934_592, H, 1), "8589934592/h burst 1");
}

#[test]
fn spaces_and_case_do_not_matter() {
    check_read("  60 / min  ", (60, MIN, 60), "60/min");
    check_read("60/15 MIN", (60, 15 * MIN, 60), "60/15min");
    check_read("60/Minute\tBURST  10\n", (60, MIN, 10), "60/min burst 10");
    check_read("60/min burst10", (60, MIN, 10), "60/min burst 10");
    check_read("060/01min", (60, MIN, 60), "60/min");
}

#[test]
fn the_written_period_takes_the_largest_unit_that_fits() {
    check_read("5/60s", (5, MIN, 5), "5/min");
    check_read("5/90s", (5, 90 * S, 5), "5/90s");
    check_read("1/24h", (1, DAY, 1), "1/day");
    check_read("1/14day", (1, 14 * DAY, 1), "1/2week");
    check_read("1/365day", (1, 365 * DAY, 1), "1/year");
    check_read("1/1500us", (1, 1500 * US, 1), "1/1500us");
    check_read("1/60min burst 1", (1, H, 1), "1/h");
}

#[test]
fn every_name_of_a_unit() {
    let units = [
        (US, "us usec microsecond microseconds"),
        (1_000 * US, "ms msec millisecond milliseconds"),
        (S, "s sec secs second seconds"),
        (MIN, "min mins minute minutes"),
        (H, "h hr hour hours"),
        (DAY, "d day days"),
        (7 * DAY, "w week weeks"),
        (30 * DAY, "mo month months"),
        (365 * DAY, "y yr year years"),
    ];
    for (period_ns, names) in units {
        for name in names.split(' ') {
            assert_eq!(numbers(&format!("1/{name}")), (1, period_ns, 1));
            assert_eq!(numbers(&format!("1/1 {}", name.to_uppercase())), (1, period_ns, 1));
        }
    }
}

#[test]
fn zero_blocks_and_unlimited_is_a_word() {
    for (text, period_ns, written) in [("0/min", MIN, "0/min"), ("0/h", H, "0/h"), ("0/60min", H, "0/h")] {
        assert_eq!(parse(text), Limit::Block { period: Duration::from_nanos(period_ns) });
        assert_eq!(parse(text).to_string(), written);
        assert_eq!(numbers(text), (0, period_ns, 0));
    }
    for text in ["unlimited", " Unlimited ", "UNLIMITED"] {
        assert_eq!(parse(text), Limit::Unlimited);
        assert_eq!((parse(text).quota(), parse(text).to_string()), (None, "unlimited".to_owned()));
    }
}

#[test]
fn an_empty_text_is_refused() {
    let message =
        "the limit is empty; write one such as `60/min`, `0/min` to block, or `unlimited` to allow everything";
    check_refused("", 0, message);
    check_refused("  ", 2, message);
}

#[test]
fn a_text_that_is_no_limit_at_all_is_refused() {
    let message = |text: &str| {
        format!(
            "`{text}`: expected a count and a period, such as `60/min`; `0/min` blocks, `unlimited` allows everything"
        )
    };
    for text in
        ["null", "none", "off", "block", "'90'", "\"60/min\"", "/", "per minute", "unlimited burst 3", "٣/s", "m"]
    {
        check_refused(text, 0, &message(text));
    }
}

#[test]
fn a_missing_part_is_named() {
    check_refused("min", 0, "`min`: there is a period but no count; write `1/min`");
    check_refused("/min", 0, "`/min`: there is a period but no count; write `1/min`");
    check_refused("1min", 0, "`1min`: there is a period but no count; write `1/1min`");
    check_refused("0s", 1, "`0s`: write the period after a slash: `0/s`");
    check_refused("60/", 3, "`60/`: a count needs a period; write `60/s` or `60/min`");
    check_refused("60 per", 3, "`60 per`: a count needs a period; write `60/s` or `60/min`");
    check_refused("5 per 2weeks", 2, "`5 per 2weeks`: write the period after a slash: `5/2weeks`");
    check_refused("60/min burst", 12, "`60/min burst`: `burst` needs a whole number behind it, such as `burst 10`");
    check_refused("60/min burst x", 13, "`60/min burst x`: `burst` needs a whole number behind it, such as `burst 10`");
}

#[test]
fn what_is_ambiguous_is_refused() {
    let ambiguous = |text: &str, minute: &str, month: &str| {
        format!("`{text}`: `m` could be a minute or a month; write `{minute}` or `{month}`")
    };
    check_refused("5/M", 2, &ambiguous("5/M", "5/min", "5/month"));
    check_refused("5/15m", 4, &ambiguous("5/15m", "5/15min", "5/15month"));
    check_refused("5/m burst 3", 2, &ambiguous("5/m burst 3", "5/min", "5/month"));
    check_refused("15m", 2, &ambiguous("15m", "1/15min", "1/15month"));
    check_refused("0m", 1, &ambiguous("0m", "0/min", "0/month"));
    check_refused("5 per m", 2, &ambiguous("5 per m", "5/min", "5/month"));
    check_refused("5 every 10m", 2, &ambiguous("5 every 10m", "5/10min", "5/10month"));
}

#[test]
fn an_unknown_unit_is_answered_with_the_list() {
    let list = "the units are us, ms, s, min, h, day, week, month (30 days) and year (365 days)";
    check_refused("5/fortnight", 2, &format!("`5/fortnight`: unknown unit `fortnight`; {list}"));
    check_refused("5/10ns", 4, &format!("`5/10ns`: unknown unit `ns`; {list}"));
    check_refused("5/µs", 2, &format!("`5/µs`: unknown unit `µs`; {list}"));
    check_refused("5/?", 2, &format!("`5/?`: unknown unit `?`; {list}"));
}

#[test]
fn signs_are_refused() {
    for (text, at) in [("-5/min", 0), ("+5/min", 0), ("5/-1s", 2), ("5/min burst -1", 12)] {
        check_refused(text, at, &format!("`{text}`: a limit has no signs; write `0/min` to block"));
    }
}

#[test]
fn decimals_are_refused_with_the_whole_form() {
    check_refused("1.5/s", 0, "`1.5/s`: only whole numbers; the same rate is `3/2s`");
    check_refused("0.5/min", 0, "`0.5/min`: only whole numbers; the same rate is `1/2min`");
    check_refused(".5/2s", 0, "`.5/2s`: only whole numbers; the same rate is `1/4s`");
    check_refused("2.50/min", 0, "`2.50/min`: only whole numbers; the same rate is `5/2min`");
    check_refused("60./min", 0, "`60./min`: only whole numbers; the same rate is `60/min`");
    check_refused("10/1.5h", 3, "`10/1.5h`: only whole numbers; the same period is `10/90min`");
    check_refused("10/.5s", 3, "`10/.5s`: only whole numbers; the same period is `10/500ms`");
    check_refused("7/0.25week", 2, "`7/0.25week`: only whole numbers; the same period is `7/42h`");
    for (text, at) in
        [("1.5", 0), ("1.5h", 0), ("1.5/m", 0), ("5/1.5", 2), ("5/1.5m", 2), ("1.5/1.5s", 0), ("0.0/s", 0)]
    {
        check_refused(text, at, &format!("`{text}`: only whole numbers, such as `3/2s` for one and a half a second"));
    }
}

#[test]
fn what_is_out_of_range_is_refused_by_name() {
    let too_fast = "the rate is above the maximum of 1000000000/s";
    let too_long = "the period is above the maximum of 365 days";
    let burst = "the burst is above the maximum of 4294967296; it is the count unless `burst N` is given";
    for (text, message) in [
        ("1000000001/s", too_fast),
        ("5000000000/s", too_fast),
        ("18446744073709551615/s burst 1", too_fast),
        ("1/366day", too_long),
        ("1/2year", too_long),
        ("4294967298/h", burst),
        ("1/s burst 4294967297", burst),
        ("4294967297/h burst 5", "the count, in lowest terms, is above the maximum of 4294967296"),
        ("5/0s", "the period is 0; write at least `1us`"),
        ("0/0s", "the period is 0; write at least `1us`"),
        ("5/min burst 0", "a burst of 0 lets nothing pass; write `0/min` to block"),
        ("0/h burst 1", "a zero limit blocks everything and has no burst; write `0/h`, or a rate above zero"),
        ("0/h burst 0", "a zero limit blocks everything and has no burst; write `0/h`, or a rate above zero"),
    ] {
        check_refused(text, 0, &format!("`{text}`: {message}"));
    }
    for (text, at) in
        [("18446744073709551616/s", 0), ("1/99999999999999999999s", 2), ("1/s burst 18446744073709551616", 10)]
    {
        check_refused(text, at, &format!("`{text}`: the number is too large"));
    }
}

#[test]
fn what_stands_behind_a_limit_is_refused() {
    let message = |text: &str, rest: &str| {
        format!("`{text}`: did not expect `{rest}`; a limit is `COUNT/PERIOD` or `COUNT/PERIOD burst N`")
    };
    check_refused("60/min garbage", 7, &message("60/min garbage", "garbage"));
    check_refused("60/min, 10/s", 6, &message("60/min, 10/s", ", 10/s"));
    check_refused("60/min burst 5/s", 14, &message("60/min burst 5/s", "/s"));
    check_refused("1,000/s", 1, &message("1,000/s", ",000/s"));
    check_refused("100 requests/min", 4, &message("100 requests/min", "requests/min"));
}

#[test]
fn a_hostile_text_is_shown_short_and_escaped() {
    check_refused(
        "60/min\u{1b}[31m",
        6,
        "`60/min\\u{1b}[31m`: did not expect `\\u{1b}[31m`; a limit is `COUNT/PERIOD` or `COUNT/PERIOD burst N`",
    );
    let long = "ü".repeat(1_000_000);
    let error = long.parse::<Limit>().expect_err("no limit").to_string();
    assert!(error.starts_with(&format!("`{}...`: expected", "ü".repeat(20))), "{error}");
}

// The public reports that concern the text of a limit.

#[test]
fn br_038_more_than_one_a_nanosecond_is_refused_with_the_maximum() {
    assert_eq!(numbers("1000000000/s"), (1_000_000_000, S, 1_000_000_000));
    check_refused("5000000000/s", 0, "`5000000000/s`: the rate is above the maximum of 1000000000/s");
}

#[test]
fn br_041_zero_blocks_unlimited_allows_and_nothing_else_is_guessed() {
    assert_eq!(parse("0/min"), Limit::Block { period: Duration::from_secs(60) });
    assert_eq!(parse("unlimited"), Limit::Unlimited);
    for text in ["", "null"] {
        let message = text.parse::<Limit>().expect_err("no limit").to_string();
        assert!(message.contains("`0/min`") && message.contains("`unlimited`"), "{message}");
    }
    check_refused("0", 1, "`0`: a count needs a period; write `0/min` to block, or `unlimited` to allow everything");
}

#[test]
fn br_050_the_largest_burst_and_one_more() {
    assert_eq!(numbers("1/s burst 4294967296"), (1, S, BURST_MAX));
    let message = "`1/s burst 4294967297`: the burst is above the maximum of 4294967296; it is the count unless \
                   `burst N` is given";
    check_refused("1/s burst 4294967297", 0, message);
}

#[test]
fn br_165_periods() {
    let periods = [("min", MIN), ("day", DAY), ("week", 7 * DAY), ("month", 30 * DAY), ("year", 365 * DAY)];
    let short = [("d", DAY), ("w", 7 * DAY), ("mo", 30 * DAY)];
    for (unit, period_ns) in periods.into_iter().chain(short) {
        assert_eq!(numbers(&format!("1/1{unit}")).1, period_ns);
    }
    for period in ["1m", "1 m", "1M", "1m30s"] {
        for text in [period.to_owned(), format!("1/{period}")] {
            let message = text.parse::<Limit>().expect_err("ambiguous").to_string();
            assert!(message.contains("`m` could be a minute or a month; write `1/min` or `1/month`"), "{message}");
        }
    }
    check_refused("1/1.5h", 2, "`1/1.5h`: only whole numbers; the same period is `1/90min`");
    check_refused("1/90", 4, "`1/90`: the period has no unit; write `1/90s` or `1/90min`");
    check_refused("1/-1s", 2, "`1/-1s`: a limit has no signs; write `0/min` to block");
    check_refused("1/0s", 0, "`1/0s`: the period is 0; write at least `1us`");
}

#[test]
fn br_167_no_default_period() {
    check_refused("100", 3, "`100`: a count needs a period; write `100/s` or `100/min`");
    let message = "a count needs a period; write `100/s burst 50` or `100/min burst 50`";
    check_refused("100 burst 50", 4, &format!("`100 burst 50`: {message}"));
    check_refused("100/ burst 50", 5, &format!("`100/ burst 50`: {message}"));
    let message = "the period has no unit; write `100/10s burst 50` or `100/10min burst 50`";
    check_refused("100/10 burst 50", 6, &format!("`100/10 burst 50`: {message}"));
    assert!("".parse::<Limit>().is_err());
}

#[test]
fn br_170_short_forms() {
    check_refused("5/60", 4, "`5/60`: the period has no unit; write `5/60s` or `5/60min`");
    check_refused("5 per 60", 2, "`5 per 60`: the period has no unit; write `5/60s` or `5/60min`");
    check_refused("10s", 0, "`10s`: there is a period but no count; write `1/10s`");
    check_refused("5/m", 2, "`5/m`: `m` could be a minute or a month; write `5/min` or `5/month`");
    check_refused("1 per 10s", 2, "`1 per 10s`: write the period after a slash: `1/10s`");
    assert_eq!(numbers("5/60s"), (5, MIN, 5));
    assert_eq!(numbers("10/s"), (10, S, 10));
}

/// The texts in backquotes that a message tells to write instead.
fn hints(message: &str) -> Vec<&str> {
    let said = message.split_once("`: ").map_or("", |(_, said)| said);
    let begin = ["write `", "slash: `", "rate is `", "period is `"];
    let Some(at) = begin.iter().filter_map(|begin| said.find(begin).map(|at| at + begin.len() - 1)).min() else {
        return Vec::new();
    };
    said[at..].split('`').filter(|hint| hint.contains('/')).collect()
}

/// Strings that look like limits, well-formed or not.
fn any_near_limit() -> impl Strategy<Value = String> {
    let part = proptest::sample::select(
        &[
            "0",
            "1",
            "5",
            "60",
            "1.5",
            ".5",
            "2.",
            "/",
            "/",
            "/",
            " ",
            "m",
            "min",
            "s",
            "h",
            "mo",
            "year",
            "per",
            "burst",
            "burst 3",
            "-",
            "+",
            "unlimited",
            "every",
            "ns",
            ",",
            "é",
        ][..],
    );
    proptest::collection::vec(part, 0..8).prop_map(|parts| parts.concat())
}

/// Every limit that can be written: counts in range, periods of whole microseconds.
fn any_limit() -> impl Strategy<Value = Limit> {
    let periods = prop_oneof![1..=2_000u64, 1..=31_536_000_000_000u64].prop_map(Duration::from_micros);
    let days = (1..=365u64).prop_map(|days| Duration::from_nanos(days * DAY));
    let period = prop_oneof![periods, days];
    let count = prop_oneof![1..=1_000u64, 1..=BURST_MAX];
    let burst = proptest::option::of(prop_oneof![1..=10u64, 1..=BURST_MAX]);
    (period, count, burst).prop_filter_map("within the range", |(period, count, burst)| {
        let rate = Rate::new(count, period).ok()?;
        burst.map_or_else(|| Quota::new(rate), |burst| Quota::with_burst(rate, burst)).ok().map(Limit::Quota)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_read_or_refused(text in any::<String>()) {
        if let Err(error) = text.parse::<Limit>() {
            prop_assert!(error.at() <= text.len() && text.is_char_boundary(error.at()));
            prop_assert!(!error.to_string().chars().any(char::is_control));
        }
    }

    #[test]
    fn what_a_message_tells_to_write_can_be_read(text in any_near_limit()) {
        match text.parse::<Limit>() {
            Ok(limit) => prop_assert_eq!(limit.to_string().parse::<Limit>(), Ok(limit)),
            Err(error) => {
                prop_assert!(error.at() <= text.len() && text.is_char_boundary(error.at()));
                for hint in hints(&error.to_string()) {
                    let refused = hint.parse::<Limit>().err().map(|error| error.to_string());
                    // The hint mends what was said; a zero period or a zero limit with a burst is said next.
                    let next = refused.filter(|next| !next.contains("period is 0") && !next.contains("zero limit")
                        && !next.contains("above the maximum") && !next.contains("a burst of 0"));
                    prop_assert_eq!(next, None, "{:?}: {}", text, error);
                }
            }
        }
    }

    #[test]
    fn what_is_written_is_read_as_the_same(limit in any_limit()) {
        prop_assert_eq!(limit.to_string().parse::<Limit>(), Ok(limit));
    }
}
