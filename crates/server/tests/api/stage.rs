//! A decision server and a client before it.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::{Value, json};
use tidegate::policy::{ClientAddress, Policies, Policy};
use tidegate::{Algorithm, Clock as _, Gate, Handling, ManualClock, Memory, TableOptions, Time};
use tidegate_policy::limitador;
use tidegate_server::{
    ApiSetup, Callers, DecisionServer, DecisionSetup, DeskSetup, Drain, FaceListeners, GrpcSetup, OperationSetup,
    RateLimitSetup, RespSetup, StoreLevel, bind,
};

/// Nothing that a test waits for takes this long.
const PATIENCE: Duration = Duration::from_secs(30);

/// A decision server that serves until the test ends.
pub(crate) struct Stage {
    pub(crate) clock: ManualClock,
    address: SocketAddr,
    server: Arc<DecisionServer<Memory<ManualClock>>>,
    drain: Drain,
    thread: Option<JoinHandle<std::io::Result<()>>>,
}

/// What was answered.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: Value,
}

impl Stage {
    /// One without policies, for this machine.
    pub(crate) fn plain() -> Self {
        Self::new(Vec::new(), Callers::Local)
    }

    pub(crate) fn new(policies: Vec<Policy>, callers: Callers) -> Self {
        let (clock, drain) = (ManualClock::new(), Drain::new());
        clock.set(Time::from_secs(1_000_000_000));
        let (time, policies) = (clock.clone(), Policies::new(ClientAddress::default(), policies).unwrap());
        let server = Arc::new(DecisionServer::new(DecisionSetup {
            desk: DeskSetup::new(
                Gate::new(policies, Memory::new(TableOptions::with_keys(4_096), clock.clone())),
                StoreLevel::of_memory,
                Arc::new(move || time.now()),
                OperationSetup::of_memory(),
            ),
            handling: Handling::default(),
            http: ApiSetup { callers, ..ApiSetup::default() },
            grpc: GrpcSetup::default(),
            rate_limits: RateLimitSetup::default(),
            resp: RespSetup::default(),
        }));
        let listener = bind("127.0.0.1:0".parse().unwrap(), NonZeroUsize::MIN).unwrap().remove(0);
        let address = listener.local_addr().unwrap();
        let (serving, until) = (Arc::clone(&server), drain.clone());
        let listeners = vec![FaceListeners { http: vec![listener.into()], ..FaceListeners::default() }];
        let thread = thread::spawn(move || serving.run(listeners, None, &until));
        Self { clock, address, server, drain, thread: Some(thread) }
    }

    /// Puts limits of limitador in force.
    pub(crate) fn import(&self, limits: &str) {
        let limits = limitador::read("limits.yaml", limits, Algorithm::FixedWindow, Handling::default()).unwrap();
        self.server.desk().import_limits(limits);
    }

    /// Asks with a body of JSON.
    pub(crate) fn post(&self, target: &str, body: &Value) -> Reply {
        self.call("POST", target, "content-type: application/json\r\n", body.to_string().as_bytes())
    }

    /// The decision of a call of `/v1/check`, which is answered.
    #[track_caller]
    pub(crate) fn check(&self, body: &Value) -> Value {
        let reply = self.post("/v1/check", body);
        assert_eq!(reply.status, 200, "{}", reply.body);
        reply.body
    }

    /// The decision under one limit.
    #[track_caller]
    pub(crate) fn take(&self, limit: &str, key: &str, cost: u64) -> Value {
        self.check(&json!({ "charges": [{ "limit": limit, "key": key, "cost": cost }] }))
    }

    pub(crate) fn call(&self, method: &str, target: &str, fields: &str, body: &[u8]) -> Reply {
        let length = if body.is_empty() { String::new() } else { format!("content-length: {}\r\n", body.len()) };
        let head =
            format!("{method} {target} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{fields}{length}\r\n");
        Reply::read(&self.say(&[head.as_bytes(), body].concat()))
    }

    /// All that is answered to these bytes.
    pub(crate) fn say(&self, bytes: &[u8]) -> Vec<u8> {
        let mut socket = TcpStream::connect(self.address).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        // Who is refused early is not read to the end.
        let _ = socket.write_all(bytes);
        let mut answer = Vec::new();
        let _ = socket.read_to_end(&mut answer);
        answer
    }

    pub(crate) fn advance(&self, span: Duration) {
        self.clock.advance(span);
    }

    /// The value of one line of the metrics.
    pub(crate) fn metric(&self, series: &str) -> u64 {
        let text = self.server.desk().metrics().text().unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("no {series} in\n{text}")).parse().unwrap()
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.drain.start();
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(thread::panicking() || ended.is_ok_and(|ended| ended.is_ok()));
        }
    }
}

impl Reply {
    #[track_caller]
    pub(crate) fn read(bytes: &[u8]) -> Self {
        let text = std::str::from_utf8(bytes).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {text:?}"));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap();
        Self { status, head: head.to_owned(), body: serde_json::from_str(body).unwrap_or(Value::Null) }
    }

    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(field, _)| field.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// What a refusal says.
    #[track_caller]
    pub(crate) fn detail(&self, status: u16) -> &str {
        assert_eq!(
            (self.status, self.field("content-type")),
            (status, Some("application/problem+json")),
            "{}",
            self.body
        );
        assert_eq!(self.body["status"], status);
        self.body["detail"].as_str().unwrap()
    }
}
