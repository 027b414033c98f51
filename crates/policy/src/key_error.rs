//! Why a text is no key, and what was likely meant.

use std::fmt;

use crate::{NameError, Printable, key_parts::PARTS_MAX};

/// A part of a key that cannot be read, or does not fit the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyPartsError {
    part: String,
    fault: Fault,
}

impl KeyPartsError {
    pub(crate) fn new(part: &str, fault: Fault) -> Self {
        Self { part: part.to_owned(), fault }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Empty,
    Unknown {
        meant: Option<&'static str>,
    },
    /// The kind is a header's name.
    Header {
        name: String,
    },
    Name(NameError),
    NameMissing,
    NoName,
    NoNumber,
    Twice,
    GlobalIsNotAlone,
    TooMany,
}

impl Fault {
    /// What was meant by a kind, in lower case, that there is not?
    pub(crate) fn unknown(kind: &str) -> Self {
        match kind {
            "ip" | "address" | "addr" | "client-ip" | "client_ip" | "remote_addr" | "remote-addr" | "peer" => {
                Self::Unknown { meant: Some("client") }
            }
            "all" | "everyone" | "everybody" | "none" | "*" | "constant" => Self::Unknown { meant: Some("global") },
            "headers" | "http-header" => Self::Unknown { meant: Some("header:NAME") },
            "cookies" => Self::Unknown { meant: Some("cookie:NAME") },
            "path" | "segments" | "path-segment" | "url" => Self::Unknown { meant: Some("segment:NUMBER") },
            "jwt" | "claims" | "user" | "token" => Self::Unknown { meant: Some("claim:NAME") },
            "host" | "user-agent" | "authorization" => Self::Header { name: kind.to_owned() },
            name if name.starts_with("x-") => Self::Header { name: name.to_owned() },
            _ => Self::Unknown { meant: None },
        }
    }
}

impl fmt::Display for KeyPartsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = Printable(self.part.as_bytes());
        match &self.fault {
            Fault::Empty => f.write_str("the key has an empty part; without a key it is `client`"),
            Fault::Unknown { meant: Some(meant) } => write!(f, "`{part}` is no part of a key; did you mean `{meant}`?"),
            Fault::Unknown { meant: None } => {
                write!(f, "`{part}` is no part of a key; expected `client`, `header:NAME`, `cookie:NAME`, ")?;
                f.write_str("`segment:NUMBER`, `claim:NAME` or `global`")
            }
            Fault::Header { name } => {
                write!(f, "`{part}` is no part of a key; did you mean `header:{}`?", Printable(name.as_bytes()))
            }
            Fault::Name(error) => write!(f, "`{part}`: {error}"),
            Fault::NameMissing => write!(f, "`{part}` needs a name; write `{part}:NAME`"),
            Fault::NoName => write!(f, "`{part}` takes no name; leave out what is behind the colon"),
            Fault::NoNumber => {
                write!(f, "`{part}` needs a number from 1 to 255; in `/users/7`, `segment:2` is `7`")
            }
            Fault::Twice => write!(f, "the key has `{part}` twice"),
            Fault::GlobalIsNotAlone => f.write_str("`global` adds nothing to other parts of a key; leave it out"),
            Fault::TooMany => write!(f, "the key has too many parts; the maximum is {PARTS_MAX}"),
        }
    }
}

impl std::error::Error for KeyPartsError {}
