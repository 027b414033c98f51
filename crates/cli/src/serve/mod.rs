//! `tidegate serve`: decisions for whoever asks, in a protocol that clients speak already.

mod bound;

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use tidegate::policy::Policies;
use tidegate::{Clock as _, Gate, Memory, Store, SystemClock, TableOptions};
use tidegate_server::{
    ApiSetup, Bounds, DecisionServer, DecisionSetup, Desk, DeskSetup, Drain, Entrance, FaceListeners, GrpcSetup,
    ListenAddress, Listener, OperationSetup, Password, RespSetup, ServedBy, StoreLevel, Tls, api_bounds, resp_bounds,
};

use self::bound::Bound;
use crate::announce;
use crate::call_flags;
use crate::callers;
use crate::certificates::CertificateFiles;
use crate::config_file::ConfigFile;
use crate::file_watch::FileWatch;
use crate::flags::Wrong;
use crate::imported::{ImportFlags, Imported};
use crate::limitador::{LimitadorFlags, LimitadorLimits};
use crate::listening::Place;
use crate::policy_flags::PolicyFlags;
use crate::reload::Reload;
use crate::screen::Screen;
use crate::settings::{AdminFlags, Answers, Logs, ProxyFlags, StateFlags, Traces};
use crate::store::StoreFlags;
use crate::{say, signals, trust_files};

/// The environment variable that holds the password of clients, which does not belong into the list of processes.
const PASSWORD_VARIABLE: &str = "TIDEGATE_RESP_PASSWORD";

/// Answer whoever asks whether a caller may pass: over HTTP, and over the Redis protocol with CL.THROTTLE, as services
/// ask redis-cell, or with THROTTLE; and over gRPC as Envoy's rate limit service.
///
/// Who asks with the limit of its own needs no configuration; with --config or --limit, requests can be asked about by
/// what they are. Try it: redis-cli -p 6390 cl.throttle user-42 15 30 60
#[derive(Args)]
pub(crate) struct Serve {
    #[command(flatten)]
    policies: PolicyFlags,

    /// Where clients that speak HTTP connect: an address with a port, unix:/path for a socket, or off. Whoever reaches it
    /// may ask, unless TIDEGATE_HTTP_TOKEN holds a token.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    http: Place,

    /// Where clients that speak gRPC connect, such as Envoy with its rate limit filter: an address with a port, unix:/path
    /// for a socket, or off.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8081")]
    grpc: Place,

    /// The greatest age of a gRPC connection: then it ends after the calls that it has, so that clients which keep theirs
    /// spread over all processes again. [default: any age]
    #[arg(long, value_name = "SPAN", value_parser = call_flags::span)]
    grpc_connection_age: Option<Duration>,

    /// Where clients that speak the Redis protocol connect: an address with a port, unix:/path for a socket, or off.
    /// Whoever reaches it is served, unless TIDEGATE_RESP_PASSWORD holds a password.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:6390")]
    resp: Place,

    /// A certificate in PEM, with its chain: then clients speak TLS. Read anew when it changes.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,

    /// The key of the certificate, in PEM.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,

    /// Threads that serve; one for each processor unless told otherwise.
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=1_024))]
    workers: Option<u16>,

    /// Keys to have room for; beyond it those nearest to full are displaced, unless a policy says otherwise. 25.6 bytes
    /// each, reserved at once and touched as they are used.
    #[arg(long, value_name = "COUNT", default_value_t = 1 << 20, value_parser = clap::value_parser!(u64).range(1..=1 << 32))]
    max_keys: u64,

    /// How long clients in the middle of a command are given when the program is told to stop.
    #[arg(long, value_name = "SPAN", default_value = "30s", value_parser = call_flags::span)]
    grace: Duration,

    #[command(flatten)]
    imported: ImportFlags,

    #[command(flatten)]
    limitador: LimitadorFlags,

    #[command(flatten)]
    answers: Answers,

    #[command(flatten)]
    admin: AdminFlags,

    #[command(flatten)]
    state: StateFlags,

    #[command(flatten)]
    logs: Logs,

    #[command(flatten)]
    traces: Traces,

    #[command(flatten)]
    store: StoreFlags,
}

/// What is served by, and the file that it stands in.
struct Start {
    policies: Policies,
    file: Option<(ConfigFile, String)>,
    /// Rules of other services.
    imported: Option<Imported>,
    /// Limits of limitador.
    limitador: Option<LimitadorLimits>,
    screen: Screen,
}

/// Where buckets are counted, and what there is to be known of it.
struct Counted<S> {
    gate: Gate<S>,
    level: fn(&S) -> StoreLevel,
    operation: OperationSetup<S>,
    /// In words.
    place: String,
    warning: Option<String>,
}

