//! One rule: what it allows, and whose bucket a descriptor charges under it.

use std::fmt;
use std::time::Duration;

use tidegate_core::{Algorithm, Charge, Cost, Handling, Limit, LimitId, Mode, Quota, QuotaError, Rate};

use crate::key::Tag;
use crate::{Entry, Keys};

/// A rule, as a file has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescriptorRule {
    /// Its domain.
    pub domain: String,
    /// The way to it, for people: `key_value.key`.
    pub path: String,
    /// The name that the file gives it; empty if it gives none.
    pub name: String,
    /// What stores call it.
    pub id: LimitId,
    /// What it allows.
    pub limit: Limit,
    /// The unit that the file counts in; `None` if it is unlimited.
    pub unit: Option<CallUnit>,
    /// Whether a denial counts.
    pub mode: Mode,
    /// Does it deny only together with all others of its kind that a call meets? Then its mode is shadow.
    pub is_quota: bool,
    /// The names of rules that do not apply to a call that meets this one.
    pub replaces: Vec<String>,
    /// What it wants of its store.
    pub handling: Handling,
    /// For each entry that leads to it: does its value tell buckets apart?
    pub(super) is_open: Vec<bool>,
}

impl DescriptorRule {
    /// The charge of a descriptor that meets this rule; `None` if it is unlimited.
    #[must_use]
    pub fn charge<'k>(&self, key: &'k [u8], cost: Cost) -> Option<Charge<'k>> {
        let quota = self.limit.quota()?;
        Some(Charge { limit: self.id, quota, key, cost, mode: self.mode, handling: self.handling })
    }

    /// How many values its keys are made of.
    #[must_use]
    pub fn open_values(&self) -> usize {
        self.is_open.iter().filter(|is_open| **is_open).count()
    }

    /// Builds the key of a descriptor that meets this rule, as the next one of `keys`: the values that the file leaves
    /// open. Callers build no more keys than one decision takes charges.
    pub fn push_key(&self, entries: &[Entry<'_>], keys: &mut Keys) {
        let open = entries.iter().zip(&self.is_open).filter(|(_, is_open)| **is_open);
        let count = open.map(|(entry, _)| keys.push_value(entry.value.as_bytes(), false)).count();
        if count == 0 {
            keys.push(Tag::Global, &[]);
        }
        keys.finish();
    }
}

/// The units that calls and files count in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CallUnit {
    /// A second.
    Second,
    /// A minute.
    Minute,
    /// An hour.
    Hour,
    /// 24 hours.
    Day,
    /// 7 days.
    Week,
    /// 30 days.
    Month,
    /// 365 days.
    Year,
}

impl CallUnit {
    /// Every unit, the shortest first.
    pub const ALL: [Self; 7] = [Self::Second, Self::Minute, Self::Hour, Self::Day, Self::Week, Self::Month, Self::Year];

    /// The number of the unit in the protocol (`RateLimitResponse.RateLimit.Unit`), where 0 is none.
    #[must_use]
    pub const fn number(self) -> i32 {
        match self {
            Self::Second => 1,
            Self::Minute => 2,
            Self::Hour => 3,
            Self::Day => 4,
            Self::Month => 5,
            Self::Year => 6,
            Self::Week => 7,
        }
    }

    /// The unit of this number.
    #[must_use]
    pub fn from_number(number: i32) -> Option<Self> {
        Self::ALL.into_iter().find(|unit| unit.number() == number)
    }

    /// Its length.
    #[must_use]
    pub const fn period(self) -> Duration {
        const DAY_S: u64 = 24 * 60 * 60;
        Duration::from_secs(match self {
            Self::Second => 1,
            Self::Minute => 60,
            Self::Hour => 60 * 60,
            Self::Day => DAY_S,
            Self::Week => 7 * DAY_S,
            Self::Month => 30 * DAY_S,
            Self::Year => 365 * DAY_S,
        })
    }

    /// The unit of this length.
    #[must_use]
    pub fn of(period: Duration) -> Option<Self> {
        Self::ALL.into_iter().find(|unit| unit.period() == period)
    }

    /// The word in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Second => "second",
            Self::Minute => "minute",
            Self::Hour => "hour",
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
            Self::Year => "year",
        }
    }

    /// So many per unit, under this algorithm; none is a block.
    ///
    /// # Errors
    /// It cannot be exact.
    pub fn limit(self, requests: u32, algorithm: Algorithm) -> Result<Limit, QuotaError> {
        if requests == 0 {
            return Ok(Limit::Block { period: self.period() });
        }
        let rate = Rate::new(requests.into(), self.period())?;
        Ok(Limit::Quota(Quota::new(rate)?.with_algorithm(algorithm)?))
    }
}

impl fmt::Display for CallUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A limit that a call brings for one of its descriptors. It has buckets of its own, and is never in shadow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BroughtLimit {
    /// How many requests per unit.
    pub requests: u32,
    /// The unit.
    pub unit: CallUnit,
}

impl BroughtLimit {
    /// What stores call it: another number is another limit.
    #[must_use]
    pub fn id(&self, domain: &str) -> LimitId {
        LimitId::of(domain, "brought").keyed_by(&format!("{}/{}", self.requests, self.unit))
    }

    /// Builds the key of a descriptor that brings this limit, as the next one of `keys`: all of its entries.
    pub fn push_key(entries: &[Entry<'_>], keys: &mut Keys) {
        let texts = || entries.iter().flat_map(|entry| [entry.key.as_bytes(), entry.value.as_bytes()]);
        let framed_bytes = texts().map(|text| text.len() + 1).sum();
        keys.push_lines(framed_bytes, false, |each| texts().for_each(each));
        keys.finish();
    }
}
