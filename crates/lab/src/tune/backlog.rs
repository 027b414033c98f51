//! How large a burst a key needs at a rate.
//!
//! Let a bucket that refills c tokens in p nanoseconds have no bottom, so that nothing is ever denied. What is missing
//! to full, in units of 1/p token, then follows from one arrival to the next: it falls by c for each nanosecond that has
//! passed, to zero at the lowest, and rises by p for the request. A real bucket of burst B has the same deficit as long as
//! it has denied nothing, and it denies the first request that would make the deficit larger than B x p. So it denies
//! nothing exactly if the greatest deficit of the one without a bottom is at most B x p; the least such B is that
//! deficit divided by p, rounded up.

/// The least burst with which a rate of `count` in `period_ns` denies none of these arrivals, which are in order.
pub(crate) fn least_burst(times_ns: &[u64], count: u64, period_ns: u64) -> u64 {
    let (count, period) = (u128::from(count), u128::from(period_ns));
    let (mut missing, mut greatest, mut last) = (0_u128, 0_u128, 0_u64);
    for time in times_ns {
        // Below 2^64 x 2^34.
        missing = missing.saturating_sub(u128::from(time - last) * count) + period;
        greatest = greatest.max(missing);
        last = *time;
    }
    // At most the number of arrivals.
    u64::try_from(greatest.div_ceil(period)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_core::{Cost, Limit, State, Time, decide};

    /// Does a real bucket deny any of them?
    fn denies(times_ns: &[u64], limit: &str) -> bool {
        let quota = limit.parse::<Limit>().unwrap().quota().unwrap();
        let mut state = State::FULL;
        times_ns.iter().any(|time| {
            let (decision, next) = decide(&quota, state, Cost::ONE, Time::from_nanos(*time));
            state = next;
            !decision.is_allowed()
        })
    }

    #[test]
    fn the_least_burst_denies_nothing_and_one_less_denies() {
        let mut random = 7_u64;
        for round in 1..400_u64 {
            let mut time = 1_431_857_103_000_000_000;
            let times: Vec<u64> = (0..round % 60 + 2)
                .map(|_| {
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    time += (random >> 33) % (round * 40_000_000);
                    time
                })
                .collect();
            let count = round % 13 + 1;
            let least = least_burst(&times, count, 7_000_000_000);
            assert!(!denies(&times, &format!("{count}/7s burst {least}")), "{count} {least} {times:?}");
            if least > 1 {
                assert!(denies(&times, &format!("{count}/7s burst {}", least - 1)), "{count} {least} {times:?}");
            }
        }
    }
}
