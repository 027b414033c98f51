//! Calls of Envoy's rate limit service, beside the gRPC calls of throttlecrab's server.
//!
//! ```text
//! cargo install throttlecrab-server --version 0.4.40 --locked --root target/peers    # it needs protoc
//! cargo bench -p tidegate-cli --bench grpc     # a minute
//! ```
//!
//! h2load calls both over the same number of connections, in rounds that take turns. Each call is charged to one key
//! under a limit that nobody reaches. What counts is the ratio: of the processor time for each call, and of the time that
//! 99 of 100 calls stay below.

#[path = "../proxy/process.rs"]
#[allow(dead_code, reason = "the proxy's bench uses the rest")]
mod process;

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::process::Command;

use tempfile::TempDir;

use self::process::{Server, free_address, version};

const ROUNDS: usize = 5;
const CONNECTIONS: &str = "50";
const CALLS: u32 = 100_000;
const PEER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/peers/bin/throttlecrab-server");

/// The targets: processor time for each call, and the time of the slow ones.
const TIME_MAX: f64 = 1.0;
const SLOW_MAX: f64 = 1.0;

const RULES: &str =
    "domain: bench\ndescriptors:\n  - {key: user, rate_limit: {unit: second, requests_per_unit: 1000000}}\n";

/// What is called, and with which message.
struct Call {
    path: &'static str,
    message: &'static [u8],
}

/// Domain `bench`, one descriptor of one entry.
const OURS: Call = Call {
    path: "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit",
    message: b"\x0a\x05bench\x12\x11\x0a\x0f\x0a\x04user\x12\x07user-42",
};

/// Key, burst, count and period, quantity 1.
const THEIRS: Call = Call {
    path: "/throttlecrab.RateLimiter/Throttle",
    message: b"\x0a\x07user-42\x10\xc0\x84\x3d\x18\xc0\x84\x3d\x20\x01\x28\x01",
};

/// Of one round.
#[derive(Clone, Copy, Debug)]
struct Cost {
    processor_us: f64,
    slow_us: f64,
    calls_a_second: f64,
}

fn main() -> io::Result<()> {
    let (Some(load), Some(peer)) = (version("h2load", "--version"), version(PEER, "--version")) else {
        println!(
            "h2load (package nghttp2-client) or throttlecrab-server is not installed; the head of this bench says how"
        );
        return Ok(());
    };
    println!("{peer} and tidegate, {load}, {CONNECTIONS} connections, {ROUNDS} rounds of {CALLS} calls each");
    let folder = TempDir::new()?;
    let (throttlecrab, tidegate) = (throttlecrab()?, tidegate(&folder)?);
    let (mut theirs, mut ours) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        theirs.push(round(&throttlecrab, &THEIRS, &folder)?);
        ours.push(round(&tidegate, &OURS, &folder)?);
    }
    let (theirs, ours) = (median(&theirs), median(&ours));
    for (name, Cost { processor_us, slow_us, calls_a_second }) in [("throttlecrab", theirs), ("tidegate", ours)] {
        println!(
            "{name:<13} {processor_us:>6.2} us of processor time a call, p99 {slow_us:>6.0} us, {calls_a_second:>7.0} a second"
        );
    }
    let (time, slow) = (ours.processor_us / theirs.processor_us, ours.slow_us / theirs.slow_us);
    println!("processor time {time:.2}, at most {TIME_MAX}: {}", met(time <= TIME_MAX));
    println!("p99            {slow:.2}, at most {SLOW_MAX}: {}", met(slow <= SLOW_MAX));
    Ok(())
}

fn throttlecrab() -> io::Result<Server> {
    let address = free_address()?;
    let mut command = Command::new(PEER);
    command.args(["--grpc", "--grpc-host", "127.0.0.1", "--grpc-port", &address.port().to_string()]);
    command.args(["--log-level", "error"]);
    Server::start(command, address)
}

fn tidegate(folder: &TempDir) -> io::Result<Server> {
    let (address, rules) = (free_address()?, folder.path().join("rules.yaml"));
    fs::write(&rules, RULES)?;
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    command.args(["serve", "--http", "off", "--resp", "off", "--admin", "off", "--grpc", &address.to_string()]);
    command.arg("--ratelimit-config").arg(rules).args(["--ratelimit-algorithm", "token-bucket"]);
    Server::start(command, address)
}

fn round(server: &Server, call: &Call, folder: &TempDir) -> io::Result<Cost> {
    let before = server.processor_time()?;
    let (calls_a_second, slow_us) = load(server.address, call, folder)?;
    let spent = server.processor_time()?.saturating_sub(before);
    Ok(Cost { processor_us: spent.as_secs_f64() * 1e6 / f64::from(CALLS), slow_us, calls_a_second })
}

/// The calls a second that h2load got through, and the time in microseconds that 99 of 100 stayed below.
fn load(address: SocketAddr, call: &Call, folder: &TempDir) -> io::Result<(f64, f64)> {
    let (body, log) = (folder.path().join("call"), folder.path().join("log"));
    let length = u32::try_from(call.message.len()).map_err(io::Error::other)?;
    fs::write(&body, [&[0][..], &length.to_be_bytes(), call.message].concat())?;
    // It adds to a log that is there.
    let _ = fs::remove_file(&log);
    let mut command = Command::new("h2load");
    command.args(["-n", &CALLS.to_string(), "-c", CONNECTIONS, "-m", "1", "-t", "1"]);
    command.args(["-H", "content-type: application/grpc", "-H", "te: trailers"]);
    command.arg("-d").arg(&body).arg(format!("--log-file={}", log.display()));
    let output = command.arg(format!("http://{address}{}", call.path)).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let finished = text.lines().find_map(|line| line.strip_prefix("finished in "));
    let rate = finished.and_then(|line| line.split(", ").nth(1)?.strip_suffix(" req/s")?.parse().ok());
    let rate = rate.filter(|_| text.contains(&format!("{CALLS} succeeded, 0 failed, 0 errored")));
    let rate = rate.ok_or_else(|| io::Error::other(format!("{command:?} printed {text}")))?;
    // Each line has the start, the status and the time.
    let log = fs::read_to_string(log)?;
    let mut times: Vec<f64> = log.lines().filter_map(|line| line.split('\t').nth(2)?.parse().ok()).collect();
    times.sort_by(f64::total_cmp);
    Ok((rate, times.get(times.len() * 99 / 100).copied().unwrap_or(f64::NAN)))
}

/// The round in the middle, by each of its numbers.
fn median(rounds: &[Cost]) -> Cost {
    let middle = |of: fn(&Cost) -> f64| {
        let mut all: Vec<_> = rounds.iter().map(of).collect();
        all.sort_by(f64::total_cmp);
        all.get(all.len() / 2).copied().unwrap_or(f64::NAN)
    };
    Cost {
        processor_us: middle(|cost| cost.processor_us),
        slow_us: middle(|cost| cost.slow_us),
        calls_a_second: middle(|cost| cost.calls_a_second),
    }
}

const fn met(is_met: bool) -> &'static str {
    if is_met { "met" } else { "missed" }
}
