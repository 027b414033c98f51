//! Real clients that speak through the proxy to real servers: gRPC, WebSocket, HTTP/2 and TLS.

mod authority;
mod grpc;
mod https;
mod python;
#[path = "../support/mod.rs"]
mod support;
mod websocket;
