//! Once: a limit is charged once per request, even when two layers of one service carry it.
//!
//! What was charged is remembered in the extensions of the request, which the inner layers see.

use http::Extensions;
use tidegate::LimitId;

/// What was charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// All limits of the limiter at this address; the layer that left the mark keeps it alive.
    Limiter(usize),
    /// A limit of a gate.
    Limit(LimitId),
}

#[derive(Clone, Debug)]
struct Charged {
    first: Mark,
    /// Without an allocation as long as there is one limiter.
    more: Vec<Mark>,
}

impl Charged {
    fn contains(&self, mark: Mark) -> bool {
        self.first == mark || self.more.contains(&mark)
    }
}

/// Has an outer layer charged this?
pub(crate) fn is_charged(extensions: &Extensions, mark: Mark) -> bool {
    extensions.get::<Charged>().is_some_and(|charged| charged.contains(mark))
}

/// Remembers that these were charged.
pub(crate) fn remember(extensions: &mut Extensions, marks: &[Mark]) {
    let Some((first, more)) = marks.split_first() else { return };
    match extensions.get_mut::<Charged>() {
        Some(charged) => charged.more.extend_from_slice(marks),
        None => {
            extensions.insert(Charged { first: *first, more: more.to_vec() });
        }
    }
}
