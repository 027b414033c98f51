//! A request that is written on the command line.

use std::net::IpAddr;

use tidegate::policy::{Attributes, Peer};
use tidegate::{Clock as _, SystemClock};

/// What `--request`, `--client`, `--header` and `--claim` say.
#[derive(Debug)]
pub(crate) struct Sample {
    method: String,
    host: Option<String>,
    path: String,
    peer: Peer,
    headers: Vec<(String, String)>,
    claims: Vec<(String, String)>,
    unix_s: u64,
}

impl Sample {
    /// A request that comes now. `line` is a method and a target: `GET /api/x`, `POST http://api.example.org/x`.
    pub(crate) fn new(line: &RequestLine, peer: Peer, headers: &[Named], claims: &[Named]) -> Self {
        let pairs = |all: &[Named]| all.iter().map(|Named(name, value)| (name.clone(), value.clone())).collect();
        let headers: Vec<(String, String)> = pairs(headers);
        let host = headers.iter().find(|(name, _)| name == "host").map(|(_, value)| value.clone());
        Self {
            method: line.method.clone(),
            host: line.host.clone().or(host),
            path: line.path.clone(),
            peer,
            headers,
            claims: pairs(claims),
            unix_s: SystemClock::new().now().as_nanos() / 1_000_000_000,
        }
    }
}

impl Attributes for Sample {
    fn peer(&self) -> Peer {
        self.peer
    }

    fn method(&self) -> &str {
        &self.method
    }

    fn path(&self) -> &str {
        &self.path
    }

    fn host(&self) -> Option<&str> {
        self.host.as_deref()
    }

    fn header_lines<'a>(&'a self, name: &str, each: &mut dyn FnMut(&'a [u8])) {
        self.headers.iter().filter(|(known, _)| known == name).for_each(|(_, value)| each(value.as_bytes()));
    }

    fn claim(&self, name: &str) -> Option<&[u8]> {
        self.claims.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_bytes())
    }

    fn unix_s(&self) -> Option<u64> {
        Some(self.unix_s)
    }
}

/// A method and what it asks for.
#[derive(Clone, Debug)]
pub(crate) struct RequestLine {
    method: String,
    host: Option<String>,
    path: String,
}

/// Reads `GET /api/x`, `/api/x`, `POST http://api.example.org/x?y`. The query is dropped.
pub(crate) fn request_line(text: &str) -> Result<RequestLine, &'static str> {
    const EXPECTED: &str = "expected a method and a path, such as 'GET /api/x', or a whole URL in place of the path";
    let text = text.trim();
    let (method, target) = text.split_once(' ').map_or(("GET", text), |(method, target)| (method, target.trim()));
    let (host, path) = match target.split_once("://") {
        Some((_, rest)) => match rest.split_once('/') {
            Some((host, path)) => (Some(host.to_owned()), format!("/{path}")),
            None => (Some(rest.to_owned()), "/".to_owned()),
        },
        None => (None, target.to_owned()),
    };
    let path = path.split(['?', '#']).next().unwrap_or_default().to_owned();
    let is_method = !method.is_empty() && method.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'-');
    if !is_method || !(path.starts_with('/') || path == "*") || path.contains(char::is_whitespace) {
        return Err(EXPECTED);
    }
    Ok(RequestLine { method: method.to_ascii_uppercase(), host, path })
}

/// A name and its value.
#[derive(Clone, Debug)]
pub(crate) struct Named(String, String);

/// Reads `name: value`.
pub(crate) fn header(text: &str) -> Result<Named, String> {
    let (name, value) = text.split_once(':').ok_or("expected a name and a value, such as 'x-api-key: k1'")?;
    let name: tidegate::policy::FieldName = name.trim().parse().map_err(|error| format!("{error}"))?;
    Ok(Named(name.as_str().to_owned(), value.trim().to_owned()))
}

/// Reads `name=value`.
pub(crate) fn claim(text: &str) -> Result<Named, &'static str> {
    let (name, value) = text.split_once('=').ok_or("expected a name and a value, such as 'plan=gold'")?;
    Ok(Named(name.trim().to_owned(), value.to_owned()))
}

/// Reads an address, or `unix`.
pub(crate) fn peer(text: &str) -> Result<Peer, &'static str> {
    match text.parse::<IpAddr>() {
        Ok(ip) => Ok(Peer::Ip(ip)),
        Err(_) if text.eq_ignore_ascii_case("unix") => Ok(Peer::Unix),
        Err(_) => Err("expected an address such as 203.0.113.7, or unix"),
    }
}
