//! The way to the upstream: connect or reuse, send, wait for the answer.
//!
//! A request is sent a second time only where that cannot do harm: it never left, or it has no body, its method is
//! idempotent (RFC 9110, section 9.2.2) and a connection that had been idle was closed under it (RFC 9112, section
//! 9.3.1).

use std::error::Error;
use std::fmt;
use std::io;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use http::uri::{Authority, Scheme, Uri};
use http::{HeaderValue, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpStream, lookup_host};
use tokio::time::{sleep, timeout};

use crate::body::{Pace, Upload};
use crate::metrics::Failed;
use crate::pool::{Lease, Pool, Wire};
use crate::{Bounds, UpstreamBounds};

/// Where requests are passed on to: `http://host:port`, with an optional path that is put before each request's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstream {
    authority: Authority,
    host: HeaderValue,
    prefix: String,
}

/// Why a text does not name an upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum UpstreamError {
    /// It is not a URL with a host.
    NotAUrl {
        /// The text.
        text: String,
    },
    /// Its scheme is not `http`.
    Scheme {
        /// The scheme.
        scheme: String,
    },
    /// It holds what cannot be passed on with each request: a user or a query.
    Extra {
        /// The part that is too much.
        part: &'static str,
    },
}

impl fmt::Display for UpstreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAUrl { text } => write!(f, "`{text}` is no upstream; write it like `http://127.0.0.1:9000`"),
            Self::Scheme { scheme } => write!(f, "an upstream over `{scheme}` is not supported; use `http`"),
            Self::Extra { part } => write!(f, "an upstream takes no {part}"),
        }
    }
}

impl Error for UpstreamError {}

impl FromStr for Upstream {
    type Err = UpstreamError;

    fn from_str(text: &str) -> Result<Self, UpstreamError> {
        let not_a_url = || UpstreamError::NotAUrl { text: text.to_owned() };
        let uri: Uri = text.parse().map_err(|_| not_a_url())?;
        let authority = uri.authority().filter(|authority| !authority.host().is_empty()).ok_or_else(not_a_url)?;
        match uri.scheme() {
            Some(scheme) if *scheme == Scheme::HTTP => {}
            Some(scheme) => return Err(UpstreamError::Scheme { scheme: scheme.to_string() }),
            None => return Err(not_a_url()),
        }
        if authority.as_str().contains('@') {
            return Err(UpstreamError::Extra { part: "user" });
        }
        if uri.query().is_some() {
            return Err(UpstreamError::Extra { part: "query" });
        }
        let host = HeaderValue::from_str(authority.as_str()).map_err(|_| not_a_url())?;
        Ok(Self { authority: authority.clone(), host, prefix: uri.path().trim_end_matches('/').to_owned() })
    }
}

impl fmt::Display for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}{}", self.authority, self.prefix)
    }
}

impl Upstream {
    /// Its host and port as a field value.
    pub(crate) fn host(&self) -> &HeaderValue {
        &self.host
    }

    /// The path that comes before each request's; empty, or without a slash at its end.
    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }
}

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum Failure {
    Connect(io::Error),
    ConnectTimeout,
    Closed,
    Malformed,
    Silent,
    ClientStalled,
    ClientBrokeOff,
}

impl Failure {
    fn of(error: &hyper::Error) -> Self {
        if error.is_user() {
            return Self::ClientBrokeOff;
        }
        let of_socket = error.source().is_some_and(|source| source.is::<io::Error>());
        if error.is_incomplete_message() || error.is_canceled() || error.is_closed() || of_socket {
            return Self::Closed;
        }
        Self::Malformed
    }

    /// The status and the words for the client.
    pub(crate) fn told(&self, upstream: &Upstream) -> (StatusCode, String) {
        let (status, what) = match self {
            Self::Connect(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                (StatusCode::BAD_GATEWAY, "refused the connection")
            }
            Self::Connect(error) => {
                return (StatusCode::BAD_GATEWAY, format!("the upstream {upstream} cannot be reached: {error}"));
            }
            Self::ConnectTimeout => (StatusCode::GATEWAY_TIMEOUT, "did not accept a connection in time"),
            Self::Closed => (StatusCode::BAD_GATEWAY, "closed the connection before it answered"),
            Self::Malformed => (StatusCode::BAD_GATEWAY, "sent something that is not a valid HTTP response"),
            Self::Silent => (StatusCode::GATEWAY_TIMEOUT, "did not answer in time"),
            Self::ClientStalled => {
                return (StatusCode::REQUEST_TIMEOUT, "the request's body did not come in time".to_owned());
            }
            Self::ClientBrokeOff => {
                return (StatusCode::BAD_REQUEST, "the request's body is malformed or broke off".to_owned());
            }
        };
        (status, format!("the upstream {upstream} {what}"))
    }

    /// The reason to count, if the upstream is to blame.
    pub(crate) fn reason(&self) -> Option<Failed> {
        match self {
            Self::Connect(_) => Some(Failed::Connect),
            Self::Closed => Some(Failed::Closed),
            Self::Malformed => Some(Failed::Malformed),
            Self::ConnectTimeout | Self::Silent => Some(Failed::Timeout),
            Self::ClientStalled | Self::ClientBrokeOff => None,
        }
    }
}

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
        let connected = timeout(self.bounds.connect_timeout, open(&self.upstream.authority)).await;
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
    if !request.method().is_idempotent() || !http_body::Body::is_end_stream(request.body()) {
        return None;
    }
    let mut copy = Request::new(Upload::none());
    *copy.method_mut() = request.method().clone();
    *copy.uri_mut() = request.uri().clone();
    *copy.headers_mut() = request.headers().clone();
    Some(copy)
}
