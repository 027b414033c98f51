//! Limits by a key: a limiter, and closures that take what it needs from each request.

use std::fmt;
use std::sync::Arc;

use http::Request;
use tidegate::policy::Keys;
use tidegate::{Answer, Cost, Demand, Key, Limiter, Mode, Quota, Store};

use crate::attributes::{PeerLookup, RequestAttributes, peer_in_extensions};
use crate::denial::STORE_RETRY_AFTER;
use crate::once::{Mark, Marks, is_charged};
use crate::roster::{Applied, Rosters};
use crate::{Ask, Asked, ClientAddress, Denial, LimitLayer, OnMissing, Reason, Report, Ruled, Ruling};

/// Calls its second argument once, with the request's key or without.
type KeyOf<B> = Arc<dyn Fn(&Request<B>, &mut dyn FnMut(Option<&[u8]>)) + Send + Sync>;
type CostOf<B> = Arc<dyn Fn(&Request<B>) -> Cost + Send + Sync>;
type QuotaOf<B> = Arc<dyn Fn(&Request<B>) -> Option<Quota> + Send + Sync>;
type IsExempt<B> = Arc<dyn Fn(&Request<B>) -> bool + Send + Sync>;

/// Asks a limiter about each request. Made by [`LimitLayer::new`] and [`LimitLayer::by_client`].
pub struct ByKey<S, B> {
    desk: Desk<S>,
    whose: Whose<B>,
    on_missing: OnMissing,
    address: Arc<ClientAddress>,
    peer: PeerLookup,
    cost: Option<CostOf<B>>,
    quota: Option<QuotaOf<B>>,
    exempt: Option<IsExempt<B>>,
}

/// What is needed to decide, beside the request; a decision that takes time holds on to it.
struct Desk<S> {
    limiter: Arc<Limiter<S>>,
    rosters: Arc<Rosters>,
}

/// Whose bucket is charged.
enum Whose<B> {
    Everybody,
    Client,
    Key(KeyOf<B>),
}

impl<S: Store, B> LimitLayer<ByKey<S, B>> {
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

impl<S: Store, B> ByKey<S, B> {
    pub(crate) fn global(limiter: Arc<Limiter<S>>) -> Self {
        Self {
            desk: Desk { limiter, rosters: Arc::new(Rosters::new()) },
            whose: Whose::Everybody,
            on_missing: OnMissing::default(),
            address: Arc::default(),
            peer: peer_in_extensions,
            cost: None,
            quota: None,
            exempt: None,
        }
    }

    pub(crate) fn client(limiter: Arc<Limiter<S>>, address: ClientAddress) -> Self {
        Self { whose: Whose::Client, address: Arc::new(address), ..Self::global(limiter) }
    }
}

impl<S: Store + 'static, B> ByKey<S, B> {
    #[inline]
    fn charge(&self, request: &Request<B>, mark: Option<Mark>) -> Asked {
        let demand = || Demand {
            cost: self.cost.as_ref().map_or(Cost::ONE, |cost| cost(request)),
            quota: self.quota.as_ref().and_then(|quota| quota(request)),
            is_stand_in: false,
        };
        match &self.whose {
            Whose::Everybody => self.desk.ask(&[], demand(), mark),
            Whose::Client => self.charge_client(request, demand(), mark),
            Whose::Key(key) => {
                let mut asked = Asked::Now(Ruling::Free.into());
                key(request, &mut |key| {
                    asked = match key {
                        Some(key) => self.desk.ask(key, demand(), mark),
                        None => self.charge_without_key(request, demand(), mark),
                    }
                });
                asked
            }
        }
    }

    fn charge_without_key(&self, request: &Request<B>, demand: Demand, mark: Option<Mark>) -> Asked {
        match self.on_missing {
            OnMissing::Client => self.charge_client(request, demand.for_stand_in(), mark),
            OnMissing::Deny => Asked::Now(Ruling::Denied(Denial::without_limit(Reason::MissingKey)).into()),
            OnMissing::Skip => Asked::Now(Ruling::Free.into()),
        }
    }

