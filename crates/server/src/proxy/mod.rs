//! The road between both sides: a service that passes requests on, or tells a joke where nothing stands behind it.
//!
//! Read `service`, then `forward` (what changes in the fields) and `manner` (what is waited for, and how failures are
//! told).

pub(crate) mod forward;
pub(crate) mod grpc_timeout;
pub(crate) mod joke;
pub(crate) mod manner;
pub(crate) mod problem;
pub(crate) mod service;
