//! Drives a server with calls, and asks it for its own account of its processor time.

use std::time::{Duration, Instant};

use redis::cmd;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};

use crate::calls::Contestant;
use crate::reply;
use crate::server::Server;

const CONNECTIONS: usize = 50;
/// Calls that are sent before a reply is waited for.
const DEPTH: usize = 16;

pub(crate) struct Driver<'a> {
    server: &'a Server,
    runtime: Runtime,
}

impl<'a> Driver<'a> {
    pub(crate) fn new(server: &'a Server) -> Self {
        Self { server, runtime: Builder::new_current_thread().enable_all().build().expect("a runtime") }
    }

    /// Microseconds of the server's processor time for each decision.
    pub(crate) fn turn(&self, contestant: &Contestant, turn: Duration) -> f64 {
        let before = self.processor_us();
        let calls = self.calls(contestant, turn);
        (self.processor_us() - before) / (calls as f64 * contestant.decisions_per_call)
    }

    /// The calls that were answered.
    pub(crate) fn calls(&self, contestant: &Contestant, turn: Duration) -> u64 {
        let until = Instant::now() + turn;
        let drive = |i| drive(self.server.port(), contestant, i * 37, until);
        let driving = futures_util::future::join_all((0..CONNECTIONS).map(drive));
        self.runtime.block_on(driving).into_iter().sum()
    }

    fn processor_us(&self) -> f64 {
        let info: String = cmd("INFO").arg("cpu").query(&mut self.server.connection()).expect("it answers");
        let seconds = |name: &str| {
            let line = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            line.and_then(|seconds| seconds.trim().parse::<f64>().ok()).expect("an account")
        };
        1e6 * (seconds("used_cpu_user") + seconds("used_cpu_sys"))
    }
}

/// Sends calls, from the `first` on, on a connection of its own. Gives how many were answered.
async fn drive(port: u16, contestant: &Contestant, first: usize, until: Instant) -> u64 {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.expect("the server listens");
    stream.set_nodelay(true).expect("a socket");
    let calls = &contestant.calls;
    let (mut next, mut answered, mut out, mut buffer) = (first, 0, Vec::new(), Vec::new());
    while Instant::now() < until {
        out.clear();
        for _ in 0..DEPTH {
            out.extend_from_slice(&calls[next % calls.len()]);
            next += 1;
        }
        stream.write_all(&out).await.expect("the server reads");
        buffer.clear();
        let mut missing = DEPTH;
        let mut taken = 0;
        while missing > 0 {
            assert!(stream.read_buf(&mut buffer).await.expect("the server answers") > 0, "it hung up");
            while let Some(length) = reply::length(&buffer[taken..]).filter(|_| missing > 0) {
                (taken, missing) = (taken + length, missing - 1);
            }
        }
        answered += DEPTH as u64;
    }
    answered
}
