//! The parts of a request's head that are told when its answer has ended.
//!
//! They are copied into one piece when the request comes: views of them would keep hyper's buffer from being used for
//! the next request.

use std::ops::Range;

use http::header::{HOST, REFERER, USER_AGENT};
use http::uri::Authority;
use http::{HeaderMap, Request, Version};

/// The parts, one behind the other.
#[derive(Debug, Default)]
pub(crate) struct Head {
    bytes: Vec<u8>,
    method: Range<usize>,
    target: Range<usize>,
    host: Option<Range<usize>>,
    referer: Option<Range<usize>>,
    user_agent: Option<Range<usize>>,
}

impl Head {
    pub(crate) fn of<B>(request: &Request<B>) -> Self {
        let (uri, fields) = (request.uri(), request.headers());
        let mut head = Self { bytes: Vec::with_capacity(256), ..Self::default() };
        head.method = head.push(request.method().as_str().as_bytes());
        // HTTP/2 sends the authority by itself, so the target is what HTTP/1 would have sent.
        let is_absolute = uri.scheme().is_some() && request.version() < Version::HTTP_2;
        head.target = match uri.path_and_query() {
            Some(target) if !is_absolute => head.push(target.as_str().as_bytes()),
            _ => head.push(uri.to_string().as_bytes()),
        };
        let authority = uri.authority().map(Authority::as_str).map(str::as_bytes);
        head.host = authority.or_else(|| field(fields, HOST)).map(|host| head.push(host));
        head.referer = field(fields, REFERER).map(|referer| head.push(referer));
        head.user_agent = field(fields, USER_AGENT).map(|agent| head.push(agent));
        head
    }

    fn push(&mut self, part: &[u8]) -> Range<usize> {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(part);
        start..self.bytes.len()
    }

    pub(crate) fn method(&self) -> &[u8] {
        &self.bytes[self.method.clone()]
    }

    pub(crate) fn target(&self) -> &[u8] {
        &self.bytes[self.target.clone()]
    }

    pub(crate) fn host(&self) -> Option<&[u8]> {
        self.host.clone().map(|part| &self.bytes[part])
    }

    pub(crate) fn referer(&self) -> Option<&[u8]> {
        self.referer.clone().map(|part| &self.bytes[part])
    }

    pub(crate) fn user_agent(&self) -> Option<&[u8]> {
        self.user_agent.clone().map(|part| &self.bytes[part])
    }
}

fn field(fields: &HeaderMap, name: http::HeaderName) -> Option<&[u8]> {
    fields.get(name).map(http::HeaderValue::as_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_what_was_sent() {
        for (version, uri, target) in [
            (Version::HTTP_11, "/a?b=c", "/a?b=c"),
            (Version::HTTP_11, "http://a.example/b", "http://a.example/b"),
            (Version::HTTP_11, "*", "*"),
            (Version::HTTP_11, "a.example:443", "a.example:443"),
            (Version::HTTP_2, "https://a.example/b?c", "/b?c"),
        ] {
            let request = Request::get(uri).version(version).body(()).unwrap();
            let head = Head::of(&request);
            assert_eq!(head.target(), target.as_bytes(), "{uri}");
        }
    }

    #[test]
    fn what_is_missing_is_told_from_what_is_empty() {
        let head = Head::of(&Request::get("/").header("referer", "").header("host", "a").body(()).unwrap());
        assert_eq!((head.referer(), head.user_agent(), head.host()), (Some(&b""[..]), None, Some(&b"a"[..])));
    }
}
