//! Services that sentinels watch.

use std::process::{Child, Command, Stdio};

use redis::ConnectionLike as _;
use tempfile::TempDir;

use super::server::{Kind, Server, free_port, until};

/// A sentinel, which writes into its own configuration.
pub(super) struct Sentinel {
    child: Child,
    port: u16,
    _folder: TempDir,
}

impl Sentinel {
    /// Watches `primary` as the service `main`, and decides alone.
    pub(super) fn start(primary: &Server) -> Self {
        let (port, folder) = (free_port(), TempDir::new().unwrap());
        let path = folder.path().join("sentinel.conf");
        let lines = [
            format!("port {port}\nbind 127.0.0.1\ndir {}", folder.path().display()),
            format!("sentinel monitor main 127.0.0.1 {} 1", primary.port()),
            "sentinel down-after-milliseconds main 500\nsentinel failover-timeout main 2000\n".to_owned(),
        ];
        std::fs::write(&path, lines.join("\n")).unwrap();
        let mut command = Command::new(Kind::Redis7.program());
        let child = command.arg(&path).arg("--sentinel").stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let sentinel = Self { child, port, _folder: folder };
        until("the sentinel starts", || sentinel.connection().is_ok());
        sentinel
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    fn connection(&self) -> redis::RedisResult<redis::Connection> {
        redis::Client::open(format!("redis://127.0.0.1:{}", self.port)).unwrap().get_connection()
    }

    pub(super) fn ask(&self, words: &[&str]) -> redis::RedisResult<redis::Value> {
        let mut command = redis::cmd("SENTINEL");
        self.connection()?.req_command(command.arg(words))?.extract_error()
    }
}

impl Drop for Sentinel {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
