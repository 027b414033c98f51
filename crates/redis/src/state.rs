//! How a store is doing, in numbers.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::{Complaint, FailureKind};

/// How a store is doing now, and what has happened since it was made.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreState {
    /// Is it asked at present? In a cluster: is any of its nodes?
    pub is_up: bool,
    /// Servers that it asks: one, or the primaries of a cluster as far as they are known.
    pub nodes: usize,
    /// Those of them that are asked at present.
    pub nodes_up: usize,
    /// Decisions that wait for a call.
    pub waiting: usize,
    /// Decisions whose call is under way.
    pub in_flight: usize,
    /// Decisions that were answered.
    pub answered: u64,
    /// Attempts to connect, but for the first of each server.
    pub reconnects: u64,
    /// What is wrong with the configuration, as far as is known.
    pub complaint: Option<Complaint>,
    failures: [u64; FailureKind::ALL.len()],
}

impl StoreState {
    /// Decisions that failed, of each kind.
    pub fn failures(&self) -> impl Iterator<Item = (FailureKind, u64)> + '_ {
        FailureKind::ALL.into_iter().zip(self.failures)
    }
}

/// What is counted while a store works.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    answered: AtomicU64,
    reconnects: AtomicU64,
    in_flight: AtomicUsize,
    failures: [AtomicU64; FailureKind::ALL.len()],
}

/// Decisions under way, until it is dropped.
pub(crate) struct InFlight<'a> {
    counts: &'a Counts,
    decisions: usize,
}

/// What the links know of themselves.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Nodes {
    pub(crate) all: usize,
    pub(crate) up: usize,
    pub(crate) waiting: usize,
}

impl Counts {
    pub(crate) fn answered(&self) {
        self.answered.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn failed(&self, kind: FailureKind) {
        if let Some(place) = FailureKind::ALL.iter().position(|one| *one == kind) {
            self.failures[place].fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn reconnected(&self) {
        self.reconnects.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn in_flight(&self, decisions: usize) -> InFlight<'_> {
        self.in_flight.fetch_add(decisions, Ordering::Relaxed);
        InFlight { counts: self, decisions }
    }

    pub(crate) fn state(&self, nodes: Nodes, complaint: Option<Complaint>) -> StoreState {
        StoreState {
            is_up: nodes.up > 0,
            nodes: nodes.all,
            nodes_up: nodes.up,
            waiting: nodes.waiting,
            in_flight: self.in_flight.load(Ordering::Relaxed),
            answered: self.answered.load(Ordering::Relaxed),
            reconnects: self.reconnects.load(Ordering::Relaxed),
            complaint,
            failures: std::array::from_fn(|place| self.failures[place].load(Ordering::Relaxed)),
        }
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.counts.in_flight.fetch_sub(self.decisions, Ordering::Relaxed);
    }
}
