//! What a gateway changes in the fields that it passes on.
//!
//! Fields that speak of one connection end here (RFC 9110, section 7.6.1), in both directions. What says who the client
//! is gets written here, from the connection, unless the peer is trusted to say it.

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr};

use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::request;
use http::uri::{PathAndQuery, Scheme, Uri};
use http::{Method, StatusCode, Version};

use tidegate_policy::Client;

use crate::upstream::name::Upstream;

const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");
const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// Other fields in which proxies tell who the client is. From a peer that is not trusted they are not passed on.
const CLAIMS: [HeaderName; 5] = [
    HeaderName::from_static("forwarded"),
    HeaderName::from_static("x-forwarded-port"),
    HeaderName::from_static("x-forwarded-prefix"),
    HeaderName::from_static("x-forwarded-server"),
    HeaderName::from_static("x-real-ip"),
];

/// Why a request is not passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    pub(crate) detail: &'static str,
}

const fn refuse(status: StatusCode, detail: &'static str) -> Refusal {
    Refusal { status, detail }
}

/// Which of the fields that need work are there. One look at each name saves a dozen searches that find nothing.
#[derive(Clone, Copy, Default)]
struct Seen {
    /// `Connection`, which is often there alone.
    connection: bool,
    /// Another field that speaks of one connection.
    of_connection: bool,
    claims: bool,
    forwarded: bool,
}

impl Seen {
    fn in_fields(headers: &HeaderMap) -> Self {
        let mut seen = Self::default();
        for name in headers.keys() {
            match name.as_str() {
                "connection" => seen.connection = true,
                "keep-alive" | "proxy-connection" | "te" | "transfer-encoding" | "upgrade" => {
                    seen.of_connection = true;
                }
                "x-forwarded-for" | "x-forwarded-host" | "x-forwarded-proto" => seen.forwarded = true,
                "forwarded" | "x-forwarded-port" | "x-forwarded-prefix" | "x-forwarded-server" | "x-real-ip" => {
                    seen.claims = true;
                }
                _ => {}
            }
        }
        seen
    }
}

/// Makes of a client's request, whose host is settled, the one for the upstream, in the form of HTTP/1.1.
///
/// `trusted` says that the peer is a proxy whose word about the client counts.
pub(crate) fn request(
    parts: &mut request::Parts,
    has_body: bool,
    peer: Client,
    trusted: bool,
    upstream: &Upstream,
) -> Result<(), Refusal> {
    let seen = Seen::in_fields(&parts.headers);
    settle_target(parts, upstream)?;
    let trailers = seen.of_connection && accepts_trailers(&parts.headers);
    if seen.of_connection {
        check_coding(&parts.headers)?;
    }
    remove_fields_of_connection(&mut parts.headers, seen);
    if trailers {
        parts.headers.insert(header::TE, HeaderValue::from_static("trailers"));
    }
    if has_body && !parts.headers.contains_key(header::CONTENT_LENGTH) {
        parts.headers.insert(header::TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
    }
    if seen.claims && !trusted {
        CLAIMS.iter().for_each(|name| drop(parts.headers.remove(name)));
    }
    let scheme = scheme(&parts.extensions);
    introduce(&mut parts.headers, peer, scheme, seen.forwarded && trusted);
    parts.version = Version::HTTP_11;
    parts.extensions.clear();
    Ok(())
}

/// Makes of the upstream's response the one for the client.
pub(crate) fn response(headers: &mut HeaderMap) {
    let seen = Seen::in_fields(headers);
    if seen.of_connection && headers.contains_key(header::TRANSFER_ENCODING) {
        // The coding decides (RFC 9112, section 6.3); a length beside it is a lie.
        headers.remove(header::CONTENT_LENGTH);
    }
    remove_fields_of_connection(headers, seen);
}

/// Exactly one `Host`; that of the target, if it names one (RFC 9112, section 3.2; RFC 9113, section 8.3.1). A request
/// that needs none and has none gets `otherwise`.
pub(crate) fn settle_host(parts: &mut request::Parts, otherwise: &HeaderValue) -> Result<(), Refusal> {
    let bad = |detail| Err(refuse(StatusCode::BAD_REQUEST, detail));
    if parts.method == Method::CONNECT {
        return Err(refuse(StatusCode::NOT_IMPLEMENTED, "CONNECT is not supported: this is not a forward proxy"));
    }
    let mut hosts = parts.headers.get_all(header::HOST).iter();
    let (first, second) = (hosts.next(), hosts.next());
    if second.is_some() {
        return bad("the request has more than one Host field");
    }
    let is_http2 = parts.version == Version::HTTP_2;
    if first.is_none() && parts.version != Version::HTTP_10 && !(is_http2 && parts.uri.authority().is_some()) {
        return bad("the request has no Host field");
    }
    let host = match parts.uri.authority() {
        Some(authority) => match HeaderValue::from_str(authority.as_str()) {
            Ok(host) if !authority.as_str().contains('@') => host,
            _ => return bad("the request's target names no valid host"),
        },
        None if first.is_none() => otherwise.clone(),
        None => return Ok(()),
    };
    if is_http2 && first.is_some_and(|first| !first.as_bytes().eq_ignore_ascii_case(host.as_bytes())) {
        return bad("the request names two hosts");
    }
    parts.headers.insert(header::HOST, host);
    Ok(())
}

/// The target in origin form, behind the upstream's path.
fn settle_target(parts: &mut request::Parts, upstream: &Upstream) -> Result<(), Refusal> {
    let prefix = upstream.prefix();
    let asterisk = parts.uri.path() == "*";
    if asterisk || (prefix.is_empty() && parts.uri.authority().is_none()) {
        return Ok(());
    }
    let target = parts.uri.path_and_query().map_or("/", PathAndQuery::as_str);
    let target = if target.starts_with('/') { format!("{prefix}{target}") } else { format!("{prefix}/{target}") };
    let bad = refuse(StatusCode::BAD_REQUEST, "the request's target is not a valid path");
    parts.uri = PathAndQuery::try_from(target).map(Uri::from).map_err(|_| bad)?;
    Ok(())
}

/// A body in any coding but plain `chunked` would reach the upstream without the name of its coding.
fn check_coding(headers: &HeaderMap) -> Result<(), Refusal> {
    let plain = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"chunked");
    let mut codings = headers.get_all(header::TRANSFER_ENCODING).iter();
    match (codings.next(), codings.next()) {
        (None, _) => Ok(()),
        (Some(one), None) if plain(one) => Ok(()),
        _ => Err(refuse(StatusCode::NOT_IMPLEMENTED, "the only transfer coding that is supported is chunked")),
    }
}

