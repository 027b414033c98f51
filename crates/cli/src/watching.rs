//! Looking at files: once a second, and at once when the program is told to by a SIGHUP.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use anyhow::Context as _;

/// How often is looked.
const EVERY: Duration = Duration::from_secs(1);

/// Why is looked now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Occasion {
    /// Somebody said so, so that what is found counts even if it is as before.
    Told,
    /// A second has passed.
    Routine,
}

/// Looks from now on, on a thread of this name that ends with the program.
///
/// # Errors
/// There is no thread.
pub(crate) fn start(
    name: &str,
    hang_ups: Receiver<()>,
    mut look: impl FnMut(Occasion) + Send + 'static,
) -> anyhow::Result<()> {
    let work = move || {
        loop {
            match hang_ups.recv_timeout(EVERY) {
                Ok(()) => look(Occasion::Told),
                Err(RecvTimeoutError::Timeout) => look(Occasion::Routine),
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    };
    thread::Builder::new().name(name.to_owned()).spawn(work).with_context(|| format!("no thread for {name}"))?;
    Ok(())
}
