//! `tidegate proxy`: limits in front of any HTTP API.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, thread};

use anyhow::Context as _;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use tidegate::policy::{
    AddressField, ClientAddress, Explanation, KeyParts, KeyPartsError, NameError, Policies, Policy, Trust, TrustError,
};
use tidegate::{Algorithm, AtBound, Clock as _, Gate, Limit, Memory, Mode, Store, SystemClock, TableOptions};
use tidegate_http::Dialects;
use tidegate_server::{Bounds, Drain, Gateway, GatewaySetup, StoreLevel, Upstream, UpstreamError};

use crate::flags::{self, Wrong};
use crate::store::StoreFlags;
use crate::{say, signals};

/// The policy that the flags describe.
const POLICY: &str = "default";
/// How many keys fit unless told otherwise.
const KEYS: usize = 1 << 20;

/// Limit the requests to an HTTP API, and pass the others on to it.
///
/// Without --upstream it serves a small API of its own, so that it can be tried on an empty machine.
#[derive(Args)]
pub(crate) struct Proxy {
    /// Where clients connect.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080", value_parser = listen)]
    listen: SocketAddr,

    /// The API to protect, such as http://127.0.0.1:9000.
    #[arg(long, value_name = "URL", value_parser = upstream)]
    upstream: Option<Upstream>,

    /// A limit, such as '3/min', '60/min burst 10' or '10/15min'. Repeat it for several: a request is charged to all of
    /// them, or to none.
    #[arg(
        long = "limit",
        value_name = "LIMIT",
        required = true,
        value_parser = flags::limit,
        allow_hyphen_values = true
    )]
    limits: Vec<Limit>,

    /// Whose requests are counted together: client (its address), header:NAME, cookie:NAME, global, or several of
    /// these with commas between them.
    #[arg(long, value_name = "PARTS", default_value = "client", value_parser = key)]
    key: KeyParts,

    /// How the limits are enforced.
    #[arg(long, value_name = "ALGORITHM", default_value_t, value_parser = flags::algorithm())]
    algorithm: Algorithm,

    /// Evaluate and count the limits, but deny nothing.
    #[arg(long)]
    shadow: bool,

    /// Networks of your own proxies, whose word on the client's address is believed: 10.0.0.0/8, an address, private,
    /// loopback. Repeat it, or put commas between.
    #[arg(long, value_name = "CIDR", value_parser = trust)]
    trust: Vec<Trust>,

    /// The field in which those proxies name the client.
    #[arg(long, value_name = "FIELD", default_value = "x-forwarded-for", value_parser = address_field)]
    client_from: AddressField,

    /// What clients are told about limits: draft-10, draft-7 or draft-6; x-ratelimit, or with another kind of reset
    /// x-ratelimit:epoch, x-ratelimit:epoch-ms or x-ratelimit:rfc3339; none; or two of these with a comma between.
    #[arg(long, value_name = "DIALECTS", default_value = "draft-10", value_parser = flags::dialects)]
    headers: Dialects,

    /// Keys to have room for; beyond, --at-bound says what happens. 25.6 bytes each, reserved at once and touched as
    /// they are used.
    #[arg(long, value_name = "COUNT", default_value_t = KEYS, value_parser = keys)]
    max_keys: usize,

    /// What happens to a new key when that room is taken: displace the bucket nearest to full, deny the newcomer, or
    /// let newcomers pool one bucket.
    #[arg(long, value_name = "WHAT", default_value = "displace", value_parser = at_bound())]
    at_bound: AtBound,

    #[command(flatten)]
    store: StoreFlags,

    /// Seconds to wait for the upstream's answer before a 504.
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    upstream_timeout: u64,

    /// Seconds that requests in flight are given when the program is told to stop.
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(0..=86_400))]
    grace: u64,

    /// Threads that serve; one for each processor unless told otherwise.
    #[arg(long, value_name = "COUNT", value_parser = workers)]
    workers: Option<NonZeroUsize>,

    /// Where an operator finds /livez, /readyz and /metrics: an address of the loopback, or off.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9464", value_parser = admin)]
    admin: AdminAddress,
}

