//! The proxy beside nginx: the same load, the same upstream, the same run.
//!
//! ```text
//! benches/install                 # nginx, and HAProxy for orientation
//! cargo bench -p tidegate-cli --bench proxy     # less than five minutes
//! ```
//!
//! Contestants take turns in rounds, and the order is turned with each round, so that a machine which gets slower for
//! a while slows all of them. What counts are ratios between neighbours of one round, and of these the median. A tail
//! of latencies is what a disturbance spoils first, so there the rounds that were disturbed least are compared.

mod client;
mod contestants;
mod process;

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustls::ClientConfig;

use client::{CONNECTIONS, Callers, Door, KEYS, Tally, closed_loop, open_loop};
use contestants::{
    Folder, HAPROXY, NGINX, Strictness, Wire, haproxy_limiting, nginx_limiting, tidegate, tidegate_by_file,
    tidegate_unlimited,
};
use process::{Server, version};

/// Rounds in which everything is allowed, and in which nearly everything is denied.
const ROUNDS: usize = 11;
const ROUND: Duration = Duration::from_millis(1_000);
/// Rounds at half load. They are short, so that on a shared machine a good part of them is not disturbed.
const OPEN_ROUNDS: usize = 31;
const OPEN_ROUND: Duration = Duration::from_millis(400);
/// A load in which less than this share is denied, or allowed, is not the load that is meant.
const SHARE_MIN: f64 = 0.9;

/// The targets.
const PROCESSOR_TIME_MAX: f64 = 1.1;
const BY_FILE_MAX: f64 = 1.15;
const OVER_TLS_MAX: f64 = 1.15;
const DENYING_RATE_MIN: f64 = 0.95;
const LIMITING_MAX: f64 = 1.03;
const P99_MAX: f64 = 1.0;

fn main() -> io::Result<()> {
    let Some(nginx_version) = version(NGINX, "-v") else {
        eprintln!("nginx is not installed; run benches/install first");
        std::process::exit(1);
    };
    let haproxy_version = Path::new(HAPROXY).exists().then(|| version(HAPROXY, "-v")).flatten();
    println!(
        "tidegate {}, nginx {nginx_version}, HAProxy {}; one worker each, {KEYS} keys, {CONNECTIONS} connections",
        env!("CARGO_PKG_VERSION"),
        haproxy_version.as_deref().unwrap_or("not installed"),
    );
    let folder = Folder::new()?;
    let upstream = contestants::upstream(&folder)?;
    let field = Field { folder: &folder, upstream: &upstream, haproxy: haproxy_version.is_some() };
    let (half_load, mut verdicts) = allowing(&field)?;
    verdicts.extend(denying(&field)?);
    verdicts.push(over_tls(&field)?);
    verdicts.push(at_half_load(&field, half_load)?);
    println!("\n{:<52} {:>6}   target", "", "ratio");
    verdicts.iter().for_each(Verdict::print);
    Ok(())
}

/// What the contestants have in common.
struct Field<'a> {
    folder: &'a Folder,
    upstream: &'a Server,
    haproxy: bool,
}

impl Field<'_> {
    /// nginx first and we second, each with this limit; then HAProxy, if it is there.
    fn contestants(&self, strictness: Strictness) -> io::Result<Vec<Contestant>> {
        let (folder, upstream) = (self.folder, self.upstream.address);
        let mut all = vec![
            Contestant::new("nginx limit_req", nginx_limiting(folder, upstream, Wire::Plain, strictness)?),
            Contestant::new("tidegate", tidegate(folder, upstream, Wire::Plain, strictness)?),
        ];
        if self.haproxy {
            all.push(Contestant::new("HAProxy stick table", haproxy_limiting(folder, upstream, strictness)?));
        }
        Ok(all)
    }
}

const NGINX_PLACE: usize = 0;
const OURS_PLACE: usize = 1;

