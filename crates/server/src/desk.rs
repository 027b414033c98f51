//! The desk: the policies in force over a store, and all who watch them and see to them. The gateway and the decision
//! server each have one, and differ in who comes to it.

use std::fmt;
use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::thread;

use arc_swap::ArcSwapOption;
use tidegate::policy::Policies;
use tidegate::{Charge, Gate, Quota, Store, Time};
use tidegate_http::{Cors, Dialects, LimitLayer};
use tidegate_policy::KeySalt;
use tidegate_policy::descriptor_rules::DescriptorRules;
use tidegate_policy::limitador::Limits;

use crate::operating::admin::{Operator, Origin};
use crate::operating::denied::Denied;
use crate::operating::in_force::Observed;
use crate::telling::record::{Recorded, Recorder};
use crate::telling::told::Told;
use crate::{
    Admin, AdminToken, Believed, Bounds, Clock, Drain, Imports, LogFormat, LogTarget, Metrics, OperationSetup,
    OtlpEndpoint, Sample, Setup, StoreLevel, run,
};

/// Whom to tell what an operator should know.
pub type Notice = Arc<dyn Fn(&str) + Send + Sync>;

/// What a desk is made of.
pub struct DeskSetup<S> {
    /// What decides.
    pub gate: Gate<S>,
    /// How it stands with the gate's store, for the metrics.
    pub level: fn(&S) -> StoreLevel,
    /// What measures how long things take, and tells the day of a joke and the end of an override: the clock that the
    /// store decides by, if it is in this process.
    pub clock: Clock,
    /// What an operator can do.
    pub operation: OperationSetup<S>,
    /// Told once, if all traffic comes from one private peer while nothing is trusted, or if something is wrong with a
    /// log.
    pub notice: Notice,
    /// What hashes the keys that logs name.
    pub salt: KeySalt,
    /// Where each request is told of, if it is.
    pub access_log: Option<AccessLogSetup>,
    /// Where spans are sent, if they are.
    pub traces: Option<TraceSetup>,
}

impl<S> DeskSetup<S> {
    /// One where nobody is told of anything, and keys are hashed as anybody can.
    #[must_use]
    pub fn new(gate: Gate<S>, level: fn(&S) -> StoreLevel, clock: Clock, operation: OperationSetup<S>) -> Self {
        let (notice, salt): (Notice, _) = (Arc::new(|_: &str| ()), KeySalt::default());
        Self { gate, level, clock, operation, notice, salt, access_log: None, traces: None }
    }
}

/// Where each request is told of, and how.
#[derive(Debug)]
pub struct AccessLogSetup {
    /// What lines are written to.
    pub target: LogTarget,
    /// How they are written.
    pub format: LogFormat,
}

/// Where spans are sent, and of which requests.
#[derive(Clone, Debug)]
pub struct TraceSetup {
    /// The collector.
    pub endpoint: OtlpEndpoint,
    /// The share of the requests that is traced, of those that no peer who is believed has decided on.
    pub sample: Sample,
}

/// The policies in force over a store, with metrics, logs and an operator.
pub struct Desk<S> {
    pub(crate) in_force: Observed<S>,
    pub(crate) imports: Imports,
    pub(crate) store: Arc<S>,
    pub(crate) clock: Clock,
    pub(crate) metrics: Arc<Metrics>,
    /// Whose word counts, as the policies in force say.
    pub(crate) believed: Believed,
    told: Told,
    operator: Arc<Operator<S>>,
    token: Option<AdminToken>,
}

