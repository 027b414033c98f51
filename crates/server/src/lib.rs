//! The faces of Tidegate that listen: a reverse proxy, a decision server, and beside both what an operator looks at.
//!
//! What is here moves requests and answers questions. It does not know how a decision is made. Before [`Proxy`] or
//! [`Jokes`] limits come as a tower layer, and what the layer denies never reaches them: [`Gateway`] is where these meet.
//! A [`DecisionServer`] asks for others. Both have one [`Desk`]: policies in force over a store, metrics, an operator.
//!
//! - Each face takes a bound listener and a future that ends it, so a test runs it on port 0.
//! - Each worker is one thread with one runtime; only buckets and counters are shared.
//! - Bodies are passed on frame by frame, never collected. Whatever can grow has a bound in [`Bounds`].
//! - No clock is read here: time-outs are the runtime's, and who wants to know how long something took hands in a clock.
//!
//! The rooms, in the order in which a request comes through them: `client` (from a socket to a request), `gateway` (the
//! limits around what follows), `proxy` (the road between), `upstream` (to an answer). Those of a question: `client`,
//! then `api` (over HTTP, with `json`), `grpc` and `envoy` (the rate limit service) or `resp` (the Redis protocol), with
//! what is `imported` from other services. Beside them `operating` (what an operator sees and does) and `telling`
//! (metrics, access log, traces). Each says at its head what to read first.

#![forbid(unsafe_code)]

mod api;
mod bounds;
mod client;
mod decision_server;
mod desk;
mod envoy;
mod gateway;
mod grpc;
mod imported;
mod json;
mod operating;
mod proxy;
mod resp;
mod telling;
mod undone;
mod upstream;

pub use api::{Api, ApiSetup, Callers, api_bounds};
pub use bounds::{Bounds, UpstreamBounds};
pub use client::believed::Believed;
pub use client::connections::Connections;
pub use client::drain::Drain;
pub use client::entrance::Entrance;
pub use client::listen::{ListenAddress, ListenError, Listener, bind};
pub use client::proxy_protocol::{ProxyProtocol, UnknownProxyProtocol};
pub use client::serve::{Setup, serve, serve_all};
pub use client::tls::{CERTIFICATES_MAX, Part, Pem, Tls, TlsError};
pub use client::workers::run;
pub use decision_server::{DecisionServer, DecisionSetup, FaceListeners};
pub use desk::{AccessLogSetup, Desk, DeskSetup, Notice, TraceSetup};
pub use envoy::{EnvoyHeaders, RateLimitSetup, UnknownEnvoyHeaders};
pub use gateway::{Gateway, GatewaySetup};
pub use grpc::{GrpcBody, GrpcSetup};
pub(crate) use imported::imports::Imports;
pub use operating::admin::{Admin, AdminToken, AdminTokenError};
pub use operating::operation::OperationSetup;
pub use proxy::joke::Jokes;
pub use proxy::service::{Answer, Clock, Proxy, ProxySetup};
pub use resp::{Password, Resp, RespMetrics, RespSetup, resp_bounds};
pub use telling::access_log::{LogFormat, LogTarget, UnknownFormat};
pub use telling::admin_metrics::AdminMetrics;
pub use telling::config_metrics::ConfigMetrics;
pub use telling::histogram::Histogram;
pub use telling::limit_metrics::LimitMetrics;
pub use telling::limit_set::LimitSet;
pub use telling::log_lines::LogLines;
pub use telling::metrics::{LimitName, Metrics, PLAIN_TEXT_TYPE, TEXT_TYPE};
pub use telling::outcome_metrics::OutcomeMetrics;
pub use telling::passed_on::{Failed, UpstreamMetrics};
pub use telling::request_metrics::RequestMetrics;
pub use telling::statuses::Statuses;
pub use telling::store_level::StoreLevel;
pub use telling::store_metrics::StoreMetrics;
pub use telling::tls_metrics::TlsMetrics;
pub use telling::trace::{OtlpEndpoint, OtlpEndpointError, Sample, SampleError, SpanMetrics};
pub use undone::{ServedBy, Undone, undone};
pub use upstream::body::{BodyError, ProxyBody};
pub use upstream::name::{HostTold, Upstream, UpstreamError};
pub use upstream::tls::{UpstreamTls, UpstreamTlsError};
pub use upstream::upstreams::{Destination, DestinationError, Upstreams, UpstreamsError};

pub use tidegate_policy::{Peer, Trust};

/// Doors to parsers, for whoever throws bytes at them.
#[cfg(feature = "fuzz")]
pub mod fuzz {
    pub use crate::api::fuzz::call;
    pub use crate::client::proxy_protocol::fuzz::proxy_header;
    pub use crate::envoy::fuzz::rate_limit_call;
    pub use crate::resp::fuzz::commands;
}
