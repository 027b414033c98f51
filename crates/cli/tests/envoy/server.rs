//! A decision server that Envoy, or whoever speaks its protocol, asks.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use serde_json::Value;

use crate::support::free_address;
use crate::support::http::{Connection, Reply};
use crate::support::program::{Proxy, command};

/// A server with its face for gRPC.
pub(crate) struct Asked {
    pub(crate) server: Proxy,
    pub(crate) grpc: SocketAddr,
}

impl Asked {
    /// Starts it by these rules, with these flags.
    pub(crate) fn by(rules: &Path, flags: &[&str]) -> Self {
        let grpc = free_address();
        let mut command = command(&["serve", "--http", "127.0.0.1:0", "--resp", "off", "--admin", "127.0.0.1:0"]);
        command.args(["--grpc", &grpc.to_string(), "--ratelimit-config"]).arg(rules).args(flags);
        Self { server: Proxy::started(command), grpc }
    }

    /// Asks over HTTP.
    pub(crate) fn json(&self, call: &str) -> Reply {
        let length = call.len();
        let mut connection = Connection::open(self.server.address);
        let head = format!("POST /json HTTP/1.1\r\nhost: localhost\r\ncontent-length: {length}\r\n\r\n{call}");
        connection.send(head.as_bytes()).unwrap();
        connection.reply("POST").unwrap()
    }

    /// The answer's message.
    pub(crate) fn told(&self, call: &str) -> Value {
        let reply = self.json(call);
        let told = reply.json();
        assert_eq!(reply.status == 429, told["overallCode"] == "OVER_LIMIT", "{reply:?}");
        told
    }
}

/// Writes rules into a file of this folder.
pub(crate) fn written(folder: &Path, name: &str, rules: &str) -> std::path::PathBuf {
    let path = folder.join(name);
    fs::write(&path, rules).unwrap();
    path
}
