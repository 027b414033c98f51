//! What an operator and the machines that watch ask for: is it alive, is it ready, what has it counted; and what an
//! operator does to the keys of limits.
//!
//! The probes answer everybody. Everything else is for whom `access` lets in. Below `/v1` a request becomes an
//! [`Operation`](operation::Operation), plain data, and `operator` does it to the buckets that `asked` finds.

mod access;
mod asked;
mod operation;
mod operator;
mod query;
mod refusal;
mod render;

use std::convert::Infallible;
use std::future::{poll_fn, ready};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{ACCEPT, ALLOW, CACHE_CONTROL, CONTENT_TYPE, WWW_AUTHENTICATE};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body::Body;
use tokio::time::timeout;
use tower_service::Service;

use crate::proxy::joke::head_only;
use crate::proxy::problem::problem;
use crate::proxy::service::Answer;
use crate::{Drain, Metrics, PLAIN_TEXT_TYPE, ProxyBody, TEXT_TYPE};

use access::Access;
pub use access::{AdminToken, AdminTokenError};
pub(crate) use access::{Stranger, is_of_this_machine};
use operation::Resource;
pub(crate) use operator::{Operate, Operator, Origin};
pub(crate) use query::{KeyQuery, decoded};
pub(crate) use refusal::Refusal;

/// The most bytes of a request's body.
const BODY_BYTES_MAX: usize = 16 * 1024;
/// The longest that a request's body may take.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// Answers `/livez`, `/readyz` and `/metrics`, and below `/v1` does what an operator asks for.
///
/// It is never limited, and serves on while the proxy drains. Without a token it is for the loopback: then it answers
/// nobody who has come by another name, as web pages do whose name was made to point here.
#[derive(Clone)]
pub struct Admin {
    metrics: Arc<Metrics>,
    drain: Drain,
    access: Arc<Access>,
    operator: Option<Arc<dyn Operate>>,
}

impl Admin {
    /// The admin face of a process that counts in `metrics` and is ready until `drain` starts.
    #[must_use]
    pub fn new(metrics: Arc<Metrics>, drain: Drain) -> Self {
        Self { metrics, drain, access: Arc::default(), operator: None }
    }

    /// Asking for this token, if there is one.
    #[must_use]
    pub fn with_token(self, token: Option<AdminToken>) -> Self {
        Self { access: Arc::new(Access::new(token)), ..self }
    }

    /// Doing by `operator` what an operator asks for.
    pub(crate) fn operated_by(self, operator: Arc<dyn Operate>) -> Self {
        Self { operator: Some(operator), ..self }
    }