struct Contestant {
    name: &'static str,
    server: Server,
    door: Door,
    rounds: Vec<Round>,
}

/// What one round showed.
#[derive(Clone, Copy)]
struct Round {
    tally: Tally,
    processor_us: f64,
}

impl Contestant {
    fn new(name: &'static str, server: Server) -> Self {
        let door = Door { address: server.address, tls: None };
        Self { name, server, door, rounds: Vec::new() }
    }

    /// The same, where callers connect over TLS.
    fn over(self, tls: &Arc<ClientConfig>) -> Self {
        let door = Door { tls: Some(Arc::clone(tls)), ..self.door };
        Self { door, ..self }
    }

    fn run(&mut self, span: Duration) -> io::Result<()> {
        let before = self.server.processor_time()?;
        let tally = closed_loop(&self.door, Callers::random(), |_, elapsed| elapsed >= span)?;
        let taken = self.server.processor_time()? - before;
        let processor_us = taken.as_secs_f64() * 1e6 / tally.requests() as f64;
        self.rounds.push(Round { tally, processor_us });
        Ok(())
    }

    /// Lets each key come by once.
    fn meet_all_keys(&self) -> io::Result<()> {
        closed_loop(&self.door, Callers::InTurn(0), |requests, _| requests >= u64::from(KEYS)).map(drop)
    }

    fn median(&self, number: impl Fn(&Round) -> f64) -> f64 {
        median(self.rounds.iter().map(number).collect())
    }

    /// The median of the ratios to another one's rounds.
    fn ratio(&self, other: &Self, number: impl Fn(&Round) -> f64) -> f64 {
        median(self.rounds.iter().zip(&other.rounds).map(|(ours, theirs)| number(ours) / number(theirs)).collect())
    }
}

/// Lets all take turns, and prints what came of it.
fn compete(title: &str, all: &mut [Contestant], denied_share: impl Fn(f64) -> bool) -> io::Result<()> {
    for contestant in all.iter() {
        contestant.meet_all_keys()?;
    }
    for round in 0..ROUNDS {
        for turn in 0..all.len() {
            all[(round + turn) % all.len()].run(ROUND)?;
        }
    }
    println!("\n{title:<32} {:>12} {:>26} {:>8}", "requests/s", "processor us per request", "denied");
    for one in all.iter() {
        let denied = one.median(|round| round.tally.denied_share());
        if !denied_share(denied) {
            return Err(io::Error::other(format!("{} denied {:.1}%", one.name, denied * 100.0)));
        }
        println!(
            "{:<32} {:>12.0} {:>26.2} {:>7.1}%",
            one.name,
            one.median(|round| round.tally.per_second()),
            one.median(|round| round.processor_us),
            denied * 100.0
        );
    }
    Ok(())
}

/// Everything is allowed. Gives half of what nginx manages, in requests per second.
fn allowing(field: &Field<'_>) -> io::Result<(f64, Vec<Verdict>)> {
    let mut all = field.contestants(Strictness::Generous)?;
    let unlimited = tidegate_unlimited(field.folder, field.upstream.address)?;
    all.insert(OURS_PLACE + 1, Contestant::new("tidegate without a limit", unlimited));
    let by_file = tidegate_by_file(field.folder, field.upstream.address)?;
    all.insert(OURS_PLACE + 2, Contestant::new("tidegate by a file, five policies", by_file));
    compete("everything allowed", &mut all, |denied| denied <= 1.0 - SHARE_MIN)?;
    let (nginx, ours, unlimited, by_file) =
        (&all[NGINX_PLACE], &all[OURS_PLACE], &all[OURS_PLACE + 1], &all[OURS_PLACE + 2]);
    let processor = |round: &Round| round.processor_us;
    let verdicts = vec![
        Verdict::at_most("processor time per request, of nginx", PROCESSOR_TIME_MAX, ours.ratio(nginx, processor)),
        Verdict::at_most("the same by a file, of nginx", BY_FILE_MAX, by_file.ratio(nginx, processor)),
        Verdict::at_most("limiting, of the same without a limit", LIMITING_MAX, ours.ratio(unlimited, processor)),
    ];
    Ok((nginx.median(|round| round.tally.per_second()) / 2.0, verdicts))
}

