//! The body of a call: JSON, whole, and no longer than it may be.

use std::future::{Future as _, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::StatusCode;
use http::request::Parts;
use http_body::Body;
use tokio::time::timeout;

use super::refusal::Refusal;

/// The longest body, in bytes.
pub(crate) const BODY_BYTES_MAX: usize = 64 * 1024;
/// The longest that a body may take.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// Reads the body of a call, which must say that it is JSON: what a web page can send without asking first cannot.
pub(crate) async fn json<B: Body<Data = Bytes>>(parts: &Parts, body: B) -> Result<Bytes, Refusal> {
    if !crate::json::is_said_by(&parts.headers) {
        let detail = "the body must be JSON, and say so: `Content-Type: application/json`";
        return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail));
    }
    if body.size_hint().lower() > BODY_BYTES_MAX as u64 {
        return Err(too_long());
    }
    let mut reading = pin!(read(body));
    // Most bodies come with their head, and need no timer.
    let first = poll_fn(|cx| Poll::Ready(reading.as_mut().poll(cx))).await;
    match first {
        Poll::Ready(read) => read,
        Poll::Pending => timeout(BODY_TIMEOUT, reading)
            .await
            .unwrap_or_else(|_| Err(Refusal::new(StatusCode::REQUEST_TIMEOUT, "the body did not come in time"))),
    }
}

/// The text of a body.
pub(crate) fn text(bytes: &[u8]) -> Result<&str, Refusal> {
    std::str::from_utf8(bytes).map_err(|error| {
        let detail = format!("the body is no text in UTF-8; byte {} begins something else", error.valid_up_to());
        Refusal::new(StatusCode::BAD_REQUEST, detail)
    })
}

async fn read<B: Body<Data = Bytes>>(body: B) -> Result<Bytes, Refusal> {
    let mut body = pin!(body);
    let first = next(body.as_mut()).await?.unwrap_or_default();
    if first.len() > BODY_BYTES_MAX {
        return Err(too_long());
    }
    if body.is_end_stream() {
        return Ok(first);
    }
    let Some(second) = next(body.as_mut()).await? else { return Ok(first) };
    let mut all = BytesMut::from(&*first);
    let mut piece = Some(second);
    while let Some(bytes) = piece {
        all.extend_from_slice(&bytes);
        if all.len() > BODY_BYTES_MAX {
            return Err(too_long());
        }
        piece = next(body.as_mut()).await?;
    }
    Ok(all.freeze())
}

/// The next piece of a body; `None` if there is no more.
async fn next<B: Body<Data = Bytes>>(mut body: Pin<&mut B>) -> Result<Option<Bytes>, Refusal> {
    let frame = poll_fn(|cx| body.as_mut().poll_frame(cx)).await;
    let frame = frame.transpose().map_err(|_| Refusal::new(StatusCode::BAD_REQUEST, "the body broke off"))?;
    Ok(frame.map(|frame| frame.into_data().unwrap_or_default()))
}

fn too_long() -> Refusal {
    let detail = format!("the body is too long; the maximum is {BODY_BYTES_MAX} bytes");
    Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, detail)
}
