//! The faces of Tidegate that listen: a reverse proxy, and beside it what an operator looks at.
//!
//! What is here moves requests. It does not know how a decision is made: limits come as a tower layer around
//! [`Proxy`] or [`Jokes`], and what the layer denies never reaches them. [`Gateway`] is where the parts meet.
//!
//! - Each face takes a bound listener and a future that ends it, so a test runs it on port 0.
//! - Each worker is one thread with one runtime; only buckets and counters are shared.
//! - Bodies are passed on frame by frame, never collected. Whatever can grow has a bound in [`Bounds`].
//! - No clock is read here: time-outs are the runtime's, and who wants to know how long something took hands in a clock.
//!
//! Read `serve` and `connection` for the client's side, `proxy` for the road between, `forward` for what changes on
//! it, `upstream`, `pool` and `body` for the other side, `metrics` and `admin` for the operator's.

#![forbid(unsafe_code)]

mod admin;
mod body;
mod bounds;
mod connection;
mod drain;
mod forward;
mod gateway;
mod histogram;
mod joke;
mod listen;
mod metrics;
mod pool;
mod problem;
mod progress;
mod proxy;
mod serve;
mod stream;
mod upstream;
mod workers;

pub use admin::Admin;
pub use body::{BodyError, ProxyBody};
pub use bounds::{Bounds, UpstreamBounds};
pub use drain::Drain;
pub use gateway::{Gateway, GatewaySetup, Notice};
pub use histogram::Histogram;
pub use joke::Jokes;
pub use listen::bind;
pub use metrics::{Connections, Failed, LimitMetrics, LimitName, Metrics, StoreLevel, TEXT_TYPE, UpstreamMetrics};
pub use proxy::{Answer, Clock, Proxy, ProxySetup};
pub use serve::{Setup, serve};
pub use upstream::{Upstream, UpstreamError};
pub use workers::run;

pub use tidegate_policy::{Peer, Trust};