    fn charge_client(&self, request: &Request<B>, demand: Demand, mark: Option<Mark>) -> Asked {
        let attributes = RequestAttributes::new(request, (self.peer)(request.extensions()));
        let mut keys = Keys::new();
        let key = self.address.key(&attributes, &mut keys);
        match attributes.is_peer_missed() {
            true => Asked::Now(Ruling::Denied(Denial::without_limit(Reason::PeerUnknown)).into()),
            false => self.desk.ask(key, demand, mark),
        }
    }
}

impl<S: Store + 'static, B> Ask<B> for ByKey<S, B> {
    #[inline]
    fn ask(&self, request: &Request<B>) -> Asked {
        if self.exempt.as_ref().is_some_and(|exempt| exempt(request)) {
            return Asked::Now(Ruling::Free.into());
        }
        let mark = self.desk.mark();
        match mark.is_some_and(|mark| is_charged(request.extensions(), mark)) {
            true => Asked::Now(Ruling::Repeated.into()),
            false => self.charge(request, mark),
        }
    }
}

impl<S: Store> Desk<S> {
    /// What an inner layer is to find. `None` if no other layer can carry the limiter: each that does holds a reference
    /// to it.
    fn mark(&self) -> Option<Mark> {
        (Arc::strong_count(&self.limiter) > 1).then(|| Mark::Limiter(Arc::as_ptr(&self.limiter).addr()))
    }

    /// What follows from what the store answered, at once or later.
    #[inline]
    fn conclude(&self, answer: Result<Answer, S::Error>, own: Option<Quota>, mark: Option<Mark>) -> Ruled {
        let Ok(answer) = answer else { return Ruling::Denied(Denial::by_store(STORE_RETRY_AFTER)).into() };
        match self.report(&answer, own) {
            Some(report) if answer.is_allowed() => {
                Ruled::from(Ruling::Allowed(report)).having_charged(mark.map(Marks::from))
            }
            Some(report) => Ruling::Denied(Denial::by_limit(report)).into(),
            None => Ruling::Free.into(),
        }
    }

    #[inline]
    fn report(&self, answer: &Answer, own: Option<Quota>) -> Option<Report> {
        let applied = || {
            let limits = self.limiter.limits().enumerate().filter(|(_, (_, mode, _))| *mode == Mode::Enforce);
            limits.filter_map(|(i, (name, _, quota))| {
                let decided = answer.decision.filter(|_| answer.binding == Some(i)).map(|decision| *decision.quota());
                let quota = decided.or(own.filter(|_| i == 0)).or(quota)?;
                Some(Applied { place: i, name, quota })
            })
        };
        Report::new(answer, || self.rosters.of(applied))
    }
}

impl<S: Store + 'static> Desk<S> {
    #[inline]
    fn ask(&self, key: &[u8], demand: Demand, mark: Option<Mark>) -> Asked {
        match self.limiter.decide_now(key, demand) {
            Some(answer) => Asked::Now(self.conclude(answer, demand.quota, mark)),
            None => Asked::Later(Box::pin(self.clone().ask_later(key.into(), demand, mark))),
        }
    }

    async fn ask_later(self, key: Box<[u8]>, demand: Demand, mark: Option<Mark>) -> Ruled {
        let answer = self.limiter.decide(&*key, demand).await;
        self.conclude(answer, demand.quota, mark)
    }
}

impl<S> Clone for Desk<S> {
    fn clone(&self) -> Self {
        Self { limiter: Arc::clone(&self.limiter), rosters: Arc::clone(&self.rosters) }
    }
}

impl<S, B> Clone for ByKey<S, B> {
    fn clone(&self) -> Self {
        let Self { desk, whose, on_missing, address, peer, cost, quota, exempt } = self;
        Self {
            desk: desk.clone(),
            whose: whose.clone(),
            on_missing: *on_missing,
            address: Arc::clone(address),
            peer: *peer,
            cost: cost.clone(),
            quota: quota.clone(),
            exempt: exempt.clone(),
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

impl<S, B> fmt::Debug for ByKey<S, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ByKey").field("limiter", &self.desk.limiter).finish_non_exhaustive()
    }
}
