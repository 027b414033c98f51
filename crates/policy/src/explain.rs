//! What a limit means, in plain words and in numbers.

use std::fmt;
use std::num::NonZeroU32;
use std::time::Duration;

use tidegate_core::{Algorithm, Limit, Quota, Sharing};

/// The windows for which the worst case is always stated.
const WINDOWS: [(&str, Duration); 3] =
    [("second", Duration::from_secs(1)), ("minute", Duration::from_secs(60)), ("hour", Duration::from_secs(3_600))];

/// What a limit means. Its `Display` is the plain words.
#[derive(Clone, Copy, Debug)]
pub struct Explanation {
    limit: Limit,
    algorithm: Algorithm,
    leases: Option<Leases>,
}

/// Tokens that processes take ahead from a store that they share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leases {
    /// The most tokens of one key that a process holds ahead.
    pub most: NonZeroU32,
    /// How many processes there are.
    pub nodes: NonZeroU32,
}

impl Leases {
    /// What each of them holds at most of a limit with this quota; zero if that is decided exactly.
    #[must_use]
    pub fn tokens_each(self, quota: &Quota) -> u64 {
        Sharing::Leased { most: self.most }.most_ahead(quota)
    }

    /// What all of them hold at most. They have paid for it, so it passes on top of what the law allows in a window; a
    /// process to which nobody comes holds nothing.
    #[must_use]
    pub fn tokens_ahead(self, quota: &Quota) -> u64 {
        self.tokens_each(quota).saturating_mul(u64::from(self.nodes.get()))
    }
}

/// The most that passes in any window of one length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorstCase {
    /// The window's name: `second`, `15min`.
    pub window: String,
    /// Its length.
    pub length: Duration,
    /// The most cost that passes in any window of that length, in tokens.
    pub most: u64,
}

impl Explanation {
    /// Of a limit as its quota's algorithm enforces it.
    #[must_use]
    pub fn of(limit: Limit) -> Self {
        let algorithm = limit.quota().map_or(Algorithm::default(), |quota| quota.algorithm());
        Self { limit, algorithm, leases: None }
    }

    /// Of the same limit, where processes take tokens ahead.
    #[must_use]
    pub fn with_leases(self, leases: Leases) -> Self {
        Self { leases: Some(leases), ..self }
    }

    /// For any second, minute and hour, and for the limit's own period if that is another: what is never exceeded.
    /// Empty if everything passes.
    #[must_use]
    pub fn worst_cases(&self) -> Vec<WorstCase> {
        let Some(quota) = self.limit.quota() else { return Vec::new() };
        let period = quota.rate().period();
        let own = (period, tidegate_core::PeriodText(period).to_string());
        let mut windows: Vec<_> = WINDOWS.iter().map(|(name, length)| (*length, (*name).to_owned())).collect();
        if windows.iter().all(|(length, _)| *length != period) {
            windows.push(own);
        }
        windows.sort();
        let ahead = self.leases.map_or(0, |leases| leases.tokens_ahead(&quota));
        let most = |length| quota.most_within(length).saturating_add(ahead);
        windows.into_iter().map(|(length, window)| WorstCase { window, length, most: most(length) }).collect()
    }

    /// What processes take ahead, if they do.
    #[must_use]
    pub const fn leases(&self) -> Option<Leases> {
        self.leases
    }

    /// The limit.
    #[must_use]
    pub const fn limit(&self) -> &Limit {
        &self.limit
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.limit {
            Limit::Unlimited => f.write_str("unlimited\n  everything passes, and nothing is counted\n"),
            Limit::Block { .. } => {
                writeln!(f, "{}", self.limit)?;
                f.write_str("  blocked: nothing ever passes, and waiting does not help\n")
            }
            Limit::Quota(quota) => {
                writeln!(f, "{}  ({})", self.limit, self.algorithm)?;
                sustained(f, &quota)?;
                match self.algorithm {
                    Algorithm::TokenBucket => token_bucket(f, &quota)?,
                    Algorithm::FixedWindow => fixed_window(f, &quota)?,
                    Algorithm::SlidingCounter => sliding_counter(f, &quota)?,
                    Algorithm::SlidingLog => sliding_log(f, &quota)?,
                }
                self.leases.iter().try_for_each(|leases| leased(f, &quota, *leases))?;
                f.write_str("  never exceeded ")?;
                let cases = self.worst_cases();
                for (i, WorstCase { window, most, .. }) in cases.iter().enumerate() {
                    let joint = if i == 0 { "" } else { ", " };
                    write!(f, "{joint}{} in any {window}", Grouped(*most))?;
                }
                writeln!(f)
            }
        }
    }
}

