//! What the laws say, in exact rational arithmetic and without regard to speed.
//!
//! Written from the definitions, so that a mistake of the core is not repeated here: a token bucket is an amount that
//! is missing, a rational number of tokens, and shrinks all the time; a fixed window is a count and the number of the
//! window that it belongs to; a sliding counter has the count of the window before beside it; a sliding
//! log is a list of what passed when. Nothing here is rounded but the three numbers that are shown.

use num_bigint::BigInt;
use num_rational::BigRational;
use tidegate_core::{Algorithm, Decision, Outcome, Quota, Rate, State};

use core::time::Duration;

/// An exact number of tokens, or of nanoseconds.
pub(crate) type Number = BigRational;

/// The whole number `n`.
pub(crate) fn whole(n: impl Into<BigInt>) -> Number {
    Number::from_integer(n.into())
}

/// What a quota says, in the numbers that it was written with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rules {
    pub(crate) count: u64,
    pub(crate) period_ns: u64,
    pub(crate) burst: u64,
    pub(crate) algorithm: Algorithm,
}

impl Rules {
    /// The core's form of it. A count of zero blocks.
    pub(crate) fn quota(&self) -> Quota {
        let period = Duration::from_nanos(self.period_ns);
        let quota = match self.count {
            0 => Quota::block(period),
            _ => Rate::new(self.count, period).and_then(|rate| Quota::with_burst(rate, self.burst)),
        };
        quota.and_then(|quota| quota.with_algorithm(self.algorithm)).expect("the rules are within the range")
    }

    /// Tokens per nanosecond.
    pub(crate) fn rate(&self) -> Number {
        Number::new(self.count.into(), self.period_ns.into())
    }

    /// The most that may pass between the first and the last of some requests, `span_ns` apart, both counted.
    pub(crate) fn most_within(&self, span_ns: u64) -> Number {
        match self.algorithm {
            Algorithm::TokenBucket | Algorithm::SlidingCounter => whole(self.burst) + self.rate() * whole(span_ns),
            // A half-open interval that holds both is a nanosecond longer.
            Algorithm::SlidingLog => {
                let periods = (u128::from(span_ns) + 1).div_ceil(u128::from(self.period_ns));
                whole(self.count) * whole(periods)
            }
            Algorithm::FixedWindow => {
                let windows = (u128::from(span_ns) + 1).div_ceil(u128::from(self.period_ns)) + 1;
                whole(self.count) * whole(windows)
            }
        }
    }
}

/// The answer, in the numbers that are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) ruling: Ruling,
    pub(crate) remaining: u64,
    pub(crate) reset_ns: u128,
    pub(crate) next_token_ns: u128,
}

/// Whether it passes, and if not, when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ruling {
    Allowed,
    Denied { wait_ns: u128 },
    Never,
}

/// What the core shows.
pub(crate) fn shown(decision: &Decision) -> Answer {
    let ruling = match decision.outcome() {
        Outcome::Allowed => Ruling::Allowed,
        Outcome::Denied { retry_after } => Ruling::Denied { wait_ns: retry_after.as_nanos() },
        Outcome::Never => Ruling::Never,
    };
    Answer {
        ruling,
        remaining: decision.remaining(),
        reset_ns: decision.reset_after().as_nanos(),
        next_token_ns: decision.next_token_after().as_nanos(),
    }
}

/// What a state of the core means under a token bucket: the exact amount that is missing at `now_ns`.
pub(crate) fn missing_of(rules: &Rules, state: State, now_ns: u64) -> Number {
    let passed_ns = now_ns.saturating_sub(state.stamp().as_nanos());
    at_least_zero(whole(state.deficit()) - rules.rate() * whole(passed_ns))
}

/// One bucket, as the definition has it.
#[derive(Clone, Debug)]
pub(crate) struct Oracle {
    rules: Rules,
    bucket: Bucket,
}

#[derive(Clone, Debug)]
enum Bucket {
    /// So much was missing at that instant.
    Tokens { missing: Number, at_ns: u64 },
    /// So much was counted in the window of that number.
    Window { used: u64, number: u64 },
    /// So much was counted in the window of that number, and in the one before it.
    Counter { before: u64, present: u64, number: u64 },
    /// When so much passed, the oldest first.
    Log(Vec<(u64, u64)>),
}

impl Oracle {
    /// A full bucket.
    pub(crate) fn full(rules: Rules) -> Self {
        let bucket = match rules.algorithm {
            Algorithm::TokenBucket => Bucket::Tokens { missing: whole(0), at_ns: 0 },
            Algorithm::FixedWindow => Bucket::Window { used: 0, number: 0 },
            Algorithm::SlidingCounter => Bucket::Counter { before: 0, present: 0, number: 0 },
            Algorithm::SlidingLog => Bucket::Log(Vec::new()),
        };
        Self { rules, bucket }
    }

