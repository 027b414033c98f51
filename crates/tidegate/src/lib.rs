//! An exact rate limiter for your own process.
//!
//! Say what is allowed, and ask for each request whether it may go on:
//!
//! ```
//! use tidegate::Limiter;
//!
//! // Sustained 100 a minute for each user, of which 20 may come at once.
//! let limiter = Limiter::new("100/min burst 20".parse()?);
//!
//! let answer = limiter.check("user-42");
//! if answer.is_allowed() {
//!     // serve it
//! } else if let Some(seconds) = answer.retry_after_s() {
//!     println!("429, Retry-After: {seconds}");
//! }
//! # Ok::<(), tidegate::LimitError>(())
//! ```
//!
//! A token bucket stands behind it (or a fixed window, if you ask for one). It is exact: over any span d no more than
//! burst + rate x d pass, whatever the interleaving of threads; and waiting as long as the answer says, no less, lets
//! the same request pass. Memory is reserved once and bounded, also when somebody invents keys.
//!
//! # One bucket
//!
//! Without keys there is [`Bucket`]: one cache line, and time as an argument.
//!
//! ```
//! use tidegate::{Bucket, Clock, Cost, Limit, SystemClock};
//!
//! let quota = "50/s burst 10".parse::<Limit>()?.quota().expect("a limit with a rate");
//! let (database, clock) = (Bucket::new(&quota), SystemClock::new());
//! assert!(database.decide_at(Cost::new(10), clock.now()).is_allowed());
//! # Ok::<(), tidegate::LimitError>(())
//! ```
//!
//! # Several limits
//!
//! All of them are charged, or none, so that a request that one limit denies costs nothing under the others:
//!
//! ```
//! use tidegate::Limiter;
//!
//! let limiter = Limiter::builder()
//!     .limit("minute", "5/min".parse()?)
//!     .limit("day", "50/day".parse()?)
//!     .build();
//! for _ in 0..5 {
//!     assert!(limiter.check("client-1").is_allowed());
//! }
//! let answer = limiter.check("client-1");
//! assert_eq!(answer.binding.and_then(|place| limiter.limit_name(place)), Some("minute"));
//! # Ok::<(), tidegate::LimitError>(())
//! ```
//!
//! # A quota for each key
//!
//! Where a user's plan decides, bring the quota with the call. Who changes to another plan keeps what is owed:
//!
//! ```
//! use tidegate::{Limit, Limiter};
//!
//! let limiter = Limiter::new("10/min".parse()?);
//! let pro = "600/min".parse::<Limit>()?.quota().expect("a limit with a rate");
//! assert_eq!(limiter.check("ann").remaining(), Some(9));
//! assert_eq!(limiter.check_quota("ann", &pro, 1)?.remaining(), Some(598));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Costs that are known later
//!
//! What a language model will use is known when it has answered. Reserve an estimate, and settle with the true cost:
//! what was too much is given back, what was too little is owed, at most one further burst.
//!
//! ```
//! use tidegate::Limiter;
//!
//! let limiter = Limiter::new("100000/min".parse()?);
//! let reservation = limiter.reserve_now("ann", 2_000)?;
//! if reservation.is_allowed() {
//!     // call the model; it used 1,340
//!     limiter.settle_now(&reservation, 1_340)?;
//! }
//! assert_eq!(limiter.peek("ann").remaining(), Some(98_660));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Waiting
//!
//! A client that would rather wait than fail stands in line, for a bounded time:
//!
//! ```
//! # #[cfg(feature = "wait")] {
//! use std::time::Duration;
//! use tidegate::Limiter;
//!
//! # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
//! let outbound = Limiter::new("100/s burst 1".parse()?);
//! for _ in 0..3 {
//!     outbound.wait("partner-api", 1, Duration::from_secs(1)).await?;
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Tests that drive the clock
//!
//! ```
//! use std::time::Duration;
//! use tidegate::{Limiter, ManualClock};
//!
//! let clock = ManualClock::new();
//! let limiter = Limiter::builder().limit("per-user", "3/min".parse()?).clock(clock.clone()).build();
//! for _ in 0..3 {
//!     assert!(limiter.check("bob").is_allowed());
//! }
//! assert_eq!(limiter.check("bob").retry_after(), Some(Duration::from_secs(20)));
//! clock.advance(Duration::from_secs(20));
//! assert!(limiter.check("bob").is_allowed());
//! # Ok::<(), tidegate::LimitError>(())
//! ```
//!
//! # The parts
//!
//! [`tidegate_core`] decides, [`tidegate_memory`] keeps buckets in this process, [`tidegate_policy`] turns the
//! attributes of a request into charges. This crate joins them with a clock: read [`Limiter`] first, then [`Gate`],
//! which does the same for policies, then [`Clock`], [`Key`] and [`Memory`].

#![forbid(unsafe_code)]

mod answer;
mod builder;
#[cfg(feature = "policy")]
mod charged;
mod charges;
mod civil;
mod clock;
#[cfg(feature = "policy")]
mod course;
mod demand;
mod denied_keys;
#[cfg(feature = "policy")]
mod gate;
mod key;
mod limiter;
mod memory;
mod most_frequent;
mod owned_charges;
#[cfg(feature = "policy")]
mod penalties;
mod reservation;
mod saved_state;
#[cfg(feature = "redis")]
mod shared;
#[cfg(feature = "wait")]
mod wait;

pub use answer::{Answer, Cause, whole_seconds_up};
pub use builder::LimiterBuilder;
#[cfg(feature = "policy")]
pub use charged::Charged;
pub use civil::CivilTime;
pub use clock::{Clock, ManualClock, SystemClock};
#[cfg(feature = "policy")]
pub use course::{Begun, Course, Open, Reserved, ResponseOutcome, Tally};
pub use demand::Demand;
pub use denied_keys::{DENIED_KEYS_MAX, DeniedKey, DeniedKeys};
#[cfg(feature = "policy")]
pub use gate::{Gate, GateAnswer};
pub use key::Key;
pub use limiter::{Limiter, ReplaceError};
pub use memory::{Memory, MemoryError};
pub use owned_charges::OwnedCharges;
pub use reservation::Reservation;
pub use saved_state::{RestoreError, Saved};
#[cfg(feature = "redis")]
pub use shared::{Shared, SharedError, SharedOptions};
#[cfg(feature = "wait")]
pub use wait::{WAITERS_MAX, WaitError};

pub use tidegate_core::{
    Algorithm, AtBound, CHARGES_MAX, Charge, Cost, Decision, FailureMode, FailureModeError, Fraction, Handling, HeldBy,
    Kept, Limit, LimitError, LimitId, Mode, OPEN_FOR, Outcome, Quota, QuotaError, Rate, ReservationId, Settled,
    Sharing, Source, State, Store, Time, Verdict,
};
pub use tidegate_memory::{Bucket, RESERVATIONS_DEFAULT, TableOptions, TooManyQuotas};
#[cfg(feature = "policy")]
pub use tidegate_policy as policy;
#[cfg(feature = "redis")]
pub use tidegate_redis as redis;
