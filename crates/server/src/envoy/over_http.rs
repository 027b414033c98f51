//! The same call as JSON over HTTP: 200 if it may pass, 429 if not, and the answer's message either way, as the reference
//! service has it at `POST /json`.

use http::header::{CONTENT_TYPE, ORIGIN, RETRY_AFTER};
use http::{HeaderValue, Request, Response, StatusCode};
use hyper::body::Incoming;
use tidegate_core::Store;
use tidegate_http::peer_in_extensions;

use super::messages::{Code, RateLimitResponse};
use super::{RateLimits, json};
use crate::ProxyBody;
use crate::grpc::status::{CallError, Code as GrpcCode};
use crate::grpc::unary::collected;
use crate::proxy::problem::problem;

impl<S: Store + 'static> RateLimits<S> {
    /// The answer to a request whose body is a call.
    pub(crate) async fn answer_json(&self, request: Request<Incoming>) -> Response<ProxyBody> {
        // Programs need not say what they send, as before. A web page that somebody looks at must not charge anything.
        if request.headers().contains_key(ORIGIN) && !crate::json::is_said_by(request.headers()) {
            let detail = "the body of a call with an Origin must be JSON, and say so: `Content-Type: application/json`";
            return problem(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail);
        }
        match self.decide_json(request).await {
            Ok(answer) => rendered(&answer),
            Err(CallError { code, message }) => problem(status_of(code), &message),
        }
    }

    async fn decide_json(&self, request: Request<Incoming>) -> Result<RateLimitResponse, CallError> {
        let asker = peer_in_extensions(request.extensions());
        let asker = asker.ok_or_else(|| CallError::new(GrpcCode::Internal, "it is not known who asks"))?;
        let body = collected(request.into_body()).await?;
        self.decide(&json::request(&body).map_err(CallError::invalid)?, asker).await
    }
}

fn rendered(answer: &RateLimitResponse) -> Response<ProxyBody> {
    let is_over = answer.overall_code == Code::OverLimit as i32;
    let mut response = Response::new(ProxyBody::from(bytes::Bytes::from(json::response(answer).to_string())));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if is_over {
        *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
        let denied = answer.statuses.iter().filter(|status| status.code == Code::OverLimit as i32);
        let wait = denied.map(|status| status.duration_until_reset.map(|span| span.seconds)).max();
        if let Some(Some(seconds)) = wait {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds.max(1)));
        }
    }
    response
}

fn status_of(code: GrpcCode) -> StatusCode {
    match code {
        GrpcCode::InvalidArgument | GrpcCode::Unimplemented => StatusCode::BAD_REQUEST,
        GrpcCode::ResourceExhausted => StatusCode::PAYLOAD_TOO_LARGE,
        GrpcCode::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        GrpcCode::Internal => StatusCode::INTERNAL_SERVER_ERROR,
    }
}
