//! A request that somebody describes, as policies see it.
//!
//! Who asks is trusted, so what it says it has verified counts as verified.

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};

use tidegate::policy::{Attributes, Peer};
use tidegate::{Cost, Time};

use crate::json::{Fault, Kind, Reader};

const FIELDS: [&str; 6] = ["method", "path", "host", "client", "headers", "claims"];
/// The most header fields, and the most claims.
const NAMES_MAX: usize = 100;
/// The longest method, in characters.
const METHOD_CHARS_MAX: usize = 32;

/// A request that somebody describes.
pub(super) struct Described<'a> {
    method: Cow<'a, str>,
    path: Cow<'a, str>,
    host: Option<Cow<'a, str>>,
    client: Option<Peer>,
    /// Was the client asked for, and is not there?
    is_client_missed: AtomicBool,
    /// The lines of its header section.
    headers: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    claims: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    pub(super) cost: Option<Cost>,
    pub(super) time: Time,
}

impl<'a> Described<'a> {
    /// Reads one, which was described now and costs what policies say.
    pub(super) fn read(reader: &mut Reader<'a>) -> Result<Self, Fault> {
        let mut request = Self {
            method: "GET".into(),
            path: "/".into(),
            host: None,
            client: None,
            is_client_missed: AtomicBool::new(false),
            headers: Vec::new(),
            claims: Vec::new(),
            cost: None,
            time: Time::ZERO,
        };
        reader.object("a request", &FIELDS, |reader, field| {
            match field {
                "method" => request.method = method(reader)?,
                "path" => request.path = path(reader)?,
                "host" => request.host = Some(reader.text("a host such as \"example.com\"")?),
                "client" => request.client = Some(client(reader)?),
                "headers" => request.headers = headers(reader)?,
                _ => request.claims = claims(reader)?,
            }
            Ok(())
        })?;
        Ok(request)
    }

    /// Was the client asked for, and is not there?
    pub(super) fn is_client_missed(&self) -> bool {
        self.is_client_missed.load(Ordering::Relaxed)
    }

    pub(super) fn has_client(&self) -> bool {
        self.client.is_some()
    }
}

fn method<'a>(reader: &mut Reader<'a>) -> Result<Cow<'a, str>, Fault> {
    let (at, method) = (reader.at(), reader.text("a method such as \"GET\"")?);
    match (1..=METHOD_CHARS_MAX).contains(&method.chars().count()) {
        true => Ok(method),
        false => Err(Fault::new(at, format_args!("a method has 1 to {METHOD_CHARS_MAX} characters"))),
    }
}

fn path<'a>(reader: &mut Reader<'a>) -> Result<Cow<'a, str>, Fault> {
    let (at, path) = (reader.at(), reader.text("a path such as \"/login\"")?);
    match path.starts_with('/') {
        true => Ok(path),
        false => Err(Fault::new(at, "a path begins with `/`")),
    }
}

fn client(reader: &mut Reader<'_>) -> Result<Peer, Fault> {
    let (at, client) = (reader.at(), reader.text("an address such as \"192.0.2.7\"")?);
    let ip = client.parse::<IpAddr>().map(Peer::Ip);
    ip.map_err(|_| {
        Fault::new(at, "expected an address of IPv4 or IPv6, without a port or a zone, such as \"192.0.2.7\"")
    })
}

type Lines<'a> = Vec<(Cow<'a, str>, Cow<'a, str>)>;

/// Fields by their names, each of one line or of a list of lines.
fn headers<'a>(reader: &mut Reader<'a>) -> Result<Lines<'a>, Fault> {
    let mut lines = Lines::new();
    named(reader, "an object of header fields", |reader, name| match reader.kind() {
        Kind::List => reader.list("a list of lines", |reader, place| {
            if place == NAMES_MAX {
                return Err(reader.fault(format_args!("a field has at most {NAMES_MAX} lines")));
            }
            lines.push((name.clone(), reader.text("a text")?));
            Ok(())
        }),
        _ => {
            lines.push((name.clone(), reader.text("a text, or a list of texts")?));
            Ok(())
        }
    })?;
    Ok(lines)
}

