//! The layer, and what can be set.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use http::{HeaderMap, Response, request::Parts};
use tidegate::{Gate, Limiter, Store};
use tower_layer::Layer;

use crate::{ByKey, ByPolicies, ClientAddress, Cors, Denial, Dialects, LimitService};

/// An answer of the user's own to a denied request.
pub(crate) type OwnAnswer = Arc<dyn Fn(&Denial, &Parts) -> Response<Bytes> + Send + Sync>;

/// Wraps a service so that each request is asked about before the service sees it.
///
/// It is the same layer for axum, tonic and plain hyper: it knows the inner service only as a tower service of HTTP
/// requests and responses whose body consists of [`Bytes`].
#[derive(Clone)]
#[must_use]
pub struct LimitLayer<A> {
    pub(crate) ask: A,
    settings: Settings,
}

#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) dialects: Dialects,
    pub(crate) own_answer: Option<OwnAnswer>,
    /// Does an answer of the user's own get the fields too?
    pub(crate) completes_own_answer: bool,
    /// Is a denied gRPC call told so in gRPC's own shape?
    pub(crate) speaks_grpc: bool,
    pub(crate) exempts_preflights: bool,
    pub(crate) cors: Option<Arc<Cors>>,
    on_repeat: Option<Arc<dyn Fn() + Send + Sync>>,
    was_repeated: Arc<AtomicBool>,
}

impl<S: Store, B> LimitLayer<ByKey<S, B>> {
    /// Limits by a key that [`LimitLayer::key`] takes from each request. Without one, all requests share one bucket.
    pub fn new(limiter: Arc<Limiter<S>>) -> Self {
        Self::asking(ByKey::global(limiter))
    }

    /// Limits by the address of the client, which is found in the way `address` says.
    pub fn by_client(limiter: Arc<Limiter<S>>, address: ClientAddress) -> Self {
        Self::asking(ByKey::client(limiter, address))
    }
}

impl<S: Store> LimitLayer<ByPolicies<S>> {
    /// Limits by policies.
    pub fn by_policies(gate: Arc<Gate<S>>) -> Self {
        Self::asking(ByPolicies::new(gate))
    }
}

impl<A> LimitLayer<A> {
    /// Limits by whatever `ask` says.
    pub fn asking(ask: A) -> Self {
        Self { ask, settings: Settings::default() }
    }

    /// What decides, to be wrapped in an [`Ask`](crate::Ask) of one's own.
    pub fn into_ask(self) -> A {
        self.ask
    }

    /// Tells clients about limits in these dialects; [`Dialects::default`] unless told otherwise.
    pub fn dialects(mut self, dialects: impl Into<Dialects>) -> Self {
        self.settings.dialects = dialects.into();
        self
    }

    /// Answers denied requests with what `answer` returns. The fields (`Retry-After`, `Cache-Control`, and those of the
    /// dialects) are added to it; one that it sets itself stays.
    ///
    /// gRPC requests are not asked about: their clients understand only gRPC's own shape.
    pub fn on_denied(mut self, answer: impl Fn(&Denial, &Parts) -> Response<Bytes> + Send + Sync + 'static) -> Self {
        self.settings.own_answer = Some(Arc::new(answer));
        self.settings.completes_own_answer = true;
        self
    }

    /// As [`LimitLayer::on_denied`], but the answer goes out as it is, without any field added.
    pub fn on_denied_exactly(
        self,
        answer: impl Fn(&Denial, &Parts) -> Response<Bytes> + Send + Sync + 'static,
    ) -> Self {
        let mut layer = self.on_denied(answer);
        layer.settings.completes_own_answer = false;
        layer
    }

    /// Answers a denied gRPC call as any other request. For whoever asks on a caller's behalf, and goes by the status: in
    /// gRPC's own shape that would be 200.
    pub fn without_grpc_shape(mut self) -> Self {
        self.settings.speaks_grpc = false;
        self
    }

    /// Counts CORS preflights like any request. Otherwise they pass, and nothing is charged.
    pub fn count_preflights(mut self) -> Self {
        self.settings.exempts_preflights = false;
        self
    }

    /// Lets scripts of these origins read denials, and the fields that tell of limits on what passes. Whether they may
    /// read the rest of what passes is for the inner service to say.
    pub fn cors(mut self, cors: Cors) -> Self {
        self.settings.cors = Some(Arc::new(cors));
        self
    }

    /// Calls `note` once, when a request first shows that an outer layer carries the same limits. This layer then
    /// charges nothing, so one of the two can go.
    pub fn on_repeat(mut self, note: impl Fn() + Send + Sync + 'static) -> Self {
        self.settings.on_repeat = Some(Arc::new(note));
        self
    }
}

impl Settings {
    /// May a script that sent this request read fields that this layer adds?
    #[inline]
    pub(crate) fn is_exposed_to(&self, request: &HeaderMap) -> bool {
        self.cors.as_ref().is_some_and(|cors| cors.origin(request).is_some())
    }

    pub(crate) fn note_repeat(&self) {
        let Some(note) = &self.on_repeat else { return };
        if !self.was_repeated.swap(true, Ordering::Relaxed) {
            note();
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            dialects: Dialects::default(),
            own_answer: None,
            completes_own_answer: true,
            speaks_grpc: true,
            exempts_preflights: true,
            cors: None,
            on_repeat: None,
            was_repeated: Arc::default(),
        }
    }
}

impl<S, A: Clone> Layer<S> for LimitLayer<A> {
    type Service = LimitService<S, A>;

    fn layer(&self, inner: S) -> LimitService<S, A> {
        LimitService::new(inner, self.ask.clone(), self.settings.clone())
    }
}

impl<A: fmt::Debug> fmt::Debug for LimitLayer<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { ask, settings } = self;
        f.debug_struct("LimitLayer").field("ask", ask).field("dialects", &settings.dialects).finish_non_exhaustive()
    }
}
