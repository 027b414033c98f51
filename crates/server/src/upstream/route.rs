//! The way to one upstream: connect or reuse, send.
//!
//! A request is sent a second time only where that cannot do harm:
//!
//! - It never left.
//! - It has no body, its method is idempotent (RFC 9110, section 9.2.2) and a connection that had been idle was closed
//!   under it (RFC 9112, section 9.3.1).
//! - It has no body, and the upstream says that it did nothing with it (RFC 9113, section 8.7).

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use http::uri::Scheme;
use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::sync::{Mutex, MutexGuard};
use tokio::time::timeout;

use crate::upstream::dial::{Dial, Dialled};
use crate::upstream::exchange::{Exchange, Outcome, Tried};
use crate::upstream::failure::Failure;
use crate::upstream::line::Line;
use crate::upstream::name::Speaks;
use crate::upstream::patience::{Patience, Patient};
use crate::upstream::pool::{Lease, Pool, Wire};
use crate::upstream::socket::UpstreamSocket;
use crate::upstream::translate;
use crate::upstream::trunks::{Channel, Trunks};
use crate::upstream::upload::{Pace, Upload};
use crate::{Bounds, Upstream, UpstreamBounds, UpstreamTls};

/// How often a request is sent that comes back from shared connections unprocessed.
const TRIES_MAX: usize = 3;

/// One worker's way to one upstream.
pub(crate) struct Route {
    pub(crate) upstream: Upstream,
    bounds: UpstreamBounds,
    dial: Dial,
    http1: http1::Builder,
    pool: Arc<Pool>,
    shared: Option<Shared>,
}

/// What is there for an upstream that may speak HTTP/2.
struct Shared {
    scheme: Scheme,
    trunks: Arc<Trunks>,
    /// Held by the one request that opens a trunk.
    opening: Mutex<()>,
    /// The upstream chose HTTP/1.1 last; then requests need not wait for each other's connections.
    chose_http1: AtomicBool,
}

/// What comes of a request on a shared connection.
enum Sent {
    Answered(Response<Incoming>),
    /// The upstream did nothing with it.
    Again(Request<Upload>),
}

impl Route {
    pub(crate) fn new(upstream: Upstream, tls: Option<UpstreamTls>, bounds: &Bounds) -> Self {
        let mut http1 = http1::Builder::new();
        http1
            .max_buf_size(bounds.header_bytes())
            .max_header_size(bounds.header_bytes())
            .max_headers(bounds.header_fields_max);
        let shared = |scheme| Shared {
            scheme,
            trunks: Trunks::new(bounds),
            opening: Mutex::new(()),
            chose_http1: AtomicBool::new(false),
        };
        let shared = match upstream.speaks() {
            Speaks::Http1 => None,
            Speaks::Http2 => Some(shared(Scheme::HTTP)),
            Speaks::Tls => Some(shared(Scheme::HTTPS)),
        };
        let pool = Pool::new(bounds.upstream.idle_max, bounds.upstream.idle_timeout);
        Self { dial: Dial::new(&upstream, tls), upstream, bounds: bounds.upstream.clone(), http1, pool, shared }
    }

    /// Sends `request`, whose body comes at `pace`; the answer's header section is what comes of it.
    pub(crate) fn send(
        self: &Arc<Self>,
        request: Request<Upload>,
        pace: Option<Arc<Pace>>,
        patience: Patience,
    ) -> Exchange<impl Future<Output = Tried> + Send + use<>> {
        match self.pool.take() {
            Some(mut lease) => {
                let copy = copy(&request).filter(|copy| copy.method().is_idempotent());
                let answer = Patient::new(lease.sender().try_send_request(request), pace.clone(), patience);
                Exchange::on_reused(self, lease, copy, answer, pace, patience)
            }
            None => Exchange::on_other(self, request, pace, patience),
        }
    }

    /// Sends `request` on a shared connection, or on a new one.
    pub(crate) async fn send_otherwise(
        &self,
        mut request: Request<Upload>,
        pace: Option<Arc<Pace>>,
        patience: Patience,
    ) -> Outcome {
        for _ in 0..TRIES_MAX {
            match (self.line().await?, &self.shared) {
                (Line::Shared(channel), Some(shared)) => {
                    match shared.send(&channel, request, pace.clone(), patience).await? {
                        Sent::Answered(answer) => return Ok((answer, Line::Shared(channel))),
                        Sent::Again(again) => request = again,
                    }
                }
                (Line::Own(mut lease), _) => {
                    translate::to_http1(&mut request)?;
                    let sent = lease.sender().try_send_request(request);
                    return match Patient::new(sent, pace, patience).await? {
                        Ok(answer) => Ok((answer, Line::Own(lease))),
                        Err(error) => Err(Failure::of(error.error())),
                    };
                }
                (Line::Shared(_), None) => break,
            }
        }
        Err(Failure::Closed)
    }

