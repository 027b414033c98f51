//! From requests to charges, as those see it who use the crate; the public reports of faults among them.

mod client_address;
mod given;
mod keys;
mod laws;
mod limits;
mod matching;
mod one_private_peer;
mod single_key;
mod succession;
