//! A line of a log, as policies see a request.

use std::borrow::Cow;

use tidegate_policy::{Attributes, Peer};

use crate::log::Line;

/// A request, from a line. What the log does not tell, the request does not have.
pub(crate) struct Request<'a> {
    peer: Peer,
    method: Cow<'a, str>,
    path: Cow<'a, str>,
    host: Option<Cow<'a, str>>,
    fields: [(&'static str, Cow<'a, [u8]>); 3],
    unix_s: u64,
}

impl<'a> Request<'a> {
    pub(crate) fn new(line: &Line<'a>, peer: Peer) -> Self {
        let path = line.path_text();
        let host = line.authority();
        let fields = [("user-agent", line.agent), ("referer", line.referer), ("x-forwarded-for", line.forwarded)];
        Self {
            peer,
            method: line.text(line.method),
            path: if path.is_empty() { Cow::Borrowed("/") } else { path },
            host: (!host.is_empty()).then(|| line.text(host)),
            fields: fields.map(|(name, value)| (name, line.escapes.decode(value))),
            unix_s: line.time.unix_s,
        }
    }
}

/// The fields of a request that logs have.
pub(crate) const FIELDS: [&str; 4] = ["host", "user-agent", "referer", "x-forwarded-for"];

impl Attributes for Request<'_> {
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
        let told = self.fields.iter().filter(|(known, value)| *known == name && !value.is_empty());
        told.for_each(|(_, value)| each(value));
    }

    fn unix_s(&self) -> Option<u64> {
        Some(self.unix_s)
    }
}
