//! Sliding logs, which need more room than a slot has: beside the table, by the same fingerprints.
//!
//! A log's ring is taken when its key first passes, grows by doubling up to the limit's count, and is let go when all of
//! it has left and somebody needs the room. All rings together stay within a stated number of bytes. Logs are spread
//! over shards, each behind a lock that is held for one decision; a decision over several takes the locks in order.
//!
//! At the bound a limit displaces the logs that end first, or denies until enough of them have ended. There is no pool
//! of logs: a limit that pools newcomers denies them here.
//!
//! A thread that read the clock before a log was let go must not find its key fresh at its old time: each shard knows
//! until when it has forgotten, and nothing is decided in it at an earlier time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::PoisonError;

use tidegate_core::{AtBound, Cost, Held, Log, LogEntry, LogPlace, LogView, Quota, State, Time};

use crate::fingerprint::Fingerprint;
use crate::sync::{Mutex, MutexGuard};

/// The memory for logs unless told otherwise: 64 MiB, which is 3,300 logs of 1,000 requests each.
pub const LOG_BYTES_DEFAULT: usize = 64 << 20;
/// The least of it: room for the largest log in each shard.
pub const LOG_BYTES_MIN: usize = SHARD_BYTES_MIN;

const SHARDS_MAX: usize = if cfg!(loom) { 1 } else { 64 };
/// More than the largest ring takes.
const SHARD_BYTES_MIN: usize = 256 << 10;
/// Entries in a ring at first.
const RING_FIRST: usize = 4;
/// What a log takes beside its ring: its place in the maps, and what the allocator keeps of it.
const LOG_BYTES: usize = 256;

pub(crate) struct Logs {
    shards: Box<[Mutex<Shard>]>,
    shard_bytes: usize,
}

impl Logs {
    pub(crate) fn new(bytes: usize) -> Self {
        let count = (bytes / SHARD_BYTES_MIN).clamp(1, SHARDS_MAX);
        let shard_bytes = (bytes / count).max(SHARD_BYTES_MIN);
        Self { shards: (0..count).map(|_| Mutex::new(Shard::default())).collect(), shard_bytes }
    }

    /// The most that all logs take.
    pub(crate) fn bytes(&self) -> usize {
        self.shards.len() * self.shard_bytes
    }

    pub(crate) fn shard_of(&self, fingerprint: Fingerprint) -> usize {
        fingerprint.scaled_to(self.shards.len())
    }

    /// The shard of this number, as soon as nobody else has it. Taken after the locks of groups and pools.
    pub(crate) fn lock(&self, shard: usize) -> ShardLock<'_> {
        let shard = self.shards[shard].lock().unwrap_or_else(PoisonError::into_inner);
        ShardLock { shard, bytes_max: self.shard_bytes }
    }

    pub(crate) fn shard_count(&self) -> usize {
        self.shards.len()
    }

    /// Logs of which something counts at `now`.
    pub(crate) fn live_at(&self, now: Time) -> usize {
        let from = (Time::from_nanos(now.as_nanos().saturating_add(1)), 0);
        (0..self.shards.len()).map(|shard| self.lock(shard).shard.ends.range(from..).count()).sum()
    }
}

#[derive(Default)]
struct Shard {
    logs: BTreeMap<u64, Kept>,
    /// When each log ends, the first of them first.
    ends: BTreeSet<(Time, u64)>,
    bytes: usize,
    /// Until when something was forgotten.
    forgotten: Time,
}

struct Kept {
    quota_number: u32,
    ring: Box<[LogEntry]>,
    place: LogPlace,
    end: Time,
}

impl Kept {
    fn log(&mut self) -> Log<'_> {
        Log::new(&mut self.ring, &mut self.place)
    }
}

/// The right to work on the logs of one shard.
pub(crate) struct ShardLock<'a> {
    shard: MutexGuard<'a, Shard>,
    bytes_max: usize,
}

