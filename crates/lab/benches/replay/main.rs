//! Lines per second of a replay, beside goaccess on the same file in the same run, and beside zcat.
//!
//! Other programs run on the machine, so what is counted is time of a processor, the program's own and the kernel's on
//! its behalf, not time on the wall; and of several rounds the best. Each contestant runs as a program of its own.

mod log;
mod process;

use std::path::Path;

use process::{Spent, best};

const LINES: u64 = 1_000_000;
const ROUNDS: usize = 5;
/// Lines per second of plain combined format.
const TARGET: f64 = 1.5e6;
/// Times faster than goaccess.
const TARGET_GOACCESS: f64 = 10.0;
/// Of what decompression alone allows.
const TARGET_ZCAT: f64 = 0.8;

fn main() {
    // Cargo runs a benchmark of this name; this program replays if it is called with a log.
    if let [_, log, limit] = &std::env::args().collect::<Vec<_>>()[..]
        && log.contains('/')
    {
        return log::replay(log, limit);
    }
    let folder = tempfile::tempdir().expect("a folder");
    let plain = folder.path().join("access.log");
    log::write(&plain, LINES);
    let packed = folder.path().join("access.log.gz");
    process::shell(&format!("gzip -c '{}' > '{}'", plain.display(), packed.display()));

    println!("replay: {LINES} lines of combined format, out of order as they were; best of {ROUNDS} rounds");
    println!("  lines per second of a processor");
    let ours = measure("replay, plain", &us(&plain));
    println!("    target {:.1} million: {}", TARGET / 1e6, verdict(ours, TARGET));
    goaccess(&plain, ours);
    let packed_rate = measure("replay, gzip", &us(&packed));
    let zcat = measure("zcat alone", &["zcat".to_owned(), packed.display().to_string()]);
    println!(
        "    {:.2} of zcat alone; target {TARGET_ZCAT}: {}",
        packed_rate / zcat,
        verdict(packed_rate, TARGET_ZCAT * zcat)
    );
}

/// This program, as one that replays.
fn us(log: &Path) -> Vec<String> {
    let program = std::env::current_exe().expect("a program");
    vec![program.display().to_string(), log.display().to_string(), "60/min burst 20".to_owned()]
}

fn goaccess(plain: &Path, ours: f64) {
    let words = ["goaccess", "--no-global-config", "--no-progress", "--log-format=COMBINED", "-o", "json"];
    let mut command: Vec<String> = words.map(str::to_owned).to_vec();
    command.push(plain.display().to_string());
    if !process::exists("goaccess") {
        println!("  goaccess is not there; benches/install installs it");
        return;
    }
    let rate = LINES as f64 / best(1, &command).processor_s;
    println!("  {:<24} {:>10.3} million", "goaccess", rate / 1e6);
    println!(
        "    {:.1} times faster; target {TARGET_GOACCESS}: {}",
        ours / rate,
        verdict(ours, TARGET_GOACCESS * rate)
    );
}

/// Lines per second of a processor.
fn measure(name: &str, command: &[String]) -> f64 {
    let Spent { processor_s, wall_s } = best(ROUNDS, command);
    let rate = LINES as f64 / processor_s;
    println!(
        "  {name:<24} {:>10.3} million   ({processor_s:.2} s of a processor, {wall_s:.2} s on the wall)",
        rate / 1e6
    );
    rate
}

fn verdict(is: f64, target: f64) -> &'static str {
    if is >= target { "met" } else { "missed" }
}
