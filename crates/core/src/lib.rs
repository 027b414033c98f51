//! The pure heart of Tidegate: may this caller go on now, and if not, when?
//!
//! A limiter is a function, [`decide`]: it takes a [`Quota`], the [`State`] of one bucket, a [`Cost`] and the
//! [`Time`], and gives back a [`Decision`] and the state that follows. Everything else in Tidegate carries that
//! function to where the state lives.
//!
//! This crate knows no clock, no I/O and no allocation; it is `no_std`, has no dependencies and no unsafe code.
//! All arithmetic is exact: the rate is kept as a ratio of integers and nothing is rounded until it is shown.
//!
//! ```
//! use tidegate_core::{decide, Cost, Limit, Outcome, State, Time};
//! use core::time::Duration;
//!
//! let limit: Limit = "2/min burst 1".parse().unwrap();
//! let quota = limit.quota().expect("a limit with a rate has a quota");
//!
//! let (first, state) = decide(&quota, State::FULL, Cost::ONE, Time::from_secs(0));
//! assert!(first.is_allowed());
//!
//! let (second, _) = decide(&quota, state, Cost::ONE, Time::from_secs(10));
//! assert_eq!(second.outcome(), Outcome::Denied { retry_after: Duration::from_secs(20) });
//! ```
//!
//! Read the modules in this order: `time`, `quota`, `state`, `step`, `token_bucket`, `fixed_window`, `sliding_counter`,
//! `sliding_log`, `decision`, then
//! `limit` (the text that people write), `charge` and `store` (several limits in one step, and where buckets live), and
//! `reservation` (an estimate now, the true cost later).

#![no_std]
#![forbid(unsafe_code)]

mod algorithm;
mod charge;
mod cost;
mod decision;
mod failure;
mod fixed_window;
mod handling;
mod limit;
mod limit_error;
mod period;
mod quota;
mod reservation;
mod sliding_counter;
mod sliding_log;
mod state;
mod step;
mod store;
mod text;
mod time;
mod token_bucket;

pub use algorithm::{Algorithm, UnknownAlgorithm};
pub use charge::{
    CHARGES_MAX, Charge, Held, LimitId, Mode, Source, Standing, Verdict, decide_all, decide_all_with_logs, total_cost,
};
pub use cost::Cost;
pub use decision::{Decision, HeldBy, Outcome, decide, decide_log};
pub use failure::{FailureMode, FailureModeError, Fraction, FractionError};
pub use handling::{AtBound, Handling, Sharing};
pub use limit::Limit;
pub use limit_error::LimitError;
pub use period::PeriodText;
pub use quota::{BURST_MAX, COUNT_MAX, PERIOD_MAX, Quota, QuotaError, Rate};
pub use reservation::{OPEN_FOR, ReservationId, Settled, open_quota, settle, settlements};
pub use sliding_log::{LOG_MAX, Log, LogEntry, LogPlace, LogView};
pub use state::{State, carry_over, full_at, grant, owe};
pub use store::{Kept, Store};

pub use time::Time;
