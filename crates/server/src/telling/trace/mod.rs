//! Traces, for those who collect them: one span for each request that is sampled.
//!
//! A span begins and ends with the request's [`Record`]. What goes on to the upstream names it as the parent, so the
//! upstream's spans hang below it. Spans wait in a bounded [`Spool`] for the one thread that sends them
//! ([`Exporter`]), as OTLP in JSON over HTTP: no request waits for a collector.

mod context;
mod endpoint;
mod export;
mod sample;
mod span;
mod span_metrics;

use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use http::HeaderMap;

pub use endpoint::{OtlpEndpoint, OtlpEndpointError};
pub use sample::{Sample, SampleError};
pub use span_metrics::SpanMetrics;

pub(crate) use context::Context;
pub(crate) use export::Exporter;

use crate::telling::record::Record;
use crate::telling::spool::Spool;

/// Who begins and ends spans.
#[derive(Debug)]
pub(crate) struct Tracer {
    sample: Sample,
    /// Numbers that callers cannot guess are hashes of a count, under a key that each process draws for itself.
    random: RandomState,
    drawn: AtomicU64,
    spool: Spool,
    spans: SpanMetrics,
}

/// Where a request stands in its trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    /// This request's own span, which is the parent of what follows.
    pub(crate) own: Context,
    /// The span that it was sent under.
    pub(crate) parent: Option<u64>,
}

impl Tracer {
    pub(crate) fn new(sample: Sample, spans: SpanMetrics) -> Self {
        Self { sample, random: RandomState::new(), drawn: AtomicU64::new(0), spool: Spool::new(), spans }
    }

    pub(crate) fn spool(&self) -> &Spool {
        &self.spool
    }

    /// Finds the request's place in its trace, and writes it into its fields for the upstream. A peer that is believed
    /// says by itself whether it is sampled; of the others a share is.
    pub(crate) fn begin(&self, fields: &mut HeaderMap, is_believed: bool) -> Position {
        let parent = Context::read(fields);
        let is_sampled = match parent {
            Some(parent) if is_believed => parent.is_sampled,
            _ => self.sample.takes(self.draw()),
        };
        let trace = parent.map_or_else(|| u128::from(self.draw()) << 64 | u128::from(self.draw()), |it| it.trace);
        let own = Context { trace, span: self.draw(), is_sampled };
        own.write(fields, parent.is_some());
        Position { own, parent: parent.map(|parent| parent.span) }
    }

    /// Tells of a request that took so long, if it is sampled.
    pub(crate) fn end(&self, position: &Position, record: &Record, took: Duration) {
        if position.own.is_sampled && !self.spool.push(&span::line(position, record, took)) {
            self.spans.dropped(1);
        }
    }

    /// A number that is not zero.
    fn draw(&self) -> u64 {
        self.random.hash_one(self.drawn.fetch_add(1, Relaxed)).max(1)
    }
}
