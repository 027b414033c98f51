//! Envoy's rate limit service: asked in JSON, by a client made from the published files, and by a real Envoy.

mod announced;
#[path = "../passing/authority.rs"]
mod authority;
mod calls;
mod json;
mod page;
mod pages;
mod proxy;
#[path = "../passing/python.rs"]
#[allow(dead_code, reason = "each test program uses its own part of it")]
mod python;
mod secure;
mod server;
mod stores;
#[path = "../support/mod.rs"]
mod support;
