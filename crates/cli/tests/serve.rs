//! `tidegate serve` as clients of the Redis protocol meet it.

mod support;

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::PATIENCE;
use support::http::get;
use support::program::{Proxy, Run, asked_over_http, command, deciding, run};
use support::redis::Redis;

/// Tries that a recorded conversation is given: a second may end in its middle.
const TRIES: usize = 3;

fn served(flags: &[&str]) -> Proxy {
    Proxy::started(deciding(flags))
}

/// A client that speaks in bytes.
struct Client {
    socket: TcpStream,
    unread: Vec<u8>,
}

impl Client {
    fn to(server: &Proxy) -> Self {
        let socket = TcpStream::connect(server.address).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        Self { socket, unread: Vec::new() }
    }

    fn send(&mut self, bytes: &[u8]) {
        self.socket.write_all(bytes).unwrap();
    }

    /// The next reply: a number, a text, an error behind `-`, or an array of them.
    fn reply(&mut self) -> Value {
        let line = self.line();
        let (kind, rest) = line.split_at(1);
        match kind {
            "+" => rest.into(),
            "-" => line.into(),
            ":" => rest.parse::<i64>().unwrap().into(),
            "*" => (0..rest.parse::<usize>().unwrap()).map(|_| self.reply()).collect(),
            "$" => {
                let length: usize = rest.parse().unwrap();
                let text = self.take(length + 2);
                String::from_utf8_lossy(&text[..length]).into_owned().into()
            }
            _ => panic!("{line:?}"),
        }
    }

    fn ask(&mut self, words: &[&str]) -> Value {
        self.send(&command_of(words));
        self.reply()
    }

    fn line(&mut self) -> String {
        loop {
            if let Some(end) = self.unread.windows(2).position(|two| two == b"\r\n") {
                let line = self.take(end + 2);
                return String::from_utf8(line[..end].to_vec()).unwrap();
            }
            self.more();
        }
    }

    fn take(&mut self, length: usize) -> Vec<u8> {
        while self.unread.len() < length {
            self.more();
        }
        let rest = self.unread.split_off(length);
        std::mem::replace(&mut self.unread, rest)
    }

    fn more(&mut self) {
        let mut piece = [0; 64 * 1024];
        let length = self.socket.read(&mut piece).unwrap();
        assert!(length > 0, "closed after {:?}", String::from_utf8_lossy(&self.unread));
        self.unread.extend_from_slice(&piece[..length]);
    }

    fn is_closed(&mut self) -> bool {
        matches!(self.socket.read(&mut [0; 1]), Ok(0) | Err(_))
    }
}

fn command_of(words: &[&str]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    words.iter().for_each(|word| bytes.extend(format!("${}\r\n{word}\r\n", word.len()).into_bytes()));
    bytes
}

/// The conversations that were recorded from redis-cell.
fn recorded() -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/cl-throttle.jsonl");
    let text = std::fs::read_to_string(&path);
    let text = text.unwrap_or_else(|error| panic!("{}, which this test replays: {error}", path.display()));
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Does the server answer as redis-cell did, under a key of its own?
fn is_as_recorded(client: &mut Client, key: &str, conversation: &Value) -> bool {
    conversation["calls"].as_array().unwrap().iter().all(|call| {
        thread::sleep(Duration::from_millis(call["wait_ms"].as_u64().unwrap_or(0)));
        let words = call["args"].as_array().unwrap().iter().map(|word| word.as_str().unwrap());
        let said = client.ask(&["CL.THROTTLE", key].into_iter().chain(words).collect::<Vec<_>>());
        match call["reply"]["error"].as_str() {
            Some(error) => said == format!("-{error}"),
            None => said == call["reply"],
        }
    })
}

#[test]
fn each_recorded_conversation_goes_as_with_redis_cell() {
    let server = served(&[]);
    let mut client = Client::to(&server);
    for (i, conversation) in recorded().iter().enumerate() {
        let agrees = (0..TRIES).any(|again| is_as_recorded(&mut client, &format!("k{i}-{again}"), conversation));
        assert!(agrees, "{conversation}");
    }
}

