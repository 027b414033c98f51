//! Where operators look.

use std::net::{SocketAddr, TcpListener};
use std::num::NonZeroUsize;
use std::str::FromStr;

use anyhow::Context as _;
use clap::Args;

use super::Group;
use super::field::{Field, Given};

const ADMIN: &str = "127.0.0.1:9464";

/// Where operators look.
#[derive(Args, Clone, Default)]
pub(crate) struct AdminFlags {
    /// Where an operator finds /livez, /readyz and /metrics: an address of the loopback, or off.
    /// [default: 127.0.0.1:9464]
    #[arg(long, value_name = "ADDRESS")]
    admin: Option<Given<AdminAddress>>,
}

impl Group for AdminFlags {
    fn fields(&mut self) -> Vec<(&'static str, &mut dyn Field)> {
        vec![("admin", &mut self.admin)]
    }
}

impl AdminFlags {
    /// The listener of the admin face, unless it is off.
    pub(crate) fn bind(&self) -> anyhow::Result<Option<TcpListener>> {
        let address = match self.admin.as_deref() {
            Some(AdminAddress::Off) => return Ok(None),
            Some(AdminAddress::At(address)) => *address,
            None => ADMIN.parse().context("the address of the admin face")?,
        };
        let listeners = tidegate_server::bind(address, NonZeroUsize::MIN).with_context(|| {
            format!("cannot listen on {address} for the admin face; try --admin 127.0.0.1:0 or --admin off")
        })?;
        Ok(listeners.into_iter().next())
    }
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
        match text.parse::<SocketAddr>() {
            Ok(address) if address.ip().is_loopback() => Ok(Self::At(address)),
            Ok(_) => Err("the admin face asks nobody who they are, so it listens on the loopback only, \
                          such as 127.0.0.1:9464, or is off"),
            Err(_) => Err("expected an address with a port, such as 127.0.0.1:9464, or off"),
        }
    }
}
