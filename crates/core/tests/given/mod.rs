//! What the laws are tried on: quotas over the whole range, and runs of requests that stay near the edges.
//!
//! Times and costs are drawn relative to the quota (a token's time, the time to fill, a window's edge, each a
//! nanosecond to either side), since that is where an inexact limiter fails.

use proptest::prelude::*;
use tidegate_core::{Algorithm, BURST_MAX, COUNT_MAX, LOG_MAX, PERIOD_MAX};

use crate::oracle::Rules;

const SECOND_NS: u64 = 1_000_000_000;
const YEAR_NS: u64 = 365 * 86_400 * SECOND_NS;

/// Counts and periods that are known to hurt.
const RATES: [(u64, u64); 14] = [
    (1, YEAR_NS),
    (7, YEAR_NS),
    (4_294_967_291, YEAR_NS),
    (1, 86_400 * SECOND_NS),
    (59, 60 * SECOND_NS),
    (60, 60 * SECOND_NS),
    (3, 20 * 60 * SECOND_NS),
    (7, SECOND_NS),
    (999_999_937, SECOND_NS),
    (1_000_000_000, SECOND_NS),
    (10, SECOND_NS),
    (2, 3_000),
    (1, 1),
    (1, SECOND_NS),
];

/// A number whose size, not value, is uniform: 1 to `max`.
fn any_size(max: u64) -> impl Strategy<Value = u64> {
    (0..=max.ilog2(), any::<u64>()).prop_map(move |(bits, noise)| ((1 << bits) | (noise & ((1 << bits) - 1))).min(max))
}

fn any_rate() -> impl Strategy<Value = (u64, u64)> {
    let period_ns_max = u64::try_from(PERIOD_MAX.as_nanos()).expect("a year of nanoseconds fits");
    let drawn =
        any_size(period_ns_max).prop_flat_map(|period_ns| (any_size(period_ns.min(COUNT_MAX)), Just(period_ns)));
    prop_oneof![proptest::sample::select(&RATES[..]), drawn]
}

fn any_token_bucket() -> impl Strategy<Value = Rules> {
    (any_rate(), prop_oneof![Just(0), 1..=20u64, any_size(BURST_MAX), Just(BURST_MAX)]).prop_map(
        |((count, period_ns), burst)| {
            let burst = if burst == 0 { count.min(BURST_MAX) } else { burst };
            Rules { count, period_ns, burst, algorithm: Algorithm::TokenBucket }
        },
    )
}

fn any_fixed_window() -> impl Strategy<Value = Rules> {
    any_rate().prop_map(|(count, period_ns)| Rules {
        count,
        period_ns,
        burst: count,
        algorithm: Algorithm::FixedWindow,
    })
}

fn any_sliding_counter() -> impl Strategy<Value = Rules> {
    any_rate().prop_map(|(count, period_ns)| {
        let period_ns = period_ns.max(3);
        // Two counts have to fit a period.
        let count = count.min((period_ns - 1) / 2);
        Rules { count, period_ns, burst: count, algorithm: Algorithm::SlidingCounter }
    })
}

fn any_sliding_log() -> impl Strategy<Value = Rules> {
    (any_rate(), prop_oneof![4 => 1..=9u64, 1 => any_size(LOG_MAX)]).prop_map(|((_, period_ns), count)| {
        let count = count.min(period_ns);
        Rules { count, period_ns, burst: count, algorithm: Algorithm::SlidingLog }
    })
}

/// The algorithms whose state is two numbers.
const OF_TWO_NUMBERS: [Algorithm; 3] = [Algorithm::TokenBucket, Algorithm::FixedWindow, Algorithm::SlidingCounter];

/// Any quota of that algorithm, over the whole range.
pub(crate) fn any_rules_of(algorithm: Algorithm) -> BoxedStrategy<Rules> {
    match algorithm {
        Algorithm::TokenBucket => any_token_bucket().boxed(),
        Algorithm::FixedWindow => any_fixed_window().boxed(),
        Algorithm::SlidingCounter => any_sliding_counter().boxed(),
        Algorithm::SlidingLog => any_sliding_log().boxed(),
    }
}

/// Any quota of a bucket whose state is two numbers; now and then one that blocks.
pub(crate) fn any_rules() -> impl Strategy<Value = Rules> {
    let blocks = any_rate().prop_map(|(_, period_ns)| Rules {
        count: 0,
        period_ns,
        burst: 0,
        algorithm: Algorithm::TokenBucket,
    });
    prop_oneof![12 => any_token_bucket(), 6 => any_fixed_window(), 9 => any_sliding_counter(), 1 => blocks]
}

