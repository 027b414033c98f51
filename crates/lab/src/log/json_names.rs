//! The names that programs give to what a request is, in JSON. Of several that stand in a line, the first here counts.

use crate::log::field::{Field, Unit};

/// A name, as a path with points, and what it is.
pub(crate) type Name = (&'static str, Field);

/// Caddy's access log.
pub(crate) const CADDY: &[Name] = &[
    ("ts", Field::Time),
    ("request.client_ip", Field::Client),
    ("request.remote_ip", Field::Client),
    ("request.remote_addr", Field::Client),
    ("request.method", Field::Method),
    ("request.uri", Field::Target),
    ("request.proto", Field::Protocol),
    ("request.host", Field::Host),
    ("request.headers.User-Agent", Field::Agent),
    ("request.headers.Referer", Field::Referer),
    ("request.headers.X-Forwarded-For", Field::Forwarded),
    ("user_id", Field::User),
    ("status", Field::Status),
    ("size", Field::Bytes),
    ("duration", Field::Duration(Unit::S)),
];

/// Traefik's access log.
pub(crate) const TRAEFIK: &[Name] = &[
    ("StartUTC", Field::Time),
    ("ClientHost", Field::Client),
    ("RequestMethod", Field::Method),
    ("RequestPath", Field::Target),
    ("RequestProtocol", Field::Protocol),
    ("RequestHost", Field::Host),
    ("request_User-Agent", Field::Agent),
    ("request_Referer", Field::Referer),
    ("request_X-Forwarded-For", Field::Forwarded),
    ("ClientUsername", Field::User),
    ("DownstreamStatus", Field::Status),
    ("DownstreamContentSize", Field::Bytes),
    ("Duration", Field::Duration(Unit::Ns)),
];

/// Names that people choose.
pub(crate) const USUAL: &[Name] = &[
    ("time", Field::Time),
    ("timestamp", Field::Time),
    ("@timestamp", Field::Time),
    ("ts", Field::Time),
    ("datetime", Field::Time),
    ("start_time", Field::Time),
    ("msec", Field::Time),
    ("time_iso8601", Field::Time),
    ("time_local", Field::Time),
    ("client", Field::Client),
    ("client_ip", Field::Client),
    ("clientip", Field::Client),
    ("remote_addr", Field::Client),
    ("remote_ip", Field::Client),
    ("remote_host", Field::Client),
    ("ip", Field::Client),
    ("src_ip", Field::Client),
    ("downstream_remote_address", Field::Client),
    ("request", Field::Request),
    ("method", Field::Method),
    ("request_method", Field::Method),
    ("verb", Field::Method),
    ("target", Field::Target),
    ("uri", Field::Target),
    ("request_uri", Field::Target),
    ("url", Field::Target),
    ("path", Field::Target),
    ("query", Field::Query),
    ("args", Field::Query),
    ("protocol", Field::Protocol),
    ("server_protocol", Field::Protocol),
    ("host", Field::Host),
    ("http_host", Field::Host),
    ("authority", Field::Host),
    ("server_name", Field::Host),
    ("status", Field::Status),
    ("status_code", Field::Status),
    ("response_code", Field::Status),
    ("response", Field::Status),
    ("code", Field::Status),
    ("body_bytes_sent", Field::Bytes),
    ("bytes_sent", Field::Bytes),
    ("bytes", Field::Bytes),
    ("size", Field::Bytes),
    ("referer", Field::Referer),
    ("referrer", Field::Referer),
    ("http_referer", Field::Referer),
    ("user_agent", Field::Agent),
    ("http_user_agent", Field::Agent),
    ("agent", Field::Agent),
    ("x_forwarded_for", Field::Forwarded),
    ("http_x_forwarded_for", Field::Forwarded),
    ("user", Field::User),
    ("remote_user", Field::User),
    ("request_time", Field::Duration(Unit::S)),
    ("duration_ms", Field::Duration(Unit::Ms)),
    ("duration", Field::Duration(Unit::S)),
];

/// The most names of one table.
pub(crate) const NAMES_MAX: usize = 64;

const _: () = assert!(CADDY.len() <= NAMES_MAX && TRAEFIK.len() <= NAMES_MAX && USUAL.len() <= NAMES_MAX);
