//! A small API to try limits on: the joke of the day.
//!
//! It stands in for an upstream on a machine that has none.

use std::convert::Infallible;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body::Body;
use hyper::body::Incoming;
use tower_service::Service;

use crate::proxy::problem::problem;
use crate::{Answer, ProxyBody};

/// Bytes of a request body that are read and thrown away, so that the connection can go on. A longer body ends it.
const BODY_BYTES_MAX: usize = 64 * 1024;

const JOKES: [&str; 12] = [
    "I waited in a queue for patience. They had just run out.",
    "The tide came in without knocking. The gate says it is used to it.",
    "A bucket walked into a bar. It was refused: it was already full.",
    "Why did the request cross the gateway? To get to the other sidecar.",
    "Time flies like an arrow. Retry-After flies like sixty seconds.",
    "I told the sea to form an orderly line. Now it comes in waves.",
    "Two packets met at a gate. One said: after you. The other said: after twenty seconds.",
    "My favourite queue is the one that I am at the front of. I have heard of it.",
    "The gatekeeper quit. There was nothing behind it, he said, but more gates.",
    "What does the moon do for a living? It is a rate limiter for the sea.",
    "A burst of laughter was denied. It was over the limit by one ha.",
    "Good things come to those who wait. The rest get a 429.",
];

/// Answers `GET /` and `GET /joke` with a joke.
#[derive(Clone)]
pub struct Jokes {
    day: Arc<dyn Fn() -> u64 + Send + Sync>,
}

impl fmt::Debug for Jokes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Jokes")
    }
}

impl Jokes {
    /// Jokes of the day that `day` tells, counted from any day.
    pub fn new(day: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        Self { day: Arc::new(day) }
    }

    fn answer(&self, method: &Method, path: &str) -> Response<ProxyBody> {
        if !matches!(path, "/" | "/joke") {
            return problem(StatusCode::NOT_FOUND, "there is no joke here; try /joke");
        }
        if *method != Method::GET && *method != Method::HEAD {
            let mut answer = problem(StatusCode::METHOD_NOT_ALLOWED, "jokes can only be read; use GET");
            answer.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return answer;
        }
        let mut answer = Response::new(ProxyBody::from(Bytes::from(joke((self.day)()))));
        answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        answer
    }
}

fn joke(day: u64) -> String {
    // The remainder is below twelve.
    let text = JOKES[(day % JOKES.len() as u64) as usize];
    format!("{}\n", serde_json::json!({ "joke": text }))
}

/// The answer to HEAD: the length of the body, without it.
pub(crate) fn head_only(mut answer: Response<ProxyBody>) -> Response<ProxyBody> {
    let length = answer.body().size_hint().exact().unwrap_or(0);
    answer.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(length));
    answer.map(|_| ProxyBody::default())
}

async fn discard(mut body: Incoming) {
    let mut left = BODY_BYTES_MAX;
    while left > 0 {
        match poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
            Some(Ok(frame)) => left = left.saturating_sub(frame.data_ref().map_or(1, Bytes::len)),
            Some(Err(_)) | None => return,
        }
    }
}

impl Service<Request<Incoming>> for Jokes {
    type Response = Response<ProxyBody>;
    type Error = Infallible;
    type Future = Answer;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Incoming>) -> Answer {
        let answer = self.answer(request.method(), request.uri().path());
        let answer = if request.method() == Method::HEAD { head_only(answer) } else { answer };
        Box::pin(async move {
            discard(request.into_body()).await;
            Ok(answer)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_day_has_its_joke() {
        assert_eq!(joke(3), joke(3 + JOKES.len() as u64));
        assert_ne!(joke(3), joke(4));
        let parsed: serde_json::Value = serde_json::from_str(&joke(u64::MAX)).unwrap();
        assert!(parsed["joke"].is_string());
    }
}
