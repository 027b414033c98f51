//! The layer, seen from outside: requests go in, answers come out, and a clock is driven between.

mod answers;
mod connections;
mod cors;
mod edges;
mod elsewhere;
mod examples;
mod fields;
mod given;
mod grpc;
mod keys;
mod once;
mod outcomes;
mod policies;
mod retry_after;
mod services;
#[cfg(feature = "wait")]
mod wait;
