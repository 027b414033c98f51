//! Who may use the admin face.
//!
//! With a token, whoever sends it: `Authorization: Bearer TOKEN`. Without one the face listens where only this machine
//! can reach it, and the danger is a browser on it: a web page's name can be made to point to the loopback (DNS
//! rebinding), and then the page may read what is here. The browser sends the page's name as the host, so only names and
//! addresses of the loopback are answered. Behind a unix socket there is no browser.

use std::fmt;
use std::hint::black_box;
use std::net::IpAddr;

use http::StatusCode;
use http::header::{AUTHORIZATION, HOST};
use http::request::Parts;
use http::uri::Authority;

use crate::Peer;

/// The shortest token, in characters.
const TOKEN_CHARS_MIN: usize = 16;
/// The longest token, in characters.
const TOKEN_CHARS_MAX: usize = 512;

/// What an operator shows to be let in.
#[derive(Clone, PartialEq, Eq)]
pub struct AdminToken(Box<[u8]>);

impl AdminToken {
    /// The token of a text, without the space around it.
    ///
    /// # Errors
    /// It has fewer than 16 or more than 512 characters, or some that a header field's token has not.
    pub fn new(text: &str) -> Result<Self, AdminTokenError> {
        let text = text.trim();
        let is_plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte));
        match text.len() {
            TOKEN_CHARS_MIN..=TOKEN_CHARS_MAX if is_plain => Ok(Self(text.as_bytes().into())),
            _ => Err(AdminTokenError),
        }
    }

    /// Does a request show it?
    pub(crate) fn is_shown_by(&self, parts: &Parts) -> bool {
        shown(parts).is_some_and(|shown| self.is(shown))
    }

    /// The token, for what is derived from it.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Is it this one? The time that the answer takes says nothing but whether the lengths are equal.
    fn is(&self, shown: &[u8]) -> bool {
        let differing = self.0.iter().zip(shown).fold(0, |bits, (one, other)| black_box(bits | (one ^ other)));
        self.0.len() == shown.len() && differing == 0
    }
}

impl fmt::Debug for AdminToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AdminToken(..)")
    }
}

/// A text that is no token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdminTokenError;

impl fmt::Display for AdminTokenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "a token has {TOKEN_CHARS_MIN} to {TOKEN_CHARS_MAX} characters, which are letters, digits and -._~+/=; \
             `openssl rand -hex 32` makes one"
        )
    }
}

impl std::error::Error for AdminTokenError {}

/// Who is let in.
#[derive(Debug, Default)]
pub(crate) struct Access {
    token: Option<AdminToken>,
}

/// Who is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stranger {
    /// Without the token.
    Token,
    /// By a name that is not the loopback's.
    Host,
}

impl Stranger {
    pub(crate) fn status(self) -> StatusCode {
        match self {
            Self::Token => StatusCode::UNAUTHORIZED,
            Self::Host => StatusCode::FORBIDDEN,
        }
    }

    pub(crate) fn detail(self) -> &'static str {
        match self {
            Self::Token => "this needs the token of the admin face: `Authorization: Bearer TOKEN`",
            Self::Host => "without a token this is answered by the name `localhost` or an address of the loopback only",
        }
    }
}

impl Access {
    pub(crate) fn new(token: Option<AdminToken>) -> Self {
        Self { token }
    }

    pub(crate) fn check(&self, parts: &Parts) -> Result<(), Stranger> {
        match &self.token {
            Some(token) if token.is_shown_by(parts) => Ok(()),
            Some(_) => Err(Stranger::Token),
            None if is_of_this_machine(parts) => Ok(()),
            None => Err(Stranger::Host),
        }
    }
}

/// The token that a request shows.
fn shown(parts: &Parts) -> Option<&[u8]> {
    let mut lines = parts.headers.get_all(AUTHORIZATION).iter();
    let (scheme, token) = lines.next()?.as_bytes().split_at_checked("Bearer ".len())?;
    (scheme.eq_ignore_ascii_case(b"Bearer ") && lines.next().is_none()).then_some(token)
}

/// Was it asked for by a name of this machine? A browser always says by which.
pub(crate) fn is_of_this_machine(parts: &Parts) -> bool {
    if parts.extensions.get::<Peer>() == Some(&Peer::Unix) {
        return true;
    }
    let named = |authority: &Authority| {
        let host = authority.host();
        let ip = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        host.eq_ignore_ascii_case("localhost") || ip.is_ok_and(|ip| ip.is_loopback())
    };
    match (parts.uri.authority(), parts.headers.get(HOST)) {
        (Some(authority), _) => named(authority),
        (None, Some(host)) => Authority::try_from(host.as_bytes()).is_ok_and(|authority| named(&authority)),
        (None, None) => true,
    }
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    const TOKEN: &str = "0123456789abcdef";

    fn check(token: bool, target: &str, fields: &[(&str, &str)]) -> Result<(), Stranger> {
        let access = Access::new(token.then(|| AdminToken::new(TOKEN).unwrap()));
        let request = fields.iter().fold(Request::get(target), |request, (name, value)| request.header(*name, *value));
        access.check(&request.body(()).unwrap().into_parts().0)
    }

    #[test]
    fn with_a_token_only_the_token_counts() {
        let with = |value: &str| check(true, "/metrics", &[("host", "evil.example"), ("authorization", value)]);
        assert_eq!(with("Bearer 0123456789abcdef"), Ok(()));
        assert_eq!(with("bearer 0123456789abcdef"), Ok(()));
        let wrong = ["", "Bearer", "Bearer ", "Basic 0123456789abcdef", "0123456789abcdef", "Bearer  0123456789abcdef"];
        let near = ["Bearer 0123456789abcdee", "Bearer 0123456789abcde", "Bearer 0123456789abcdef0"];
        wrong.iter().chain(&near).for_each(|value| assert_eq!(with(value), Err(Stranger::Token), "{value}"));
        assert_eq!(check(true, "/metrics", &[("host", "localhost")]), Err(Stranger::Token));
        let twice = [("authorization", "Bearer 0123456789abcdef"); 2];
        assert_eq!(check(true, "/metrics", &twice), Err(Stranger::Token));
    }

    #[test]
    fn without_one_a_name_of_the_loopback_is_needed() {
        let by = |host: &str| check(false, "/v1/policies", &[("host", host)]).is_ok();
        for host in ["localhost", "LOCALHOST:9464", "127.0.0.1:9464", "127.8.8.8", "[::1]:9464", "[::1]"] {
            assert!(by(host), "{host}");
        }
        for host in ["evil.example", "localhost.evil.example", "192.0.2.1", "[2001:db8::1]", "a b", "", "0.0.0.0"] {
            assert!(!by(host), "{host}");
        }
        assert_eq!(check(false, "http://evil.example/metrics", &[("host", "localhost")]), Err(Stranger::Host));
        assert_eq!(check(false, "/metrics", &[]), Ok(()));
    }

    #[test]
    fn a_token_is_long_enough_and_can_stand_in_a_field() {
        assert!(AdminToken::new(" 0123456789abcdef\n").is_ok());
        for text in ["", "short", "0123456789abcdeé", "0123456789 abcdef", &"a".repeat(513)] {
            assert_eq!(AdminToken::new(text), Err(AdminTokenError), "{text}");
        }
        assert_eq!(format!("{:?}", AdminToken::new(TOKEN).unwrap()), "AdminToken(..)");
    }
}
