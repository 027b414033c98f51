//! Single keys of a policy: those with limits of their own, and those that are exempt.

use tidegate_core::Limit;

use super::fault::ConfigError;
use super::json;
use super::limits::algorithm;
use super::near::near;
use super::reader::{Kind, Reader, printable};
use super::tree::{Node, Value};
use super::until;
use crate::overrides::key_of;
use crate::{ClientAddress, Override, OverrideError, Policy};

const OVERRIDE: Kind = Kind {
    what: "an override",
    keys: &["key", "limits", "until"],
    meant: &[
        ("limit", "did you mean `limits`?"),
        ("keys", "did you mean `key`? Each key has an override of its own"),
        ("expires", "did you mean `until`?"),
        ("end", "did you mean `until`?"),
    ],
};

const OVERRIDE_BODY: Kind = Kind { what: "an override", keys: &["limits", "until"], meant: OVERRIDE.meant };

/// Reads what a key is to be allowed instead, as JSON: `limits`, and `until` if it ends. `name` is what errors call it.
///
/// # Errors
/// Everything that is wrong with it.
pub fn read_override(name: &str, contents: &str, policy: &Policy, key: Vec<String>) -> Result<Override, ConfigError> {
    let error = |faults| ConfigError::new(name, contents, faults);
    let tree = json::tree(contents).map_err(|fault| error(vec![fault]))?;
    let mut reader = Reader::default();
    let special = reader.override_body(&tree, policy, key);
    special.filter(|_| reader.faults.is_empty()).ok_or_else(|| error(reader.faults))
}

impl Reader {
    fn override_body(&mut self, node: &Node, policy: &Policy, key: Vec<String>) -> Option<Override> {
        let fields = self.fields(node, &OVERRIDE_BODY)?;
        let until_s = fields.get("until").and_then(|node| self.until(node));
        let Some(limits) = fields.get("limits") else {
            self.fault(fields.span, "an override needs `limits`, such as `\"limits\": \"600/min\"`");
            return None;
        };
        Some(Override { key, limits: self.override_limits(limits, policy)?, until_s })
    }

    /// The overrides of a policy whose limits are known.
    pub(super) fn overrides(&mut self, node: &Node, client: &ClientAddress, policy: &mut Policy) {
        let Value::List(nodes) = &node.value else {
            self.fault(&node.span, "overrides are a list: `[[policies.overrides]]` in TOML");
            return;
        };
        let mut known = std::collections::HashSet::new();
        known.extend(policy.exempt.keys.iter().filter_map(|values| key_of(&policy.key, values, client).ok()));
        for node in nodes {
            let Some(fields) = self.fields(node, &OVERRIDE) else { continue };
            let Some(key) = fields.get("key") else {
                self.fault(fields.span, "an override needs a `key`, the value of the policy's key");
                continue;
            };
            let values = self.key_values(key, client, policy);
            let limits = match fields.get("limits") {
                Some(node) => self.override_limits(node, policy),
                None => {
                    self.fault(fields.span, "an override needs `limits`, such as `limits = \"600/min\"`");
                    None
                }
            };
            let until_s = fields.get("until").and_then(|node| self.until(node));
            let (Some((values, bytes)), Some(limits)) = (values, limits) else { continue };
            match known.insert(bytes) {
                true => policy.overrides.push(Override { key: values, limits, until_s }),
                false => self.fault(&key.span, OverrideError::Twice { key: values.join(", ") }),
            }
        }
    }

    /// The exempt keys of a policy.
    pub(super) fn exempt_keys(&mut self, node: &Node, client: &ClientAddress, policy: &mut Policy) {
        let Value::Table(entries) = &node.value else { return };
        let Some((_, node)) = entries.iter().find(|(key, _)| key.name == "keys") else { return };
        let mut known = std::collections::HashSet::new();
        for node in self.each(node, "keys") {
            let Some((values, bytes)) = self.key_values(node, client, policy) else { continue };
            match known.insert(bytes) {
                true => policy.exempt.keys.push(values),
                false => self.fault(&node.span, OverrideError::Twice { key: values.join(", ") }),
            }
        }
    }

    /// The values of a key's parts, and the key's bytes.
    fn key_values(&mut self, node: &Node, client: &ClientAddress, policy: &Policy) -> Option<(Vec<String>, Vec<u8>)> {
        let expected = "a text, the value of the policy's key, or a list with one for each part";
        let values = self.each(node, expected).iter().map(|node| self.text(node, expected).map(str::to_owned));
        let values = values.collect::<Option<Vec<_>>>()?;
        match key_of(&policy.key, &values, client) {
            Ok(bytes) => Some((values, bytes)),
            Err(error) => {
                self.fault(&node.span, error);
                None
            }
        }
    }

    /// A text, if the policy has one limit; otherwise a table of names.
    fn override_limits(&mut self, node: &Node, policy: &Policy) -> Option<Vec<(String, Limit)>> {
        if !matches!(node.value, Value::Table(_)) {
            let [only] = policy.limits.as_slice() else {
                let names = policy.limits.iter().map(|named| format!("{} = \"...\"", named.name)).collect::<Vec<_>>();
                let message = format!("the policy has several limits; write `{{ {} }}`", names.join(", "));
                self.fault(&node.span, message);
                return None;
            };
            let limit = self.limit(node, algorithm(&only.limit))?;
            return Some(vec![(only.name.clone(), limit)]);
        }
        let mut limits = Vec::new();
        for (key, node) in self.table(node, "limits as a table")? {
            match policy.limits.iter().find(|named| named.name == key.name) {
                Some(named) => limits.extend(self.limit(node, algorithm(&named.limit)).map(|l| (key.name.clone(), l))),
                None => {
                    let meant = near(&key.name, policy.limits.iter().map(|named| named.name.as_str()));
                    let meant = meant.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default();
                    let name = printable(&key.name);
                    self.fault(&key.span, format_args!("the policy has no limit `{name}`{meant}"));
                }
            }
        }
        Some(limits)
    }

    fn until(&mut self, node: &Node) -> Option<u64> {
        let text = match &node.value {
            Value::Time(text) => text,
            _ => self.text(node, "a text, a time such as \"2026-12-24T18:00:00Z\"")?,
        };
        until::unix_s(text).map_err(|error| self.fault(&node.span, error)).ok()
    }
}
