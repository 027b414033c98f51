//! From requests to charges, as those see it who use the crate; the public reports of faults among them.

#![allow(clippy::unwrap_used, reason = "what cannot be read here is a fault of the test")]

mod client_address;
mod given;
mod keys;
mod laws;
mod limits;
mod one_private_peer;