    /// A token bucket that lacks `missing` at `at_ns`.
    pub(crate) fn lacking(rules: Rules, missing: Number, at_ns: u64) -> Self {
        Self { rules, bucket: Bucket::Tokens { missing, at_ns } }
    }

    /// The instant of the last change, in nanoseconds: of a window, its start.
    pub(crate) fn changed_ns(&self) -> u64 {
        match self.bucket {
            Bucket::Tokens { at_ns, .. } => at_ns,
            Bucket::Window { number, .. } | Bucket::Counter { number, .. } => number * self.rules.period_ns,
            Bucket::Log(ref entries) => entries.last().map_or(0, |(at_ns, _)| *at_ns),
        }
    }

    /// What is missing to full at `now_ns`.
    pub(crate) fn missing(&self, now_ns: u64) -> Number {
        match &self.bucket {
            Bucket::Tokens { missing, at_ns } => {
                at_least_zero(missing - self.rules.rate() * whole(now_ns.saturating_sub(*at_ns)))
            }
            Bucket::Window { used, number } if self.window_of(now_ns) <= *number => whole(*used),
            Bucket::Window { .. } => whole(0),
            Bucket::Log(entries) => whole(self.counting(entries, now_ns).map(|(_, tokens)| tokens).sum::<u64>()),
            Bucket::Counter { .. } => {
                let (before, present, open) = self.counted(now_ns);
                whole(before) * self.covered(open, now_ns) + whole(present)
            }
        }
    }

    /// May it pass? If so it is charged.
    pub(crate) fn take(&mut self, cost: u64, now_ns: u64) -> Answer {
        self.repair(now_ns);
        let ruling = self.ruling(cost, now_ns);
        if ruling == Ruling::Allowed {
            self.charge(cost, now_ns);
        }
        self.answer(ruling, now_ns)
    }

    /// Whether `cost` would pass, and nothing else.
    pub(crate) fn ruling(&self, cost: u64, now_ns: u64) -> Ruling {
        if cost > self.rules.burst {
            return Ruling::Never;
        }
        let over = self.missing(now_ns) + whole(cost) - whole(self.rules.burst);
        if cost == 0 || over <= whole(0) {
            return Ruling::Allowed;
        }
        Ruling::Denied { wait_ns: self.time_for(over, now_ns) }
    }

    /// The numbers that are shown beside `ruling`.
    pub(crate) fn answer(&self, ruling: Ruling, now_ns: u64) -> Answer {
        let missing = self.missing(now_ns);
        let room = whole(self.rules.burst) - &missing;
        let remaining = at_least_zero(room.floor());
        // From `remaining` to one more; from a full bucket there is nothing to wait for.
        let to_next = (&remaining + whole(1)).min(whole(self.rules.burst)) - room;
        Answer {
            ruling,
            remaining: u64::try_from(remaining.to_integer()).expect("at most the burst"),
            reset_ns: self.time_for(missing, now_ns),
            next_token_ns: self.time_for(to_next, now_ns),
        }
    }

    /// Gives `tokens` back, at most to full.
    pub(crate) fn grant(&mut self, tokens: u64, now_ns: u64) {
        if let Bucket::Counter { .. } = self.bucket {
            let (before, present, number) = self.counted(now_ns);
            let off = tokens.min(present);
            let before = before.saturating_sub(tokens - off);
            self.bucket = Bucket::Counter { before, present: present - off, number };
            return;
        }
        if let Bucket::Log(_) = self.bucket {
            return self.take_off(tokens, u64::MAX, now_ns);
        }
        self.set_missing(at_least_zero(self.missing(now_ns) - whole(tokens)), now_ns);
    }

    /// Takes back what was charged at `taken_ns`: a counter as if it had not been, a window while it is open.
    pub(crate) fn take_back(&mut self, tokens: u64, taken_ns: u64, now_ns: u64) {
        let taken_in = self.window_of(taken_ns);
        match self.bucket {
            Bucket::Tokens { .. } => self.grant(tokens, now_ns),
            Bucket::Window { .. } if taken_in < self.window_of(now_ns) => {}
            Bucket::Window { .. } => self.grant(tokens, now_ns),
            Bucket::Log(_) if now_ns.saturating_sub(taken_ns) >= self.rules.period_ns => {}
            Bucket::Log(_) => self.take_off(tokens, taken_ns, now_ns),
            Bucket::Counter { .. } => {
                let (before, present, number) = self.counted(now_ns);
                self.bucket = match number - taken_in {
                    0 => Bucket::Counter { before, present: present - tokens, number },
                    1 => Bucket::Counter { before: before - tokens, present, number },
                    _ => Bucket::Counter { before, present, number },
                };
            }
        }
    }

