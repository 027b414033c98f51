//! The document that describes the face to programs says what the face does.

use serde_json::{Value, json};
use tidegate::{Algorithm, Limit};

use crate::stage::Stage;

fn document() -> Value {
    Stage::plain().call("GET", "/openapi.json", "", b"").body
}

/// A schema of the document.
struct Schema {
    schemas: boon::Schemas,
    index: boon::SchemaIndex,
}

impl Schema {
    fn at(document: &Value, place: &str) -> Self {
        let (mut schemas, mut compiler) = (boon::Schemas::new(), boon::Compiler::new());
        compiler.enable_format_assertions();
        compiler.add_resource("openapi.json", document.clone()).unwrap();
        let index = compiler.compile(&format!("openapi.json#{place}"), &mut schemas).unwrap();
        Self { schemas, index }
    }

    fn takes(&self, instance: &Value) -> Result<(), String> {
        self.schemas.validate(instance, self.index).map_err(|error| error.to_string())
    }
}

const CHECK: &str = "/components/schemas/Check";
const RESERVE: &str = "/components/schemas/Reserve";

#[test]
fn each_example_is_taken_by_its_schema_and_by_the_face() {
    let (document, stage) = (document(), Stage::plain());
    assert_eq!(document["info"]["version"], env!("CARGO_PKG_VERSION"));
    let mut seen = 0;
    for (path, item) in document["paths"].as_object().unwrap() {
        let Some(content) = item["post"]["requestBody"]["content"]["application/json"].as_object() else { continue };
        let schema = content["schema"]["$ref"].as_str().unwrap().trim_start_matches('#');
        for (name, example) in content["examples"].as_object().unwrap() {
            Schema::at(&document, schema).takes(&example["value"]).unwrap_or_else(|error| panic!("{name}: {error}"));
            let reply = stage.post(path, &example["value"]);
            assert!(reply.status == 200 || path == "/v1/settle" && reply.status == 404, "{name}: {}", reply.body);
            seen += 1;
        }
    }
    assert_eq!(seen, 5);
}

