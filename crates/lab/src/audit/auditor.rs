//! Whoever asks: within a budget of calls and of time, and everything is written down.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use futures_util::future::join_all;
use http::header::{DATE, HeaderName, HeaderValue, RETRY_AFTER};
use http::{HeaderMap, StatusCode};
use tidegate::Time;

use super::notebook::{Call, Notebook};
use crate::wire::{Answer, Caller, Exchange};

/// Calls in a row without an answer that counts, after which an audit ends.
const FAILED_MAX: u32 = 5;

/// Why an audit ends before its plan does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// The budget of calls is spent.
    Calls,
    /// The time is over.
    Time,
    /// The service does not answer, or not as one that limits.
    Broken(String),
}

/// What is asked, on a clock of its own.
pub(super) trait Service {
    fn now(&self) -> Time;

    async fn wait_until(&self, then: Time);

    /// Calls once, with these fields.
    async fn call(&self, fields: &[(HeaderName, HeaderValue)]) -> Exchange;
}

impl Service for Caller {
    fn now(&self) -> Time {
        self.now()
    }

    async fn wait_until(&self, then: Time) {
        self.wait_until(then).await;
    }

    async fn call(&self, fields: &[(HeaderName, HeaderValue)]) -> Exchange {
        self.call(None, fields, None).await
    }
}

/// Hears what is tried, and how many calls were made.
pub(super) type Progress<'a> = &'a mut dyn FnMut(&str, u32);

/// Asks one service.
pub(super) struct Auditor<'a, S> {
    service: &'a S,
    /// The field that bears the key, if the audit may choose it.
    key_field: Option<HeaderName>,
    /// Statuses that say "denied".
    denials: &'a [StatusCode],
    budget: u32,
    end: Time,
    spent: Cell<u32>,
    /// Failures since the last answer that counts.
    failing: Cell<u32>,
    key: Cell<u32>,
    notebook: RefCell<Notebook>,
    progress: RefCell<Progress<'a>>,
}

impl<'a, S: Service> Auditor<'a, S> {
    pub(super) fn new(service: &'a S, options: &'a super::Options, progress: &'a mut dyn FnMut(&str, u32)) -> Self {
        Self {
            service,
            key_field: options.key_field.clone(),
            denials: &options.denials,
            budget: options.budget,
            end: service.now().saturating_add(options.time),
            spent: Cell::new(0),
            failing: Cell::new(0),
            key: Cell::new(0),
            notebook: RefCell::default(),
            progress: RefCell::new(progress),
        }
    }

    /// Tells what is tried now.
    pub(super) fn say(&self, what: &str) {
        (self.progress.borrow_mut())(what, self.spent.get());
    }

    pub(super) fn read<T>(&self, look: impl FnOnce(&Notebook) -> T) -> T {
        look(&self.notebook.borrow())
    }

    pub(super) fn spent(&self) -> u32 {
        self.spent.get()
    }

    /// This part of the whole budget, or what is left of it if that is less. Calls.
    pub(super) fn share(&self, part: f64) -> u32 {
        ((f64::from(self.budget) * part) as u32).min(self.budget - self.spent.get())
    }

    pub(super) fn now(&self) -> Time {
        self.service.now()
    }

    pub(super) fn time_left(&self) -> Duration {
        self.end.since(self.now())
    }

    /// The key that calls are made under now.
    pub(super) fn key(&self) -> u32 {
        self.key.get()
    }

    /// Goes on under a key that was never used, if the audit may choose it.
    pub(super) fn renew_key(&self) -> bool {
        let can = self.key_field.is_some();
        self.key.set(self.key.get() + u32::from(can));
        can
    }

    /// Gives the choice of keys up: the field is not what the service goes by.
    pub(super) fn forget_keys(&mut self) {
        self.key_field = None;
        self.key.set(0);
        self.notebook.get_mut().calls.iter_mut().for_each(|call| call.key = 0);
    }

    pub(super) fn has_keys(&self) -> bool {
        self.key_field.is_some()
    }

    /// Waits.
    pub(super) async fn wait(&self, span: Duration) -> Result<(), Stop> {
        self.wait_until(self.now().saturating_add(span)).await
    }

    pub(super) async fn wait_until(&self, then: Time) -> Result<(), Stop> {
        if then > self.end {
            return Err(Stop::Time);
        }
        self.service.wait_until(then).await;
        Ok(())
    }

