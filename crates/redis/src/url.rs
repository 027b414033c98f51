//! The parts of a store's URL.
//!
//! Taken apart here, since no general parser knows several hosts in one authority. Everything up to the last `@` is user
//! and password, so a password with a `/`, `?` or `#` in it is read as it was meant; a `%` is written as `%25`.

use std::fmt;

use crate::address::{HOSTS_MAX, HostPort, Login, Secret};

/// Why a URL is none of a store. It shows nothing that may be a password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UrlError {
    what: String,
    example: &'static str,
}

impl UrlError {
    pub(crate) fn new(what: impl Into<String>, example: &'static str) -> Self {
        Self { what: what.into(), example }
    }
}

impl fmt::Display for UrlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not the URL of a store: {}; write it like `{}`", self.what, self.example)
    }
}

impl std::error::Error for UrlError {}

/// What stands after the scheme.
pub(crate) struct Url<'a> {
    credentials: Option<&'a str>,
    hosts: &'a str,
    /// Without the first slash of what follows hosts; with it where there are none.
    pub(crate) path: &'a str,
    parameters: Vec<(&'a str, &'a str)>,
    example: &'static str,
}

impl<'a> Url<'a> {
    pub(crate) fn parse(rest: &'a str, example: &'static str) -> Result<Self, UrlError> {
        let (credentials, rest) = match rest.rsplit_once('@') {
            Some((credentials, rest)) => (Some(credentials), rest),
            None => (None, rest),
        };
        let (rest, parameters) = parameters(rest, example)?;
        let (hosts, path) = rest.split_once('/').unwrap_or((rest, ""));
        Ok(Self { credentials, hosts, path: path.trim_end_matches('/'), parameters, example })
    }

    /// A URL that has a path and no hosts.
    pub(crate) fn of_path(rest: &'a str, example: &'static str) -> Result<Self, UrlError> {
        let (path, parameters) = parameters(rest, example)?;
        Ok(Self { credentials: None, hosts: "", path, parameters, example })
    }

    pub(crate) fn hosts(&self, port: u16) -> Result<Vec<HostPort>, UrlError> {
        let hosts: Vec<_> = self.hosts.split(',').take(HOSTS_MAX + 1).collect();
        if hosts.len() > HOSTS_MAX {
            return Err(self.wrong(format!("it has more than {HOSTS_MAX} hosts")));
        }
        hosts.into_iter().map(|host| self.host(host, port)).collect()
    }

    fn host(&self, text: &str, port: u16) -> Result<HostPort, UrlError> {
        let (host, port_text) = match text.strip_prefix('[') {
            Some(rest) => {
                let (host, after) = rest.split_once(']').ok_or_else(|| self.wrong("a bracket is not closed"))?;
                (host, after.strip_prefix(':'))
            }
            None => match text.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (text, None),
            },
        };
        match host {
            "" => return Err(self.wrong("it names no host")),
            "0.0.0.0" | "::" => return Err(self.wrong("every address is none to connect to")),
            _ => {}
        }
        // The text of a port is not shown: where the host was forgotten, it is the password.
        let is_wrong = || self.wrong(format!("the port of `{host}` is no number from 1 to 65535"));
        let port = match port_text {
            Some(text) => text.parse().ok().filter(|port| *port > 0).ok_or_else(is_wrong)?,
            None => port,
        };
        Ok(HostPort { host: host.to_owned(), port })
    }

    /// User, password and protocol; the database is 0.
    pub(crate) fn login(&mut self) -> Result<Login, UrlError> {
        let is_resp3 = match self.parameter("protocol")?.as_deref() {
            None | Some("2" | "resp2") => false,
            Some("3" | "resp3") => true,
            Some(_) => return Err(self.wrong("the protocol is resp2 or resp3")),
        };
        let mut login = Login { is_resp3, ..Login::default() };
        if let Some(credentials) = self.credentials {
            let (user, password) = credentials.split_once(':').unwrap_or((credentials, ""));
            login.user = Some(self.decoded(user)?).filter(|user| !user.is_empty());
            login.password = Some(self.decoded(password)?).filter(|word| !word.is_empty()).map(Secret::new);
        }
        Ok(login)
    }

    pub(crate) fn database(&self, text: &str) -> Result<u32, UrlError> {
        if text.is_empty() {
            return Ok(0);
        }
        text.parse().map_err(|_| self.wrong("the database is no number"))
    }

    /// Takes a parameter out.
    pub(crate) fn parameter(&mut self, name: &str) -> Result<Option<String>, UrlError> {
        let Some(place) = self.parameters.iter().position(|(given, _)| *given == name) else { return Ok(None) };
        let (_, value) = self.parameters.remove(place);
        self.decoded(value).map(Some)
    }

    /// A parameter that nobody has taken is one that does not exist.
    pub(crate) fn finish(&self) -> Result<(), UrlError> {
        match self.parameters.first() {
            Some((name, _)) => Err(self.wrong(format!("`{name}` is no parameter of such a URL, or given twice"))),
            None => Ok(()),
        }
    }

    pub(crate) fn decoded(&self, text: &str) -> Result<String, UrlError> {
        decoded(text).ok_or_else(|| self.wrong("a `%` is followed by two hexadecimal digits, and is `%25` itself"))
    }

    fn wrong(&self, what: impl Into<String>) -> UrlError {
        UrlError::new(what, self.example)
    }
}

type Parameters<'a> = Vec<(&'a str, &'a str)>;

fn parameters<'a>(rest: &'a str, example: &'static str) -> Result<(&'a str, Parameters<'a>), UrlError> {
    if rest.contains('#') {
        return Err(UrlError::new("nothing is understood after `#`; servers are always verified", example));
    }
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    Ok((rest, pairs.map(|pair| pair.split_once('=').unwrap_or((pair, ""))).collect()))
}

/// Percent-encoded text as it was before. `None` if the encoding is broken, or it is no UTF-8.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
                digit(rest.next()?)? << 4 | digit(rest.next()?)?
            }
            _ => byte,
        });
    }
    String::from_utf8(bytes).ok()
}
