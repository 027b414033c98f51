//! Every example of the documentation is read, is what the schema describes, and survives being printed.

use serde_json::{Map, Value as Json};

use super::super::tree::{Node, Value};
use super::super::{Format, SCHEMA, json, read, toml, yaml};
use crate::file::tests::toml as read_toml;

const DOCUMENT: &str = include_str!("../../../../../docs/configuration.md");

/// The examples, each with the language behind its fence.
fn examples() -> Vec<(&'static str, &'static str)> {
    let fences = DOCUMENT.split("\n```").skip(1).step_by(2);
    let all: Vec<_> = fences.filter_map(|fence| fence.split_once('\n')).collect();
    assert!(all.len() >= 12, "the examples are where they are looked for");
    all
}

fn format(language: &str) -> Option<Format> {
    match language {
        "toml" => Some(Format::Toml),
        "yaml" => Some(Format::Yaml),
        "json" => Some(Format::Json),
        _ => None,
    }
}

fn tree(text: &str, format: Format) -> Node {
    match format {
        Format::Toml => toml::tree(text).0,
        Format::Yaml => yaml::tree(text).unwrap(),
        Format::Json => json::tree(text).unwrap(),
    }
}

fn to_json(node: &Node) -> Json {
    match &node.value {
        Value::Null => Json::Null,
        Value::Bool(is) => Json::Bool(*is),
        Value::Number(number) => serde_json::from_str(&number.replace('_', "")).unwrap(),
        Value::Text(text) | Value::Time(text) => Json::String(text.clone()),
        Value::List(list) => list.iter().map(to_json).collect(),
        Value::Table(entries) => {
            Json::Object(entries.iter().map(|(key, node)| (key.name.clone(), to_json(node))).collect::<Map<_, _>>())
        }
    }
}

/// Does the schema describe it?
fn is_valid(text: &str, format: Format) -> bool {
    let (mut schemas, mut compiler) = (boon::Schemas::new(), boon::Compiler::new());
    compiler.add_resource("schema.json", serde_json::from_str(SCHEMA).unwrap()).unwrap();
    let schema = compiler.compile("schema.json", &mut schemas).unwrap();
    schemas.validate(&to_json(&tree(text, format)), schema).is_ok()
}

#[test]
fn every_example_is_read_described_and_printed() {
    for (language, text) in examples() {
        let Some(format) = format(language) else { continue };
        let config = read("example", text, format).unwrap_or_else(|error| panic!("{error}\nin\n{text}"));
        assert!(is_valid(text, format), "the schema describes\n{text}");
        let printed = config.to_toml();
        let again = read_toml(&printed).unwrap_or_else(|error| panic!("{error}\nin\n{printed}"));
        assert_eq!(again.policies, config.policies, "{printed}");
        assert!(is_valid(&printed, Format::Toml), "the schema describes\n{printed}");
        let settings = |proxy: &[super::super::Setting]| {
            proxy.iter().map(|setting| (setting.name.clone(), setting.text.clone())).collect::<Vec<_>>()
        };
        assert_eq!(settings(&again.proxy), settings(&config.proxy));
    }
}

#[test]
fn the_first_examples_say_the_same() {
    let three = &examples()[..3];
    let configs: Vec<_> =
        three.iter().map(|(language, text)| read("example", text, format(language).unwrap()).unwrap()).collect();
    assert_eq!(configs[0], configs[1]);
    assert_eq!(configs[1], configs[2]);
}

#[test]
fn the_mistakes_are_shown_as_they_are_documented() {
    let text = "[[policies]]\nname = \"api\"\nlimits = \"5/m\"\non-missing = \"skip\"\n";
    let shown = read_toml(text).unwrap_err().to_string();
    assert!(DOCUMENT.contains(&shown), "{shown}");
}

#[test]
fn what_the_file_refuses_by_its_shape_the_schema_refuses() {
    for text in [
        "policy = []",
        "[[policies]]\nname = 'a'",
        "[[policies]]\nlimits = '1/s'",
        "[[policies]]\nname = 'a b'\nlimits = '1/s'",
        "[[policies]]\nname = 'a'\nlimits = 5",
        "[[policies]]\nname = 'a'\nlimits = []",
        "[[policies]]\nname = 'a'\nlimits = '100'",
        "[[policies]]\nname = 'a'\nlimits = '1/s'\nmode = 'on'",
        "[[policies]]\nname = 'a'\nlimits = '1/s'\nmatch = { path = 7 }",
        "[[policies]]\nname = 'a'\nlimits = '1/s'\nmatch = { url = '/' }",
        "[[policies]]\nname = 'a'\nlimits = '1/s'\ncost = -1",
        "[[policies]]\nname = 'a'\nlimits = '1/s'\ncost = { header = 'a', estimate = 1 }",
        "[[policies]]\nname = 'a'\nlimits = '1/s'\ncharge_for = '6xx'",
        "[[policies]]\nname = 'a'\nlimits = '1/s'\npenalty = { after = '1/s' }",
        "[[policies]]\nname = 'a'\nlimits = '1/s'\nsharing = 'leased'",
        "[[policies]]\nname = 'a'\nlimits = '1/s'\non_store_failure = 'open'",
        "[exempt]\nkeys = ['a']",
        "[client]\nipv6_prefix = 129",
        "[proxy]\nport = 80",
    ] {
        assert!(read_toml(text).is_err(), "{text}");
        assert!(!is_valid(text, Format::Toml), "{text}");
    }
}

#[test]
fn the_schema_names_every_key_and_no_other() {
    let schema: Json = serde_json::from_str(SCHEMA).unwrap();
    let keys = |pointer: &str| {
        let properties = schema.pointer(pointer).and_then(|kind| kind["properties"].as_object()).unwrap();
        let mut keys: Vec<_> = properties.keys().cloned().collect();
        keys.sort();
        keys
    };
    for (pointer, text) in [
        ("", "x = 1"),
        ("/$defs/client", "[client]\nx = 1"),
        ("/$defs/proxy", "[proxy]\nx = 1"),
        ("/$defs/policy", "[[policies]]\nname = 'a'\nlimits = '1/s'\nx = 1"),
        ("/$defs/match", "[[policies]]\nname = 'a'\nlimits = '1/s'\nmatch = { x = 1 }"),
        ("/$defs/exempt", "[[policies]]\nname = 'a'\nlimits = '1/s'\nexempt = { x = 1 }"),
        ("/$defs/limit/anyOf/1", "[[policies]]\nname = 'a'\nlimits = [{ limit = '1/s', x = 1 }]"),
        (
            "/$defs/override",
            "[[policies]]\nname = 'a'\nlimits = '1/s'\noverrides = [{ key = '::1', limits = '2/s', x = 1 }]",
        ),
        ("/$defs/penalty", "[[policies]]\nname = 'a'\nlimits = '1/s'\npenalty = { after = '1/s', hold = '1h', x = 1 }"),
    ] {
        let error = read_toml(text).unwrap_err();
        let [fault] = error.faults() else { panic!("{error}") };
        let known = fault.message.split_once("it has `").unwrap_or_else(|| panic!("{error}")).1;
        let mut known: Vec<_> = known.trim_end_matches('`').split("`, `").map(str::to_owned).collect();
        known.sort();
        assert_eq!(keys(pointer), known, "{pointer}");
    }
}
