//! The faces over real sockets: clients that write bytes, and upstreams that behave or do not.

mod administering;
mod choosing;
mod crossing;
mod draining;
mod elsewhere;
mod entering;
mod failing;
mod frames;
mod grpc;
mod hostile;
mod http2;
mod http2_spec;
mod limiting;
mod logging;
mod multiplexed;
mod operating;
mod passing_on;
mod secured;
mod streaming;
mod support;
mod tracing;
mod tunnelling;
mod upgrading;
