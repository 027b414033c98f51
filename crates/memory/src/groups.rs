//! The memory of the table: groups of five slots, two cache lines each, reserved once and never moved.
//!
//! ```text
//! word   0      1 .. 5           6, 7          8, 9   ...   14, 15
//!        head   fingerprints     slot 0        slot 1       slot 4
//! ```
//!
//! A slot's two words are `quota number << 34 | deficit` and the stamp. A fingerprint of zero is a slot that was never
//! used. The operating system hands out the memory as it is first touched, so an idle table costs next to nothing.

use tidegate_core::{State, Time};

use crate::head::{Flag, Head};
use crate::sync::{AtomicU64, Ordering};

/// Slots in a group.
pub(crate) const SLOTS: usize = 5;
const WORDS: usize = 16;
const HEAD: usize = 0;
const FINGERPRINTS: usize = 1;
const STATES: usize = FINGERPRINTS + SLOTS;
const DEFICIT_BITS: u32 = State::DEFICIT_END.trailing_zeros();

/// Raised in a head: keys whose home this is may sit elsewhere.
pub(crate) const KEYS_AWAY: Flag = Flag::FIRST;
/// Raised in a head: keys whose home this is may have been charged to a pool.
pub(crate) const KEYS_POOLED: Flag = Flag::SECOND;

pub(crate) struct Groups {
    words: Box<[AtomicU64]>,
    /// The first word that starts a pair of cache lines.
    first: usize,
    count: usize,
}

impl Groups {
    #[cfg(not(loom))]
    pub(crate) fn new(count: usize) -> Self {
        const GROUP_BYTES: usize = WORDS * size_of::<AtomicU64>();
        // One group more than asked for, so that the first one can start where a pair of cache lines does.
        let words: Box<[AtomicU64]> = bytemuck::zeroed_slice_box((count + 1) * WORDS);
        let misaligned = words.as_ptr().addr() % GROUP_BYTES;
        let first = (GROUP_BYTES - misaligned) % GROUP_BYTES / size_of::<AtomicU64>();
        Self { words, first, count }
    }

    #[cfg(loom)]
    pub(crate) fn new(count: usize) -> Self {
        Self { words: (0..count * WORDS).map(|_| AtomicU64::new(0)).collect(), first: 0, count }
    }

    pub(crate) fn count(&self) -> usize {
        self.count
    }

    pub(crate) fn bytes(&self) -> usize {
        self.words.len() * size_of::<u64>()
    }

    /// # Panics
    /// There are not so many groups.
    #[inline]
    pub(crate) fn group(&self, place: usize) -> Group<'_> {
        let (group, _) = self.words[self.first + place * WORDS..].split_first_chunk().expect("a group is whole");
        Group(group)
    }
}

/// One group, or what another thread left of it: everything read outside of its lock may be torn.
#[derive(Clone, Copy)]
pub(crate) struct Group<'a>(&'a [AtomicU64; WORDS]);

/// What a slot holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    pub(crate) fingerprint: u64,
    pub(crate) quota_number: u32,
    pub(crate) state: State,
}

impl<'a> Group<'a> {
    #[inline]
    pub(crate) fn head(self) -> Head<'a> {
        Head(&self.0[HEAD])
    }

    /// Asks for both cache lines, and waits for neither: what is returned only keeps the reads from being left out.
    #[inline]
    pub(crate) fn touch(self) -> u64 {
        self.word(HEAD) ^ self.word(WORDS - 1)
    }

    #[inline]
    pub(crate) fn position(self, fingerprint: u64) -> Option<usize> {
        // All five are compared and none is branched on: which one it is cannot be predicted.
        let equal = (0..SLOTS).fold(0, |bits, i| bits | u32::from(self.word(FINGERPRINTS + i) == fingerprint) << i);
        (equal != 0).then(|| equal.trailing_zeros() as usize)
    }

    #[inline]
    pub(crate) fn slot(self, i: usize) -> Slot {
        let packed = self.word(STATES + 2 * i);
        let deficit = packed & (State::DEFICIT_END - 1);
        Slot {
            fingerprint: self.word(FINGERPRINTS + i),
            // 30 bits.
            quota_number: (packed >> DEFICIT_BITS) as u32,
            state: State::from_parts(deficit, Time::from_nanos(self.word(STATES + 2 * i + 1))),
        }
    }

    /// Writes a slot. The group's lock must be held.
    #[inline]
    pub(crate) fn write(self, i: usize, slot: Slot) {
        debug_assert!(slot.state.deficit() < State::DEFICIT_END, "no decision leaves a larger deficit");
        let packed = u64::from(slot.quota_number) << DEFICIT_BITS | slot.state.deficit();
        self.0[FINGERPRINTS + i].store(slot.fingerprint, Ordering::Relaxed);
        self.0[STATES + 2 * i].store(packed, Ordering::Relaxed);
        self.0[STATES + 2 * i + 1].store(slot.state.stamp().as_nanos(), Ordering::Relaxed);
    }

    #[inline]
    fn word(self, i: usize) -> u64 {
        self.0[i].load(Ordering::Relaxed)
    }
}
