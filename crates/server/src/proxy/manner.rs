//! How a request is treated, by what it is: how long is waited, and how it is told of a failure.
//!
//! A gRPC call may be a stream that is silent until something happens, from its very head on. It has a deadline if its
//! client wants one, so the time for ordinary answers is not held against it. An event stream is seen as one by its
//! answer.

use std::time::Duration;

use http::header::{CONTENT_TYPE, HeaderMap};
use http::{Response, StatusCode};
use tidegate_http::{failed_call, is_grpc_call};

use crate::proxy::grpc_timeout::grpc_timeout;
use crate::proxy::problem::problem;
use crate::upstream::patience::Patience;
use crate::{Bounds, ProxyBody};

/// How one request is treated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manner {
    is_grpc: bool,
    pub(crate) patience: Patience,
    stall_timeout: Duration,
    stream_timeout: Duration,
}

impl Manner {
    /// Of a request with these fields.
    pub(crate) fn of(headers: &HeaderMap, bounds: &Bounds) -> Self {
        let (is_grpc, stream_timeout) = (is_grpc_call(headers), bounds.upstream.stream_timeout);
        let patience = match is_grpc {
            false => Patience { answer: bounds.upstream.answer_timeout, client: bounds.stall_timeout },
            true => {
                let answer = grpc_timeout(headers).map_or(stream_timeout, |deadline| deadline.min(stream_timeout));
                Patience { answer, client: stream_timeout }
            }
        };
        Self { is_grpc, patience, stall_timeout: bounds.upstream.stall_timeout, stream_timeout }
    }

    /// For how long the body of an answer with these fields may be silent.
    pub(crate) fn stall_timeout(&self, answer: &HeaderMap) -> Duration {
        let may_be_silent = self.is_grpc || is_event_stream(answer);
        if may_be_silent { self.stream_timeout } else { self.stall_timeout }
    }

    /// For how long nothing may pass on an upgraded connection.
    pub(crate) fn stream_timeout(&self) -> Duration {
        self.stream_timeout
    }

    /// The answer that tells of a failure.
    pub(crate) fn failed(&self, status: StatusCode, detail: &str) -> Response<ProxyBody> {
        match self.is_grpc {
            true => failed_call(status, detail).map(ProxyBody::from),
            false => problem(status, detail),
        }
    }
}

fn is_event_stream(headers: &HeaderMap) -> bool {
    const NAME: &[u8] = b"text/event-stream";
    let kind = headers.get(CONTENT_TYPE).map(|kind| kind.as_bytes());
    kind.and_then(|kind| kind.get(..NAME.len())).is_some_and(|name| name.eq_ignore_ascii_case(NAME))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_may_be_silent_for_how_long() {
        let bounds = Bounds::default();
        let manner = |fields: &[(&'static str, &'static str)]| {
            let fields = fields.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
            Manner::of(&fields.collect(), &bounds)
        };
        let of_kind = |kind: &'static str| HeaderMap::from_iter([(CONTENT_TYPE, kind.parse().unwrap())]);
        let (plain, call) = (manner(&[]), manner(&[("content-type", "application/grpc+proto")]));
        let (minute, hour) = (Duration::from_secs(60), Duration::from_secs(3600));
        assert_eq!((plain.patience.answer, plain.patience.client), (minute, minute));
        assert_eq!((call.patience.answer, call.patience.client), (hour, hour));
        assert_eq!(plain.stall_timeout(&of_kind("application/json")), minute);
        assert_eq!(plain.stall_timeout(&of_kind("Text/Event-Stream; charset=utf-8")), hour);
        assert_eq!(call.stall_timeout(&of_kind("application/grpc")), hour);
        for (timeout, expected) in [("5S", Duration::from_secs(5)), ("2H", hour), ("nonsense", hour)] {
            let call = manner(&[("content-type", "application/grpc"), ("grpc-timeout", timeout)]);
            assert_eq!(call.patience.answer, expected, "{timeout}");
        }
    }
}
