//! Planned instants.
//!
//! The runtime's timer has ticks of a millisecond, which is longer than many an answer takes. A thread that sleeps by
//! the system's clock keeps to some fifty microseconds, and costs nothing while it does.

use std::io;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, atomic::AtomicU64, atomic::Ordering::SeqCst};
use std::thread;

use tidegate::{Clock as _, SystemClock, Time};
use tokio::sync::Notify;

/// Tells when an instant has come.
pub(super) struct Pacer {
    plans: Sender<Time>,
    bell: Arc<Bell>,
    clock: SystemClock,
}

#[derive(Default)]
struct Bell {
    /// The last instant that has come. Nanoseconds.
    come: AtomicU64,
    rings: Notify,
}

impl Pacer {
    pub(super) fn start() -> io::Result<Self> {
        let (plans, planned) = channel::<Time>();
        let (bell, clock) = (Arc::new(Bell::default()), SystemClock::new());
        let (ringer, its_clock) = (Arc::clone(&bell), clock.clone());
        let keep = move || {
            // It ends with the pacer, who alone plans.
            for then in planned {
                thread::sleep(then.since(its_clock.now()));
                ringer.come.fetch_max(then.as_nanos(), SeqCst);
                ringer.rings.notify_one();
            }
        };
        thread::Builder::new().name("tidegate-pacer".to_owned()).spawn(keep)?;
        Ok(Self { plans, bell, clock })
    }

    /// Plans an instant, which is not before the last one that was planned.
    pub(super) fn plan(&self, then: Time) {
        // The thread lives as long as the pacer does.
        let _ = self.plans.send(then);
    }

    /// Waits until a planned instant has come. It may be given up, and waited for again.
    pub(super) async fn until(&self, then: Time) {
        while self.clock.now() < then {
            if self.bell.come.load(SeqCst) >= then.as_nanos() {
                return;
            }
            self.bell.rings.notified().await;
        }
    }
}
