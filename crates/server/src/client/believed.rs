//! Whose word is believed, as the policies in force say it.

use std::sync::Arc;

use arc_swap::ArcSwap;
use tidegate_policy::Client;

use crate::Trust;

/// The peers whose `X-Forwarded-*` fields are believed. Clones are one: what is replaced in one is replaced in all.
#[derive(Clone, Debug, Default)]
pub struct Believed(Arc<ArcSwap<Trust>>);

impl From<Trust> for Believed {
    fn from(trust: Trust) -> Self {
        Self(Arc::new(ArcSwap::from_pointee(trust)))
    }
}

impl Believed {
    /// Believes these from now on.
    pub fn replace(&self, trust: Trust) {
        self.0.store(Arc::new(trust));
    }

    pub(crate) fn believes(&self, peer: Client) -> bool {
        self.0.load().trusts(peer)
    }
}