impl Proxy {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let (policies, options) = (self.policies()?, TableOptions::with_keys(self.max_keys));
        self.store.check(&policies)?;
        match self.store.open(options)? {
            None => {
                let store = Memory::new(options, SystemClock::new());
                self.serve(Gate::new(policies, store), StoreLevel::of_memory, &self.counted_here(), None)
            }
            Some(shared) => {
                let (counted, warning) = (shared.to_string(), shared.warning());
                let gate = Gate::new(policies, shared.store.clone());
                let served = self.serve(gate, StoreLevel::of_shared, &counted, warning);
                shared.give_back_leases();
                served
            }
        }
    }

    /// Serves until it is told to stop. Buckets are counted where `counted` says.
    fn serve<S: Store + 'static>(
        &self,
        gate: Gate<S>,
        level: fn(&S) -> StoreLevel,
        counted: &str,
        warning: Option<String>,
    ) -> anyhow::Result<()> {
        let warnings: Vec<_> = gate.policies().warnings().iter().map(ToString::to_string).chain(warning).collect();
        let clock = SystemClock::new();
        let gateway = Gateway::new(GatewaySetup {
            gate,
            level,
            clock: Arc::new(move || clock.now()),
            upstream: self.upstream.clone(),
            bounds: self.bounds(),
            dialects: self.headers,
            notice: Arc::new(say::warning),
        });

        let listeners = tidegate_server::bind(self.listen, self.workers())
            .with_context(|| format!("cannot listen on {}; another program may be there, try --listen", self.listen))?;
        let address = listeners.first().context("at least one worker listens")?.local_addr()?;
        let admin = self.admin.bind()?;

        self.announce(address, admin.as_ref().map(std::net::TcpListener::local_addr).transpose()?, counted);
        warnings.iter().for_each(|warning| say::warning(warning));

        let drain = Drain::new();
        signals::drain_on_signal(&drain)?;
        gateway.run(listeners, admin, &drain).context("serving ended early")?;
        say::line("stopped; every request in flight was given its time");
        Ok(())
    }

    fn workers(&self) -> NonZeroUsize {
        self.workers.or_else(|| thread::available_parallelism().ok()).unwrap_or(NonZeroUsize::MIN)
    }

    /// The flags as policies: one, whose limits are called `limit-1`, `limit-2`, in their order.
    fn policies(&self) -> anyhow::Result<Policies> {
        let mode = if self.shadow { Mode::Shadow } else { Mode::Enforce };
        let client = ClientAddress {
            trust: self.trust.iter().cloned().collect(),
            field: self.client_from.clone(),
            ..ClientAddress::default()
        };
        let policy = Policy::new(POLICY, self.key.clone()).with_limits(self.enforced()?, mode);
        let policy = policy.with_handling(self.store.handling().with_at_bound(self.at_bound));
        Ok(Policies::new(client, vec![policy]).map_err(Wrong::new)?)
    }

    fn enforced(&self) -> Result<Vec<Limit>, Wrong> {
        let enforced = |limit: &Limit| {
            flags::enforced_by(*limit, self.algorithm)
                .map_err(|error| Wrong::new(format!("--limit '{limit}' --algorithm {}: {error}", self.algorithm)))
        };
        self.limits.iter().map(enforced).collect()
    }

    fn bounds(&self) -> Bounds {
        let mut bounds = Bounds { grace: Duration::from_secs(self.grace), ..Bounds::default() };
        bounds.upstream.answer_timeout = Duration::from_secs(self.upstream_timeout);
        bounds
    }

    fn counted_here(&self) -> String {
        match self.workers().get() {
            1 => "by this process alone, in memory; 1 worker".to_owned(),
            n => format!("by this process alone, in memory; its {n} workers share the buckets"),
        }
    }

    /// Says what is limited, by what key, where it is counted, and how to try it.
    fn announce(&self, address: SocketAddr, admin: Option<SocketAddr>, counted: &str) {
        let url = format!("http://{address}");
        say::title(&format!("tidegate {} on {url}", env!("CARGO_PKG_VERSION")));
        match &self.upstream {
            Some(upstream) => say::entry("upstream", upstream),
            None => say::entry("upstream", &"none given, so it serves a joke of the day of its own"),
        }
        say::entry(
            "key",
            &format_args!("{}{}", self.key, if self.shadow { "; in shadow, so nothing is denied" } else { "" }),
        );
        for (i, limit) in self.enforced().into_iter().flatten().enumerate() {
            say::entry(&format!("limit-{}", i + 1), &Explanation::of(limit));
        }
        say::entry("counted", &counted);
        if let Some(most) = self.store.leased() {
            let what = format_args!("at most {most} tokens of a key are taken ahead, here as in each other process");
            say::entry("leased", &what);
        }
        if let Some(admin) = admin {
            say::entry("admin", &format_args!("http://{admin}/metrics, /livez, /readyz"));
        }
        say::entry("try", &format_args!("curl -i {url}/"));
    }
}

