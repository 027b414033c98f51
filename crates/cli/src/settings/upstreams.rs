//! Where allowed requests go.

use std::time::Duration;

use clap::Args;
use tidegate_server::Upstream;

use super::Group;
use super::field::{Field, Given, Seconds};

const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// Where allowed requests go.
#[derive(Args, Clone, Default)]
pub(crate) struct Upstreams {
    /// The API to protect, such as http://127.0.0.1:9000.
    #[arg(long, value_name = "URL")]
    upstream: Option<Given<Upstream>>,

    /// Seconds to wait for the upstream's answer before a 504. [default: 60]
    #[arg(long, value_name = "SECONDS")]
    upstream_timeout: Option<Given<Seconds<1, 86_400>>>,
}

impl Group for Upstreams {
    fn fields(&mut self) -> Vec<(&'static str, &mut dyn Field)> {
        vec![("upstream", &mut self.upstream), ("upstream_timeout", &mut self.upstream_timeout)]
    }
}

impl Upstreams {
    pub(crate) fn upstream(&self) -> Option<&Upstream> {
        self.upstream.as_deref()
    }

    pub(super) fn answer_timeout(&self) -> Duration {
        self.upstream_timeout.as_ref().map_or(ANSWER_TIMEOUT, |timeout| timeout.duration())
    }
}
