//! The request that a proxy means when it asks.
//!
//! Asked at the path itself, `X-Forwarded-Method`, `-Host` and `-Uri` describe it, as nginx, Traefik, Caddy and HAProxy
//! say it; what is missing is taken from the asking. Asked below it, as Envoy does, the asking has its method and host
//! already, and what stands behind the path is its target: then these fields are the client's own words, and mean
//! nothing.
//!
//! The peer is the last entry of `X-Forwarded-For` whichever field the policies read, since it is the proxy that wrote
//! it. So a client cannot say who it is unless the policies trust the address that it has.

use std::fmt;

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::uri::{Authority, PathAndQuery, Uri};
use http::{Method, Request, request::Parts};
use tidegate_policy::{LastHop, Peer};

use super::PATH;
use super::escaped::escaped;

const METHOD: HeaderName = HeaderName::from_static("x-forwarded-method");
const HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const TARGET: HeaderName = HeaderName::from_static("x-forwarded-uri");
const FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// Fields of the asking that say nothing about the request that is meant.
const OF_THE_ASKING: [HeaderName; 12] = [
    METHOD,
    HOST,
    TARGET,
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::EXPECT,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// The request that is meant.
#[derive(Debug)]
pub(super) struct Meant {
    /// It has the peer among its extensions.
    pub(super) request: Request<()>,
    /// Who asks, if it does not say for whom.
    pub(super) unsaid_for: Option<Peer>,
}

/// What a proxy says and cannot mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wrong {
    Method,
    Host,
    Target,
    Client,
    DenyStatus,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Method => "X-Forwarded-Method is no method",
            Self::Host => "X-Forwarded-Host is no host",
            Self::Target => "X-Forwarded-Uri is no path with a query, such as /api/x?y=1",
            Self::Client => "the last entry of X-Forwarded-For is no address, so nobody knows who the client is",
            Self::DenyStatus => "deny_status is the status of a denial, from 400 to 499",
        })
    }
}

impl Meant {
    /// The request that is meant by a proxy that asks so.
    pub(super) fn by(parts: Parts) -> Result<Self, Wrong> {
        let Parts { method, uri, mut headers, mut extensions, .. } = parts;
        let below = uri.path_and_query().and_then(|target| target.as_str().strip_prefix(PATH));
        let below = below.filter(|rest| rest.starts_with('/'));
        let (method, target) = match below {
            Some(target) => (method, escaped(target.as_bytes())),
            None => (said_method(&headers, method)?, said_target(&headers)),
        };
        if let Some(host) = last(&headers, HOST).filter(|_| below.is_none()) {
            let host = said_host(host)?;
            headers.insert(header::HOST, host);
        } else if let Some(authority) = uri.authority() {
            headers.insert(header::HOST, HeaderValue::from_str(authority.as_str()).map_err(|_| Wrong::Host)?);
        }
        let asker = extensions.get::<Peer>().copied();
        let peer = take_peer(&mut headers)?;
        if let Some(peer) = peer {
            extensions.insert(peer);
        }
        for name in &OF_THE_ASKING {
            headers.remove(name);
        }
        let mut request = Request::new(());
        *request.method_mut() = method;
        *request.uri_mut() = Uri::from(target.ok_or(Wrong::Target)?);
        (*request.headers_mut(), *request.extensions_mut()) = (headers, extensions);
        Ok(Self { request, unsaid_for: asker.filter(|_| peer.is_none()) })
    }
}

/// The last line of a field. An earlier one may be the client's, to which the proxy has added its own.
fn last(headers: &HeaderMap, name: HeaderName) -> Option<&HeaderValue> {
    headers.get_all(name).iter().next_back()
}

/// The method that is said, or that of the asking.
fn said_method(headers: &HeaderMap, asked: Method) -> Result<Method, Wrong> {
    let said = last(headers, METHOD).map(|method| Method::from_bytes(method.as_bytes()).map_err(|_| Wrong::Method));
    said.unwrap_or(Ok(asked))
}

/// The target that is said, or `/`.
fn said_target(headers: &HeaderMap) -> Option<PathAndQuery> {
    let Some(target) = last(headers, TARGET) else { return Some(PathAndQuery::from_static("/")) };
    let target = target.as_bytes();
    match target.first() {
        Some(b'/') => escaped(target),
        // As some proxies hand on a target that was a whole URL, or `*`.
        _ => Uri::try_from(target).ok()?.into_parts().path_and_query.filter(|it| it.as_str().starts_with(['/', '*'])),
    }
}

/// The host that is said: the last one, if several proxies have each said theirs.
fn said_host(line: &HeaderValue) -> Result<HeaderValue, Wrong> {
    let host = line.as_bytes().rsplit(|byte| *byte == b',').next().unwrap_or_default().trim_ascii();
    let authority = Authority::try_from(host).ok().filter(|authority| !authority.as_str().contains('@'));
    let authority = authority.ok_or(Wrong::Host)?;
    HeaderValue::from_str(authority.as_str()).map_err(|_| Wrong::Host)
}

/// Takes the last entry of `X-Forwarded-For` off: whom the proxy speaks for.
fn take_peer(headers: &mut HeaderMap) -> Result<Option<Peer>, Wrong> {
    let mut lines: Vec<HeaderValue> = headers.get_all(FOR).iter().cloned().collect();
    headers.remove(FOR);
    while let Some(line) = lines.pop() {
        let Some(hop) = LastHop::of(line.as_bytes()) else { continue };
        // A part of a value is a value.
        lines.extend(HeaderValue::from_bytes(hop.before).ok().filter(|before| !before.is_empty()));
        for line in lines {
            headers.append(FOR, line);
        }
        return hop.peer.map(Some).ok_or(Wrong::Client);
    }
    Ok(None)
}