/// Under which quota a log is worked on.
#[derive(Clone, Copy)]
pub(crate) struct Under<'a> {
    pub(crate) number: u32,
    pub(crate) quota: &'a Quota,
}

impl ShardLock<'_> {
    /// The earliest time at which something can be decided here.
    pub(crate) fn start(&self, now: Time) -> Time {
        now.max(self.shard.forgotten)
    }

    /// What a decision on `cost` needs to know of the log of a key.
    pub(crate) fn view(&mut self, key: Fingerprint, quota: &Quota, cost: Cost, now: Time) -> LogView {
        match self.shard.logs.get_mut(&key.as_u64()) {
            Some(kept) => kept.log().view(quota, cost, now),
            None => LogView::empty(now),
        }
    }

    /// The quota's number that the log of a key was written under, and its newest entry's instant.
    pub(crate) fn written(&mut self, key: Fingerprint) -> Option<u32> {
        self.shard.logs.get(&key.as_u64()).map(|kept| kept.quota_number)
    }

    /// Takes a log over to another quota, as of `changed`. If `old` is of another algorithm, it starts fresh.
    pub(crate) fn carry_over(&mut self, key: Fingerprint, old: &Quota, under: Under<'_>, changed: Time) {
        self.change(key, under, |log| log.carry_over(old, under.quota, changed));
    }

    /// Bytes that the log of a key lacks for one more entry at `now`.
    pub(crate) fn lacks(&mut self, key: Fingerprint, quota: &Quota, now: Time) -> usize {
        let Some(kept) = self.shard.logs.get_mut(&key.as_u64()) else {
            return LOG_BYTES + ring_bytes(first_ring(quota));
        };
        if kept.log().has_room(quota, now) {
            return 0;
        }
        ring_bytes(grown_ring(kept.ring.len(), quota)) - ring_bytes(kept.ring.len())
    }

    /// Can so many bytes be had? If not, for how long not. A limit that displaces can have those of all logs but `busy`.
    pub(crate) fn room(&self, bytes: usize, at_bound: AtBound, busy: &[u64], now: Time) -> Result<(), Held> {
        let free = self.bytes_max.saturating_sub(self.shard.bytes);
        if bytes <= free {
            return Ok(());
        }
        let displaces = at_bound == AtBound::Displace;
        let mut free = if displaces { self.bytes_max.saturating_sub(self.bytes_of_all(busy)) } else { free };
        if bytes <= free {
            return Ok(());
        }
        let mut wait_until = Time::MAX;
        for (end, key) in self.shard.ends.iter().filter(|(_, key)| !displaces || busy.contains(key)) {
            free = free.saturating_add(self.bytes_of(*key));
            if bytes <= free {
                wait_until = *end;
                break;
            }
        }
        if wait_until <= now { Ok(()) } else { Err(Held(wait_until.since(now))) }
    }

    fn bytes_of(&self, key: u64) -> usize {
        self.shard.logs.get(&key).map_or(0, |kept| LOG_BYTES + ring_bytes(kept.ring.len()))
    }

    /// The same of several keys, each counted once.
    fn bytes_of_all(&self, keys: &[u64]) -> usize {
        let distinct = keys.iter().enumerate().filter(|(i, key)| !keys[..*i].contains(key));
        distinct.map(|(_, key)| self.bytes_of(*key)).sum()
    }

    /// Remembers that `cost` passed at `now`. Says how many logs were displaced for it. `busy` are not.
    pub(crate) fn charge(&mut self, key: Fingerprint, under: Under<'_>, cost: Cost, now: Time, busy: &[u64]) -> usize {
        let displaced = self.make_room(key, under, now, busy);
        self.change(key, under, |log| log.charge(under.quota, cost, now));
        displaced
    }

    /// Owes `tokens` more.
    pub(crate) fn owe(&mut self, key: Fingerprint, under: Under<'_>, tokens: u64, now: Time) -> usize {
        let displaced = self.make_room(key, under, now, &[key.as_u64()]);
        self.change(key, under, |log| log.owe(under.quota, tokens, now));
        displaced
    }

    /// Changes the log of a key, if it has one, without need of room.
    pub(crate) fn change(&mut self, key: Fingerprint, under: Under<'_>, change: impl FnOnce(&mut Log<'_>)) {
        let Some(kept) = self.shard.logs.get_mut(&key.as_u64()) else { return };
        change(&mut kept.log());
        let before = kept.end;
        kept.quota_number = under.number;
        kept.end = kept.log().full_at(under.quota);
        let after = kept.end;
        self.shard.ends.remove(&(before, key.as_u64()));
        self.shard.ends.insert((after, key.as_u64()));
    }

    /// All logs: key, number of the quota, and the log.
    pub(crate) fn all(&mut self) -> impl Iterator<Item = (u64, u32, Log<'_>)> {
        self.shard.logs.iter_mut().map(|(key, kept)| (*key, kept.quota_number, kept.log()))
    }

    /// Forgets the log of a key.
    pub(crate) fn reset(&mut self, key: Fingerprint) {
        self.forget(key.as_u64());
    }

    /// The log of a key as one number and an instant, the number of its quota, and when it ends.
    pub(crate) fn inspect(&mut self, key: Fingerprint, quota: &Quota, now: Time) -> Option<(State, Time)> {
        let kept = self.shard.logs.get_mut(&key.as_u64()).filter(|kept| kept.end > now)?;
        let view = kept.log().view(quota, Cost::ZERO, now);
        Some((State::from_parts(view.used, view.newest), kept.end))
    }

    /// Sees to it that the log of a key is there and has room for one more entry.
    fn make_room(&mut self, key: Fingerprint, under: Under<'_>, now: Time, busy: &[u64]) -> usize {
        let bytes = self.lacks(key, under.quota, now);
        if bytes == 0 {
            return 0;
        }
        let displaced = self.clear(bytes, now, busy);
        self.shard.bytes += bytes;
        match self.shard.logs.get_mut(&key.as_u64()) {
            Some(kept) => {
                let mut ring = vec![LogEntry::default(); grown_ring(kept.ring.len(), under.quota)].into_boxed_slice();
                kept.place = kept.log().copy_to(&mut ring);
                kept.ring = ring;
            }
            None => {
                let ring = vec![LogEntry::default(); first_ring(under.quota)].into_boxed_slice();
                let kept = Kept { quota_number: under.number, ring, place: LogPlace::default(), end: Time::ZERO };
                self.shard.logs.insert(key.as_u64(), kept);
            }
        }
        displaced
    }

    /// Lets go of logs until there are so many free bytes: those that end first, but none that is `busy`.
    fn clear(&mut self, bytes: usize, now: Time, busy: &[u64]) -> usize {
        let mut displaced = 0;
        while self.shard.bytes + bytes > self.bytes_max {
            let first = self.shard.ends.iter().find(|(_, key)| !busy.contains(key)).copied();
            let Some((end, key)) = first else { break };
            displaced += usize::from(end > now);
            self.shard.forgotten = self.shard.forgotten.max(now);
            self.forget(key);
        }
        displaced
    }

    fn forget(&mut self, key: u64) {
        if let Some(kept) = self.shard.logs.remove(&key) {
            self.shard.ends.remove(&(kept.end, key));
            self.shard.bytes -= LOG_BYTES + ring_bytes(kept.ring.len());
        }
    }
}

fn ring_bytes(entries: usize) -> usize {
    entries * size_of::<LogEntry>()
}

fn first_ring(quota: &Quota) -> usize {
    RING_FIRST.min(most_entries(quota))
}

fn grown_ring(entries: usize, quota: &Quota) -> usize {
    (2 * entries).min(most_entries(quota)).max(entries)
}

/// At most [`tidegate_core::LOG_MAX`], at least one.
fn most_entries(quota: &Quota) -> usize {
    usize::try_from(quota.burst()).unwrap_or(usize::MAX).max(1)
}
