//! `CL.THROTTLE` and `THROTTLE`: numbers into a limit, and a decision into five numbers.
//!
//! Both bring the whole limit with each call, and count it in whole tokens and whole seconds. They differ in what a
//! burst is: of `CL.THROTTLE` (redis-cell) `max_burst` comes on top of the one that passes anyway, of `THROTTLE`
//! (throttlecrab) it is all that passes at once. They differ in their replies too, and nobody can tell from a reply
//! which of the two it is.

use std::fmt;
use std::time::Duration;

use tidegate_core::{Cost, Decision, Quota, QuotaError, Rate};

/// What the reply to a call of `CL.THROTTLE` leaves away of a wait: redis-cell counts in whole milliseconds.
const DROPPED: Duration = Duration::from_millis(1);

/// The two commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    /// redis-cell's.
    Cell,
    /// throttlecrab's.
    Crab,
}

/// A call, read, but for its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Throttle {
    pub(super) dialect: Dialect,
    pub(super) quota: Quota,
    pub(super) cost: Cost,
}

/// The numbers of a call, and the quota that they make.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbers {
    dialect: Dialect,
    numbers: [i64; 3],
    quota: Quota,
}

/// Why a call is refused. Its `Display` is the reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// Too few or too many words.
    Usage(Dialect),
    /// A word that is no integer.
    NoInteger(Dialect, String),
    /// A count or a period of zero.
    Zero(Dialect),
    /// A number below zero, which would give back.
    Negative(&'static str),
    /// A limit that cannot be exact.
    Quota(QuotaError),
}

impl Dialect {
    /// What stands in front of an error that the peer knows too.
    const fn prefix(self) -> &'static str {
        match self {
            Self::Cell => "Cell error: Store error: ",
            Self::Crab => "ERR ",
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Cell => "cl.throttle",
            Self::Crab => "throttle",
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(dialect) => write!(
                f,
                "{}Usage: {} <key> <max_burst> <count per period> <period> [<quantity>]",
                dialect.prefix(),
                dialect.name()
            ),
            Self::NoInteger(dialect, word) => {
                write!(f, "{}Couldn't parse as integer: {}", dialect.prefix(), word.escape_default())
            }
            Self::Zero(dialect) => write!(f, "{}Zero rates are not supported", dialect.prefix()),
            Self::Negative(what) => write!(f, "ERR {what} must not be negative"),
            Self::Quota(error) => write!(f, "ERR {error}"),
        }
    }
}

impl Throttle {
    /// Reads the words behind the command's name, and returns the key with the call.
    ///
    /// Callers repeat their numbers, so what was made of the last ones is taken again.
    pub(super) fn read<'w>(
        dialect: Dialect,
        mut words: impl Iterator<Item = &'w [u8]>,
        last: &mut Option<Numbers>,
    ) -> Result<(&'w [u8], Self), Refused> {
        let key = words.next().ok_or(Refused::Usage(dialect))?;
        // One more than there may be, so that too many are seen.
        let (mut numbers, mut count) = ([None; 5], 0);
        for (number, word) in numbers.iter_mut().zip(words) {
            *number = Some(word);
            count += 1;
        }
        if !(3..=4).contains(&count) {
            return Err(Refused::Usage(dialect));
        }
        let integer = |word: Option<&[u8]>| word.map_or(Ok(1), |word| integer(dialect, word));
        let [burst, count, period, quantity, _] = numbers;
        let numbers = [integer(burst)?, integer(count)?, integer(period)?];
        let quantity = integer(quantity)?;
        let quota = match last {
            Some(last) if (last.dialect, last.numbers) == (dialect, numbers) && quantity >= 0 => last.quota,
            _ => {
                let quota = quota(dialect, numbers, quantity)?;
                *last = Some(Numbers { dialect, numbers, quota });
                quota
            }
        };
        Ok((key, Self { dialect, quota, cost: Cost::new(quantity.unsigned_abs()) }))
    }

    /// The five numbers of the reply.
    pub(super) fn reply(&self, decision: &Decision) -> [i64; 5] {
        let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        let (limit, remaining) = (number(self.quota.burst()), number(decision.remaining()));
        let reset = decision.reset_after();
        match self.dialect {
            Dialect::Cell => {
                let retry = decision.retry_after().map_or(-1, |wait| number(seconds_of_cell(wait)));
                let is_limited = i64::from(!decision.is_allowed());
                [is_limited, limit, remaining, retry, number(seconds_of_cell(reset))]
            }
            Dialect::Crab => {
                let retry = decision.retry_after().map_or(0, |wait| number(seconds_up(wait)));
                let reset = number(seconds_up(reset_of_crab(&self.quota, reset)));
                [i64::from(decision.is_allowed()), limit, remaining, reset, retry]
            }
        }
    }
}

