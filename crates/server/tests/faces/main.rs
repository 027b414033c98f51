//! The faces over real sockets: clients that write bytes, and upstreams that behave or do not.

mod draining;
mod elsewhere;
mod failing;
mod hostile;
mod limiting;
mod operating;
mod passing_on;
mod streaming;
mod support;
mod upgrading;
