//! Whoever calls: lines are kept open, and each call is timed.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::header::{HOST, HeaderName, HeaderValue};
use http::{HeaderMap, Method, Request, Uri};
use http_body_util::Empty;
use tidegate::{Clock as _, SystemClock, Time};

use super::door::Door;
use super::line::Line;
use super::{Answer, CallError, OpenError, Target, Trust};

/// What all calls have in common.
#[derive(Clone, Debug)]
pub struct Calling {
    /// What is called.
    pub target: Target,
    /// How.
    pub method: Method,
    /// Header fields of each call.
    pub fields: HeaderMap,
    /// After which an answer is no longer waited for.
    pub timeout: Duration,
    /// May the target be another machine?
    pub is_ours: bool,
    /// Whom to trust, over TLS.
    pub trust: Trust,
}

/// One call, and what came of it.
#[derive(Debug)]
pub struct Exchange {
    /// When it was sent: the line was open by then.
    pub sent: Time,
    /// When the whole answer was there.
    pub answered: Time,
    /// What came.
    pub outcome: Result<Answer, CallError>,
}

/// Calls a target, on as many lines as there are calls at once.
pub struct Caller {
    door: Door,
    calling: Calling,
    clock: SystemClock,
    /// The lines that are free, by the address that they come from.
    free: Mutex<HashMap<Option<IpAddr>, Vec<Line>>>,
}

impl Caller {
    /// Finds the way to the target, without calling it.
    ///
    /// # Errors
    /// Its name has no address, it is not allowed, or TLS cannot be set up.
    pub async fn new(calling: Calling) -> Result<Self, OpenError> {
        let door = Door::of(&calling.target, calling.is_ours, &calling.trust).await?;
        Ok(Self { door, calling, clock: SystemClock::new(), free: Mutex::default() })
    }

    /// The time on the clock that calls are timed by.
    #[must_use]
    pub fn now(&self) -> Time {
        self.clock.now()
    }

    /// Are all addresses of the target of this machine's IPv4 loopback, so that there are many to call from?
    #[must_use]
    pub fn is_on_loopback(&self) -> bool {
        self.door.is_on_loopback()
    }

    /// Waits until it is `then`.
    pub async fn wait_until(&self, then: Time) {
        let wait = then.since(self.now());
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
    }

    /// Calls once, at `path` if not at the target's own, with more header fields, from an address if that matters.
    pub async fn call(&self, path: Option<&str>, more: &[(HeaderName, HeaderValue)], from: Option<IpAddr>) -> Exchange {
        let mut sent = self.now();
        let call = self.try_call(path, more, from, &mut sent);
        let outcome = match tokio::time::timeout(self.calling.timeout, call).await {
            Ok(outcome) => outcome,
            Err(_) => Err(CallError::TimedOut),
        };
        Exchange { sent, answered: self.now(), outcome }
    }

    async fn try_call(
        &self,
        path: Option<&str>,
        more: &[(HeaderName, HeaderValue)],
        from: Option<IpAddr>,
        sent: &mut Time,
    ) -> Result<Answer, CallError> {
        loop {
            let mut line = match self.free_line(from) {
                Some(line) => line,
                None => {
                    let stream = self.door.connect(from).await.map_err(CallError::Connect)?;
                    Line::on(stream).await.map_err(CallError::Broken)?
                }
            };
            *sent = self.now();
            // The other side may have closed a line that was kept open, just now: that is no answer of the service's.
            let may_be_stale = !line.is_fresh();
            match line.call(self.request(path, more)).await {
                Ok(answer) => {
                    self.lines().entry(from).or_default().push(line);
                    return Ok(answer);
                }
                Err(error) if may_be_stale && self.was_not_served(&error) => {}
                Err(error) => return Err(CallError::Broken(error)),
            }
        }
    }

    /// Did the other side end the line before it took the request, or may the request be sent twice?
    fn was_not_served(&self, error: &hyper::Error) -> bool {
        let is_unsent = error.is_closed() || error.is_canceled();
        is_unsent || (error.is_incomplete_message() && self.calling.method.is_idempotent())
    }

    /// The line that was used last: the others may close.
    fn free_line(&self, from: Option<IpAddr>) -> Option<Line> {
        let mut lines = self.lines();
        let free = lines.get_mut(&from)?;
        std::iter::from_fn(|| free.pop()).find(Line::is_open)
    }

    fn lines(&self) -> MutexGuard<'_, HashMap<Option<IpAddr>, Vec<Line>>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn request(&self, path: Option<&str>, more: &[(HeaderName, HeaderValue)]) -> Request<Empty<Bytes>> {
        let mut request = Request::new(Empty::new());
        *request.method_mut() = self.calling.method.clone();
        *request.uri_mut() = Uri::try_from(path.unwrap_or(&self.calling.target.path)).unwrap_or_default();
        let fields = request.headers_mut();
        fields.clone_from(&self.calling.fields);
        if !fields.contains_key(HOST)
            && let Ok(host) = HeaderValue::from_str(&self.calling.target.authority)
        {
            fields.insert(HOST, host);
        }
        for (name, value) in more {
            fields.insert(name.clone(), value.clone());
        }
        request
    }
}
