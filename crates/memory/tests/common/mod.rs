//! What the tests of this crate write with.

#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::time::Duration;

use tidegate_core::{AtBound, Decision, Limit, LimitId, Outcome, Quota, Time};
use tidegate_memory::{Table, TableLimit, TableOptions};

/// The quota that the text of a limit names.
pub(crate) fn quota(text: &str) -> Quota {
    text.parse::<Limit>().expect("a limit").quota().expect("a limit with a quota")
}

pub(crate) fn ms(ms: u64) -> Time {
    Time::from_millis(ms)
}

/// A table with room for `keys` keys. Below 41 all keys have one home, so that the order of things is plain.
pub(crate) fn table(keys: usize) -> Table {
    let mut options = TableOptions::with_keys(keys);
    options.seed = Some(7);
    Table::new(options)
}

/// The one limit of a test.
pub(crate) fn limit(table: &Table, text: &str, at_bound: AtBound) -> TableLimit {
    table.know(limit_id(), &quota(text), at_bound).expect("few quotas")
}

pub(crate) fn limit_id() -> LimitId {
    LimitId::of("test", "limit")
}

/// What a test says of a decision: `allow 3 left`, `deny 1.5s`, `never`.
pub(crate) fn shown(decision: &Decision) -> String {
    match decision.outcome() {
        Outcome::Allowed => format!("allow {} left", decision.remaining()),
        Outcome::Denied { retry_after } => format!("deny {retry_after:?}"),
        Outcome::Never => "never".to_owned(),
    }
}

/// The wait of a denial.
pub(crate) fn wait(decision: &Decision) -> Duration {
    decision.retry_after().expect("a denial with a wait")
}

/// The numbers after xorshift64: a random walk that is the same each time.
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}
