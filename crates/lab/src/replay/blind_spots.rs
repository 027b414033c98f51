//! What policies do that a log cannot show.

use tidegate_policy::{CostRule, KeyPart, Policies};

/// What these policies do that a log cannot show, in words.
pub(crate) fn blind_spots(policies: &Policies) -> Vec<String> {
    let mut spots = Vec::new();
    for policy in policies.as_slice() {
        let name = policy.name();
        for part in policy.key().as_slice() {
            let is_seen = match part {
                KeyPart::Client | KeyPart::Segment(_) | KeyPart::Global => true,
                KeyPart::Header(field) => crate::replay::request::FIELDS.contains(&field.as_str()),
                KeyPart::Cookie(_) | KeyPart::Claim(_) => false,
            };
            if !is_seen {
                spots.push(format!("policy `{name}`: no log tells the {part}, so it counts as missing"));
            }
        }
        if policy.penalty().is_some() {
            spots.push(format!("policy `{name}`: its penalty is left out"));
        }
        if let CostRule::Response { name: field, .. } | CostRule::Header { name: field, .. } = policy.cost() {
            spots.push(format!("policy `{name}`: no log tells {field}, so each request costs what it does without"));
        }
    }
    spots
}
