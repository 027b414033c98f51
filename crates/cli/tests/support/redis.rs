//! A real Redis server on a free port, in a folder of its own, ended with the test.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::{PATIENCE, free_address};

/// Where Debian puts it.
const PROGRAM: &str = "/usr/bin/redis-server";

pub(crate) struct Redis {
    child: Child,
    pub(crate) address: SocketAddr,
    _folder: TempDir,
}

impl Redis {
    pub(crate) fn start(options: &[&str]) -> Self {
        Self::start_at(free_address(), options)
    }

    pub(crate) fn start_at(address: SocketAddr, options: &[&str]) -> Self {
        let folder = TempDir::new().unwrap();
        let mut command = Command::new(PROGRAM);
        command.args([
            "--bind",
            "127.0.0.1",
            "--port",
            &address.port().to_string(),
            "--save",
            "",
            "--appendonly",
            "no",
        ]);
        command.arg("--dir").arg(folder.path()).args(options).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().unwrap_or_else(|error| panic!("{PROGRAM}: {error}; ./test installs it"));
        let server = Self { child, address, _folder: folder };
        let since = Instant::now();
        while !server.answers() {
            assert!(since.elapsed() < PATIENCE, "the server does not start");
            sleep(Duration::from_millis(10));
        }
        server
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://{}", self.address)
    }

    /// Stops the process without ending it: its sockets stay open, and nothing answers.
    pub(crate) fn freeze(&self) {
        super::freeze(self.child.id());
    }

    pub(crate) fn thaw(&self) {
        self.signal("CONT");
    }

    fn signal(&self, name: &str) {
        let kill = format!("kill -{name} {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success(), "{kill}");
    }

    /// Is it there? A server that wants a password says so, which is an answer.
    fn answers(&self) -> bool {
        let Ok(mut socket) = TcpStream::connect_timeout(&self.address, PATIENCE) else { return false };
        let mut answer = [0; 1];
        socket.write_all(b"PING\r\n").and_then(|()| socket.read_exact(&mut answer)).is_ok()
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
