//! The document that describes the face to programs says what the face does.

use serde_json::{Value, json};
use tidegate::policy::Policy;
use tidegate::{Algorithm, Limit, Mode};
use tidegate_server::Callers;

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
    stage.import("- {namespace: api, max_value: 10, seconds: 60, variables: [user]}");
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
    assert_eq!(seen, 10);
}

/// The schema of an answer to a call, or nothing if the document does not know of it. The status may be one for all of
/// its kind.
fn of_answer(document: &Value, [path, method]: [&str; 2], status: &str) -> Option<Schema> {
    let place = |text: &str| text.replace('~', "~0").replace('/', "~1");
    let responses = format!("/paths/{}/{method}/responses/{status}", place(path));
    let response = document.pointer(&responses)?;
    let at = response["$ref"].as_str().map_or(responses, |known| known.trim_start_matches('#').to_owned());
    let content = document.pointer(&at)?["content"].as_object()?;
    let (media_type, _) = content.iter().next()?;
    Some(Schema::at(document, &format!("{at}/content/{}/schema", place(media_type))))
}

#[test]
fn what_proxies_and_callers_of_other_services_are_answered_is_in_the_document() {
    let (document, stage) = (document(), Stage::plain());
    let rate_limit = json!({ "domain": "edge", "descriptors": [
        { "entries": [{ "key": "a", "value": "b" }], "limit": { "unit": "DAY", "requestsPerUnit": "1" } }] });
    let (imported, other) = (json!({ "namespace": "api", "values": { "user": "ann" } }), json!({ "namespace": 1 }));
    let none = Value::Null;
    let check = |path: &str, method: &str, body: &Value, status: u16| {
        let reply = match method {
            "post" => stage.post(&path.replace("{namespace}", "api"), body),
            _ => stage.call("GET", &path.replace("{namespace}", "api"), "", b""),
        };
        assert_eq!(reply.status, status, "{method} {path} {body}: {}", reply.body);
        let schema = of_answer(&document, [path, method], &status.to_string())
            .unwrap_or_else(|| panic!("no {status} of {path}"));
        schema.takes(&reply.body).unwrap_or_else(|error| panic!("{method} {path} {body}: {error}"));
    };
    for (body, status) in [(&rate_limit, 200), (&rate_limit, 429), (&json!({}), 400)] {
        check("/json", "post", body, status);
    }
    let calls = ["/check_and_report", "/check", "/report"];
    calls.iter().for_each(|path| check(path, "post", &imported, 404));
    ["/status", "/limits/{namespace}"].iter().for_each(|path| check(path, "get", &none, 404));
    stage.import("- {namespace: api, max_value: 1, seconds: 31536000, variables: [user]}");
    for (path, status) in [("/check_and_report", 200), ("/check_and_report", 429), ("/check", 429), ("/report", 200)] {
        check(path, "post", &imported, status);
    }
    calls.iter().for_each(|path| check(path, "post", &other, 400));
    ["/status", "/limits/{namespace}"].iter().for_each(|path| check(path, "get", &none, 200));
    check("/counters/{namespace}", "get", &none, 404);
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

#[test]
fn what_proxies_are_answered_is_in_the_document() {
    let policy = Policy::new("p", "client".parse().unwrap()).with_limit("l", "1/h".parse().unwrap(), Mode::Enforce);
    let (document, stage) = (document(), Stage::new(vec![policy], Callers::Local));
    let path = "/v1/forward-auth";
    let client = "x-forwarded-for: 203.0.113.7\r\n";
    assert_eq!(stage.call("GET", path, client, b"").status, 200);
    for (target, fields, status, described) in [
        (path, client, 429, "429"),
        ("/v1/forward-auth?deny_status=403", client, 403, "4XX"),
        (path, "x-forwarded-uri: a\r\n", 400, "400"),
    ] {
        let reply = stage.call("GET", target, fields, b"");
        assert_eq!(reply.status, status, "{}", reply.body);
        of_answer(&document, [path, "get"], described).unwrap().takes(&reply.body).unwrap();
    }
}
