//! The scripts beside this file, run with the packages that `./test` installs.

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use crate::support::PATIENCE;

/// Where `./test` puts what it installs.
pub(crate) fn tools() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().join(".tools")
}

fn command<S: AsRef<OsStr>>(script: &str, arguments: &[S]) -> Command {
    let packages = tools().join("python");
    assert!(packages.join("grpc").exists(), "these tests need Python packages: run ./test, which installs them");
    let mut command = Command::new("python3");
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/passing").join(script)).args(arguments);
    command.env("PYTHONPATH", packages).env("PYTHONDONTWRITEBYTECODE", "1").stdin(Stdio::null());
    command
}

/// Runs a script to its end; what it printed, if it is content.
pub(crate) fn run<S: AsRef<OsStr>>(script: &str, arguments: &[S]) -> String {
    let output = command(script, arguments).output().expect("python3 is there");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{script}: {}\n{out}\n{err}", output.status);
    out.into_owned()
}

/// A script that serves, ended with the test.
pub(crate) struct Server {
    child: Child,
    lines: Receiver<String>,
    pub(crate) port: u16,
}

impl Server {
    /// Starts it, and waits for its port.
    pub(crate) fn start<S: AsRef<OsStr>>(script: &str, arguments: &[S]) -> Self {
        let mut child = command(script, arguments).stdout(Stdio::piped()).spawn().expect("python3 is there");
        let (out, (send, lines)) = (child.stdout.take().unwrap(), channel());
        thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                // The test may have ended.
                let _ = send.send(line);
            }
        });
        let mut server = Self { child, lines, port: 0 };
        server.port = server.line().strip_prefix("port ").expect("it says its port first").parse().unwrap();
        server
    }

    /// The next line that it says.
    pub(crate) fn line(&self) -> String {
        self.lines.recv_timeout(PATIENCE).expect("the server says something")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
