//! The one place in the workspace that reads a clock.
//!
//! Everything else takes the time as an argument, or asks a [`Clock`] that it was given.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tidegate_core::Time;

/// Where the time comes from.
pub trait Clock: Send + Sync + 'static {
    /// The time. It may stand still; it must not run backwards.
    fn now(&self) -> Time;
}

/// The machine's monotonic clock. Copies of it agree.
///
/// Its epoch is that of Unix, read once when the clock is made, so that fixed windows begin with the minute on the
/// wall. From then on it counts on its own: setting the machine's date moves it neither forward nor back.
///
/// What counts is the processor's own counter where there is one. The length of its tick is measured once per process,
/// against the system's clock and to a few millionths, also on a busy machine.
#[derive(Clone)]
pub struct SystemClock {
    counter: quanta::Clock,
    start: u64,
    start_ns: u64,
    tick: Tick,
}

impl SystemClock {
    /// A clock that starts now. The first one of a process takes some 20 ms to make.
    #[must_use]
    pub fn new() -> Self {
        let counter = quanta::Clock::new();
        let tick = Tick::of(&counter);
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { start: counter.raw(), counter, start_ns: u64::try_from(since_epoch.as_nanos()).unwrap_or(0), tick }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    #[inline]
    fn now(&self) -> Time {
        let ticks = self.counter.raw().saturating_sub(self.start);
        // 64 bits of nanoseconds: the rest of this century and four more.
        Time::from_nanos(self.start_ns.wrapping_add(self.tick.times(ticks)))
    }
}

/// The length of one tick of the counter, in nanoseconds times 2^32.
///
/// quanta measures it too, by two pairs of readings of which the last may be torn apart by whatever else the machine
/// does; then the clock runs wrong by up to a thousandth from there on. Here each pair is the closest of many.
#[derive(Clone, Copy)]
struct Tick(u64);

impl Tick {
    /// The time between the two readings: they are some 100 ns uncertain.
    const BASE: Duration = Duration::from_millis(20);
    /// Pairs of readings, of which the closest counts.
    const PAIRS: usize = 64;

    fn of(counter: &quanta::Clock) -> Self {
        static TICK: OnceLock<Tick> = OnceLock::new();
        *TICK.get_or_init(|| {
            let (from, from_ticks) = Self::reading(counter);
            thread::sleep(Self::BASE);
            let (to, to_ticks) = Self::reading(counter);
            let ticks = u128::from(to_ticks.saturating_sub(from_ticks).max(1));
            Self(u64::try_from(((to - from).as_nanos() << 32) / ticks).unwrap_or(u64::MAX))
        })
    }

    /// Both clocks at one moment.
    fn reading(counter: &quanta::Clock) -> (Instant, u64) {
        let pair = || {
            let before = Instant::now();
            let ticks = counter.raw();
            let gap = before.elapsed();
            (gap, before + gap / 2, ticks)
        };
        let first = pair();
        let closest =
            (1..Self::PAIRS).map(|_| pair()).fold(first, |best, next| if next.0 < best.0 { next } else { best });
        (closest.1, closest.2)
    }

    #[inline]
    fn times(self, ticks: u64) -> u64 {
        // Cut to 64 bits of nanoseconds, see above.
        ((u128::from(ticks) * u128::from(self.0)) >> 32) as u64
    }
}

impl fmt::Debug for SystemClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SystemClock").finish_non_exhaustive()
    }
}

/// A clock that moves when it is told to. Clones of it are the same clock.
///
/// ```
/// use std::time::Duration;
/// use tidegate::{Clock, ManualClock, Time};
///
/// let clock = ManualClock::new();
/// clock.advance(Duration::from_secs(60));
/// assert_eq!(clock.now(), Time::from_secs(60));
/// ```
#[derive(Clone, Debug, Default)]
pub struct ManualClock {
    ns: Arc<AtomicU64>,
}

impl ManualClock {
    /// A clock that stands at [`Time::ZERO`].
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Moves the clock on.
    pub fn advance(&self, span: Duration) {
        self.set(self.now().saturating_add(span));
    }

    /// Moves the clock to `time`; a time that has passed already leaves it where it is.
    pub fn set(&self, time: Time) {
        self.ns.fetch_max(time.as_nanos(), Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Time {
        Time::from_nanos(self.ns.load(Ordering::SeqCst))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_runs_as_fast_as_the_systems() {
        let clock = SystemClock::new();
        // The span of `clock` between two moments, of which the system's clock knows the least and the most.
        let (before, start, after) = (Instant::now(), clock.now(), Instant::now());
        thread::sleep(Duration::from_millis(300));
        let (least, end, most) = (after.elapsed(), clock.now(), before.elapsed());
        let (span, leeway) = (end.since(start), Duration::from_micros(30));
        assert!(span + leeway >= least && span <= most + leeway, "{span:?} is not from {least:?} to {most:?}");
    }

    #[test]
    fn copies_agree_and_nothing_runs_backwards() {
        let clock = SystemClock::new();
        let copy = clock.clone();
        let mut last = clock.now();
        for _ in 0..10_000 {
            for clock in [&copy, &clock] {
                let now = clock.now();
                assert!(now >= last);
                last = now;
            }
        }
    }

    #[test]
    fn the_epoch_is_that_of_unix() {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let since_epoch = SystemClock::new().now().since(Time::ZERO);
        assert!(since_epoch.abs_diff(wall) < Duration::from_secs(10), "{since_epoch:?}, {wall:?}");
    }
}