#[test]
fn br_188_max_burst_comes_on_top_and_br_017_no_rate_is_too_high_to_count() {
    let server = served(&[]);
    let mut client = Client::to(&server);
    assert_eq!(client.ask(&["CL.THROTTLE", "j", "0", "2", "1"]), Value::from(vec![0, 1, 0, -1, 1]));
    assert_eq!(client.ask(&["CL.THROTTLE", "j", "0", "2", "1"]), Value::from(vec![1, 1, 0, 1, 1]));
    let left = |reply: Value| reply[2].as_i64().unwrap();
    let first = left(client.ask(&["CL.THROTTLE", "k", "1000", "1000", "60"]));
    let second = left(client.ask(&["CL.THROTTLE", "k", "1000", "1000", "60"]));
    assert_eq!(first, 1_000);
    assert!(second == 999 || second == 1_000 && first == 1_000, "60 ms may have gone by");
}

#[test]
fn br_035_the_time_is_the_servers_and_a_sixth_argument_is_refused() {
    let server = served(&[]);
    let mut client = Client::to(&server);
    let reply = client.ask(&["CL.THROTTLE", "k", "9", "10", "60", "1", "9223372036854775807"]);
    assert!(reply.as_str().unwrap().contains("Usage: cl.throttle"), "{reply}");
}

#[test]
fn br_046_a_quantity_of_nothing_looks_and_changes_nothing() {
    let server = served(&[]);
    let mut client = Client::to(&server);
    for left in [10, 10] {
        assert_eq!(client.ask(&["CL.THROTTLE", "k", "9", "10", "60", "0"]), Value::from(vec![0, 10, left, -1, 0]));
    }
}

#[test]
fn br_111_keys_are_bytes_and_each_of_them_counts() {
    let server = served(&[]);
    let mut client = Client::to(&server);
    for key in ["a", "a\u{0}b", "a\r\nb", "\u{1b}[31m"] {
        let reply = client.ask(&["CL.THROTTLE", key, "0", "1", "60"]);
        assert_eq!(reply, Value::from(vec![0, 1, 0, -1, 60]), "{key:?}");
    }
    client.send(b"*5\r\n$11\r\nCL.THROTTLE\r\n$2\r\n\xff\xfe\r\n$1\r\n0\r\n$1\r\n1\r\n$2\r\n60\r\n");
    assert_eq!(client.reply()[0], 0);
}

#[test]
fn br_190_a_hundred_thousand_calls_in_one_write_are_answered_in_their_order() {
    let server = served(&[]);
    let mut client = Client::to(&server);
    let calls = command_of(&["CL.THROTTLE", "k", "99999", "1", "86400"]).repeat(100_000);
    let mut sender = client.socket.try_clone().unwrap();
    let sending = thread::spawn(move || sender.write_all(&calls).unwrap());
    for left in (0..100_000).rev() {
        assert_eq!(client.reply()[2], left);
    }
    sending.join().unwrap();
    let key = "k".repeat(100 * 1024);
    assert_eq!(client.ask(&["CL.THROTTLE", &key, "0", "1", "60"])[0], 0);
}

#[test]
fn a_client_that_reads_nothing_is_not_read_from_and_costs_little() {
    let server = served(&[]);
    let calls = command_of(&["CL.THROTTLE", "k", "0", "1", "86400"]).repeat(1_000);
    // What serving takes at all is there already.
    let mut reader = Client::to(&server);
    for _ in 0..20 {
        reader.send(&calls);
        (0..1_000).for_each(|_| assert!(reader.reply().is_array()));
    }
    let before = resident_kib(server.id());
    let mut client = Client::to(&server);
    client.socket.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
    let mut sent = 0;
    while client.socket.write_all(&calls).is_ok() {
        sent += calls.len();
        assert!(sent < 1 << 30, "it goes on taking what is not answered");
    }
    let grown = resident_kib(server.id()).saturating_sub(before);
    assert!(grown < 8 * 1024, "{grown} KiB for {sent} bytes");
    assert_eq!(Client::to(&server).ask(&["PING"]), "PONG", "nobody else is held up");
}

