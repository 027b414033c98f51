//! A rate as so many per whole seconds.

use tidegate::Quota;

const SECOND_NS: u128 = 1_000_000_000;
/// The largest Integer of structured fields (RFC 9651, section 3.3.1).
const INTEGER_MAX: u128 = 999_999_999_999_999;

/// So much per so many seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) count: u64,
    pub(crate) seconds: u64,
}

/// The quota's rate per the least whole number of seconds that is a multiple of its period: `10/100ms` is 100 per
/// second, `1/2300ms` is 10 per 23 seconds.
///
/// If that number does not fit a field, the period is rounded up to whole seconds, and the count down.
pub(crate) fn window(quota: &Quota) -> Window {
    let (count, period_ns) = (u128::from(quota.rate().count()), quota.rate().period().as_nanos());
    let periods = SECOND_NS / gcd(period_ns, SECOND_NS);
    let exact = (count * periods, period_ns * periods / SECOND_NS);
    let (count, seconds) = if exact.0 <= INTEGER_MAX && exact.1 <= INTEGER_MAX {
        exact
    } else {
        let seconds = period_ns.div_ceil(SECOND_NS);
        ((count * seconds * SECOND_NS / period_ns).min(INTEGER_MAX), seconds)
    };
    // Both are at most INTEGER_MAX.
    Window { count: count as u64, seconds: seconds as u64 }
}

fn gcd(a: u128, b: u128) -> u128 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tidegate::{Limit, Rate};

    use super::*;

    #[track_caller]
    fn check(limit: &str, count: u64, seconds: u64) {
        let quota = limit.parse::<Limit>().unwrap().quota().unwrap();
        assert_eq!(window(&quota), Window { count, seconds }, "{limit}");
    }

    #[test]
    fn periods_become_whole_seconds() {
        check("60/min", 60, 60);
        check("10/15min", 10, 900);
        check("10/100ms", 100, 1);
        check("1/2300ms", 10, 23);
        check("1/1500ms", 2, 3);
        check("3/7us", 3_000_000, 7);
        check("0/h", 0, 3_600);
        check("1/year", 1, 31_536_000);
    }

    #[test]
    fn what_does_not_fit_a_field_is_rounded_towards_less() {
        let rate = Rate::new(4_294_967_291, Duration::from_nanos(31_535_999_999_999_999)).unwrap();
        assert_eq!(window(&Quota::new(rate).unwrap()), Window { count: 4_294_967_291, seconds: 31_536_000 });
        let rate = Rate::new(4_294_967_291, Duration::from_nanos(10_000_000_001)).unwrap();
        assert_eq!(window(&Quota::new(rate).unwrap()), Window { count: 4_724_464_019, seconds: 11 });
    }
}
