//! Looking into the store.

use std::time::Duration;

use tidegate_core::{Algorithm, Cost, Kept, LimitId, Quota, Rate};

use crate::terms::{Act, Terms};
use crate::wire::{Request, Seen, Shown};
use crate::{RedisStore, StoreError};

impl RedisStore {
    /// [`Store::inspect`](tidegate_core::Store::inspect).
    pub(crate) async fn look_into(
        &self,
        limit: LimitId,
        algorithm: Algorithm,
        key: &[u8],
    ) -> Result<Option<Kept>, StoreError> {
        let terms = Terms::any(algorithm).pack(Act::Show, Cost::ZERO, true);
        let seen = self.ask(Request { keys: vec![self.names.name(limit, key, algorithm)], terms: vec![terms] }).await?;
        match seen.shown() {
            Some(shown) => kept(shown, &seen, algorithm).map(Some).ok_or(StoreError::Malformed),
            None => Ok(None),
        }
    }
}

fn kept(shown: Shown, seen: &Seen, algorithm: Algorithm) -> Option<Kept> {
    let rate = Rate::new(shown.tokens, Duration::from_micros(shown.period_us)).ok()?;
    let quota = Quota::with_burst(rate, shown.burst).and_then(|quota| quota.with_algorithm(algorithm)).ok()?;
    Some(Kept {
        state: seen.state(&quota)?,
        quota,
        expires_in: u64::try_from(shown.expires_ms).ok().map(Duration::from_millis),
    })
}
