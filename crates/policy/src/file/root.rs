//! The file as a whole: who the client is, who is exempt, the policies, and settings of the proxy.

use std::ops::Range;
use std::str::FromStr;

use super::fault::Fault;
use super::policy::Named;
use super::reader::{Fields, Kind, Reader};
use super::tree::{Node, Value};
use super::{Config, Setting};
use crate::{AddressField, ClientAddress, Exempt, Grouping, Policies, PolicyError, Trust, TrustError};

/// The settings of the proxy: its flags by their names, with `_` between words.
pub const PROXY_SETTINGS: [&str; 27] = [
    "listen",
    "workers",
    "max_keys",
    "grace",
    "tls_cert",
    "tls_key",
    "proxy_protocol",
    "upstream",
    "upstream_ca",
    "upstream_host",
    "upstream_timeout",
    "stream_timeout",
    "headers",
    "cors_origins",
    "cors_credentials",
    "admin",
    "admin_token_file",
    "denied_keys",
    "denied_keys_hashed",
    "key_hash_salt",
    "save_state",
    "access_log",
    "access_log_format",
    "log",
    "log_level",
    "otlp",
    "trace_sample",
];

const FILE: Kind = Kind {
    what: "the file",
    keys: &["client", "exempt", "policies", "proxy"],
    meant: &[
        ("policy", "policies are a list: `[[policies]]` in TOML"),
        ("limits", "a limit stands in a policy: `[[policies]]`, then `name`, then `limits`"),
        ("limit", "a limit stands in a policy: `[[policies]]`, then `name`, then `limits`"),
        ("trust", "write it below `[client]`"),
        ("trusted_proxies", "write `trust` below `[client]`"),
        ("whitelist", "did you mean `exempt`?"),
        ("allowlist", "did you mean `exempt`?"),
        ("server", "did you mean `proxy`?"),
        ("listen", "write it below `[proxy]`"),
        ("upstream", "write it below `[proxy]`"),
    ],
};

const CLIENT: Kind = Kind {
    what: "the client",
    keys: &["trust", "from", "ipv4_prefix", "ipv6_prefix"],
    meant: &[
        ("trusted_proxies", "did you mean `trust`?"),
        ("trusted", "did you mean `trust`?"),
        ("header", "did you mean `from`?"),
        ("field", "did you mean `from`?"),
        ("client_from", "did you mean `from`?"),
        ("prefix", "did you mean `ipv6_prefix`?"),
    ],
};

const PROXY: Kind = Kind { what: "the proxy", keys: &PROXY_SETTINGS, meant: &[("port", "write `listen`")] };

/// What both kinds of exemptions have; that of a policy has keys too.
pub(super) const EXEMPT: Kind = Kind {
    what: "what is exempt from all policies",
    keys: &["addresses", "paths", "preflights", "health_checks"],
    meant: &[
        ("keys", "each policy has keys of its own, so write it in a policy"),
        ("ips", "did you mean `addresses`?"),
        ("clients", "did you mean `addresses`?"),
    ],
};

/// What a tree says.
pub(super) fn config(tree: &Node) -> Result<Config, Vec<Fault>> {
    let mut reader = Reader::default();
    let Some(fields) = reader.fields(tree, &FILE) else { return Err(reader.faults) };
    let client = fields.get("client").and_then(|node| reader.client(node)).unwrap_or_default();
    let exempt = fields.get("exempt").and_then(|node| reader.exempt(node, &EXEMPT)).unwrap_or_default();
    let policies = reader.policies(fields.get("policies"), &client);
    let proxy = fields.get("proxy").map(|node| reader.settings(node)).unwrap_or_default();
    if !reader.faults.is_empty() {
        return Err(reader.faults);
    }
    let (spans, policies): (Vec<_>, Vec<_>) = policies.into_iter().map(|named| (named.span, named.policy)).unzip();
    let names: Vec<_> = policies.iter().map(|policy| policy.name().to_owned()).collect();
    match Policies::with_exempt(client, exempt, policies) {
        Ok(policies) => Ok(Config { policies, proxy }),
        Err(error) => Err(vec![Fault::new(&place(&error, &names, &spans), error)]),
    }
}

/// Where a fault of policies stands that shows only when they are put together: at the name of the last concerned.
fn place(error: &PolicyError, names: &[String], spans: &[Range<usize>]) -> Range<usize> {
    let last = match error {
        PolicyError::TooManyLimits { policies, .. } => policies.last(),
        PolicyError::SameLimit { policy, .. }
        | PolicyError::SameHeader { policy, .. }
        | PolicyError::Override { policy, .. } => Some(policy),
        PolicyError::TooManyPolicies { .. } | PolicyError::KeyWithoutPolicy => names.last(),
    };
    let at = last.and_then(|name| names.iter().position(|known| known == name));
    at.map_or(0..0, |at| spans[at].clone())
}