impl<S: Store + 'static> Desk<S> {
    pub(crate) fn new(setup: DeskSetup<S>) -> Self {
        let DeskSetup { gate, level, clock, operation, notice, salt, access_log, traces } = setup;
        let OperationSetup { is_up, takes, denied_keys, are_denied_hashed, token } = operation;
        let store = gate.shared_store();
        let seen = Arc::clone(&store);
        let metrics = Arc::new(Metrics::new(&[]).with_store(move || level(&seen)));
        let believed = Believed::from(gate.policies().client().trust.clone());
        let denied =
            (denied_keys > 0).then(|| Arc::new(Denied::new(denied_keys, are_denied_hashed, Arc::clone(&clock))));
        let (time, counters) = (Arc::clone(&clock), Arc::clone(&metrics));
        let in_force = Observed::new(gate, time, counters, denied.clone(), Arc::clone(&notice));
        let imports = Imports::new(&metrics, Arc::clone(&clock), denied.clone());
        let operator = Arc::new(Operator {
            in_force: in_force.clone(),
            imports: imports.clone(),
            store: Arc::clone(&store),
            is_up,
            takes,
            clock: Arc::clone(&clock),
            metrics: Arc::clone(&metrics),
            origin: ArcSwapOption::empty(),
            denied,
            salt: salt.clone(),
        });
        let recorder = |log, tracer| Recorder {
            clock: Arc::clone(&clock),
            client: in_force.client_lookup(),
            salt: Arc::new(salt),
            log,
            tracer,
            believed: believed.clone(),
        };
        let told = Told::new(access_log, traces, &metrics, notice, recorder);
        let desk = Self { in_force, imports, store, clock, metrics, believed, told, operator, token };
        desk.with_policies(|policies| desk.acquaint(policies.claims().map(|(_, claim)| claim.quota)));
        desk
    }

    /// Has the store know these quotas from now on. A table in memory knows a bounded number of them in its life, and
    /// calls that bring limits of their own must not use it up before those of the files had their turn.
    fn acquaint(&self, quotas: impl IntoIterator<Item = Quota>) {
        // Of one that the store cannot keep, each decision says so.
        quotas.into_iter().for_each(|quota| drop((self.operator.takes)(&self.store, &quota)));
    }

    /// Calls `with` with the policies in force.
    pub fn with_policies<R>(&self, with: impl FnOnce(&Policies) -> R) -> R {
        self.in_force.with_policies(with)
    }

    /// Puts other policies in force. Requests that were asked about already end under the old ones, and what keys owe
    /// is kept under limits that go on ([`Policies::fresh_after`] says which do not).
    pub fn replace(&self, policies: Policies) {
        self.acquaint(policies.claims().map(|(_, claim)| claim.quota));
        self.believed.replace(policies.client().trust.clone());
        self.in_force.replace(policies);
    }

    /// Puts rules of the reference rate limit service in force, for the calls that come from now on. What keys owe is
    /// kept under rules that stand at the same place of their domain. There are none at first.
    pub fn import_rules(&self, rules: DescriptorRules) {
        self.acquaint(rules.rules().iter().filter_map(|rule| rule.limit.quota()));
        self.imports.replace_rules(rules);
    }

    /// Puts limits of limitador in force, for the calls that come from now on. What keys owe is kept under limits that
    /// are the same but for `max_value`. There are none at first.
    pub fn import_limits(&self, limits: Limits) {
        self.acquaint(limits.as_slice().iter().map(|limit| limit.quota));
        self.imports.replace_limits(limits);
    }

    /// Opens the file of the access log anew, as who rotates logs may ask for. A file that was moved is left behind
    /// within a second anyway.
    pub fn reopen_logs(&self) {
        self.told.reopen_logs();
    }

    /// Says that the policies in force were read from this file now. An operator is told so.
    pub fn read_from(&self, file: &str) {
        let read_s = (self.clock)().since(Time::ZERO).as_secs();
        self.operator.origin.store(Some(Arc::new(Origin { file: file.to_owned(), read_s })));
    }

    /// Which of these limits the store cannot keep, and why; `None` if it can keep all.
    pub(crate) fn refuses<'c>(&self, charges: impl IntoIterator<Item = &'c Charge<'c>>) -> Option<String> {
        charges.into_iter().find_map(|Charge { quota, .. }| {
            let why = (self.operator.takes)(&self.store, quota).err()?;
            Some(format!("the limit {quota} {why}"))
        })
    }

    /// The keys denied most, if they are counted.
    pub(crate) fn denied(&self) -> Option<&Arc<Denied>> {
        self.operator.denied.as_ref()
    }

    /// What is counted.
    #[must_use]
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// What puts requests before the policies in force. Which preflights are counted, the policies say.
    pub(crate) fn layer(&self, dialects: Dialects, cors: Option<Cors>) -> LimitLayer<Observed<S>> {
        let layer = LimitLayer::asking(self.in_force.clone()).count_preflights().dialects(dialects);
        match cors {
            Some(cors) => layer.cors(cors),
            None => layer,
        }
    }

    /// A service whose answers are counted, and told of if somebody wants to know.
    pub(crate) fn recorded<T>(&self, service: T) -> Recorded<T> {
        Recorded::new(service, self.metrics.statuses.clone(), self.told.recorder())
    }

    /// Calls `serve`, which returns when `drain` has started and all is served, and meanwhile serves operators on `admin`
    /// and those who are told.
    pub(crate) fn attended(
        &self,
        admin: Option<TcpListener>,
        drain: &Drain,
        serve: impl FnOnce() -> io::Result<()>,
    ) -> io::Result<()> {
        let drained = Drain::new();
        thread::scope(|scope| {
            self.told.start(scope);
            let admin = admin.map(|listener| {
                let operator: Arc<Operator<S>> = Arc::clone(&self.operator);
                let face = Admin::new(Arc::clone(&self.metrics), drain.clone());
                let face = face.with_token(self.token.clone()).operated_by(operator);
                let (setup, drained) = (Setup { bounds: Bounds::admin(), ..Setup::default() }, drained.clone());
                scope.spawn(move || run(vec![vec![listener.into()]], || face.clone(), &setup, &drained))
            });
            let served = serve();
            self.told.close();
            drained.start();
            let admin = admin.map_or(Ok(()), |thread| {
                thread.join().unwrap_or_else(|_| Err(io::Error::other("the admin face panicked")))
            });
            served.and(admin)
        })
    }
}

impl<S> fmt::Debug for Desk<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Desk").field("metrics", &self.metrics).finish_non_exhaustive()
    }
}
