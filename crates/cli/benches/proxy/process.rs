//! Servers as processes of their own, ended when they are dropped, also in a panic.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, BufRead as _, BufReader};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// A server that does not start within this time does not start.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(10);

/// A running server: one process, which does all the work.
pub(crate) struct Server {
    child: Child,
    pub(crate) address: SocketAddr,
}

impl Server {
    /// Starts a program that was told to listen on `address`, and waits until it does.
    pub(crate) fn start(mut command: Command, address: SocketAddr) -> io::Result<Self> {
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn()?;
        let mut server = Self { child, address };
        let start = Instant::now();
        while TcpStream::connect(address).is_err() {
            if let Some(status) = server.child.try_wait()? {
                return Err(io::Error::other(format!("{command:?} ended with {status}")));
            }
            if start.elapsed() > PATIENCE {
                return Err(io::Error::other(format!("{command:?} does not listen on {address}")));
            }
            thread::sleep(PAUSE);
        }
        Ok(server)
    }

    /// Starts a program that chooses its port itself, and says `http://ADDRESS`, or `https://ADDRESS`, in the first line on standard error.
    pub(crate) fn start_announced(mut command: Command) -> io::Result<Self> {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
        let mut said = String::new();
        let mut lines = child.stderr.take().map(BufReader::new).ok_or(io::ErrorKind::BrokenPipe)?;
        lines.read_line(&mut said)?;
        // What it says later is read, so that it never waits for a reader.
        thread::spawn(move || io::copy(&mut lines, &mut io::sink()));
        let address = said.split("://").nth(1).and_then(|address| address.trim().parse().ok());
        let server = Self { child, address: address.unwrap_or_else(|| (Ipv4Addr::UNSPECIFIED, 0).into()) };
        match address {
            Some(_) => Ok(server),
            None => Err(io::Error::other(format!("{command:?} said {said}"))),
        }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// The processor time that all its threads have taken since it started, in user space and in the kernel.
    ///
    /// The kernel's scheduler counts it in nanoseconds; where it does not tell, the ticks of 10 ms serve.
    pub(crate) fn processor_time(&self) -> io::Result<Duration> {
        let folder = Path::new("/proc").join(self.id().to_string());
        let mut total = Duration::ZERO;
        for thread in fs::read_dir(folder.join("task"))? {
            let thread = thread?.path();
            total += match fs::read_to_string(thread.join("schedstat")) {
                Ok(text) => nanoseconds(&text),
                Err(_) => ticks(&fs::read_to_string(thread.join("stat"))?),
            }
            .ok_or(io::ErrorKind::InvalidData)?;
        }
        Ok(total)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already, and then there is nothing to end.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// proc(5): the first number of `schedstat` is the time spent on a processor.
fn nanoseconds(schedstat: &str) -> Option<Duration> {
    schedstat.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
}

/// proc(5): fields 14 and 15 of `stat` are utime and stime; the second field may hold blanks, and ends with a bracket.
fn ticks(stat: &str) -> Option<Duration> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(Duration::from_millis((user + system) * 10))
}

/// An address of the loopback that nobody listens on.
pub(crate) fn free_address() -> io::Result<SocketAddr> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()
}

/// The version that a program tells of itself, if it is installed.
pub(crate) fn version(program: impl AsRef<OsStr>, argument: &str) -> Option<String> {
    let output = Command::new(program).arg(argument).output().ok()?;
    let text =
        String::from_utf8_lossy(if output.stdout.is_empty() { &output.stderr } else { &output.stdout }).into_owned();
    let is_number = |word: &&str| word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.');
    text.split([' ', '/', '-', '\n']).find(is_number).map(str::to_owned)
}
