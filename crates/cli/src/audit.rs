//! `tidegate audit`: what limiter stands behind a URL.

use std::time::Duration;

use clap::Args;
use tidegate::{Limit, Quota};
use tidegate_lab::audit::{self, AuditError, BUDGET, DENIALS, Expectation, Options};
use tidegate_lab::wire::{HeaderName, StatusCode};

use crate::call_flags::{self, CallFlags};
use crate::flags::{self, Fails};
use crate::say;

/// Find out what limiter stands behind a URL, by asking it: its kind, burst and rate, and whether it keeps its word.
///
/// It asks within a budget, and only this machine unless told that the host is yours. Each kind of limiter is held
/// against every answer, and the one that explains them is reported.
#[derive(Args)]
pub(crate) struct Audit {
    #[command(flatten)]
    calls: CallFlags,

    /// The limit that it should have, such as '10/s burst 20'. If it has another, the program ends with exit code 3.
    #[arg(long, value_name = "LIMIT", value_parser = quota)]
    expect: Option<Quota>,

    /// The header field that bears the callers' key, such as x-api-key: with keys of its own to use up, an audit need
    /// not wait until one has rested.
    #[arg(long, value_name = "NAME")]
    key_header: Option<HeaderName>,

    /// Calls, at most.
    #[arg(long, value_name = "CALLS", default_value_t = BUDGET, value_parser = clap::value_parser!(u32).range(10..=1_000_000))]
    budget: u32,

    /// How long it may take.
    #[arg(long, value_name = "SPAN", default_value = "2min", value_parser = call_flags::span)]
    time: Duration,

    /// The statuses that say that a call is denied.
    #[arg(long, value_name = "STATUS", value_delimiter = ',', default_values_t = DENIALS.map(|status| status.as_u16()))]
    denied: Vec<u16>,

    /// Print one JSON object for machines.
    #[arg(long)]
    json: bool,
}

impl Audit {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let statuses = self.denied.iter().map(|status| {
            StatusCode::from_u16(*status).map_err(|_| flags::Wrong::new(format_args!("--denied {status} is no status")))
        });
        let options = Options {
            key_field: self.key_header.clone(),
            denials: statuses.collect::<Result<_, _>>()?,
            budget: self.budget,
            time: self.time,
        };
        let calling = self.calls.calling(concat!("tidegate-audit/", env!("CARGO_PKG_VERSION")));
        let report = audit::audit(calling, &options, &mut |what, calls| {
            say::progress(&format!("audit: {what} ({calls} of {} calls)", self.budget));
        });
        say::progress("");
        let report = match report {
            Err(AuditError::Open(error)) => return Err(flags::Wrong::new(error).into()),
            report => report?,
        };
        let checks = self.expect.map(|quota| Expectation::new(quota).checks(&report));
        if self.json {
            let mut object = report.to_json();
            if let Some(checks) = &checks {
                object["checks"] = checks.to_json();
            }
            say::answer(format!("{object:#}\n").as_bytes())?;
        } else {
            say::styled(&format!("{}{}", report.to_text(), checks.as_ref().map(|c| c.to_text()).unwrap_or_default()))?;
        }
        match (self.expect, checks) {
            (Some(quota), Some(checks)) if !checks.hold() => {
                Err(Fails::new(format_args!("the limit is not '{quota}', as --expect says")).into())
            }
            _ => Ok(()),
        }
    }
}

fn quota(text: &str) -> Result<Quota, String> {
    match flags::limit(text).map_err(|error| error.to_string())? {
        Limit::Quota(quota) => Ok(quota),
        Limit::Block { .. } | Limit::Unlimited => {
            Err("expected a limit with a rate, such as '10/s burst 20'".to_owned())
        }
    }
}
