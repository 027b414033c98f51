//! Some of the policies, as one bit for each. Lives on the stack.

/// The most policies of one configuration.
pub const POLICIES_MAX: usize = 1024;
const WORDS: usize = POLICIES_MAX / 64;

/// Some of at most [`POLICIES_MAX`] policies, by their places.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PolicySet([u64; WORDS]);

impl PolicySet {
    /// Those of `count` policies that have a property.
    pub(crate) fn of(count: usize, has: impl Fn(usize) -> bool) -> Self {
        (0..count).filter(|place| has(*place)).fold(Self::default(), |set, place| set.with(place))
    }

    /// The same, and the policy at `place`, which is below [`POLICIES_MAX`].
    pub(crate) fn with(mut self, place: usize) -> Self {
        self.0[place / 64] |= 1 << (place % 64);
        self
    }

    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub(crate) fn has(&self, place: usize) -> bool {
        self.0[place / 64] & (1 << (place % 64)) != 0
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(word, other)| *word |= other);
    }

    pub(crate) fn keep(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(word, other)| *word &= other);
    }

    pub(crate) fn remove(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(word, other)| *word &= !other);
    }

    /// The first place that both have.
    pub(crate) fn first_common(&self, other: &Self) -> Option<usize> {
        let common = self.0.iter().zip(other.0).map(|(word, other)| word & other).enumerate();
        common.into_iter().find(|(_, word)| *word != 0).map(|(i, word)| i * 64 + word.trailing_zeros() as usize)
    }

    /// Forgets every place behind this one.
    pub(crate) fn end_at(&mut self, place: usize) {
        self.0[place / 64] &= u64::MAX >> (63 - place % 64);
        self.0[place / 64 + 1..].fill(0);
    }

    /// The places, in order.
    pub(crate) fn iter(self) -> Places {
        Places { left: self.0, at: 0 }
    }
}

/// The places of a set, in order.
pub(crate) struct Places {
    left: [u64; WORDS],
    at: usize,
}

impl Iterator for Places {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        while let Some(word) = self.left.get_mut(self.at) {
            if *word != 0 {
                let place = self.at * 64 + word.trailing_zeros() as usize;
                *word &= *word - 1;
                return Some(place);
            }
            self.at += 1;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_is_what_was_put_in() {
        let some = PolicySet::of(POLICIES_MAX, |place| place % 63 == 0);
        let places: Vec<_> = (0..POLICIES_MAX).filter(|place| place % 63 == 0).collect();
        assert_eq!(some.iter().collect::<Vec<_>>(), places);
        assert!(some.has(0) && some.has(63) && !some.has(64));
        let mut early = some;
        early.end_at(126);
        assert_eq!(early.iter().collect::<Vec<_>>(), [0, 63, 126]);
        early.end_at(125);
        assert_eq!(early.iter().collect::<Vec<_>>(), [0, 63]);
        early.remove(&PolicySet::default().with(0));
        assert_eq!(early.iter().collect::<Vec<_>>(), [63]);
        assert_eq!(some.first_common(&early), Some(63));
        early.keep(&PolicySet::default());
        assert!(early.is_empty() && early.first_common(&some).is_none());
    }
}