fn integer(dialect: Dialect, word: &[u8]) -> Result<i64, Refused> {
    let number = std::str::from_utf8(word).ok().and_then(|text| text.parse().ok());
    number.ok_or_else(|| Refused::NoInteger(dialect, String::from_utf8_lossy(word).into_owned()))
}

/// The quota that the numbers of a call make.
fn quota(dialect: Dialect, [burst, count, period]: [i64; 3], quantity: i64) -> Result<Quota, Refused> {
    if count == 0 || period == 0 {
        return Err(Refused::Zero(dialect));
    }
    let named = [("max_burst", burst), ("count", count), ("period", period), ("quantity", quantity)];
    if let Some((name, _)) = named.iter().find(|(_, number)| *number < 0) {
        return Err(Refused::Negative(name));
    }
    let [burst, count, period] = [burst, count, period].map(i64::unsigned_abs);
    let burst = match dialect {
        Dialect::Cell => burst.saturating_add(1),
        Dialect::Crab => burst,
    };
    let rate = Rate::new(count, Duration::from_secs(period)).map_err(Refused::Quota)?;
    Quota::with_burst(rate, burst).map_err(Refused::Quota)
}

/// Whole seconds, rounded up from whole milliseconds.
fn seconds_of_cell(span: Duration) -> u64 {
    span.as_secs() + u64::from(Duration::from_nanos(u64::from(span.subsec_nanos())) >= DROPPED)
}

/// What throttlecrab calls the time until all are back: when it forgets the key, later by all of the burst but two.
fn reset_of_crab(quota: &Quota, reset: Duration) -> Duration {
    let (count, period_ns) = (u128::from(quota.rate().count()), quota.rate().period().as_nanos());
    let more_ns = period_ns * u128::from(quota.burst().saturating_sub(2)) / count;
    let more = Duration::from_nanos(u64::try_from(more_ns).unwrap_or(u64::MAX));
    // The first part was rounded up to a nanosecond, which must not become a second.
    reset.saturating_add(more).saturating_sub(Duration::from_nanos(1))
}

