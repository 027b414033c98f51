//! Requests that ask to change the protocol of their connection (RFC 9110, section 7.8): WebSocket, and others.
//!
//! The request goes to the upstream with what it asks for, on a connection of its own. If the upstream agrees, both
//! connections are joined (`tunnel`); any other answer is passed on as usual.

use http::header::{self, HeaderMap, HeaderValue};
use http::{Request, Version};
use hyper::upgrade::OnUpgrade;

/// A client's wish to change the protocol.
pub(crate) struct Upgrade {
    /// The client's connection, once the change is agreed.
    pub(crate) client: OnUpgrade,
    /// The protocols that it would like.
    protocols: HeaderValue,
}

impl Upgrade {
    /// What the request asks for, if it does.
    pub(crate) fn asked_by<B: http_body::Body>(request: &mut Request<B>) -> Option<Self> {
        let headers = request.headers();
        // One look suffices for most requests.
        if !headers.contains_key(header::UPGRADE) || request.version() != Version::HTTP_11 {
            return None;
        }
        let is_meant = tokens(headers, header::CONNECTION).any(|token| token.eq_ignore_ascii_case("upgrade"));
        if !is_meant || !request.body().is_end_stream() {
            return None;
        }
        let protocols: Vec<&str> = tokens(headers, header::UPGRADE).filter(|name| can_pass(name)).collect();
        let protocols = HeaderValue::from_str(&protocols.join(", ")).ok().filter(|value| !value.is_empty())?;
        Some(Self { client: request.extensions_mut().remove::<OnUpgrade>()?, protocols })
    }

    /// Adds to a request, whose fields of the connection are gone, what is asked for.
    pub(crate) fn ask(&self, headers: &mut HeaderMap) {
        headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(header::UPGRADE, self.protocols.clone());
    }

    /// Which protocol the upstream agrees to, if it was asked for.
    pub(crate) fn agreed<'a>(&self, answer: &'a HeaderMap) -> Option<&'a HeaderValue> {
        let mut values = answer.get_all(header::UPGRADE).iter();
        let (agreed, more) = (values.next()?, values.next());
        let name = agreed.to_str().ok()?;
        let mut asked = self.protocols.to_str().ok()?.split(", ");
        (more.is_none() && asked.any(|asked| asked.eq_ignore_ascii_case(name))).then_some(agreed)
    }
}

/// The answer's fields that tell the client of the change.
pub(crate) fn agree(headers: &mut HeaderMap, protocol: HeaderValue) {
    headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(header::UPGRADE, protocol);
}

/// Another version of HTTP, or TLS, would let requests pass by that nobody has looked at; a client that asks for one is
/// answered as if it had not.
fn can_pass(protocol: &str) -> bool {
    let name = protocol.split('/').next().unwrap_or_default();
    !["h2c", "h2", "http", "tls"].iter().any(|other| name.eq_ignore_ascii_case(other))
}

fn tokens(headers: &HeaderMap, name: header::HeaderName) -> impl Iterator<Item = &str> {
    let texts = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    texts.flat_map(|text| text.split(',').map(str::trim)).filter(|token| !token.is_empty())
}
