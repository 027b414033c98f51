//! The charges of one request, and which limit each comes from.

use std::ops::Deref;

use tidegate_core::Charge;

use crate::{NamedLimit, Policy};

/// This many charges need no allocation.
const INLINE_CHARGES: usize = 4;

/// Where a charge comes from.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// The policy.
    pub policy: &'a Policy,
    /// Its limit.
    pub limit: &'a NamedLimit,
}

/// The charges of one request: a slice, as stores take it, and for each charge its limit.
#[derive(Clone, Debug)]
pub struct Charges<'a>(List<'a>);

#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "the large one is the usual one, and stays on the stack")]
enum List<'a> {
    /// The first `count` are charges; the others repeat one of them.
    Inline {
        charges: [Charge<'a>; INLINE_CHARGES],
        places: [Place<'a>; INLINE_CHARGES],
        count: usize,
    },
    Heap {
        charges: Vec<Charge<'a>>,
        places: Vec<Place<'a>>,
    },
}

impl<'a> Charges<'a> {
    pub(crate) const fn new() -> Self {
        Self(List::Heap { charges: Vec::new(), places: Vec::new() })
    }

    /// The limit that charge `i` comes from; `None` if there is no such charge.
    #[must_use]
    pub fn place(&self, i: usize) -> Option<Place<'a>> {
        match &self.0 {
            List::Inline { places, count, .. } => places[..*count].get(i).copied(),
            List::Heap { places, .. } => places.get(i).copied(),
        }
    }

    pub(crate) fn push(&mut self, charge: Charge<'a>, place: Place<'a>) {
        match &mut self.0 {
            List::Inline { charges, places, count } if *count < INLINE_CHARGES => {
                charges[*count] = charge;
                places[*count] = place;
                *count += 1;
            }
            List::Inline { charges, places, .. } => {
                let (charges, places) = (charges.iter().copied(), places.iter().copied());
                let charges = charges.chain([charge]).collect();
                self.0 = List::Heap { charges, places: places.chain([place]).collect() };
            }
            List::Heap { charges, .. } if charges.is_empty() => {
                self.0 = List::Inline { charges: [charge; _], places: [place; _], count: 1 };
            }
            List::Heap { charges, places } => {
                charges.push(charge);
                places.push(place);
            }
        }
    }
}

impl<'a> Deref for Charges<'a> {
    type Target = [Charge<'a>];

    fn deref(&self) -> &[Charge<'a>] {
        match &self.0 {
            List::Inline { charges, count, .. } => &charges[..*count],
            List::Heap { charges, .. } => charges,
        }
    }
}
