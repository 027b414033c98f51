//! The log that is measured, and the replay of it.

use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use tidegate_core::Mode;
use tidegate_lab::log::{Feed, Feeds, Source, Zone};
use tidegate_lab::replay::{Options, replay as replayed, to_text};
use tidegate_policy::{ClientAddress, KeyParts, Policies, Policy};

/// The days that the real log spans.
const DAYS: u64 = 4;

/// Writes a log of so many lines: the real one of 10,000 over and over, each time four days later.
pub(crate) fn write(path: &Path, lines: u64) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let real =
        std::env::var_os("TIDEGATE_APACHE_LOGS").map_or_else(|| root.join("../shared/data/apache_logs"), PathBuf::from);
    let real = fs::read(&real).unwrap_or_else(|error| panic!("{}: {error}", real.display()));
    let real: Vec<&[u8]> = real.split_inclusive(|byte| *byte == b'\n').collect();
    let mut out = BufWriter::with_capacity(1 << 20, File::create(path).expect("a file"));
    for i in 0..lines {
        let round = i / real.len() as u64;
        let line = real[(i % real.len() as u64) as usize];
        let at = line.iter().position(|byte| *byte == b'[').expect("a time") + 1;
        let day: u64 = std::str::from_utf8(&line[at..at + 2]).expect("a day").parse().expect("a day");
        // 17 May 2015 is day 0; months of 28 days have no gaps that matter here.
        let day = day - 17 + round * DAYS;
        let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
        let (year, month, day) = (2015 + day / 336, months[(day / 28 % 12) as usize], day % 28 + 1);
        let written = write!(out, "{}{day:02}/{month}/{year:04}", String::from_utf8_lossy(&line[..at]));
        written.and_then(|()| out.write_all(&line[at + 11..])).expect("it is written");
    }
    out.flush().expect("it is written");
}

/// Replays a log, as the program does, and prints the report.
pub(crate) fn replay(log: &str, limit: &str) {
    let source = Source::open(Path::new(log)).expect("a log");
    let mut feeds = Feeds::new(vec![Feed::new(source, None, Zone::UTC).expect("a format")]);
    let limits: Vec<tidegate_core::Limit> = vec![limit.parse().expect("a limit")];
    let policy = Policy::new("default", KeyParts::default()).with_limits(limits, Mode::Enforce);
    let policies = Policies::new(ClientAddress::default(), vec![policy]).expect("policies");
    let report = replayed(&mut feeds, policies, None, &Options::default(), &mut |_| {});
    print!("{}", to_text(&report));
}
