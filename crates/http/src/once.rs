//! Once: a limit is charged once per request, even when two layers of one service carry it.
//!
//! What was charged is remembered in the extensions of the request, which the inner layers see.

use std::borrow::Cow;

use http::Extensions;
use tidegate::{Charge, LimitId};

/// What was charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// All limits of the limiter at this address; the layer that left the mark keeps it alive.
    Limiter(usize),
    /// A limit of a gate.
    Limit(LimitId),
}

/// All that was charged: one thing at least.
#[derive(Clone, Debug)]
pub(crate) struct Marks {
    first: Mark,
    /// Without an allocation as long as there is one limiter.
    more: Vec<Mark>,
}

impl From<Mark> for Marks {
    fn from(first: Mark) -> Self {
        Self { first, more: Vec::new() }
    }
}

impl Marks {
    /// The limits of these charges.
    pub(crate) fn of(charges: &[Charge<'_>]) -> Option<Self> {
        let mut marks = charges.iter().map(|charge| Mark::Limit(charge.limit));
        Some(Self { first: marks.next()?, more: marks.collect() })
    }

    /// Remembers that this was charged.
    pub(crate) fn leave_in(self, extensions: &mut Extensions) {
        match extensions.get_mut::<Self>() {
            Some(marks) => marks.more.extend([self.first].into_iter().chain(self.more)),
            None => {
                extensions.insert(self);
            }
        }
    }

    fn contains(&self, mark: Mark) -> bool {
        self.first == mark || self.more.contains(&mark)
    }
}

/// Has an outer layer charged this?
pub(crate) fn is_charged(extensions: &Extensions, mark: Mark) -> bool {
    extensions.get::<Marks>().is_some_and(|marks| marks.contains(mark))
}

/// The charges that no outer layer has made.
pub(crate) fn uncharged<'c, 'a>(charges: &'c [Charge<'a>], extensions: &Extensions) -> Cow<'c, [Charge<'a>]> {
    let is_left = |charge: &Charge<'_>| !is_charged(extensions, Mark::Limit(charge.limit));
    match charges.iter().all(is_left) {
        true => Cow::Borrowed(charges),
        false => charges.iter().filter(|charge| is_left(charge)).copied().collect(),
    }
}
