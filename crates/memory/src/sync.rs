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

/// Spins of a thread that lost the right to write, at first: whoever has the cache line decides a few times more
/// meanwhile, which is cheaper for both than moving the line for each decision.
const LOST_SPINS: u32 = 32;
/// How often to look again, after twice as many spins each time, before the processor is offered to another thread.
#[cfg(not(loom))]
const ROUNDS_MAX: u32 = 4;

/// Waits for another thread to finish the few stores it is about to do; longer each time.
#[derive(Default)]
pub(crate) struct Backoff {
    #[cfg(not(loom))]
    round: u32,
}

impl Backoff {
    /// After words that changed while they were read.
    #[cold]
    pub(crate) fn wait(&mut self) {
        self.spin(1);
    }

    /// After another thread got the right to write.
    #[cold]
    pub(crate) fn wait_for_winner(&mut self) {
        self.spin(LOST_SPINS);
    }

    #[cfg(not(loom))]
    fn spin(&mut self, spins: u32) {
        #[cfg(test)]
        crate::stress::LOST.fetch_add(1, Ordering::Relaxed);
        if self.round < ROUNDS_MAX {
            for _ in 0..spins << self.round {
                core::hint::spin_loop();
            }
            self.round += 1;
        } else {
            std::thread::yield_now();
        }
    }

    #[cfg(loom)]
    fn spin(&mut self, _: u32) {
        loom::thread::yield_now();
    }
}
