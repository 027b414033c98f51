//! What is sent to a collector of traces.

use clap::Args;
use tidegate_server::{OtlpEndpoint, Sample, TraceSetup};

use super::Group;
use super::field::{Field, Given};

/// What is sent to a collector of traces.
#[derive(Args, Clone, Default)]
pub(crate) struct Traces {
    /// Where spans of requests are sent, as OTLP over HTTP, such as http://127.0.0.1:4318. Without it there are none.
    #[arg(long, value_name = "URL")]
    otlp: Option<Given<OtlpEndpoint>>,

    /// The share of the requests that is traced, such as 0.01. Trusted peers decide by themselves, with traceparent.
    /// [default: 1]
    #[arg(long, value_name = "SHARE")]
    trace_sample: Option<Given<Sample>>,
}

impl Group for Traces {
    fn fields(&mut self) -> Vec<(&'static str, &mut dyn Field)> {
        vec![("otlp", &mut self.otlp), ("trace_sample", &mut self.trace_sample)]
    }
}

impl Traces {
    /// Where spans are sent, and of which requests; `None` if they are not.
    pub(crate) fn setup(&self) -> Option<TraceSetup> {
        let endpoint = OtlpEndpoint::clone(self.otlp.as_deref()?);
        Some(TraceSetup { endpoint, sample: self.trace_sample.as_deref().copied().unwrap_or_default() })
    }
}
