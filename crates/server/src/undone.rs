//! What a configuration can say and a server does not do. It is refused by name, so that nobody believes to be protected
//! by a line that nothing reads.

use tidegate_policy::{CostRule, Counting, KeyPart, Offence, Policies, Policy};

/// Something that a policy says and a server does not do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undone {
    /// The policy's name.
    pub policy: String,
    /// The key of the configuration file that says it.
    pub key: &'static str,
    /// What is not done.
    pub what: &'static str,
}

/// What serves by a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServedBy {
    /// The reverse proxy: it sees responses, and verifies nobody's claims.
    Gateway,
    /// The decision server: whoever asks it may have verified claims, and it sees no response.
    DecisionServer,
}

/// All that these policies say and this server does not do.
#[must_use]
pub fn undone(policies: &Policies, server: ServedBy) -> Vec<Undone> {
    let undone_of = match server {
        ServedBy::Gateway => undone_by_gateway,
        ServedBy::DecisionServer => undone_by_decision_server,
    };
    let all = policies.as_slice().iter();
    all.flat_map(|policy| {
        undone_of(policy).into_iter().map(|(key, what)| Undone { policy: policy.name().to_owned(), key, what })
    })
    .collect()
}

fn undone_by_gateway(policy: &Policy) -> Vec<(&'static str, &'static str)> {
    let is_claimed = policy.key().as_slice().iter().any(|part| matches!(part, KeyPart::Claim(_)));
    let what = "the proxy verifies no claims, so no request has one; use another part of the request";
    is_claimed.then_some(("key", what)).into_iter().collect()
}

fn undone_by_decision_server(policy: &Policy) -> Vec<(&'static str, &'static str)> {
    let by_response = [
        ("charge_for", matches!(policy.counting(), Counting::Responses(_))),
        ("cost", matches!(policy.cost(), CostRule::Response { .. })),
        ("penalty", policy.penalty().is_some_and(|penalty| matches!(penalty.of, Offence::Responses(_)))),
    ];
    let what = "the decision server is asked before there is a response and sees none; the proxy does this";
    by_response.into_iter().filter(|(_, is_said)| *is_said).map(|(key, _)| (key, what)).collect()
}
