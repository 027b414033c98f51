//! Where the ticks of an axis of time stand: at round instants.

use tidegate_core::Time;

use crate::log::Utc;
use crate::words::Clock;

const NS: u64 = 1_000_000_000;

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

/// A tick of an axis of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tick {
    /// From the beginning on, in nanoseconds.
    pub(super) at_ns: u64,
    pub(super) label: String,
}

/// At most so many ticks over this span. Where it began at a real instant, they stand at round times of the day in UTC
/// and bear those; otherwise they count from the beginning.
pub(super) fn ticks(begins: Option<Utc>, length_ns: u64, ticks_max: u64) -> Vec<Tick> {
    let step = STEPS_NS.iter().find(|step| length_ns / **step <= ticks_max);
    let step = step.copied().unwrap_or(length_ns.max(1));
    let Some(begins) = begins else {
        let tick = |at_ns| Tick { at_ns, label: Clock(Time::from_nanos(at_ns)).to_string() };
        return (0..=length_ns / step).map(|i| tick(i * step)).collect();
    };
    let step = step.max(NS);
    let begins_ns = u64::try_from(begins.unix_s).unwrap_or(0).saturating_mul(NS);
    let first = begins_ns.div_ceil(step);
    let label = |at_ns: u64| {
        let text = Utc { unix_s: (at_ns / NS).cast_signed() }.to_string();
        match at_ns / NS {
            s if s % 86_400 == 0 => text[..10].to_owned(),
            s if s % 60 == 0 => text[11..16].to_owned(),
            _ => text[11..].to_owned(),
        }
    };
    let all = (first..).map(|i| i * step).take_while(|at_ns| at_ns - begins_ns <= length_ns);
    all.map(|at_ns| Tick { at_ns: at_ns - begins_ns, label: label(at_ns) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_stand_at_round_places() {
        let shown = |ticks: Vec<Tick>| ticks.into_iter().map(|tick| (tick.at_ns / NS, tick.label)).collect::<Vec<_>>();
        let minute = shown(ticks(None, 60_000_000_000, 4));
        assert_eq!(
            minute,
            [0, 15, 30, 45, 60].map(|s| (s, if s < 60 { format!("0:{s:02}") } else { "1:00".to_owned() }))
        );
        let begins = Some(Utc { unix_s: 1_431_900_000 });
        let hours = shown(ticks(begins, 43_200 * NS, 5));
        let expected = [(7_200, "2015-05-18"), (18_000, "03:00"), (28_800, "06:00"), (39_600, "09:00")];
        assert_eq!(hours, expected.map(|(s, label)| (s, label.to_owned())));
    }
}