fn sustained(f: &mut fmt::Formatter<'_>, quota: &Quota) -> fmt::Result {
    let (count, period) = (quota.rate().count(), quota.rate().period());
    let each = period.as_nanos() / u128::from(count.max(1));
    write!(f, "  sustained      {} per {}", Grouped(count), tidegate_core::PeriodText(period))?;
    let is_exact = period.as_nanos().is_multiple_of(u128::from(count.max(1)));
    let about = if is_exact { "" } else { "about " };
    let each = Span(Duration::from_nanos(u64::try_from(each).unwrap_or(u64::MAX)));
    match quota.algorithm() {
        Algorithm::TokenBucket => writeln!(f, ": one token comes back {about}every {each}"),
        Algorithm::FixedWindow => writeln!(f, ", counted from one edge of the clock to the next"),
        Algorithm::SlidingLog => writeln!(f, ", in any span of that length"),
        // While the count before is not over, some of it weighs: part of a token, for which a whole one has to wait.
        Algorithm::SlidingCounter if count == 1 => writeln!(f, "; a caller who never pauses gets 1 in two of them"),
        Algorithm::SlidingCounter => writeln!(f, "; a caller who never pauses gets {}", Grouped(count - 1)),
    }
}

fn token_bucket(f: &mut fmt::Formatter<'_>, quota: &Quota) -> fmt::Result {
    writeln!(f, "  at once        {}, after a pause of {} or more", Grouped(quota.burst()), Span(quota.time_to_fill()))
}

fn fixed_window(f: &mut fmt::Formatter<'_>, quota: &Quota) -> fmt::Result {
    writeln!(f, "  at once        {}", Grouped(quota.burst()))?;
    let twice = Grouped(quota.burst().saturating_mul(2));
    writeln!(f, "  at an edge     {twice} within a moment: the last of one window and the first of the next")
}

fn sliding_counter(f: &mut fmt::Formatter<'_>, quota: &Quota) -> fmt::Result {
    token_bucket(f, quota)?;
    writeln!(f, "  at an edge     nothing more: what was counted before it weighs on, less and less until the next")
}

fn sliding_log(f: &mut fmt::Formatter<'_>, quota: &Quota) -> fmt::Result {
    token_bucket(f, quota)?;
    writeln!(f, "  remembered     each request for {}", Span(quota.rate().period()))
}

fn leased(f: &mut fmt::Formatter<'_>, quota: &Quota, leases: Leases) -> fmt::Result {
    let (each, nodes) = (leases.tokens_each(quota), Grouped(leases.nodes.get().into()));
    if matches!(quota.algorithm(), Algorithm::SlidingCounter | Algorithm::SlidingLog) {
        return writeln!(f, "  leased         nothing: a {} is decided exactly", quota.algorithm());
    }
    if each == 0 {
        return writeln!(
            f,
            "  leased         nothing: that takes a burst of 8 and 2 tokens ahead or more, so it is decided exactly"
        );
    }
    let (each, ahead) = (Grouped(each), Grouped(leases.tokens_ahead(quota)));
    let processes = if leases.nodes.get() == 1 { "process" } else { "processes" };
    writeln!(
        f,
        "  leased         at most {each} ahead in each of {nodes} {processes}, so {ahead} more in any window; idle ones hold none"
    )
}

/// A number with a comma between each three digits.
struct Grouped(u64);

impl fmt::Display for Grouped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.0.to_string();
        let first = digits.len() % 3;
        let (head, tail) = digits.split_at(first);
        f.write_str(head)?;
        for (i, three) in tail.as_bytes().chunks(3).enumerate() {
            let comma = if i == 0 && first == 0 { "" } else { "," };
            write!(f, "{comma}{}", String::from_utf8_lossy(three))?;
        }
        Ok(())
    }
}

/// A span in the two largest units that it has: `1 s`, `1 min 40 s`, `16.667 ms`.
struct Span(Duration);

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(u64, &str); 5] = [(86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"), (0, "")];
        let (seconds, nanos) = (self.0.as_secs(), self.0.subsec_nanos());
        if seconds == 0 {
            return small(f, nanos);
        }
        if seconds < 60 {
            return write!(f, "{} s", Decimal(seconds, nanos));
        }
        let at = UNITS.iter().position(|(unit, _)| *unit > 0 && seconds >= *unit).unwrap_or(3);
        let (unit, name) = UNITS[at];
        write!(f, "{} {name}", seconds / unit)?;
        let (smaller, smaller_name) = UNITS[at + 1];
        match (seconds % unit).checked_div(smaller) {
            Some(rest) if rest > 0 => write!(f, " {rest} {smaller_name}"),
            _ => Ok(()),
        }
    }
}

/// Less than a second: `20 ms`, `16.666 ms`, `1.5 us`.
fn small(f: &mut fmt::Formatter<'_>, nanos: u32) -> fmt::Result {
    const UNITS: [(u32, &str); 3] = [(1_000_000, "ms"), (1_000, "us"), (1, "ns")];
    let (unit, name) = *UNITS.iter().find(|(unit, _)| nanos >= *unit).unwrap_or(&UNITS[2]);
    let part = nanos % unit * (1_000_000_000 / unit);
    write!(f, "{} {name}", Decimal(u64::from(nanos / unit), part))
}

