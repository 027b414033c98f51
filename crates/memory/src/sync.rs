//! The atomics, from the standard library or, under the model checker, from loom.

#[cfg(loom)]
pub(crate) use loom::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicU64, fence},
};
#[cfg(not(loom))]
pub(crate) use std::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicU64, fence},
};

pub(crate) use core::sync::atomic::Ordering;

/// A point at which the model checker shall consider to go on with another thread.
///
/// loom remembers who touched a word last and tries other orders from there. A thread that has read a word before it
/// writes it hides the readers before itself, so that orders in which their reads come later are not tried. What is
/// touched here is only ever touched in one way, and nothing is hidden. It orders no other memory.
#[cfg(loom)]
pub(crate) fn may_switch() {
    loom::lazy_static! {
        static ref TURNS: AtomicU64 = AtomicU64::new(0);
    }
    TURNS.fetch_add(1, Ordering::Relaxed);
}

#[cfg(not(loom))]
#[inline(always)]
pub(crate) fn may_switch() {}

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
        #[cfg(test)]
        crate::stress::LOST.fetch_add(1, Ordering::Relaxed);
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
