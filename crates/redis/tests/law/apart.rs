//! Processes whose clocks are minutes apart.

use std::time::Duration;

use crate::given::law;
use crate::processes::{Knocking, Run};
use crate::server::{Kind, Server};
use crate::{ONE_KEY, assert_one_key_is_exact};

/// How far ahead the clock of each process is, in minutes.
const AHEAD_MIN: [i64; 8] = [0, 7, -5, 3, -11, 2, -2, 30];

fn apart(how: &'static str, seconds: u64) -> Run {
    let run = Knocking { how, seconds, ..ONE_KEY }.apart(&Server::start(Kind::Redis7).url(), AHEAD_MIN);
    let (least, most) = (run.clocks_ns.iter().min().unwrap(), run.clocks_ns.iter().max().unwrap());
    assert!(Duration::from_nanos(most - least) > Duration::from_secs(40 * 60), "their clocks are apart");
    run
}

#[test]
fn callers_minutes_apart_break_the_textbook_and_not_the_store() {
    assert_one_key_is_exact(&apart("store", ONE_KEY.seconds));
    let run = apart("textbook", 1);
    let excess = law::excess(&run.quota, &run.keys[0].passed_ns);
    println!("of the textbook's calls {} passed, {excess} too many in one window", run.keys[0].passed_ns.len());
    assert!(excess > 500, "only {excess} too many: the test would not see the fault");
}
