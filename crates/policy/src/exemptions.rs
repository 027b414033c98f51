//! The exemptions of all policies, prepared at load.

use crate::caller::Caller;
use crate::path_index::PathIndex;
use crate::policy_set::PolicySet;
use crate::{Attributes, Exempt, Exemption, Policy, Trust};

/// Who is let off by everything, and by which policies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Exemptions {
    /// From all policies; one place, 0, stands for all of them.
    all_paths: PathIndex,
    all_addresses: Trust,
    paths: PathIndex,
    /// The policies that have addresses of their own.
    addresses: PolicySet,
    /// The policies that preflights are charged to.
    preflights: PolicySet,
    /// Can nobody be let off but preflights?
    is_nobody: bool,
}

impl Exemptions {
    pub(crate) fn new(all: &Exempt, policies: &[Policy]) -> Self {
        let mut found = Self { all_addresses: all.addresses.clone(), ..Self::default() };
        all.all_paths().for_each(|path| found.all_paths.add(&path, 0));
        for (place, policy) in policies.iter().enumerate() {
            policy.exempt.all_paths().for_each(|path| found.paths.add(&path, place));
        }
        found.addresses = PolicySet::of(policies.len(), |place| !policies[place].exempt.addresses.is_nothing());
        found.preflights = PolicySet::of(policies.len(), |place| {
            let policy = &policies[place];
            policy.matching.names_options() || !(all.preflights && policy.exempt.preflights)
        });
        let is_nobody = found.all_paths.is_empty() && found.paths.is_empty() && found.addresses.is_empty();
        found.is_nobody = is_nobody && found.all_addresses.is_nothing();
        found
    }

    /// Is the request let off by everything? Preflights are not answered here: a policy may name them.
    pub(crate) fn exempts_all<A: Attributes + ?Sized>(&self, caller: &mut Caller<'_, A>) -> Option<Exemption> {
        if self.is_nobody {
            return None;
        }
        if !self.all_paths.is_empty() && !self.all_paths.of(caller.path()).is_empty() {
            return Some(Exemption::Path);
        }
        let by_address = !self.all_addresses.is_nothing() && self.all_addresses.trusts(caller.client());
        by_address.then_some(Exemption::Address)
    }

    /// Takes away the policies that let the request off by its path, or because it is a preflight.
    pub(crate) fn apply<A: Attributes + ?Sized>(&self, caller: &mut Caller<'_, A>, left: &mut PolicySet) {
        if !self.is_nobody && !self.paths.is_empty() {
            left.remove(&self.paths.of(caller.path()));
        }
        if is_preflight(caller.attributes()) {
            left.keep(&self.preflights);
        }
    }

    /// Does the policy at this place let the client off by its address?
    pub(crate) fn by_address<A>(&self, caller: &mut Caller<'_, A>, place: usize, policy: &Policy) -> bool
    where
        A: Attributes + ?Sized,
    {
        !self.is_nobody && self.addresses.has(place) && policy.exempt.addresses.trusts(caller.client())
    }

    /// Why is the request let off by this policy, if it is? Keys are looked up elsewhere.
    pub(crate) fn why<A>(&self, caller: &mut Caller<'_, A>, place: usize, policy: &Policy) -> Option<Exemption>
    where
        A: Attributes + ?Sized,
    {
        let by_path = !self.paths.is_empty() && self.paths.of(caller.path()).has(place);
        let is_preflight = || is_preflight(caller.attributes()) && !self.preflights.has(place);
        match (by_path, is_preflight()) {
            (true, _) => Some(Exemption::Path),
            (false, true) => Some(Exemption::Preflight),
            (false, false) => self.by_address(caller, place, policy).then_some(Exemption::Address),
        }
    }
}

/// Is it a browser's question whether it may ask? (Fetch standard, CORS-preflight fetch.)
fn is_preflight<A: Attributes + ?Sized>(request: &A) -> bool {
    let has = |name: &str| {
        let mut found = false;
        request.header_lines(name, &mut |_| found = true);
        found
    };
    request.method() == "OPTIONS" && has("origin") && has("access-control-request-method")
}
