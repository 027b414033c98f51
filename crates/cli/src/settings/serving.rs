//! Where clients connect, and how they are served.

use std::num::NonZeroUsize;
use std::str::FromStr;
use std::thread;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use tidegate_server::{ListenAddress, Listener};

use super::Group;
use super::field::{Field, Given, Seconds};
use crate::listening;

/// How many keys fit unless told otherwise.
const KEYS: usize = 1 << 20;
const LISTEN: &str = "127.0.0.1:8080";
const GRACE: Duration = Duration::from_secs(30);

/// Where clients connect, and how they are served.
#[derive(Args, Clone, Default)]
pub(crate) struct Serving {
    /// Where clients connect: an address with a port, or unix:/path for a socket, with :660 behind it for the mode of
    /// its file. Repeat it for several. [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDRESS")]
    listen: Vec<Given<ListenAddress>>,

    /// Threads that serve; one for each processor unless told otherwise.
    #[arg(long, value_name = "COUNT")]
    workers: Option<Given<Workers>>,

    /// Keys to have room for; beyond, --at-bound says what happens. 25.6 bytes each, reserved at once and touched as
    /// they are used. [default: 1048576]
    #[arg(long, value_name = "COUNT")]
    max_keys: Option<Given<Keys>>,

    /// Seconds that requests in flight are given when the program is told to stop. [default: 30]
    #[arg(long, value_name = "SECONDS")]
    grace: Option<Given<Seconds<0, 86_400>>>,
}

impl Group for Serving {
    fn fields(&mut self) -> Vec<(&'static str, &mut dyn Field)> {
        vec![
            ("listen", &mut self.listen),
            ("workers", &mut self.workers),
            ("max_keys", &mut self.max_keys),
            ("grace", &mut self.grace),
        ]
    }
}

impl Serving {
    pub(crate) fn max_keys(&self) -> usize {
        self.max_keys.as_ref().map_or(KEYS, |keys| keys.0)
    }

    pub(crate) fn workers(&self) -> NonZeroUsize {
        let workers = self.workers.as_ref().map(|workers| workers.0);
        workers.or_else(|| thread::available_parallelism().ok()).unwrap_or(NonZeroUsize::MIN)
    }

    pub(super) fn grace(&self) -> Duration {
        self.grace.as_ref().map_or(GRACE, |grace| grace.duration())
    }

    /// The listeners of each worker, and where they all listen.
    pub(crate) fn bind(&self) -> anyhow::Result<(Vec<Vec<Listener>>, Vec<ListenAddress>)> {
        let mut addresses: Vec<ListenAddress> = self.listen.iter().map(|listen| (**listen).clone()).collect();
        if addresses.is_empty() {
            addresses.push(LISTEN.parse().context("the address to listen on")?);
        }
        let mut workers: Vec<Vec<Listener>> = (0..self.workers().get()).map(|_| Vec::new()).collect();
        for address in &mut addresses {
            let listeners = listening::bind("--listen", address, self.workers())?;
            workers.iter_mut().zip(listeners).for_each(|(worker, listener)| worker.push(listener));
        }
        Ok((workers, addresses))
    }
}

#[derive(Clone, Copy)]
struct Workers(NonZeroUsize);

impl FromStr for Workers {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        match text.parse().ok().and_then(NonZeroUsize::new) {
            Some(workers) if workers.get() <= 1_024 => Ok(Self(workers)),
            _ => Err("expected a whole number from 1 to 1024"),
        }
    }
}

#[derive(Clone, Copy)]
struct Keys(usize);

impl FromStr for Keys {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        match text.parse() {
            Ok(keys @ 1..=0x1_0000_0000) => Ok(Self(keys)),
            _ => Err("expected a whole number from 1 to 4294967296"),
        }
    }
}
