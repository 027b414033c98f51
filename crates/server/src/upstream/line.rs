//! What a request goes out on: a connection of its own for the time being, or a place on a shared one.

use crate::upstream::pool::Lease;
use crate::upstream::trunks::Channel;

/// A line to the upstream, held by one request until its answer has ended.
#[derive(Debug)]
pub(crate) enum Line {
    /// HTTP/1.1. Dropped, the connection is closed.
    Own(Lease),
    /// HTTP/2. Dropped, the place is free for the next request.
    Shared(Channel),
}

impl Line {
    /// For the next request, now that the answer has ended.
    pub(crate) fn give_back(self) {
        match self {
            Self::Own(lease) => lease.give_back(),
            Self::Shared(channel) => drop(channel),
        }
    }
}
