//! A real Envoy by the configuration of the page, in front of a real nginx, asking Tidegate.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::page::snippet;
use crate::server::{Asked, written};
use crate::support::http::{Reply, get, get_with};
use crate::support::nginx::Nginx;
use crate::support::{PATIENCE, free_address};

/// A port that was free may be taken before Envoy has it.
const TRIES_MAX: usize = 5;

/// An Envoy that asks before it passes a request on.
pub(crate) struct Envoy {
    child: Child,
    address: SocketAddr,
    folder: TempDir,
}

impl Envoy {
    /// It runs by the page's configuration, with the second of each pair in place of the first.
    pub(crate) fn start(grpc: SocketAddr, upstream: &Nginx, changes: &[(&str, &str)]) -> Self {
        let try_start = |_| Self::try_start(grpc, upstream, changes);
        (0..TRIES_MAX).find_map(try_start).expect("Envoy starts on one of a few free ports")
    }

    fn try_start(grpc: SocketAddr, upstream: &Nginx, changes: &[(&str, &str)]) -> Option<Self> {
        let (address, folder) = (free_address(), TempDir::new().unwrap());
        let upstream = upstream.url().rsplit_once(':').unwrap().1.to_owned();
        let port = |name: &str, port: &str| (format!("port_value: {name} "), format!("port_value: {port} "));
        let (front, asked) = (address.port().to_string(), grpc.port().to_string());
        let mut changes: Vec<_> = changes.iter().map(|(from, to)| ((*from).to_owned(), (*to).to_owned())).collect();
        // On a busy machine an answer may take a while, and what is not answered in time would pass.
        changes.push(("timeout: 0.1s".to_owned(), "timeout: 20s".to_owned()));
        changes.extend([port("8000", &front), port("8081", &asked), port("9000", &upstream)]);
        let text = changes.iter().fold(snippet("envoy.yaml"), |text, (from, to)| {
            assert_eq!(text.matches(from.as_str()).count(), 1, "{from}");
            text.replace(from, to)
        });
        fs::write(folder.path().join("envoy.yaml"), text).unwrap();
        let said = fs::File::create(folder.path().join("said.log")).unwrap();
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.tools/envoy/envoy");
        let mut command = Command::new(program);
        command.args(["-c", "envoy.yaml", "--use-dynamic-base-id", "--concurrency", "1", "-l", "warning"]);
        command.current_dir(folder.path()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(said);
        let child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}; ./test installs it"));
        let mut envoy = Self { child, address, folder };
        envoy.is_up().then_some(envoy)
    }

    fn is_up(&mut self) -> bool {
        let since = Instant::now();
        while since.elapsed() < PATIENCE {
            if self.child.try_wait().unwrap().is_some() {
                eprintln!("{}", self.said());
                return false;
            }
            if TcpStream::connect(self.address).is_ok() {
                return true;
            }
            thread::sleep(Duration::from_millis(20));
        }
        panic!("Envoy does not come up: {}", self.said());
    }

    fn said(&self) -> String {
        fs::read_to_string(self.folder.path().join("said.log")).unwrap_or_default()
    }

    pub(crate) fn get(&self, fields: &[(&str, &str)]) -> Reply {
        get_with(self.address, "/", fields)
    }

    /// Sends requests with hey; gives how many had each of these statuses, and how long it took.
    fn hey(&self, flags: &[&str]) -> (usize, usize, Duration) {
        let since = Instant::now();
        let output = Command::new("hey").args(flags).arg(format!("http://{}/", self.address)).output();
        let output = output.expect("hey is there; ./test installs it");
        let took = since.elapsed();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let count = |status: u16| {
            let line = text.lines().find_map(|line| line.trim().strip_prefix(&format!("[{status}]")));
            line.map_or(0, |rest| rest.split_whitespace().next().unwrap().parse().unwrap())
        };
        let (passed, denied) = (count(200), count(429));
        assert!(passed + denied > 0 && !text.contains("Error distribution"), "{text}\n{}", self.said());
        (passed, denied, took)
    }
}

