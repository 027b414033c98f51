//! Who may call a decision server over HTTP, as an environment variable and the address say.

use tidegate_server::{AdminToken, Callers, ListenAddress};

use crate::flags::Wrong;
use crate::say;

/// The environment variable that holds the token of callers, which does not belong into the list of processes.
pub(crate) const TOKEN_VARIABLE: &str = "TIDEGATE_HTTP_TOKEN";

/// Who may call at this address.
///
/// # Errors
/// The variable holds something that is no token.
pub(crate) fn callers(address: Option<&ListenAddress>) -> Result<Callers, Wrong> {
    let wrong = |error: &dyn std::fmt::Display| Wrong::new(format_args!("{TOKEN_VARIABLE}: {error}"));
    match std::env::var(TOKEN_VARIABLE) {
        Ok(text) => AdminToken::new(&text).map(Callers::WithToken).map_err(|error| wrong(&error)),
        Err(std::env::VarError::NotPresent) if address.is_some_and(is_local) => Ok(Callers::Local),
        Err(std::env::VarError::NotPresent) => Ok(Callers::Anybody),
        Err(error) => Err(wrong(&error)),
    }
}

/// Warns if whoever reaches this address may charge any key.
///
/// # Errors
/// As [`callers`].
pub(crate) fn warn_of_strangers(address: Option<&ListenAddress>) -> Result<(), Wrong> {
    if let (Some(address), Callers::Anybody) = (address, callers(address)?) {
        say::warning(&format!(
            "whoever reaches {address} can use up any key over HTTP, since no token is asked for, and nobody can reset one; \
             {TOKEN_VARIABLE} sets a token"
        ));
    }
    Ok(())
}

fn is_local(address: &ListenAddress) -> bool {
    match address {
        ListenAddress::Tcp { address, .. } => address.ip().is_loopback(),
        ListenAddress::Unix { .. } => true,
    }
}
