//! What a key is made of, as people write it: `client`, `header:x-api-key`, `cookie:session`, `segment:2`,
//! `claim:plan`, `global`.

use std::fmt;
use std::num::NonZeroU8;
use std::str::FromStr;

use crate::{ClaimName, CookieName, FieldName, key_error::Fault, key_error::KeyPartsError};

/// The most parts of one key.
pub const PARTS_MAX: usize = 8;

/// One part of a key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum KeyPart {
    /// The client's address, grouped.
    Client,
    /// The value of a header field: its lines, as they are. An empty value is a value.
    Header(FieldName),
    /// The value of the first cookie of this name.
    Cookie(CookieName),
    /// A segment of the path in its normal form, by its number; the first is 1. An empty one is missing.
    Segment(NonZeroU8),
    /// What a trusted layer has verified about the caller.
    Claim(ClaimName),
    /// Nothing: everybody shares one bucket.
    Global,
}

impl KeyPart {
    /// Can callers make up a value of their own? Then each new one is a new bucket, and a full one.
    #[must_use]
    pub const fn is_callers_own(&self) -> bool {
        matches!(self, Self::Header(_) | Self::Cookie(_) | Self::Segment(_))
    }

    /// Is the value a credential by its nature? Then the key holds only its SHA-256.
    #[must_use]
    pub fn is_secret(&self) -> bool {
        match self {
            Self::Header(name) => ["authorization", "proxy-authorization", "cookie"].contains(&name.as_str()),
            Self::Cookie(_) => true,
            Self::Client | Self::Segment(_) | Self::Claim(_) | Self::Global => false,
        }
    }

    /// The part as it is written, so that reading it gives the same part.
    #[must_use]
    pub fn to_text(&self) -> String {
        match self {
            Self::Client => "client".to_owned(),
            Self::Header(name) => format!("header:{name}"),
            Self::Cookie(name) => format!("cookie:{name}"),
            Self::Segment(number) => format!("segment:{number}"),
            Self::Claim(name) => format!("claim:{name}"),
            Self::Global => "global".to_owned(),
        }
    }
}

impl FromStr for KeyPart {
    type Err = KeyPartsError;

    /// Reads one part.
    ///
    /// # Errors
    /// It is of no known kind, or its name cannot be one.
    fn from_str(text: &str) -> Result<Self, KeyPartsError> {
        part(text.trim()).map_err(|fault| KeyPartsError::new(text.trim(), fault))
    }
}

impl fmt::Display for KeyPart {
    /// In words: `client`, `header x-api-key`, `cookie session`, `segment 2`, `claim plan`, `global`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Client => f.write_str("client"),
            Self::Header(name) => write!(f, "header {name}"),
            Self::Cookie(name) => write!(f, "cookie {name}"),
            Self::Segment(number) => write!(f, "segment {number}"),
            Self::Claim(name) => write!(f, "claim {name}"),
            Self::Global => f.write_str("global"),
        }
    }
}

/// The parts of a key, one or more and all of them different. By default the client.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KeyParts(Vec<KeyPart>);

impl KeyParts {
    /// A key of these parts.
    ///
    /// # Errors
    /// There are none, more than [`PARTS_MAX`], two equal ones, or `global` stands beside others.
    pub fn new(parts: Vec<KeyPart>) -> Result<Self, KeyPartsError> {
        let error = |part: &KeyPart, fault| Err(KeyPartsError::new(&part.to_string(), fault));
        for (i, part) in parts.iter().enumerate() {
            if i >= PARTS_MAX {
                return error(part, Fault::TooMany);
            }
            if parts[..i].contains(part) {
                return error(part, Fault::Twice);
            }
            if *part == KeyPart::Global && parts.len() > 1 {
                return error(part, Fault::GlobalIsNotAlone);
            }
        }
        if parts.is_empty() { Err(KeyPartsError::new("", Fault::Empty)) } else { Ok(Self(parts)) }
    }

    /// The parts, in order.
    #[must_use]
    pub fn as_slice(&self) -> &[KeyPart] {
        &self.0
    }

    /// The parts as they are written, with commas between them.
    #[must_use]
    pub fn to_text(&self) -> String {
        self.0.iter().map(KeyPart::to_text).collect::<Vec<_>>().join(",")
    }

    /// Can callers make up a key of their own, and so a full bucket?
    #[must_use]
    pub fn is_callers_own(&self) -> bool {
        self.0.iter().any(KeyPart::is_callers_own)
    }
}

impl Default for KeyParts {
    fn default() -> Self {
        Self(vec![KeyPart::Client])
    }
}

impl FromStr for KeyParts {
    type Err = KeyPartsError;

    /// Reads parts that are separated by commas.
    ///
    /// # Errors
    /// One of them cannot be read, or they do not make a key together.
    fn from_str(text: &str) -> Result<Self, KeyPartsError> {
        Self::new(text.split(',').take(PARTS_MAX + 1).map(str::parse).collect::<Result<_, _>>()?)
    }
}

