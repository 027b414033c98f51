//! Lines in the order of time, within a bound.
//!
//! Servers write a line when a response ends, so a slow one stands behind lines of requests that came later. Lines are
//! held here until the stream is further than the bound allows a line to be late, and then let go, second by second.
//! A second that is let go is complete, but for lines that are later than the bound; so it is known how many of its
//! lines bear the same stamp, and the k-th of n (from 0) stands at the stamp plus floor(k x 10^9 / n) nanoseconds.
//!
//! A line later than the bound finds its second gone. It is taken at the time that the stream has reached, which is that
//! of the line before it in the newest second, and counted. It bears no stamp of that second, so it moves no other line;
//! and time never runs backwards.

use std::collections::VecDeque;

use tidegate_core::Time;

use crate::log::Stamp;

/// Empty seconds that are kept for those to come, so that their memory need not be asked for again.
const SPARE_MAX: usize = 128;
/// The most lines that one of them has room for: a longer one is worth its asking.
const SPARE_LINES_MAX: usize = 256;
const NS: u64 = 1_000_000_000;

/// How late a line may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// Behind the newest line, in seconds.
    pub seconds: u64,
    /// The most lines that are held.
    pub lines: usize,
}

impl Default for Bound {
    fn default() -> Self {
        Self { seconds: 120, lines: 1_000_000 }
    }
}

/// What is held of a line: `what` is the caller's.
#[derive(Clone, Copy, Debug)]
pub struct Slot<T> {
    /// Nanoseconds of its second, or one of the marks below.
    ns: u32,
    log: u16,
    /// What the caller knows of the line.
    pub what: T,
}

impl<T> Slot<T> {
    /// Marks a line whose stamp is a whole second, until its place in the second is known.
    const WHOLE: u32 = u32::MAX;
    /// Marks a line that is late: it stands where the line before it does.
    const LATE: u32 = u32::MAX - 1;
}

/// The lines of one second.
struct Second<T> {
    unix_s: u64,
    slots: Vec<Slot<T>>,
}

/// Lines on their way into the order of time.
pub struct Reorder<T> {
    bound: Bound,
    /// In the order of time. Lines come nearly so, so a new second stands near the end, where it costs little to make
    /// room for it.
    seconds: VecDeque<Second<T>>,
    /// The place of the last line's second: that of the next line is mostly the same.
    at: usize,
    held: usize,
    spare: Vec<Vec<Slot<T>>>,
    /// All seconds before this one are gone.
    open_from_s: u64,
    /// Where the stream stands.
    now: Time,
    late: u64,
}

impl<T: Copy> Reorder<T> {
    /// Nothing is held yet.
    #[must_use]
    pub fn new(bound: Bound) -> Self {
        Self {
            bound,
            seconds: VecDeque::new(),
            at: 0,
            held: 0,
            spare: Vec::new(),
            open_from_s: 0,
            now: Time::ZERO,
            late: 0,
        }
    }

    /// How many lines came later than the bound.
    #[must_use]
    pub fn late(&self) -> u64 {
        self.late
    }

    /// Takes a line of log number `log`, and lets go of what the bound lets go: `newest_s` is the newest second of the
    /// stream. `each` is called with the lines in the order of time.
    #[inline]
    pub fn push(&mut self, stamp: Stamp, log: u16, what: T, newest_s: u64, each: &mut impl FnMut(Time, T)) {
        let is_late = stamp.unix_s < self.open_from_s;
        let second = if is_late { newest_s } else { stamp.unix_s };
        self.late += u64::from(is_late);
        if second < self.open_from_s {
            return each(self.now, what);
        }
        let ns = match stamp.is_whole {
            _ if is_late => Slot::<T>::LATE,
            true => Slot::<T>::WHOLE,
            false => stamp.ns,
        };
        self.slots_of(second).push(Slot { ns, log, what });
        self.held += 1;
        let passed_s = newest_s.saturating_sub(self.bound.seconds);
        if passed_s > self.open_from_s || self.held > self.bound.lines {
            self.let_go(passed_s, each);
        }
    }

