//! `tidegate explain`: what a limit means.

use std::num::NonZeroU32;
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};
use tidegate::policy::{Explanation, Leases};
use tidegate::{Algorithm, Limit};

use crate::flags::{self, Wrong};
use crate::say;

/// Say in plain words what a limit allows, and what it never lets through.
#[derive(Args)]
pub(crate) struct Explain {
    /// The limit, such as '60/min burst 10', '10/15min', '0/min' or 'unlimited'.
    #[arg(value_parser = flags::limit)]
    limit: Limit,

    /// How the limit is enforced.
    #[arg(long, value_name = "ALGORITHM", default_value_t, value_parser = flags::algorithm())]
    algorithm: Algorithm,

    /// Tokens of one key that each process takes ahead from a store that they share, as `tidegate proxy --leased`.
    #[arg(long, value_name = "TOKENS", value_parser = flags::tokens)]
    leased: Option<NonZeroU32>,

    /// How many processes share that store.
    #[arg(long, value_name = "COUNT", requires = "leased", value_parser = flags::nodes)]
    nodes: Option<NonZeroU32>,

    /// Print one JSON object for machines.
    #[arg(long)]
    json: bool,
}

impl Explain {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let limit = flags::enforced_by(self.limit, self.algorithm)
            .map_err(|error| Wrong::new(format!("'{}' --algorithm {}: {error}", self.limit, self.algorithm)))?;
        let nodes = self.nodes.unwrap_or(NonZeroU32::MIN);
        let explanation = Explanation::of(limit);
        let explanation = match self.leased {
            Some(most) => explanation.with_leases(Leases { most, nodes }),
            None => explanation,
        };
        let text = match self.json {
            true => format!("{:#}\n", to_json(&explanation, self.algorithm)),
            false => explanation.to_string(),
        };
        say::answer(text.as_bytes())
    }
}

fn to_json(explanation: &Explanation, algorithm: Algorithm) -> Value {
    let worst_cases: Vec<_> = explanation
        .worst_cases()
        .into_iter()
        .map(|case| json!({ "window": case.window, "window_ns": ns(case.length), "most": case.most }))
        .collect();
    let limit = explanation.limit();
    let kind = match limit {
        Limit::Block { .. } => "block",
        Limit::Unlimited => "unlimited",
        Limit::Quota(_) => "quota",
    };
    let mut object = json!({ "limit": limit.to_string(), "kind": kind, "never_exceeded": worst_cases });
    if let Limit::Quota(quota) = limit {
        object["algorithm"] = json!(algorithm.name());
        object["count"] = json!(quota.rate().count());
        object["period_ns"] = json!(ns(quota.rate().period()));
        object["burst"] = json!(quota.burst());
        object["fills_in_ns"] = json!(ns(quota.time_to_fill()));
        if let Some(leases) = explanation.leases() {
            object["leased"] = json!({ "most": leases.tokens_each(quota), "nodes": leases.nodes, "tokens_ahead": leases.tokens_ahead(quota) });
        }
    }
    object
}

/// Nanoseconds; the longest spans that there are here, 2^32 years, end as the largest number.
fn ns(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}
