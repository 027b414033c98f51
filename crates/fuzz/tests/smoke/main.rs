//! Mutations of the seeds through every door: no panic, no hang, memory within what the door states.
//!
//! Chance is drawn from a fixed seed, so that a run is the same everywhere. `TIDEGATE_FUZZ_SECONDS=3600` goes on with
//! other chance for that long at each door; `fuzz/run` does better, since it sees what the program runs through.

mod allocator;
mod attacks;
mod mutation;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tidegate_fuzz::{BASE_BYTES, DOORS, Door, INPUT_BYTES_MAX, door};

use allocator::{Counting, peak_bytes_of};
use mutation::Mutation;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Mutations that are sent through each door.
const CASES: usize = 4_000;
/// The longest time for one input.
const HANG: Duration = Duration::from_secs(20);

/// Sends an input through a door and holds it against what the door states.
fn enter(door: &Door, input: &[u8]) {
    let peak_bytes = peak_bytes_of(|| (door.enter)(input));
    let most_bytes = BASE_BYTES + door.bytes_per_byte * input.len();
    assert!(peak_bytes <= most_bytes, "{}: {peak_bytes} bytes for {} of input", door.name, input.len());
}

/// The files in a door's folder of seeds.
fn seeds(door: &Door) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(door.name);
    let mut paths: Vec<PathBuf> = fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.sort();
    assert!(paths.len() >= 3, "{} has seeds", folder.display());
    paths.iter().map(|path| fs::read(path).expect("a seed")).collect()
}

/// Runs `each` over inputs in a thread of its own, and panics with the input at hand if it panics or hangs.
fn watched(door: Door, inputs: impl Iterator<Item = Vec<u8>> + Send + 'static) {
    let at_hand = Arc::new(Mutex::new(Vec::new()));
    let (done, next) = mpsc::channel();
    let shown = Arc::clone(&at_hand);
    let shown = move || {
        let input = shown.lock().unwrap_or_else(PoisonError::into_inner).clone();
        format!("door {} with {:?}", door.name, input.escape_ascii().to_string())
    };
    let worker = thread::spawn(move || {
        for input in inputs {
            at_hand.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&input);
            enter(&door, &input);
            if done.send(()).is_err() {
                return;
            }
        }
    });
    loop {
        match next.recv_timeout(HANG) {
            Ok(()) => {}
            Err(RecvTimeoutError::Timeout) => panic!("{} hangs", shown()),
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    assert!(worker.join().is_ok(), "{} panicked", shown());
}

/// Mutations of the seeds, so many of them or for so long.
fn mutations(door: Door) -> Box<dyn Iterator<Item = Vec<u8>> + Send> {
    let seeds = seeds(&door);
    let seconds = std::env::var("TIDEGATE_FUZZ_SECONDS").ok().map(|text| text.parse().expect("a number of seconds"));
    let first = seeds.clone().into_iter();
    let start = Instant::now();
    let chance = if seconds.is_some() { u64::from(std::process::id()) } else { 1 };
    let mut mutation = Mutation::new(seeds, door.words, chance);
    let mutations = std::iter::from_fn(move || Some(mutation.next()));
    match seconds.map(Duration::from_secs) {
        None => Box::new(first.chain(mutations.take(CASES))),
        Some(time) => Box::new(first.chain(mutations.take_while(move |_| start.elapsed() < time))),
    }
}

/// A test for each door, so that they run side by side.
macro_rules! doors {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            let door = door(stringify!($name)).expect("a door of this name");
            watched(door, mutations(door));
        })*

        #[test]
        fn every_door_is_entered() {
            assert_eq!(DOORS.map(|door| door.name), [$(stringify!($name)),*]);
        }
    };
}

doors! {
    resp proxy_protocol calls rate_limit_calls config_toml config_yaml config_json descriptor_rules limitador cel store_url
    header_fields access_log limit flags
}

/// A large file that is wrong all over, and all on one line.
#[test]
fn mistakes_without_end_are_no_hang() {
    let names = |separator: &str| (0..60_000).map(|i| format!("\"k{i}\"{separator} 1, ")).collect::<String>();
    for (name, file) in [
        ("config_json", format!("{{{}\"k\": 1}}", names(":"))),
        ("config_yaml", format!("{{{}k: 1}}", names(":"))),
        ("config_toml", format!("a = {{ {}k = 1 }}", names(" ="))),
        ("descriptor_rules", format!("{{{}k: 1}}", names(":"))),
        ("limitador", format!("[{{{}k: 1}}]", names(":"))),
        ("limitador", format!("[{}]", "{namespace: n}, ".repeat(1_000))),
    ] {
        watched(door(name).expect("a door of this name"), [file.into_bytes()].into_iter());
    }
}

/// One thing again and again: what takes time by the square of its length shows here.
#[test]
fn repetition_is_no_hang() {
    for door in DOORS {
        let seeds = seeds(&door).into_iter().chain(door.words.iter().map(|word| word.as_bytes().to_vec()));
        let repeated = seeds.filter(|seed| !seed.is_empty()).map(|seed| {
            let choice = [b'0'];
            choice.iter().chain(seed.iter().cycle()).take(INPUT_BYTES_MAX).copied().collect()
        });
        watched(door, repeated.collect::<Vec<_>>().into_iter());
    }
}