    /// Lets go of everything.
    pub fn finish(&mut self, each: &mut impl FnMut(Time, T)) {
        self.let_go(u64::MAX, each);
    }

    /// Lets go of the seconds before `until_s`, and of more while too many lines are held.
    fn let_go(&mut self, until_s: u64, each: &mut impl FnMut(Time, T)) {
        let is_over = |first: &Second<T>, held| first.unix_s < until_s || held > self.bound.lines;
        while self.seconds.front().is_some_and(|first| is_over(first, self.held)) {
            let Some(mut first) = self.seconds.pop_front() else { break };
            self.held -= first.slots.len();
            self.at = self.at.saturating_sub(1);
            spread(&mut first.slots);
            for slot in &first.slots {
                let at = Time::from_nanos(first.unix_s.saturating_mul(NS).saturating_add(u64::from(slot.ns)));
                self.now = self.now.max(at);
                each(self.now, slot.what);
            }
            self.open_from_s = first.unix_s.saturating_add(1);
            if self.spare.len() < SPARE_MAX && first.slots.capacity() <= SPARE_LINES_MAX {
                first.slots.clear();
                self.spare.push(first.slots);
            }
        }
        if until_s < u64::MAX {
            self.open_from_s = self.open_from_s.max(until_s);
        }
    }

    /// The lines of this second, in the order in which they came.
    #[inline]
    fn slots_of(&mut self, second: u64) -> &mut Vec<Slot<T>> {
        if self.seconds.get(self.at).is_none_or(|last| last.unix_s != second) {
            self.at = self.place_of(second);
        }
        &mut self.seconds[self.at].slots
    }

    /// The place of a second, which is made if it is not there.
    fn place_of(&mut self, second: u64) -> usize {
        let at = match self.seconds.back() {
            Some(newest) if newest.unix_s >= second => self.seconds.partition_point(|there| there.unix_s < second),
            _ => self.seconds.len(),
        };
        if self.seconds.get(at).is_none_or(|there| there.unix_s != second) {
            let slots = self.spare.pop().unwrap_or_default();
            self.seconds.insert(at, Second { unix_s: second, slots });
        }
        at
    }
}

