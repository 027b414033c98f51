//! Real processes, and what they were answered.

use std::io::Read as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tidegate_core::Quota;

use crate::given;

const PROCESSES: usize = 8;
const TASKS: usize = 8;
/// The length of a run under `./test --long`, in seconds.
const LONG_S: u64 = 20;

/// What the processes ask.
pub(crate) struct Knocking {
    pub(crate) how: &'static str,
    pub(crate) limit: &'static str,
    pub(crate) keys: usize,
    /// The length of the usual run.
    pub(crate) seconds: u64,
}

/// What they were answered, all of them together.
pub(crate) struct Run {
    pub(crate) quota: Quota,
    pub(crate) seconds: u64,
    pub(crate) keys: Vec<Key>,
    /// What each process took for the time as it began.
    pub(crate) clocks_ns: Vec<u64>,
}

/// What was answered for one key, by the store's clock.
#[derive(Clone, Debug)]
pub(crate) struct Key {
    pub(crate) asked: u64,
    first_ns: u64,
    last_ns: u64,
    /// When calls passed, in order.
    pub(crate) passed_ns: Vec<u64>,
}

impl Key {
    const UNSEEN: Self = Self { asked: 0, first_ns: u64::MAX, last_ns: 0, passed_ns: Vec::new() };

    /// From the first call to the last one.
    pub(crate) fn span(&self) -> Duration {
        Duration::from_nanos(self.last_ns - self.first_ns)
    }
}

impl Knocking {
    /// Runs the processes against the server at `url`, until all of them end.
    pub(crate) fn on(&self, url: &str) -> Run {
        self.run((0..PROCESSES).map(|_| self.process(url)).collect())
    }

    /// The same with clocks that are so many minutes ahead.
    pub(crate) fn apart(&self, url: &str, ahead_min: [i64; PROCESSES]) -> Run {
        let shifted = ahead_min.map(|minutes| {
            let mut process = self.process(url);
            // Only the calendar's clock: the runtime's timers run on the other one.
            process.env("LD_PRELOAD", given::clocked::library()).env("FAKETIME", format!("{:+}m", minutes));
            process.env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
            process
        });
        self.run(shifted.into())
    }

    fn seconds(&self) -> u64 {
        if std::env::var_os("TIDEGATE_LONG").is_some() { LONG_S } else { self.seconds }
    }

    fn process(&self, url: &str) -> Command {
        let numbers = [self.keys as u64, TASKS as u64, self.seconds()].map(|number| number.to_string());
        let mut process = Command::new(program());
        process.args([self.how, url, self.limit]).args(numbers).stdout(Stdio::piped());
        process
    }

    fn run(&self, mut processes: Vec<Command>) -> Run {
        let children: Vec<_> = processes.iter_mut().map(|process| process.spawn().unwrap()).collect();
        let keys = vec![Key::UNSEEN; self.keys];
        let mut run = Run { quota: given::quota(self.limit), seconds: self.seconds(), keys, clocks_ns: Vec::new() };
        children.into_iter().for_each(|child| run.add(&output(child)));
        run.keys.iter_mut().for_each(|key| key.passed_ns.sort_unstable());
        run
    }
}

impl Run {
    fn add(&mut self, output: &str) {
        for line in output.lines() {
            let words: Vec<_> = line.split(' ').collect();
            let number = |place: usize| words[place].parse::<u64>().unwrap();
            match words[0] {
                "clock" => self.clocks_ns.push(number(1)),
                "errors" => assert_eq!(number(1), 0, "all are answered"),
                "key" => {
                    let key = &mut self.keys[number(1) as usize];
                    key.asked += number(3);
                    key.first_ns = key.first_ns.min(number(5));
                    key.last_ns = key.last_ns.max(number(7));
                    key.passed_ns.extend((9..words.len()).map(number));
                }
                other => panic!("{other}"),
            }
        }
    }
}

/// The example, which cargo builds with the tests of the crate.
fn program() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let program = tests.parent().unwrap().with_file_name("examples").join("knocker");
    assert!(program.exists(), "it is built by `cargo test -p tidegate-redis`");
    program
}

fn output(mut child: Child) -> String {
    let mut output = String::new();
    child.stdout.take().unwrap().read_to_string(&mut output).unwrap();
    assert!(child.wait().unwrap().success());
    output
}
