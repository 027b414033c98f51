//! Why a request that was passed on has no answer, and what the client is told of it.

use std::error::Error;
use std::io;

use http::StatusCode;

use crate::{Failed, Upstream};

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
    /// The failure behind an error of the connection to the upstream.
    pub(crate) fn of(error: &hyper::Error) -> Self {
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