impl Serve {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        self.logs.set_voice();
        self.store.check()?;
        self.admin.face.check()?;
        let mut start = self.start()?;
        let options = TableOptions::with_keys(usize::try_from(self.max_keys).unwrap_or(usize::MAX));
        let clock = SystemClock::new();
        match self.store.open(options, &start.policies)? {
            None => self.serve_from_memory(&mut start, options, clock),
            Some(shared) => {
                let counted = Counted {
                    gate: Gate::new(start.policies.clone(), shared.store.clone()),
                    level: StoreLevel::of_shared,
                    operation: self.admin.operation(OperationSetup::of_shared())?,
                    place: shared.to_string(),
                    warning: shared.warning(),
                };
                let served = self.serve(&mut start, counted, clock);
                shared.give_back_leases();
                served
            }
        }
    }

    /// Reads the flags and the file.
    fn start(&self) -> Result<Start, Wrong> {
        let screen = Screen { is_shared: self.store.is_given(), server: ServedBy::DecisionServer };
        let imported = self.imported.read(self.store.handling(), self.store.is_given())?;
        let limitador = self.limitador.read(self.store.handling(), self.store.is_given())?;
        if let Some(file) = self.policies.file()? {
            let contents = file.contents()?;
            let (config, _) = screen.file(&file, &contents, &ProxyFlags::default())?;
            return Ok(Start { policies: config.policies, file: Some((file, contents)), imported, limitador, screen });
        }
        let policies = match self.policies.has_limits() {
            true => trust_files::read(self.policies.policies(self.store.handling())?)?,
            false => Policies::default(),
        };
        screen.flags(&policies)?;
        Ok(Start { policies, file: None, imported, limitador, screen })
    }

    /// Serves from buckets in this process, those of the process before if they are kept.
    fn serve_from_memory(&self, start: &mut Start, options: TableOptions, clock: SystemClock) -> anyhow::Result<()> {
        let (policies, file) = (start.policies.clone(), self.state.file());
        let gate = match file.as_ref().and_then(|file| file.restore(options, clock.clone())) {
            // What is another quota than when they were written is so from now on.
            Some(memory) => Gate::new(policies.in_force_from(clock.now()), memory),
            None => Gate::new(policies, Memory::new(options, clock.clone())),
        };
        let store = gate.shared_store();
        let counted = Counted {
            gate,
            level: StoreLevel::of_memory,
            operation: self.admin.operation(OperationSetup::of_memory())?,
            place: "by this process alone, in memory".to_owned(),
            warning: None,
        };
        let served = self.serve(start, counted, clock);
        file.iter().for_each(|file| file.save(&store));
        served
    }

    /// Serves until it is told to stop.
    fn serve<S: Store + 'static>(
        &self,
        start: &mut Start,
        counted: Counted<S>,
        clock: SystemClock,
    ) -> anyhow::Result<()> {
        let Counted { gate, level, operation, place, warning } = counted;
        let clock: tidegate_server::Clock = Arc::new(move || clock.now());
        let files = self.tls_cert.clone().zip(self.tls_key.clone());
        let certificates = files.map(|pair| CertificateFiles::new(vec![pair]).open()).transpose()?;
        let tls = certificates.as_ref().map(|certificates| certificates.tls().clone());
        let desk = DeskSetup {
            salt: self.admin.salt(),
            notice: Arc::new(say::warning),
            access_log: self.logs.access_log()?,
            traces: self.traces.setup(),
            ..DeskSetup::new(gate, level, Arc::clone(&clock), operation)
        };
        let server = DecisionServer::new(self.setup(desk, tls)?);
        if self.logs.place().is_some() {
            let desk = Arc::clone(server.desk());
            signals::on_rotation(move || desk.reopen_logs())?;
        }
        let (listeners, bound) = self.bind()?;
        let admin = self.admin.face.bind()?;
        let drain = Drain::new();
        signals::drain_on_signal(&drain)?;
        if let Some(certificates) = certificates {
            certificates.watch(Arc::clone(server.desk().metrics())).start(signals::hang_ups()?)?;
        }
        start.watch_file(server.desk(), clock)?;
        self.announce(start, &bound, &place, admin.as_ref().map(std::net::TcpListener::local_addr).transpose()?);
        start.screen.warnings(&start.policies).into_iter().chain(warning).for_each(|warning| say::warning(&warning));
        self.warn_of_strangers(&bound)?;
        if let Some(imported) = start.imported.take() {
            imported.put_in_force(&server, signals::hang_ups()?)?;
        }
        if let Some(limits) = start.limitador.take() {
            limits.put_in_force(&server, signals::hang_ups()?)?;
        }
        server.run(listeners, admin, &drain).context("serving ended early")?;
        say::line("stopped; every command in flight was given its time");
        Ok(())
    }

    fn setup<S>(&self, desk: DeskSetup<S>, tls: Option<Tls>) -> anyhow::Result<DecisionSetup<S>> {
        Ok(DecisionSetup {
            desk,
            handling: self.store.handling(),
            http: ApiSetup {
                bounds: Bounds { grace: self.grace, ..api_bounds() },
                entrance: Entrance { tls: tls.clone(), ..Entrance::default() },
                dialects: self.answers.dialects(),
                callers: callers::callers(self.http.address())?,
            },
            grpc: GrpcSetup {
                bounds: Bounds { grace: self.grace, connection_age: self.grpc_connection_age, ..Bounds::default() },
                entrance: Entrance { tls: tls.clone(), ..Entrance::default() },
            },
            rate_limits: self.imported.setup(self.store.handling()),
            resp: RespSetup {
                bounds: Bounds { grace: self.grace, ..resp_bounds() },
                password: password()?,
                tls,
                ..RespSetup::default()
            },
        })
    }

    /// The listeners of each worker, and where they all listen.
    fn bind(&self) -> anyhow::Result<(Vec<FaceListeners>, Bound)> {
        let workers = self.workers();
        let (http, http_at) = self.http.bind("--http", workers)?;
        let (grpc, grpc_at) = self.grpc.bind("--grpc", workers)?;
        let (resp, resp_at) = self.resp.bind("--resp", workers)?;
        if http.is_empty() && grpc.is_empty() && resp.is_empty() {
            anyhow::bail!(Wrong::new("--http, --grpc and --resp are all off, so nobody could ask"));
        }
        let (mut http, mut grpc, mut resp) = (http.into_iter(), grpc.into_iter(), resp.into_iter());
        let one = |listeners: &mut dyn Iterator<Item = Listener>| listeners.next().into_iter().collect();
        let of_worker = |_| FaceListeners { http: one(&mut http), grpc: one(&mut grpc), resp: one(&mut resp) };
        let listeners = (0..workers.get()).map(of_worker).collect();
        Ok((listeners, Bound { http: http_at, grpc: grpc_at, resp: resp_at, is_secure: self.tls_cert.is_some() }))
    }

    fn announce(&self, start: &Start, bound: &Bound, place: &str, admin: Option<std::net::SocketAddr>) {
        let mut page = say::Page::new(format!("tidegate {} on {bound}", env!("CARGO_PKG_VERSION")));
        match &start.file {
            Some((file, _)) => announce::listed(&mut page, &start.policies, file),
            None => start.policies.as_slice().iter().for_each(|policy| announce::explained(&mut page, policy)),
        }
        if start.policies.as_slice().is_empty() {
            page.entry("policies", &"none given, so who asks brings the limit along");
        }
        start.imported.iter().for_each(|imported| imported.announce(&mut page));
        start.limitador.iter().for_each(|limits| limits.announce(&mut page));
        if bound.http.is_some() {
            page.entry("speaks", &"HTTP: POST /v1/check, and what else /openapi.json says");
        }
        if bound.grpc.is_some() {
            page.entry("speaks", &"gRPC: Envoy's rate limit service, health, reflection");
        }
        if bound.resp.is_some() {
            page.entry("speaks", &"the Redis protocol: CL.THROTTLE as redis-cell, THROTTLE as throttlecrab");
        }
        page.entry("counted", &place);
        if let Some(admin) = &admin {
            page.entry("admin", &format_args!("http://{admin}/metrics, /livez, /readyz"));
        }
        page.entry("try", &bound.trial());
        page.say();
    }

    fn warn_of_strangers(&self, bound: &Bound) -> Result<(), Wrong> {
        callers::warn_of_strangers(bound.http.as_ref())?;
        if let Some(ListenAddress::Tcp { address, .. }) = &bound.resp
            && !address.ip().is_loopback()
            && password()?.is_none()
        {
            say::warning(&format!(
                "whoever reaches {address} can use up any key, since no password is asked for; {PASSWORD_VARIABLE} sets one"
            ));
        }
        Ok(())
    }

    fn workers(&self) -> NonZeroUsize {
        let given = self.workers.and_then(|workers| NonZeroUsize::new(workers.into()));
        given.or_else(|| thread::available_parallelism().ok()).unwrap_or(NonZeroUsize::MIN)
    }
}

impl Start {
    /// Reads the file anew when it changes, from now on.
    fn watch_file<S: Store + 'static>(&self, desk: &Arc<Desk<S>>, clock: tidegate_server::Clock) -> anyhow::Result<()> {
        let Some((file, contents)) = &self.file else { return Ok(()) };
        desk.metrics().config.started(contents, clock());
        desk.read_from(&file.name());
        let reload = Reload {
            watch: FileWatch::new(file.clone(), contents.clone()),
            file: file.clone(),
            screen: self.screen,
            settings: None,
            desk: Arc::clone(desk),
            clock,
        };
        reload.start(signals::hang_ups()?)
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
