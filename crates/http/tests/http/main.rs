//! The layer, seen from outside: requests go in, answers come out, and a clock is driven between.

mod edges;
mod given;
