//! The face that speaks HTTP, over a table in this process, on a driven clock.

mod bodies;
mod described;
mod document;
mod explicit;
mod fields;
mod reserving;
mod stage;
