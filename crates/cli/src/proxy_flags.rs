//! The settings of the proxy beside its policies: as flags, or below `[proxy]` in the configuration file. A flag stands
//! before the file.

use std::fmt::Display;
use std::net::{SocketAddr, TcpListener};
use std::num::NonZeroUsize;
use std::ops::RangeInclusive;
use std::thread;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use tidegate::policy::file::Setting;
use tidegate_http::Dialects;
use tidegate_server::{Bounds, Upstream};

use crate::flags;

/// How many keys fit unless told otherwise.
const KEYS: usize = 1 << 20;
const LISTEN: &str = "127.0.0.1:8080";
const ADMIN: &str = "127.0.0.1:9464";
const UPSTREAM_TIMEOUT_S: u64 = 60;
const GRACE_S: u64 = 30;

/// Where the proxy serves, and how.
#[derive(Args, Clone, Default)]
pub(crate) struct ProxyFlags {
    /// Where clients connect. [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDRESS", value_parser = given(listen))]
    listen: Option<Given<SocketAddr>>,

    /// The API to protect, such as http://127.0.0.1:9000.
    #[arg(long, value_name = "URL", value_parser = given(upstream))]
    upstream: Option<Given<Upstream>>,

    /// What clients are told about limits: draft-10, draft-7 or draft-6; x-ratelimit, or with another kind of reset
    /// x-ratelimit:epoch, x-ratelimit:epoch-ms or x-ratelimit:rfc3339; none; or two of these with a comma between.
    /// [default: draft-10]
    #[arg(long, value_name = "DIALECTS", value_parser = given(dialects))]
    headers: Option<Given<Dialects>>,

    /// Keys to have room for; beyond, --at-bound says what happens. 25.6 bytes each, reserved at once and touched as
    /// they are used. [default: 1048576]
    #[arg(long, value_name = "COUNT", value_parser = given(keys))]
    max_keys: Option<Given<usize>>,

    /// Seconds to wait for the upstream's answer before a 504. [default: 60]
    #[arg(long, value_name = "SECONDS", value_parser = given(upstream_timeout))]
    upstream_timeout: Option<Given<u64>>,

    /// Seconds that requests in flight are given when the program is told to stop. [default: 30]
    #[arg(long, value_name = "SECONDS", value_parser = given(grace))]
    grace: Option<Given<u64>>,

    /// Threads that serve; one for each processor unless told otherwise.
    #[arg(long, value_name = "COUNT", value_parser = given(workers))]
    workers: Option<Given<NonZeroUsize>>,

    /// Where an operator finds /livez, /readyz and /metrics: an address of the loopback, or off.
    /// [default: 127.0.0.1:9464]
    #[arg(long, value_name = "ADDRESS", value_parser = given(admin))]
    admin: Option<Given<AdminAddress>>,
}

/// A value, and the text that it was given as.
#[derive(Clone)]
struct Given<T> {
    value: T,
    text: String,
}

/// Where the admin face listens.
#[derive(Clone, Copy)]
pub(crate) enum AdminAddress {
    Off,
    At(SocketAddr),
}

