//! Faults that users of other limiters reported, each as a script that shows it does not happen here.
//!
//! Named by the id of the report; `script` describes the scripts.

mod changes;
mod clocks;
mod counters;
mod counting;
mod edges;
mod extreme_values;
mod logs;
mod precision;
mod script;
mod several;
mod waits;