#[test]
fn what_the_schema_takes_the_face_takes_and_what_it_refuses_the_face_refuses() {
    let (document, stage) = (document(), Stage::plain());
    let charge = |more: Value| {
        let mut charge = json!({ "limit": "60/min", "key": "a" });
        more.as_object().unwrap().iter().for_each(|(name, value)| charge[name] = value.clone());
        json!({ "charges": [charge] })
    };
    let bodies = [
        json!({}),
        json!([]),
        json!(null),
        json!({ "charges": [] }),
        json!({ "request": {} }),
        json!({ "request": null }),
        json!({ "request": {}, "cost": 3, "peek": false }),
        json!({ "request": {}, "open_for_s": 3 }),
        json!({ "request": {}, "charges": [{ "limit": "60/min", "key": "a" }] }),
        json!({ "request": { "path": "a" } }),
        json!({ "request": { "client": "192.0.2.7" } }),
        json!({ "request": { "client": "::1" } }),
        json!({ "request": { "client": "a" } }),
        json!({ "request": { "client": "::1%eth0" } }),
        json!({ "request": { "client": "192.0.2.07" } }),
        json!({ "request": { "method": "" } }),
        json!({ "request": { "method": "x".repeat(33) } }),
        json!({ "request": { "headers": { "a": ["b", "c"], "d": "e" } } }),
        json!({ "request": { "headers": { "a": [1] } } }),
        json!({ "request": { "headers": [] } }),
        json!({ "request": { "claims": { "a": 1 } } }),
        json!({ "request": { "claims": { "a": "b" }, "host": "h" } }),
        json!({ "request": { "body": "" } }),
        charge(json!({})),
        charge(json!({ "key": 1 })),
        charge(json!({ "key": [] })),
        charge(json!({ "key": ["a", ""] })),
        charge(json!({ "key": "x".repeat(512) })),
        charge(json!({ "key": "x".repeat(513) })),
        charge(json!({ "key": vec!["a"; 9] })),
        charge(json!({ "key": "\u{1f600}".repeat(512) })),
        charge(json!({ "cost": 0 })),
        charge(json!({ "cost": u64::MAX })),
        charge(json!({ "cost": -1 })),
        charge(json!({ "cost": 1.5 })),
        charge(json!({ "cost": 1.0 })),
        charge(json!({ "cost": "1" })),
        charge(json!({ "cost": 1.0e30 })),
        charge(json!({ "name": "" })),
        charge(json!({ "name": "a.b-c_D9" })),
        charge(json!({ "name": "x".repeat(64) })),
        charge(json!({ "name": "x".repeat(65) })),
        charge(json!({ "name": "-a" })),
        charge(json!({ "name": "a b" })),
        charge(json!({ "shadow": true })),
        charge(json!({ "shadow": 0 })),
        charge(json!({ "limit": 60 })),
        charge(json!({ "burst": 3 })),
        charge(json!({ "algorithm": "token-bucket" })),
        charge(json!({ "algorithm": "gcra" })),
        charge(json!({ "algorithm": "sliding-log" })),
        charge(json!({ "algorithm": "fixed-window", "limit": "6/min burst 3" })),
        charge(json!({ "algorithm": "sliding-log", "limit": "20000/min" })),
        charge(json!({ "algorithm": "sliding-counter", "limit": "900/us" })),
    ];
    for (place, path) in [(CHECK, "/v1/check"), (RESERVE, "/v1/reserve")] {
        let schema = Schema::at(&document, place);
        for body in &bodies {
            let (theirs, ours) = (schema.takes(body), stage.post(path, body));
            assert_eq!(theirs.is_ok(), ours.status == 200, "{path} {body}: {theirs:?}, {}", ours.body);
        }
    }
}

/// Texts that look like limits, of all sizes and units.
fn texts() -> impl Iterator<Item = String> {
    let counts = ["0", "1", "99", "100", "499", "500", "999", "1000", "9999", "10000", "999999", "1000000", "99999999"];
    let counts = counts.into_iter().chain(["999999999", "4294967296", "01", "1.5", "-1", ""]);
    let numbers = ["", "1", "9", "12", "13", "52", "53", "99", "365", "999", "9999", "99999", "9999999", "0", "01"];
    let units = ["us", "ms", "s", "secs", "minute", "h", "hours", "d", "day", "weeks", "mo", "year", "y", "m", ""];
    let bursts = ["", " burst 5", " burst 999999999", " burst 0", " burst"];
    let periods = move || numbers.into_iter().flat_map(move |number| units.map(|unit| format!("{number}{unit}")));
    let rates = counts.flat_map(move |count| periods().map(move |period| format!("{count}/{period}")));
    rates.flat_map(move |rate| bursts.map(|burst| format!("{rate}{burst}")))
}

#[test]
fn the_limits_that_patterns_take_are_limits() {
    let document = document();
    for (schema, algorithms) in [
        ("TokenBucketCharge", &[Algorithm::TokenBucket][..]),
        ("WindowCharge", &[Algorithm::FixedWindow, Algorithm::SlidingCounter]),
        ("LogCharge", &[Algorithm::SlidingLog]),
    ] {
        let schema = Schema::at(&document, &format!("/components/schemas/{schema}/properties/limit"));
        let taken: Vec<_> = texts().filter(|text| schema.takes(&json!(text)).is_ok()).collect();
        assert!(taken.len() > 400, "{algorithms:?}: {}", taken.len());
        for text in taken {
            let quota = text.parse::<Limit>().unwrap_or_else(|error| panic!("{error}")).quota().unwrap();
            for algorithm in algorithms {
                quota.with_algorithm(*algorithm).unwrap_or_else(|error| panic!("{text} {algorithm}: {error}"));
            }
        }
    }
}
