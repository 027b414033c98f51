//! What a configuration must be for a server to serve by it: at the start, and each time its file is read anew.

use std::collections::BTreeSet;

use tidegate::policy::file::{Complaint, Config};
use tidegate::policy::{Policies, Policy};
use tidegate::redis::RedisStore;
use tidegate::{Handling, Limit};
use tidegate_server::{ServedBy, Undone, undone};

use crate::config_file::ConfigFile;
use crate::flags::Wrong;
use crate::settings::ProxyFlags;

/// Different quotas that the limits of one configuration can have, so that many reloads find room in a table.
pub(crate) const QUOTAS_MAX: usize = 16_384;

/// What a server can serve by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Screen {
    /// Are buckets counted outside of this process?
    pub(crate) is_shared: bool,
    /// What serves by it.
    pub(crate) server: ServedBy,
}

impl Screen {
    /// Reads a file's contents, and holds them to what the proxy does. `flags` stand before its settings.
    ///
    /// # Errors
    /// Everything that is wrong.
    pub(crate) fn file(
        self,
        file: &ConfigFile,
        contents: &str,
        flags: &ProxyFlags,
    ) -> Result<(Config, ProxyFlags), Wrong> {
        let config = file.meaning(contents)?;
        if config.policies.as_slice().is_empty() {
            let name = file.name();
            let hint = "write `[[policies]]`, a `name` and `limits`";
            return Err(Wrong::new(format_args!("{name} has no policies, so nothing would be limited; {hint}")));
        }
        let complaints = self.complaints(&config.policies);
        let flags = flags.or(&config.proxy);
        match (complaints.is_empty(), flags) {
            (true, Ok(flags)) => Ok((config, flags)),
            (_, flags) => {
                let wrong = flags.err().unwrap_or_default().into_iter();
                let wrong = wrong.map(|(setting, message)| file.wrong_setting(contents, setting, &message));
                let told = (!complaints.is_empty()).then(|| file.complain(contents, &complaints));
                Err(Wrong::all(told.into_iter().chain(wrong)))
            }
        }
    }

    /// Holds the policies of flags to what the store does.
    ///
    /// # Errors
    /// What is wrong.
    pub(crate) fn flags(self, policies: &Policies) -> Result<(), Wrong> {
        let undone =
            undone(policies, self.server).into_iter().map(|Undone { key, what, .. }| format!("--{key}: {what}"));
        let inexact = self.inexact(policies);
        let inexact = inexact.map(|Inexact { name, quota, why, .. }| format!("{name} (--limit '{quota}') {why}"));
        undone.chain(inexact).next().map_or(Ok(()), |first| Err(Wrong::new(first)))
    }

    /// What an operator should know before the first request.
    pub(crate) fn warnings(self, policies: &Policies) -> Vec<String> {
        let mut warnings: Vec<_> = policies.warnings().iter().map(ToString::to_string).collect();
        let wants = |policy: &&Policy| policy.limits().iter().any(|named| wants_a_store(&named.handling));
        let wanting = policies.as_slice().iter().find(wants).filter(|_| !self.is_shared);
        warnings.extend(wanting.map(|policy| {
            format!(
                "`on_store_failure` and `sharing` of policy `{}` say nothing without --store, since buckets then live \
                 in this process",
                policy.name()
            )
        }));
        warnings
    }

    fn complaints(self, policies: &Policies) -> Vec<Complaint> {
        let undone = undone(policies, self.server).into_iter();
        let undone = undone.map(|Undone { policy, key, what }| Complaint { policy, key, message: what.to_owned() });
        let inexact = self.inexact(policies).map(|Inexact { policy, key, quota, why, .. }| Complaint {
            policy: policy.to_owned(),
            key,
            message: format!("`{quota}` {why}"),
        });
        undone.chain(inexact).chain(too_many_quotas(policies)).collect()
    }

    /// The quotas that a shared store cannot keep.
    fn inexact(self, policies: &Policies) -> impl Iterator<Item = Inexact<'_>> {
        let claims = policies.claims().filter(move |_| self.is_shared);
        claims.filter_map(|(policy, claim)| {
            let why = RedisStore::takes(&claim.quota).err()?;
            let why = format!("cannot be kept exactly in a shared store: {why}");
            let quota = claim.quota.into();
            let (name, key) = match policies.place(claim.limit).map(|place| place.limit) {
                Some(named) if named.limit == quota => (named.name.as_str(), "limits"),
                Some(named) => (named.name.as_str(), "overrides"),
                None => ("the penalty", "penalty"),
            };
            Some(Inexact { policy: policy.name(), name, key, quota, why })
        })
    }
}

/// A quota that a shared store cannot keep, and where it stands.
struct Inexact<'a> {
    policy: &'a str,
    /// What it belongs to.
    name: &'a str,
    /// The key of the configuration file that says it.
    key: &'static str,
    quota: Limit,
    why: String,
}

fn wants_a_store(handling: &Handling) -> bool {
    let plain = Handling::default();
    handling.on_failure != plain.on_failure || handling.sharing != plain.sharing
}

fn too_many_quotas(policies: &Policies) -> Option<Complaint> {
    let quotas: BTreeSet<_> = policies.claims().map(|(_, claim)| claim.quota.to_words()).collect();
    let (last, _) = policies.claims().last()?;
    (quotas.len() > QUOTAS_MAX).then(|| Complaint {
        policy: last.name().to_owned(),
        key: "overrides",
        message: format!("there are {} different limits; the maximum is {QUOTAS_MAX}", quotas.len()),
    })
}
