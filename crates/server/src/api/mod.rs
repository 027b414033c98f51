//! The face that speaks HTTP: who has no protocol of its own to ask in asks here.
//!
//! Read `routes` (what there is), `question` (a call of `/v1/check`, with `brought`, `key` and `described`), `check` and
//! `rendered` (its answer, as `manner` says); `reserve` and `token` for what is settled later; `keys`; `refusal` for what is said of a call
//! that is wrong; `limitador`, for those who ask that today. `openapi.json` says all of it to programs, and a test holds it against what is taken.

mod body;
mod brought;
mod callers;
mod check;
mod described;
mod forward_auth;
mod key;
mod keys;
mod limitador;
mod mac;
mod manner;
mod query;
mod question;
mod refusal;
mod rendered;
mod reserve;
mod routes;
mod token;

use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::Request;
use hyper::body::Incoming;
use tidegate_core::{Charge, Decision, Handling, Mode, Source, Store};
use tidegate_http::Dialects;
use tower_service::Service;

use self::brought::Brought;
pub use self::callers::Callers;
use self::forward_auth::ForwardAuth;
use self::mac::MacKey;
use crate::client::serve::serve_all;
use crate::desk::Desk;
use crate::envoy::RateLimits;
use crate::{Answer, Bounds, Entrance, LimitMetrics, Listener, Setup};

/// The name under which limits that calls bring are counted: a name that comes with a call is no label.
pub(crate) const LIMIT: (&str, &str) = ("api", "check");

/// Bytes of a header section: the longest key of a call fits into its target.
const HEADER_BYTES_MAX: usize = 96 * 1024;

/// What the face is set up with.
#[derive(Clone, Debug, Default)]
pub struct ApiSetup {
    /// How much it takes, and for how long it waits.
    pub bounds: Bounds,
    /// How clients come in.
    pub entrance: Entrance,
    /// What clients are told about limits, in fields.
    pub dialects: Dialects,
    /// Who may call.
    pub callers: Callers,
}

/// What counts decisions under limits that calls bring.
#[derive(Clone, Debug)]
pub(crate) struct BroughtMetrics {
    pub(crate) enforced: LimitMetrics,
    pub(crate) shadow: LimitMetrics,
}

/// The bounds of the face.
#[must_use]
pub fn api_bounds() -> Bounds {
    Bounds { header_bytes_max: HEADER_BYTES_MAX, ..Bounds::default() }
}

/// Answers over HTTP by the decisions of a desk. Clones are the same face.
pub struct Api<S>(Arc<Face<S>>);

pub(crate) struct Face<S> {
    desk: Arc<Desk<S>>,
    rate_limits: Arc<RateLimits<S>>,
    setup: ApiSetup,
    forward_auth: ForwardAuth<S>,
    /// What limits that calls bring want of their store.
    handling: Handling,
    metrics: BroughtMetrics,
    /// What reservations are signed with; `None` if the system gave nothing by chance.
    mac: Option<MacKey>,
}

impl<S: Store + 'static> Api<S> {
    pub(crate) fn new(
        desk: Arc<Desk<S>>,
        rate_limits: Arc<RateLimits<S>>,
        setup: ApiSetup,
        handling: Handling,
        metrics: BroughtMetrics,
    ) -> Self {
        let mac = match &setup.callers {
            // Servers that share a store share the token too, so what one has signed the others read.
            Callers::WithToken(token) => Some(MacKey::of(token.as_bytes()).derived(b"reservations")),
            Callers::Local | Callers::Anybody => MacKey::draw(),
        };
        let forward_auth = ForwardAuth::new(&desk.in_force, setup.dialects);
        Self(Arc::new(Face { desk, rate_limits, setup, forward_auth, handling, metrics, mac }))
    }

    /// Serves clients on these listeners until `shutdown` is ready; then requests in flight end.
    pub(crate) async fn serve(&self, listeners: Vec<Listener>, shutdown: impl Future<Output = ()>) -> io::Result<()> {
        let Face { desk, setup, .. } = &*self.0;
        let setup = Setup {
            bounds: setup.bounds.clone(),
            entrance: Entrance { trust: desk.believed.clone(), ..setup.entrance.clone() },
            connections: desk.metrics.connections.clone(),
        };
        serve_all(listeners, desk.recorded(self.clone()), setup, shutdown).await
    }
}

impl<S: Store + 'static> Face<S> {
    /// Counts what was decided under limits that a call brought.
    fn count(&self, brought: &[Brought<'_>], charges: &[Charge<'_>], decisions: &[Decision], source: Source) {
        self.desk.metrics.store.answered(source);
        let limited = brought.iter().filter(|one| one.quota.is_some());
        for ((one, charge), decision) in limited.zip(charges).zip(decisions) {
            let counters = if one.mode == Mode::Shadow { &self.metrics.shadow } else { &self.metrics.enforced };
            counters.count(decision, source);
            self.desk
                .denied()
                .into_iter()
                .for_each(|denied| denied.count_brought(charge, decision, (LIMIT.0, &one.name)));
        }
    }
}

impl<S: Store + 'static> Service<Request<Incoming>> for Api<S> {
    type Response = http::Response<crate::ProxyBody>;
    type Error = Infallible;
    type Future = Answer;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Incoming>) -> Answer {
        let face = Arc::clone(&self.0);
        Box::pin(async move { Ok(routes::answer(&face, request).await) })
    }
}

impl<S> Clone for Api<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<S> fmt::Debug for Api<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Api").field("setup", &self.0.setup).finish_non_exhaustive()
    }
}

/// For whoever sends it bytes of any kind.
#[cfg(feature = "fuzz")]
pub(crate) mod fuzz {
    use super::{MacKey, question::Question, reserve, token};

    /// Reads them as the body of each call, and as the token of a reservation.
    ///
    /// # Panics
    /// They are such a token.
    pub fn call(input: &[u8]) {
        let Ok(text) = super::body::text(input) else { return };
        let key = MacKey::of(b"of a test");
        let _ = (Question::check(text).is_ok(), Question::reserve(text).is_ok(), reserve::settling(text).is_ok());
        assert!(token::read(&key, text).is_none(), "nobody guesses a token");
    }
}
