//! Why a request that was passed on has no answer, and what the client is told of it.

use std::error::Error;
use std::io;

use h2::Reason;
use http::StatusCode;

use crate::{Failed, Upstream};

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum Failure {
    Connect(io::Error),
    Tls(io::Error),
    ConnectTimeout,
    Closed,
    /// The upstream did nothing with the request, and says so.
    Unprocessed,
    Malformed,
    /// It agreed to an upgrade that was not asked for.
    Unasked,
    Silent,
    /// An upgrade is asked of an upstream that speaks HTTP/2 only.
    NoUpgrades,
    /// The request has no form that the upstream's version of HTTP can carry.
    NoForm,
    ClientStalled,
    ClientBrokeOff,
}

impl Failure {
    /// The failure behind an error of the connection to the upstream.
    pub(crate) fn of(error: &hyper::Error) -> Self {
        if error.is_user() {
            return Self::ClientBrokeOff;
        }
        if let Some(error) = error.source().and_then(|source| source.downcast_ref::<h2::Error>()) {
            return Self::of_http2(error);
        }
        let of_socket = error.source().is_some_and(|source| source.is::<io::Error>());
        if error.is_incomplete_message() || error.is_canceled() || error.is_closed() || error.is_timeout() || of_socket
        {
            return Self::Closed;
        }
        Self::Malformed
    }

    fn of_http2(error: &h2::Error) -> Self {
        let is_refused = error.is_reset() && error.reason() == Some(Reason::REFUSED_STREAM);
        match error {
            // A connection goes away from the requests that it did not begin, and ends those that it did.
            _ if error.is_remote() && (error.is_go_away() || is_refused) => Self::Unprocessed,
            _ if error.is_remote() || error.is_io() => Self::Closed,
            _ if error.is_library() => Self::Malformed,
            // We broke it off, which we do when the client does.
            _ if error.is_reset() => Self::ClientBrokeOff,
            _ => Self::Closed,
        }
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
            Self::Tls(error) => {
                let detail = format!("the upstream {upstream} cannot be spoken to over TLS: {error}");
                return (StatusCode::BAD_GATEWAY, detail);
            }
            Self::ConnectTimeout => (StatusCode::GATEWAY_TIMEOUT, "did not accept a connection in time"),
            Self::Closed => (StatusCode::BAD_GATEWAY, "closed the connection before it answered"),
            Self::Unprocessed => (StatusCode::BAD_GATEWAY, "refused the request without looking at it"),
            Self::Malformed => (StatusCode::BAD_GATEWAY, "sent something that is not a valid HTTP response"),
            Self::Unasked => (StatusCode::BAD_GATEWAY, "changed to a protocol that was not asked for"),
            Self::Silent => (StatusCode::GATEWAY_TIMEOUT, "did not answer in time"),
            Self::NoUpgrades => (StatusCode::NOT_IMPLEMENTED, "speaks HTTP/2 only, where no connection is upgraded"),
            Self::NoForm => return (StatusCode::BAD_REQUEST, "the request names no valid host".to_owned()),
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
            Self::Tls(_) => Some(Failed::Tls),
            Self::Closed | Self::Unprocessed => Some(Failed::Closed),
            Self::Malformed | Self::Unasked => Some(Failed::Malformed),
            Self::ConnectTimeout | Self::Silent => Some(Failed::Timeout),
            Self::NoUpgrades | Self::NoForm | Self::ClientStalled | Self::ClientBrokeOff => None,
        }
    }
}
