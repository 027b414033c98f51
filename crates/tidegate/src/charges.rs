//! The charges that one request makes under the limits of a limiter.

use tidegate_core::{CHARGES_MAX, Charge, Decision, Verdict};

use crate::Answer;

/// The charges of one request, on the stack, and the place of the limit that made each.
pub(crate) struct Charges<'k> {
    /// The first `length` are charges.
    pub(crate) list: [Charge<'k>; CHARGES_MAX],
    pub(crate) places: [usize; CHARGES_MAX],
    pub(crate) length: usize,
}

impl<'k> Charges<'k> {
    pub(crate) fn filled_with(charge: Charge<'k>) -> Self {
        Self { list: [charge; CHARGES_MAX], places: [0; CHARGES_MAX], length: 0 }
    }

    pub(crate) fn push(&mut self, place: usize, charge: Charge<'k>) {
        self.list[self.length] = charge;
        self.places[self.length] = place;
        self.length += 1;
    }

    pub(crate) fn as_slice(&self) -> &[Charge<'k>] {
        &self.list[..self.length]
    }

    /// Room for the answers.
    pub(crate) fn decisions(&self) -> [Decision; CHARGES_MAX] {
        [Decision::unmade(&self.list[0].quota); CHARGES_MAX]
    }

    pub(crate) fn answer(&self, verdict: Verdict, decisions: &[Decision]) -> Answer {
        let answer = Answer::from_verdict(verdict, decisions);
        Answer { binding: answer.binding.map(|i| self.places[i]), ..answer }
    }
}
