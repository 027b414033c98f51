//! A real HAProxy, started on a port that was free, and ended with the test.

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::support::{PATIENCE, free_address};

/// Where `./test` puts it.
fn program() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../.tools/haproxy/haproxy"))
}

pub(crate) struct Haproxy {
    child: Child,
    address: SocketAddr,
    _folder: TempDir,
}

impl Haproxy {
    /// It answers 200 by itself, as long as a client's calls in this period are not more than so many.
    pub(crate) fn limiting(most: u32, period: &str) -> Self {
        let (address, folder) = (free_address(), TempDir::new().unwrap());
        let path = folder.path().join("haproxy.cfg");
        fs::write(&path, configuration(address, most, period)).unwrap();
        let mut command = Command::new(program());
        command.arg("-db").arg("-f").arg(&path).stdout(Stdio::null()).stderr(Stdio::null());
        let child =
            command.spawn().unwrap_or_else(|error| panic!("{}: {error}; ./test installs it", program().display()));
        let haproxy = Self { child, address, _folder: folder };
        let since = Instant::now();
        while TcpStream::connect(address).is_err() {
            assert!(since.elapsed() < PATIENCE, "haproxy does not start");
            thread::sleep(Duration::from_millis(10));
        }
        haproxy
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/", self.address)
    }
}

impl Drop for Haproxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn configuration(address: SocketAddr, most: u32, period: &str) -> String {
    format!(
        "defaults
  mode http
  timeout client 30s
  timeout server 30s
  timeout connect 5s
frontend limited
  bind {address}
  stick-table type ip size 1k expire 60s store http_req_rate({period})
  http-request track-sc0 src
  http-request deny deny_status 429 if {{ sc_http_req_rate(0) gt {most} }}
  http-request return status 200
"
    )
}
