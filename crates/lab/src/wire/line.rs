//! One connection, on which one call follows the other.

use std::fmt;
use std::io;

use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;

use super::door::Stream;

/// What is read of a body; a connection whose answer is longer is given up.
const BODY_MAX: u64 = 16 << 20;

/// What came back.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The status.
    pub status: StatusCode,
    /// The header fields.
    pub fields: HeaderMap,
    /// The length of the body. Bytes.
    pub length: u64,
}

/// Why a call has no answer.
#[derive(Debug)]
#[non_exhaustive]
pub enum CallError {
    /// There is no connection.
    Connect(io::Error),
    /// The connection broke, or what came is no HTTP.
    Broken(hyper::Error),
    /// It took too long.
    TimedOut,
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connect(error) => write!(f, "cannot connect: {error}"),
            Self::Broken(error) => write!(f, "no answer: {error}"),
            Self::TimedOut => f.write_str("no answer in time"),
        }
    }
}

impl std::error::Error for CallError {}

/// One connection.
pub(super) struct Line {
    sender: SendRequest<Empty<Bytes>>,
    is_fresh: bool,
}

impl Line {
    /// Speaks HTTP/1.1 on a socket. What moves its bytes is a task of the runtime's, and ends with the connection.
    pub(super) async fn on(stream: Box<dyn Stream>) -> hyper::Result<Self> {
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(Self { sender, is_fresh: true })
    }

    /// Can one more call be made on it?
    pub(super) fn is_open(&self) -> bool {
        self.sender.is_ready()
    }

    /// Was no call made on it yet? If not, the other side may be about to close it.
    pub(super) fn is_fresh(&self) -> bool {
        self.is_fresh
    }

    /// Calls, and reads the whole answer, so that the next call finds the line free.
    pub(super) async fn call(&mut self, request: Request<Empty<Bytes>>) -> hyper::Result<Answer> {
        self.sender.ready().await?;
        self.is_fresh = false;
        let (head, mut body) = self.sender.send_request(request).await?.into_parts();
        let length = read(&mut body).await?;
        // A turn of the runtime lets the connection see that the answer has ended.
        self.sender.ready().await.ok();
        Ok(Answer { status: head.status, fields: head.headers, length })
    }
}

async fn read(body: &mut Incoming) -> hyper::Result<u64> {
    let mut length = 0;
    while let Some(frame) = body.frame().await {
        length += frame?.data_ref().map_or(0, |data| data.len() as u64);
        if length > BODY_MAX {
            break;
        }
    }
    Ok(length)
}