/// Where the admin face listens.
#[derive(Clone, Copy)]
enum AdminAddress {
    Off,
    At(SocketAddr),
}

impl AdminAddress {
    fn bind(self) -> anyhow::Result<Option<std::net::TcpListener>> {
        let Self::At(address) = self else { return Ok(None) };
        let listeners = tidegate_server::bind(address, NonZeroUsize::MIN).with_context(|| {
            format!("cannot listen on {address} for the admin face; try --admin 127.0.0.1:0 or --admin off")
        })?;
        Ok(listeners.into_iter().next())
    }
}

fn upstream(text: &str) -> Result<Upstream, UpstreamError> {
    text.parse()
}

fn key(text: &str) -> Result<KeyParts, KeyPartsError> {
    text.parse()
}

fn trust(text: &str) -> Result<Trust, TrustError> {
    text.parse()
}

fn address_field(text: &str) -> Result<AddressField, NameError> {
    text.parse()
}

fn keys(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(keys @ 1..=0x1_0000_0000) => Ok(keys),
        _ => Err("expected a whole number from 1 to 4294967296".to_owned()),
    }
}

fn workers(text: &str) -> Result<NonZeroUsize, String> {
    match text.parse().ok().and_then(NonZeroUsize::new) {
        Some(workers) if workers.get() <= 1_024 => Ok(workers),
        _ => Err("expected a whole number from 1 to 1024".to_owned()),
    }
}

fn listen(text: &str) -> Result<SocketAddr, &'static str> {
    text.parse().map_err(|_| "expected an address with a port, such as 127.0.0.1:8080, or 0.0.0.0:8080 for everybody")
}

fn admin(text: &str) -> Result<AdminAddress, String> {
    if text.eq_ignore_ascii_case("off") {
        return Ok(AdminAddress::Off);
    }
    match text.parse::<SocketAddr>() {
        Ok(address) if address.ip().is_loopback() => Ok(AdminAddress::At(address)),
        Ok(_) => Err("the admin face asks nobody who they are, so it listens on the loopback only, \
                      such as 127.0.0.1:9464, or is off"
            .to_owned()),
        Err(_) => Err("expected an address with a port, such as 127.0.0.1:9464, or off".to_owned()),
    }
}

/// The behaviours at the memory bound, by name.
fn at_bound() -> impl TypedValueParser<Value = AtBound> {
    PossibleValuesParser::new(["displace", "deny", "pool"]).map(|name| match name.as_str() {
        "deny" => AtBound::Deny,
        "pool" => AtBound::Pool,
        _ => AtBound::Displace,
    })
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy").field("listen", &self.listen).finish_non_exhaustive()
    }
}
