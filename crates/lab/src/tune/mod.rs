//! Which limit leaves the callers of a log alone.
//!
//! Not a search by trying: for one key and one rate, the burst that it needs is the greatest backlog of a single pass
//! (`backlog`). A burst leaves a key untouched exactly if it is no less than that, so for one rate the needs of all
//! keys, in order, answer every question about bursts at once. Over the count of `N/period` (burst N) the number of
//! touched keys never grows, since more of both admits whatever less does; so the smallest count is found by halving.

mod apart;
mod arrivals;
mod backlog;
mod picture;
mod search;
mod show;

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use tidegate_core::{PeriodText, Quota, Rate};
use tidegate_policy::{ClientAddress, KeyParts, Policies, Policy, PolicyError};

use crate::log::Feeds;
use crate::replay::{Intake, Options, Progress, stream};
use crate::tune::arrivals::Gather;

pub use apart::Rule;
pub use picture::to_bars;
pub use show::{to_json, to_text, to_toml};

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Ask {
    /// Which share stays untouched.
    pub allow: Allow,
    /// A share of what.
    pub of: Of,
    /// The periods of the limits.
    pub periods: Vec<Duration>,
    /// Whom to set apart: they count neither as untouched nor as touched.
    pub set_apart: Vec<Rule>,
}

/// A share of what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Of {
    /// Of the clients: so many are never denied.
    #[default]
    Clients,
    /// Of the requests: so many pass.
    Requests,
}

impl Of {
    /// What it is a share of, in a word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Clients => "clients",
            Self::Requests => "requests",
        }
    }
}

/// A share that stays untouched, such as `99.9%`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allow {
    /// Billionths.
    share: u64,
}

const WHOLE: u64 = 1_000_000_000;

impl Allow {
    /// The most of `all` that may be touched: whatever is not allowed, rounded down.
    #[must_use]
    pub fn most_touched(self, all: u64) -> u64 {
        // At most `all`.
        (u128::from(all) * u128::from(WHOLE - self.share) / u128::from(WHOLE)) as u64
    }
}

impl FromStr for Allow {
    type Err = &'static str;

    /// Reads a share in percent, with at most seven digits behind the point.
    ///
    /// # Errors
    /// It is none.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const WRONG: &str = "expected a share in percent, such as 99.9%";
        let number = text.strip_suffix('%').ok_or(WRONG)?;
        let (whole, part) = number.split_once('.').unwrap_or((number, ""));
        let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || whole.len() > 3 || part.len() > 7 || !is_digits(whole) || !is_digits(part) {
            return Err(WRONG);
        }
        let share = format!("{whole}{part:0<7}").parse().map_err(|_| WRONG)?;
        if share > WHOLE { Err(WRONG) } else { Ok(Self { share }) }
    }
}

impl fmt::Display for Allow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, part) = (self.share / 10_000_000, format!("{:07}", self.share % 10_000_000));
        match part.trim_end_matches('0') {
            "" => write!(f, "{whole}%"),
            part => write!(f, "{whole}.{part}%"),
        }
    }
}

/// What was found.
#[derive(Clone, Debug)]
pub struct Answer {
    /// What was asked for.
    pub ask: Ask,
    /// Whose requests are counted together, in words.
    pub key: String,
    /// The same, as a file has it.
    pub key_text: String,
    /// What was read.
    pub(crate) intake: Intake,
    /// How many requests, and of how many keys.
    pub requests: u64,
    /// See above.
    pub clients: u64,
    /// Those who were set apart: by which rule, how many keys, and how many requests of them.
    pub apart: Vec<(Rule, u64, u64)>,
    /// The most clients, or requests, that may be touched.
    pub most_touched: u64,
    /// For each period.
    pub periods: Vec<ForPeriod>,
}

impl Answer {
    /// Logs that end where they should not, in words.
    #[must_use]
    pub fn broken(&self) -> &[String] {
        &self.intake.broken
    }
}

/// The limits of one period that do.
#[derive(Clone, Debug)]
pub struct ForPeriod {
    /// The smallest `N/period`.
    pub first: Candidate,
    /// For a range of counts, the smallest burst.
    pub candidates: Vec<Candidate>,
}

/// A limit that does, and that is the smallest of its kind.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The limit.
    pub quota: Quota,
    /// Whom it touches.
    pub touch: Touch,
    /// Whom it touches of those set apart.
    pub apart: Touch,
    /// The next smaller one, which touches too many; `None` if there is none.
    pub smaller: Option<(Quota, Touch)>,
    /// Who is hit most: the key, its requests, and those that are denied.
    pub hit: Vec<(String, u64, u64)>,
}

/// Whom a limit touches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Touch {
    /// Clients that are denied at least once.
    pub clients: u64,
    /// Requests that are denied.
    pub denied: u64,
}

/// Reads logs, and finds the limits that leave the share alone. Everything is kept: 16 bytes for each request.
///
/// # Errors
/// Such a key cannot be.
pub fn tune(
    feeds: &mut Feeds,
    key: &KeyParts,
    client: ClientAddress,
    ask: Ask,
    options: &Options,
    progress: &mut dyn FnMut(Progress),
) -> Result<Answer, PolicyError> {
    // A limit, so that requests have keys; what it says does not matter.
    let some = Rate::new(1, Duration::from_secs(1)).and_then(Quota::new).map(Into::into);
    let policy = Policy::new("tune", key.clone()).with_limits(some, tidegate_core::Mode::Enforce);
    let policies = Policies::new(client, vec![policy])?;
    let mut gather = Gather::new(policies, ask.set_apart.clone());
    let intake = stream(feeds, options, &mut gather, progress);
    let arrivals = gather.finish();
    let all = match ask.of {
        Of::Clients => arrivals.keys(),
        Of::Requests => arrivals.requests(),
    };
    let most_touched = ask.allow.most_touched(all);
    let periods = ask.periods.iter().filter_map(|period| search::for_period(&arrivals, *period, ask.of, most_touched));
    let apart = |rule: &Rule| {
        let of_it = arrivals.each_apart().filter(|(its, _)| its == rule);
        of_it.fold((*rule, 0, 0), |(rule, keys, requests), (_, times)| (rule, keys + 1, requests + times.len() as u64))
    };
    Ok(Answer {
        apart: ask.set_apart.iter().map(apart).collect(),
        periods: periods.collect(),
        key: key.to_string(),
        key_text: key.to_text(),
        intake,
        requests: arrivals.requests(),
        clients: arrivals.keys(),
        most_touched,
        ask,
    })
}

/// A quota as it is written.
pub(crate) fn written(quota: &Quota) -> String {
    quota.to_string()
}

/// A period as it is written.
pub(crate) fn period_text(quota: &Quota) -> String {
    PeriodText(quota.rate().period()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_exact() {
        let allow: Allow = "99%".parse().unwrap();
        assert_eq!((allow.most_touched(1_753), allow.to_string()), (17, "99%".to_owned()));
        assert_eq!("99.9%".parse::<Allow>().unwrap().most_touched(1_000), 1);
        assert_eq!("100%".parse::<Allow>().unwrap().most_touched(u64::MAX), 0);
        assert_eq!("99.9999999%".parse::<Allow>().unwrap().to_string(), "99.9999999%");
        for wrong in ["99", "%", "100.1%", "-1%", "9.9.9%", "99.99999999%"] {
            assert!(wrong.parse::<Allow>().is_err(), "{wrong}");
        }
    }
}
