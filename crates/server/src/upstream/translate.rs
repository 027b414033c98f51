//! A request in the form of either version of HTTP.
//!
//! What `forward` makes of a client's request has the form of HTTP/1.1. A shared connection takes the form of HTTP/2: the
//! host stands in the target, and the length of a body needs no coding (RFC 9113, section 8.3.1).

use http::header::{self, HeaderValue};
use http::uri::{Authority, PathAndQuery, Scheme, Uri};
use http::{Request, Version};
use http_body::Body;

use crate::upstream::failure::Failure;

/// Gives `request` the form of HTTP/2, unless it has it.
pub(crate) fn to_http2<B>(request: &mut Request<B>, scheme: &Scheme) -> Result<(), Failure> {
    if request.version() == Version::HTTP_2 {
        return Ok(());
    }
    let host = request.headers_mut().remove(header::HOST).ok_or(Failure::NoForm)?;
    let mut parts = std::mem::take(request.uri_mut()).into_parts();
    let authority = Authority::try_from(host.as_bytes()).ok().filter(|authority| !authority.as_str().contains('@'));
    parts.authority = Some(authority.ok_or(Failure::NoForm)?);
    parts.scheme = Some(scheme.clone());
    *request.uri_mut() = Uri::from_parts(parts).map_err(|_| Failure::NoForm)?;
    request.headers_mut().remove(header::TRANSFER_ENCODING);
    *request.version_mut() = Version::HTTP_2;
    Ok(())
}

/// Gives `request` the form of HTTP/1.1, unless it has it.
pub(crate) fn to_http1<B: Body>(request: &mut Request<B>) -> Result<(), Failure> {
    if request.version() != Version::HTTP_2 {
        return Ok(());
    }
    let uri = std::mem::take(request.uri_mut());
    let host = uri.authority().and_then(|authority| HeaderValue::from_str(authority.as_str()).ok());
    let target = uri.path_and_query().cloned().unwrap_or(PathAndQuery::from_static("/"));
    let has_body = !request.body().is_end_stream();
    *request.uri_mut() = Uri::from(target);
    *request.version_mut() = Version::HTTP_11;
    let headers = request.headers_mut();
    headers.insert(header::HOST, host.ok_or(Failure::NoForm)?);
    if has_body && !headers.contains_key(header::CONTENT_LENGTH) {
        headers.insert(header::TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::{Empty, Full};

    fn request<B>(target: &str, body: B) -> Request<B> {
        let request = Request::post(target).header("host", "a.org:81").header("transfer-encoding", "chunked");
        request.version(Version::HTTP_11).body(body).unwrap()
    }

    #[test]
    fn there_and_back_is_the_same() {
        for target in ["/", "/a/../b?c=d&e", "*", "/?x"] {
            let mut one = request(target, Full::<bytes::Bytes>::from("body"));
            to_http2(&mut one, &Scheme::HTTPS).unwrap();
            assert_eq!(one.uri().authority().unwrap(), "a.org:81");
            assert_eq!((one.uri().scheme_str(), one.version()), (Some("https"), Version::HTTP_2));
            assert!(one.headers().is_empty());
            to_http1(&mut one).unwrap();
            assert_eq!((one.uri().to_string().as_str(), one.version()), (target, Version::HTTP_11));
            assert_eq!((one.headers()["host"].as_bytes(), one.headers().len()), (&b"a.org:81"[..], 2));
        }
    }

    #[test]
    fn what_has_the_form_keeps_it_and_an_empty_body_needs_no_coding() {
        let mut one = request("/", Empty::<bytes::Bytes>::new());
        to_http1(&mut one).unwrap();
        assert!(one.headers().contains_key("transfer-encoding"));
        to_http2(&mut one, &Scheme::HTTP).unwrap();
        to_http2(&mut one, &Scheme::HTTPS).unwrap();
        assert_eq!(one.uri().scheme_str(), Some("http"));
        to_http1(&mut one).unwrap();
        assert!(!one.headers().contains_key("transfer-encoding"));
    }

    #[test]
    fn a_host_that_is_none_is_refused() {
        for host in ["a b", "a/b", "a@b", ""] {
            let mut one = Request::get("/").version(Version::HTTP_11).header("host", host).body(()).unwrap();
            assert!(to_http2(&mut one, &Scheme::HTTP).is_err(), "{host:?}");
        }
    }
}
