//! The faults of the textbook script, each shown on a real server with the script of the page, and the same input to ours.
//!
//! The server's clock is set by the test, so that both are asked at the same instants.

use redis::{Connection, Value, cmd};
use tidegate_core::{Outcome, Quota};

use crate::given::clocked::{Clocked, caller_s};
use crate::given::{answer, ask, charge, charge_under, kept, left, of_cost, passes, patient, quota, textbook};

/// One call of the textbook script at microsecond `us` of the caller's clock.
fn textbook(connection: &mut Connection, key: &str, terms: (&str, u64), us: u64, asked: u64) -> bool {
    textbook::call(connection, key, terms, &caller_s(us), asked)
}

/// How many of `times` the textbook lets pass.
fn textbook_passes(connection: &mut Connection, key: &str, terms: (&str, u64), us: u64, times: u32) -> u32 {
    (0..times).map(|_| u32::from(textbook(connection, key, terms, us, 1))).sum()
}

const TEN_A_MINUTE: (&str, u64) = ("0.16666666666666666", 10);
const MINUTE_US: u64 = 60_000_000;

#[tokio::test]
async fn callers_with_two_clocks_refill_for_each_other() {
    let server = Clocked::start();
    let mut connection = server.connection();
    let mut passed = 0;
    for _ in 0..10 {
        passed += textbook_passes(&mut connection, "k", TEN_A_MINUTE, 2 * MINUTE_US, 10);
        assert!(!textbook(&mut connection, "k", TEN_A_MINUTE, 0, 1), "the slow clock's caller is denied");
    }
    assert_eq!(passed, 100);

    let (fast, slow) = (patient(&server.url()), patient(&server.url()));
    let mut passed = 0;
    for _ in 0..10 {
        passed += passes(&fast, charge("10/min", b"k"), 10).await;
        passed += passes(&slow, charge("10/min", b"k"), 1).await;
    }
    assert_eq!(passed, 10);
}

#[tokio::test]
async fn a_denied_first_call_leaves_a_key_for_ever() {
    let server = Clocked::start();
    let mut connection = server.connection();
    assert!(!textbook(&mut connection, "k", TEN_A_MINUTE, 0, 11));
    assert_eq!(kept(&mut connection), [(b"k".to_vec(), -1)]);

    answer(&mut connection, &cmd("FLUSHALL"));
    let store = patient(&server.url());
    assert!(ask(&store, of_cost(charge("10/min", b"k"), 11)).await.unwrap().is_never());
    assert_eq!(kept(&mut connection), []);
    // What is denied for now writes no key of its own either.
    let (full, spent) = (charge_under("a", quota("10/min"), b"k"), charge_under("b", quota("1/min"), b"k"));
    assert_eq!(passes(&store, spent, 1).await, 1);
    let mut decisions = [tidegate_core::Decision::unmade(&full.quota); 2];
    let verdict = tidegate_core::Store::decide(&store, &[full, spent], &mut decisions).await.unwrap();
    assert!(!verdict.allowed);
    let keys = kept(&mut connection);
    assert!(keys.len() == 1 && (1..=60_002).contains(&keys[0].1), "{keys:?}");
}

#[tokio::test]
async fn a_changed_limit_takes_tokens_or_gives_them() {
    let server = Clocked::start();
    let mut connection = server.connection();
    let store = patient(&server.url());
    // Before, how many were taken, then after which time, and how many pass of 60: of the textbook, and of ours.
    let minute = ("0.016666666666666666", 60);
    for (name, before, taken, after, us, theirs, ours) in [
        ("lowered", (TEN_A_MINUTE, "10/min"), 3, (("0.16666666666666666", 5), "10/min burst 5"), 0, 5, 2),
        ("raised", (TEN_A_MINUTE, "10/min"), 10, (("0.16666666666666666", 20), "10/min burst 20"), 0, 0, 10),
        ("faster", (minute, "1/min burst 60"), 60, (("1", 60), "60/min"), MINUTE_US, 60, 1),
        ("slower", (("1", 60), "60/min"), 60, (minute, "1/min burst 60"), MINUTE_US, 1, 60),
    ] {
        server.set_us(0);
        assert_eq!(textbook_passes(&mut connection, name, before.0, 0, taken), taken, "{name}");
        assert_eq!(passes(&store, charge(before.1, name.as_bytes()), taken as usize).await, taken as usize, "{name}");
        server.set_us(us);
        assert_eq!(textbook_passes(&mut connection, name, after.0, us, 60), theirs, "{name}, the textbook");
        assert_eq!(passes(&store, charge(after.1, name.as_bytes()), 60).await, ours, "{name}, ours");
    }
}

