//! A configuration as a file in TOML. What is as it would be without being said is left out.

use std::fmt::Write as _;
use std::num::NonZeroU32;

use tidegate_core::{Cost, Handling, Mode, Sharing};

use super::limits::{AT_BOUNDS, MODES, algorithm};
use super::policy::on_missing_word;
use super::{Config, until};
use crate::{
    ClientAddress, CostRule, Counting, Exempt, HeaderMatch, Match, NamedLimit, Offence, Override, Penalty, Policy,
    Trust,
};

pub(super) fn config(config: &Config) -> String {
    let mut out = Out(String::new());
    if !config.proxy.is_empty() {
        out.table("[proxy]");
        config.proxy.iter().for_each(|setting| out.entry(&setting.name, &quoted(&setting.text)));
    }
    out.client(config.policies.client());
    if *config.policies.exempt() != Exempt::default() {
        out.table("[exempt]");
        out.exempt(config.policies.exempt());
    }
    config.policies.as_slice().iter().for_each(|policy| out.policy(policy));
    out.0
}

/// The file so far.
struct Out(String);

impl Out {
    fn table(&mut self, head: &str) {
        let gap = if self.0.is_empty() { "" } else { "\n" };
        // Writing to a text cannot fail.
        let _ = writeln!(self.0, "{gap}{head}");
    }

    fn entry(&mut self, name: &str, value: &str) {
        let _ = writeln!(self.0, "{name} = {value}");
    }

    fn client(&mut self, client: &ClientAddress) {
        let plain = ClientAddress::default();
        if *client == plain {
            return;
        }
        self.table("[client]");
        if !client.trust.is_nothing() {
            self.entry("trust", &networks(&client.trust));
        }
        if client.field != plain.field {
            self.entry("from", &quoted(client.field.name()));
        }
        if client.grouping.v4_bits() != plain.grouping.v4_bits() {
            self.entry("ipv4_prefix", &client.grouping.v4_bits().to_string());
        }
        if client.grouping.v6_bits() != plain.grouping.v6_bits() {
            self.entry("ipv6_prefix", &client.grouping.v6_bits().to_string());
        }
    }

    fn exempt(&mut self, exempt: &Exempt) {
        if !exempt.addresses.is_nothing() {
            self.entry("addresses", &networks(&exempt.addresses));
        }
        if !exempt.paths.is_empty() {
            self.entry("paths", &list(exempt.paths.iter().map(|path| quoted(&path.to_string()))));
        }
        if !exempt.keys.is_empty() {
            self.entry("keys", &list(exempt.keys.iter().map(|values| key_values(values))));
        }
        if !exempt.preflights {
            self.entry("preflights", "false");
        }
        if exempt.health_checks {
            self.entry("health_checks", "true");
        }
    }

    fn policy(&mut self, policy: &Policy) {
        self.table("[[policies]]");
        self.entry("name", &quoted(policy.name()));
        if !policy.matching().is_everything() {
            self.entry("match", &matching(policy.matching()));
        }
        if policy.is_final() {
            self.entry("final", "true");
        }
        self.entry("key", &one_or_list(policy.key().as_slice().iter().map(|part| quoted(&part.to_text()))));
        if policy.on_missing() != Default::default() {
            self.entry("on_missing", &quoted(on_missing_word(policy.on_missing())));
        }
        self.cost(policy.cost());
        if let Counting::Responses(statuses) = policy.counting() {
            self.entry("charge_for", &list(statuses.to_texts().iter().map(|text| quoted(text))));
        }
        if let Some(penalty) = policy.penalty() {
            self.entry("penalty", &self::penalty(penalty));
        }
        if are_plain(policy.limits()) {
            self.entry("limits", &one_or_list(policy.limits().iter().map(|named| quoted(&named.limit.to_string()))));
        }
        if *policy.exempt() != Exempt::default() {
            self.table("[policies.exempt]");
            self.exempt(policy.exempt());
        }
        if !are_plain(policy.limits()) {
            policy.limits().iter().for_each(|named| self.limit(named));
        }
        policy.overrides().iter().for_each(|special| self.special(special));
    }

