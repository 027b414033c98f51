//! How much of anything one face takes, and how long it waits.

use std::time::Duration;

/// The least size that can be set for a header section, in bytes: hyper reads in pieces of this size.
const HEADER_BYTES_MIN: usize = 8 * 1024;

/// The bounds of one listening face. Whatever a client or an upstream does, it stays within them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Connections open at once, per worker. Beyond it no connection is accepted until one ends. 8,192 by default.
    pub connections_max: usize,
    /// Bytes of a request's or response's header section, request line included; beyond it 431, or 502 for a
    /// response. 32 KiB by default, 8 KiB at least.
    pub header_bytes_max: usize,
    /// Fields of a header section; beyond it 431, or 502 for a response. 100 by default.
    pub header_fields_max: usize,
    /// Bytes of a request target; beyond it 414. 8 KiB by default.
    pub target_bytes_max: usize,
    /// The time from a new connection, or from the first byte of a further request, to the end of its header section.
    /// Then the connection is cut. 15 seconds by default.
    pub header_timeout: Duration,
    /// The time that a connection may stay idle between requests; it is closed between once and twice this time.
    /// 75 seconds by default.
    pub idle_timeout: Duration,
    /// The time for which a client may take nothing of what is sent to it, or send nothing of the body it announced.
    /// 60 seconds by default.
    pub stall_timeout: Duration,
    /// The greatest age of a connection; then it ends after the requests that it has, or is cut after [`Bounds::grace`].
    /// Each ends between four fifths of it and all of it. Any age by default.
    pub connection_age: Option<Duration>,
    /// The time to finish requests in flight after shutdown began. Then their connections are cut. 30 seconds by
    /// default.
    pub grace: Duration,
    /// Towards the upstream.
    pub upstream: UpstreamBounds,
}

/// The bounds of the way to the upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamBounds {
    /// Idle connections kept open, per worker. 256 by default.
    pub idle_max: usize,
    /// The time that a connection stays open unused, between once and one and a half times. 60 seconds by default.
    pub idle_timeout: Duration,
    /// The time to connect, name resolution included; then 504. 5 seconds by default.
    pub connect_timeout: Duration,
    /// The time from the request, or from the last progress of its body, to the end of the response's header section;
    /// then 504. 60 seconds by default.
    pub answer_timeout: Duration,
    /// The time for which the upstream may send nothing of a response body that it began. 60 seconds by default.
    pub stall_timeout: Duration,
    /// The time for which nothing may pass, in either direction, on what is expected to be silent now and then: a gRPC
    /// call (its head included), an event stream, an upgraded connection. An hour by default.
    pub stream_timeout: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            connections_max: 8192,
            header_bytes_max: 32 * 1024,
            header_fields_max: 100,
            target_bytes_max: 8 * 1024,
            header_timeout: Duration::from_secs(15),
            idle_timeout: Duration::from_secs(75),
            stall_timeout: Duration::from_secs(60),
            connection_age: None,
            grace: Duration::from_secs(30),
            upstream: UpstreamBounds::default(),
        }
    }
}

impl Default for UpstreamBounds {
    fn default() -> Self {
        Self {
            idle_max: 256,
            idle_timeout: Duration::from_secs(60),
            connect_timeout: Duration::from_secs(5),
            answer_timeout: Duration::from_secs(60),
            stall_timeout: Duration::from_secs(60),
            stream_timeout: Duration::from_secs(3600),
        }
    }
}

impl Bounds {
    /// The bounds of an admin listener: a handful of small requests from nearby.
    #[must_use]
    pub fn admin() -> Self {
        Self {
            connections_max: 64,
            header_bytes_max: HEADER_BYTES_MIN,
            header_fields_max: 32,
            target_bytes_max: 6 * 1024,
            header_timeout: Duration::from_secs(5),
            idle_timeout: Duration::from_secs(30),
            stall_timeout: Duration::from_secs(10),
            grace: Duration::from_secs(1),
            ..Self::default()
        }
    }

    pub(crate) fn header_bytes(&self) -> usize {
        self.header_bytes_max.max(HEADER_BYTES_MIN)
    }
}
