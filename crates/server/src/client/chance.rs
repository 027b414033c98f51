//! Times by chance: what began together should not end together.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::time::Duration;

/// A span from `least` to `most`, another one each time.
pub(crate) fn spread(least: Duration, most: Duration) -> Duration {
    between(least, most, RandomState::new().hash_one(()))
}

fn between(least: Duration, most: Duration, chance: u64) -> Duration {
    let room_ns = u64::try_from(most.saturating_sub(least).as_nanos()).unwrap_or(u64::MAX);
    least + Duration::from_nanos(room_ns.checked_add(1).map_or(chance, |spans| chance % spans))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_spread_and_within_their_bounds() {
        let (least, most) = (Duration::from_secs(80), Duration::from_secs(100));
        assert_eq!(between(least, most, 0), least);
        assert_eq!(between(least, most, 20_000_000_000), most);
        assert_eq!(between(least, most, 20_000_000_001), least);
        assert_eq!(between(most, most, 7), most);
        let spans: Vec<_> = (0..100).map(|_| spread(least, most)).collect();
        assert!(spans.iter().all(|span| (least..=most).contains(span)));
        assert!(spans.iter().any(|span| *span != spans[0]));
    }
}
