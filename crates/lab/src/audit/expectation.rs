//! Is it the limit that was expected?

use std::time::Duration;

use tidegate_core::Quota;

use super::finding::{Finding, Report};

/// What is right enough, as a part of what was expected.
const LEEWAY: f64 = 0.05;

/// A limit that a service should have.
#[derive(Clone, Copy, Debug)]
pub struct Expectation {
    quota: Quota,
}

/// One thing that was expected, and what was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// What.
    pub what: &'static str,
    /// What was expected.
    pub expected: String,
    /// What was found.
    pub found: String,
    /// Do they agree?
    pub holds: bool,
}

/// All of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checks(pub Vec<Check>);

impl Checks {
    /// Is all as it was expected?
    #[must_use]
    pub fn hold(&self) -> bool {
        self.0.iter().all(|check| check.holds)
    }
}

impl Expectation {
    /// Expects this limit.
    #[must_use]
    pub const fn new(quota: Quota) -> Self {
        Self { quota }
    }

    /// Holds a report against it, within five per cent, and of a burst within one call.
    #[must_use]
    pub fn checks(&self, report: &Report) -> Checks {
        let rate = self.quota.rate().count() as f64 / self.quota.rate().period().as_secs_f64();
        let burst = self.quota.burst();
        let (found_burst, found_rate) = match &report.finding {
            Finding::NoLimit => (None, None),
            Finding::NoReturn { burst, .. } => (Some(*burst), None),
            Finding::Found(limiter) => (Some(limiter.burst), Some(limiter.rate())),
        };
        let told = |number: Option<String>| number.unwrap_or_else(|| "none was found".to_owned());
        let mut checks = vec![
            Check {
                what: "burst",
                expected: burst.to_string(),
                found: told(found_burst.map(|burst| burst.to_string())),
                holds: found_burst.is_some_and(|found| is_near(f64::from(found), burst as f64, 1.0)),
            },
            Check {
                what: "sustained rate",
                expected: format!("{rate:.3}/s"),
                found: told(found_rate.map(|rate| format!("{rate:.3}/s"))),
                holds: found_rate.is_some_and(|found| is_near(found, rate, 0.0)),
            },
        ];
        checks.extend(report.worst.map(|(most, period)| self.worst(most, period)));
        Checks(checks)
    }

    /// A bucket lets its burst through, and what comes back meanwhile; more is too many.
    fn worst(&self, most: u64, period: Duration) -> Check {
        let quota = self.quota;
        let refilled = period.as_secs_f64() / quota.rate().period().as_secs_f64() * quota.rate().count() as f64;
        let bound = quota.burst() as f64 + refilled;
        Check {
            what: "most in a period",
            expected: format!("at most {bound:.0}"),
            found: most.to_string(),
            holds: most as f64 <= bound * (1.0 + LEEWAY) + 1.0,
        }
    }
}

fn is_near(found: f64, expected: f64, more: f64) -> bool {
    (found - expected).abs() <= (LEEWAY * expected).max(more)
}
