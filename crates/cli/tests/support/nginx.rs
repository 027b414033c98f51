//! A real nginx, started on a port that was free, and ended with the test.

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::{PATIENCE, free_address};

/// A port that was free may be taken before nginx has it.
const TRIES_MAX: usize = 5;

/// An nginx that logs each request.
pub(crate) struct Nginx {
    child: Child,
    address: SocketAddr,
    folder: TempDir,
}

impl Nginx {
    /// It answers everything with a small 200.
    pub(crate) fn start() -> Self {
        Self::serving("location / { return 200 \"ok\\n\"; }")
    }

    /// It answers with a small file, to each client at this rate, with what else `limit_req` takes.
    pub(crate) fn limiting(rate: &str, more: &str) -> Self {
        let zone = format!("limit_req_zone $binary_remote_addr zone=clients:1m rate={rate};");
        // `return` would answer before the limit is asked.
        let locations = format!("root .; location / {{ limit_req zone=clients {more}; try_files /nginx.conf =404; }}");
        Self::configured(&zone, &locations)
    }

    /// It answers as these `location` directives say.
    pub(crate) fn serving(locations: &str) -> Self {
        Self::configured("", locations)
    }

    fn configured(all: &str, locations: &str) -> Self {
        (0..TRIES_MAX).find_map(|_| Self::try_start(all, locations)).expect("nginx starts on one of a few free ports")
    }

    fn try_start(all: &str, locations: &str) -> Option<Self> {
        let address = free_address();
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("nginx.conf"), configuration(address, all, locations)).unwrap();
        let child = command(folder.path()).spawn().unwrap_or_else(|error| {
            panic!("these tests need nginx (`apt-get install nginx`, or run ./test, which installs it): {error}")
        });
        let mut nginx = Self { child, address, folder };
        nginx.is_up().then_some(nginx)
    }

    fn is_up(&mut self) -> bool {
        let since = Instant::now();
        while since.elapsed() < PATIENCE {
            if let Some(status) = self.child.try_wait().unwrap() {
                eprintln!("nginx: {status}: {}", self.file("error.log"));
                return false;
            }
            if TcpStream::connect(self.address).is_ok() {
                return true;
            }
            thread::sleep(Duration::from_millis(5));
        }
        false
    }

    /// As a flag of the program.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// How many requests it has answered.
    pub(crate) fn requests(&self) -> u64 {
        self.file("access.log").lines().count() as u64
    }

    fn file(&self, name: &str) -> String {
        fs::read_to_string(self.folder.path().join(name)).unwrap_or_default()
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // It is one process, so nothing of it stays.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn command(folder: &Path) -> Command {
    let debian = Path::new("/usr/sbin/nginx");
    let mut command = if debian.exists() { Command::new(debian) } else { Command::new("nginx") };
    command.arg("-p").arg(folder).args(["-c", "nginx.conf", "-e", "error.log"]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn configuration(address: SocketAddr, all: &str, locations: &str) -> String {
    let kinds = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
    let folders: String = kinds.iter().map(|kind| format!("    {kind}_temp_path {kind};\n")).collect();
    format!(
        "daemon off;
master_process off;
pid nginx.pid;
error_log error.log;
events {{ worker_connections 1024; }}
http {{
{folders}    access_log access.log;
    keepalive_requests 1000000;
    {all}
    server {{
        listen {address};
        {locations}
    }}
}}
"
    )
}
