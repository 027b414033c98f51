//! What a limit does without its store: the words, and the share of a quota.

use std::time::Duration;

use tidegate_core::{Algorithm, FailureMode, Fraction, Limit, Quota};

fn quota(text: &str) -> Quota {
    text.parse::<Limit>().unwrap().quota().unwrap()
}

fn fraction(text: &str) -> Fraction {
    text.parse().unwrap()
}

#[test]
fn the_words_are_read_and_written_alike() {
    for text in ["allow", "deny", "local", "local:0.25", "local:0.000001", "local:0.333333"] {
        assert_eq!(text.parse::<FailureMode>().unwrap().to_string(), text);
    }
    assert_eq!("local:1".parse::<FailureMode>(), Ok(FailureMode::default()));
    assert_eq!("local:1.0".parse::<FailureMode>(), Ok(FailureMode::default()));
    assert_eq!("local:0.50".parse::<FailureMode>().unwrap().to_string(), "local:0.5");
}

#[test]
fn what_is_no_mode_is_refused() {
    for text in ["", "Allow", "open", "local:", "local:0", "local:0.0", "local:1.1", "local:-1", "local:.5", "allow:1"]
    {
        assert!(text.parse::<FailureMode>().is_err(), "{text}");
    }
    for text in ["local:0.1234567", "local:1e-3", "local:half", "local:4294967297", "local:0.", "local:0.5 "] {
        assert!(text.parse::<FailureMode>().is_err(), "{text}");
    }
}

#[test]
fn a_share_of_a_quota_is_a_share_of_its_rate_and_of_its_burst() {
    for (text, share, burst) in [("100/s burst 50", "0.25", 12), ("3/min", "0.5", 1), ("1/year burst 1", "0.1", 1)] {
        assert_eq!(fraction(share).of(&quota(text)).burst(), burst, "{text} x {share}");
    }
    let quarter = fraction("0.25").of(&quota("100/s burst 50"));
    assert_eq!(quarter.most_within(Duration::from_secs(4)), 12 + 100);
    let half = fraction("0.5").of(&quota("3/min"));
    assert_eq!(half.most_within(Duration::from_secs(120)), 1 + 3);
    assert_eq!(fraction("0.1").of(&quota("1/year")).most_within(Duration::from_secs(365 * 86_400)), 2);
    // The longest period is no reason to round a rate up.
    let slow = fraction("0.5").of(&quota("1000/year"));
    assert_eq!(slow.most_within(Duration::from_secs(365 * 86_400)), 500 + 500);
}

#[test]
fn a_share_never_exceeds_the_whole() {
    for text in ["1/us", "7/s burst 4294967296", "1000000000/s", "3/min burst 1", "1/year", "10/15min"] {
        for share in ["1", "0.999999", "0.5", "0.000001"] {
            let (whole, part) = (quota(text), fraction(share).of(&quota(text)));
            for span in [Duration::from_nanos(1), Duration::from_secs(1), Duration::from_secs(86_400 * 365)] {
                assert!(part.most_within(span) <= whole.most_within(span), "{text} x {share} over {span:?}");
            }
        }
    }
}

#[test]
fn a_share_of_a_window_is_a_smaller_window() {
    let window = quota("10/min").with_algorithm(Algorithm::FixedWindow).unwrap();
    let part = fraction("0.35").of(&window);
    assert_eq!(
        (part.burst(), part.rate().period(), part.algorithm()),
        (3, Duration::from_secs(60), window.algorithm())
    );
    assert_eq!(fraction("0.01").of(&window).burst(), 1);
}

#[test]
fn a_share_of_nothing_is_nothing() {
    let block = quota("0/min");
    assert_eq!(fraction("0.5").of(&block), block);
}
