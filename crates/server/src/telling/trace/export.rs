//! Who sends spans: one thread, once a second, over a connection of its own.
//!
//! Spans that a collector cannot take now are kept for the next try, as long as there is room; those that it refuses
//! are given up.

use std::error::Error;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST};
use http::{Request, StatusCode};
use http_body::Body as _;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::runtime;
use tokio::time::timeout;

use super::{OtlpEndpoint, SpanMetrics};
use crate::telling::spool::{SPOOL_BYTES_MAX, Spool};
use crate::{Notice, ProxyBody};

/// The time for one batch.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Frames of an answer that are read.
const FRAMES_MAX: usize = 64;

/// Sends the spans of a spool to a collector.
pub(crate) struct Exporter {
    endpoint: OtlpEndpoint,
    spans: SpanMetrics,
    notice: Notice,
    /// Did the last attempt fail? Then whoever operates the program knows.
    is_failing: bool,
}

/// What came of a batch.
enum Sent {
    Taken,
    /// It can be tried again.
    NotNow(String),
    Refused(StatusCode),
}

impl Exporter {
    pub(crate) fn new(endpoint: OtlpEndpoint, spans: SpanMetrics, notice: Notice) -> Self {
        Self { endpoint, spans, notice, is_failing: false }
    }

    /// Sends what comes, until the spool is closed; then what is left is tried once more.
    ///
    /// # Errors
    /// There is no runtime.
    pub(crate) fn run(&mut self, spool: &Spool) -> io::Result<()> {
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        let (mut batch, mut fresh) = (Vec::new(), Vec::new());
        loop {
            let told = spool.take(&mut fresh);
            self.keep(&mut batch, &fresh);
            fresh.clear();
            if !batch.is_empty() {
                let sent = runtime.block_on(self.send(&batch));
                self.conclude(sent, &mut batch);
            }
            if told.is_closed {
                self.spans.failed(count(&batch));
                return Ok(());
            }
        }
    }

    fn keep(&self, batch: &mut Vec<u8>, fresh: &[u8]) {
        match batch.len() + fresh.len() <= SPOOL_BYTES_MAX {
            true => batch.extend_from_slice(fresh),
            false => self.spans.dropped(count(fresh)),
        }
    }

    fn conclude(&mut self, sent: Sent, batch: &mut Vec<u8>) {
        let why = match sent {
            Sent::Taken => {
                self.spans.exported(count(batch));
                batch.clear();
                self.is_failing = false;
                return;
            }
            Sent::NotNow(why) => why,
            Sent::Refused(status) => {
                self.spans.failed(count(batch));
                batch.clear();
                format!("it answers {status}")
            }
        };
        if !self.is_failing {
            self.is_failing = true;
            (self.notice)(&format!("spans cannot be sent to {}: {why}", self.endpoint));
        }
    }

    async fn send(&self, batch: &[u8]) -> Sent {
        match timeout(TIMEOUT, self.post(envelope(batch))).await {
            Ok(Ok(status)) if status.is_success() => Sent::Taken,
            // Those that OTLP has tried again (section "failures" of its specification).
            Ok(Ok(status)) if matches!(status.as_u16(), 429 | 502..=504) => {
                Sent::NotNow(format!("it answers {status}"))
            }
            Ok(Ok(status)) => Sent::Refused(status),
            Ok(Err(error)) => Sent::NotNow(error.to_string()),
            Err(_) => Sent::NotNow("it does not answer in time".to_owned()),
        }
    }

    async fn post(&self, body: Bytes) -> Result<StatusCode, Box<dyn Error + Send + Sync>> {
        let socket = TcpStream::connect(self.endpoint.socket()).await?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(socket)).await?;
        let connection = tokio::spawn(connection);
        let request = Request::post(&self.endpoint.path)
            .header(HOST, self.endpoint.authority.as_str())
            .header(CONTENT_TYPE, "application/json")
            .body(ProxyBody::from(body))?;
        let answer = sender.send_request(request).await?;
        let (status, mut body) = (answer.status(), answer.into_body());
        for _ in 0..FRAMES_MAX {
            if !matches!(poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await, Some(Ok(_))) {
                break;
            }
        }
        connection.abort();
        Ok(status)
    }
}

/// Spans, one a line, as one request to export them.
fn envelope(batch: &[u8]) -> Bytes {
    let version = env!("CARGO_PKG_VERSION");
    let mut body = format!(
        "{{\"resourceSpans\":[{{\"resource\":{{\"attributes\":[\
         {{\"key\":\"service.name\",\"value\":{{\"stringValue\":\"tidegate\"}}}},\
         {{\"key\":\"service.version\",\"value\":{{\"stringValue\":\"{version}\"}}}}]}},\
         \"scopeSpans\":[{{\"scope\":{{\"name\":\"tidegate\",\"version\":\"{version}\"}},\"spans\":["
    )
    .into_bytes();
    let spans = batch.strip_suffix(b"\n").unwrap_or(batch);
    body.extend(spans.iter().map(|byte| if *byte == b'\n' { b',' } else { *byte }));
    body.extend_from_slice(b"]}]}]}");
    body.into()
}

fn count(lines: &[u8]) -> u64 {
    lines.iter().filter(|byte| **byte == b'\n').count() as u64
}
