//! What a decision costs when the store need not be asked: under a flood of denied keys, with tokens on lease, and while
//! the store is away.
//!
//! ```text
//! cargo bench -p tidegate --features redis --bench shared
//! ```
//!
//! One thread asks; what is not known here is asked for beside it. The store is a real Redis on the loopback, whose own
//! count of the calls it got says how much reached it.
//! Exact mode beside it is what one thread decides when every decision is a call, 64 tasks sharing a connection.

use std::net::TcpListener;
use std::num::NonZeroU32;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tidegate::redis::{RedisOptions, RedisStore};
use tidegate::{
    Charge, Decision, FailureMode, Handling, Limit, LimitId, Shared, SharedOptions, Sharing, Source, Store as _,
    Verdict,
};
use tokio::runtime::{Builder, Runtime};

const KEYS: usize = 1_000;
const TURN: Duration = Duration::from_secs(3);
/// Where the deadline is not what is measured.
const PATIENT: Duration = Duration::from_secs(1);

fn main() {
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
    denied_flood(&runtime);
    leased(&runtime);
    for mode in ["local", "allow"] {
        without_store(&runtime, mode.parse().expect("a mode"));
    }
}

/// `1/s burst 5` on a thousand keys, asked as fast as it goes.
fn denied_flood(runtime: &Runtime) {
    let server = Server::start();
    let shared = shared(runtime, &server, PATIENT);
    let flood = Knock::new(&shared, "1/s burst 5", Handling::default());
    flood.for_a_while(runtime, Duration::from_secs(1));
    let before = server.calls();
    let made = flood.for_a_while(runtime, TURN);
    let share = 100.0 * (server.calls() - before) as f64 / made.asked as f64;
    println!("denied flood: {:.1} million a second, {share:.3} % reached the server", made.millions_per_s());
}

/// A thousand hot keys, leased and exact.
fn leased(runtime: &Runtime) {
    let server = Server::start();
    let shared = shared(runtime, &server, PATIENT);
    let most = NonZeroU32::new(200_000).expect("not zero");
    let handling = Handling::default().with_sharing(Sharing::Leased { most });
    let leased = Knock::new(&shared, "1000000/s burst 1000000", handling);
    leased.for_a_while(runtime, Duration::from_secs(2));
    let before = server.calls();
    let made = leased.for_a_while(runtime, TURN);
    let share = 100.0 * (server.calls() - before) as f64 / made.asked as f64;
    let exact = exact_millions_per_s(runtime, &shared);
    println!(
        "leased: {:.1} million a second, {:.1} % by leases, {share:.3} calls per hundred; {:.0} times exact mode",
        made.millions_per_s(),
        100.0 * made.by_lease as f64 / made.decisions as f64,
        made.millions_per_s() / exact
    );
}

fn exact_millions_per_s(runtime: &Runtime, shared: &Shared) -> f64 {
    let exact = Knock::new(shared, "1000000/s burst 1000000", Handling::default());
    let start = Instant::now();
    let task = |first: usize| {
        let exact = &exact;
        async move {
            let mut made = 0_u64;
            while start.elapsed() < TURN {
                assert!(exact.ask(first + made as usize * 64).await.allowed);
                made += 1;
            }
            made
        }
    };
    let made: u64 = runtime.block_on(futures_util::future::join_all((0..64).map(task))).into_iter().sum();
    made as f64 / start.elapsed().as_secs_f64() / 1e6
}

/// The server is frozen: what does a decision cost a second later?
fn without_store(runtime: &Runtime, mode: FailureMode) {
    let server = Server::start();
    let shared = shared(runtime, &server, RedisOptions::default().deadline);
    let knock = Knock::new(&shared, "100/s", Handling::default().with_on_failure(mode));
    knock.for_a_while(runtime, Duration::from_millis(100));
    server.freeze();
    knock.for_a_while(runtime, Duration::from_secs(1));
    let made = knock.for_a_while(runtime, TURN);
    println!("store away, {mode}: {:.0} ns a decision", 1e3 / made.millions_per_s());
}