/// A number with as many digits behind the point as are needed, at most three; the second field is in billionths.
struct Decimal(u64, u32);

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = self.1 / 1_000_000;
        if millis == 0 {
            return self.0.fmt(f);
        }
        let text = format!("{}.{millis:03}", self.0);
        f.write_str(text.trim_end_matches('0'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quota(text: &str) -> Limit {
        text.parse().unwrap()
    }

    fn most(limit: Limit) -> Vec<(String, u64)> {
        Explanation::of(limit).worst_cases().into_iter().map(|case| (case.window, case.most)).collect()
    }

    fn named(cases: &[(&str, u64)]) -> Vec<(String, u64)> {
        cases.iter().map(|(window, most)| ((*window).to_owned(), *most)).collect()
    }

    #[test]
    fn br_003_the_worst_case_is_the_burst_and_what_comes_back() {
        assert_eq!(most(quota("60/min burst 10")), named(&[("second", 11), ("minute", 70), ("hour", 3_610)]));
        assert_eq!(most(quota("60/min")), named(&[("second", 61), ("minute", 120), ("hour", 3_660)]));
        assert_eq!(most(quota("60/min burst 1")), named(&[("second", 2), ("minute", 61), ("hour", 3_601)]));
        assert_eq!(most(quota("10/15min")), named(&[("second", 10), ("minute", 10), ("15min", 20), ("hour", 50)]));
    }

    #[test]
    fn a_fixed_window_lets_twice_its_count_through() {
        let Limit::Quota(bucket) = quota("59/min") else { panic!("a quota") };
        let window = Limit::Quota(bucket.with_algorithm(Algorithm::FixedWindow).unwrap());
        assert_eq!(most(window), named(&[("second", 118), ("minute", 118), ("hour", 59 * 61)]));
        assert!(Explanation::of(window).to_string().contains("at an edge     118 within a moment"));
    }

    #[test]
    fn a_sliding_counter_says_what_it_lets_through() {
        let counter = |text| {
            let Limit::Quota(bucket) = quota(text) else { panic!("a quota") };
            Explanation::of(Limit::Quota(bucket.with_algorithm(Algorithm::SlidingCounter).unwrap()))
        };
        let expected = "59/min  (sliding-counter)\n  \
            sustained      59 per min; a caller who never pauses gets 58\n  \
            at once        59, after a pause of 2 min or more\n  \
            at an edge     nothing more: what was counted before it weighs on, less and less until the next\n  \
            never exceeded 59 in any second, 118 in any minute, 3,599 in any hour\n";
        assert_eq!(counter("59/min").to_string(), expected);
        assert!(counter("1/s").to_string().contains("1 per s; a caller who never pauses gets 1 in two of them"));
        let leases = Leases { most: NonZeroU32::MAX, nodes: NonZeroU32::MIN };
        let leased = counter("59/min").with_leases(leases).to_string();
        assert!(leased.contains("leased         nothing: a sliding-counter is decided exactly"));
    }

    #[test]
    fn a_sliding_log_passes_its_count_in_any_period() {
        let Limit::Quota(bucket) = quota("59/min") else { panic!("a quota") };
        let log = Limit::Quota(bucket.with_algorithm(Algorithm::SlidingLog).unwrap());
        let expected = "59/min  (sliding-log)\n  \
            sustained      59 per min, in any span of that length\n  \
            at once        59, after a pause of 1 min or more\n  \
            remembered     each request for 1 min\n  \
            never exceeded 59 in any second, 59 in any minute, 3,540 in any hour\n";
        assert_eq!(Explanation::of(log).to_string(), expected);
    }

    #[test]
    fn br_041_block_and_unlimited_are_said_in_words() {
        assert!(Explanation::of(quota("0/min")).to_string().contains("blocked"));
        assert!(Explanation::of(quota("unlimited")).to_string().contains("everything passes"));
        assert_eq!(most(quota("0/min")), named(&[("second", 0), ("minute", 0), ("hour", 0)]));
        assert_eq!(most(quota("unlimited")), []);
    }

    #[test]
    fn the_words() {
        let words = Explanation::of(quota("60/min burst 10")).to_string();
        let expected = "60/min burst 10  (token-bucket)\n  \
            sustained      60 per min: one token comes back every 1 s\n  \
            at once        10, after a pause of 10 s or more\n  \
            never exceeded 11 in any second, 70 in any minute, 3,610 in any hour\n";
        assert_eq!(words, expected);
    }

    #[test]
    fn numbers_and_spans_read_well() {
        let grouped = [0, 999, 1_000, 123_456, 1_234_567].map(|n| Grouped(n).to_string());
        assert_eq!(grouped, ["0", "999", "1,000", "123,456", "1,234,567"]);
        let spans =
            [1_500, 100_000, 60_000, 90_000_000, 3_600_000, 20].map(|ms| Span(Duration::from_millis(ms)).to_string());
        assert_eq!(spans, ["1.5 s", "1 min 40 s", "1 min", "1 d 1 h", "1 h", "20 ms"]);
        let small = [16_666_666, 999_999_999, 1_500, 1, 0].map(|ns| Span(Duration::from_nanos(ns)).to_string());
        assert_eq!(small, ["16.666 ms", "999.999 ms", "1.5 us", "1 ns", "0 ns"]);
    }
}
