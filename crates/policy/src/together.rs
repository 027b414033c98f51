//! How many charges one request can make at most.
//!
//! A decision takes no more than [`CHARGES_MAX`] charges, so it has to be known before the first request that no
//! request makes more. Two policies are apart if no request meets both, or if the earlier one is final. The heaviest
//! group of policies of which no two are apart bounds what one request is charged. It is looked for by adding one
//! policy after the other and turning back as soon as what is left cannot be too heavy; configurations made by people
//! take few steps, and one that takes too many is refused like one that is too heavy.

use tidegate_core::CHARGES_MAX;

use crate::Policy;
use crate::policy_set::PolicySet;

/// The most groups that are looked at.
const STEPS_MAX: usize = 200_000;

/// Policies that one request can be charged to together, with more than [`CHARGES_MAX`] charges; `None` if there are
/// none. `weights[i]` are the most charges of policy `i`.
pub(crate) fn too_many(policies: &[Policy], weights: &[usize]) -> Option<Vec<usize>> {
    too_many_of(weights, |one, other| {
        !policies[one.min(other)].is_final && policies[one].matching.overlaps(&policies[other].matching)
    })
}

/// The same of anything that makes charges: `together` says whether one request can meet the two at these places.
/// `weights` are those of at most [`POLICIES_MAX`](crate::POLICIES_MAX).
pub(crate) fn too_many_of(weights: &[usize], together: impl Fn(usize, usize) -> bool) -> Option<Vec<usize>> {
    let charging = PolicySet::of(weights.len(), |place| weights[place] > 0);
    if charging.iter().map(|place| weights[place]).sum::<usize>() <= CHARGES_MAX {
        return None;
    }
    let neighbours =
        (0..weights.len()).map(|one| PolicySet::of(weights.len(), |other| one != other && together(one, other)));
    let mut search = Search { weights, neighbours: neighbours.collect(), group: Vec::new(), steps: 0 };
    search.grow(0, charging).then_some(search.group)
}

struct Search<'a> {
    weights: &'a [usize],
    neighbours: Vec<PolicySet>,
    /// Of which no two are apart.
    group: Vec<usize>,
    steps: usize,
}

impl Search<'_> {
    /// Can the group, which weighs so much, become too heavy with some of these? Then it is left as that group.
    /// Each level adds a weight of 1 at least, so there are no more than [`CHARGES_MAX`] + 1.
    fn grow(&mut self, weight: usize, mut candidates: PolicySet) -> bool {
        self.steps += 1;
        if weight > CHARGES_MAX || self.steps > STEPS_MAX {
            return true;
        }
        while let Some(next) = candidates.first_common(&candidates) {
            if weight + self.bound(candidates) <= CHARGES_MAX {
                return false;
            }
            let mut narrowed = candidates;
            narrowed.keep(&self.neighbours[next]);
            self.group.push(next);
            if self.grow(weight + self.weights[next], narrowed) {
                return true;
            }
            self.group.pop();
            candidates.remove(&PolicySet::default().with(next));
        }
        false
    }

    /// No group of these is heavier: they are parted into classes of policies that are all apart from each other, of
    /// which a group has one at most.
    fn bound(&self, mut left: PolicySet) -> usize {
        let mut bound = 0;
        while let Some(first) = left.first_common(&left) {
            let (mut heaviest, mut candidates) = (0, left);
            let mut next = Some(first);
            while let Some(place) = next {
                heaviest = heaviest.max(self.weights[place]);
                left.remove(&PolicySet::default().with(place));
                candidates.remove(&PolicySet::default().with(place));
                candidates.remove(&self.neighbours[place]);
                next = candidates.first_common(&candidates);
            }
            bound += heaviest;
            if bound > CHARGES_MAX {
                return bound;
            }
        }
        bound
    }
}
