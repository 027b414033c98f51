//! The access log: what its lines say, that nobody can forge them, and what happens when they cannot be written.

use std::fs;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use http_body_util::Full;
use serde_json::{Value, json};
use tempfile::TempDir;
use tidegate::policy::file::{Format, read};
use tidegate::{Clock as _, Gate, ManualClock, Memory, TableOptions, Time};
use tidegate_server::{
    AccessLogSetup, Bounds, DeskSetup, Drain, Gateway, GatewaySetup, LogFormat, LogTarget, Metrics, OperationSetup,
    StoreLevel, Upstream, bind,
};

use crate::support::{Client, eventually, metric, one_each, upstream};

/// 2026-02-18T08:48:20.012345678Z
const NOW: Time = Time::from_nanos(1_771_404_500_012_345_678);

const POLICIES: &str = r#"
[client]
trust = ["10.0.0.0/8"]

[[policies]]
name = "free"
match = { path = "/free" }
limits = "unlimited"
final = true

[[policies]]
name = "trial"
match = { path = "/trial" }
final = true

[[policies.limits]]
limit = "1/min"
mode = "shadow"

[[policies]]
name = "api"
match = { path = "/api/*" }
key = "header:x-api-key"
on_missing = "deny"
limits = "2/min"
"#;

/// A gateway that logs, on a thread of its own.
struct Logging {
    address: SocketAddr,
    gateway: Arc<Gateway<Memory<ManualClock>>>,
    clock: ManualClock,
    notices: Arc<Mutex<Vec<String>>>,
    drain: Drain,
    thread: Option<JoinHandle<std::io::Result<()>>>,
}

impl Logging {
    fn to(path: &Path, format: LogFormat, upstream: Option<SocketAddr>) -> Self {
        let policies = read("test.toml", POLICIES, Format::Toml).unwrap().policies;
        let (clock, notices, drain) = (ManualClock::new(), Arc::new(Mutex::new(Vec::new())), Drain::new());
        clock.set(NOW);
        let (heard, time) = (Arc::clone(&notices), clock.clone());
        let desk = DeskSetup::new(
            Gate::new(policies, Memory::new(TableOptions::with_keys(4096), clock.clone())),
            StoreLevel::of_memory,
            Arc::new(move || time.now()),
            OperationSetup::of_memory(),
        );
        let desk = DeskSetup {
            notice: Arc::new(move |text: &str| heard.lock().unwrap().push(text.to_owned())),
            access_log: Some(AccessLogSetup { target: LogTarget::file(path).unwrap(), format }),
            ..desk
        };
        let gateway = Arc::new(Gateway::new(GatewaySetup {
            upstreams: upstream.map(|address| format!("http://{address}").parse::<Upstream>().unwrap().into()),
            bounds: Bounds { grace: Duration::ZERO, ..Bounds::default() },
            ..GatewaySetup::new(desk)
        }));
        let listeners = bind("127.0.0.1:0".parse().unwrap(), NonZeroUsize::MIN).unwrap();
        let address = listeners[0].local_addr().unwrap();
        let (running, until) = (Arc::clone(&gateway), drain.clone());
        let thread = std::thread::spawn(move || running.run(one_each(listeners), None, &until));
        Self { address, gateway, clock, notices, drain, thread: Some(thread) }
    }

    fn metrics(&self) -> &Metrics {
        self.gateway.desk().metrics()
    }

    fn lines(&self, result: &str) -> u64 {
        metric(self.metrics(), &format!("tidegate_access_log_lines_total{{result=\"{result}\"}}"))
    }

    async fn ask(&self, request: &str) -> u16 {
        let mut client = Client::to(self.address).await;
        client.send(request).await;
        let status = client.answer().await.status;
        // The record ends with the answer, which the client may have seen a moment before.
        drop(client);
        status
    }

    async fn get(&self, path: &str, fields: &str) -> u16 {
        self.ask(&format!("GET {path} HTTP/1.1\r\nhost: a.example\r\n{fields}\r\n")).await
    }

    /// Stops it, after which all lines are written.
    fn end(&mut self) {
        self.drain.start();
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(matches!(ended, Some(Ok(Ok(())))));
    }
}

