//! `audit`: what limiter stands behind a URL, found by asking it politely.
//!
//! It knows nothing of the limiter but its answers. Some experiments, within a stated budget of calls, bring out what
//! tells limiters apart; then each kind of limiter, with any count and period, is held against every answer, and the one
//! that explains them is reported, with how many it explains.
//!
//! Read the modules in this order: `notebook` (what was asked and answered), `auditor` (who asks), `plan` (the
//! experiments), `model` (the limiters that are known), `fit` (which of them explains the answers), `finding` (what was
//! found), `expectation` (is it what was expected?), `text` and `json` (how it is told).

mod auditor;
mod expectation;
mod fields;
mod finding;
mod fit;
mod json;
mod model;
mod notebook;
mod plan;
#[cfg(test)]
mod tests;
mod text;

use std::fmt;
use std::time::Duration;

use http::StatusCode;
use http::header::HeaderName;

use self::auditor::{Auditor, Service, Stop};
use self::plan::Shown;
use crate::wire::{Caller, Calling, OpenError, Target};

pub use self::expectation::{Check, Checks, Expectation};
pub use self::finding::{Finding, Limiter, Report};
pub use self::model::Kind;
pub use self::plan::Promises;

/// How an audit is carried out.
#[derive(Clone, Debug)]
pub struct Options {
    /// The field that bears the key, if callers choose it: then no key needs to rest between experiments.
    pub key_field: Option<HeaderName>,
    /// The statuses that say that a call is denied.
    pub denials: Vec<StatusCode>,
    /// Calls, at most.
    pub budget: u32,
    /// How long it may take.
    pub time: Duration,
}

/// The statuses by which limiters deny: the right one, and the one that nginx sends unless told otherwise.
pub const DENIALS: [StatusCode; 2] = [StatusCode::TOO_MANY_REQUESTS, StatusCode::SERVICE_UNAVAILABLE];

/// Calls that an audit makes at most, unless told otherwise.
pub const BUDGET: u32 = 2_000;

/// Why there is nothing to report.
#[derive(Debug)]
#[non_exhaustive]
pub enum AuditError {
    /// The target cannot be called, or may not.
    Open(OpenError),
    /// It never answered as a service that works.
    Silent {
        /// What was called.
        target: Target,
        /// What came instead.
        why: String,
    },
}

impl fmt::Display for AuditError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open(error) => error.fmt(f),
            Self::Silent { target, why } => write!(f, "{target}: {why}"),
        }
    }
}

impl std::error::Error for AuditError {}

/// Audits a service. `progress` hears what is tried, and how many calls were made.
///
/// It opens sockets and waits, on a runtime of its own: it is not for use within another.
///
/// # Errors
/// The target cannot be called, may not, or never answers as a service that works.
pub fn audit(calling: Calling, options: &Options, progress: &mut dyn FnMut(&str, u32)) -> Result<Report, AuditError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| AuditError::Open(OpenError::Runtime(error)))?;
    runtime.block_on(async {
        let target = calling.target.clone();
        let caller = Caller::new(calling).await.map_err(AuditError::Open)?;
        audit_service(&caller, target, options, progress).await
    })
}

async fn audit_service<S: Service>(
    service: &S,
    target: Target,
    options: &Options,
    progress: &mut dyn FnMut(&str, u32),
) -> Result<Report, AuditError> {
    let mut auditor = Auditor::new(service, options, progress);
    let (begin, mut shown) = (auditor.now(), Shown::default());
    let mut stop = plan::carry_out(&mut auditor, &mut shown).await.err();
    if let (Some(Stop::Broken(why)), true) = (&stop, auditor.read(|notebook| notebook.calls.is_empty())) {
        return Err(AuditError::Silent { target, why: why.clone() });
    }
    let mut fits = finding::fits(&auditor, &shown);
    if let (Some(best), None | Some(Stop::Calls)) = (fits.first(), &stop) {
        auditor.say("where the guesses that remain disagree");
        stop = plan::sharpen(&auditor, &shown, *best).await.err().or(stop);
        fits = finding::fits(&auditor, &shown);
    }
    let took = auditor.now().since(begin);
    Ok(Report::new(target, &auditor, shown, &fits, stop, took))
}
