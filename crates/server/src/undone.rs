//! What a configuration can say and the proxy does not do yet. It is refused by name, so that nobody believes to be
//! protected by a line that nothing reads.

use tidegate_policy::{CostRule, Counting, KeyPart, Policies, Policy};

/// Something that a policy says and the proxy does not do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undone {
    /// The policy's name.
    pub policy: String,
    /// The key of the configuration file that says it.
    pub key: &'static str,
    /// What is not done.
    pub what: &'static str,
}

/// All that these policies say and the proxy does not do.
#[must_use]
pub fn undone(policies: &Policies) -> Vec<Undone> {
    policies.as_slice().iter().flat_map(of).collect()
}

fn of(policy: &Policy) -> impl Iterator<Item = Undone> {
    let is_counted = matches!(policy.counting(), Counting::Responses(_));
    let is_settled = matches!(policy.cost(), CostRule::Response { .. });
    let is_claimed = policy.key().as_slice().iter().any(|part| matches!(part, KeyPart::Claim(_)));
    let all = [
        (is_claimed, "key", "the proxy verifies no claims, so no request has one; use another part of the request"),
        (
            is_settled,
            "cost",
            "the proxy does not read a cost from responses yet; use a number, or a field of the request",
        ),
        (is_counted, "charge_for", "the proxy does not count by outcome yet: it would charge for every response"),
        (policy.penalty().is_some(), "penalty", "the proxy holds no keys back yet, so this would do nothing"),
    ];
    let policy = policy.name().to_owned();
    let said = all.into_iter().filter(|(is_said, ..)| *is_said);
    said.map(move |(_, key, what)| Undone { policy: policy.clone(), key, what })
}
