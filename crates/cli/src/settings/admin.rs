//! What operators can do, and where.

use std::fs;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::num::NonZeroUsize;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::str::FromStr;

use anyhow::Context as _;
use clap::Args;
use tidegate::DENIED_KEYS_MAX;
use tidegate::policy::KeySalt;
use tidegate_server::{AdminToken, OperationSetup};

use super::Group;
use super::field::{Field, Given};
use crate::flags::Wrong;
use crate::say;

const ADMIN: SocketAddr = SocketAddr::new(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 9464);
/// The permission of everybody to read a file.
const OTHERS_READ: u32 = 0o004;

/// Where operators come in, and what they must show.
#[derive(Args, Clone, Default)]
pub(crate) struct AdminFace {
    /// Where an operator finds /livez, /readyz, /metrics and what is below /v1: an address, or off. Beyond the loopback
    /// it needs --admin-token-file. [default: 127.0.0.1:9464]
    #[arg(long, value_name = "ADDRESS")]
    admin: Option<Given<AdminAddress>>,

    /// A file with the token that operators must show, as `Authorization: Bearer TOKEN`. Without one, everybody on this
    /// machine is an operator.
    #[arg(long, value_name = "FILE")]
    admin_token_file: Option<Given<PathBuf>>,
}

/// What operators can do, and where.
#[derive(Args, Clone, Default)]
pub(crate) struct AdminFlags {
    #[command(flatten)]
    pub(crate) face: AdminFace,

    /// How many of the keys that are denied most are known, at /v1/denied. [default: 0]
    #[arg(long, value_name = "COUNT")]
    denied_keys: Option<Given<DeniedCount>>,

    /// Name the keys that are denied most by their hashes only.
    #[arg(long)]
    denied_keys_hashed: bool,

    /// What is mixed into the hashes of keys that logs and operators see: a text, or file: and the path of one. Without
    /// it, whoever guesses a key can check the guess.
    #[arg(long, value_name = "SALT")]
    key_hash_salt: Option<Given<Salt>>,
}

impl Group for AdminFlags {
    fn fields(&mut self) -> Vec<(&'static str, &mut dyn Field)> {
        vec![
            ("admin", &mut self.face.admin),
            ("admin_token_file", &mut self.face.admin_token_file),
            ("denied_keys", &mut self.denied_keys),
            ("denied_keys_hashed", &mut self.denied_keys_hashed),
            ("key_hash_salt", &mut self.key_hash_salt),
        ]
    }
}

impl AdminFace {
    /// Refuses what would let strangers in.
    pub(crate) fn check(&self) -> Result<(), Wrong> {
        match self.address() {
            Some(address) if !address.ip().is_loopback() && self.admin_token_file.is_none() => {
                Err(Wrong::new(format_args!(
                    "--admin {address} can be reached from other machines, and without a token it asks nobody who they \
                     are; add --admin-token-file, or take an address of the loopback such as {ADMIN}"
                )))
            }
            _ => Ok(()),
        }
    }

    fn address(&self) -> Option<SocketAddr> {
        match self.admin.as_deref() {
            Some(AdminAddress::Off) => None,
            Some(AdminAddress::At(address)) => Some(*address),
            None => Some(ADMIN),
        }
    }

    /// The listener of the admin face, unless it is off.
    ///
    /// # Errors
    /// The address is taken.
    pub(crate) fn bind(&self) -> anyhow::Result<Option<TcpListener>> {
        let Some(address) = self.address() else { return Ok(None) };
        let listeners = tidegate_server::bind(address, NonZeroUsize::MIN).with_context(|| {
            format!("cannot listen on {address} for the admin face; try --admin 127.0.0.1:0 or --admin off")
        })?;
        Ok(listeners.into_iter().next())
    }

    /// What operators must show, if anything.
    ///
    /// # Errors
    /// It cannot be read.
    pub(crate) fn token(&self) -> anyhow::Result<Option<AdminToken>> {
        self.admin_token_file.as_deref().map(token).transpose()
    }
}

impl AdminFlags {
    /// What operators can do with a store of which this is known.
    ///
    /// # Errors
    /// The token cannot be read.
    pub(crate) fn operation<S>(&self, store: OperationSetup<S>) -> anyhow::Result<OperationSetup<S>> {
        Ok(OperationSetup {
            denied_keys: self.denied_keys.as_ref().map_or(0, |count| count.0),
            are_denied_hashed: self.denied_keys_hashed,
            token: self.face.token()?,
            ..store
        })
    }

    /// What is mixed into the hashes of keys.
    pub(crate) fn salt(&self) -> KeySalt {
        self.key_hash_salt.as_ref().map_or_else(KeySalt::default, |salt| salt.0.clone())
    }
}

/// The token in a file. That others can read it is told, since it may be meant so.
fn token(path: &PathBuf) -> anyhow::Result<AdminToken> {
    let text = fs::read_to_string(path).map_err(|error| error.to_string());
    let token = text.and_then(|text| AdminToken::new(&text).map_err(|error| error.to_string()));
    let token = token.map_err(|why| Wrong::new(format_args!("--admin-token-file {}: {why}", path.display())))?;
    if fs::metadata(path).is_ok_and(|file| file.permissions().mode() & OTHERS_READ != 0) {
        let path = path.display();
        say::warning(&format!("everybody on this machine can read the token in {path}; `chmod o-r {path}` ends that"));
    }
    Ok(token)
}

/// Where the admin face listens.
#[derive(Clone, Copy)]
enum AdminAddress {
    Off,
    At(SocketAddr),
}

impl FromStr for AdminAddress {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        if text.eq_ignore_ascii_case("off") {
            return Ok(Self::Off);
        }
        text.parse().map(Self::At).map_err(|_| "expected an address with a port, such as 127.0.0.1:9464, or off")
    }
}

#[derive(Clone, Copy)]
struct DeniedCount(usize);

impl FromStr for DeniedCount {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let count = text.parse().ok().filter(|count| *count <= DENIED_KEYS_MAX);
        count.map(Self).ok_or_else(|| format!("expected a whole number from 0 to {DENIED_KEYS_MAX}"))
    }
}

/// A salt, as it is or from a file.
#[derive(Clone)]
struct Salt(KeySalt);

impl FromStr for Salt {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bytes = match text.strip_prefix("file:") {
            Some(path) => fs::read(path).map_err(|error| format!("cannot read {path}: {error}"))?,
            None => text.as_bytes().to_vec(),
        };
        KeySalt::new(bytes.trim_ascii_end()).map(Self).map_err(|error| error.to_string())
    }
}
