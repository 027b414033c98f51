//! The Redis protocol: what a client of redis-cell or throttlecrab asks, and how it is answered.
//!
//! Read `command` (bytes into words) and `throttle` (words into a limit, a decision into a reply).

mod command;
mod throttle;