    /// Calls once.
    pub(super) async fn call(&self) -> Result<Call, Stop> {
        loop {
            if let Some(call) = self.try_call().await? {
                return Ok(call);
            }
        }
    }

    /// Calls so often at once, and tells of those that were answered.
    pub(super) async fn wave(&self, width: u32) -> Result<Vec<Call>, Stop> {
        let calls = join_all((0..width).map(|_| self.try_call())).await;
        let answered: Result<Vec<_>, _> = calls.into_iter().collect();
        Ok(answered?.into_iter().flatten().collect())
    }

    /// Calls under another identity, which is not written down: was it admitted?
    pub(super) async fn call_as(&self, fields: &[(HeaderName, HeaderValue)]) -> Result<bool, Stop> {
        let exchange = self.exchange(fields).await?;
        Ok(exchange.outcome.is_ok_and(|answer| self.is_admitted(&answer) == Some(true)))
    }

    async fn try_call(&self) -> Result<Option<Call>, Stop> {
        let key = self.key.get();
        let exchange = self.exchange(&self.identity(key)).await?;
        let answer = exchange.outcome.map_err(|error| error.to_string());
        let verdict = answer.as_ref().ok().and_then(|answer| self.is_admitted(answer));
        let mut notebook = self.notebook.borrow_mut();
        let (Ok(answer), Some(is_admitted)) = (&answer, verdict) else {
            notebook.failed += 1;
            self.failing.set(self.failing.get() + 1);
            let why = answer.map_or_else(|error| error, |answer| format!("it answers {}", answer.status));
            return if self.failing.get() < FAILED_MAX { Ok(None) } else { Err(Stop::Broken(why)) };
        };
        self.failing.set(0);
        let claim = retry_after(&answer.fields);
        let call = Call { key, sent: exchange.sent, answered: exchange.answered, is_admitted, claim };
        match is_admitted {
            true => notebook.passed.clone_from(&answer.fields),
            false => notebook.denied = Some((answer.status.as_u16(), answer.fields.clone())),
        }
        notebook.calls.push(call);
        Ok(Some(call))
    }

    async fn exchange(&self, fields: &[(HeaderName, HeaderValue)]) -> Result<Exchange, Stop> {
        if self.spent.get() >= self.budget {
            return Err(Stop::Calls);
        }
        if self.now() >= self.end {
            return Err(Stop::Time);
        }
        self.spent.set(self.spent.get() + 1);
        Ok(self.service.call(fields).await)
    }

    /// The field that makes a call one of this key.
    pub(super) fn identity(&self, key: u32) -> Vec<(HeaderName, HeaderValue)> {
        let value = || HeaderValue::from_str(&format!("tidegate-audit-{}-{key}", std::process::id())).ok();
        self.key_field.iter().filter_map(|name| Some((name.clone(), value()?))).collect()
    }

    /// Did the service let a call pass, deny it, or fail?
    fn is_admitted(&self, answer: &Answer) -> Option<bool> {
        if self.denials.contains(&answer.status) {
            Some(false)
        } else {
            // What the service says of the request itself is its own affair, if it was asked.
            (!answer.status.is_server_error()).then_some(true)
        }
    }
}

/// What the field promises, be it seconds or a date.
fn retry_after(fields: &HeaderMap) -> Option<Duration> {
    let value = fields.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = |name: HeaderName| httpdate::parse_http_date(fields.get(name)?.to_str().ok()?).ok();
    // Both are the service's, so its clock need not agree with ours.
    Some(date(RETRY_AFTER)?.duration_since(date(DATE)?).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_retry_after_are_read() {
        let fields = |pairs: &[(&'static str, &'static str)]| {
            let pairs =
                pairs.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
            retry_after(&pairs.collect::<HeaderMap>())
        };
        assert_eq!(fields(&[("retry-after", "20")]), Some(Duration::from_secs(20)));
        let date = ("date", "Sun, 29 Nov 2026 15:04:05 GMT");
        let later = ("retry-after", "Sun, 29 Nov 2026 15:04:35 GMT");
        assert_eq!(fields(&[date, later]), Some(Duration::from_secs(30)));
        assert_eq!(fields(&[date, ("retry-after", "soon")]), None);
        assert_eq!(fields(&[]), None);
    }
}
