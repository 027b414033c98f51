//! A decision as the script takes it and gives it back.
//!
//! The script answers with the numbers that it decided on, and the core computes the decision from them: what is
//! remaining, when to come back, and whether it passed, in the same code as everywhere.

use redis::Value;
use tidegate_core::{
    Algorithm, CHARGES_MAX, Charge, Cost, Decision, LogView, Mode, Quota, Standing, State, Time, Verdict, decide,
    decide_all, decide_all_with_logs, decide_log,
};

use crate::names::Names;
use crate::terms::{Act, Terms};
use crate::{OutOfRange, StoreError};

/// One request on its way: the buckets it asks about, and the terms of each.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) keys: Vec<String>,
    pub(crate) terms: Vec<Vec<u8>>,
}

/// The charges that reach the store: one for each bucket, with the cost of all that share it.
pub(crate) struct Asked<'a> {
    charges: Vec<Charge<'a>>,
}

impl<'a> Asked<'a> {
    pub(crate) fn new(charges: &[Charge<'a>]) -> Self {
        let mut asked: Vec<Charge<'a>> = Vec::with_capacity(charges.len());
        for charge in charges {
            match asked.iter_mut().find(|one| one.shares_bucket(charge)) {
                Some(one) => one.cost = one.cost.saturating_add(charge.cost),
                None => asked.push(*charge),
            }
        }
        Self { charges: asked }
    }

    /// Can one of the enforced limits never let its cost pass? Then the store need not be asked.
    pub(crate) fn is_never(&self) -> bool {
        self.charges.iter().any(|charge| charge.mode.is_enforced() && charge.cost.tokens() > charge.quota.burst())
    }

    /// The request. A cost that can never pass in shadow is asked about as a look.
    pub(crate) fn request(&self, names: &Names) -> Result<Request, OutOfRange> {
        self.request_before(names, 0)
    }

    /// The same, to which `more` entries are to be added.
    pub(crate) fn request_before(&self, names: &Names, more: usize) -> Result<Request, OutOfRange> {
        let mut request = Request { keys: Vec::new(), terms: Vec::new() };
        for (i, charge) in self.charges.iter().enumerate() {
            let cost = if charge.cost.tokens() > charge.quota.burst() { Cost::ZERO } else { charge.cost };
            let is_last = i + 1 == self.charges.len() + more;
            request.terms.push(Terms::of(&charge.quota)?.pack(Act::Charge(charge.mode), cost, is_last));
            request.keys.push(names.bucket(charge));
        }
        Ok(request)
    }

    /// The decisions on `charges`, of which these were asked, from what the script saw.
    pub(crate) fn decide(
        &self,
        charges: &[Charge<'_>],
        seen: &Seen,
        decisions: &mut [Decision],
    ) -> Result<Verdict, StoreError> {
        let mut standings: [Standing; CHARGES_MAX] = [Ok(State::FULL); CHARGES_MAX];
        let mut views = [None; CHARGES_MAX];
        for ((standing, view), charge) in standings.iter_mut().zip(&mut views).zip(charges) {
            let place = self.place_of(charge)?;
            *standing = Ok(seen.state_at(place, &charge.quota).ok_or(StoreError::Malformed)?);
            *view = seen.view_at(place);
        }
        let n = charges.len();
        let verdict = decide_all_with_logs(charges, &mut standings[..n], &views[..n], decisions, seen.now);
        // The script charged if it let all enforced charges pass; the core, from the same numbers, must agree.
        let passed =
            self.charges.iter().zip(&seen.passed).all(|(charge, passed)| *passed || charge.mode == Mode::Shadow);
        if passed == verdict.allowed { Ok(verdict) } else { Err(StoreError::Malformed) }
    }

    /// The same decisions, when the charges that were made are given back.
    pub(crate) fn uncharge(
        &self,
        charges: &[Charge<'_>],
        seen: &Seen,
        decisions: &mut [Decision],
    ) -> Result<(), StoreError> {
        for (decision, charge) in decisions.iter_mut().zip(charges) {
            let place = self.place_of(charge)?;
            let state = seen.state_at(place, &charge.quota).ok_or(StoreError::Malformed)?;
            *decision = match seen.view_at(place) {
                Some(view) => decision.uncharged_log(view),
                None => decision.uncharged(state),
            };
        }
        Ok(())
    }

    /// The place of what was asked for this charge.
    fn place_of(&self, charge: &Charge<'_>) -> Result<usize, StoreError> {
        self.charges.iter().position(|one| one.shares_bucket(charge)).ok_or(StoreError::Malformed)
    }

    /// The verdict on charges of which one can never pass: none is made, and the others are not looked up.
    pub(crate) fn never(charges: &[Charge<'_>], decisions: &mut [Decision]) -> Verdict {
        let mut standings: [Standing; CHARGES_MAX] = [Ok(State::FULL); CHARGES_MAX];
        decide_all(charges, &mut standings[..charges.len()], decisions, Time::ZERO)
    }
}

/// What the script saw of one request.
#[derive(Debug)]
pub(crate) struct Seen {
    now: Time,
    states: Vec<State>,
    passed: Vec<bool>,
    /// Of logs, the instants of the entries that have to leave: for one more token, and for the cost.
    leaving: Vec<Option<(Time, Time)>>,
    shown: Option<Shown>,
}

/// The state that the script counted in microseconds: of a sliding counter the stamp is one count away from the start of
/// the window, so many ticks of its clock.
fn in_nanoseconds(state: State, quota: &Quota) -> State {
    if quota.algorithm() != Algorithm::SlidingCounter {
        return state;
    }
    // A year of microseconds fits.
    let period_us = u64::try_from(quota.rate().period().as_micros()).unwrap_or(u64::MAX).max(1);
    let stamp_us = state.stamp().as_nanos() / 1_000;
    let before = (period_us - stamp_us % period_us) % period_us;
    let start = Time::from_nanos((stamp_us + before).saturating_mul(1_000));
    State::of_counts(quota, before, state.deficit(), start)
}

/// What a bucket was written under, and how many milliseconds are left to it; negative if it never expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shown {
    pub(crate) tokens: u64,
    pub(crate) period_us: u64,
    pub(crate) burst: u64,
    pub(crate) expires_ms: i64,
}

impl Seen {
    /// Takes the last entry off: was it let pass?
    pub(crate) fn pop(&mut self) -> Option<bool> {
        self.states.pop()?;
        self.leaving.pop()?;
        self.passed.pop()
    }

    /// Was the first entry let pass; or the record that it names there?
    pub(crate) fn first_passed(&self) -> Option<bool> {
        self.passed.first().copied()
    }

    /// The state of the only entry, of a bucket of this quota.
    pub(crate) fn state(&self, quota: &Quota) -> Option<State> {
        self.state_at(0, quota)
    }

    fn state_at(&self, place: usize, quota: &Quota) -> Option<State> {
        self.states.get(place).map(|state| in_nanoseconds(*state, quota))
    }

    fn view_at(&self, place: usize) -> Option<LogView> {
        let ((next, enough), state) = ((*self.leaving.get(place)?)?, self.states.get(place)?);
        Some(LogView { used: state.deficit(), next, enough, newest: state.stamp() })
    }

    /// The decision on this cost from what the script saw of the only entry.
    pub(crate) fn decide(&self, quota: &Quota, cost: Cost) -> Option<Decision> {
        Some(match self.view_at(0) {
            Some(view) => decide_log(quota, view, cost, self.now),
            None => decide(quota, self.state(quota)?, cost, self.now).0,
        })
    }

    /// What was shown.
    pub(crate) fn shown(&self) -> Option<Shown> {
        self.shown
    }
}

/// Takes the reply to a call apart, one request after the other. `counts` are their numbers of charges.
pub(crate) fn replies(reply: Value, counts: &[usize]) -> Vec<Result<Seen, StoreError>> {
    let Value::Array(values) = reply else { return counts.iter().map(|_| Err(StoreError::Malformed)).collect() };
    let mut values = values.into_iter();
    let now = values.next().and_then(micros);
    counts
        .iter()
        .map(|count| {
            let charges: Vec<_> = (0..*count).map(|_| [values.next(), values.next(), values.next()]).collect();
            seen(now.ok_or(StoreError::Malformed)?, charges)
        })
        .collect()
}

fn seen(now: Time, charges: Vec<[Option<Value>; 3]>) -> Result<Seen, StoreError> {
    let mut seen = Seen { now, states: Vec::new(), passed: Vec::new(), leaving: Vec::new(), shown: None };
    for [result, deficit, stamp] in charges {
        seen.leaving.push(None);
        seen.passed.push(match result {
            Some(Value::Int(passed)) => passed == 1,
            Some(Value::Array(log)) if log.len() == 3 => {
                let (passed, leaving) = log_of(log).ok_or(StoreError::Malformed)?;
                seen.leaving.pop();
                seen.leaving.push(Some(leaving));
                passed
            }
            Some(Value::Array(terms)) => {
                seen.shown = Some(shown(terms).ok_or(StoreError::Malformed)?);
                true
            }
            Some(Value::BulkString(error)) => {
                return Err(StoreError::Server(String::from_utf8_lossy(&error).into_owned()));
            }
            _ => return Err(StoreError::Malformed),
        });
        let deficit = deficit.and_then(whole).filter(|deficit| *deficit < State::DEFICIT_END);
        let stamp = stamp.and_then(micros);
        let (Some(deficit), Some(stamp)) = (deficit, stamp) else { return Err(StoreError::Malformed) };
        seen.states.push(State::from_parts(deficit, stamp));
    }
    Ok(seen)
}

/// Whether a log let pass, and the entries that have to leave.
fn log_of(values: Vec<Value>) -> Option<(bool, (Time, Time))> {
    let [passed, next, enough] = <[Value; 3]>::try_from(values).ok()?;
    Some((whole(passed)? == 1, (micros(next)?, micros(enough)?)))
}

fn shown(terms: Vec<Value>) -> Option<Shown> {
    let [tokens, period_us, burst, Value::Int(expires_ms)] = <[Value; 4]>::try_from(terms).ok()? else { return None };
    Some(Shown { tokens: whole(tokens)?, period_us: whole(period_us)?, burst: whole(burst)?, expires_ms })
}

fn whole(value: Value) -> Option<u64> {
    match value {
        Value::Int(number) => u64::try_from(number).ok(),
        _ => None,
    }
}

/// Microseconds of the server's clock as an instant.
fn micros(value: Value) -> Option<Time> {
    whole(value)?.checked_mul(1_000).map(Time::from_nanos)
}