fn resident_kib(id: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn what_is_no_command_ends_the_connection_with_a_reply() {
    let server = served(&[]);
    for (bytes, why) in
        [("*2147483648\r\n", "invalid multibulk length"), ("*1\r\n$2147483648\r\n", "invalid bulk length")]
    {
        let mut client = Client::to(&server);
        client.send(bytes.as_bytes());
        let reply = client.reply();
        assert!(reply.as_str().unwrap().contains(why), "{reply}");
        assert!(client.is_closed());
    }
}

#[test]
fn the_keys_that_are_denied_most_are_known_by_either_store() {
    let redis = Redis::start(&[]);
    for flags in [&[][..], &["--store", &redis.url(), "--store-deadline", "5s"]] {
        let server = served(&[&["--denied-keys", "10"], flags].concat());
        let mut client = Client::to(&server);
        (0..5).for_each(|_| drop(client.ask(&["CL.THROTTLE", "greedy", "1", "1", "86400"])));
        client.ask(&["THROTTLE", "modest", "2", "2", "86400"]);
        let denied = server.admin("/v1/denied").json();
        let [one] = &denied["denied"].as_array().unwrap()[..] else { panic!("{denied}") };
        let shown = ["policy", "limit", "key", "count"].map(|name| &one[name]);
        assert_eq!(shown, [&json!("resp"), &json!("throttle"), &json!("greedy"), &json!(3)]);
    }
}

#[test]
fn redis_cli_and_redis_benchmark_work_as_they_are() {
    let server = served(&[]);
    let port = server.address.port().to_string();
    let redis_cli = |arguments: &[&str]| {
        let output = Command::new("redis-cli").args(["-p", &port]).args(arguments).output();
        let output = output.unwrap_or_else(|error| panic!("redis-cli: {error}; ./test installs it"));
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(redis_cli(&["cl.throttle", "user", "15", "30", "60"]), "0\n16\n15\n-1\n2\n");
    assert_eq!(redis_cli(&["-3", "throttle", "crab", "5", "5", "60"]), "1\n5\n4\n48\n0\n");
    assert!(redis_cli(&["get", "x"]).contains("ERR unknown command 'get'"));
    let mut benchmark = Command::new("redis-benchmark");
    benchmark.args(["-p", &port, "-q", "-n", "20000", "-P", "16", "-r", "1000"]);
    let output = benchmark.args(["cl.throttle", "key:__rand_int__", "15", "30", "60"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(server.decisions("throttle", "allowed") + server.decisions("throttle", "denied"), 20_002);
}

#[test]
fn redis_py_works_as_it_is() {
    let server = served(&[]);
    let python = "\
import sys, redis
for protocol in (2, 3):
    client = redis.Redis(port=int(sys.argv[1]), protocol=protocol, client_name='me')
    assert client.ping()
    assert client.execute_command('CL.THROTTLE', f'py{protocol}', 15, 30, 60) == [0, 16, 15, -1, 2]
    pipeline = client.pipeline(transaction=False)
    for _ in range(100):
        pipeline.execute_command('CL.THROTTLE', f'pipe{protocol}', 49, 1, 60)
    replies = pipeline.execute()
    assert [reply[0] for reply in replies] == [0] * 50 + [1] * 50, replies
    try:
        client.execute_command('CL.THROTTLE', 'k', 1)
        raise SystemExit('it was not refused')
    except redis.ResponseError as error:
        assert 'Usage: cl.throttle' in str(error), error
print('done')
";
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.tools/python");
    let mut run = Command::new("python3");
    run.env("PYTHONPATH", &tools).args(["-c", python, &server.address.port().to_string()]);
    let output = run.output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(out, "done\n", "{err}\n./test installs redis-py");
}

#[test]
fn a_password_is_asked_for_where_there_is_one() {
    let mut command = deciding(&["--max-keys", "1000"]);
    command.env("TIDEGATE_RESP_PASSWORD", "s3cret");
    let server = Proxy::started(command);
    let mut client = Client::to(&server);
    let calls = [&["CL.THROTTLE", "k", "0", "1", "60"][..], &["PING"], &["CL.THROTTLE", "k"]];
    for call in calls {
        assert_eq!(client.ask(call), "-NOAUTH Authentication required.");
    }
    assert!(client.ask(&["AUTH", "wrong"]).as_str().unwrap().starts_with("-WRONGPASS"));
    assert_eq!(client.ask(&["AUTH", "s3cret"]), "OK");
    assert_eq!(client.ask(&["CL.THROTTLE", "k", "0", "1", "60"])[0], 0);
    assert!(!server.said().contains("s3cret"));
}

#[test]
fn clients_speak_tls_where_there_is_a_certificate() {
    let folder = tempfile::TempDir::new().unwrap();
    let pair = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let file = |name: &str, text: String| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (cert, key) = (file("cert.pem", pair.cert.pem()), file("key.pem", pair.signing_key.serialize_pem()));
    let server = served(&["--tls-cert", &cert, "--tls-key", &key]);
    let port = server.address.port().to_string();
    let mut redis_cli = Command::new("redis-cli");
    redis_cli.args(["--tls", "--cacert", &cert, "-h", "localhost", "-p", &port]);
    let output = redis_cli.args(["cl.throttle", "user", "15", "30", "60"]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "0\n16\n15\n-1\n2\n", "{output:?}");
    let mut clear = Client::to(&server);
    assert_eq!(clear.ask(&["PING"]), "-ERR this port speaks TLS");
    let Run { code, err, .. } = run(&["serve", "--resp", "127.0.0.1:0", "--tls-cert", &cert]);
    assert_eq!(code, Some(2));
    assert!(err.contains("--tls-key"), "{err}");
}

#[test]
fn policies_stand_in_a_file_that_is_read_anew() {
    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join("limits.toml");
    let policy = |limit: &str| {
        format!("[[policies]]\nname = \"api\"\nkey = [\"claim:user\", \"header:x-plan\"]\nlimits = \"{limit}\"\n")
    };
    std::fs::write(&path, policy("3/min")).unwrap();
    let server = Proxy::started(asked_over_http(&["--config", path.to_str().unwrap(), "--denied-keys", "10"]));
    assert_eq!(get(server.address, "/health").text(), "ok\n");
    assert_eq!(get(server.address, "/nothing-here").status, 404);
    let in_force = || server.admin("/v1/policies").json()["policies"][0]["limits"][0]["limit"].clone();
    assert_eq!(in_force(), "3/min");
    std::fs::write(&path, policy("5/min")).unwrap();
    server.wait_for("was read anew");
    assert_eq!(in_force(), "5/min");
    std::fs::write(&path, "nonsense").unwrap();
    server.wait_for("nothing was changed");
    assert_eq!(in_force(), "5/min");
}

#[test]
fn what_only_a_response_could_tell_is_refused_by_name() {
    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join("limits.toml");
    let refusals = [
        ("charge_for = [\"401\"]", "charge_for"),
        ("cost = { response = \"x-tokens\", estimate = 5 }", "cost"),
        ("penalty = { after = \"5/min\", of = [\"401\"], hold = \"15min\" }", "penalty"),
    ];
    for (line, key) in refusals {
        std::fs::write(&path, format!("[[policies]]\nname = \"api\"\nlimits = \"3/min\"\n{line}\n")).unwrap();
        let Run { code, err, .. } = run(&["serve", "--config", path.to_str().unwrap()]);
        assert_eq!(code, Some(2), "{line}: {err}");
        assert!(err.contains("sees none; the proxy does this") && err.contains(":4:"), "{key}: {err}");
    }
    let Run { code, err, .. } = run(&["serve", "--http", "off", "--grpc", "off", "--resp", "off"]);
    assert_eq!((code, err.contains("nobody could ask")), (Some(2), true), "{err}");
}

#[test]
fn several_servers_count_together_in_a_store() {
    let redis = Redis::start(&[]);
    let flags = ["--store", &redis.url(), "--store-deadline", "5s"];
    let (one, other) = (served(&flags), served(&flags));
    let (mut first, mut second) = (Client::to(&one), Client::to(&other));
    let call = ["CL.THROTTLE", "k", "9", "1", "86400"];
    for left in (0..10).rev().step_by(2) {
        assert_eq!(first.ask(&call)[2], left);
        assert_eq!(second.ask(&call)[2], left - 1);
    }
    assert_eq!((&first.ask(&call)[0], &second.ask(&call)[0]), (&1.into(), &1.into()));
    // A pipeline is asked together, and answered in its order.
    first.send(&command_of(&["CL.THROTTLE", "p", "99", "1", "86400"]).repeat(100));
    for left in (0..100).rev() {
        assert_eq!(first.reply()[2], left);
    }
}

#[test]
fn a_stop_answers_what_has_come_and_ends() {
    let mut server = served(&[]);
    let mut client = Client::to(&server);
    assert_eq!(client.ask(&["PING"]), "PONG");
    let since = Instant::now();
    server.signal("TERM");
    assert!(client.is_closed());
    assert!(server.ended().success() && since.elapsed() < PATIENCE);
}

#[test]
fn what_is_wrong_is_told() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let Run { code, err, .. } = run(&["serve", "--resp", &address, "--admin", "off"]);
    assert_eq!(code, Some(1));
    assert!(err.contains(&format!("cannot listen on {address}")) && err.contains("--resp"), "{err}");
    let mut empty = command(&["serve", "--resp", "127.0.0.1:0"]);
    let output = empty.env("TIDEGATE_RESP_PASSWORD", "").output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}
