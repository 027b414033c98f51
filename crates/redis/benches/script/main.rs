//! What a decision costs the server: its processor time, ours and the textbook script's, on the same server in the same
//! run.
//!
//! ```text
//! cargo bench -p tidegate-redis --bench script [-- redis7 redis8 valkey9]
//! ```
//!
//! Fifty connections send sixteen calls at a time. The calls are ours as a store sends them, recorded on their way to
//! the server (`record.rs`), so nothing is measured that is not sent. Processor time is the server's own account of it;
//! the ratios are medians over rounds in which the contestants take turns.

#[path = "../../src/tests/server.rs"]
#[allow(dead_code, reason = "a part is used")]
mod server;

mod calls;
mod drive;
mod record;
mod reply;

use std::time::Duration;

use crate::calls::{Contestant, contestants};
use crate::drive::Driver;
use crate::server::{Kind, Server};

/// Rounds of all contestants.
const ROUNDS: usize = 9;
/// How long one contestant drives the server in one round.
const TURN: Duration = Duration::from_millis(600);

fn main() {
    let named: Vec<String> = std::env::args().skip(1).filter(|name| !name.starts_with('-')).collect();
    for kind in Kind::ALL {
        let name = format!("{kind:?}").to_lowercase();
        if named.is_empty() || named.contains(&name) {
            measure(kind);
        }
    }
}

fn measure(kind: Kind) {
    let server = Server::start(kind);
    let contestants = contestants(&server);
    let driver = Driver::new(&server);
    for one in &contestants {
        driver.turn(one, TURN / 4);
    }
    let mut figures = vec![Vec::new(); contestants.len()];
    for round in 0..ROUNDS {
        for i in 0..contestants.len() {
            // Another order in each round.
            let i = (i + round) % contestants.len();
            figures[i].push(driver.turn(&contestants[i], TURN));
        }
    }
    report(kind, &contestants, &figures);
}

/// Microseconds of the server's processor time for each decision, and the ratio to the textbook script.
fn report(kind: Kind, contestants: &[Contestant], figures: &[Vec<f64>]) {
    let textbook = contestants.iter().position(|one| one.name == "textbook hash script").expect("it takes part");
    println!("{kind:?}: processor time of the server, median of {ROUNDS} rounds");
    for (one, rounds) in contestants.iter().zip(figures) {
        let ratio = median(rounds.iter().zip(&figures[textbook]).map(|(ours, theirs)| ours / theirs));
        let us = median(rounds.iter().copied());
        println!("  {:<44} {us:6.2} us a decision   {ratio:5.2} of the textbook", one.name);
    }
    let one = position(contestants, "ours, one limit");
    let three = position(contestants, "ours, three limits of one key");
    let ratio = median(figures[three].iter().zip(&figures[one]).map(|(three, one)| three / one));
    println!("  three limits of one key cost {ratio:.2} of one");
}

fn position(contestants: &[Contestant], name: &str) -> usize {
    contestants.iter().position(|one| one.name == name).expect("it takes part")
}

fn median(figures: impl Iterator<Item = f64>) -> f64 {
    let mut figures: Vec<_> = figures.collect();
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}
