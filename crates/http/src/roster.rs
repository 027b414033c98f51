//! The limits that applied to a request, with the fields that say the same each time rendered once.
//!
//! `RateLimit-Policy` depends on names and quotas alone, and these seldom change. So a roster of them is rendered when
//! it is first seen, and kept until another one takes its slot. A quota that was replaced makes another roster.

use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use http::HeaderValue;
use tidegate::Quota;

use crate::fields::{draft7, draft10};
use crate::problem::UsedUp;
use crate::text::sf_string;

/// The most bytes of a limit's name that header fields show, escapes included; the rest is cut off.
pub const NAME_BYTES_MAX: usize = 64;

/// Rosters that are kept at once, beside the first one. A plan per user makes one roster per plan.
const SLOTS: usize = 64;

/// A limit that applied.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Applied<'a> {
    /// Where whoever decided keeps it.
    pub(crate) place: usize,
    pub(crate) name: &'a str,
    pub(crate) quota: Quota,
}

/// A limit as fields show it.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) place: usize,
    pub(crate) name: Box<str>,
    pub(crate) quota: Quota,
    /// The name as a String of structured fields.
    pub(crate) string: Box<str>,
    /// The body of a denial.
    pub(crate) used_up: UsedUp,
}

impl Line {
    #[inline]
    fn shows(&self, applied: &Applied<'_>) -> bool {
        self.place == applied.place && self.quota == applied.quota && *self.name == *applied.name
    }
}

/// Limits in their order.
#[derive(Debug)]
pub(crate) struct Roster {
    lines: Box<[Line]>,
    draft10: HeaderValue,
    draft7: HeaderValue,
}

impl Roster {
    pub(crate) fn new<'a>(applied: impl Iterator<Item = Applied<'a>>) -> Self {
        let lines: Box<[Line]> = applied.map(line).collect();
        Self { draft10: draft10::policies(&lines), draft7: draft7::policies(&lines), lines }
    }

    pub(crate) fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// `RateLimit-Policy` as revisions 8 to 10 of the draft write it.
    pub(crate) fn draft10(&self) -> &HeaderValue {
        &self.draft10
    }

    /// `RateLimit-Policy` as revisions 4 to 7 write it.
    pub(crate) fn draft7(&self) -> &HeaderValue {
        &self.draft7
    }

    fn shows<'a>(&self, mut applied: impl Iterator<Item = Applied<'a>>) -> bool {
        let mut lines = self.lines.iter();
        applied.all(|applied| lines.next().is_some_and(|line| line.shows(&applied))) && lines.next().is_none()
    }
}

fn line(applied: Applied<'_>) -> Line {
    let Applied { place, name, quota } = applied;
    Line {
        place,
        name: name.into(),
        quota,
        string: sf_string(name, NAME_BYTES_MAX).into(),
        used_up: UsedUp::new(name, &quota),
    }
}

/// The rosters of one layer.
#[derive(Debug)]
pub(crate) struct Rosters {
    /// The first one: the only one where no quota is replaced and nobody has a plan. Read without a lock.
    first: OnceLock<Arc<Roster>>,
    slots: [RwLock<Option<Arc<Roster>>>; SLOTS],
}

impl Rosters {
    pub(crate) fn new() -> Self {
        Self { first: OnceLock::new(), slots: std::array::from_fn(|_| RwLock::new(None)) }
    }

    /// The roster of these limits, rendered now if it is not at hand. `applied` lists them anew with each call.
    #[inline]
    pub(crate) fn of<'a, I: Iterator<Item = Applied<'a>>>(&self, applied: impl Fn() -> I) -> Arc<Roster> {
        let first = self.first.get_or_init(|| Arc::new(Roster::new(applied())));
        if first.shows(applied()) { Arc::clone(first) } else { self.later(applied) }
    }

    fn later<'a, I: Iterator<Item = Applied<'a>>>(&self, applied: impl Fn() -> I) -> Arc<Roster> {
        let slot = &self.slots[slot(applied())];
        let kept = slot.read().unwrap_or_else(PoisonError::into_inner);
        match &*kept {
            Some(roster) if roster.shows(applied()) => Arc::clone(roster),
            _ => {
                drop(kept);
                let roster = Arc::new(Roster::new(applied()));
                *slot.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&roster));
                roster
            }
        }
    }
}

fn slot<'a>(applied: impl Iterator<Item = Applied<'a>>) -> usize {
    let words = applied.flat_map(|applied| applied.quota.to_words());
    let mixed = words.fold(0, |hash: u64, word| (hash.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95));
    // The upper bits are the well mixed ones; 6 of them number the slots.
    (mixed >> 58) as usize % SLOTS
}

#[cfg(test)]
mod tests {
    use tidegate::Limit;

    use super::*;

    fn quota(limit: &str) -> Quota {
        limit.parse::<Limit>().unwrap().quota().unwrap()
    }

    #[test]
    fn a_roster_is_rendered_once_and_again_when_a_quota_is_replaced() {
        let rosters = Rosters::new();
        let applied = |limit| [Applied { place: 0, name: "a", quota: quota(limit) }];
        let first = rosters.of(|| applied("60/min").into_iter());
        assert!(Arc::ptr_eq(&first, &rosters.of(|| applied("60/min").into_iter())));
        let other = rosters.of(|| applied("70/min").into_iter());
        assert_eq!(other.draft10(), r#""a";q=70;w=60"#);
        assert_eq!(rosters.of(|| applied("60/min").into_iter()).draft10(), r#""a";q=60;w=60"#);
    }

    #[test]
    fn more_rosters_than_slots_are_all_shown_right() {
        let rosters = Rosters::new();
        for count in (1..=3 * SLOTS as u64).cycle().take(1_000) {
            let applied = Applied { place: 0, name: "a", quota: quota(&format!("{count}/min")) };
            let roster = rosters.of(|| [applied].into_iter());
            assert_eq!(roster.draft10(), format!("\"a\";q={count};w=60").as_str());
        }
    }

    #[test]
    fn one_limit_more_or_less_is_another_roster() {
        let rosters = Rosters::new();
        let all = ["60/min", "5/s"].map(quota);
        let applied = |count| (0..count).map(move |place| Applied { place, name: "a", quota: all[place] });
        assert_eq!(rosters.of(|| applied(1)).lines().len(), 1);
        assert_eq!(rosters.of(|| applied(2)).lines().len(), 2);
        assert!(!rosters.of(|| applied(2)).shows(applied(1)));
        assert!(!rosters.of(|| applied(1)).shows(applied(2)));
    }
}