impl ProxyFlags {
    /// These flags, and for what they leave open the settings of a file.
    ///
    /// # Errors
    /// The settings that are not what is taken, with what is wrong.
    pub(crate) fn or<'s>(&self, settings: &'s [Setting]) -> Result<Self, Vec<(&'s Setting, String)>> {
        let (mut all, mut wrong) = (self.clone(), Vec::new());
        for setting in settings {
            let text = setting.text.as_str();
            let done = match setting.name.as_str() {
                "listen" => fill(&mut all.listen, text, listen),
                "upstream" => fill(&mut all.upstream, text, upstream),
                "headers" => fill(&mut all.headers, text, dialects),
                "max_keys" => fill(&mut all.max_keys, text, keys),
                "upstream_timeout" => fill(&mut all.upstream_timeout, text, upstream_timeout),
                "grace" => fill(&mut all.grace, text, grace),
                "workers" => fill(&mut all.workers, text, workers),
                "admin" => fill(&mut all.admin, text, admin),
                // Names that are not known are refused where the file is read.
                _ => Ok(()),
            };
            wrong.extend(done.err().map(|message| (setting, message)));
        }
        if wrong.is_empty() { Ok(all) } else { Err(wrong) }
    }

    /// As a file says them.
    pub(crate) fn to_settings(&self) -> Vec<Setting> {
        fn text<T>(given: Option<&Given<T>>) -> Option<&str> {
            given.map(|given| given.text.as_str())
        }
        let all = [
            ("listen", text(self.listen.as_ref())),
            ("upstream", text(self.upstream.as_ref())),
            ("headers", text(self.headers.as_ref())),
            ("max_keys", text(self.max_keys.as_ref())),
            ("upstream_timeout", text(self.upstream_timeout.as_ref())),
            ("grace", text(self.grace.as_ref())),
            ("workers", text(self.workers.as_ref())),
            ("admin", text(self.admin.as_ref())),
        ];
        all.into_iter().filter_map(|(name, text)| Some(Setting::new(name, text?))).collect()
    }

    pub(crate) fn upstream(&self) -> Option<&Upstream> {
        self.upstream.as_ref().map(|given| &given.value)
    }

    pub(crate) fn dialects(&self) -> Dialects {
        self.headers.as_ref().map_or_else(Dialects::default, |given| given.value)
    }

    pub(crate) fn max_keys(&self) -> usize {
        self.max_keys.as_ref().map_or(KEYS, |given| given.value)
    }

    pub(crate) fn workers(&self) -> NonZeroUsize {
        let workers = self.workers.as_ref().map(|given| given.value);
        workers.or_else(|| thread::available_parallelism().ok()).unwrap_or(NonZeroUsize::MIN)
    }

    pub(crate) fn bounds(&self) -> Bounds {
        let seconds = |given: &Option<Given<u64>>, otherwise| {
            Duration::from_secs(given.as_ref().map_or(otherwise, |given| given.value))
        };
        let mut bounds = Bounds { grace: seconds(&self.grace, GRACE_S), ..Bounds::default() };
        bounds.upstream.answer_timeout = seconds(&self.upstream_timeout, UPSTREAM_TIMEOUT_S);
        bounds
    }

    /// The listeners of the workers, and the first one's address.
    pub(crate) fn bind(&self) -> anyhow::Result<(Vec<TcpListener>, SocketAddr)> {
        let address = match &self.listen {
            Some(given) => given.value,
            None => LISTEN.parse().context("the address to listen on")?,
        };
        let listeners = tidegate_server::bind(address, self.workers())
            .with_context(|| format!("cannot listen on {address}; another program may be there, try --listen"))?;
        let bound = listeners.first().context("at least one worker listens")?.local_addr()?;
        Ok((listeners, bound))
    }

    /// The listener of the admin face, unless it is off.
    pub(crate) fn bind_admin(&self) -> anyhow::Result<Option<TcpListener>> {
        let address = match &self.admin {
            Some(Given { value: AdminAddress::Off, .. }) => return Ok(None),
            Some(Given { value: AdminAddress::At(address), .. }) => *address,
            None => ADMIN.parse().context("the address of the admin face")?,
        };
        let listeners = tidegate_server::bind(address, NonZeroUsize::MIN).with_context(|| {
            format!("cannot listen on {address} for the admin face; try --admin 127.0.0.1:0 or --admin off")
        })?;
        Ok(listeners.into_iter().next())
    }
}

fn given<T, E: Display>(parse: fn(&str) -> Result<T, E>) -> impl Fn(&str) -> Result<Given<T>, String> + Clone {
    move |text| match parse(text) {
        Ok(value) => Ok(Given { value, text: text.to_owned() }),
        Err(error) => Err(error.to_string()),
    }
}

/// Reads a setting that no flag has said; one that a flag has said is still held to what is taken.
fn fill<T, E: Display>(
    place: &mut Option<Given<T>>,
    text: &str,
    parse: fn(&str) -> Result<T, E>,
) -> Result<(), String> {
    let read = given(parse)(text)?;
    place.get_or_insert(read);
    Ok(())
}

fn upstream(text: &str) -> Result<Upstream, tidegate_server::UpstreamError> {
    text.parse()
}

fn dialects(text: &str) -> Result<Dialects, tidegate_http::UnknownDialect> {
    flags::dialects(text)
}

fn keys(text: &str) -> Result<usize, &'static str> {
    match text.parse() {
        Ok(keys @ 1..=0x1_0000_0000) => Ok(keys),
        _ => Err("expected a whole number from 1 to 4294967296"),
    }
}

fn upstream_timeout(text: &str) -> Result<u64, String> {
    seconds(text, 1..=86_400)
}

fn grace(text: &str) -> Result<u64, String> {
    seconds(text, 0..=86_400)
}

fn seconds(text: &str, range: RangeInclusive<u64>) -> Result<u64, String> {
    let (from, to) = (range.start(), range.end());
    let seconds = text.parse().ok().filter(|seconds| range.contains(seconds));
    seconds.ok_or_else(|| format!("expected a whole number of seconds from {from} to {to}"))
}

fn workers(text: &str) -> Result<NonZeroUsize, &'static str> {
    match text.parse().ok().and_then(NonZeroUsize::new) {
        Some(workers) if workers.get() <= 1_024 => Ok(workers),
        _ => Err("expected a whole number from 1 to 1024"),
    }
}

fn listen(text: &str) -> Result<SocketAddr, &'static str> {
    text.parse().map_err(|_| "expected an address with a port, such as 127.0.0.1:8080, or 0.0.0.0:8080 for everybody")
}

fn admin(text: &str) -> Result<AdminAddress, &'static str> {
    if text.eq_ignore_ascii_case("off") {
        return Ok(AdminAddress::Off);
    }
    match text.parse::<SocketAddr>() {
        Ok(address) if address.ip().is_loopback() => Ok(AdminAddress::At(address)),
        Ok(_) => Err("the admin face asks nobody who they are, so it listens on the loopback only, \
                      such as 127.0.0.1:9464, or is off"),
        Err(_) => Err("expected an address with a port, such as 127.0.0.1:9464, or off"),
    }
}