    fn cost(&mut self, cost: &CostRule) {
        match cost {
            CostRule::Constant(Cost::ONE) => {}
            CostRule::Constant(cost) => self.entry("cost", &cost.tokens().to_string()),
            CostRule::Header { name, otherwise } => {
                let name = quoted(name.as_str());
                self.entry("cost", &format!("{{ header = {name}, otherwise = {} }}", otherwise.tokens()));
            }
            CostRule::Response { name, estimate } => {
                let name = quoted(name.as_str());
                self.entry("cost", &format!("{{ response = {name}, estimate = {} }}", estimate.tokens()));
            }
        }
    }

    fn limit(&mut self, named: &NamedLimit) {
        self.table("[[policies.limits]]");
        self.entry("name", &quoted(&named.name));
        self.entry("limit", &quoted(&named.limit.to_string()));
        let Handling { at_bound, on_failure, sharing, .. } = named.handling;
        let plain = Handling::default();
        if named.mode != Mode::default() {
            self.entry("mode", &quoted(word(&MODES, named.mode)));
        }
        if algorithm(&named.limit) != Default::default() {
            self.entry("algorithm", &quoted(algorithm(&named.limit).name()));
        }
        if at_bound != plain.at_bound {
            self.entry("at_bound", &quoted(word(&AT_BOUNDS, at_bound)));
        }
        if on_failure != plain.on_failure {
            self.entry("on_store_failure", &quoted(&on_failure.to_string()));
        }
        if let Sharing::Leased { most } = sharing {
            self.entry("sharing", &quoted(&format!("leased:{}", NonZeroU32::get(most))));
        }
    }

    fn special(&mut self, special: &Override) {
        self.table("[[policies.overrides]]");
        self.entry("key", &key_values(&special.key));
        let limits =
            special.limits.iter().map(|(name, limit)| format!("{} = {}", quoted(name), quoted(&limit.to_string())));
        self.entry("limits", &format!("{{ {} }}", limits.collect::<Vec<_>>().join(", ")));
        if let Some(until_s) = special.until_s {
            self.entry("until", &until::text(until_s));
        }
    }
}

/// Can the limits be written as texts alone?
fn are_plain(limits: &[NamedLimit]) -> bool {
    limits.iter().enumerate().all(|(i, named)| {
        let is_plain = named.mode == Mode::default() && named.handling == Handling::default();
        is_plain && algorithm(&named.limit) == Default::default() && named.name == format!("limit-{}", i + 1)
    })
}

fn matching(matching: &Match) -> String {
    fn texts<T: ToString>(name: &str, all: &[T]) -> Option<String> {
        (!all.is_empty()).then(|| format!("{name} = {}", one_or_list(all.iter().map(|one| quoted(&one.to_string())))))
    }
    let header = |header: &HeaderMatch| {
        let values = header.values.iter().map(|value| quoted(value));
        let values = if header.values.is_empty() { "true".to_owned() } else { one_or_list(values) };
        format!("{} = {values}", quoted(header.name.as_str()))
    };
    let headers = matching.headers.iter().map(header).collect::<Vec<_>>().join(", ");
    let headers = (!headers.is_empty()).then(|| format!("header = {{ {headers} }}"));
    let parts =
        [texts("host", &matching.hosts), texts("method", &matching.methods), texts("path", &matching.paths), headers];
    format!("{{ {} }}", parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
}

fn penalty(penalty: &Penalty) -> String {
    let of = match penalty.of {
        Offence::Denials => quoted("denials"),
        Offence::Responses(statuses) => list(statuses.to_texts().iter().map(|text| quoted(text))),
    };
    let after = quoted(&penalty.after.to_string());
    format!("{{ after = {after}, of = {of}, hold = {} }}", quoted(&penalty.hold_text()))
}

fn networks(networks: &Trust) -> String {
    list(networks.to_string().split(',').map(quoted))
}

fn key_values(values: &[String]) -> String {
    one_or_list(values.iter().map(|value| quoted(value)))
}

fn list(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(", "))
}

fn one_or_list(items: impl Iterator<Item = String>) -> String {
    let mut items: Vec<_> = items.collect();
    match items.pop() {
        Some(only) if items.is_empty() => only,
        last => list(items.into_iter().chain(last)),
    }
}

fn word<T: Copy + PartialEq>(words: &[(&'static str, T)], value: T) -> &'static str {
    words.iter().find(|(_, known)| *known == value).map_or("", |(word, _)| word)
}

/// A text as TOML's basic string.
fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04X}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
