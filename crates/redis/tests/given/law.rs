//! Law 1, checked on admissions that happened: over any half-open window of length t at most burst + rate t pass.
//!
//! A window that holds the admissions i to j, and is as short as can be, is hardly longer than the time between them. So
//! the law is that `j - i + 1 <= burst + rate (s[j] - s[i])` for all i <= j, in whole numbers: with c tokens per p
//! nanoseconds, `(j p - c s[j]) - (i p - c s[i]) <= (burst - 1) p`. The left side is largest where the first term is seen
//! with the least of the second ones before it, so one pass over the admissions sees all windows.

use std::time::Duration;

use tidegate_core::Quota;

/// By how many tokens the worst window exceeds the law; 0 if none does. The instants are in nanoseconds, in order.
pub(crate) fn excess(quota: &Quota, stamps_ns: &[u64]) -> u64 {
    let (c, p) = (i128::from(quota.rate().count()), quota.rate().period().as_nanos() as i128);
    let mut least = i128::MAX;
    let mut worst = i128::MIN;
    for (i, stamp) in stamps_ns.iter().enumerate() {
        assert!(i == 0 || stamps_ns[i - 1] <= *stamp, "they are in order");
        let level = i as i128 * p - c * i128::from(*stamp);
        least = least.min(level);
        worst = worst.max(level - least);
    }
    let over = worst.max(0) - (i128::from(quota.burst()) - 1) * p;
    u64::try_from((over + p - 1).div_euclid(p).max(0)).unwrap()
}

/// The most that the law permits within a span.
pub(crate) fn permits(quota: &Quota, span: Duration) -> u64 {
    quota.most_within(span)
}

#[test]
fn one_too_many_is_seen_in_every_window() {
    let quota = super::quota("10/s burst 3");
    let ms = |stamps: &[u64]| stamps.iter().map(|ms| ms * 1_000_000).collect::<Vec<_>>();
    assert_eq!(excess(&quota, &[]), 0);
    assert_eq!(excess(&quota, &ms(&[0, 0, 0, 100, 200])), 0);
    assert_eq!(excess(&quota, &ms(&[0, 0, 0, 99, 200])), 1, "a millisecond early");
    assert_eq!(excess(&quota, &ms(&[0, 0, 0, 0, 0])), 2);
    assert_eq!(excess(&quota, &ms(&[0, 500, 500, 500, 500])), 1, "within the run");
    assert_eq!(excess(&quota, &ms(&[0, 500, 500, 500, 600, 700, 799])), 1, "at its end");
}