struct Knock<'a> {
    shared: &'a Shared,
    charge: Charge<'static>,
    keys: Vec<String>,
}

#[derive(Default)]
struct Made {
    asked: u64,
    /// Answered at once.
    decisions: u64,
    by_lease: u64,
    seconds: f64,
}

impl Made {
    fn millions_per_s(&self) -> f64 {
        self.decisions as f64 / self.seconds / 1e6
    }
}

impl<'a> Knock<'a> {
    fn new(shared: &'a Shared, limit: &str, handling: Handling) -> Self {
        let quota = limit.parse::<Limit>().expect("a limit").quota().expect("with a quota");
        let charge = Charge::new(LimitId::of("bench", limit), quota, b"").with_handling(handling);
        Self { shared, charge, keys: (0..KEYS).map(|i| format!("client-{i:09}")).collect() }
    }

    fn charge(&self, i: usize) -> Charge<'_> {
        Charge { key: self.keys[i % KEYS].as_bytes(), ..self.charge }
    }

    async fn ask(&self, i: usize) -> Verdict {
        ask(self.shared, self.charge(i)).await
    }

    /// Asks on the other thread, as the tasks of a server would: nobody else waits for the answer.
    fn ask_beside(&self, runtime: &Runtime, i: usize) {
        let (shared, charge, key) = (self.shared.clone(), self.charge, self.keys[i % KEYS].clone());
        runtime.spawn(async move { ask(&shared, Charge { key: key.as_bytes(), ..charge }).await });
    }

    /// One thread asks about one key after the other, and counts what is answered at once.
    fn for_a_while(&self, runtime: &Runtime, span: Duration) -> Made {
        let (start, mut made) = (Instant::now(), Made::default());
        while start.elapsed() < span {
            for _ in 0..1_000 {
                let i = made.asked as usize;
                let charge = self.charge(i);
                let mut decisions = [Decision::unmade(&charge.quota)];
                made.asked += 1;
                match self.shared.decide_now(&[charge], &mut decisions) {
                    Some(verdict) => {
                        made.decisions += 1;
                        made.by_lease += u64::from(verdict.expect("it decides").source == Source::Lease);
                    }
                    None => self.ask_beside(runtime, i),
                }
            }
        }
        made.seconds = start.elapsed().as_secs_f64();
        made
    }
}

async fn ask(shared: &Shared, charge: Charge<'_>) -> Verdict {
    let mut decisions = [Decision::unmade(&charge.quota)];
    shared.decide(&[charge], &mut decisions).await.expect("it decides")
}

fn shared(runtime: &Runtime, server: &Server, deadline: Duration) -> Shared {
    let _guard = runtime.enter();
    let mut options = RedisOptions::default();
    options.deadline = deadline;
    let store = RedisStore::new(&format!("redis://127.0.0.1:{}", server.port), options).expect("a store");
    Shared::new(store, SharedOptions::default())
}

/// A Redis of its own, ended when dropped.
struct Server {
    child: Child,
    port: u16,
}

impl Server {
    fn start() -> Self {
        let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a free port").port();
        let child = Command::new("redis-server")
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"])
            .stdout(Stdio::null())
            .spawn()
            .expect("redis-server is installed");
        let server = Self { child, port };
        while server.cli(&["PING"]).trim() != "PONG" {
            std::thread::sleep(Duration::from_millis(10));
        }
        server
    }

    fn cli(&self, arguments: &[&str]) -> String {
        let port = self.port.to_string();
        let out = Command::new("redis-cli").args(["-p", &port]).args(arguments).stderr(Stdio::null()).output();
        String::from_utf8_lossy(&out.expect("redis-cli is installed").stdout).into_owned()
    }

    /// Scripts that were called.
    fn calls(&self) -> u64 {
        let stats = self.cli(&["INFO", "commandstats"]);
        let line = stats.lines().find_map(|line| line.strip_prefix("cmdstat_evalsha:calls="));
        line.and_then(|rest| rest.split(',').next()?.parse().ok()).unwrap_or(0)
    }

    fn freeze(&self) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-STOP", &id]).status().expect("kill runs").success());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
