//! Where a face listens, with an error that says which flag to change.

use std::fmt;
use std::num::NonZeroUsize;
use std::str::FromStr;

use anyhow::Context as _;
use tidegate_server::{ListenAddress, Listener};

/// The listeners of all workers on an address, in which port 0 becomes the one that was found.
///
/// # Errors
/// It cannot be listened on.
pub(crate) fn bind(flag: &str, address: &mut ListenAddress, workers: NonZeroUsize) -> anyhow::Result<Vec<Listener>> {
    let listeners = address
        .bind(workers)
        .with_context(|| format!("cannot listen on {address}; another program may be there, try {flag}"))?;
    if let (ListenAddress::Tcp { address, .. }, Some(first)) = (address, listeners.first()) {
        *address = first.local_addr()?.unwrap_or(*address);
    }
    Ok(listeners)
}

/// Where a face listens, if it does.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    Off,
    At(ListenAddress),
}

impl Place {
    /// The address, if it listens.
    pub(crate) fn address(&self) -> Option<&ListenAddress> {
        match self {
            Self::Off => None,
            Self::At(address) => Some(address),
        }
    }

    /// The listeners of all workers, none if it is off, and the address as it was found.
    ///
    /// # Errors
    /// It cannot be listened on.
    pub(crate) fn bind(
        &self,
        flag: &str,
        workers: NonZeroUsize,
    ) -> anyhow::Result<(Vec<Listener>, Option<ListenAddress>)> {
        let Self::At(address) = self else { return Ok((Vec::new(), None)) };
        let mut address = address.clone();
        Ok((bind(flag, &mut address, workers)?, Some(address)))
    }
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.eq_ignore_ascii_case("off") {
            return Ok(Self::Off);
        }
        text.parse().map(Self::At).map_err(|error: tidegate_server::ListenError| format!("{error}; or off"))
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("off"),
            Self::At(address) => address.fmt(f),
        }
    }
}
