//! Decisions as JSON. Spans of time say their unit in their name, and are rounded up, so whoever waits is never early.

use std::borrow::Cow;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use tidegate::{Answer, Cause, Charge, Decision, GateAnswer, Mode, whole_seconds_up};
use tidegate_http::{Dialects, Report};

use super::brought::Brought;
use super::manner::{Manner, OnDenial};
use crate::ProxyBody;
use crate::json::Writer;

/// Enough for a decision under one limit; a longer text grows.
const BODY_BYTES_USUAL: usize = 448;

/// What was decided, with the limits that decided it.
pub(super) struct Rendered<'a> {
    pub(super) answer: Answer,
    /// Did a policy match, if policies were asked?
    is_matched: Option<bool>,
    /// The limits, those that bring nothing to decide too.
    lines: Vec<Line<'a>>,
    /// The one that binds.
    binding: Option<usize>,
    /// Is there more than one policy?
    is_of_several: bool,
}

/// One limit.
struct Line<'a> {
    policy: Option<&'a str>,
    limit: &'a str,
    mode: Mode,
    /// Unless it is unlimited.
    decision: Option<&'a Decision>,
}

impl<'a> Rendered<'a> {
    /// What the policies in force decided.
    pub(super) fn by_policies(gate: &GateAnswer<'a>) -> Self {
        let line = |(place, charge, decision): (tidegate::policy::Place<'a>, &Charge<'_>, &'a Decision)| Line {
            policy: Some(place.policy.name()),
            limit: &place.limit.name,
            mode: charge.mode,
            decision: Some(decision),
        };
        let lines = gate.charges().map(line).collect();
        let is_of_several = gate.charged.policies().as_slice().len() > 1;
        let (answer, is_matched) = (gate.answer, Some(gate.is_matched));
        Self { answer, is_matched, lines, binding: answer.binding, is_of_several }
    }

    /// What the limits decided that a call brought. `decisions` are on those that are not unlimited, in their order.
    pub(super) fn by_brought(answer: Answer, brought: &'a [Brought<'_>], decisions: &'a [Decision]) -> Self {
        let mut decisions = decisions.iter();
        let line = |one: &'a Brought<'_>| {
            let decision = one.quota.and_then(|_| decisions.next());
            Line { policy: None, limit: &one.name, mode: one.mode, decision }
        };
        let lines: Vec<_> = brought.iter().map(line).collect();
        let limiting = lines.iter().enumerate().filter(|(_, line)| line.decision.is_some());
        let binding = answer.binding.and_then(|place| limiting.map(|(i, _)| i).nth(place));
        Self { answer, is_matched: None, lines, binding, is_of_several: false }
    }

    /// The answer to the call, but for its end. Its status says no, and fields tell of limits, if that was asked for.
    pub(super) fn draft(&self, manner: Manner) -> Draft {
        let mut text = String::with_capacity(BODY_BYTES_USUAL);
        self.write(&mut text);
        let is_said = manner.on_denial == OnDenial::Say && !self.answer.is_allowed();
        let status = match self.answer.cause {
            _ if !is_said => StatusCode::OK,
            Some(Cause::StoreDown) => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::TOO_MANY_REQUESTS,
        };
        let fields = manner.dialects.map(|dialects| Box::new(self.fields(dialects)));
        Draft { text, status, retry_after: self.answer.retry_after().filter(|_| is_said), fields }
    }

    /// What header fields say of the limits. A limit is called as in the proxy: by its own name, and with its policy's in
    /// front if there are several policies.
    fn fields(&self, dialects: Dialects) -> HeaderMap {
        let named = |line: &Line<'a>| match line.policy.filter(|_| self.is_of_several) {
            Some(policy) => Cow::Owned(format!("{policy}/{}", line.limit)),
            None => Cow::Borrowed(line.limit),
        };
        let enforced = self.lines.iter().enumerate().filter(|(_, line)| line.mode == Mode::Enforce);
        let limits: Vec<_> = enforced.filter_map(|(i, line)| Some((i, named(line), *line.decision?.quota()))).collect();
        let answer = Answer { binding: self.binding, ..self.answer };
        let mut fields = HeaderMap::new();
        let report = Report::of(&answer, limits.iter().map(|(i, name, quota)| (*i, &**name, *quota)));
        report.iter().for_each(|report| report.write(dialects, &mut fields));
        fields
    }

    /// Writes all of the object but its end.
    fn write(&self, text: &mut String) {
        let Answer { source, cause, .. } = self.answer;
        let mut object = Writer::object(text);
        object.truth("allowed", self.answer.is_allowed());
        if let Some(line) = self.binding.and_then(|place| self.lines.get(place)) {
            write_names(&mut object, line);
            line.decision.into_iter().for_each(|decision| write_numbers(&mut object, decision));
        }
        object.word("source", source.name());
        cause.into_iter().for_each(|cause| object.word("cause", cause.name()));
        self.is_matched.into_iter().for_each(|is_matched| object.truth("matched", is_matched));
        object.list("limits", &self.lines, |object, line| write_line(object, line));
    }
}