    /// Owes `tokens` more; no more than two bursts are ever missing.
    pub(crate) fn owe(&mut self, tokens: u64, now_ns: u64) {
        if tokens > 0 {
            self.repair(now_ns);
            let most = whole(self.rules.burst) * whole(2);
            if let Bucket::Log(_) = self.bucket {
                let room = most - self.missing(now_ns);
                let room = u64::try_from(room.to_integer()).expect("a debt is at most two bursts");
                return self.charge(tokens.min(room), now_ns);
            }
            if let Bucket::Counter { .. } = self.bucket {
                let (before, present, number) = self.counted(now_ns);
                let room = (most - whole(before) * self.covered(number, now_ns)).floor().to_integer();
                let most = u64::try_from(room).expect("a debt is at most two bursts").max(present);
                self.bucket = Bucket::Counter { before, present: present.saturating_add(tokens).min(most), number };
                return;
            }
            self.set_missing((self.missing(now_ns) + whole(tokens)).min(most), now_ns);
        }
    }

    /// The same debt under other rules of the same algorithm, cut to the new burst.
    pub(crate) fn replace(&mut self, rules: Rules, now_ns: u64) {
        let missing = self.missing(now_ns).min(whole(rules.burst));
        if let Bucket::Counter { .. } = self.bucket {
            let (before, present, number) = self.counted(now_ns);
            let is_kept = rules.period_ns == self.rules.period_ns && self.missing(now_ns) <= whole(rules.burst);
            let start_ns = now_ns.max(number * self.rules.period_ns);
            let tokens = u64::try_from(missing.ceil().to_integer()).expect("at most the burst");
            self.rules = rules;
            self.bucket = match is_kept {
                true => Bucket::Counter { before, present, number },
                false => Bucket::Counter { before: 0, present: tokens, number: self.window_of(start_ns) },
            };
            return;
        }
        if let Bucket::Log(entries) = &self.bucket {
            let mut kept: Vec<_> = self.counting(entries, now_ns).collect();
            let mut over = kept.iter().map(|(_, tokens)| tokens).sum::<u64>().saturating_sub(rules.burst);
            for (_, tokens) in &mut kept {
                let off = over.min(*tokens);
                (*tokens, over) = (*tokens - off, over - off);
            }
            kept.retain(|(_, tokens)| *tokens > 0);
            (self.bucket, self.rules) = (Bucket::Log(kept), rules);
            return;
        }
        self.rules = rules;
        if let Bucket::Window { number, .. } = &mut self.bucket {
            // The old window is counted in the new one that is open now.
            *number = 0;
        }
        self.set_missing(missing, now_ns);
    }

    /// A window further ahead than one period cannot be explained by waiting, and becomes the present one.
    pub(crate) fn repair(&mut self, now_ns: u64) {
        let present = self.window_of(now_ns);
        if let Bucket::Log(entries) = &mut self.bucket
            && entries.last().is_some_and(|(at_ns, _)| at_ns.saturating_sub(now_ns) > self.rules.period_ns)
        {
            entries.iter_mut().for_each(|(at_ns, _)| *at_ns = now_ns.min(*at_ns));
        }
        let (Bucket::Window { number, .. } | Bucket::Counter { number, .. }) = &mut self.bucket else { return };
        let ahead_ns = (*number * self.rules.period_ns).saturating_sub(now_ns);
        if ahead_ns <= self.rules.period_ns {
            return;
        }
        *number = present;
        if let Bucket::Counter { before, present, number: 0 } = &mut self.bucket {
            // Nothing can have been counted before the first window.
            (*present, *before) = ((*present + *before).min(2 * self.rules.burst), 0);
        }
    }

    fn charge(&mut self, tokens: u64, now_ns: u64) {
        if let Bucket::Counter { .. } = self.bucket {
            let (before, present, number) = self.counted(now_ns);
            self.bucket = Bucket::Counter { before, present: present + tokens, number };
        } else if let Bucket::Log(entries) = &self.bucket {
            let mut kept: Vec<_> = self.counting(entries, now_ns).collect();
            let (at_ns, count) = (self.changed_ns().max(now_ns), kept.len() as u64);
            match kept.last_mut() {
                _ if tokens == 0 => {}
                // There are no more entries than the count: the newest takes a debt in.
                Some((last_ns, held)) if *last_ns == at_ns || count == self.rules.burst => {
                    (*last_ns, *held) = (at_ns, *held + tokens);
                }
                Some(_) => kept.push((at_ns, tokens)),
                None => kept.push((now_ns, tokens)),
            }
            self.bucket = Bucket::Log(kept);
        } else {
            self.set_missing(self.missing(now_ns) + whole(tokens), now_ns);
        }
    }

