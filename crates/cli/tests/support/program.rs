//! The program that was built, run as its users run it.

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use super::PATIENCE;
use super::http::get_with;

/// What a run printed, and how it ended.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// The program, in an environment that says nothing about terminals.
pub(crate) fn command<S: AsRef<OsStr>>(arguments: &[S]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "FORCE_COLOR", "TERM", "CI", "COLUMNS", "TIDEGATE_STORE"] {
        command.env_remove(name);
    }
    command.args(arguments).stdin(Stdio::null());
    command
}

/// A proxy with these flags, on ports of the kernel's choice.
pub(crate) fn serving<S: AsRef<OsStr>>(flags: &[S]) -> Command {
    let mut command = command(&["proxy", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]);
    command.args(flags);
    command
}

/// Runs the program to its end.
pub(crate) fn run<S: AsRef<OsStr>>(arguments: &[S]) -> Run {
    run_in(Path::new("."), arguments)
}

/// The same, in this folder.
pub(crate) fn run_in<S: AsRef<OsStr>>(folder: &Path, arguments: &[S]) -> Run {
    let output = command(arguments).current_dir(folder).output().unwrap();
    Run {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A decision server with these flags that speaks the Redis protocol alone, on ports of the kernel's choice.
pub(crate) fn deciding<S: AsRef<OsStr>>(flags: &[S]) -> Command {
    let mut command =
        command(&["serve", "--http", "off", "--grpc", "off", "--resp", "127.0.0.1:0", "--admin", "127.0.0.1:0"]);
    command.args(flags);
    command
}

/// A decision server with these flags that speaks HTTP alone, on ports of the kernel's choice.
pub(crate) fn asked_over_http<S: AsRef<OsStr>>(flags: &[S]) -> Command {
    let mut command =
        command(&["serve", "--http", "127.0.0.1:0", "--grpc", "off", "--resp", "off", "--admin", "127.0.0.1:0"]);
    command.args(flags);
    command
}

/// A running `tidegate proxy` or `tidegate serve`, ended with the test.
pub(crate) struct Proxy {
    child: Child,
    said: Arc<Said>,
    pub(crate) address: SocketAddr,
    pub(crate) admin: SocketAddr,
}

/// What the program has said on standard error so far.
#[derive(Default)]
struct Said {
    text: Mutex<String>,
    more: Condvar,
}

impl Proxy {
    /// Starts the proxy with these flags, on ports of the kernel's choice, and waits until it says that it serves.
    pub(crate) fn start<S: AsRef<OsStr>>(flags: &[S]) -> Self {
        Self::start_in(Path::new("."), flags)
    }

    /// The same, in this folder.
    pub(crate) fn start_in<S: AsRef<OsStr>>(folder: &Path, flags: &[S]) -> Self {
        let mut command = serving(flags);
        command.current_dir(folder);
        Self::started(command)
    }

    /// Starts what [`serving`] gave.
    pub(crate) fn started(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let stderr = child.stderr.take().unwrap();
        let said = Arc::new(Said::default());
        let listener = Arc::clone(&said);
        thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                listener.text.lock().unwrap().extend([&line, "\n"]);
                listener.more.notify_all();
            }
        });
        let started = said.wait_for("  try  ");
        let before = [" on https://", " on http://", " on redis://", " on rediss://", " on "];
        let before = before.into_iter().find(|before| started.contains(before)).unwrap();
        let (address, admin) = (after(&started, before), after(&started, "admin      http://"));
        Self { child, said, address, admin }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Where its callers find it.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// All that it has said on standard error so far.
    pub(crate) fn said(&self) -> String {
        self.said.text.lock().unwrap().clone()
    }

    /// Waits until it has said `text`, and returns all that it has said.
    pub(crate) fn wait_for(&self, text: &str) -> String {
        self.said.wait_for(text)
    }

    /// Where operators find it.
    pub(crate) fn admin_address(&self) -> SocketAddr {
        self.admin
    }

    pub(crate) fn admin(&self, target: &str) -> super::http::Reply {
        get_with(self.admin, target, &[("host", "localhost")])
    }

    /// The metrics, as they are now.
    pub(crate) fn metrics(&self) -> Metrics {
        let reply = self.admin("/metrics");
        assert_eq!(reply.status, 200);
        Metrics(reply.text().to_owned())
    }

    /// The decisions on a limit with this outcome.
    pub(crate) fn decisions(&self, limit: &str, outcome: &str) -> u64 {
        self.metrics().decisions(limit, outcome)
    }

    /// Sends it a signal, such as `TERM`.
    pub(crate) fn signal(&self, name: &str) {
        let kill = format!("kill -{name} {}", self.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success(), "{kill}");
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Waits for its end.
    pub(crate) fn ended(&mut self) -> ExitStatus {
        let since = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(since.elapsed() < PATIENCE, "it does not end; it said:\n{}", self.said());
            thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Said {
    fn wait_for(&self, text: &str) -> String {
        let said = self.text.lock().unwrap();
        let waiting = |said: &mut String| !said.contains(text);
        let (said, waited) = self.more.wait_timeout_while(said, PATIENCE, waiting).unwrap();
        assert!(!waited.timed_out(), "it never said {text:?}, but\n{said}");
        said.clone()
    }
}

/// The address that stands behind `mark`.
fn after(said: &str, mark: &str) -> SocketAddr {
    let rest = said.split_once(mark).unwrap_or_else(|| panic!("no {mark:?} in\n{said}")).1;
    let end = rest.find(|c: char| c.is_whitespace() || c == '/').unwrap_or(rest.len());
    rest[..end].parse().unwrap_or_else(|error| panic!("{error} behind {mark:?} in\n{said}"))
}

/// A scrape.
#[derive(Clone, Debug)]
pub(crate) struct Metrics(pub(crate) String);

impl Metrics {
    /// The names and labels of all series, in order.
    pub(crate) fn series(&self) -> Vec<&str> {
        let lines = self.0.lines().filter(|line| !line.starts_with('#'));
        lines.filter_map(|line| line.rsplit_once(' ')).map(|(series, _)| series).collect()
    }

    /// The value of one series.
    pub(crate) fn value(&self, series: &str) -> u64 {
        let value = self.0.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        value.unwrap_or_else(|| panic!("no {series} in\n{}", self.0)).parse().unwrap()
    }

    pub(crate) fn decisions(&self, limit: &str, outcome: &str) -> u64 {
        let is_this = |series: &&&str| {
            let labels = [format!("limit=\"{limit}\""), format!("outcome=\"{outcome}\"")];
            series.starts_with("tidegate_decisions_total{") && labels.iter().all(|label| series.contains(label))
        };
        let series = self.series();
        self.value(series.iter().find(is_this).unwrap_or_else(|| panic!("no {limit} {outcome} in\n{}", self.0)))
    }
}
