//! The way to the upstream: connect or reuse, send, wait for the answer.
//!
//! A request is sent a second time only where that cannot do harm: it never left, or it has no body, its method is
//! idempotent (RFC 9110, section 9.2.2) and a connection that had been idle was closed under it (RFC 9112, section
//! 9.3.1).

use std::io;
use std::sync::Arc;
use std::time::Duration;

use http::uri::Authority;
use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpStream, lookup_host};
use tokio::time::{sleep, timeout};

use crate::failure::Failure;
use crate::pool::{Lease, Pool, Wire};
use crate::upload::{Pace, Upload};
use crate::{Bounds, Upstream, UpstreamBounds};

/// One worker's way to the upstream.
pub(crate) struct Route {
    pub(crate) upstream: Upstream,
    bounds: UpstreamBounds,
    /// For which a client may owe a piece of its body.
    client_stall: Duration,
    http: http1::Builder,
    pool: Arc<Pool>,
}

/// A request that was sent and has no answer.
struct Unanswered {
    failure: Failure,
    /// The request, where it can be sent again.
    again: Option<Request<Upload>>,
}

impl Route {
    pub(crate) fn new(upstream: Upstream, bounds: &Bounds) -> Self {
        let mut http = http1::Builder::new();
        http.max_buf_size(bounds.header_bytes())
            .max_header_size(bounds.header_bytes())
            .max_headers(bounds.header_fields_max);
        let pool = Pool::new(bounds.upstream.idle_max, bounds.upstream.idle_timeout);
        Self { upstream, bounds: bounds.upstream.clone(), client_stall: bounds.stall_timeout, http, pool }
    }

    /// Sends `request`, whose body comes at `pace`, and waits for the header section of the answer.
    pub(crate) async fn send(
        &self,
        request: Request<Upload>,
        pace: Option<Arc<Pace>>,
    ) -> Result<(Response<Incoming>, Lease), Failure> {
        let mut request = request;
        if let Some(mut lease) = self.pool.take() {
            let copy = copy(&request);
            match self.answer(&mut lease, request, pace.as_deref()).await {
                Ok(answer) => return Ok((answer, lease)),
                Err(Unanswered { failure, again }) => match again.or(copy) {
                    Some(again) if matches!(failure, Failure::Closed) => request = again,
                    _ => return Err(failure),
                },
            }
        }
        let mut lease = self.connect().await?;
        match self.answer(&mut lease, request, pace.as_deref()).await {
            Ok(answer) => Ok((answer, lease)),
            Err(unanswered) => Err(unanswered.failure),
        }
    }

    async fn answer(
        &self,
        lease: &mut Lease,
        request: Request<Upload>,
        pace: Option<&Pace>,
    ) -> Result<Response<Incoming>, Unanswered> {
        let answer = async {
            lease.sender().try_send_request(request).await.map_err(|mut error| {
                let again = error.take_message();
                Unanswered { failure: Failure::of(error.error()), again }
            })
        };
        let patience = self.patience(pace);
        tokio::select! {
            biased;
            answer = answer => answer,
            failure = patience => Err(Unanswered { failure, again: None }),
        }
    }

    /// Ends when the answer is overdue.
    async fn patience(&self, pace: Option<&Pace>) -> Failure {
        loop {
            let frames = pace.map(Pace::frames);
            let clients_turn = pace.is_some_and(Pace::waits_for_client);
            sleep(if clients_turn { self.client_stall } else { self.bounds.answer_timeout }).await;
            match pace {
                Some(pace) if frames != Some(pace.frames()) => {}
                Some(pace) if pace.waits_for_client() => return Failure::ClientStalled,
                _ => return Failure::Silent,
            }
        }
    }

    async fn connect(&self) -> Result<Lease, Failure> {
        let connected = timeout(self.bounds.connect_timeout, open(self.upstream.authority())).await;
        let socket = connected.map_err(|_| Failure::ConnectTimeout)?.map_err(Failure::Connect)?;
        let (sender, connection) =
            self.http.handshake(TokioIo::new(socket)).await.map_err(|error| Failure::of(&error))?;
        // Its end is seen by who uses it.
        let task = tokio::spawn(async move { drop(connection.await) });
        Ok(self.pool.lease(Wire::new(sender, task.abort_handle())))
    }
}

async fn open(authority: &Authority) -> io::Result<TcpStream> {
    let host = authority.host().trim_start_matches('[').trim_end_matches(']');
    let port = authority.port_u16().unwrap_or(80);
    let mut failed = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in lookup_host((host, port)).await? {
        match TcpStream::connect(address).await {
            Ok(socket) => {
                socket.set_nodelay(true)?;
                return Ok(socket);
            }
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

/// The same request again, if sending it twice does no harm.
fn copy(request: &Request<Upload>) -> Option<Request<Upload>> {
    if !request.method().is_idempotent() || !request.body().is_end_stream() {
        return None;
    }
    let mut copy = Request::new(Upload::none());
    *copy.method_mut() = request.method().clone();
    *copy.uri_mut() = request.uri().clone();
    *copy.headers_mut() = request.headers().clone();
    Some(copy)
}