impl Drop for Logging {
    fn drop(&mut self) {
        self.drain.start();
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn scene(format: LogFormat) -> (TempDir, Logging) {
    let folder = TempDir::new().unwrap();
    let logging = Logging::to(&folder.path().join("access.log"), format, None);
    (folder, logging)
}

fn read_log(folder: &TempDir) -> String {
    fs::read_to_string(folder.path().join("access.log")).unwrap()
}

#[tokio::test]
async fn combined_is_the_standard_line_with_the_decision_behind_it() {
    let (folder, mut logging) = scene(LogFormat::Combined);
    let key = "x-api-key: gold-1\r\nreferer: http://ref/\r\nuser-agent: probe/1.0\r\n";
    assert_eq!([logging.get("/api/a?b=c", key).await, logging.get("/api/a", key).await], [404, 404]);
    logging.clock.advance(Duration::from_millis(500));
    assert_eq!(logging.get("/api/a", key).await, 429);
    assert_eq!([logging.get("/api/a", "").await, logging.get("/free", "").await], [429, 404]);
    logging.end();
    // printf 'v\006gold-1' | sha256sum
    let of = |remaining: u32, wait: &str| {
        format!("\"store\" \"api\" \"limit-1\" \"76c5c9d2180e794f\" \"{remaining}\" \"{wait}\"")
    };
    let (at, took) = ("127.0.0.1 - - [18/Feb/2026:08:48:20 +0000]", "\"0.000000000\" \"-\"");
    let expected = [
        format!(
            "{at} \"GET /api/a?b=c HTTP/1.1\" 404 133 \"http://ref/\" \"probe/1.0\" \"allowed\" {} {took}",
            of(1, "-")
        ),
        format!("{at} \"GET /api/a HTTP/1.1\" 404 133 \"http://ref/\" \"probe/1.0\" \"allowed\" {} {took}", of(0, "-")),
        format!(
            "{at} \"GET /api/a HTTP/1.1\" 429 SIZE \"http://ref/\" \"probe/1.0\" \"denied\" {} {took}",
            of(0, "29.500000000")
        ),
        format!(
            "{at} \"GET /api/a HTTP/1.1\" 429 SIZE \"-\" \"-\" \"denied\" \"-\" \"-\" \"-\" \"-\" \"-\" \"-\" {took}"
        ),
        format!("{at} \"GET /free HTTP/1.1\" 404 133 \"-\" \"-\" \"free\" \"-\" \"-\" \"-\" \"-\" \"-\" \"-\" {took}"),
    ];
    let log = read_log(&folder);
    let lines: Vec<_> = log.lines().map(without_size).collect();
    let expected: Vec<_> = expected.iter().map(|line| without_size(line)).collect();
    assert_eq!(lines, expected);
    assert_eq!((logging.lines("written"), logging.lines("dropped"), logging.lines("failed")), (5, 0, 0));
}

/// The line without the bytes of its body, which another test holds to what was sent.
fn without_size(line: &str) -> String {
    let (before, after) = line.split_once("HTTP/1.1\" ").unwrap();
    let (status, after) = after.split_once(' ').unwrap();
    format!("{before}HTTP/1.1\" {status} {}", after.split_once(' ').unwrap().1)
}

#[tokio::test]
async fn common_is_the_standard_line_and_the_bytes_are_those_of_the_body() {
    let (folder, mut logging) = scene(LogFormat::Common);
    let mut client = Client::to(logging.address).await;
    let sizes = [client.get("/").await.body.len(), client.get("/joke?a").await.body.len()];
    client.send("HEAD / HTTP/1.1\r\nhost: a\r\n\r\n").await;
    client.head().await;
    drop(client);
    logging.end();
    let at = "127.0.0.1 - - [18/Feb/2026:08:48:20 +0000]";
    let expected = format!(
        "{at} \"GET / HTTP/1.1\" 200 {}\n{at} \"GET /joke?a HTTP/1.1\" 200 {}\n{at} \"HEAD / HTTP/1.1\" 200 0\n",
        sizes[0], sizes[1]
    );
    assert_eq!(read_log(&folder), expected);
}

#[tokio::test]
async fn json_has_every_field_on_every_line() {
    let (upstream, _) = upstream(|_| async { Response::new(Full::<Bytes>::from("hello")) }).await;
    let folder = TempDir::new().unwrap();
    let mut logging = Logging::to(&folder.path().join("access.log"), LogFormat::Json, Some(upstream));
    assert_eq!(logging.get("/trial", "").await, 200);
    assert_eq!(logging.get("/trial", "user-agent: m\u{fc}\"\\\r\n").await, 200);
    assert_eq!(logging.get("/elsewhere", "").await, 200);
    logging.end();
    let log = read_log(&folder);
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let line = |target: &str, agent: Value, decision: Value| {
        let mut line = json!({
            "time": "2026-02-18T08:48:20.012345678Z", "client": "127.0.0.1", "peer": "127.0.0.1", "method": "GET",
            "target": target, "protocol": "HTTP/1.1", "host": "a.example", "status": 200, "bytes": 5,
            "complete": true, "referer": null, "user_agent": agent, "duration": 0.0, "upstream_time": 0.0,
            "cause": null, "source": null, "policy": null, "limit": null, "key": null, "remaining": null, "wait": null,
            "trace_id": null,
        });
        let fields = decision.as_object().unwrap().clone();
        line.as_object_mut().unwrap().extend(fields);
        line
    };
    let key = lines[1]["key"].clone();
    assert!(key.as_str().is_some_and(|key| key.len() == 16), "{key}");
    let trial = |decision: &str, wait: Value| {
        json!({ "decision": decision, "source": "store", "policy": "trial", "limit": "limit-1", "key": key.clone(),
                "remaining": 0, "wait": wait })
    };
    // An enforced limit did not apply, so nothing binds until the one in shadow would deny.
    let expected = [
        line("/trial", Value::Null, json!({ "decision": "allowed" })),
        line("/trial", json!("m\u{fc}\"\\"), trial("shadow-denied", json!(60.0))),
        line("/elsewhere", Value::Null, json!({ "decision": "unmatched" })),
    ];
    assert_eq!(lines, expected);
}

#[tokio::test]
async fn nothing_that_a_caller_sends_forges_a_line() {
    for format in LogFormat::ALL {
        let (folder, mut logging) = scene(format);
        let mut client = Client::to(logging.address).await;
        let evil: &[&[u8]] = &[
            b"GET /\"%0d%0a HTTP/1.1\r\nhost: a\r\nuser-agent: \" 200 0\\\r\nreferer: \xff\x80\ttab\r\n\r\n",
            b"GET /?a=\\n127.0.0.1%20-%20- HTTP/1.1\r\nhost: \"x\r\nuser-agent: \xe2\x80\xa8\r\n\r\n",
            b"M\x27ETHOD / HTTP/1.1\r\nhost: a\r\nuser-agent: \\\\\\\"\r\n\r\n",
        ];
        let mut answered = 0;
        for request in evil {
            client.send(request).await;
            answered += usize::from(client.answer().await.status > 0);
        }
        drop(client);
        logging.end();
        let log = fs::read(folder.path().join("access.log")).unwrap();
        let lines: Vec<_> = log.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).collect();
        assert_eq!(lines.len(), answered, "{format:?}");
        for line in lines {
            let line = std::str::from_utf8(line).unwrap();
            match format {
                LogFormat::Json => drop(serde_json::from_str::<Value>(line).unwrap()),
                LogFormat::Common => assert_eq!(line.matches('"').count(), 2, "{line}"),
                LogFormat::Combined => assert_eq!(line.matches('"').count(), 24, "{line}"),
            }
        }
    }
}

#[tokio::test]
async fn a_request_that_is_given_up_is_told_as_499() {
    let (upstream, log) = upstream(|_| async { std::future::pending::<Response<Full<Bytes>>>().await }).await;
    let folder = TempDir::new().unwrap();
    let mut logging = Logging::to(&folder.path().join("access.log"), LogFormat::Json, Some(upstream));
    let mut client = Client::to(logging.address).await;
    client.send("GET /elsewhere HTTP/1.1\r\nhost: a\r\n\r\n").await;
    eventually("it was passed on", || log.requests() == 1).await;
    drop(client);
    logging.end();
    let line: Value = serde_json::from_str(&read_log(&folder)).unwrap();
    let told = (&line["status"], &line["complete"], &line["decision"], &line["upstream_time"]);
    assert_eq!(told, (&json!(499), &json!(false), &json!("unmatched"), &Value::Null));
}

#[tokio::test]
async fn a_file_that_was_moved_is_left_behind() {
    let (folder, mut logging) = scene(LogFormat::Common);
    let (path, moved) = (folder.path().join("access.log"), folder.path().join("access.log.1"));
    logging.get("/first", "").await;
    eventually("the first line is there", || fs::read_to_string(&path).is_ok_and(|log| log.contains("/first"))).await;
    fs::rename(&path, &moved).unwrap();
    logging.get("/second", "").await;
    eventually("a new file is there", || fs::read_to_string(&path).is_ok_and(|log| log.contains("/second"))).await;
    // Being told is quicker than looking once a second; nothing else changes.
    fs::rename(&path, folder.path().join("access.log.2")).unwrap();
    logging.gateway.desk().reopen_logs();
    eventually("one more is there", || path.exists()).await;
    logging.get("/third", "").await;
    logging.end();
    assert_eq!(fs::read_to_string(moved).unwrap().lines().count(), 1);
    assert!(read_log(&folder).contains("/third"));
    assert_eq!(logging.lines("written"), 3);
}

#[tokio::test]
async fn a_full_disk_is_told_once_and_serving_goes_on() {
    let mut logging = Logging::to(Path::new("/dev/full"), LogFormat::Combined, None);
    assert_eq!(logging.get("/", "").await, 200);
    eventually("the line is lost", || logging.lines("failed") == 1).await;
    assert_eq!(logging.get("/", "").await, 200);
    eventually("so is the next", || logging.lines("failed") == 2).await;
    logging.end();
    let notices = logging.notices.lock().unwrap();
    assert_eq!(notices.len(), 1, "{notices:?}");
    assert!(notices[0].starts_with("the access log cannot be written: No space left on device"), "{notices:?}");
    assert_eq!(logging.lines("written"), 0);
}