fn seconds_up(span: Duration) -> u64 {
    span.as_secs() + u64::from(span.subsec_nanos() > 0)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use serde_json::Value;
    use tidegate_core::{State, Time, decide};

    use super::*;

    fn call(dialect: Dialect, words: &[&str]) -> Result<Throttle, Refused> {
        let words = || words.iter().map(|word| word.as_bytes());
        let mut last = None;
        let first = Throttle::read(dialect, words(), &mut last);
        // Repeated, it is read as it was.
        assert_eq!(Throttle::read(dialect, words(), &mut last), first);
        first.map(|(_, throttle)| throttle)
    }

    /// The conversations that were recorded from redis-cell or from throttlecrab.
    fn recorded(file: &str) -> Vec<Value> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors").join(file);
        let text = fs::read_to_string(&path);
        let text = text.unwrap_or_else(|error| panic!("{}, which this test replays: {error}", path.display()));
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[test]
    fn each_recorded_conversation_is_answered_as_redis_cell_does() {
        let conversations = recorded("cl-throttle.jsonl");
        assert_eq!(conversations.len(), 90);
        for conversation in conversations {
            let (mut state, mut now, mut before) = (State::FULL, Time::from_secs(1_764_428_645), None);
            for step in conversation["calls"].as_array().unwrap() {
                now = now.saturating_add(Duration::from_millis(step["wait_ms"].as_u64().unwrap_or(0)));
                let words: Vec<_> =
                    step["args"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
                match call(Dialect::Cell, &[&["k"], &words[..]].concat()) {
                    Ok(throttle) => {
                        if let Some(before) = before.filter(|before| *before != throttle.quota) {
                            state = tidegate_core::carry_over(&before, &throttle.quota, state, now);
                        }
                        before = Some(throttle.quota);
                        let (decision, next) = decide(&throttle.quota, state, throttle.cost, now);
                        state = next;
                        let reply = Value::from(throttle.reply(&decision).to_vec());
                        assert_eq!(reply, step["reply"], "{words:?} of {conversation}");
                    }
                    Err(refused) => assert_eq!(step["reply"]["error"], refused.to_string(), "{words:?}"),
                }
            }
        }
    }

    /// throttlecrab cuts seconds where they are rounded up here, and time went on while it was asked.
    #[test]
    fn each_recorded_call_of_throttlecrab_is_answered_alike() {
        let conversations = recorded("throttle.jsonl");
        assert_eq!(conversations.len(), 140);
        for conversation in conversations {
            let (mut state, now) = (State::FULL, Time::from_secs(1_764_428_645));
            for (i, step) in conversation["calls"].as_array().unwrap().iter().enumerate() {
                let words: Vec<_> =
                    step["args"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
                if i > 0 && words[1..3] == ["1000000", "1"] {
                    // Between two calls all of it came back.
                    continue;
                }
                let throttle = call(Dialect::Crab, &[&["k"], &words[..]].concat()).unwrap();
                let (decision, next) = decide(&throttle.quota, state, throttle.cost, now);
                state = next;
                let (ours, theirs) = (throttle.reply(&decision), &step["reply"]);
                assert_eq!(ours[..3], [0, 1, 2].map(|i| theirs[i].as_i64().unwrap()), "{words:?}: {theirs}");
                let [reset, retry] = [3, 4].map(|i| ours[i] - theirs[i].as_i64().unwrap());
                assert!((0..=1).contains(&reset), "{words:?}: {ours:?} beside {theirs}");
                // What can never pass has no wait here.
                let is_never = decision.retry_after().is_none() && !decision.is_allowed();
                assert!(is_never || (0..=1).contains(&retry), "{words:?}: {ours:?} beside {theirs}");
            }
        }
    }

    #[test]
    fn both_dialects_say_what_is_left_in_their_own_words() {
        let decided = |dialect, state| {
            let throttle = call(dialect, &["k", "4", "2", "1"]).unwrap();
            throttle.reply(&decide(&throttle.quota, state, throttle.cost, Time::from_secs(100)).0)
        };
        assert_eq!(decided(Dialect::Cell, State::FULL), [0, 5, 4, -1, 1]);
        assert_eq!(decided(Dialect::Crab, State::FULL), [1, 4, 3, 2, 0]);
        let empty = State::from_parts(5, Time::from_secs(100));
        assert_eq!(decided(Dialect::Cell, empty), [1, 5, 0, 1, 3]);
        let empty = State::from_parts(4, Time::from_secs(100));
        assert_eq!(decided(Dialect::Crab, empty), [0, 4, 0, 3, 1]);
    }

    #[test]
    fn numbers_that_make_no_limit_are_refused_by_name() {
        let refused = |words: &[&str]| call(Dialect::Cell, words).unwrap_err().to_string();
        assert_eq!(refused(&["k", "15", "0", "60"]), "Cell error: Store error: Zero rates are not supported");
        assert_eq!(refused(&["k", "-1", "30", "60"]), "ERR max_burst must not be negative");
        assert_eq!(refused(&["k", "15", "30", "60", "-1"]), "ERR quantity must not be negative");
        assert!(refused(&["k", "15", "30", "9223372036854775807"]).starts_with("ERR "));
    }
}
