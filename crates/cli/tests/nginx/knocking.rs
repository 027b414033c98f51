//! Clients that knock as fast as they are answered, from several processes at once.
//!
//! A client process is this test program again, told by an environment variable what to do.

use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use crate::support::PATIENCE;
use crate::support::http::{Connection, request};

/// What a client process has to do, as JSON.
const TASK: &str = "TIDEGATE_KNOCK";
/// The test that a client process runs.
const CLIENT: &str = "knocking::a_client_counts_what_it_is_answered";
/// The time until all processes stand ready.
const HEAD_START: Duration = Duration::from_millis(500);

/// Knock on so many connections, for so long.
#[derive(Clone, Copy)]
pub(crate) struct Task {
    pub(crate) address: SocketAddr,
    pub(crate) connections: usize,
    /// Different keys that are sent, in turn; 0 if none is.
    pub(crate) keys: usize,
    pub(crate) seconds: u64,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Knocked {
    /// How often each key passed.
    pub(crate) by_key: Vec<u64>,
    pub(crate) denied: u64,
    /// When the first request was sent and the last answer was read, in nanoseconds of the wall's clock, which all
    /// processes share.
    first_ns: u64,
    last_ns: u64,
}

impl Knocked {
    pub(crate) fn passed(&self) -> u64 {
        self.by_key.iter().sum()
    }

    /// The time from the first request's start to the last one's end.
    pub(crate) fn seconds(&self) -> f64 {
        Duration::from_nanos(self.last_ns - self.first_ns).as_secs_f64()
    }

    fn with(mut self, other: Self) -> Self {
        self.by_key.extend(other.by_key);
        Self {
            by_key: self.by_key,
            denied: self.denied + other.denied,
            first_ns: self.first_ns.min(other.first_ns),
            last_ns: self.last_ns.max(other.last_ns),
        }
    }
}

fn now_ns() -> u64 {
    u64::try_from(SystemTime::UNIX_EPOCH.elapsed().unwrap().as_nanos()).unwrap()
}

/// Item `i` of `count` is given this part of `all`.
fn part(all: usize, count: usize, i: usize) -> std::ops::Range<usize> {
    all * i / count..all * (i + 1) / count
}

/// Shares the task out to processes, and waits for all of them.
pub(crate) fn knock_from_processes(task: &Task, processes: usize) -> Knocked {
    let start_ns = now_ns() + u64::try_from(HEAD_START.as_nanos()).unwrap();
    let spawn = |i| {
        let (connections, keys) = (part(task.connections, processes, i), part(task.keys, processes, i));
        let task = json!({
            "address": task.address.to_string(),
            "connections": connections.len(),
            "keys": [keys.start, keys.end],
            "start_ns": start_ns,
            "end_ns": start_ns + task.seconds * 1_000_000_000,
        });
        let mut client = Command::new(std::env::current_exe().unwrap());
        client.args(["--exact", CLIENT, "--nocapture"]).env(TASK, task.to_string());
        client.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap()
    };
    let children: Vec<_> = (0..processes).map(spawn).collect();
    let outputs = children.into_iter().map(|child| child.wait_with_output().unwrap());
    let knocked = outputs.map(|output| {
        let out = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "a client failed: {out}");
        from_json(out.lines().find(|line| line.starts_with('{')).unwrap())
    });
    knocked.reduce(Knocked::with).unwrap()
}

/// What a client process does.
fn knock(task: &Value) -> Knocked {
    let number = |value: &Value| value.as_u64().unwrap();
    let address: SocketAddr = task["address"].as_str().unwrap().parse().unwrap();
    let connections = number(&task["connections"]) as usize;
    let keys = number(&task["keys"][0]) as usize..number(&task["keys"][1]) as usize;
    let (start_ns, end_ns) = (number(&task["start_ns"]), number(&task["end_ns"]));
    thread::scope(|scope| {
        let knocking: Vec<_> = (0..connections)
            .map(|i| {
                let own = part(keys.len(), connections, i);
                let requests: Vec<_> = match own.len() {
                    0 => vec![request("GET", "/", &[])],
                    _ => {
                        own.map(|key| request("GET", "/", &[("X-Api-Key", &(keys.start + key).to_string())])).collect()
                    }
                };
                let connection = Connection::open(address);
                scope.spawn(move || knock_on(connection, &requests, start_ns, end_ns))
            })
            .collect();
        knocking.into_iter().map(|one| one.join().unwrap()).reduce(Knocked::with).unwrap()
    })
}

fn knock_on(mut connection: Connection, requests: &[Vec<u8>], start_ns: u64, end_ns: u64) -> Knocked {
    thread::sleep(Duration::from_nanos(start_ns.saturating_sub(now_ns())).min(PATIENCE));
    let mut knocked = Knocked { by_key: vec![0; requests.len()], denied: 0, first_ns: now_ns(), last_ns: 0 };
    for (key, request) in requests.iter().enumerate().cycle() {
        connection.send(request).unwrap();
        match connection.reply("GET").unwrap().status {
            200 => knocked.by_key[key] += 1,
            429 => knocked.denied += 1,
            status => panic!("{status}"),
        }
        knocked.last_ns = now_ns();
        if knocked.last_ns >= end_ns {
            break;
        }
    }
    knocked
}

fn to_json(knocked: &Knocked) -> Value {
    let Knocked { by_key, denied, first_ns, last_ns } = knocked;
    json!({ "by_key": by_key, "denied": denied, "first_ns": first_ns, "last_ns": last_ns })
}

fn from_json(text: &str) -> Knocked {
    let value: Value = serde_json::from_str(text).unwrap();
    let number = |value: &Value| value.as_u64().unwrap();
    Knocked {
        by_key: value["by_key"].as_array().unwrap().iter().map(number).collect(),
        denied: number(&value["denied"]),
        first_ns: number(&value["first_ns"]),
        last_ns: number(&value["last_ns"]),
    }
}

#[test]
fn a_client_counts_what_it_is_answered() {
    if let Ok(task) = std::env::var(TASK) {
        println!("\n{}", to_json(&knock(&serde_json::from_str(&task).unwrap())));
        return;
    }
    // Every third answer of this upstream is a denial.
    let upstream = crate::support::upstream::Upstream::start(|socket| {
        let mut connection = Connection::over(socket);
        for i in 1.. {
            let Some(_) = crate::support::upstream::head(&mut connection) else { return };
            let status = if i % 3 == 0 { "429 Too Many Requests" } else { "200 OK" };
            let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n");
            connection.send(answer.as_bytes()).unwrap();
        }
    });
    let now = now_ns();
    let task = json!({
        "address": upstream.address.to_string(), "connections": 2, "keys": [10, 16],
        "start_ns": now, "end_ns": now + 50_000_000,
    });
    let knocked = knock(&task);
    assert_eq!(upstream.connections(), 2);
    assert_eq!(from_json(&to_json(&knocked).to_string()), knocked);
    // Each connection sends three keys in turn, so one of them is denied each time.
    let denied_key = |keys: &[u64]| keys[2] == 0 && keys[0].abs_diff(keys[1]) <= 1 && keys[0] > 0;
    assert!(denied_key(&knocked.by_key[..3]) && denied_key(&knocked.by_key[3..]), "{knocked:?}");
    assert!(knocked.denied.abs_diff(knocked.passed() / 2) <= 4, "{knocked:?}");
    assert!(knocked.first_ns >= now && knocked.last_ns >= now + 50_000_000, "{knocked:?}");
}