/// Two quotas of one algorithm: before and after a reload.
pub(crate) fn any_change() -> impl Strategy<Value = (Rules, Rules)> {
    proptest::sample::select(&OF_TWO_NUMBERS[..])
        .prop_flat_map(|algorithm| (any_rules_of(algorithm), any_rules_of(algorithm)))
}

/// A cost, before it is known what the burst is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CostDraw {
    One,
    Burst,
    AboveBurst,
    Share(u64),
    Any(u64),
}

impl CostDraw {
    /// The cost in tokens.
    pub(crate) fn tokens(self, rules: &Rules) -> u64 {
        match self {
            Self::One => 1,
            Self::Burst => rules.burst,
            Self::AboveBurst => rules.burst + 1,
            Self::Share(n) => n % (rules.burst + 1),
            Self::Any(n) => n,
        }
    }
}

/// Any cost: mostly such as can pass.
pub(crate) fn any_cost() -> impl Strategy<Value = CostDraw> {
    prop_oneof![
        6 => Just(CostDraw::One),
        3 => Just(CostDraw::Burst),
        1 => Just(CostDraw::AboveBurst),
        5 => any::<u64>().prop_map(CostDraw::Share),
        1 => any::<u64>().prop_map(CostDraw::Any),
        1 => Just(CostDraw::Any(0)),
    ]
}

/// A span of time, before it is known what the quota is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Gap {
    None,
    Nanosecond,
    /// The time of so many tokens, give or take a nanosecond.
    Tokens(u64, i8),
    /// The time to fill, give or take a nanosecond.
    Fill(i8),
    /// To the next edge of a window, give or take a nanosecond.
    Edge(i8),
    /// So many parts in 65,536 of the time to fill.
    Part(u16),
    Any(u64),
}

impl Gap {
    /// The instant that far behind `from_ns`, at most the last one.
    pub(crate) fn after(self, from_ns: u64, rules: &Rules) -> u64 {
        from_ns.saturating_add(self.span_ns(from_ns, rules))
    }

    /// The instant that far before `from_ns`, at least the first one.
    pub(crate) fn before(self, from_ns: u64, rules: &Rules) -> u64 {
        from_ns.saturating_sub(self.span_ns(from_ns, rules))
    }

    fn span_ns(self, from_ns: u64, rules: &Rules) -> u64 {
        let token_ns = |n: u64| u128::from(rules.period_ns) * u128::from(n) / u128::from(rules.count.max(1));
        let fill_ns = token_ns(rules.burst);
        match self {
            Self::None => 0,
            Self::Nanosecond => 1,
            Self::Tokens(n, nudge) => nudged(token_ns(n), nudge),
            Self::Fill(nudge) => nudged(fill_ns, nudge),
            Self::Edge(nudge) => nudged(u128::from(rules.period_ns - from_ns % rules.period_ns), nudge),
            Self::Part(part) => nudged(fill_ns * u128::from(part) / 65_536, 0),
            Self::Any(ns) => ns,
        }
    }
}

fn nudged(ns: u128, nudge: i8) -> u64 {
    u64::try_from(ns).unwrap_or(u64::MAX / 2).saturating_add_signed(nudge.into())
}

/// Any span: mostly within the time that matters to the quota.
pub(crate) fn any_gap() -> impl Strategy<Value = Gap> {
    prop_oneof![
        3 => Just(Gap::None),
        1 => Just(Gap::Nanosecond),
        4 => (0..4u64, -1..=1i8).prop_map(|(n, nudge)| Gap::Tokens(n, nudge)),
        2 => (-1..=1i8).prop_map(Gap::Fill),
        3 => (-1..=1i8).prop_map(Gap::Edge),
        5 => any::<u16>().prop_map(Gap::Part),
        1 => any_size(1 << 62).prop_map(Gap::Any),
    ]
}

/// An instant to begin at: the epoch, the end of time, today, or anywhere.
pub(crate) fn any_start() -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(0),
        0..3u64,
        Just(1_771_404_500 * SECOND_NS),
        any::<u64>(),
        any_size(1 << 50).prop_map(|ns| u64::MAX - ns),
    ]
}

/// A run of requests: the time before each, and its cost.
pub(crate) fn any_run(length_max: usize) -> impl Strategy<Value = Vec<(Gap, CostDraw)>> {
    proptest::collection::vec((any_gap(), any_cost()), 1..=length_max)
}
