//! What a configuration can say and the proxy does not do. It is refused by name, so that nobody believes to be
//! protected by a line that nothing reads.

use tidegate_policy::{KeyPart, Policies, Policy};

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
    let is_claimed = |policy: &&Policy| policy.key().as_slice().iter().any(|part| matches!(part, KeyPart::Claim(_)));
    let what = "the proxy verifies no claims, so no request has one; use another part of the request";
    let claimed = policies.as_slice().iter().filter(is_claimed);
    claimed.map(|policy| Undone { policy: policy.name().to_owned(), key: "key", what }).collect()
}
