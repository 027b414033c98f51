//! Which requests a policy is about.

use std::fmt;

use crate::{Attributes, FieldName, HostPattern, NameError, PathPattern, Printable, names};

/// Which requests a policy is about: those that meet everything that is said here. By default all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Match {
    /// One of these hosts; any if none is named.
    pub hosts: Vec<HostPattern>,
    /// One of these methods; any if none is named.
    pub methods: Vec<Method>,
    /// One of these paths; any if none is named.
    pub paths: Vec<PathPattern>,
    /// All of these fields.
    pub headers: Vec<HeaderMatch>,
}

/// A method, such as `GET`, in upper case.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Method(String);

/// A header field that a request has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderMatch {
    /// Its name.
    pub name: FieldName,
    /// One of these values, on the only line of the field; if none is named, any lines.
    pub values: Vec<String>,
}

/// What a request does not meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mismatch<'a> {
    /// None of the hosts.
    Host,
    /// None of the methods.
    Method,
    /// None of the paths.
    Path,
    /// This field is not there, or is another.
    Header(&'a HeaderMatch),
}

impl Match {
    /// Is every request meant?
    #[must_use]
    pub fn is_everything(&self) -> bool {
        self.hosts.is_empty() && self.methods.is_empty() && self.paths.is_empty() && self.headers.is_empty()
    }

    /// Does it speak of preflights by name? They are `OPTIONS`.
    pub(crate) fn names_options(&self) -> bool {
        self.methods.iter().any(|method| method.as_str() == "OPTIONS")
    }

    /// Does a request whose path has this normal form meet it?
    ///
    /// # Errors
    /// It does not; this is the first that it does not meet.
    pub fn fits<A: Attributes + ?Sized>(&self, request: &A, normal_path: &str) -> Result<(), Mismatch<'_>> {
        let host = |host: &str| self.hosts.iter().any(|pattern| pattern.fits(host));
        if !self.hosts.is_empty() && !request.host().is_some_and(host) {
            return Err(Mismatch::Host);
        }
        if !self.methods.is_empty() && !self.methods.iter().any(|method| method.fits(request.method())) {
            return Err(Mismatch::Method);
        }
        if !self.paths.is_empty() && !self.paths.iter().any(|pattern| pattern.fits(normal_path)) {
            return Err(Mismatch::Path);
        }
        let missing = self.headers.iter().find(|header| !header.fits(request));
        missing.map_or(Ok(()), |header| Err(Mismatch::Header(header)))
    }

    /// Can one request meet both? Where that is not seen at once, the answer is yes.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        fn some<T>(ours: &[T], theirs: &[T], overlap: impl Fn(&T, &T) -> bool) -> bool {
            let either = ours.is_empty() || theirs.is_empty();
            either || ours.iter().any(|one| theirs.iter().any(|other| overlap(one, other)))
        }
        some(&self.hosts, &other.hosts, HostPattern::overlaps)
            && some(&self.methods, &other.methods, |one, other| one.fits(&other.0) || other.fits(&one.0))
            && some(&self.paths, &other.paths, PathPattern::overlaps)
            && self.headers.iter().all(|one| other.headers.iter().all(|other| one.overlaps(other)))
    }
}

impl Method {
    /// The method.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Is it this method? HEAD is meant where GET is.
    #[must_use]
    pub fn fits(&self, method: &str) -> bool {
        self.0 == method || (method == "HEAD" && self.0 == "GET")
    }
}

impl std::str::FromStr for Method {
    type Err = NameError;

    /// Reads a method, in any case.
    ///
    /// # Errors
    /// It is not a token (RFC 9110, section 5.6.2).
    fn from_str(text: &str) -> Result<Self, NameError> {
        names::token(text).map(|method| Self(method.to_ascii_uppercase()))
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl HeaderMatch {
    fn fits<A: Attributes + ?Sized>(&self, request: &A) -> bool {
        let line = Line::of(request, self.name.as_str());
        match self.values.is_empty() {
            true => line != Line::Missing,
            false => self.values.iter().any(|value| line == Line::Only(value.as_bytes())),
        }
    }

    fn overlaps(&self, other: &Self) -> bool {
        let either = self.name != other.name || self.values.is_empty() || other.values.is_empty();
        either || self.values.iter().any(|value| other.values.contains(value))
    }
}

/// The lines of a field, as far as a match asks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Line<'a> {
    Missing,
    Only(&'a [u8]),
    Several,
}

impl<'a> Line<'a> {
    pub(crate) fn of<A: Attributes + ?Sized>(request: &'a A, name: &str) -> Self {
        // HTTP/2 has no Host field; a face knows where else the host stands.
        if name == "host" {
            return request.host().map_or(Self::Missing, |host| Self::Only(host.as_bytes()));
        }
        let mut line = Self::Missing;
        request.header_lines(name, &mut |value| {
            line = if line == Self::Missing { Self::Only(value) } else { Self::Several };
        });
        line
    }
}

impl fmt::Display for Match {
    /// In words: `GET, POST api.example.org/login with x-plan gold`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fn list<T: ToString>(all: &[T], joint: &str) -> String {
            all.iter().map(T::to_string).collect::<Vec<_>>().join(joint)
        }
        let headers = self.headers.iter().map(|header| format!("with {header}")).collect::<Vec<_>>();
        let (methods, hosts, paths) =
            (list(&self.methods, " or "), list(&self.hosts, " or "), list(&self.paths, " or "));
        let at = if hosts.is_empty() { String::new() } else { format!("host {hosts}") };
        let words = [methods, at, paths, headers.join(" ")];
        match self.is_everything() {
            true => f.write_str("every request"),
            false => f.write_str(&words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")),
        }
    }
}

impl fmt::Display for HeaderMatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "header {}", self.name)?;
        for (i, value) in self.values.iter().enumerate() {
            write!(f, "{}\"{}\"", if i == 0 { " " } else { " or " }, Printable(value.as_bytes()))?;
        }
        Ok(())
    }
}