#[tokio::test]
async fn tokens_come_late_or_in_lumps() {
    let server = Clocked::start();
    let mut connection = server.connection();
    let store = patient(&server.url());
    // Emptied, and then asked for one every second: six times a sixth is a little less than one.
    assert_eq!(textbook_passes(&mut connection, "late", TEN_A_MINUTE, 0, 10), 10);
    assert_eq!(passes(&store, charge("10/min", b"late"), 10).await, 10);
    let (mut theirs, mut ours) = (Vec::new(), Vec::new());
    for second in 1..=30 {
        server.set_us(second * 1_000_000);
        if textbook(&mut connection, "late", TEN_A_MINUTE, second * 1_000_000, 1) {
            theirs.push(second);
        }
        if ask(&store, charge("10/min", b"late")).await.unwrap().is_allowed() {
            ours.push(second);
        }
    }
    assert_eq!((theirs, ours), (vec![7, 13, 19, 25], vec![6, 12, 18, 24, 30]));

    // A caller that sends whole seconds asks a millisecond before a second is full, and when it is.
    let (mut theirs, mut ours) = (0, 0);
    for (us, sent_us) in [(999_000, 0), (1_000_000, 1_000_000)] {
        server.set_us(us);
        theirs += textbook_passes(&mut connection, "lump", ("100", 100), sent_us, 100);
        ours += passes(&store, charge("100/s", b"lump"), 100).await;
    }
    assert_eq!((theirs, ours), (200, 100));
}

#[tokio::test]
async fn a_denial_does_not_say_when_to_come_back() {
    let server = Clocked::start();
    let mut connection = server.connection();
    let mut ask_textbook = |asked: u64| {
        let mut call = cmd("EVAL");
        call.arg(textbook::script()).arg(1).arg("k").arg("0.16666666666666666").arg(10).arg(caller_s(0)).arg(asked);
        answer(&mut connection, &call)
    };
    assert_eq!(ask_textbook(10), Value::Int(1));
    assert_eq!(ask_textbook(1), Value::Int(0), "six seconds would help");
    assert_eq!(ask_textbook(11), Value::Int(0), "nothing will ever help");

    let store = patient(&server.url());
    let one = charge("10/min", b"k");
    assert!(ask(&store, of_cost(one, 10)).await.unwrap().is_allowed());
    let wait = ask(&store, one).await.unwrap().retry_after().unwrap();
    assert_eq!(wait.as_micros(), 6_000_000);
    assert_eq!(ask(&store, of_cost(one, 11)).await.unwrap().outcome(), Outcome::Never);
    server.set_us(5_999_999);
    assert!(!ask(&store, one).await.unwrap().is_allowed());
    server.set_us(6_000_000);
    assert!(ask(&store, one).await.unwrap().is_allowed());
}

#[tokio::test]
async fn a_denial_is_a_write() {
    let server = Clocked::start();
    let mut connection = server.connection();
    let store = patient(&server.url());
    assert!(textbook(&mut connection, "k", TEN_A_MINUTE, 0, 10));
    assert!(ask(&store, of_cost(charge("10/min", b"k"), 10)).await.unwrap().is_allowed());
    let before = changes(&mut connection);
    assert_eq!(textbook_passes(&mut connection, "k", TEN_A_MINUTE, 0, 100), 0);
    let between = changes(&mut connection);
    assert!(between >= before + 100, "{before} and then {between}");
    assert_eq!(passes(&store, charge("10/min", b"k"), 100).await, 0);
    assert_eq!(changes(&mut connection), between);
    assert_eq!(left(&store, charge("10/min", b"k")).await, 0);
}

/// The changes that the server counts.
fn changes(connection: &mut Connection) -> u64 {
    let Value::BulkString(info) = answer(connection, cmd("INFO").arg("persistence")) else { panic!("a text") };
    let info = String::from_utf8(info).unwrap();
    let line = info.lines().find_map(|line| line.strip_prefix("rdb_changes_since_last_save:")).unwrap();
    line.parse().unwrap()
}

#[test]
fn the_page_names_the_tests_that_show_what_it_says() {
    let here = [include_str!("textbook.rs"), include_str!("../law/apart.rs"), include_str!("../law/main.rs")];
    let named: Vec<_> = textbook::page().lines().filter_map(|line| line.strip_prefix("Test: `")).collect();
    assert_eq!(named.len(), textbook::page().matches("\n## ").count(), "one for each fault");
    for name in named {
        let name = name.split('`').next().unwrap();
        assert!(here.iter().any(|tests| tests.contains(&format!("fn {name}("))), "{name}");
    }
}

/// The rates above are those of the limits beside them.
#[test]
fn the_terms_of_both_are_the_same() {
    let per_s = |quota: Quota| quota.rate().count() as f64 / quota.rate().period().as_secs_f64();
    assert_eq!(per_s(quota("10/min")), TEN_A_MINUTE.0.parse().unwrap());
    assert_eq!(per_s(quota("1/min")), "0.016666666666666666".parse().unwrap());
}
