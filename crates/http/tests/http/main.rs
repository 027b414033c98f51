//! The layer, seen from outside: requests go in, answers come out, and a clock is driven between.

mod answers;
mod connections;
mod edges;
mod elsewhere;
mod examples;
mod fields;
mod given;
mod grpc;
mod keys;
mod once;
mod policies;
mod retry_after;
mod services;
#[cfg(feature = "wait")]
mod wait;