impl Reader {
    fn client(&mut self, node: &Node) -> Option<ClientAddress> {
        let fields = self.fields(node, &CLIENT)?;
        let trust = self.all_parsed::<Trust>(fields.get("trust"), "a text with networks, such as \"10.0.0.0/8\"");
        let field =
            fields.get("from").and_then(|node| self.parsed::<AddressField>(node, "a text, the name of a field"));
        let mut grouping = Grouping::default();
        if let Some(bits) = self.bits(&fields, "ipv4_prefix", 32) {
            grouping = grouping.with_v4_bits(bits).unwrap_or(grouping);
        }
        if let Some(bits) = self.bits(&fields, "ipv6_prefix", 128) {
            grouping = grouping.with_v6_bits(bits).unwrap_or(grouping);
        }
        Some(ClientAddress { trust: trust.into_iter().collect(), field: field.unwrap_or_default(), grouping })
    }

    fn bits(&mut self, fields: &Fields<'_>, name: &str, bits_max: u8) -> Option<u8> {
        let bits = self.whole(fields.get(name)?, 0, u64::from(bits_max))?;
        u8::try_from(bits).ok()
    }

    pub(super) fn exempt(&mut self, node: &Node, kind: &Kind) -> Option<Exempt> {
        let fields = self.fields(node, kind)?;
        let networks =
            self.all_parsed::<Addresses>(fields.get("addresses"), "a text with networks, such as \"10.0.0.0/8\"");
        let paths = self.all_parsed(fields.get("paths"), "a text with a path, such as \"/healthz\"");
        let plain = Exempt::default();
        let mut flag = |name: &str, plain| fields.get(name).and_then(|node| self.flag(node)).unwrap_or(plain);
        Some(Exempt {
            addresses: networks.into_iter().map(|networks| networks.0).collect(),
            paths,
            keys: Vec::new(),
            preflights: flag("preflights", plain.preflights),
            health_checks: flag("health_checks", plain.health_checks),
        })
    }

    fn policies(&mut self, node: Option<&Node>, client: &ClientAddress) -> Vec<Named> {
        let nodes = match node.map(|node| &node.value) {
            None => return Vec::new(),
            Some(Value::List(nodes)) => nodes,
            Some(_) => {
                let span = node.map_or(0..0, |node| node.span.clone());
                self.fault(&span, "policies are a list: `[[policies]]` in TOML, `policies: [...]` elsewhere");
                return Vec::new();
            }
        };
        let mut all: Vec<Named> = Vec::new();
        for node in nodes {
            let Some(named) = self.policy(node, client) else { continue };
            match all.iter().any(|known| known.policy.name() == named.policy.name()) {
                true => self.fault(
                    &named.span,
                    format_args!("a policy `{}` is there already; give each a name of its own", named.policy.name()),
                ),
                false => all.push(named),
            }
        }
        all
    }

    fn settings(&mut self, node: &Node) -> Vec<Setting> {
        let Some(fields) = self.fields(node, &PROXY) else { return Vec::new() };
        let entries = PROXY_SETTINGS.iter().filter_map(|name| fields.entry(name));
        entries.filter_map(|(key, node)| self.setting(&key.name, node)).collect()
    }

    /// A setting as the flag takes it: a number, true or false as it is written, and commas between the texts of a list.
    fn setting(&mut self, name: &str, node: &Node) -> Option<Setting> {
        let text = match &node.value {
            Value::Number(number) => number.clone(),
            Value::Bool(is) => is.to_string(),
            _ => {
                let each = self.each(node, "a text");
                each.iter().map(|node| self.text(node, "a text or a number")).collect::<Option<Vec<_>>>()?.join(",")
            }
        };
        Some(Setting { name: name.to_owned(), text, span: node.span.clone() })
    }
}

/// Is it a name for a policy or a limit? Names stand in header fields, metrics and messages.
pub(super) fn is_name(name: &str) -> bool {
    (1..=64).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

/// Networks that stand in the file itself.
struct Addresses(Trust);

impl FromStr for Addresses {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let networks: Trust = text.parse().map_err(|error: TrustError| error.to_string())?;
        let has_files = networks.has_files();
        if has_files {
            Err("only trusted networks can stand in a file of their own".to_owned())
        } else {
            Ok(Self(networks))
        }
    }
}
