//! The logs of one decision: their shards' locks, what is known of them before it, and what is written after it.

use tidegate_core::{
    Algorithm, AtBound, Charge, Cost, Decision, LogView, Mode, Quota, Standing, State, Time, total_cost,
};

use crate::logs::{ShardLock, Under};
use crate::seats::{Ask, Deed};
use crate::table::Table;

/// Is this quota enforced by a log?
#[inline]
pub(crate) fn is_log(quota: &Quota) -> bool {
    quota.algorithm() == Algorithm::SlidingLog
}

/// The shards that one round needs, locked in the order of their numbers.
pub(crate) struct LogSeats<'a, const N: usize> {
    shards: [usize; N],
    locks: [Option<ShardLock<'a>>; N],
    length: usize,
    /// What each charge needs to know of its log.
    pub(crate) views: [Option<LogView>; N],
    /// Bytes that this decision wants of each shard.
    wanted: [usize; N],
    /// The keys of this decision, whose logs are not displaced by it.
    busy: [u64; N],
}

impl<'a, const N: usize> LogSeats<'a, N> {
    pub(crate) fn take(table: &'a Table, asks: &[Ask], charges: &[Charge<'_>]) -> Self {
        let (shards, locks) = ([0; N], [const { None }; N]);
        let busy = std::array::from_fn(|i| asks.get(i).map_or(0, |ask| ask.fingerprint.as_u64()));
        let mut taken = Self { shards, locks, length: 0, views: [None; N], wanted: [0; N], busy };
        for (ask, _) in asks.iter().zip(charges).filter(|(_, charge)| is_log(&charge.quota)) {
            let shard = table.logs.shard_of(ask.fingerprint);
            if let Err(at) = taken.shards[..taken.length].binary_search(&shard) {
                taken.shards.copy_within(at..taken.length, at + 1);
                taken.shards[at] = shard;
                taken.length += 1;
            }
        }
        for (lock, shard) in taken.locks.iter_mut().zip(&taken.shards[..taken.length]) {
            *lock = Some(table.logs.lock(*shard));
        }
        taken
    }

    /// The time of the decision: not before something was forgotten in one of the shards.
    pub(crate) fn start(&self, now: Time) -> Time {
        self.locks.iter().flatten().fold(now, |now, lock| lock.start(now))
    }

    /// What charge `i`, the first on its log, is decided on. Nothing is written but what a changed quota makes of it.
    pub(crate) fn stand(
        &mut self,
        table: &Table,
        asks: &[Ask],
        charges: &[Charge<'_>],
        i: usize,
        now: Time,
    ) -> Standing {
        let (ask, charge, cost) = (&asks[i], &charges[i], total_cost(charges, i));
        let Some(at) = self.place(table, ask) else { return Ok(State::FULL) };
        let Some(lock) = &mut self.locks[at] else { return Ok(State::FULL) };
        let old = lock.written(ask.fingerprint).filter(|number| *number != ask.number);
        if let Some(old) = old.and_then(|number| table.quotas.quota(number)) {
            let under = Under { number: ask.number, quota: &charge.quota };
            lock.carry_over(ask.fingerprint, old, under, ask.since.min(now));
        }
        let view = lock.view(ask.fingerprint, &charge.quota, cost, now);
        let is_taken = charge.mode != Mode::Guard && view.takes(&charge.quota, cost);
        let lacks = if is_taken { lock.lacks(ask.fingerprint, &charge.quota, now) } else { 0 };
        let room = lock.room(self.wanted[at] + lacks, charge.handling.at_bound, &self.busy, now);
        self.wanted[at] += lacks;
        self.views[i] = Some(view);
        if lacks > 0 { room.map(|()| State::FULL) } else { Ok(State::FULL) }
    }

    /// Writes what follows for charge `i`. Says how many logs were displaced for it.
    #[expect(clippy::too_many_arguments, reason = "what one round holds, passed on as it is")]
    pub(crate) fn finish(
        &mut self,
        table: &Table,
        deed: Deed,
        asks: &[Ask],
        charges: &[Charge<'_>],
        i: usize,
        decision: &Decision,
        is_allowed: bool,
        now: Time,
    ) -> usize {
        let (ask, charge, cost) = (&asks[i], &charges[i], total_cost(charges, i));
        let under = Under { number: ask.number, quota: &charge.quota };
        let Some(lock) = self.place(table, ask).and_then(|at| self.locks[at].as_mut()) else { return 0 };
        match deed {
            Deed::Settle { reserved_at, actual } => {
                let lacks = lock.lacks(ask.fingerprint, under.quota, now);
                let is_full = charge.handling.at_bound != AtBound::Displace
                    && lock.room(lacks, charge.handling.at_bound, &[], now).is_err();
                let (reserved, actual) = (charge.cost.tokens(), actual.tokens());
                if actual > reserved && !is_full {
                    return lock.owe(ask.fingerprint, under, actual - reserved, now);
                }
                let back = reserved.saturating_sub(actual);
                lock.change(ask.fingerprint, under, |log| log.give_back(under.quota, back, reserved_at, now));
            }
            Deed::Charge if is_allowed && decision.is_allowed() && charge.mode == Mode::Guard => {}
            Deed::Charge if is_allowed && decision.is_allowed() && cost > Cost::ZERO => {
                return lock.charge(ask.fingerprint, under, cost, now, &self.busy);
            }
            Deed::Charge if decision.retry_after().is_some() && decision.held_by().is_none() => {
                lock.change(ask.fingerprint, under, |log| log.repair(under.quota, now));
            }
            Deed::Charge => {}
        }
        0
    }

    fn place(&self, table: &Table, ask: &Ask) -> Option<usize> {
        let shard = table.logs.shard_of(ask.fingerprint);
        self.shards[..self.length].binary_search(&shard).ok()
    }
}
