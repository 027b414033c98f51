//! A real proxy that runs by the configuration of its page, on a port that was free, and ends with the test.

use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::page::{Page, Ports};
use crate::support::http::get;
use crate::support::{PATIENCE, free_address};

/// A port that was free may be taken before the program has it.
const TRIES_MAX: usize = 5;
/// What the program says, in its folder.
const SAID: &str = "said.log";

/// A page, and how its files are run.
pub(crate) struct Recipe {
    pub(crate) page: &'static str,
    /// The snippets that are files, by their titles.
    pub(crate) files: &'static [&'static str],
    /// The program, which is started in the folder of its files.
    pub(crate) command: fn() -> Command,
    /// What else a file needs so that nothing outside of its folder is written.
    pub(crate) at_home: fn(String) -> String,
    /// Does the caller see how much is left when it passes? Otherwise the API does.
    pub(crate) tells_caller: bool,
    /// Is there a way to go on while Tidegate is away?
    pub(crate) can_go_on: bool,
    /// What the caller gets otherwise.
    pub(crate) closed_status: u16,
    /// Does it pass on that Tidegate's own store is away?
    pub(crate) tells_store_away: bool,
    /// Does the path of the asking have that of the request below it?
    pub(crate) asks_below: bool,
}

/// What happens while Tidegate is away.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Away {
    /// What the page's configuration says.
    AsWritten,
    /// What it says with the replacement that the page has.
    Closed,
}

/// A running proxy.
pub(crate) struct Front {
    child: Child,
    pub(crate) address: SocketAddr,
    folder: TempDir,
}

/// A program that `./test` installs.
pub(crate) fn tool(path: &str) -> Command {
    Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.tools").join(path))
}

impl Recipe {
    /// Starts the proxy before this API, which asks at this address.
    pub(crate) fn start(&self, tidegate: SocketAddr, api: SocketAddr, away: Away) -> Front {
        let try_start = |_| self.try_start(tidegate, api, away);
        (0..TRIES_MAX).find_map(try_start).expect("it starts on one of a few free ports")
    }

    fn try_start(&self, tidegate: SocketAddr, api: SocketAddr, away: Away) -> Option<Front> {
        let (page, folder, address) = (Page::named(self.page), TempDir::new().unwrap(), free_address());
        let ports = Ports { tidegate, api, front: address };
        let mut replaced = 0;
        for name in self.files {
            let mut text = page.snippet(name).to_owned();
            if away == Away::Closed && self.can_go_on {
                replaced += text.matches(page.snippet("open")).count();
                text = text.replace(page.snippet("open"), page.snippet("closed"));
            }
            fs::write(folder.path().join(name), (self.at_home)(ports.put_into(&text))).unwrap();
        }
        assert_eq!(replaced == 1, away == Away::Closed && self.can_go_on, "what is replaced stands there once");
        let said = File::create(folder.path().join(SAID)).unwrap();
        let mut command = (self.command)();
        command.current_dir(folder.path()).env("XDG_CONFIG_HOME", folder.path()).env("XDG_DATA_HOME", folder.path());
        command.stdin(Stdio::null()).stdout(said.try_clone().unwrap()).stderr(said);
        let child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}; ./test installs it"));
        let mut front = Front { child, address, folder };
        front.is_up().then_some(front)
    }
}

impl Front {
    fn is_up(&mut self) -> bool {
        let since = Instant::now();
        while since.elapsed() < PATIENCE {
            if let Some(status) = self.child.try_wait().unwrap() {
                eprintln!("{status}: {}", self.said());
                return false;
            }
            // One of them listens before it knows where requests go.
            if TcpStream::connect(self.address).is_ok() && get(self.address, "/").status != 404 {
                return true;
            }
            thread::sleep(Duration::from_millis(20));
        }
        panic!("it does not come up: {}", self.said());
    }

    /// All that it has said.
    pub(crate) fn said(&self) -> String {
        let file = |name: &str| fs::read_to_string(self.folder.path().join(name)).unwrap_or_default();
        file(SAID) + &file("error.log")
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("the proxy has said: {}", self.said());
        }
        // Each is one process, so nothing of it stays.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A file of Tidegate's that a page shows, in a folder of its own.
pub(crate) fn shown_file(page: &'static str, name: &str) -> (TempDir, PathBuf) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join(name);
    fs::write(&path, Page::named(page).snippet(name)).unwrap();
    (folder, path)
}

/// An address on the loopback at which nobody listens.
pub(crate) fn nobody() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 1).into()
}
