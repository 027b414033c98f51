//! What an operator and the machines that watch ask for: is it alive, is it ready, what has it counted.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{ACCEPT, ALLOW, CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use tower_service::Service;

use crate::joke::head_only;
use crate::problem::problem;
use crate::{Drain, Metrics, PLAIN_TEXT_TYPE, ProxyBody, TEXT_TYPE};

/// Answers `/livez`, `/readyz` and `/metrics`. Serve it on an address that only operators reach.
///
/// It is never limited, and serves on while the proxy drains.
#[derive(Clone, Debug)]
pub struct Admin {
    metrics: Arc<Metrics>,
    drain: Drain,
}

impl Admin {
    /// The admin face of a process that counts in `metrics` and is ready until `drain` starts.
    #[must_use]
    pub fn new(metrics: Arc<Metrics>, drain: Drain) -> Self {
        Self { metrics, drain }
    }

    fn answer(&self, method: &Method, path: &str, headers: &HeaderMap) -> Response<ProxyBody> {
        if !matches!(path, "/livez" | "/readyz" | "/metrics") {
            return problem(StatusCode::NOT_FOUND, "there are /livez, /readyz and /metrics");
        }
        if *method != Method::GET && *method != Method::HEAD {
            let mut answer = problem(StatusCode::METHOD_NOT_ALLOWED, "this can only be read; use GET");
            answer.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return answer;
        }
        match path {
            "/metrics" => self.scrape(takes_openmetrics(headers)),
            "/readyz" if self.drain.has_started() => problem(
                StatusCode::SERVICE_UNAVAILABLE,
                "requests in flight are finished, new ones should go elsewhere",
            ),
            _ => text("text/plain; charset=utf-8", "ok\n".to_owned()),
        }
    }

    fn scrape(&self, is_openmetrics: bool) -> Response<ProxyBody> {
        let (media_type, metrics) = match is_openmetrics {
            true => (TEXT_TYPE, self.metrics.text()),
            false => (PLAIN_TEXT_TYPE, self.metrics.plain_text()),
        };
        match metrics {
            Ok(metrics) => text(media_type, metrics),
            Err(_) => problem(StatusCode::INTERNAL_SERVER_ERROR, "the metrics could not be written out"),
        }
    }
}

/// Does who asks read OpenMetrics? Prometheus says so; whoever says nothing gets what every tool reads.
fn takes_openmetrics(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(ACCEPT).iter().filter_map(|line| line.to_str().ok());
    accepted.flat_map(|line| line.split(',')).any(|range| range.trim().starts_with("application/openmetrics-text"))
}

fn text(media_type: &'static str, text: String) -> Response<ProxyBody> {
    let mut answer = Response::new(ProxyBody::from(Bytes::from(text)));
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}

impl<B> Service<Request<B>> for Admin {
    type Response = Response<ProxyBody>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let answer = self.answer(request.method(), request.uri().path(), request.headers());
        ready(Ok(if request.method() == Method::HEAD { head_only(answer) } else { answer }))
    }
}
