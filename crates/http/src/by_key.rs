//! Limits by a key: a limiter, and closures that take what it needs from each request.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, OnceLock};

use http::Request;
use tidegate::policy::Keys;
use tidegate::{Answer, Clock, Cost, Key, Limiter, Memory, Mode, Quota, TooManyQuotas};

use crate::attributes::{PeerLookup, RequestAttributes, peer_in_extensions};
use crate::denial::STORE_RETRY_AFTER;
use crate::once::{Mark, is_charged, remember};
use crate::roster::{Applied, Rosters};
use crate::{Ask, Asked, ClientAddress, Denial, LimitLayer, OnMissing, Reason, Report, Ruling};

/// Calls its second argument once, with the request's key or without.
type KeyOf<B> = Arc<dyn Fn(&Request<B>, &mut dyn FnMut(Option<&[u8]>)) + Send + Sync>;
type CostOf<B> = Arc<dyn Fn(&Request<B>) -> Cost + Send + Sync>;
type QuotaOf<B> = Arc<dyn Fn(&Request<B>) -> Option<Quota> + Send + Sync>;
type IsExempt<B> = Arc<dyn Fn(&Request<B>) -> bool + Send + Sync>;

/// Asks a limiter about each request. Made by [`LimitLayer::new`] and [`LimitLayer::by_client`].
pub struct ByKey<C, B> {
    limiter: Arc<Limiter<Memory<C>>>,
    whose: Whose<B>,
    on_missing: OnMissing,
    address: Arc<ClientAddress>,
    peer: PeerLookup,
    cost: Option<CostOf<B>>,
    quota: Option<QuotaOf<B>>,
    exempt: Option<IsExempt<B>>,
    rosters: Arc<Rosters>,
}

/// Whose bucket is charged.
enum Whose<B> {
    Everybody,
    Client,
    Key(KeyOf<B>),
}

impl<C: Clock, B> LimitLayer<ByKey<C, B>> {
    /// Charges the bucket of the key that `key` returns. The key is what [`Limiter::check`] takes, so the same key
    /// names the same bucket outside of the layer.
    ///
    /// Without a key, [`LimitLayer::on_missing`] says what happens. A key that callers can make up (an unverified
    /// header) gives them as many buckets as they like; put a limit by client beside it.
    pub fn key<K: Key>(self, key: impl Fn(&Request<B>) -> Option<K> + Send + Sync + 'static) -> Self {
        self.with_key(move |request, with| match key(request) {
            Some(key) => key.with_bytes(|key| with(Some(key))),
            None => with(None),
        })
    }

    /// As [`LimitLayer::key`], for keys that are borrowed from the request, such as a string in its extensions.
    pub fn key_ref<K: Key + ?Sized>(self, key: impl Fn(&Request<B>) -> Option<&K> + Send + Sync + 'static) -> Self {
        self.with_key(move |request, with| match key(request) {
            Some(key) => key.with_bytes(|key| with(Some(key))),
            None => with(None),
        })
    }

    /// What happens to a request without a key. By default the client's address stands in, in a namespace of its own:
    /// no key that [`LimitLayer::key`] could return names the same bucket.
    pub fn on_missing(mut self, on_missing: OnMissing) -> Self {
        self.ask.on_missing = on_missing;
        self
    }

    /// How the client's address is found, where it is needed. By default it is the peer's.
    pub fn client_address(mut self, address: ClientAddress) -> Self {
        self.ask.address = Arc::new(address);
        self
    }

    /// How the peer's address is found, where it is needed. By default as [`peer_in_extensions`] does.
    pub fn peer(mut self, peer: PeerLookup) -> Self {
        self.ask.peer = peer;
        self
    }

    /// What a request costs, in tokens; 1 unless told otherwise. One of cost 0 is always allowed and charged nothing.
    pub fn cost<K: Into<Cost>>(mut self, cost: impl Fn(&Request<B>) -> K + Send + Sync + 'static) -> Self {
        self.ask.cost = Some(Arc::new(move |request| cost(request).into()));
        self
    }

    /// The quota that the caller's plan gives, in place of that of the limiter's first limit; `None` leaves that one.
    ///
    /// The bucket is the same whatever the quota: a caller who changes plans keeps what is owed.
    pub fn quota(mut self, quota: impl Fn(&Request<B>) -> Option<Quota> + Send + Sync + 'static) -> Self {
        self.ask.quota = Some(Arc::new(quota));
        self
    }

    /// Requests for which `exempt` is true pass, and are charged nothing.
    pub fn exempt(mut self, exempt: impl Fn(&Request<B>) -> bool + Send + Sync + 'static) -> Self {
        self.ask.exempt = Some(Arc::new(exempt));
        self
    }

    fn with_key(mut self, key: impl Fn(&Request<B>, &mut dyn FnMut(Option<&[u8]>)) + Send + Sync + 'static) -> Self {
        self.ask.whose = Whose::Key(Arc::new(key));
        self
    }
}

impl<C: Clock, B> ByKey<C, B> {
    pub(crate) fn global(limiter: Arc<Limiter<Memory<C>>>) -> Self {
        Self {
            limiter,
            whose: Whose::Everybody,
            on_missing: OnMissing::default(),
            address: Arc::default(),
            peer: peer_in_extensions,
            cost: None,
            quota: None,
            exempt: None,
            rosters: Arc::new(Rosters::new()),
        }
    }

