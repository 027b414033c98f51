//! `tidegate proxy`: limits in front of any HTTP API.

use std::fmt;
use std::sync::Arc;

use anyhow::Context as _;
use clap::Args;
use tidegate::policy::file::Config;
use tidegate::{Clock as _, Gate, Memory, Store, SystemClock, TableOptions};
use tidegate_server::{DeskSetup, Drain, Entrance, Gateway, GatewaySetup, OperationSetup, ServedBy, StoreLevel};

use crate::announce::Announcement;
use crate::certificates::CertificateFiles;
use crate::config_file::ConfigFile;
use crate::file_watch::FileWatch;
use crate::flags::Wrong;
use crate::policy_flags::{PolicyFlags, belong_into, something_limited};
use crate::reload::Reload;
use crate::screen::Screen;
use crate::settings::ProxyFlags;
use crate::store::StoreFlags;
use crate::{say, signals, trust_files};

/// Limit the requests to an HTTP API, and pass the others on to it.
///
/// Without --upstream it serves a small API of its own, so that it can be tried on an empty machine. With --config the
/// limits stand in a file, which is read anew when it changes, or on SIGHUP.
#[derive(Args)]
#[command(group(something_limited()))]
pub(crate) struct Proxy {
    #[command(flatten)]
    policies: PolicyFlags,

    #[command(flatten)]
    flags: ProxyFlags,

    #[command(flatten)]
    store: StoreFlags,

    /// Print the configuration file that says what these flags say, and end.
    #[arg(long)]
    print_config: bool,
}

/// What the proxy serves by, and the file that it stands in.
struct Start {
    config: Config,
    flags: ProxyFlags,
    screen: Screen,
    file: Option<(ConfigFile, String)>,
}

impl Proxy {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        self.flags.logs.set_voice();
        let start = self.start()?;
        start.flags.logs.set_voice();
        if self.print_config {
            let config = Config { policies: start.config.policies, proxy: start.flags.to_settings() };
            return say::answer(config.to_toml().as_bytes());
        }
        start.flags.admin.face.check()?;
        let (policies, options) = (&start.config.policies, TableOptions::with_keys(start.flags.serving.max_keys()));
        let clock = SystemClock::new();
        match self.store.open(options, policies)? {
            None => start.serve_from_memory(options, clock),
            Some(shared) => {
                let counted = Counted {
                    gate: Gate::new(policies.clone(), shared.store.clone()),
                    level: StoreLevel::of_shared,
                    operation: start.flags.admin.operation(OperationSetup::of_shared())?,
                    place: shared.to_string(),
                    warnings: shared.warning().into_iter().chain(start.unsaved()).collect(),
                };
                let served = start.serve(counted, clock);
                shared.give_back_leases();
                served
            }
        }
    }

    /// Reads the flags and the file.
    fn start(&self) -> Result<Start, Wrong> {
        self.store.check()?;
        let screen = Screen { is_shared: self.store.is_given(), server: ServedBy::Gateway };
        let Some(file) = self.policies.file()? else {
            let policies = trust_files::read(self.policies.policies(self.store.handling())?)?;
            screen.flags(&policies)?;
            let config = Config { policies, proxy: Vec::new() };
            return Ok(Start { config, flags: self.flags.clone(), screen, file: None });
        };
        belong_into(&file, &self.store.belonging())?;
        let contents = file.contents()?;
        let (config, flags) = screen.file(&file, &contents, &self.flags)?;
        Ok(Start { config, flags, screen, file: Some((file, contents)) })
    }
}

/// Where buckets are counted, and what there is to be known of it.
struct Counted<S> {
    gate: Gate<S>,
    level: fn(&S) -> StoreLevel,
    operation: OperationSetup<S>,
    /// In words.
    place: String,
    warnings: Vec<String>,
}

