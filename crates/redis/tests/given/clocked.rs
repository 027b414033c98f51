//! A server whose clock the test sets: the program as it is, under Debian's `libfaketime`, which reads the time from a
//! file. So the very script that ships is tested against a clock that steps.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use tempfile::TempDir;

use crate::server::{Kind, free_port};

/// The first of January 2026, in seconds: where the clocks of these servers begin.
const EPOCH_S: u64 = 1_767_225_600;

/// The library that stands between a program and the clock; the one for programs of several threads.
pub(crate) fn library() -> PathBuf {
    let folders = fs::read_dir("/usr/lib").unwrap().map(|folder| folder.unwrap().path());
    let library = folders.map(|folder| folder.join("faketime/libfaketimeMT.so.1")).find(|path| path.exists());
    library.expect("libfaketime is missing: run ./test, which installs it")
}

/// A server that stands at the time it was last set to.
pub(crate) struct Clocked {
    child: Child,
    port: u16,
    folder: TempDir,
}

impl Clocked {
    /// A server at microsecond 0 of its clock.
    pub(crate) fn start() -> Self {
        let folder = TempDir::new().unwrap();
        write_time(folder.path(), 0);
        let port = free_port();
        // Redis 7 and the library both want to be first at the allocator, so it is Redis 8.
        let mut command = Command::new(Kind::Redis8.program());
        command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""]).current_dir(folder.path());
        command.env("LD_PRELOAD", library()).env("FAKETIME_TIMESTAMP_FILE", folder.path().join("time"));
        command.env("FAKETIME_NO_CACHE", "1").env("FAKETIME_DONT_FAKE_MONOTONIC", "1").env("FAKETIME_FMT", "%s");
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let server = Self { child, port, folder };
        server.wait();
        server
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    pub(crate) fn connection(&self) -> redis::Connection {
        redis::Client::open(self.url()).unwrap().get_connection().unwrap()
    }

    /// Sets the clock, forwards or backwards. Microseconds.
    pub(crate) fn set_us(&self, us: u64) {
        write_time(self.folder.path(), us);
    }

    pub(crate) fn set_ms(&self, ms: u64) {
        self.set_us(ms * 1_000);
    }

    fn wait(&self) {
        for _ in 0..500 {
            if redis::Client::open(self.url()).and_then(|client| client.get_connection()).is_ok() {
                return;
            }
            sleep(Duration::from_millis(10));
        }
        panic!("the server did not start");
    }
}

/// The server's time at microsecond `us` of its clock, in seconds, as a caller would send it.
pub(crate) fn caller_s(us: u64) -> String {
    format!("{}.{:06}", EPOCH_S + us / 1_000_000, us % 1_000_000)
}

fn write_time(folder: &Path, us: u64) {
    // In the middle of the microsecond, since the library computes the fraction as a double. Replaced, so that the
    // server never reads half of it.
    fs::write(folder.join("next"), format!("{}5\n", caller_s(us))).unwrap();
    fs::rename(folder.join("next"), folder.join("time")).unwrap();
}

impl Drop for Clocked {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
