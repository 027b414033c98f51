//! The locks of several groups, taken in the order of their groups, so that nobody waits for each other in a circle.

use tidegate_core::CHARGES_MAX;

use crate::groups::Group;
use crate::head::Lock;
use crate::seats::Ask;
use crate::table::Table;

/// The locks of one round, in the order of their groups.
pub(crate) struct Locks<'a, const N: usize> {
    groups: [usize; N],
    locks: [Option<Lock<'a>>; N],
    length: usize,
}

impl<'a, const N: usize> Locks<'a, N> {
    pub(crate) fn take(table: &'a Table, asks: &[Ask], probing: &[bool; CHARGES_MAX]) -> Self {
        let mut taken = Self { groups: [0; N], locks: [const { None }; N], length: 0 };
        for group in asks.iter().zip(probing).flat_map(|(ask, probing)| table.chain(ask.home, *probing)) {
            taken.insert(group);
        }
        for (lock, group) in taken.locks.iter_mut().zip(&taken.groups[..taken.length]) {
            *lock = Some(Group::head(table.groups.group(*group)).lock());
        }
        taken
    }

    /// Adds a group to the sorted list, once.
    fn insert(&mut self, group: usize) {
        if let Err(at) = self.groups[..self.length].binary_search(&group) {
            self.groups.copy_within(at..self.length, at + 1);
            self.groups[at] = group;
            self.length += 1;
        }
    }

    /// The lock of a group, if it was taken.
    pub(crate) fn of(&mut self, group: usize) -> Option<&mut Lock<'a>> {
        let at = self.groups[..self.length].binary_search(&group).ok()?;
        self.locks[at].as_mut()
    }
}
