//! How late decisions are, and how soon the store is asked again, whatever happens to it: the scenarios of the tests, with
//! the deadline that ships and for longer.
//!
//! A machine that is shared with others is late by itself. Beside the decisions a timer of as many milliseconds as the
//! deadline says how late this one was in the same run.

#[path = "../tests/shared/callers.rs"]
mod callers;
#[path = "../../redis/tests/given/mod.rs"]
mod given;
#[path = "../../redis/src/tests/nodes.rs"]
#[allow(dead_code, reason = "each of the programs uses its part")]
mod nodes;
#[path = "../tests/shared/scenarios/mod.rs"]
mod scenarios;
#[path = "../tests/shared/seen.rs"]
#[allow(dead_code, reason = "the tests assert, and the benchmark measures")]
mod seen;
#[path = "../../redis/src/tests/sentinel.rs"]
mod sentinel;
#[path = "../../redis/src/tests/server.rs"]
#[allow(dead_code, reason = "each of the programs uses its part")]
mod server;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use scenarios::{Report, Setting};

const DEADLINE: Duration = Duration::from_millis(10);
/// What is promised for 999 of 1,000 decisions.
const IN_TIME: Duration = Duration::from_millis(15);
const RECOVERED: Duration = Duration::from_secs(2);
const SETTING: Setting = Setting { deadline: DEADLINE, calm: Duration::from_secs(2), outage: Duration::from_secs(3) };

const SCENARIOS: &[fn(&Setting) -> Report] = &[
    scenarios::killed,
    scenarios::flushed_scripts,
    scenarios::out_of_memory,
    scenarios::became_a_replica,
    scenarios::blackholed,
    scenarios::delayed,
    scenarios::refused,
    scenarios::failed_over,
    scenarios::failed_over_in_a_cluster,
    scenarios::moved_slots,
];

fn main() {
    println!("decisions with a deadline of {DEADLINE:?}, in milliseconds; outages of {:?}", SETTING.outage);
    println!(
        "{:38} {:>9} {:>8} {:>8} {:>8} {:>9}  {:>8}",
        "", "decisions", "99.9 %", "timer's", "slowest", "recovery", "too many"
    );
    for scenario in SCENARIOS {
        let timer = Timer::start();
        let report = scenario(&SETTING);
        print(&report, &timer.end());
    }
}

fn print(report: &Report, timer: &[Duration]) {
    let latencies = report.seen.latencies();
    let (late, slowest) = (permille_999(&latencies), latencies[latencies.len() - 1]);
    let is_met = late <= IN_TIME && report.recovery.unwrap_or_default() <= RECOVERED;
    println!(
        "{:38} {:>9} {:>8.2} {:>8.2} {:>8.2} {:>9}  {:>8}  {}",
        report.name,
        latencies.len(),
        ms(late),
        ms(permille_999(timer)),
        ms(slowest),
        report.recovery.map_or("never away".to_owned(), |recovery| format!("{:.0}", ms(recovery))),
        format!("{} of {}", report.seen.excess(), report.losses * given::quota(callers::LIMIT).burst()),
        if is_met { "met" } else { "missed" },
    );
}

/// What 999 of 1,000 do not exceed.
fn permille_999(sorted: &[Duration]) -> Duration {
    sorted[(sorted.len() * 999 / 1_000).min(sorted.len() - 1)]
}

fn ms(span: Duration) -> f64 {
    span.as_secs_f64() * 1_000.0
}

/// A thread that sleeps as long as the deadline, again and again, on the same runtime's timer as the callers.
struct Timer {
    has_ended: Arc<AtomicBool>,
    thread: thread::JoinHandle<Vec<Duration>>,
}

impl Timer {
    fn start() -> Self {
        let has_ended = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&has_ended);
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
            runtime.block_on(async {
                let mut sleeps = Vec::new();
                while !ended.load(Ordering::SeqCst) {
                    let start = Instant::now();
                    tokio::time::sleep(DEADLINE).await;
                    sleeps.push(start.elapsed());
                }
                sleeps
            })
        });
        Self { has_ended, thread }
    }

    /// How long each sleep took, in order.
    fn end(self) -> Vec<Duration> {
        self.has_ended.store(true, Ordering::SeqCst);
        let mut sleeps = self.thread.join().unwrap();
        sleeps.sort_unstable();
        sleeps
    }
}
