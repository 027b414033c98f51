//! Programs, and what they spend.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Instant;

/// Ticks of a second in which Linux counts a process's time.
const TICKS_PER_S: f64 = 100.0;

/// What a run has taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spent {
    /// Time of a processor: the program's own, and the kernel's for it.
    pub(crate) processor_s: f64,
    /// Time on the wall.
    pub(crate) wall_s: f64,
}

/// The round that took the least of a processor.
pub(crate) fn best(rounds: usize, command: &[String]) -> Spent {
    let spent = (0..rounds).map(|_| run(command));
    spent.min_by(|a, b| a.processor_s.total_cmp(&b.processor_s)).expect("a round")
}

fn run(command: &[String]) -> Spent {
    let (before, start) = (children_s(), Instant::now());
    let mut child = Command::new(&command[0]);
    let status = child.args(&command[1..]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    assert!(status.expect("it runs").success(), "{command:?} fails");
    Spent { processor_s: children_s() - before, wall_s: start.elapsed().as_secs_f64() }
}

/// Time of a processor that children which have ended took.
fn children_s() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").expect("Linux");
    // The name, in parentheses, may have spaces; behind it the 14th and 15th are those of the children.
    let fields: Vec<&str> = stat.rsplit_once(')').expect("a name").1.split_whitespace().collect();
    let ticks = |at: usize| fields[at].parse::<f64>().expect("a number");
    (ticks(13) + ticks(14)) / TICKS_PER_S
}

/// Is this program installed?
pub(crate) fn exists(program: &str) -> bool {
    Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

/// Runs a line of a shell, which must succeed.
pub(crate) fn shell(line: &str) {
    assert!(Command::new("sh").args(["-c", line]).status().expect("a shell").success(), "{line}");
}
