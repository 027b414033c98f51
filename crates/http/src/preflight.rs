//! CORS preflights: a browser's question whether it may ask, which counts as no request.

use http::header::{ACCESS_CONTROL_REQUEST_METHOD, ORIGIN};
use http::{Method, Request};

/// Is it `OPTIONS` with `Origin` and `Access-Control-Request-Method`? (Fetch standard, CORS-preflight fetch.)
pub(crate) fn is_preflight<B>(request: &Request<B>) -> bool {
    request.method() == Method::OPTIONS
        && request.headers().contains_key(ORIGIN)
        && request.headers().contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}
