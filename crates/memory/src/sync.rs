//! The atomics, from the standard library or, under the model checker, from loom.

#[cfg(loom)]
pub(crate) use loom::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicU64, fence},
};
#[cfg(not(loom))]
pub(crate) use std::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicU64, fence},
};

pub(crate) use core::sync::atomic::Ordering;

/// How often to look again before the processor is offered to another thread.
const SPINS_MAX: u32 = 6;

/// Waits for another thread to finish the few stores it is about to do; longer each time.
#[derive(Default)]
pub(crate) struct Backoff {
    round: u32,
}

impl Backoff {
    #[cfg(not(loom))]
    #[cold]
    pub(crate) fn wait(&mut self) {
        if self.round < SPINS_MAX {
            for _ in 0..1u32 << self.round {
                core::hint::spin_loop();
            }
            self.round += 1;
        } else {
            std::thread::yield_now();
        }
    }

    #[cfg(loom)]
    pub(crate) fn wait(&mut self) {
        self.round = self.round.min(SPINS_MAX);
        loom::thread::yield_now();
    }
}
