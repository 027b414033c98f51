//! What follows from responses and denials beside decisions: keys that are held back, and reservations.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;
use tidegate::Tally;

use crate::telling::metrics::register;

/// What follows from responses and denials.
#[derive(Clone, Debug)]
pub struct OutcomeMetrics {
    /// Times that a key was held back.
    pub holds: Counter,
    /// Requests denied because their key is held back.
    pub held: Counter,
    settled: Counter,
    not_settled: Counter,
    not_reserved: Counter,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResultLabel {
    result: &'static str,
}

impl OutcomeMetrics {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let holds = register(registry, "holds", "Times that a key was held back by a penalty");
        let held = register(registry, "requests_held", "Requests denied because a penalty holds their key back");
        let reservations = Family::<ResultLabel, Counter>::default();
        registry.register(
            "reservations",
            "Charges that waited for a response, by what came of them; not-reserved means that the failure modes decided",
            reservations.clone(),
        );
        let [settled, not_settled, not_reserved] = ["settled", "not-settled", "not-reserved"]
            .map(|result| reservations.get_or_create(&ResultLabel { result }).clone());
        Self { holds, held, settled, not_settled, not_reserved }
    }

    /// Counts what was done for one request.
    pub fn count(&self, tally: &Tally) {
        let Tally { holds, settled, not_settled, not_reserved } = *tally;
        let all = [
            (&self.holds, holds),
            (&self.settled, settled),
            (&self.not_settled, not_settled),
            (&self.not_reserved, not_reserved),
        ];
        all.into_iter().filter(|(_, count)| *count > 0).for_each(|(counter, count)| {
            counter.inc_by(u64::from(count));
        });
    }
}
