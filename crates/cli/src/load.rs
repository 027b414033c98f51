//! `tidegate load`: traffic of a pattern, sent to a real service.

use std::time::Duration;

use clap::Args;
use tidegate::Limit;
use tidegate_lab::audit::DENIALS;
use tidegate_lab::load::{self, Identity, LoadError, Options};
use tidegate_lab::simulate::{self, Chosen, Pace, PatternError};
use tidegate_lab::wire::HeaderName;

use crate::call_flags::{self, CallFlags};
use crate::flags::{self, Interrupted, Wrong};
use crate::say;

const DEFAULT_PATTERN: &str = "steady:rate=50/s";

/// Send traffic of a pattern to a URL, at its planned instants whether answers come or not, and see what becomes of it.
///
/// Latencies are counted from the planned instants, so a service that stalls is charged with all the waiting. It calls
/// only this machine unless told that the host is yours. The patterns are those of `tidegate simulate --help`.
#[derive(Args)]
pub(crate) struct Load {
    #[command(flatten)]
    calls: CallFlags,

    /// The traffic, as NAME or NAME:param=value,... Repeat it to add patterns up. [default: steady:rate=50/s]
    #[arg(long = "pattern", value_name = "PATTERN", value_parser = pattern)]
    patterns: Vec<Chosen>,

    /// The limit that patterns go by, where they are not told another pace.
    #[arg(long, value_name = "LIMIT", default_value = "60/min", value_parser = pace)]
    limit: Pace,

    /// How long it lasts, such as 90s or 5min. [default: as long as the pattern, or 10s]
    #[arg(long, value_name = "SPAN", value_parser = call_flags::span)]
    duration: Option<Duration>,

    /// How many clients each pattern has. [default: as the pattern likes]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=i64::from(simulate::CLIENTS_MAX)))]
    clients: Option<u32>,

    /// The header field in which each client says its name, such as x-api-key. Without it all are one caller.
    #[arg(long, value_name = "NAME", conflicts_with = "client_addresses")]
    key_header: Option<HeaderName>,

    /// Each client calls from an address of its own, 127.1.0.1 and on; only for services on the loopback.
    #[arg(long)]
    client_addresses: bool,

    /// Call the paths of the pattern, such as /assets/3, rather than the URL's own.
    #[arg(long)]
    paths: bool,

    /// Requests that may be on their way at once; those that are planned meanwhile wait, and are late.
    #[arg(long, value_name = "COUNT", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=20_000))]
    at_once: u32,

    /// The number that all chance comes from.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,

    /// Print one JSON object for machines.
    #[arg(long)]
    json: bool,
}

impl Load {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let options = Options {
            patterns: match self.patterns.is_empty() {
                true => vec![pattern(DEFAULT_PATTERN)?],
                false => self.patterns,
            },
            pace: self.limit,
            clients: self.clients,
            seed: self.seed,
            length: self.duration,
            at_once_max: self.at_once as usize,
            identity: match self.key_header {
                Some(name) => Identity::Field(name),
                None if self.client_addresses => Identity::Address,
                None => Identity::None,
            },
            denials: DENIALS.to_vec(),
            has_paths: self.paths,
        };
        let calling = self.calls.calling(concat!("tidegate-load/", env!("CARGO_PKG_VERSION")));
        let report = load::load(calling, &options, &mut |snapshot| say::progress(&snapshot.to_line()));
        say::progress("");
        let report = report.map_err(|error: LoadError| Wrong::new(error))?;
        if report.clients > 1 && matches!(options.identity, Identity::None) {
            say::warning("all clients come from one address; --key-header or --client-addresses tells them apart");
        }
        match self.json {
            true => say::answer(format!("{:#}\n", report.to_json()).as_bytes())?,
            false => say::styled(&report.to_text())?,
        }
        match (report.is_interrupted, report.passed + report.denied, report.errors.keys().next()) {
            (true, ..) => Err(Interrupted.into()),
            (false, 0, Some(error)) => Err(anyhow::anyhow!("{}: {error}", report.target)),
            _ => Ok(()),
        }
    }
}

fn pattern(text: &str) -> Result<Chosen, PatternError> {
    text.parse()
}

fn pace(text: &str) -> Result<Pace, String> {
    match flags::limit(text).map_err(|error| error.to_string())? {
        Limit::Quota(quota) => Ok(Pace::new(quota.rate().count(), quota.rate().period())),
        Limit::Block { .. } | Limit::Unlimited => Err("expected a limit with a rate, such as '60/min'".to_owned()),
    }
}