    /// The entries of a log that still count.
    fn counting<'a>(&'a self, entries: &'a [(u64, u64)], now_ns: u64) -> impl Iterator<Item = (u64, u64)> + 'a {
        let counts = move |(at_ns, _): &(u64, u64)| now_ns.saturating_sub(*at_ns) < self.rules.period_ns;
        entries.iter().copied().filter(counts)
    }

    /// Takes tokens off a log, of entries that are no newer than `from_ns`, the newest first.
    fn take_off(&mut self, tokens: u64, from_ns: u64, now_ns: u64) {
        let Bucket::Log(entries) = &self.bucket else { panic!("no log") };
        let mut kept: Vec<_> = self.counting(entries, now_ns).collect();
        let mut left = tokens;
        for (_, held) in kept.iter_mut().rev().filter(|(at_ns, _)| *at_ns <= from_ns) {
            let off = left.min(*held);
            (*held, left) = (*held - off, left - off);
        }
        kept.retain(|(_, held)| *held > 0);
        self.bucket = Bucket::Log(kept);
    }

    /// When a log has `amount` less than now, in nanoseconds from now.
    fn time_to_leave(&self, entries: &[(u64, u64)], amount: Number, now_ns: u64) -> Number {
        let mut leaving = whole(0);
        for (at_ns, tokens) in self.counting(entries, now_ns) {
            leaving += whole(tokens);
            if leaving >= amount {
                return whole(at_ns) + whole(self.rules.period_ns) - whole(now_ns);
            }
        }
        panic!("no more than there is leaves");
    }

    /// What a counter has counted in the window that is open, and in the one before; and the number of the former.
    fn counted(&self, now_ns: u64) -> (u64, u64, u64) {
        let Bucket::Counter { before, present, number } = self.bucket else { panic!("no counter") };
        match self.window_of(now_ns).saturating_sub(number) {
            0 => (before, present, number),
            1 => (present, 0, number + 1),
            _ => (0, 0, self.window_of(now_ns)),
        }
    }

    /// The share of the window before `open` that a period which ends at `now_ns` covers.
    fn covered(&self, open: u64, now_ns: u64) -> Number {
        let passed_ns = now_ns.saturating_sub(open * self.rules.period_ns);
        whole(1) - Number::new(passed_ns.into(), self.rules.period_ns.into())
    }

    /// When a counter has no more than `left` missing, in nanoseconds from now: in this window, or in the next.
    fn time_to(&self, left: Number, now_ns: u64) -> Number {
        let (before, present, open) = self.counted(now_ns);
        let (start, period) = (whole(open) * whole(self.rules.period_ns), whole(self.rules.period_ns));
        let (weighing, rest, start) = match left >= whole(present) {
            true => (before, left - whole(present), start),
            false => (present, left, start + &period),
        };
        let share = whole(1) - rest / whole(weighing);
        (start + (share * period)).ceil() - whole(now_ns)
    }

    fn set_missing(&mut self, amount: Number, now_ns: u64) {
        let present = self.window_of(now_ns);
        match &mut self.bucket {
            Bucket::Tokens { missing, at_ns } => (*missing, *at_ns) = (amount, now_ns.max(*at_ns)),
            Bucket::Window { used, number } => {
                *used = u64::try_from(amount.to_integer()).expect("a count is at most two bursts");
                *number = present.max(*number);
            }
            Bucket::Counter { .. } | Bucket::Log(_) => panic!("it is never told what is missing"),
        }
    }

    /// How long it takes until `amount` has come back, rounded up.
    fn time_for(&self, amount: Number, now_ns: u64) -> u128 {
        if amount <= whole(0) {
            return 0;
        }
        let ns = match self.bucket {
            Bucket::Tokens { at_ns, .. } => whole(at_ns.saturating_sub(now_ns)) + (amount / self.rules.rate()).ceil(),
            Bucket::Window { number, .. } => {
                let open = self.window_of(now_ns).max(number);
                whole((u128::from(open) + 1) * u128::from(self.rules.period_ns)) - whole(now_ns)
            }
            Bucket::Log(ref entries) => self.time_to_leave(entries, amount, now_ns),
            Bucket::Counter { .. } => self.time_to(self.missing(now_ns) - amount, now_ns),
        };
        u128::try_from(ns.to_integer()).expect("waits are well below 2^128 ns")
    }

    fn window_of(&self, now_ns: u64) -> u64 {
        now_ns / self.rules.period_ns
    }
}

fn at_least_zero(n: Number) -> Number {
    n.max(whole(0))
}
