//! Byte strings as small numbers: each is kept once, and its number takes four bytes wherever it is used.

use std::hash::BuildHasher as _;

use foldhash::quality::RandomState;
use hashbrown::HashTable;

/// The byte strings so far, by their numbers from 0.
#[derive(Debug, Default)]
pub(crate) struct Interner {
    bytes: Vec<u8>,
    /// Where each ends.
    ends: Vec<usize>,
    table: HashTable<u32>,
    state: RandomState,
}

impl Interner {
    /// The number of these bytes, and whether they are new.
    pub(crate) fn intern(&mut self, bytes: &[u8]) -> (u32, bool) {
        let Self { bytes: all, ends, table, state } = self;
        let found = table.find(hash(state, bytes), |number| of(all, ends, *number) == bytes);
        if let Some(number) = found {
            return (*number, false);
        }
        // Each takes a byte of memory at least, so there are fewer than 2^32.
        let number = ends.len() as u32;
        all.extend_from_slice(bytes);
        ends.push(all.len());
        table.insert_unique(hash(state, bytes), number, |number| hash(state, of(all, ends, *number)));
        (number, true)
    }

    /// The bytes of a number that was given.
    pub(crate) fn get(&self, number: u32) -> &[u8] {
        of(&self.bytes, &self.ends, number)
    }
}

fn of<'a>(all: &'a [u8], ends: &[usize], number: u32) -> &'a [u8] {
    let at = number as usize;
    &all[at.checked_sub(1).map_or(0, |before| ends[before])..ends[at]]
}

fn hash(state: &RandomState, bytes: &[u8]) -> u64 {
    state.hash_one(bytes)
}