fn accepts_trailers(headers: &HeaderMap) -> bool {
    let is_trailers = |token: &str| token.trim().eq_ignore_ascii_case("trailers");
    headers.get_all(header::TE).iter().any(|value| value.to_str().is_ok_and(|text| text.split(',').any(is_trailers)))
}

fn remove_fields_of_connection(headers: &mut HeaderMap, seen: Seen) {
    if seen.connection {
        let nominated: Vec<HeaderName> = headers.get_all(header::CONNECTION).iter().flat_map(tokens).collect();
        for name in nominated {
            headers.remove(name);
        }
        headers.remove(header::CONNECTION);
    }
    if seen.of_connection {
        for name in [KEEP_ALIVE, PROXY_CONNECTION, header::TE, header::TRANSFER_ENCODING, header::UPGRADE] {
            headers.remove(name);
        }
    }
}

/// The fields that a `Connection` value nominates. Those that frame or address the message are not its to remove.
fn tokens(value: &HeaderValue) -> impl Iterator<Item = HeaderName> {
    let tokens = value.as_bytes().split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    let options = |token: &&[u8]| !token.eq_ignore_ascii_case(b"close") && !token.eq_ignore_ascii_case(b"keep-alive");
    let names = tokens.filter(options).filter_map(|token| HeaderName::from_bytes(token).ok());
    names.filter(|name| *name != header::HOST && *name != header::CONTENT_LENGTH)
}

/// What the client spoke on its connection, as [`crate::serve`] notes it; what the request's target says counts for
/// nothing.
fn scheme(extensions: &http::Extensions) -> &'static str {
    match extensions.get::<Scheme>() {
        Some(scheme) if *scheme == Scheme::HTTPS => "https",
        _ => "http",
    }
}

/// Says who the client is. What a trusted peer said of it stays, and the peer is added.
fn introduce(headers: &mut HeaderMap, peer: Client, scheme: &'static str, keep: bool) {
    let mut said = if keep { chain(headers) } else { Vec::new() };
    match peer {
        Client::Ip(IpAddr::V4(ip)) if said.is_empty() => {
            headers.insert(X_FORWARDED_FOR, dotted(ip));
        }
        Client::Ip(ip) => {
            // Writing to memory does not fail.
            let _ = write!(said, "{ip}");
            // An address, and what was a field value before.
            if let Ok(value) = HeaderValue::from_maybe_shared(Bytes::from(said)) {
                headers.insert(X_FORWARDED_FOR, value);
            }
        }
        // It has no address to add.
        Client::Unix if said.is_empty() => drop(headers.remove(X_FORWARDED_FOR)),
        Client::Unix => {}
    }
    if !(keep && headers.contains_key(X_FORWARDED_PROTO)) {
        headers.insert(X_FORWARDED_PROTO, HeaderValue::from_static(scheme));
    }
    if !(keep && headers.contains_key(X_FORWARDED_HOST))
        && let Some(host) = headers.get(header::HOST).cloned()
    {
        headers.insert(X_FORWARDED_HOST, host);
    }
}

/// The usual address, without the machinery of formatting, which costs more than all else in this file.
fn dotted(ip: Ipv4Addr) -> HeaderValue {
    let (mut text, mut length) = ([0; "255.255.255.255".len()], 0);
    let mut push = |byte| {
        text[length] = byte;
        length += 1;
    };
    for (i, octet) in ip.octets().into_iter().enumerate() {
        if i > 0 {
            push(b'.');
        }
        if octet >= 100 {
            push(b'0' + octet / 100);
        }
        if octet >= 10 {
            push(b'0' + octet / 10 % 10);
        }
        push(b'0' + octet % 10);
    }
    // Digits and dots.
    HeaderValue::from_bytes(&text[..length]).unwrap_or(HeaderValue::from_static("unknown"))
}

/// All lines of X-Forwarded-For in one, with a comma at its end; empty if there are none.
fn chain(headers: &HeaderMap) -> Vec<u8> {
    let mut chain = Vec::new();
    for line in headers.get_all(X_FORWARDED_FOR).iter().filter(|line| !line.is_empty()) {
        chain.extend_from_slice(line.as_bytes());
        chain.extend_from_slice(b", ");
    }
    chain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dotted_is_how_addresses_are_written() {
        for ip in [[0, 0, 0, 0], [1, 9, 10, 11], [99, 100, 101, 109], [110, 199, 200, 255], [255, 255, 255, 255]] {
            assert_eq!(dotted(ip.into()), Ipv4Addr::from(ip).to_string());
        }
    }
}
