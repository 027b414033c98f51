//! What a reload costs: a file with a thousand policies is put in force again and again, while requests come in at an
//! even pace.
//!
//! ```text
//! cargo bench -p tidegate-cli --bench reload     # half a minute
//! ```
//!
//! Rounds with reloads and rounds without take turns on the same process, so that what else the machine does shows in
//! both. A reload's time is counted from the signal until the metrics say that it is in force.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const POLICIES: usize = 1_000;
const RELOADS: usize = 20;
/// A request is planned this often, on a connection of its own pace.
const PACE: Duration = Duration::from_micros(500);
const PAUSE: Duration = Duration::from_millis(300);
const PATIENCE: Duration = Duration::from_secs(10);

/// The targets.
const RELOAD_MAX: Duration = Duration::from_millis(100);
const SLOWER_MAX: Duration = Duration::from_millis(5);

fn main() -> io::Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("policies.toml");
    fs::write(&file, policies(0))?;
    let proxy = Proxy::start(&file)?;
    println!("{POLICIES} policies, a request each {PACE:?}, {RELOADS} rounds with a reload and as many without");

    let (mut times, mut reloading, mut usual) = (Vec::new(), Vec::new(), Vec::new());
    for round in 1..=RELOADS {
        usual.push(worst_while(proxy.address, || {
            thread::sleep(PAUSE);
            Ok(())
        })?);
        fs::write(&file, policies(round))?;
        reloading.push(worst_while(proxy.address, || {
            times.push(proxy.reload()?);
            thread::sleep(PAUSE / 2);
            Ok(())
        })?);
    }
    let (time, slow, usual) = (median(times), median(reloading), median(usual));
    println!("a reload takes {time:?} (at most {RELOAD_MAX:?}: {})", met(time <= RELOAD_MAX));
    let slower = slow.saturating_sub(usual);
    println!(
        "the slowest request of a round with a reload took {slow:?}, of one without {usual:?}: {slower:?} more (at most \
         {SLOWER_MAX:?}: {})",
        met(slower <= SLOWER_MAX)
    );
    Ok(())
}

/// A thousand policies, each for a path of its own; `generation` is in one of the limits, so that each file is another.
fn policies(generation: usize) -> String {
    let mut text = String::new();
    for i in 0..POLICIES {
        // Writing to memory does not fail.
        let _ = writeln!(
            text,
            "[[policies]]\nname = \"route-{i}\"\nmatch = {{ path = \"/route-{i}/*\" }}\nlimits = [\"{}/s\", \"{}/h\"]\n",
            1_000_000 - generation,
            100_000 + i
        );
    }
    text
}

/// The slowest request while `then` does what it does, counted from the instant for which it was planned.
fn worst_while(address: SocketAddr, then: impl FnOnce() -> io::Result<()>) -> io::Result<Duration> {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let asking = scope.spawn(|| {
            let mut connection = connect(address)?;
            let (mut planned, mut worst) = (Instant::now(), Duration::ZERO);
            while !is_over.load(Ordering::Relaxed) {
                planned += PACE;
                thread::sleep(planned.saturating_duration_since(Instant::now()));
                ask(&mut connection, "/route-500/x")?;
                worst = worst.max(planned.elapsed());
            }
            Ok(worst)
        });
        let done = then();
        is_over.store(true, Ordering::Relaxed);
        let worst = asking.join().unwrap_or_else(|_| Err(io::Error::other("the caller panicked")));
        done.and(worst)
    })
}

fn connect(address: SocketAddr) -> io::Result<BufReader<TcpStream>> {
    let socket = TcpStream::connect(address)?;
    socket.set_nodelay(true)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    Ok(BufReader::new(socket))
}

/// Asks, and gives the body.
fn ask(connection: &mut BufReader<TcpStream>, path: &str) -> io::Result<String> {
    write!(connection.get_mut(), "GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n")?;
    let (mut length, mut line) = (0, String::new());
    loop {
        line.clear();
        connection.read_line(&mut line)?;
        match line.trim_end().split_once(": ") {
            Some(("content-length", text)) => length = text.parse().map_err(io::Error::other)?,
            Some(_) => {}
            None if line.trim_end().is_empty() => break,
            None => {}
        }
    }
    let mut body = vec![0; length];
    connection.read_exact(&mut body)?;
    String::from_utf8(body).map_err(io::Error::other)
}

/// The program, which is ended with this.
struct Proxy {
    child: Child,
    address: SocketAddr,
    admin: SocketAddr,
}

impl Proxy {
    fn start(file: &Path) -> io::Result<Self> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
        command.args(["proxy", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--config"]).arg(file);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
        let lines = child.stderr.take().map(BufReader::new).ok_or(io::ErrorKind::BrokenPipe)?;
        let mut addresses = Vec::new();
        let mut lines = lines.lines();
        while addresses.len() < 2 {
            let line = lines.next().ok_or(io::ErrorKind::UnexpectedEof)??;
            let address =
                line.split("http://").nth(1).and_then(|rest| rest.split(['/', ' ']).next()?.parse::<SocketAddr>().ok());
            addresses.extend(address);
        }
        // What it says later is read, so that it never waits for a reader.
        thread::spawn(move || lines.for_each(drop));
        Ok(Self { child, address: addresses[0], admin: addresses[1] })
    }

    /// Makes it read its file; gives the time until that is in force.
    fn reload(&self) -> io::Result<Duration> {
        let before = self.reloads()?;
        let start = Instant::now();
        Command::new("kill").arg("-HUP").arg(self.child.id().to_string()).status()?;
        while self.reloads()? == before {
            if start.elapsed() > PATIENCE {
                return Err(io::Error::other("the file was not put in force"));
            }
            thread::sleep(Duration::from_millis(1));
        }
        Ok(start.elapsed())
    }

    fn reloads(&self) -> io::Result<u64> {
        let mut connection = connect(self.admin)?;
        let body = ask(&mut connection, "/metrics")?;
        let line = body.lines().find(|line| line.starts_with(RELOADS_METRIC));
        let count = line.and_then(|line| line.rsplit(' ').next()?.parse().ok());
        count.ok_or_else(|| io::Error::other("the metrics do not count reloads"))
    }
}

const RELOADS_METRIC: &str = "tidegate_config_reloads_total{result=\"applied\"}";

impl Drop for Proxy {
    fn drop(&mut self) {
        // It is gone either way.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn met(is_met: bool) -> &'static str {
    if is_met { "met" } else { "missed" }
}
