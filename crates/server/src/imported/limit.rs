//! A rule or a limit of another service as one of Tidegate's own: with a policy, a name, and keys that can be named.

use tidegate_core::{Limit, Mode};
use tidegate_policy::descriptor_rules::DescriptorRule;
use tidegate_policy::{NamedKey, NamedLimit, limitador};

use crate::LimitName;

/// One of them.
#[derive(Clone, Debug)]
pub(crate) struct ImportedLimit {
    /// What stands for its policy: a rule's domain, or `limitador:` and a namespace, as no policy can be called.
    pub(crate) policy: String,
    pub(crate) named: NamedLimit,
    /// How many values a key of it has; none if all share one bucket.
    values: usize,
}

impl ImportedLimit {
    /// The bytes of one of its keys; `None` if it has none that is named so.
    pub(crate) fn key(&self, key: NamedKey<'_>) -> Option<Vec<u8>> {
        key.of_values(self.values)
    }

    /// How its keys are named.
    pub(crate) fn key_in_words(&self) -> String {
        match self.values {
            0 => "all who meet it share one bucket, so it takes no `key=`".to_owned(),
            1 => "a key of it is named by one `key=VALUE`, or by `bytes=`".to_owned(),
            count => {
                format!("a key of it is named by {count} values in their order, a `key=VALUE` each, or by `bytes=`")
            }
        }
    }

    /// What metrics call it.
    pub(super) fn name(&self) -> LimitName {
        LimitName {
            policy: self.policy.clone(),
            limit: self.named.name.clone(),
            mode: self.named.mode,
            on_failure: self.named.handling.on_failure,
        }
    }
}

impl From<&DescriptorRule> for ImportedLimit {
    fn from(rule: &DescriptorRule) -> Self {
        let named = NamedLimit {
            name: rule.path.clone(),
            id: rule.id,
            limit: rule.limit,
            mode: rule.mode,
            handling: rule.handling,
        };
        Self { policy: rule.domain.clone(), named, values: rule.open_values() }
    }
}

impl From<&limitador::Limit> for ImportedLimit {
    fn from(limit: &limitador::Limit) -> Self {
        let named = NamedLimit {
            name: limit.label.clone(),
            id: limit.limit,
            limit: Limit::from(limit.quota),
            mode: Mode::Enforce,
            handling: limit.handling,
        };
        Self { policy: format!("limitador:{}", limit.namespace), named, values: limit.variables().count() }
    }
}