fn claims<'a>(reader: &mut Reader<'a>) -> Result<Lines<'a>, Fault> {
    let mut claims = Lines::new();
    named(reader, "an object of claims", |reader, name| {
        claims.push((name.clone(), reader.text("a text; a number stands in quotes")?));
        Ok(())
    })?;
    Ok(claims)
}

/// Values of any names, of which none is there twice.
fn named<'a>(
    reader: &mut Reader<'a>,
    what: &str,
    mut value: impl FnMut(&mut Reader<'a>, &Cow<'a, str>) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let mut names: Vec<Cow<'a, str>> = Vec::new();
    reader.entries(what, |reader, name, at| {
        if names.contains(name) {
            return Err(Fault::new(at, "this name is there twice").within(name));
        }
        if names.len() == NAMES_MAX {
            return Err(Fault::new(at, format_args!("there are more than {NAMES_MAX} names")));
        }
        value(reader, name).map_err(|fault| fault.within(name))?;
        names.push(name.clone());
        Ok(())
    })
}

impl Attributes for Described<'_> {
    fn peer(&self) -> Peer {
        self.client.unwrap_or_else(|| {
            self.is_client_missed.store(true, Ordering::Relaxed);
            Peer::Unix
        })
    }

    fn method(&self) -> &str {
        &self.method
    }

    fn path(&self) -> &str {
        self.path.split_once('?').map_or(&*self.path, |(path, _)| path)
    }

    fn host(&self) -> Option<&str> {
        self.host.as_deref()
    }

    fn header_lines<'a>(&'a self, name: &str, each: &mut dyn FnMut(&'a [u8])) {
        let lines = self.headers.iter().filter(|(field, _)| field.eq_ignore_ascii_case(name));
        lines.for_each(|(_, line)| each(line.as_bytes()));
    }

    fn claim(&self, name: &str) -> Option<&[u8]> {
        self.claims.iter().find(|(claim, _)| claim == name).map(|(_, value)| value.as_bytes())
    }

    fn cost(&self) -> Option<Cost> {
        self.cost
    }

    fn unix_s(&self) -> Option<u64> {
        Some(self.time.since(Time::ZERO).as_secs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    #[test]
    fn a_description_is_a_request_as_policies_see_it() {
        let json = r#"{"method":"POST","path":"/a?b","host":"h","client":"192.0.2.7","claims":{"plan":"gold"},
                       "headers":{"X-Forwarded-For":["a","b"],"x-forwarded-for":"c"}}"#;
        let request = json::read(json, Described::read).unwrap();
        assert_eq!((request.method(), request.path(), request.host()), ("POST", "/a", Some("h")));
        assert_eq!(request.peer(), Peer::Ip([192, 0, 2, 7].into()));
        assert_eq!((request.claim("plan"), request.claim("Plan")), (Some(&b"gold"[..]), None));
        let mut lines = Vec::new();
        request.header_lines("x-forwarded-for", &mut |line| lines.push(line));
        assert_eq!(lines, [b"a", b"b", b"c"]);
        assert!(!request.is_client_missed());
        let request = json::read("{}", Described::read).unwrap();
        assert_eq!((request.method(), request.path(), request.host()), ("GET", "/", None));
        assert_eq!((request.peer(), request.is_client_missed()), (Peer::Unix, true));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let cases = [
            (r#"{"client":"192.0.2.7:80"}"#, "/client", "expected an address of IPv4 or IPv6"),
            (r#"{"path":"a"}"#, "/path", "a path begins with `/`"),
            (r#"{"method":""}"#, "/method", "a method has 1 to 32 characters"),
            (r#"{"headers":{"a":1}}"#, "/headers/a", "expected a text, or a list of texts, not a number"),
            (r#"{"headers":{"a":"","a":""}}"#, "/headers/a", "this name is there twice"),
            (r#"{"claims":{"org":42}}"#, "/claims/org", "expected a text; a number stands in quotes, not a number"),
            (r#"{"header":{}}"#, "", "there is no field `header` in a request; did you mean `headers`?"),
        ];
        for (json, pointer, message) in cases {
            let fault = json::read(json, Described::read).err().unwrap();
            assert_eq!(fault.pointer(), pointer, "{json}");
            assert!(fault.message().starts_with(message), "{json}: {}", fault.message());
        }
    }
}