/// Gives each line of one second its place in it, and puts them in order: ties in the order of the logs, and then of the
/// lines.
fn spread<T>(slots: &mut [Slot<T>]) {
    if !slots.is_sorted_by_key(|slot| slot.log) {
        slots.sort_by_key(|slot| slot.log);
    }
    let count = slots.iter().filter(|slot| slot.ns == Slot::<T>::WHOLE).count() as u64;
    let (mut k, mut last_ns) = (0_u64, 0);
    for slot in slots.iter_mut() {
        if slot.ns == Slot::<T>::WHOLE {
            // Below 10^9, since k is below the count, which is that of lines held in memory.
            slot.ns = if k == 0 { 0 } else { (k.saturating_mul(NS) / count) as u32 };
            k += 1;
        } else if slot.ns == Slot::<T>::LATE {
            slot.ns = last_ns;
        }
        last_ns = slot.ns;
    }
    if !slots.is_sorted_by_key(|slot| slot.ns) {
        slots.sort_by_key(|slot| slot.ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pushes lines, each a time in tenths of a second, whole seconds where it ends in `s`; says in which order and
    /// when they came out, and how many were late.
    #[track_caller]
    fn check(bound: Bound, lines: &str, expect: &str) {
        let mut reorder = Reorder::new(bound);
        let (mut out, mut newest_s) = (Vec::new(), 0);
        let mut each = |at: Time, what: usize| out.push(format!("{what}@{}", at.as_nanos() / 1_000_000));
        for (i, line) in lines.split(' ').enumerate() {
            let (log, line) = line.split_once(':').map_or((0, line), |(log, line)| (log.parse().unwrap(), line));
            let stamp = match line.strip_suffix('s') {
                Some(second) => Stamp { unix_s: second.parse().unwrap(), ns: 0, is_whole: true },
                None => {
                    let tenths: u32 = line.parse().unwrap();
                    Stamp { unix_s: u64::from(tenths / 10), ns: tenths % 10 * 100_000_000, is_whole: false }
                }
            };
            newest_s = newest_s.max(stamp.unix_s);
            reorder.push(stamp, log, i, newest_s, &mut each);
        }
        reorder.finish(&mut each);
        assert_eq!(format!("{}; {} late", out.join(" "), reorder.late()), expect, "{lines}");
    }

    const BOUND: Bound = Bound { seconds: 2, lines: 100 };

    #[test]
    fn lines_come_out_in_the_order_of_time() {
        check(BOUND, "30 10 20", "1@1000 2@2000 0@3000; 0 late");
        check(BOUND, "15 13 11 14", "2@1100 1@1300 3@1400 0@1500; 0 late");
    }

    #[test]
    fn equal_stamps_are_spread_over_their_second() {
        check(BOUND, "1s 1s 1s", "0@1000 1@1333 2@1666; 0 late");
        check(BOUND, "1s 2s 1s", "0@1000 2@1500 1@2000; 0 late");
        // Ties in the order of the logs, whichever was read first.
        check(BOUND, "1:1s 0:1s 1:1s", "1@1000 0@1333 2@1666; 0 late");
        check(BOUND, "1s 14 1s", "0@1000 1@1400 2@1500; 0 late");
    }

    #[test]
    fn a_line_later_than_the_bound_is_taken_at_the_streams_time() {
        // When the line of 4 s has come, the second of 1 s is gone.
        check(BOUND, "1s 3s 2s 4s 1s", "0@1000 2@2000 1@3000 3@4000 4@4000; 1 late");
        check(BOUND, "9s 5s 9s", "0@9000 1@9000 2@9500; 1 late");
    }

    #[test]
    fn no_line_is_lost_while_others_are_let_go() {
        // What is held of a second stays when older ones go, whatever comes to it later.
        check(BOUND, "1s 4s 4s 5s 4s 5s 6s 4s", "0@1000 1@4000 2@4250 4@4500 7@4750 3@5000 5@5500 6@6000; 0 late");
        let mut reorder = Reorder::new(Bound { seconds: 3, lines: 50 });
        let (mut out, mut random) = (Vec::new(), 1_u64);
        let mut newest_s = 0;
        for i in 0..10_000_u64 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let unix_s = 1_000 + i / 9 - (random >> 33) % 6;
            newest_s = newest_s.max(unix_s);
            let stamp = Stamp { unix_s, ns: 0, is_whole: true };
            reorder.push(stamp, 0, i, newest_s, &mut |at, i| out.push((at, i)));
        }
        reorder.finish(&mut |at, i| out.push((at, i)));
        assert!(out.is_sorted_by_key(|(at, _)| *at) && reorder.late() > 0);
        out.sort_by_key(|(_, i)| *i);
        assert!(out.iter().map(|(_, i)| *i).eq(0..10_000));
    }

    #[test]
    fn no_more_lines_are_held_than_the_bound_says() {
        check(Bound { seconds: 100, lines: 2 }, "1s 2s 3s 1s", "0@1000 1@2000 2@3000 3@3000; 1 late");
    }

    #[test]
    fn br_184_order_is_that_of_the_start_and_time_never_runs_backwards() {
        let lines = "324s 22s 325s";
        check(Bound { seconds: 600, lines: 100 }, lines, "1@22000 0@324000 2@325000; 0 late");
        check(Bound { seconds: 1, lines: 100 }, lines, "0@324000 1@324000 2@325000; 1 late");
    }
}
