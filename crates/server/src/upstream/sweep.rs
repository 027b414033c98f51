//! Growing old without a clock.
//!
//! A sweep passes twice in the time for which something may be idle, and what two sweeps saw idle goes.

use std::time::Duration;

use tokio::time::sleep;

/// Sweeps that an idle thing outlives; the idle time is divided by as many.
const SWEEPS_MAX: u8 = 2;

/// How many sweeps saw a thing idle.
#[derive(Debug, Default)]
pub(crate) struct Age(u8);

impl Age {
    /// Is it too old, now that one more sweep saw it?
    pub(crate) fn is_up(&mut self) -> bool {
        self.0 += 1;
        self.0 > SWEEPS_MAX
    }
}

/// Lets `pass` look around until it says that nothing is left.
pub(crate) fn start(idle_timeout: Duration, pass: impl Fn() -> bool + Send + 'static) {
    let every = idle_timeout / u32::from(SWEEPS_MAX);
    tokio::spawn(async move {
        loop {
            sleep(every).await;
            if !pass() {
                return;
            }
        }
    });
}