impl fmt::Display for KeyParts {
    /// In words: `client, header x-api-key`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, part) in self.0.iter().enumerate() {
            write!(f, "{}{part}", if i == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

/// What happens to a request that has no value for a part of the key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnMissing {
    /// The client's address stands in, in a namespace of its own.
    #[default]
    Client,
    /// The request is denied.
    Deny,
    /// The policy charges nothing.
    Skip,
}

fn part(text: &str) -> Result<KeyPart, Fault> {
    let (kind, name) = match text.split_once(':') {
        Some((kind, name)) => (kind.trim_end().to_ascii_lowercase(), Some(name.trim())),
        None => (text.to_ascii_lowercase(), None),
    };
    match (kind.as_str(), name) {
        ("", None) => Err(Fault::Empty),
        ("client", None) => Ok(KeyPart::Client),
        ("global", None) => Ok(KeyPart::Global),
        ("client" | "global", Some(_)) => Err(Fault::NoName),
        ("header", Some(name)) => name.parse().map(KeyPart::Header).map_err(Fault::Name),
        ("cookie", Some(name)) => name.parse().map(KeyPart::Cookie).map_err(Fault::Name),
        ("claim", Some(name)) => name.parse().map(KeyPart::Claim).map_err(Fault::Name),
        ("segment", Some(number)) => number.parse().map(KeyPart::Segment).map_err(|_| Fault::NoNumber),
        ("segment", None) => Err(Fault::NoNumber),
        ("header" | "cookie" | "claim", None) => Err(Fault::NameMissing),
        (kind, _) => Err(Fault::unknown(kind)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: &str) {
        let got = text.parse::<KeyParts>().map_or_else(|error| error.to_string(), |parts| parts.to_string());
        assert_eq!(got, expect, "{text}");
    }

    #[test]
    fn keys_are_read() {
        check("client", "client");
        check("Client", "client");
        check("global", "global");
        check("header:X-Api-Key", "header x-api-key");
        check("cookie:Session", "cookie Session");
        check(" client , header: x-api-key,cookie:s ", "client, header x-api-key, cookie s");
        check("segment:2,claim:Plan", "segment 2, claim Plan");
        assert_eq!(KeyParts::default(), "client".parse().unwrap());
        for text in ["client", "header:x-a", "cookie:S", "segment:255", "claim:Plan", "global"] {
            assert_eq!(text.parse::<KeyPart>().unwrap().to_text(), text);
        }
    }

    #[test]
    fn errors_name_what_was_meant() {
        let empty = "the key has an empty part; without a key it is `client`";
        check("", empty);
        check("client,", empty);
        check("ip", "`ip` is no part of a key; did you mean `client`?");
        check("*", "`*` is no part of a key; did you mean `global`?");
        check("X-Api-Key", "`X-Api-Key` is no part of a key; did you mean `header:x-api-key`?");
        check("cookies:a", "`cookies:a` is no part of a key; did you mean `cookie:NAME`?");
        check("path", "`path` is no part of a key; did you mean `segment:NUMBER`?");
        check(
            "what",
            "`what` is no part of a key; expected `client`, `header:NAME`, `cookie:NAME`, `segment:NUMBER`, \
             `claim:NAME` or `global`",
        );
        let number = "needs a number from 1 to 255; in `/users/7`, `segment:2` is `7`";
        check("segment", &format!("`segment` {number}"));
        check("segment:0", &format!("`segment:0` {number}"));
        check("segment:id", &format!("`segment:id` {number}"));
        check("jwt:sub", "`jwt:sub` is no part of a key; did you mean `claim:NAME`?");
        check("header", "`header` needs a name; write `header:NAME`");
        check("header:", "`header:`: the name is empty");
        check("header:a b", "`header:a b`: ` ` cannot stand in a name; only letters, digits and !#$%&'*+-.^_`|~ can");
        check("cookie:a=b", "`cookie:a=b`: `=` cannot stand in a name; only letters, digits and !#$%&'*+-.^_`|~ can");
        check("client:x", "`client:x` takes no name; leave out what is behind the colon");
        check("client,client", "the key has `client` twice");
        check("header:a,header:A", "the key has `header a` twice");
        check("client,global", "`global` adds nothing to other parts of a key; leave it out");
        let many: Vec<_> = (0..=PARTS_MAX).map(|i| format!("header:h{i}")).collect();
        check(&many.join(","), "the key has too many parts; the maximum is 8");
        let long = "n".repeat(crate::NAME_BYTES_MAX + 1);
        assert!(format!("header:{long}").parse::<KeyPart>().is_err());
    }

    #[test]
    fn what_callers_write_is_their_own() {
        let own = |text: &str| text.parse::<KeyParts>().unwrap().is_callers_own();
        assert!(!own("client") && !own("global"));
        assert!(own("header:a") && own("cookie:a") && own("client,header:a"));
        assert!(own("segment:1") && !own("claim:plan"));
    }
}
