//! Decisions over HTTP, beside this server's own bare page and beside the published server of throttlecrab.
//!
//! ```text
//! cargo install throttlecrab-server --version 0.4.40 --locked --root target/peers    # else it is left out
//! cargo bench -p tidegate-cli --bench http     # a minute
//! ```
//!
//! One thread asks all of them with 50 connections, in rounds that take turns, each over 100,000 keys. Every answer is
//! read to its end. What counts are the ratios: of the calls a second, and of the processor time for each.

mod asker;
#[path = "../proxy/process.rs"]
#[allow(dead_code, reason = "the proxy's bench uses the rest")]
mod process;

use std::io;
use std::path::Path;
use std::process::Command;

use self::asker::{Call, ask};
use self::process::{Server, free_address};

const ROUNDS: usize = 7;
const CALLS: u32 = 200_000;
const PEER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/peers/bin/throttlecrab-server");

/// The targets: calls a second as a share of the bare page's, and as a multiple of the peer's.
const OF_HEALTH_MIN: f64 = 0.85;
const OF_PEER_MIN: f64 = 1.15;

/// Whom and what is asked.
struct Contestant {
    name: &'static str,
    server: usize,
    call: Call,
    costs: Vec<Cost>,
}

/// Of one round.
#[derive(Clone, Copy, Debug)]
struct Cost {
    calls_a_second: f64,
    processor_us: f64,
}

fn main() -> io::Result<()> {
    let mut servers = vec![tidegate()?];
    let check = r#"{"charges":[{"limit":"30/min burst 15","key":"key-00000000"}]}"#;
    let mut contestants = vec![
        Contestant::new("tidegate GET /health", 0, Call::get("/health")),
        Contestant::new("tidegate POST /v1/check", 0, Call::post("/v1/check", check)),
    ];
    match Path::new(PEER).exists() {
        true => {
            servers.push(throttlecrab()?);
            let body = r#"{"key":"key-00000000","max_burst":15,"count_per_period":30,"period":60,"quantity":1}"#;
            contestants.push(Contestant::new("throttlecrab POST /throttle", 1, Call::post("/throttle", body)));
        }
        false => println!("{PEER} is not there, so it is left out; the head of this file says how it is installed"),
    }
    for _ in 0..ROUNDS {
        for contestant in &mut contestants {
            contestant.round(&servers[contestant.server])?;
        }
    }
    let costs: Vec<_> = contestants.iter().map(Contestant::median).collect();
    for (contestant, cost) in contestants.iter().zip(&costs) {
        let Cost { calls_a_second, processor_us } = cost;
        println!(
            "{:<28} {calls_a_second:>9.0} a second, {processor_us:>6.2} us of processor time a call",
            contestant.name
        );
    }
    compared("of the bare page", &costs[1], &costs[0], OF_HEALTH_MIN);
    costs.get(2).into_iter().for_each(|peer| compared("of throttlecrab", &costs[1], peer, OF_PEER_MIN));
    Ok(())
}

fn compared(with: &str, ours: &Cost, theirs: &Cost, least: f64) {
    let rate = ours.calls_a_second / theirs.calls_a_second;
    let time = theirs.processor_us / ours.processor_us;
    let met = if rate >= least { "met" } else { "missed" };
    println!("{rate:.2} {with} in calls a second, {time:.2} in processor time; at least {least}: {met}");
}

impl Contestant {
    fn new(name: &'static str, server: usize, call: Call) -> Self {
        Self { name, server, call, costs: Vec::new() }
    }

    fn round(&mut self, server: &Server) -> io::Result<()> {
        let before = server.processor_time()?;
        let calls_a_second = ask(server.address, &self.call, CALLS)?;
        let spent = server.processor_time()?.saturating_sub(before);
        self.costs.push(Cost { calls_a_second, processor_us: spent.as_secs_f64() * 1e6 / f64::from(CALLS) });
        Ok(())
    }

    /// The round in the middle, by its rate and by its time.
    fn median(&self) -> Cost {
        let middle = |of: fn(&Cost) -> f64| {
            let mut all: Vec<_> = self.costs.iter().map(of).collect();
            all.sort_by(f64::total_cmp);
            all.get(all.len() / 2).copied().unwrap_or(f64::NAN)
        };
        Cost { calls_a_second: middle(|cost| cost.calls_a_second), processor_us: middle(|cost| cost.processor_us) }
    }
}

fn tidegate() -> io::Result<Server> {
    let address = free_address()?;
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    command.args(["serve", "--http", &address.to_string(), "--grpc", "off", "--resp", "off", "--admin", "off"]);
    Server::start(command, address)
}

fn throttlecrab() -> io::Result<Server> {
    let address = free_address()?;
    let mut command = Command::new(PEER);
    command.args(["--http", "--http-host", "127.0.0.1", "--http-port", &address.port().to_string()]);
    Server::start(command, address)
}
