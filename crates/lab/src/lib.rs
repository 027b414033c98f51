//! The lab: see what a limit would do, before it is enforced.
//!
//! Everything here runs the same engine as the proxy, the decisions of `tidegate-core` under the policies of
//! `tidegate-policy`, on virtual time: it reads no clock and knows no socket. The exceptions are `load` and `audit`,
//! which ask real services, and `wire`, by which they do.
//!
//! Read the modules in this order: `simulate` (traffic of a pattern against algorithms side by side), `worst` (the most
//! that passed in any window), `log` (access logs, in any common format), `replay` (what a configuration would have done
//! to their requests), `tune` (which limit would leave them alone), `wire` (calls to a service), `load` (traffic
//! sent to a service), `audit` (what limiter stands behind a URL).

#![forbid(unsafe_code)]

pub mod audit;
mod expression;
pub mod load;
pub mod log;
pub mod plot;
pub mod replay;
mod ring;
pub mod simulate;
pub mod tune;
pub mod wire;
mod words;
mod worst;

pub use expression::ConditionError;
pub use worst::{Most, Worst};
