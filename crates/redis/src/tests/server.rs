//! Real servers.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use redis::ConnectionLike as _;
use tempfile::TempDir;

pub(super) use self::free_port::free_port;

#[path = "free_port.rs"]
mod free_port;

/// The programs that the tests are run against; `./test` installs all of them.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Redis7,
    Redis8,
    Valkey9,
}

impl Kind {
    pub(super) const ALL: [Self; 3] = [Self::Redis7, Self::Redis8, Self::Valkey9];

    pub(super) fn program(self) -> PathBuf {
        let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.tools");
        let program = match self {
            Self::Redis7 => PathBuf::from("/usr/bin/redis-server"),
            Self::Redis8 => tools.join("redis8/redis-server"),
            Self::Valkey9 => tools.join("valkey9/valkey-server"),
        };
        assert!(program.exists(), "{} is missing: run ./test, which installs it", program.display());
        program
    }
}

/// A server of its own folder and port, ended when dropped.
pub(super) struct Server {
    child: Child,
    port: u16,
    kind: Kind,
    folder: TempDir,
    options: Vec<String>,
}

impl Server {
    pub(super) fn start(kind: Kind) -> Self {
        Self::start_with(kind, &[])
    }

    pub(super) fn start_with(kind: Kind, options: &[&str]) -> Self {
        let port = free_port();
        let folder = TempDir::new().unwrap();
        let options: Vec<_> = options.iter().map(|option| (*option).to_owned()).collect();
        let child = spawn(kind, port, folder.path(), &options);
        let server = Self { child, port, kind, folder, options };
        server.wait();
        server
    }

    /// Sends one command and gives its answer.
    pub(super) fn ask(&self, words: &[&str]) -> redis::Value {
        self.try_to_ask(words).unwrap_or_else(|error| panic!("{words:?}: {error}"))
    }

    pub(super) fn try_to_ask(&self, words: &[&str]) -> redis::RedisResult<redis::Value> {
        let mut command = redis::cmd(words[0]);
        command.arg(&words[1..]);
        self.connection().req_command(&command)?.extract_error()
    }

    /// The same, where the answer is a text.
    pub(super) fn text(&self, words: &[&str]) -> String {
        redis::from_redis_value(self.ask(words)).unwrap()
    }

    pub(super) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port())
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    pub(super) fn connection(&self) -> redis::Connection {
        redis::Client::open(self.url()).unwrap().get_connection().unwrap()
    }

    pub(super) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub(super) fn start_again(&mut self) {
        self.child = spawn(self.kind, self.port, self.folder.path(), &self.options);
        self.wait();
    }

    /// Stops the process without ending it: its sockets stay open, and nothing answers.
    pub(super) fn freeze(&self) {
        self.signal("STOP");
    }

    pub(super) fn thaw(&self) {
        self.signal("CONT");
    }

    fn signal(&self, signal: &str) {
        let done = Command::new("kill").args([format!("-{signal}"), self.child.id().to_string()]).status().unwrap();
        assert!(done.success());
    }

    fn wait(&self) {
        for _ in 0..500 {
            if redis::Client::open(self.url()).and_then(|client| client.get_connection()).is_ok() {
                return;
            }
            sleep(Duration::from_millis(10));
        }
        panic!("{:?} did not start", self.kind);
    }
}

/// Asks again and again, until it is so.
pub(super) fn until(what: &str, is_so: impl Fn() -> bool) {
    for _ in 0..1_000 {
        if is_so() {
            return;
        }
        sleep(Duration::from_millis(20));
    }
    panic!("{what}: it never came to that");
}

/// Waits until the replica has heard all that its primary has told.
pub(super) fn in_step(primary: &Server, replica: &Server) {
    let offset = |server: &Server| {
        let told = server.text(&["INFO", "replication"]);
        told.lines().find_map(|line| line.strip_prefix("master_repl_offset:")).map(str::to_owned)
    };
    until("the replica has heard all", || offset(primary) == offset(replica));
}

fn spawn(kind: Kind, port: u16, folder: &Path, options: &[String]) -> Child {
    let mut command = Command::new(kind.program());
    command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]);
    command.arg("--dir").arg(folder).args(options).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap()
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
