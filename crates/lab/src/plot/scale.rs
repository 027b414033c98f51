//! Where the ticks of an axis of time stand: at round instants.

use tidegate_core::Time;

/// Round steps of time, in nanoseconds.
const STEPS_NS: [u64; 21] = [
    1_000_000,
    5_000_000,
    10_000_000,
    50_000_000,
    100_000_000,
    500_000_000,
    1_000_000_000,
    5_000_000_000,
    10_000_000_000,
    15_000_000_000,
    30_000_000_000,
    60_000_000_000,
    300_000_000_000,
    900_000_000_000,
    1_800_000_000_000,
    3_600_000_000_000,
    10_800_000_000_000,
    21_600_000_000_000,
    86_400_000_000_000,
    604_800_000_000_000,
    2_592_000_000_000_000,
];

/// Instants for at most so many ticks, from the beginning on.
pub(super) fn times(length_ns: u64, ticks_max: u64) -> Vec<Time> {
    let step = STEPS_NS.iter().find(|step| length_ns / **step <= ticks_max);
    let step = step.copied().unwrap_or(length_ns.max(1));
    (0..=length_ns / step).map(|i| Time::from_nanos(i * step)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_stand_at_round_places() {
        let two_minutes = times(120_000_000_000, 8);
        assert_eq!(two_minutes, [0, 15, 30, 45, 60, 75, 90, 105, 120].map(Time::from_secs));
    }
}