    pub(crate) fn client(limiter: Arc<Limiter<Memory<C>>>, address: ClientAddress) -> Self {
        Self { whose: Whose::Client, address: Arc::new(address), ..Self::global(limiter) }
    }

    #[inline]
    fn rule(&self, request: &Request<B>) -> Ruling {
        match &self.whose {
            Whose::Everybody => self.charge(request, &[]),
            Whose::Client => self.charge_client(request, &[]),
            Whose::Key(key) => {
                let mut ruling = Ruling::Free;
                key(request, &mut |key| {
                    ruling = key.map_or_else(|| self.rule_without_key(request), |key| self.charge(request, key));
                });
                ruling
            }
        }
    }

    fn rule_without_key(&self, request: &Request<B>) -> Ruling {
        match self.on_missing {
            OnMissing::Client => self.charge_client(request, namespace()),
            OnMissing::Deny => Ruling::Denied(Denial::without_limit(Reason::MissingKey)),
            OnMissing::Skip => Ruling::Free,
        }
    }

    /// Charges the bucket of the client, whose key gets `prefix` put before it.
    fn charge_client(&self, request: &Request<B>, prefix: &[u8]) -> Ruling {
        let attributes = RequestAttributes::new(request, (self.peer)(request.extensions()));
        let mut keys = Keys::new();
        let key = self.address.key(&attributes, &mut keys);
        if attributes.is_peer_missed() {
            return Ruling::Denied(Denial::without_limit(Reason::PeerUnknown));
        }
        if prefix.is_empty() { self.charge(request, key) } else { self.charge(request, &[prefix, key].concat()) }
    }

    #[inline]
    fn charge(&self, request: &Request<B>, key: &[u8]) -> Ruling {
        let cost = self.cost.as_ref().map_or(Cost::ONE, |cost| cost(request));
        let own = self.quota.as_ref().and_then(|quota| quota(request));
        match &own {
            Some(quota) => match self.limiter.check_quota(key, quota, cost) {
                Ok(answer) => self.ruling(&answer, own),
                Err(TooManyQuotas) => Ruling::Denied(Denial::by_store(STORE_RETRY_AFTER)),
            },
            None => self.ruling(&self.limiter.check_cost(key, cost), None),
        }
    }

    #[inline]
    fn ruling(&self, answer: &Answer, own: Option<Quota>) -> Ruling {
        let (Some(place), Some(decision)) = (answer.binding, answer.decision) else { return Ruling::Free };
        let applied = || {
            let limits = self.limiter.limits().enumerate().filter(|(_, (_, mode, _))| *mode == Mode::Enforce);
            limits.filter_map(|(i, (name, _, quota))| {
                let decided = (i == place).then(|| *decision.quota());
                let quota = decided.or(own.filter(|_| i == 0)).or(quota)?;
                Some(Applied { place: i, name, quota })
            })
        };
        match Report::new(self.rosters.of(applied), place, decision) {
            Some(report) if answer.is_allowed() => Ruling::Allowed(report),
            Some(report) => Ruling::Denied(Denial::by_limit(report)),
            None => Ruling::Free,
        }
    }

    /// Can another layer carry the limiter too? Each that does holds a reference to it.
    fn is_shared(&self) -> bool {
        Arc::strong_count(&self.limiter) > 1
    }

    fn mark(&self) -> Mark {
        Mark::Limiter(Arc::as_ptr(&self.limiter).addr())
    }
}

impl<C: Clock, B> Ask<B> for ByKey<C, B> {
    #[inline]
    fn ask(&self, request: &mut Request<B>) -> Asked {
        if self.exempt.as_ref().is_some_and(|exempt| exempt(request)) {
            return Asked::Now(Ruling::Free);
        }
        if !self.is_shared() {
            return Asked::Now(self.rule(request));
        }
        if is_charged(request.extensions(), self.mark()) {
            return Asked::Now(Ruling::Repeated);
        }
        let ruling = self.rule(request);
        if matches!(ruling, Ruling::Allowed(_)) {
            remember(request.extensions_mut(), &[self.mark()]);
        }
        Asked::Now(ruling)
    }
}

/// The bytes before the key of a client that stands in for a missing key.
///
/// Keys are arbitrary bytes, so no fixed ones are out of reach; these are drawn at random, once per process.
fn namespace() -> &'static [u8] {
    static NAMESPACE: OnceLock<[u8; 16]> = OnceLock::new();
    NAMESPACE.get_or_init(|| {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&RandomState::new().hash_one(0).to_ne_bytes());
        bytes[8..].copy_from_slice(&RandomState::new().hash_one(1).to_ne_bytes());
        bytes
    })
}

impl<C, B> Clone for ByKey<C, B> {
    fn clone(&self) -> Self {
        let Self { limiter, whose, on_missing, address, peer, cost, quota, exempt, rosters } = self;
        Self {
            limiter: Arc::clone(limiter),
            whose: whose.clone(),
            on_missing: *on_missing,
            address: Arc::clone(address),
            peer: *peer,
            cost: cost.clone(),
            quota: quota.clone(),
            exempt: exempt.clone(),
            rosters: Arc::clone(rosters),
        }
    }
}

impl<B> Clone for Whose<B> {
    fn clone(&self) -> Self {
        match self {
            Self::Everybody => Self::Everybody,
            Self::Client => Self::Client,
            Self::Key(key) => Self::Key(Arc::clone(key)),
        }
    }
}

impl<C, B> fmt::Debug for ByKey<C, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ByKey").field("limiter", &self.limiter).finish_non_exhaustive()
    }
}
