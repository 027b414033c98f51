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
//! Read `serve`, `entrance` and `connection` for the client's side, `proxy` for the road between, `upstreams` for where
//! it leads, `forward` for what changes on it. Of the other side `route` is the middle: `dial` connects, `pool` keeps
//! connections for HTTP/1.1 and `trunks` those for HTTP/2, `exchange` is one request on its way, `body` and `upload` are
//! what it carries, `upgrade` and `tunnel` what leaves HTTP. `metrics` and `admin` are the operator's.

#![forbid(unsafe_code)]

mod access_log;
mod admin;
mod admin_metrics;
mod believed;
mod body;
mod bounds;
mod called;
mod config_metrics;
mod connection;
mod connections;
mod denied;
mod dial;
mod doors;
mod drain;
mod entrance;
mod exchange;
mod failure;
mod forward;
mod gateway;
mod grpc_timeout;
mod histogram;
mod http2;
mod in_force;
mod joke;
mod limit_metrics;
mod line;
mod listen;
mod log_lines;
mod manner;
mod metrics;
mod observed;
mod operation;
mod outcome_metrics;
mod passed_on;
mod patience;
mod pool;
mod problem;
mod progress;
mod proxy;
mod proxy_protocol;
mod record;
mod request_metrics;
mod route;
mod runtime_overrides;
mod serve;
mod socket;
mod socket_file;
mod spool;
mod statuses;
mod store_level;
mod store_metrics;
mod stream;
mod sweep;
mod tether;
mod tls;
mod tls_metrics;
mod told;
mod trace;
mod translate;
mod trunks;
mod tunnel;
mod undone;
mod upgrade;
mod upload;
mod upstream;
mod upstream_socket;
mod upstream_tls;
mod upstreams;
mod validity;
mod watchdog;
mod workers;

pub use access_log::{LogFormat, LogTarget, UnknownFormat};
pub use admin::{Admin, AdminToken, AdminTokenError};
pub use admin_metrics::AdminMetrics;
pub use believed::Believed;
pub use body::{BodyError, ProxyBody};
pub use bounds::{Bounds, UpstreamBounds};
pub use config_metrics::ConfigMetrics;
pub use connections::Connections;
pub use drain::Drain;
pub use entrance::Entrance;
pub use gateway::{AccessLogSetup, Gateway, GatewaySetup, Notice, TraceSetup};
pub use histogram::Histogram;
pub use joke::Jokes;
pub use limit_metrics::LimitMetrics;
pub use listen::{ListenAddress, ListenError, Listener, bind};
pub use log_lines::LogLines;
pub use metrics::{LimitName, Metrics, PLAIN_TEXT_TYPE, TEXT_TYPE};
pub use operation::OperationSetup;
pub use outcome_metrics::OutcomeMetrics;
pub use passed_on::{Failed, UpstreamMetrics};
pub use proxy::{Answer, Clock, Proxy, ProxySetup};
pub use proxy_protocol::{ProxyProtocol, UnknownProxyProtocol};
pub use request_metrics::RequestMetrics;
pub use serve::{Setup, serve, serve_all};
pub use statuses::Statuses;
pub use store_level::StoreLevel;
pub use store_metrics::StoreMetrics;
pub use tls::{CERTIFICATES_MAX, Part, Pem, Tls, TlsError};
pub use tls_metrics::TlsMetrics;
pub use trace::{OtlpEndpoint, OtlpEndpointError, Sample, SampleError, SpanMetrics};
pub use undone::{Undone, undone};
pub use upstream::{HostTold, Upstream, UpstreamError};
pub use upstream_tls::{UpstreamTls, UpstreamTlsError};
pub use upstreams::{Destination, DestinationError, Upstreams, UpstreamsError};
pub use workers::run;

pub use tidegate_policy::{Peer, Trust};
