//! Why a request was denied, and the answer to it.

use std::time::Duration;

use bytes::Bytes;
use http::{Response, StatusCode, request::Parts};
use tidegate::{HeldBy, Quota, Source, whole_seconds_up};

use crate::layer::Settings;
use crate::{Report, fields, grpc, problem};

/// The wait that a client is told if the store could not answer.
pub(crate) const STORE_RETRY_AFTER: Duration = Duration::from_secs(1);

/// Why a request was denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// A limit is exhausted, or can never let this cost pass.
    Limit,
    /// The store has no room for another key.
    MemoryBound,
    /// The request lacks what its limit goes by.
    MissingKey,
    /// The key is held back for what it did.
    Penalty,
    /// The store could not answer.
    Store,
    /// The limit goes by the address of the client, and the server does not say who its peer is: whoever assembles the
    /// server has to put it into the request's extensions.
    PeerUnknown,
}

/// A denied request.
///
/// Boxed, so that a ruling is no larger than what an allowed request takes with it.
#[derive(Clone, Debug)]
pub struct Denial(Box<Grounds>);

#[derive(Clone, Debug)]
struct Grounds {
    reason: Reason,
    retry_after: Option<Duration>,
    report: Option<Report>,
    source: Source,
}

impl Denial {
    /// A denial by the limit that `report` speaks of.
    #[must_use]
    pub fn by_limit(report: Report) -> Self {
        let (decision, source) = (report.decision(), report.source());
        let retry_after = decision.retry_after();
        // What can never pass is denied by the limit, whoever said so.
        match decision.held_by().filter(|_| retry_after.is_some()) {
            // Nothing is known of the limit.
            Some(HeldBy::StoreDown) => Self::on(Grounds { reason: Reason::Store, retry_after, report: None, source }),
            Some(HeldBy::Penalty) => {
                Self::on(Grounds { reason: Reason::Penalty, retry_after, report: Some(report), source })
            }
            Some(_) => Self::on(Grounds { reason: Reason::MemoryBound, retry_after, report: Some(report), source }),
            None => Self::on(Grounds { reason: Reason::Limit, retry_after, report: Some(report), source }),
        }
    }

    /// A denial because the store could not answer. It may be asked again after `retry_after`.
    #[must_use]
    pub fn by_store(retry_after: Duration) -> Self {
        let source = Source::Store;
        Self::on(Grounds { reason: Reason::Store, retry_after: Some(retry_after), report: None, source })
    }

    pub(crate) fn without_limit(reason: Reason) -> Self {
        Self::on(Grounds { reason, retry_after: None, report: None, source: Source::Store })
    }

    fn on(grounds: Grounds) -> Self {
        Self(Box::new(grounds))
    }

    /// Why.
    #[must_use]
    pub fn reason(&self) -> Reason {
        self.0.reason
    }

    /// The least wait after which the same request passes if nobody else asks; `None` if waiting does not help.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.retry_after
    }

    /// How it stands with the limit that denied; `None` if it was no limit.
    #[must_use]
    pub fn report(&self) -> Option<&Report> {
        self.0.report.as_ref()
    }

    /// Who decided.
    #[must_use]
    pub fn source(&self) -> Source {
        self.0.source
    }

    /// The status of the answer: 429 where the limits deny, also for want of room; 503 where they could not be asked.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        match self.0.reason {
            Reason::Limit | Reason::MemoryBound | Reason::MissingKey | Reason::Penalty => StatusCode::TOO_MANY_REQUESTS,
            Reason::Store => StatusCode::SERVICE_UNAVAILABLE,
            Reason::PeerUnknown => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// What happened, in words for a person: which limit, and when to come back, or that it is of no use.
    ///
    /// The name of the limit is in it as it is; whoever passes the words on escapes them.
    #[must_use]
    pub fn detail(&self) -> String {
        let limit = self.0.report.as_ref().map(|report| called(report.limit_name(), report.decision().quota()));
        let limit = limit.as_deref().unwrap_or("its limit");
        match self.0.reason {
            Reason::Limit if self.0.retry_after.is_some() => format!("{limit}{USED_UP}{}", self.when()),
            Reason::Limit => self.never(limit),
            Reason::MemoryBound => format!("the server has no room for another client under {limit}; {}", self.when()),
            Reason::Penalty => format!("held back for earlier requests, whatever {limit} allows; {}", self.when()),
            Reason::MissingKey => "the request lacks what its limit goes by, so waiting does not help".to_owned(),
            Reason::Store => format!("the server cannot check its limits at present; {}", self.when()),
            Reason::PeerUnknown => "the limit goes by the client's address, which the server does not know".to_owned(),
        }
    }

    fn when(&self) -> String {
        let mut text = String::new();
        push_when(&mut text, self.0.retry_after);
        text
    }

    fn never(&self, limit: &str) -> String {
        let Some(decision) = self.0.report.as_ref().map(Report::decision) else {
            return "waiting does not help".to_owned();
        };
        match decision.quota().burst() {
            0 => format!("{limit} lets nothing pass, so waiting does not help"),
            burst => {
                let cost = decision.cost().tokens();
                format!(
                    "the request costs {cost}, and {limit} lets at most {burst} pass at once, so waiting does not help"
                )
            }
        }
    }
}

/// A limit in words.
pub(crate) fn called(name: &str, quota: &Quota) -> String {
    format!("limit \"{name}\" ({quota})")
}

/// What is said of a limit that lets the request pass later; when follows.
pub(crate) const USED_UP: &str = " is used up; ";

/// Adds when to come back: plain words, which need no escapes anywhere.
pub(crate) fn push_when(text: &mut String, retry_after: Option<Duration>) {
    match retry_after.map(whole_seconds_up) {
        Some(0 | 1) => text.push_str("try again in 1 second"),
        Some(seconds) => {
            let mut digits = itoa::Buffer::new();
            ["try again in ", digits.format(seconds), " seconds"].iter().for_each(|part| text.push_str(part));
        }
        None => text.push_str("waiting does not help"),
    }
}

/// The answer to a denied request: in gRPC's shape if it was gRPC (unless told otherwise), else the user's own, else a problem.
pub(crate) fn answer(denial: &Denial, parts: Parts, settings: &Settings) -> Response<Bytes> {
    let cors = settings.cors.as_deref().map(|cors| (cors, cors.origin(&parts.headers)));
    let mut answer = match &settings.own_answer {
        _ if settings.speaks_grpc && grpc::is_grpc(&parts) => return grpc::answer(denial, settings.dialects),
        Some(own) => own(denial, &parts),
        None => problem::answer(denial, parts.headers),
    };
    if settings.own_answer.is_none() || settings.completes_own_answer {
        if let Some(report) = denial.report() {
            fields::write(settings.dialects, report, answer.headers_mut());
        }
        fields::write_denial(denial, answer.headers_mut());
        if let Some((cors, origin)) = cors {
            cors.write(origin, settings.dialects, answer.headers_mut());
        }
    }
    answer
}