/// An answer that has no end yet.
pub(super) struct Draft {
    text: String,
    status: StatusCode,
    retry_after: Option<Duration>,
    /// There are hardly ever any.
    fields: Option<Box<HeaderMap>>,
}

impl Draft {
    /// The answer, with the token of a reservation if there is one.
    pub(super) fn response(mut self, reservation: Option<&str>) -> Response<ProxyBody> {
        if let Some(token) = reservation {
            // Digits need no escapes.
            [",\"reservation\":\"", token, "\""].iter().for_each(|part| self.text.push_str(part));
        }
        // With a line's end, so that a terminal shows its prompt below.
        self.text.push_str("}\n");
        let mut response = json(self.text);
        *response.status_mut() = self.status;
        if let Some(wait) = self.retry_after {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds(wait)));
        }
        if let Some(fields) = self.fields {
            response.headers_mut().extend(*fields);
        }
        response
    }
}

fn write_names(object: &mut Writer<'_>, line: &Line<'_>) {
    line.policy.into_iter().for_each(|policy| object.text("policy", policy));
    object.text("limit", line.limit);
}

fn write_numbers(object: &mut Writer<'_>, decision: &Decision) {
    if decision.is_never() {
        object.truth("never", true);
    }
    object.number("remaining", decision.remaining());
    if let Some(wait) = decision.retry_after() {
        object.number("retry_after_s", seconds(wait));
        object.number("retry_after_ms", milliseconds(wait).max(1));
    }
    if decision.quota().burst() > 0 {
        object.number("reset_after_ms", milliseconds(decision.reset_after()));
    }
}

fn write_line(object: &mut Writer<'_>, line: &Line<'_>) {
    write_names(object, line);
    let Some(decision) = line.decision else {
        object.word("quota", "unlimited");
        object.word("mode", mode(line.mode));
        return object.truth("allowed", true);
    };
    write_quota(object, decision);
    object.word("mode", mode(line.mode));
    object.truth("allowed", decision.is_allowed());
    write_numbers(object, decision);
}

fn write_quota(object: &mut Writer<'_>, decision: &Decision) {
    object.limit("quota", *decision.quota());
    object.word("algorithm", decision.quota().algorithm().name());
}

/// How it stands with one bucket, by a look at it.
pub(super) fn bucket(name: &str, look: Option<(&Decision, tidegate::Source)>) -> Response<ProxyBody> {
    let mut text = String::with_capacity(BODY_BYTES_USUAL);
    let mut object = Writer::object(&mut text);
    object.text("limit", name);
    match look {
        None => object.word("quota", "unlimited"),
        Some((decision, source)) => {
            write_quota(&mut object, decision);
            object.number("burst", decision.quota().burst());
            write_numbers(&mut object, decision);
            object.word("source", source.name());
        }
    }
    object.end();
    text.push('\n');
    json(text)
}

/// What came of settling.
pub(super) fn settled(is_settled: bool) -> Response<ProxyBody> {
    json(format!("{{\"settled\":{is_settled}}}\n"))
}

/// An answer whose body is this JSON. It tells of a moment, so nobody should keep it.
pub(super) fn json(text: String) -> Response<ProxyBody> {
    let mut response = Response::new(ProxyBody::from(Bytes::from(text)));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

fn mode(mode: Mode) -> &'static str {
    if mode.is_enforced() { "enforce" } else { "shadow" }
}

fn seconds(span: Duration) -> u64 {
    whole_seconds_up(span).max(1)
}

fn milliseconds(span: Duration) -> u64 {
    let begun = u64::from(span.subsec_nanos().div_ceil(1_000_000));
    span.as_secs().saturating_mul(1_000).saturating_add(begun)
}