    /// What can be answered without the body; else what is to be done with it.
    fn answer(&self, parts: &Parts) -> Result<Response<ProxyBody>, (Resource, Arc<dyn Operate>)> {
        let resource = Resource::of(parts.uri.path());
        if !resource.is_some_and(Resource::is_probe)
            && let Err(stranger) = self.access.check(parts)
        {
            self.metrics.admin.denied(stranger);
            let mut answer = problem(stranger.status(), stranger.detail());
            if stranger.status() == StatusCode::UNAUTHORIZED {
                answer.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            return Ok(answer);
        }
        let Some(resource) = resource else {
            return Ok(problem(StatusCode::NOT_FOUND, &format!("there are {}", Resource::paths())));
        };
        if !resource.takes(&parts.method) {
            let detail = format!("this takes {}", resource.allow());
            let mut answer = problem(StatusCode::METHOD_NOT_ALLOWED, &detail);
            answer.headers_mut().insert(ALLOW, HeaderValue::from_static(resource.allow()));
            return Ok(answer);
        }
        match (resource, &self.operator) {
            (Resource::Livez, _) => Ok(text("text/plain; charset=utf-8", "ok\n".to_owned())),
            (Resource::Readyz, _) => Ok(self.readiness()),
            (Resource::Metrics, _) => Ok(self.scrape(takes_openmetrics(&parts.headers))),
            (resource, Some(operator)) => Err((resource, Arc::clone(operator))),
            (_, None) => Ok(problem(StatusCode::NOT_FOUND, "there are no policies here")),
        }
    }

    fn readiness(&self) -> Response<ProxyBody> {
        if self.drain.has_started() {
            let detail = "requests in flight are finished, new ones should go elsewhere";
            return problem(StatusCode::SERVICE_UNAVAILABLE, detail);
        }
        match self.operator.as_ref().and_then(|operator| operator.unready()) {
            Some(why) => problem(StatusCode::SERVICE_UNAVAILABLE, &why),
            None => text("text/plain; charset=utf-8", "ok\n".to_owned()),
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

impl std::fmt::Debug for Admin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Admin").field("access", &self.access).finish_non_exhaustive()
    }
}

/// Does who asks read OpenMetrics? Prometheus says so; whoever says nothing gets what every tool reads.
fn takes_openmetrics(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(ACCEPT).iter().filter_map(|line| line.to_str().ok());
    accepted.flat_map(|line| line.split(',')).any(|range| range.trim().starts_with("application/openmetrics-text"))
}

/// Reads what is asked for, and does it.
async fn operate<B>(resource: Resource, operator: Arc<dyn Operate>, parts: Parts, body: B) -> Response<ProxyBody>
where
    B: Body<Data = Bytes>,
{
    let body = match resource.has_body(&parts.method) {
        true => whole(&parts, body).await,
        false => Ok(String::new()),
    };
    let operation = body.and_then(|body| resource.operation(&parts.method, parts.uri.query(), body));
    let done = match operation {
        Ok(operation) => operator.operate(operation).await,
        Err(refusal) => Err(refusal),
    };
    match done {
        Ok(json) => text("application/json", format!("{json:#}\n")),
        Err(Refusal { status, detail }) => problem(status, &detail),
    }
}

/// The body, which must say that it is JSON: what a web page can send without asking first cannot.
async fn whole<B: Body<Data = Bytes>>(parts: &Parts, body: B) -> Result<String, Refusal> {
    let media_type = parts.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let media_type = media_type.split(';').next().unwrap_or_default().trim();
    if !media_type.eq_ignore_ascii_case("application/json") {
        let detail = "the body must be JSON, and say so: `Content-Type: application/json`";
        return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail));
    }
    let bytes = timeout(BODY_TIMEOUT, read(body)).await;
    let bytes = bytes.unwrap_or_else(|_| Err(Refusal::new(StatusCode::REQUEST_TIMEOUT, "the body did not come")))?;
    String::from_utf8(bytes.into()).map_err(|_| Refusal::bad("the body is not a text in UTF-8"))
}

async fn read<B: Body<Data = Bytes>>(body: B) -> Result<BytesMut, Refusal> {
    let mut body = std::pin::pin!(body);
    let mut bytes = BytesMut::new();
    while let Some(frame) = poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
        let frame = frame.map_err(|_| Refusal::bad("the body broke off"))?;
        let data = frame.into_data().unwrap_or_default();
        if bytes.len() + data.len() > BODY_BYTES_MAX {
            let detail = format!("the body is too long; the maximum is {BODY_BYTES_MAX} bytes");
            return Err(Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, detail));
        }
        bytes.extend_from_slice(&data);
    }
    Ok(bytes)
}

fn text(media_type: &'static str, text: String) -> Response<ProxyBody> {
    let mut answer = Response::new(ProxyBody::from(Bytes::from(text)));
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}

impl<B> Service<Request<B>> for Admin
where
    B: Body<Data = Bytes> + Send + 'static,
{
    type Response = Response<ProxyBody>;
    type Error = Infallible;
    type Future = Answer;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Answer {
        let (parts, body) = request.into_parts();
        let is_head = parts.method == Method::HEAD;
        let finish = move |answer| if is_head { head_only(answer) } else { answer };
        match self.answer(&parts) {
            Ok(answer) => Box::pin(ready(Ok(finish(answer)))),
            Err((resource, operator)) => {
                Box::pin(async move { Ok(finish(operate(resource, operator, parts, body).await)) })
            }
        }
    }
}