/// Nearly everything is denied.
fn denying(field: &Field<'_>) -> io::Result<Vec<Verdict>> {
    let mut all = field.contestants(Strictness::Strict)?;
    compete("nearly everything denied", &mut all, |denied| denied >= SHARE_MIN)?;
    let ratio = all[OURS_PLACE].ratio(&all[NGINX_PLACE], |round| round.tally.per_second());
    Ok(vec![Verdict::at_least("requests per second denying, of nginx", DENYING_RATE_MIN, ratio)])
}

/// Everything is allowed, and callers connect over TLS.
fn over_tls(field: &Field<'_>) -> io::Result<Verdict> {
    let (folder, upstream) = (field.folder, field.upstream.address);
    let tls = client::trusting(folder.certificate()?)?;
    let nginx = nginx_limiting(folder, upstream, Wire::Tls, Strictness::Generous)?;
    let ours = tidegate(folder, upstream, Wire::Tls, Strictness::Generous)?;
    let mut all = [Contestant::new("nginx limit_req", nginx).over(&tls), Contestant::new("tidegate", ours).over(&tls)];
    compete("everything allowed, over TLS", &mut all, |denied| denied <= 1.0 - SHARE_MIN)?;
    let ratio = all[OURS_PLACE].ratio(&all[NGINX_PLACE], |round| round.processor_us);
    Ok(Verdict::at_most("processor time over TLS, of nginx", OVER_TLS_MAX, ratio))
}

/// Latencies at a fixed rate that all of them can keep up with.
fn at_half_load(field: &Field<'_>, per_second: f64) -> io::Result<Verdict> {
    let all = field.contestants(Strictness::Generous)?;
    let (mut p50s, mut p99s) = (vec![Vec::new(); all.len()], vec![Vec::new(); all.len()]);
    for round in 0..OPEN_ROUNDS {
        for turn in 0..all.len() {
            let place = (round + turn) % all.len();
            let latencies = open_loop(&all[place].door, per_second, OPEN_ROUND)?;
            let percentile = |percent: usize| latencies[latencies.len() * percent / 100].as_secs_f64() * 1e6;
            p50s[place].push(percentile(50));
            p99s[place].push(percentile(99));
        }
    }
    let title = format!("at {per_second:.0} requests/s");
    println!("\n{title:<32} {:>12} {:>26}", "p50 us", "p99 us");
    for (place, one) in all.iter().enumerate() {
        println!("{:<32} {:>12.0} {:>26.0}", one.name, calm(&p50s[place]), calm(&p99s[place]));
    }
    Ok(Verdict::at_most("p99 at half load, of nginx", P99_MAX, calm(&p99s[OURS_PLACE]) / calm(&p99s[NGINX_PLACE])))
}

/// A ratio beside its target.
struct Verdict {
    name: &'static str,
    target: String,
    ratio: f64,
    met: bool,
}

impl Verdict {
    fn at_most(name: &'static str, target: f64, ratio: f64) -> Self {
        Self { name, target: format!("at most {target:.2}"), ratio, met: ratio <= target }
    }

    fn at_least(name: &'static str, target: f64, ratio: f64) -> Self {
        Self { name, target: format!("at least {target:.2}"), ratio, met: ratio >= target }
    }

    fn print(&self) {
        let met = if self.met { "met" } else { "missed" };
        println!("{:<52} {:>6.3}   {}, {met}", self.name, self.ratio, self.target);
    }
}

/// The lower quartile: a round in which nobody else wanted the processors.
fn calm(latencies: &[f64]) -> f64 {
    let mut sorted = latencies.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 4]
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
