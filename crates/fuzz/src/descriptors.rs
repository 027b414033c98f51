//! The rules of the rate limit service that Envoy's project publishes.

use tidegate_core::{Algorithm, Handling};
use tidegate_policy::descriptor_rules::{RuleFile, read};
use tidegate_policy::{Entry, Keys};

use crate::{Door, text};

pub(crate) const RULES: Door = Door {
    name: "descriptor_rules",
    enter: rules,
    bytes_per_byte: 1024,
    words: &[
        "domain: d\n",
        "descriptors:\n",
        "  - key: a\n",
        "    value: b\n",
        "    rate_limit:\n",
        "      unit: minute\n",
        "      requests_per_unit: 3\n",
        "      unlimited: true\n",
        "      name: n\n",
        "      replaces: [{name: n}]\n",
        "    descriptors:\n",
        "    shadow_mode: true\n",
        "    quota_mode: true\n",
        "value: b*\n",
        "value: \"*\"\n",
        "    detailed_metric: true\n",
    ],
};

fn rules(input: &[u8]) {
    let contents = text(input);
    let files = [RuleFile { name: "f", contents: &contents }];
    let Ok((rules, _)) = read(&files, Algorithm::FixedWindow, Handling::default()) else { return };
    let entries = [Entry { key: "a", value: "b" }, Entry { key: "a", value: "ü" }, Entry { key: "", value: "" }];
    for rule in rules.rules() {
        for count in 0..=entries.len() {
            let entries = &entries[..count];
            let Some(place) = rules.place_of(&rule.domain, entries) else { continue };
            rules.rules()[place].push_key(entries, &mut Keys::new());
        }
    }
}
