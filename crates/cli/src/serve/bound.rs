//! Where the faces of the decision server listen, and how to try one.

use std::fmt;

use tidegate_server::ListenAddress;

/// What a first call over HTTP asks.
const TRIED: &str = r#"--json '{"charges": [{"limit": "60/min", "key": "user-42"}]}'"#;

/// The addresses of the faces, as they were found.
pub(super) struct Bound {
    pub(super) http: Option<ListenAddress>,
    pub(super) grpc: Option<ListenAddress>,
    pub(super) resp: Option<ListenAddress>,
    pub(super) is_secure: bool,
}

impl fmt::Display for Bound {
    /// All addresses, as URLs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let secure = if self.is_secure { "s" } else { "" };
        let faces = [("http", &self.http), ("grpc", &self.grpc), ("redis", &self.resp)];
        let urls = faces.into_iter().filter_map(|(scheme, address)| match address.as_ref()? {
            ListenAddress::Tcp { address, .. } => Some(format!("{scheme}{secure}://{address}")),
            unix @ ListenAddress::Unix { .. } => Some(unix.to_string()),
        });
        f.write_str(&urls.collect::<Vec<_>>().join(" and "))
    }
}

impl Bound {
    /// A command that asks one of them.
    pub(super) fn trial(&self) -> String {
        let tls = if self.is_secure { "--tls " } else { "" };
        match (&self.resp, &self.http) {
            (Some(ListenAddress::Tcp { address, .. }), _) => {
                let (ip, port) = (address.ip(), address.port());
                format!("redis-cli {tls}-h {ip} -p {port} cl.throttle user-42 15 30 60")
            }
            (Some(ListenAddress::Unix { path, .. }), _) => {
                format!("redis-cli {tls}-s {} cl.throttle user-42 15 30 60", path.display())
            }
            (None, Some(ListenAddress::Unix { path, .. })) => {
                format!("curl --unix-socket {} http://localhost/v1/check {TRIED}", path.display())
            }
            (None, Some(ListenAddress::Tcp { address, .. })) => {
                format!("curl http{}://{address}/v1/check {TRIED}", if self.is_secure { "s" } else { "" })
            }
            (None, None) => self.grpc_trial(),
        }
    }

    fn grpc_trial(&self) -> String {
        let clear = if self.is_secure { "" } else { "-plaintext " };
        match &self.grpc {
            Some(ListenAddress::Tcp { address, .. }) => format!("grpcurl {clear}{address} grpc.health.v1.Health/Check"),
            Some(ListenAddress::Unix { path, .. }) => {
                format!("grpcurl {clear}-unix {} grpc.health.v1.Health/Check", path.display())
            }
            None => String::new(),
        }
    }
}
