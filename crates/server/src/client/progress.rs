//! How far a connection has come with its present request.
//!
//! The socket, the service and the watchdog of one connection look at the same connection from three sides, on one
//! thread; relaxed atomics are plain memory there, and let the parts move between threads if a runtime wants that.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering::Relaxed};

/// What a connection is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// A request has begun and its header section is not complete. A new connection starts here.
    Head,
    /// A request is being answered.
    Busy,
    /// Nothing has come since the last answer.
    Idle,
    /// HTTP has ended here; what passes now is between the client and whoever answered. It stays like this.
    Upgraded,
}

/// What is known of one connection.
#[derive(Debug)]
pub(crate) struct Progress {
    phase: AtomicU8,
    /// Requests so far, wrapping around.
    requests: AtomicU32,
    /// Requests being answered.
    in_flight: AtomicU32,
    /// Several requests can be in flight, and what comes between them is not always the next one.
    is_multiplexed: AtomicBool,
    /// The present request announced a body.
    has_body: AtomicBool,
    /// The client takes nothing of what is sent to it.
    is_stalled: AtomicBool,
    /// HTTP ends here for now, and the socket stays.
    is_resting: AtomicBool,
}

impl Progress {
    pub(crate) fn new() -> Self {
        Self {
            phase: AtomicU8::new(Phase::Head as u8),
            requests: AtomicU32::new(0),
            in_flight: AtomicU32::new(0),
            is_multiplexed: AtomicBool::new(false),
            has_body: AtomicBool::new(false),
            is_stalled: AtomicBool::new(false),
            is_resting: AtomicBool::new(false),
        }
    }

    pub(crate) fn phase(&self) -> Phase {
        match self.phase.load(Relaxed) {
            phase if phase == Phase::Head as u8 => Phase::Head,
            phase if phase == Phase::Busy as u8 => Phase::Busy,
            phase if phase == Phase::Upgraded as u8 => Phase::Upgraded,
            _ => Phase::Idle,
        }
    }

    /// How many requests came so far; tells one wait for a request from another.
    pub(crate) fn requests(&self) -> u32 {
        self.requests.load(Relaxed)
    }

    /// Something was read from the socket.
    pub(crate) fn bytes_came(&self) {
        if self.phase() == Phase::Idle && !self.is_multiplexed() {
            self.phase.store(Phase::Head as u8, Relaxed);
        }
    }

    /// The connection carries many requests at once. One that carries none is idle, whatever else comes.
    pub(crate) fn multiplexes(&self) {
        self.is_multiplexed.store(true, Relaxed);
        self.phase.store(Phase::Idle as u8, Relaxed);
    }

    /// The client takes nothing of what is sent to it, or does so again.
    pub(crate) fn stalls(&self, is_stalled: bool) {
        self.is_stalled.store(is_stalled, Relaxed);
    }

    /// HTTP is to end while the socket stays; false, and nothing changes, if something is under way.
    pub(crate) fn begin_rest(&self) -> bool {
        let may_rest = self.phase() == Phase::Idle && !self.is_multiplexed() && !self.is_stalled.load(Relaxed);
        self.is_resting.store(may_rest, Relaxed);
        may_rest
    }

    /// From here on HTTP ends with the socket.
    pub(crate) fn end_rest(&self) {
        self.is_resting.store(false, Relaxed);
    }

    pub(crate) fn is_resting(&self) -> bool {
        self.is_resting.load(Relaxed)
    }

    pub(crate) fn is_multiplexed(&self) -> bool {
        self.is_multiplexed.load(Relaxed)
    }

    /// A request is complete up to its body. It is in flight until what is returned is dropped.
    pub(crate) fn request_came(self: &Arc<Self>, has_body: bool) -> Flight {
        self.phase.store(Phase::Busy as u8, Relaxed);
        self.requests.store(self.requests().wrapping_add(1), Relaxed);
        self.in_flight.fetch_add(1, Relaxed);
        self.has_body.store(has_body, Relaxed);
        Flight(Arc::clone(self))
    }

    /// May the client have sent what nobody has read? Part of a body, or what follows a head that was refused.
    pub(crate) fn left_something_unread(&self) -> bool {
        match self.phase() {
            // What is left of a connection with many streams is not known here.
            _ if self.is_multiplexed() => true,
            Phase::Head => true,
            Phase::Busy | Phase::Idle => self.has_body.load(Relaxed),
            Phase::Upgraded => false,
        }
    }
}

/// A request in flight: from its head to the end of the answer.
#[derive(Debug)]
pub(crate) struct Flight(Arc<Progress>);

impl Flight {
    /// The answer switches the connection to another protocol.
    pub(crate) fn upgrades(&self) {
        self.0.phase.store(Phase::Upgraded as u8, Relaxed);
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        let is_last = self.0.in_flight.fetch_sub(1, Relaxed) == 1;
        if is_last && self.0.phase() != Phase::Upgraded {
            self.0.phase.store(Phase::Idle as u8, Relaxed);
        }
    }
}
