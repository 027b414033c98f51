//! The sliding log: whatever passed is remembered for a period, so at most N tokens pass in any period, exactly.
//!
//! An entry says how many tokens passed at one instant. It counts until a period later, and not at that instant any
//! more. So at instant t the tokens used are those of the entries in (t - p, t], and a request of cost n may pass if
//! used + n <= N. The wait for n ends when enough of the oldest entries have left; nothing is ever rounded.
//!
//! The state is a ring that the store lends ([`ring`]), and never more than N entries: what passes at one instant shares
//! one, and each holds a token at least. Only debts could need more of them; then the newest entry takes them in, and is
//! dated to now, which is in the limit's favour. N is at most [`LOG_MAX`].
//!
//! Entries stand in the order of their instants. A clock that stepped back does not change that: what passes then is
//! dated like the newest entry, unless that stands further ahead than a period, when all that is ahead becomes now.
//!
//! A decision is made on a [`view`] of the log, since only a part of it matters; what passed is then written by the store
//! ([`change`]). [`State`](crate::State) has no room for a log; where one is shown, it is a log of one entry ([`one`]).

mod change;
mod one;
mod ring;
mod view;

pub(crate) use one::{full_at, of_one, remaining, reset_ns, step, wait_ns};
pub use ring::{Log, LogEntry, LogPlace};
pub use view::LogView;

/// The most tokens, and so the most entries, that a sliding log keeps.
pub const LOG_MAX: u64 = 10_000;
