//! Charges that outlive the request that they were made for.
//!
//! A store on another machine takes its time, and whoever waits for it must not hold on to the request. So the keys go
//! along with the charges, in one piece of memory.

use tidegate_core::{Charge, Decision, Store, Verdict};

/// Charges with keys of their own.
#[derive(Clone, Debug)]
pub struct OwnedCharges {
    /// Each without its key, and the length of that.
    charges: Box<[(Charge<'static>, usize)]>,
    /// All keys, one behind the other.
    keys: Box<[u8]>,
}

impl From<&[Charge<'_>]> for OwnedCharges {
    fn from(charges: &[Charge<'_>]) -> Self {
        let keys: Vec<_> = charges.iter().map(|charge| charge.key).collect();
        Self {
            charges: charges.iter().map(|charge| (Charge { key: &[], ..*charge }, charge.key.len())).collect(),
            keys: keys.concat().into(),
        }
    }
}

impl OwnedCharges {
    /// Asks `store`, and calls `with` with the charges, the decisions on them, and what it answered.
    pub async fn decide<S: Store, R>(
        &self,
        store: &S,
        with: impl FnOnce(&[Charge<'_>], &[Decision], Result<Verdict, S::Error>) -> R,
    ) -> R {
        let charges = self.lent();
        let mut decisions: Vec<_> = charges.iter().map(|charge| Decision::unmade(&charge.quota)).collect();
        let verdict = store.decide(&charges, &mut decisions).await;
        with(&charges, &decisions, verdict)
    }

    /// Charges of which these, by their places, took nothing.
    #[cfg(feature = "policy")]
    pub(crate) fn take_back(&mut self, is_nothing: impl Fn(usize) -> bool) {
        let nothing = self.charges.iter_mut().enumerate().filter(|(i, _)| is_nothing(*i));
        nothing.for_each(|(_, (charge, _))| charge.cost = tidegate_core::Cost::ZERO);
    }

    /// The charges as a store takes them.
    #[must_use]
    pub fn lent(&self) -> Vec<Charge<'_>> {
        let mut rest = &*self.keys;
        let lend = |(charge, length): &(Charge<'static>, usize)| {
            // The lengths add up to all keys.
            let (key, others) = rest.split_at(*length);
            rest = others;
            Charge { key, ..*charge }
        };
        self.charges.iter().map(lend).collect()
    }
}

#[cfg(test)]
mod tests {
    use tidegate_core::{Limit, LimitId};

    use super::*;

    #[test]
    fn each_charge_keeps_its_key() {
        let quota = "3/min".parse::<Limit>().unwrap().quota().unwrap();
        let keys: [&[u8]; 4] = [b"ann", b"", b"b", b"ann"];
        let charges = keys.map(|key| Charge::new(LimitId::of("p", "l"), quota, key));
        assert_eq!(OwnedCharges::from(&charges[..]).lent(), charges);
        assert_eq!(OwnedCharges::from(&charges[..0]).lent(), []);
    }
}
