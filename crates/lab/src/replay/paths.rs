//! The paths that are asked for most, within bounds.
//!
//! A log can have as many paths as requests. So only so many are kept; when they have become twice as many, the half
//! that was seen least is forgotten. What is asked for often survives that; the count of a rare one can be too low.

use std::hash::BuildHasher as _;

use foldhash::fast::RandomState;
use hashbrown::HashTable;

/// The most paths that are kept.
const PATHS_MAX: usize = 8192;
/// The most bytes of a path that tell it from others.
const PATH_BYTES_MAX: usize = 256;

/// The paths so far.
#[derive(Debug, Default)]
pub(crate) struct Paths {
    kept: Vec<Path>,
    table: HashTable<u16>,
    state: RandomState,
    free: Vec<u16>,
    /// Were paths forgotten?
    pub(crate) is_partial: bool,
}

/// A path, and what became of requests for it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Path {
    pub(crate) text: Vec<u8>,
    seen: u64,
    /// Tells a path from those that had its place before.
    generation: u16,
    pub(crate) requests: u64,
    pub(crate) denied: u64,
}

/// The place of a path, and whose turn there it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PathNumber {
    place: u16,
    generation: u16,
}

impl Paths {
    /// The number of a path.
    #[inline]
    pub(crate) fn number(&mut self, path: &[u8]) -> PathNumber {
        let path = if path.is_empty() { b"-" } else { &path[..path.len().min(PATH_BYTES_MAX)] };
        let hash = self.state.hash_one(path);
        let Self { kept, table, .. } = self;
        let found = table.find(hash, |place| kept[usize::from(*place)].text == path);
        let place = match found {
            Some(place) => *place,
            None => self.keep(path, hash),
        };
        let kept = &mut self.kept[usize::from(place)];
        kept.seen += 1;
        PathNumber { place, generation: kept.generation }
    }

    fn keep(&mut self, path: &[u8], hash: u64) -> u16 {
        if self.free.is_empty() && self.kept.len() == PATHS_MAX {
            self.forget();
        }
        let place = self.free.pop().unwrap_or_else(|| {
            self.kept.push(Path::default());
            // Below `PATHS_MAX`.
            self.kept.len() as u16 - 1
        });
        let kept = &mut self.kept[usize::from(place)];
        *kept = Path { text: path.to_vec(), generation: kept.generation.wrapping_add(1), ..Path::default() };
        let Self { kept, table, state, .. } = self;
        table.insert_unique(hash, place, |place| state.hash_one(kept[usize::from(*place)].text.as_slice()));
        place
    }

    /// Forgets the half that was seen least.
    fn forget(&mut self) {
        self.is_partial = true;
        let mut order: Vec<u16> = (0..self.kept.len() as u16).collect();
        order.sort_by_key(|place| self.kept[usize::from(*place)].seen);
        order.truncate(PATHS_MAX / 2);
        for place in &order {
            self.kept[usize::from(*place)].text.clear();
        }
        let Self { kept, table, .. } = self;
        table.retain(|place| !kept[usize::from(*place)].text.is_empty());
        self.free = order;
    }

    /// Counts a request.
    #[inline]
    pub(crate) fn count(&mut self, number: PathNumber, is_denied: bool) {
        let path = &mut self.kept[usize::from(number.place)];
        if path.generation == number.generation {
            path.requests += 1;
            path.denied += u64::from(is_denied);
        }
    }

    /// Those that were asked for.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Path> {
        self.kept.iter().filter(|path| path.requests > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_often_is_kept_within_the_bound() {
        let mut paths = Paths::default();
        for i in 0..100_000 {
            for path in ["/often", &format!("/{i}")] {
                let number = paths.number(path.as_bytes());
                paths.count(number, i % 2 == 0);
            }
        }
        assert!(paths.is_partial && paths.kept.len() <= PATHS_MAX);
        let often = paths.iter().find(|path| path.text == b"/often").unwrap();
        assert_eq!((often.requests, often.denied), (100_000, 50_000));
    }

    #[test]
    fn an_empty_path_is_a_path() {
        let mut paths = Paths::default();
        let (a, b) = (paths.number(b""), paths.number(b""));
        assert_eq!((a.place, a.generation), (b.place, b.generation));
    }
}
