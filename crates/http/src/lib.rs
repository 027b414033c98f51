//! Tidegate for HTTP services: one tower layer around a service of axum, tonic or hyper.
//!
//! A request comes in; an [`Ask`] decides; the service is called, or a denial is answered. Both answers say what the
//! limit is and what is left of it, in the header fields that clients know ([`Dialect`]).
//!
//! ```
//! use std::sync::Arc;
//! use http::Request;
//! use tidegate::Limiter;
//! use tidegate_http::LimitLayer;
//!
//! #[derive(Clone)]
//! struct User(u64);
//!
//! let limiter = Arc::new(Limiter::new("100/min burst 20".parse()?));
//! // The user was put there by the layer that knows who is logged in.
//! let layer = LimitLayer::new(limiter).key(|request: &Request<String>| Some(request.extensions().get::<User>()?.0));
//! # let _ = layer;
//! # Ok::<(), tidegate::LimitError>(())
//! ```
//!
//! What it keeps to:
//!
//! - A limit is charged once per request, however many layers of one service carry it ([`LimitLayer::on_repeat`]).
//! - The way of an allowed request has no box, no task and no lock that outlives the decision, unless its response says
//!   what it is charged.
//! - An inner service is called only after it said that it is ready, and never for a request that was denied.
//! - Nothing that a caller sent is repeated raw: neither in a field nor in a body.
//! - It reads no clock and keeps no buckets; the [`tidegate`] crate does.
//!
//! Read the modules in this order: `ask`, `layer`, `service`, `future`, `body` for the road; `by_key` and
//! `by_policies` for what decides, `onlooker` for who sees it; `course`, `awaited` and `errand` for requests whose
//! response matters; `report`, `roster`, `fields` for what a client is told; `denial`, `problem`, `grpc` for how it is
//! told no, and `cors` for who may read it.

#![forbid(unsafe_code)]

mod ask;
mod attributes;
mod awaited;
mod body;
mod by_key;
mod by_policies;
mod cors;
mod course;
mod denial;
mod errand;
mod fields;
mod future;
mod grpc;
mod layer;
mod once;
mod onlooker;
mod preflight;
mod problem;
mod report;
mod roster;
mod service;
mod text;
#[cfg(feature = "wait")]
mod wait;

pub use ask::{Ask, Asked, Later, Ruled, Ruling};
pub use attributes::{PeerLookup, RequestAttributes, TellTime, peer_in_extensions};
pub use awaited::Awaited;
pub use body::LimitBody;
pub use by_key::ByKey;
pub use by_policies::{ByPolicies, Sight};
pub use cors::{Cors, CorsError, ORIGINS_MAX};
pub use denial::{Denial, Reason};
pub use errand::Task;
pub use fields::{Dialect, Dialects, Reset, UnknownDialect};
pub use future::LimitFuture;
pub use grpc::{failed_call, is_grpc_call};
pub use layer::LimitLayer;
pub use onlooker::{Onlook, Onlooker};
pub use report::Report;
pub use roster::NAME_BYTES_MAX;
pub use service::LimitService;
#[cfg(feature = "wait")]
pub use wait::{WaitLayer, WaitService, WaitServiceError};

pub use tidegate;
pub use tidegate::policy::{ClientAddress, OnMissing, Peer};
