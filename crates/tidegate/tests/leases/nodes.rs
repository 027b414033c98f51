//! Real processes, a real server, and the law.

use std::io::Read as _;
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tidegate::{Limit, Quota};

use self::free_port::free_port;

#[path = "../../../redis/src/tests/free_port.rs"]
mod free_port;

/// A node, ended when dropped.
pub(crate) struct Node {
    child: Child,
    /// Reads all the time: a node that nobody reads from would stand still once the pipe is full.
    output: Option<JoinHandle<String>>,
}

/// A request that passed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Passed {
    pub(crate) at_ns: u64,
    pub(crate) is_leased: bool,
}

impl Node {
    pub(crate) fn start(server: &Server, limit: &str, most: u64, tasks: u64, seconds: u64) -> Self {
        let tests = std::env::current_exe().unwrap();
        // The example, which cargo builds with the tests of the crate.
        let program = tests.parent().unwrap().with_file_name("examples").join("node");
        assert!(program.exists(), "it is built by `cargo test -p tidegate --features redis`");
        let numbers = [most, tasks, seconds].map(|number| number.to_string());
        let mut node = Command::new(program);
        node.args([&server.url(), limit]).args(numbers).stdout(Stdio::piped());
        let mut child = node.spawn().unwrap();
        let mut from = child.stdout.take().unwrap();
        let output = thread::spawn(move || {
            let mut output = String::new();
            from.read_to_string(&mut output).unwrap();
            output
        });
        Self { child, output: Some(output) }
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
    }

    /// When it began, and what it passed, once it has ended.
    fn ended(mut self) -> (u64, Vec<Passed>) {
        let output = self.output.take().unwrap().join().unwrap();
        // The last line of one that was killed may be cut off.
        let (whole, _) = output.rsplit_once('\n').expect("it said when it began");
        let began = whole.lines().find_map(|line| line.strip_prefix("began ")).unwrap();
        let passed = whole.lines().filter_map(|line| line.strip_prefix("passed ")).map(Passed::read).collect();
        (began.parse().unwrap(), passed)
    }
}

/// What several nodes passed, in order.
pub(crate) struct Run {
    pub(crate) passed: Vec<Passed>,
    began_ns: u64,
}

impl Run {
    pub(crate) fn of(nodes: Vec<Node>) -> Self {
        let mut run = Self { passed: Vec::new(), began_ns: u64::MAX };
        for (began_ns, passed) in nodes.into_iter().map(Node::ended) {
            run.began_ns = run.began_ns.min(began_ns);
            run.passed.extend(passed);
        }
        run.passed.sort_unstable_by_key(|one| one.at_ns);
        run
    }

    /// The most that the law permits from the moment the first node began: no request was decided earlier.
    pub(crate) fn permitted_at_most(&self, limit: &str) -> u64 {
        self.permitted_since(limit, self.began_ns)
    }

    /// The most that the law permits from the first request that passed: each is stamped after it was decided.
    pub(crate) fn permitted_at_least(&self, limit: &str) -> u64 {
        self.permitted_since(limit, self.passed[0].at_ns)
    }

    fn permitted_since(&self, limit: &str, from_ns: u64) -> u64 {
        quota(limit).most_within(Duration::from_nanos(self.passed[self.passed.len() - 1].at_ns - from_ns))
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Passed {
    fn read(line: &str) -> Self {
        let (at_ns, source) = line.split_once(' ').unwrap();
        Self { at_ns: at_ns.parse().unwrap(), is_leased: source == "lease" }
    }
}

/// A Redis of its own, ended when dropped.
pub(crate) struct Server {
    child: Child,
    port: u16,
}

impl Server {
    pub(crate) fn start() -> Self {
        let port = free_port();
        let child = Command::new("redis-server")
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"])
            .stdout(Stdio::null())
            .spawn()
            .expect("redis-server is installed by ./test");
        let server = Self { child, port };
        for _ in 0..500 {
            if redis::Client::open(server.url()).and_then(|client| client.get_connection()).is_ok() {
                return server;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("it did not start");
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn quota(limit: &str) -> Quota {
    limit.parse::<Limit>().unwrap().quota().unwrap()
}

/// By how many requests the worst window exceeds the law. A window that holds the requests i to j, and is as short as can
/// be, is hardly longer than the time between them; so each i is held against the j for which it is worst.
pub(crate) fn excess(limit: &str, stamps_ns: &[u64]) -> u64 {
    let quota = quota(limit);
    let (count, period) = (i128::from(quota.rate().count()), quota.rate().period().as_nanos() as i128);
    let (mut least, mut worst) = (i128::MAX, 0);
    for (i, stamp) in stamps_ns.iter().enumerate() {
        let level = i as i128 * period - count * i128::from(*stamp);
        least = least.min(level);
        worst = worst.max(level - least);
    }
    let over = worst - (i128::from(quota.burst()) - 1) * period;
    u64::try_from((over + period - 1).div_euclid(period).max(0)).unwrap()
}