impl Start {
    /// Serves from buckets in this process, those of the process before if they are kept.
    fn serve_from_memory(&self, options: TableOptions, clock: SystemClock) -> anyhow::Result<()> {
        let (policies, file) = (self.config.policies.clone(), self.flags.state.file());
        let gate = match file.as_ref().and_then(|file| file.restore(options, clock.clone())) {
            // What is another quota than when they were written is so from now on.
            Some(memory) => Gate::new(policies.in_force_from(clock.now()), memory),
            None => Gate::new(policies, Memory::new(options, clock.clone())),
        };
        let store = gate.shared_store();
        let operation = self.flags.admin.operation(OperationSetup::of_memory())?;
        let (level, place) = (StoreLevel::of_memory as fn(&_) -> _, self.counted_here());
        let served = self.serve(Counted { gate, level, operation, place, warnings: Vec::new() }, clock);
        file.iter().for_each(|file| file.save(&store));
        served
    }

    /// What an operator should know of buckets that are not this process's to save.
    fn unsaved(&self) -> Option<String> {
        let file = self.flags.state.file();
        file.map(|_| "`save_state` says nothing with --store, since buckets then live in that server".to_owned())
    }

    /// Serves until it is told to stop.
    fn serve<S: Store + 'static>(&self, counted: Counted<S>, clock: SystemClock) -> anyhow::Result<()> {
        let Counted { gate, level, operation, place, warnings } = counted;
        let policies = &self.config.policies;
        let upstreams = self.flags.upstreams.upstreams()?;
        let certificates = self.flags.entrance.certificates()?.map(CertificateFiles::open).transpose()?;
        let clock: tidegate_server::Clock = Arc::new(move || clock.now());
        let desk = DeskSetup {
            salt: self.flags.admin.salt(),
            notice: Arc::new(say::warning),
            access_log: self.flags.logs.access_log()?,
            traces: self.flags.traces.setup(),
            ..DeskSetup::new(gate, level, Arc::clone(&clock), operation)
        };
        let gateway = Gateway::new(GatewaySetup {
            desk,
            upstreams: upstreams.clone(),
            upstream_tls: self.flags.upstreams.tls()?,
            host_told: self.flags.upstreams.host_told(),
            entrance: Entrance {
                tls: certificates.as_ref().map(|certificates| certificates.tls().clone()),
                proxy_protocol: self.flags.entrance.proxy_protocol(&policies.client().trust)?,
                ..Entrance::default()
            },
            bounds: self.flags.bounds(),
            dialects: self.flags.answers.dialects(),
            cors: self.flags.answers.cors()?,
        });
        let desk = gateway.desk();
        if self.flags.logs.place().is_some() {
            let desk = Arc::clone(desk);
            signals::on_rotation(move || desk.reopen_logs())?;
        }

        let (listeners, bound) = self.flags.serving.bind()?;
        let admin = self.flags.admin.face.bind()?;
        let drain = Drain::new();
        signals::drain_on_signal(&drain)?;
        if let Some(certificates) = certificates {
            certificates.watch(Arc::clone(desk.metrics())).start(signals::hang_ups()?)?;
        }
        if let Some((file, contents)) = &self.file {
            desk.metrics().config.started(contents, clock());
            desk.read_from(&file.name());
            let reload = Reload {
                watch: FileWatch::new(file.clone(), contents.clone()),
                file: file.clone(),
                screen: self.screen,
                settings: Some(self.config.proxy.clone()),
                desk: Arc::clone(desk),
                clock,
            };
            reload.start(signals::hang_ups()?)?;
        }

        let file = self.file.as_ref().map(|(file, _)| file);
        let admin_address = admin.as_ref().map(std::net::TcpListener::local_addr).transpose()?;
        let (flags, upstreams, counted, bound) = (&self.flags, upstreams.as_ref(), &*place, bound.as_slice());
        Announcement { flags, upstreams, file, counted, bound, admin: admin_address }.say(policies);
        self.screen.warnings(policies).iter().chain(&warnings).for_each(|warning| say::warning(warning));

        gateway.run(listeners, admin, &drain).context("serving ended early")?;
        say::line("stopped; every request in flight was given its time");
        Ok(())
    }

    fn counted_here(&self) -> String {
        match self.flags.serving.workers().get() {
            1 => "by this process alone, in memory; 1 worker".to_owned(),
            n => format!("by this process alone, in memory; its {n} workers share the buckets"),
        }
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy").field("policies", &self.policies).finish_non_exhaustive()
    }
}