    /// A place on a shared connection, or a new connection.
    async fn line(&self) -> Result<Line, Failure> {
        if let Some(channel) = self.shared.as_ref().and_then(|shared| shared.trunks.take()) {
            return Ok(Line::Shared(channel));
        }
        let line = timeout(self.bounds.connect_timeout, self.new_line()).await;
        line.map_err(|_| Failure::ConnectTimeout)?
    }

    async fn new_line(&self) -> Result<Line, Failure> {
        let Some(shared) = &self.shared else {
            return self.lease(self.dial.open_http1().await?, false).await.map(Line::Own);
        };
        let _alone = shared.alone().await;
        // Whoever was before us may have left room.
        if let Some(channel) = shared.trunks.take() {
            return Ok(Line::Shared(channel));
        }
        let dialled = self.dial.open().await?;
        shared.chose_http1.store(matches!(dialled, Dialled::Http1(_)), Relaxed);
        match dialled {
            Dialled::Http1(socket) => self.lease(socket, false).await.map(Line::Own),
            Dialled::Http2(socket) => shared.trunks.join(socket).await.map(Line::Shared),
        }
    }

    /// A connection over `socket` for HTTP/1.1, which can be upgraded or not.
    async fn lease(&self, socket: UpstreamSocket, can_upgrade: bool) -> Result<Lease, Failure> {
        let handshake = self.http1.handshake(TokioIo::new(socket));
        let (sender, connection) = handshake.await.map_err(|error| Failure::of(&error))?;
        // Its end is seen by who uses it.
        let task = match can_upgrade {
            true => tokio::spawn(async move { drop(connection.with_upgrades().await) }),
            false => tokio::spawn(async move { drop(connection.await) }),
        };
        Ok(self.pool.lease(Wire::new(sender, task.abort_handle())))
    }

    /// Sends a request that asks for an upgrade, on a new connection that can be upgraded.
    pub(crate) async fn send_upgradable(
        &self,
        request: Request<Upload>,
        patience: Patience,
    ) -> Result<(Response<Incoming>, Lease), Failure> {
        let connected = timeout(self.bounds.connect_timeout, self.dial.open_http1()).await;
        let socket = connected.map_err(|_| Failure::ConnectTimeout)??;
        let mut lease = self.lease(socket, true).await?;
        let sent = lease.sender().send_request(request);
        match Patient::new(sent, None, patience).await? {
            Ok(answer) => Ok((answer, lease)),
            Err(error) => Err(Failure::of(&error)),
        }
    }
}

impl Shared {
    /// Waits until no other request opens a connection, unless each gets one of its own anyway.
    async fn alone(&self) -> Option<MutexGuard<'_, ()>> {
        if self.chose_http1.load(Relaxed) {
            return None;
        }
        let alone = self.opening.lock().await;
        (!self.chose_http1.load(Relaxed)).then_some(alone)
    }

    async fn send(
        &self,
        channel: &Channel,
        mut request: Request<Upload>,
        pace: Option<Arc<Pace>>,
        patience: Patience,
    ) -> Result<Sent, Failure> {
        translate::to_http2(&mut request, &self.scheme)?;
        let copy = copy(&request);
        let sent = channel.sender().try_send_request(request);
        let mut error = match Patient::new(sent, pace, patience).await? {
            Ok(answer) => return Ok(Sent::Answered(answer)),
            Err(error) => error,
        };
        let failure = Failure::of(error.error());
        let again = error.take_message().or_else(|| copy.filter(|_| matches!(failure, Failure::Unprocessed)));
        again.map(Sent::Again).ok_or(failure)
    }
}

/// The same request again, if it has no body.
fn copy(request: &Request<Upload>) -> Option<Request<Upload>> {
    if !request.body().is_end_stream() {
        return None;
    }
    let mut copy = Request::new(Upload::none());
    *copy.method_mut() = request.method().clone();
    *copy.uri_mut() = request.uri().clone();
    *copy.version_mut() = request.version();
    *copy.headers_mut() = request.headers().clone();
    Some(copy)
}
