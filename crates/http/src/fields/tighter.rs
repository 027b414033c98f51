//! Fields that can have one value only: of two layers that write them the tighter one is heard.

use http::{HeaderMap, HeaderName, HeaderValue};

use super::{Reset, timestamp};
use crate::{Report, text};

/// Three fields that belong together.
pub(super) struct Trio {
    pub(super) limit: HeaderName,
    pub(super) remaining: HeaderName,
    pub(super) reset: HeaderName,
}

/// Writes the three fields, unless they are there already and leave no more than ours would.
pub(super) fn write(trio: Trio, report: &Report, reset: Reset, headers: &mut HeaderMap) {
    let remaining = report.decision().remaining();
    let written = headers.get(&trio.remaining).and_then(|value| value.to_str().ok()?.trim().parse::<u64>().ok());
    if written.is_some_and(|written| written <= remaining) {
        return;
    }
    headers.insert(trio.limit, text::number(report.decision().quota().burst()));
    headers.insert(trio.remaining, text::number(remaining));
    match report.reset_after() {
        Some(after) => headers.insert(trio.reset, timestamp::value(reset, report.decision().decided_at(), after)),
        None => headers.remove(trio.reset),
    };
}

/// The member `remaining` of a dictionary, if it has one that is a number.
pub(super) fn member_remaining(value: &HeaderValue) -> Option<u64> {
    let members = value.to_str().ok()?.split(',');
    members.filter_map(|member| member.trim().strip_prefix("remaining=")).find_map(|number| number.trim().parse().ok())
}
