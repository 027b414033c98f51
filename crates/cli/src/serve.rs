//! `tidegate serve`: decisions for whoever asks, in a protocol that clients speak already.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use tidegate::policy::Policies;
use tidegate::{Memory, Store, SystemClock, TableOptions};
use tidegate_server::{
    Bounds, DecisionServer, DecisionSetup, Drain, ListenAddress, Password, RespSetup, StoreLevel, resp_bounds,
};

use crate::call_flags;
use crate::certificates::CertificateFiles;
use crate::flags::Wrong;
use crate::settings::AdminFace;
use crate::store::StoreFlags;
use crate::{say, signals};

/// The environment variable that holds the password of clients, which does not belong into the list of processes.
const PASSWORD_VARIABLE: &str = "TIDEGATE_RESP_PASSWORD";

/// Answer whoever asks whether a caller may pass: services and proxies that speak the Redis protocol ask with
/// CL.THROTTLE, as they ask redis-cell, or with THROTTLE.
///
/// Each call brings its key and its numbers, so there is nothing to configure. Try it: redis-cli -p 6390 cl.throttle
/// user-42 15 30 60
#[derive(Args)]
pub(crate) struct Serve {
    /// Where clients that speak the Redis protocol connect: an address with a port, or unix:/path for a socket. Whoever
    /// reaches it is served, unless TIDEGATE_RESP_PASSWORD holds a password.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:6390")]
    resp: ListenAddress,

    /// A certificate in PEM, with its chain: then clients speak TLS. Read anew when it changes.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,

    /// The key of the certificate, in PEM.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,

    /// Threads that serve; one for each processor unless told otherwise.
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=1_024))]
    workers: Option<u16>,

    /// Keys to have room for; beyond it those nearest to full are displaced. 25.6 bytes each, reserved at once and
    /// touched as they are used.
    #[arg(long, value_name = "COUNT", default_value_t = 1 << 20, value_parser = clap::value_parser!(u64).range(1..=1 << 32))]
    max_keys: u64,

    /// How long clients in the middle of a command are given when the program is told to stop.
    #[arg(long, value_name = "SPAN", default_value = "30s", value_parser = call_flags::span)]
    grace: Duration,

    #[command(flatten)]
    admin: AdminFace,

    #[command(flatten)]
    store: StoreFlags,
}

impl Serve {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        self.store.check()?;
        self.admin.check()?;
        let options = TableOptions::with_keys(usize::try_from(self.max_keys).unwrap_or(usize::MAX));
        match self.store.open(options, &Policies::default())? {
            None => {
                let place = "by this process alone, in memory".to_owned();
                let memory = Memory::new(options, SystemClock::new());
                self.serve(memory, StoreLevel::of_memory, &place, None)
            }
            Some(shared) => {
                let (store, place) = (shared.store.clone(), shared.to_string());
                let served = self.serve(store, StoreLevel::of_shared, &place, shared.warning());
                shared.give_back_leases();
                served
            }
        }
    }

    fn serve<S: Store + 'static>(
        &self,
        store: S,
        level: fn(&S) -> StoreLevel,
        place: &str,
        warning: Option<String>,
    ) -> anyhow::Result<()> {
        let bounds = Bounds { grace: self.grace, ..resp_bounds() };
        let password = password()?;
        let files = self.tls_cert.clone().zip(self.tls_key.clone());
        let certificates = files.map(|pair| CertificateFiles::new(vec![pair]).open()).transpose()?;
        let tls = certificates.as_ref().map(|certificates| certificates.tls().clone());
        let is_secure = tls.is_some();
        let has_password = password.is_some();
        let server = DecisionServer::new(DecisionSetup {
            store,
            level,
            handling: self.store.handling(),
            resp: RespSetup { bounds, password, tls, ..RespSetup::default() },
            token: self.admin.token()?,
        });
        let listeners = self.resp.bind(self.workers());
        let listeners = listeners
            .with_context(|| format!("cannot listen on {}; another program may be there, try --resp", self.resp))?;
        let mut address = self.resp.clone();
        if let (ListenAddress::Tcp { address, .. }, Some(first)) = (&mut address, listeners.first()) {
            // Port 0 has become another.
            *address = first.local_addr()?.unwrap_or(*address);
        }
        let admin = self.admin.bind()?;
        let drain = Drain::new();
        signals::drain_on_signal(&drain)?;
        if let Some(certificates) = certificates {
            certificates.watch(Arc::clone(server.metrics())).start(signals::hang_ups()?)?;
        }
        let mut page = say::Page::new(format!("tidegate {} on {address}", env!("CARGO_PKG_VERSION")));
        page.entry("speaks", &"the Redis protocol: CL.THROTTLE as redis-cell, THROTTLE as throttlecrab");
        page.entry("counted", &place);
        if let Some(admin) = &admin {
            page.entry("admin", &format_args!("http://{}/metrics, /livez, /readyz", admin.local_addr()?));
        }
        page.entry("try", &trial(&address, is_secure));
        page.say();
        warning.into_iter().for_each(|warning| say::warning(&warning));
        if let ListenAddress::Tcp { address, .. } = &address
            && !address.ip().is_loopback()
            && !has_password
        {
            say::warning(&format!(
                "whoever reaches {address} can use up any key, since no password is asked for; {PASSWORD_VARIABLE} sets one"
            ));
        }
        server
            .run(listeners.into_iter().map(|one| vec![one]).collect(), admin, &drain)
            .context("serving ended early")?;
        say::line("stopped; every command in flight was given its time");
        Ok(())
    }

    fn workers(&self) -> NonZeroUsize {
        let given = self.workers.and_then(|workers| NonZeroUsize::new(workers.into()));
        given.or_else(|| thread::available_parallelism().ok()).unwrap_or(NonZeroUsize::MIN)
    }
}

fn password() -> Result<Option<Password>, Wrong> {
    match std::env::var(PASSWORD_VARIABLE) {
        Ok(text) => match Password::new(&text) {
            Some(password) => Ok(Some(password)),
            None => Err(Wrong::new(format_args!("{PASSWORD_VARIABLE} is empty; unset it, or put a password into it"))),
        },
        Err(std::env::VarError::NotPresent) => Ok(None),
        Err(error) => Err(Wrong::new(format_args!("{PASSWORD_VARIABLE}: {error}"))),
    }
}

fn trial(address: &ListenAddress, is_secure: bool) -> String {
    let tls = if is_secure { "--tls " } else { "" };
    let place = match address {
        ListenAddress::Tcp { address, .. } => format!("-h {} -p {}", address.ip(), address.port()),
        ListenAddress::Unix { path, .. } => format!("-s {}", path.display()),
    };
    format!("redis-cli {tls}{place} cl.throttle user-42 15 30 60")
}