impl Drop for Envoy {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("Envoy has said: {}", self.said());
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn by_address(rate: &str, more: &str) -> String {
    format!("domain: edge\ndescriptors:\n  - {{key: remote_address, {more}rate_limit: {{{rate}}}}}\n")
}

/// A server by these rules, nginx, and Envoy before both.
fn before_nginx(rules: &str, flags: &[&str]) -> (TempDir, Asked, Nginx, Envoy) {
    let folder = TempDir::new().unwrap();
    let asked = Asked::by(&written(folder.path(), "edge.yaml", rules), flags);
    let nginx = Nginx::start();
    let envoy = Envoy::start(asked.grpc, &nginx, &[]);
    (folder, asked, nginx, envoy)
}

#[test]
fn twice_the_limit_gets_the_limit_exactly() {
    for algorithm in ["fixed-window", "token-bucket"] {
        let rules = by_address("unit: day, requests_per_unit: 100", "");
        let (_folder, asked, nginx, envoy) = before_nginx(&rules, &["--ratelimit-algorithm", algorithm]);
        let (passed, denied, _) = envoy.hey(&["-n", "200", "-c", "4", "-q", "200"]);
        assert_eq!((passed, denied, nginx.requests()), (100, 100, 100), "{algorithm}");
        assert_eq!(asked.server.decisions("remote_address", "denied"), 100);
    }
}

#[test]
fn at_twice_the_rate_for_a_while_the_rate_passes() {
    for algorithm in ["fixed-window", "token-bucket"] {
        let rules = by_address("unit: second, requests_per_unit: 50", "");
        let (_folder, _asked, nginx, envoy) = before_nginx(&rules, &["--ratelimit-algorithm", algorithm]);
        let (passed, denied, took) = envoy.hey(&["-z", "4s", "-c", "2", "-q", "50"]);
        assert_eq!(nginx.requests(), passed as u64);
        let most = match algorithm {
            "fixed-window" => 50.0 * (took.as_secs_f64().ceil() + 1.0),
            _ => 50.0 + 50.0 * took.as_secs_f64(),
        };
        // A busy machine may offer less than the limit now and then.
        let least = 50.0 * 4.0 * 0.75;
        assert!((least..=most).contains(&(passed as f64)) && denied > 0, "{algorithm}: {passed} {denied} in {took:?}");
    }
}

#[test]
fn each_descriptor_counts_by_itself_and_the_answer_says_what_is_left() {
    let (_folder, _asked, _nginx, envoy) = before_nginx(&snippet("rules/edge.yaml"), &[]);
    let first = envoy.get(&[]);
    assert_eq!((first.status, first.field("x-ratelimit-remaining")), (200, Some("59")), "{first:?}");
    assert_eq!(first.field("x-ratelimit-limit"), Some("60, 60;w=60;name=\"by_address\""));
    let keyed: Vec<_> = (0..40).map(|_| envoy.get(&[("x-api-key", "small")])).collect();
    let denied = keyed.iter().find(|reply| reply.status == 429).expect("ten a second are fewer than forty");
    assert_eq!(denied.field("retry-after"), Some("1"), "{denied:?}");
    assert_eq!(denied.field("x-envoy-ratelimited"), Some("true"));
}

#[test]
fn in_shadow_everything_passes_and_is_counted() {
    let rules = by_address("unit: day, requests_per_unit: 10", "shadow_mode: true, ");
    let (_folder, asked, nginx, envoy) = before_nginx(&rules, &[]);
    let replies: Vec<_> = (0..30).map(|_| envoy.get(&[])).collect();
    assert!(replies.iter().all(|reply| reply.status == 200 && reply.field("x-ratelimit-limit").is_none()));
    assert_eq!((nginx.requests(), asked.server.decisions("remote_address", "denied")), (30, 20));
}

#[test]
fn while_nobody_answers_envoys_own_failure_mode_decides() {
    let nobody = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
    let nginx = Nginx::start();
    let open = Envoy::start(nobody, &nginx, &[]);
    assert_eq!(get(open.address, "/").status, 200);
    let closed = Envoy::start(nobody, &nginx, &[("failure_mode_deny: false", "failure_mode_deny: true")]);
    assert_eq!((get(closed.address, "/").status, nginx.requests()), (500, 1));
}
