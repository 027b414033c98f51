//! What there is, by path: one line in [`Route::ALL`] and one in [`answer`] for each.

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use tidegate_core::Store;

use super::callers::Deed;
use super::forward_auth::ForwardAuth;
use super::refusal::Refusal;
use super::{Face, check, keys, limitador, reserve};
use crate::ProxyBody;
use crate::proxy::joke::head_only;

/// The description of this face for programs (OpenAPI 3.1).
const OPENAPI: &str = include_str!("openapi.json");

/// What is found at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Route {
    Health,
    OpenApi,
    /// Envoy's rate limit service as JSON.
    Json,
    Check,
    Reserve,
    Settle,
    Keys,
}

impl Route {
    /// Each with its path, or with the beginning of it up to a name, and the methods that it takes.
    const ALL: [(Self, &'static str, &'static str); 8] = [
        (Self::Check, "/v1/check", "POST"),
        (Self::Reserve, "/v1/reserve", "POST"),
        (Self::Settle, "/v1/settle", "POST"),
        (Self::Keys, "/v1/keys/", "GET, HEAD, DELETE"),
        (Self::Json, "/json", "POST"),
        (Self::Health, "/health", "GET, HEAD"),
        // As the reference rate limit service has it.
        (Self::Health, "/healthcheck", "GET, HEAD"),
        (Self::OpenApi, "/openapi.json", "GET, HEAD"),
    ];

    /// The route of a path, the methods that it takes, and the name at the end of the path.
    fn of(path: &str) -> Option<(Self, &'static str, &str)> {
        Self::ALL.iter().find_map(|&(route, known, allow)| {
            let name = path.strip_prefix(known)?;
            (name.is_empty() != known.ends_with('/')).then_some((route, allow, name))
        })
    }

    /// What a call by this method does.
    fn deed(self, method: &Method) -> Deed {
        match self {
            Self::Health | Self::OpenApi => Deed::Greet,
            Self::Keys if method == Method::DELETE => Deed::Reset,
            Self::Json | Self::Check | Self::Reserve | Self::Settle | Self::Keys => Deed::Ask,
        }
    }
}

/// The answer to a request.
pub(super) async fn answer<S: Store + 'static>(face: &Face<S>, request: Request<Incoming>) -> Response<ProxyBody> {
    let is_head = request.method() == Method::HEAD;
    let answer = answered(face, request).await.unwrap_or_else(|refusal| refusal.response());
    if is_head { head_only(answer) } else { answer }
}

async fn answered<S: Store + 'static>(
    face: &Face<S>,
    request: Request<Incoming>,
) -> Result<Response<ProxyBody>, Refusal> {
    if ForwardAuth::<S>::is_at(request.uri().path()) {
        return Ok(face.forward_auth.answer(request).await);
    }
    let (parts, body) = request.into_parts();
    if let Some(route) = limitador::Route::of(parts.uri.path()) {
        return limitador::answer(face, route, &parts, body).await;
    }
    let Some((route, allow, name)) = Route::of(parts.uri.path()) else { return Err(nothing_here()) };
    if !is_one_of(allow, &parts.method) {
        return Err(Refusal::method(allow));
    }
    face.setup.callers.check(route.deed(&parts.method), &parts)?;
    match route {
        Route::Json => Ok(face.rate_limits.answer_json(Request::from_parts(parts, body)).await),
        Route::Check => check::check(face, &parts, body).await,
        Route::Reserve => reserve::reserve(face, &parts, body).await,
        Route::Settle => reserve::settle(face, &parts, body).await,
        Route::Keys if parts.method == Method::DELETE => keys::reset(face, name, &parts).await,
        Route::Keys => keys::look(face, name, &parts).await,
        Route::Health => Ok(fixed("text/plain; charset=utf-8", "ok\n")),
        Route::OpenApi => Ok(fixed("application/json", OPENAPI)),
    }
}

/// Is the method in this list?
fn is_one_of(allow: &str, method: &Method) -> bool {
    // Most lists have but one.
    allow == method.as_str() || allow.split(", ").any(|allowed| allowed == method.as_str())
}

fn fixed(media_type: &'static str, text: &'static str) -> Response<ProxyBody> {
    let mut response = Response::new(ProxyBody::from(Bytes::from_static(text.as_bytes())));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}

fn nothing_here() -> Refusal {
    let paths =
        Route::ALL.map(|(_, path, _)| if path.ends_with('/') { format!("{path}NAME") } else { path.to_owned() });
    Refusal::new(StatusCode::NOT_FOUND, format!("there are /v1/forward-auth, {}", paths.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The methods that the document has for each path.
    fn documented() -> Vec<(String, Vec<String>)> {
        let document: serde_json::Value = serde_json::from_str(OPENAPI).unwrap();
        let methods = |item: &serde_json::Value| {
            let names = item.as_object().unwrap().keys().map(|name| name.to_uppercase());
            names.filter(|name| !["PARAMETERS", "DESCRIPTION"].contains(&&**name)).collect()
        };
        let paths = document["paths"].as_object().unwrap().iter();
        paths.map(|(path, item)| (path.clone(), methods(item))).collect()
    }

    #[test]
    fn the_document_has_each_path_with_its_methods() {
        let imported = limitador::Route::ALL.map(|(path, route)| (path, route.allow()));
        let ours = Route::ALL.map(|(_, path, allow)| (path, allow));
        let mut all: Vec<_> = ours.into_iter().chain(imported).map(|(path, allow)| (path.to_owned(), allow)).collect();
        // A name stands behind these, and whoever may GET may ask for the head alone.
        let heads = |path: &str| path.rsplit_once('/').map(|(before, _)| format!("{before}/")).unwrap_or_default();
        for (path, methods) in documented() {
            if path == "/v1/forward-auth" {
                assert_eq!(methods.len(), 8, "a proxy may ask by any method: {methods:?}");
                continue;
            }
            let known = if path.ends_with('}') { heads(&path) } else { path.clone() };
            let place = all.iter().position(|(each, _)| *each == known);
            let (_, allow) = all.remove(place.unwrap_or_else(|| panic!("{path} is nowhere")));
            let mut expect: Vec<_> = allow.split(", ").filter(|method| *method != "HEAD").collect();
            expect.sort_unstable();
            let mut methods = methods;
            methods.sort_unstable();
            assert_eq!(methods, expect, "{path}");
        }
        assert_eq!(all, [], "the document leaves these out");
    }

    #[test]
    fn paths_lead_to_what_they_name() {
        let route = |path| Route::of(path).map(|(route, _, name)| (route, name));
        assert_eq!(route("/v1/check"), Some((Route::Check, "")));
        assert_eq!(route("/v1/keys/per-user"), Some((Route::Keys, "per-user")));
        for path in ["/", "/v1/checks", "/v1/check/", "/v1/keys", "/v1/keys/", "/V1/check", "/healthz"] {
            assert_eq!(route(path), None, "{path}");
        }
    }
}
