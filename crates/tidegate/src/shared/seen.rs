//! What the store said a moment ago, and what it would say now.
//!
//! The store has a clock of its own. An answer decided at store time `t` was decided at some moment between the local
//! instants at which it was asked for and at which it came. So after a local wait the store's clock stands between
//! `t` + (now - came) and `t` + (now - asked): a denial that stands at the later of the two is surely still true, and
//! the wait that is told by the earlier of the two is surely long enough.

use tidegate_core::{Charge, Cost, Decision, State, Time, decide};

/// A question on its way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asking {
    pub(super) at: Time,
    /// How often something was forgotten until then.
    pub(super) forgotten: u64,
}

impl Asking {
    pub(super) fn answered_at(self, came: Time) -> Answered {
        Answered { asked: self.at, came, forgotten: self.forgotten }
    }
}

/// When an answer was asked for and came, on the local clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answered {
    pub(super) asked: Time,
    pub(super) came: Time,
    pub(super) forgotten: u64,
}

/// A bucket as the store saw it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    state: State,
    decided_at: Time,
    asked: Time,
    came: Time,
}

impl Seen {
    pub(super) fn new(decision: &Decision, answered: &Answered) -> Self {
        let (state, decided_at) = (decision.state(), decision.decided_at());
        Self { state, decided_at, asked: answered.asked, came: answered.came }
    }

    /// The decision on a cost that was paid for ahead, and of which `left` tokens are still in this process.
    pub(super) fn spending_at(&self, charge: &Charge<'_>, left: u64, now: Time) -> Option<Decision> {
        let at_least = self.decided_at.saturating_add(now.since(self.came));
        let unspent = State::from_parts(self.state.deficit().saturating_sub(left), self.state.stamp());
        let (decision, _) = decide(&charge.quota, unspent, charge.cost, at_least);
        decision.is_allowed().then_some(decision)
    }

    /// The denial that the store would surely still give to this cost.
    pub(super) fn denial_at(&self, charge: &Charge<'_>, cost: Cost, now: Time) -> Option<Decision> {
        let at_least = self.decided_at.saturating_add(now.since(self.came));
        let at_most = self.decided_at.saturating_add(now.since(self.asked));
        let decide_at = |store_time| decide(&charge.quota, self.state, cost, store_time).0;
        (!decide_at(at_most).is_allowed()).then(|| decide_at(at_least))
    }
}
