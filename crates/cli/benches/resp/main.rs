//! Decisions over the Redis protocol, beside Redis itself answering PING.
//!
//! ```text
//! cargo bench -p tidegate-cli --bench resp     # a minute
//! ```
//!
//! redis-benchmark asks both with 50 connections, in rounds that take turns: one call at a time, 16 in a pipeline, and
//! 256. `CL.THROTTLE` goes over 100,000 keys. What counts is the ratio: of the processor time for each call where calls
//! come alone, since the load generator takes most of the machine then, and of the calls a second where they come in
//! pipelines.

#[path = "../proxy/process.rs"]
#[allow(dead_code, reason = "the proxy's bench uses the rest")]
mod process;

use std::io;
use std::net::SocketAddr;
use std::process::Command;

use self::process::{Server, free_address, version};

const ROUNDS: usize = 5;
const CONNECTIONS: &str = "50";
const KEYS: &str = "100000";
/// How deep pipelines are, and how many calls a round has.
const DEPTHS: [(u32, u32); 3] = [(1, 100_000), (16, 600_000), (256, 1_000_000)];

/// The targets: processor time for each call, and calls a second in pipelines of 16.
const TIME_MAX: f64 = 1.1;
const RATE_MIN: f64 = 0.5;

/// Of one round.
#[derive(Clone, Copy, Debug)]
struct Cost {
    calls_a_second: f64,
    processor_us: f64,
}

fn main() -> io::Result<()> {
    let Some(redis_version) = version("redis-server", "--version") else {
        println!("redis-server is not installed, so there is nothing to compare with: benches/install installs it");
        return Ok(());
    };
    let (redis, tidegate) = (redis()?, tidegate()?);
    println!("Redis {redis_version} PING and tidegate CL.THROTTLE, {CONNECTIONS} connections, {ROUNDS} rounds each");
    for (depth, calls) in DEPTHS {
        let (mut theirs, mut ours) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            theirs.push(round(&redis, depth, calls, &["PING"])?);
            ours.push(round(&tidegate, depth, calls, &["CL.THROTTLE", "key:__rand_int__", "15", "30", "60"])?);
        }
        let (theirs, ours) = (median(theirs), median(ours));
        let time = ours.processor_us / theirs.processor_us;
        let rate = ours.calls_a_second / theirs.calls_a_second;
        println!(
            "{depth:>3} deep: {:>9.0} and {:>9.0} a second, {rate:.2}; {:.2} and {:.2} us of processor time a call, {time:.2}",
            theirs.calls_a_second, ours.calls_a_second, theirs.processor_us, ours.processor_us
        );
        match depth {
            1 => println!("          processor time at most {TIME_MAX}: {}", met(time <= TIME_MAX)),
            16 => println!("          calls a second at least {RATE_MIN}: {}", met(rate >= RATE_MIN)),
            _ => {}
        }
    }
    Ok(())
}

fn redis() -> io::Result<Server> {
    let address = free_address()?;
    let mut command = Command::new("redis-server");
    command.args(["--port", &address.port().to_string(), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]);
    Server::start(command, address)
}

fn tidegate() -> io::Result<Server> {
    let address = free_address()?;
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    command.args([
        "serve",
        "--http",
        "off",
        "--grpc",
        "off",
        "--resp",
        &address.to_string(),
        "--admin",
        "off",
        "--workers",
        "1",
    ]);
    Server::start(command, address)
}

fn round(server: &Server, depth: u32, calls: u32, words: &[&str]) -> io::Result<Cost> {
    let before = server.processor_time()?;
    let calls_a_second = load(server.address, depth, calls, words)?;
    let spent = server.processor_time()?.saturating_sub(before);
    Ok(Cost { calls_a_second, processor_us: spent.as_secs_f64() * 1e6 / f64::from(calls) })
}

/// The calls a second that redis-benchmark got through.
fn load(address: SocketAddr, depth: u32, calls: u32, words: &[&str]) -> io::Result<f64> {
    let mut command = Command::new("redis-benchmark");
    command.args(["-h", "127.0.0.1", "-p", &address.port().to_string(), "-c", CONNECTIONS, "-r", KEYS, "--csv"]);
    command.args(["-P", &depth.to_string(), "-n", &calls.to_string()]).args(words);
    let output = command.output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    // The last line has the name and then the rate, each in quotes.
    let rate = text.lines().last().and_then(|line| line.split("\",\"").nth(1)?.parse().ok());
    rate.ok_or_else(|| io::Error::other(format!("{command:?} printed {text}")))
}

/// The round in the middle, by its rate and by its time.
fn median(rounds: Vec<Cost>) -> Cost {
    let middle = |of: fn(&Cost) -> f64| {
        let mut all: Vec<_> = rounds.iter().map(of).collect();
        all.sort_by(f64::total_cmp);
        all.get(all.len() / 2).copied().unwrap_or(f64::NAN)
    };
    let processor_us = middle(|cost| cost.processor_us);
    Cost { calls_a_second: middle(|cost| cost.calls_a_second), processor_us }
}

const fn met(is_met: bool) -> &'static str {
    if is_met { "met" } else { "missed" }
}
