//! What there is, by path.

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header::ALLOW};
use hyper::body::Incoming;
use tidegate_core::Store;

use super::Face;
use super::forward_auth::ForwardAuth;
use crate::ProxyBody;
use crate::proxy::problem::problem;

/// The answer to a request.
pub(super) async fn answer<S: Store + 'static>(face: &Face<S>, request: Request<Incoming>) -> Response<ProxyBody> {
    match request.uri().path() {
        // The reference rate limit service has the second.
        "/health" | "/healthcheck" => match *request.method() {
            Method::GET | Method::HEAD => Response::new(ProxyBody::from(Bytes::from_static(b"ok\n"))),
            _ => only("GET, HEAD"),
        },
        "/json" => match *request.method() {
            Method::POST => face.rate_limits.answer_json(request).await,
            _ => only("POST"),
        },
        path if ForwardAuth::<S>::is_at(path) => face.forward_auth.answer(request).await,
        _ => {
            let there = "there are /health, /v1/forward-auth, and /json for Envoy's rate limit service";
            problem(StatusCode::NOT_FOUND, there)
        }
    }
}

/// The answer to a method that a path does not take.
fn only(allowed: &'static str) -> Response<ProxyBody> {
    let mut answer = problem(StatusCode::METHOD_NOT_ALLOWED, &format!("this takes {allowed}"));
    answer.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    answer
}
