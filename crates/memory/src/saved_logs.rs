//! Sliding logs as plain data, beside the buckets of `saved`.

use tidegate_core::{AtBound, Quota, State, Time, full_at};

use crate::fingerprint::Fingerprint;
use crate::log_seats::is_log;
use crate::logs::Under;
use crate::quotas::TooManyQuotas;
use crate::table::{Table, count};

/// A sliding log of which something counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedLog {
    /// The key, as a table of the same seeds knows it.
    pub fingerprint: Fingerprint,
    /// The quota that it was written under.
    pub quota: Quota,
    /// What passed, the oldest first: how much, and when.
    pub entries: Vec<State>,
}

impl Table {
    /// The sliding logs of which something counts at `now`, each as it stood at one moment.
    pub fn logs_at(&self, now: Time) -> impl Iterator<Item = SavedLog> {
        (0..self.logs.shard_count()).flat_map(move |shard| {
            let mut lock = self.logs.lock(shard);
            let saved = lock.all().filter_map(|(key, quota_number, log)| {
                let (fingerprint, quota) = (Fingerprint::from_u64(key)?, *self.quotas.quota(quota_number)?);
                let entries: Vec<_> = log.entries(&quota, now).collect();
                (!entries.is_empty()).then_some(SavedLog { fingerprint, quota, entries })
            });
            saved.collect::<Vec<_>>()
        })
    }

    /// Takes up a sliding log of another table; `false` if there is no room for it. What has left at `now` is left out.
    ///
    /// # Errors
    /// Its quota is new to the table, and it knows too many already.
    pub fn take_up_log_at(&mut self, log: &SavedLog, now: Time) -> Result<bool, TooManyQuotas> {
        let under = Under { number: self.quotas.know(&log.quota)?.number, quota: &log.quota };
        let (key, mut lock) = (log.fingerprint, self.logs.lock(self.logs.shard_of(log.fingerprint)));
        let counts = |entry: &&State| is_log(&log.quota) && full_at(&log.quota, **entry) > now;
        for entry in log.entries.iter().filter(counts) {
            let lacks = lock.lacks(key, under.quota, entry.stamp());
            if lock.room(lacks, AtBound::Deny, &[], now).is_err() {
                lock.reset(key);
                count(&self.counts.displaced);
                return Ok(false);
            }
            // Owed, since debts are among them; who writes a log down by hand owes two bursts at most.
            lock.owe(key, under, entry.deficit(), entry.stamp());
        }
        Ok(true)
    }
}
