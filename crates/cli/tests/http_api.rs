//! Decisions over HTTP as those meet them who follow the documentation, and as a program meets them that knows nothing
//! but the document of the interface.

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use support::program::{Proxy, asked_over_http, command};
use support::redis::Redis;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn page() -> String {
    fs::read_to_string(root().join("docs/http-api.md")).unwrap()
}

/// The blocks of the page in this language.
fn blocks(page: &str, language: &str) -> Vec<String> {
    let blocks = page.split("\n```").skip(1).step_by(2);
    blocks.filter_map(|block| block.strip_prefix(language)?.strip_prefix('\n')).map(str::to_owned).collect()
}

/// What a shell prints that runs `script` where the server is.
fn shell(server: &Proxy, script: &str) -> String {
    let script = script.replace("127.0.0.1:8080", &server.address.to_string());
    let output = Command::new("sh").args(["-c", &script]).output().unwrap();
    assert!(output.status.success(), "{script}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Without the times, which depend on when one asks.
fn timeless(json: &str) -> Value {
    let mut value: Value = serde_json::from_str(json).unwrap_or_else(|error| panic!("{error} in {json:?}"));
    fn strip(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                fields.retain(|name, _| !name.ends_with("_ms") && !name.ends_with("_s"));
                fields.values_mut().for_each(strip);
            }
            Value::Array(items) => items.iter_mut().for_each(strip),
            _ => {}
        }
    }
    strip(&mut value);
    value
}

#[test]
fn what_the_page_shows_is_what_is_answered() {
    let page = page();
    let mut server = None;
    let mut calls = 0;
    for block in blocks(&page, "console") {
        let (line, shown) = block.split_once('\n').unwrap_or((&block, ""));
        if let Some(flags) = line.strip_prefix("$ tidegate serve") {
            let flags: Vec<_> = flags.split_whitespace().collect();
            server = Some(Proxy::started(asked_over_http(&flags)));
            continue;
        }
        let said = shell(server.as_ref().unwrap(), line.strip_prefix("$ ").unwrap());
        assert_eq!(timeless(&said), timeless(shown), "{line}");
        calls += 1;
    }
    assert_eq!(calls, 4);
}

#[test]
fn what_the_page_says_of_reservations_runs() {
    let server = Proxy::started(asked_over_http::<&str>(&[]));
    let [script] = <[String; 1]>::try_from(blocks(&page(), "python")).unwrap();
    assert_eq!(shell(&server, &format!("python3 - <<'END'\n{script}\nEND")), "98660\n");
}

#[test]
fn the_first_line_to_try_is_answered() {
    let server = Proxy::started(asked_over_http::<&str>(&[]));
    let said = server.said();
    let line = said.lines().find_map(|line| line.trim().strip_prefix("try")).unwrap();
    assert_eq!(timeless(&shell(&server, &format!("{line} -s")))["remaining"], 59);
}

#[test]
fn a_caller_is_told_in_the_dialects_that_the_server_was_told() {
    let call = "curl -si 'http://127.0.0.1:8080/v1/check?fields=true' \
                --json '{\"charges\": [{\"limit\": \"60/min\", \"key\": \"a\"}]}'";
    for (dialects, field) in [
        ("draft-10", Some("ratelimit: \"default\";r=59;t=1")),
        ("draft-7,x-ratelimit", Some("x-ratelimit-remaining: 59")),
        ("none", None),
    ] {
        let said = shell(&Proxy::started(asked_over_http(&["--headers", dialects])), call);
        let fields: Vec<_> = said.lines().map(str::trim).filter(|line| line.contains("ratelimit")).collect();
        assert!(field.map_or(fields.is_empty(), |field| fields.contains(&field)), "{dialects}: {said}");
    }
}

#[test]
fn a_token_keeps_strangers_out_and_is_not_told() {
    let mut command = asked_over_http::<&str>(&[]);
    command.env("TIDEGATE_HTTP_TOKEN", "a-token-of-some-length");
    let server = Proxy::started(command);
    let call = "curl -s -o /dev/null -w %{http_code} http://127.0.0.1:8080/v1/keys/default?key=a -X DELETE";
    assert_eq!(shell(&server, call), "401");
    assert_eq!(shell(&server, &format!("{call} -H 'Authorization: Bearer a-token-of-some-length'")), "204");
    assert_eq!(shell(&server, "curl -s http://127.0.0.1:8080/health"), "ok\n");
    assert!(!server.said().contains("a-token"));
    let mut short = support::program::command(&["serve", "--http", "127.0.0.1:0", "--resp", "off", "--admin", "off"]);
    let output = short.env("TIDEGATE_HTTP_TOKEN", "short").output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("TIDEGATE_HTTP_TOKEN") && said.contains("openssl rand -hex 32"), "{said}");
}

#[test]
fn beyond_the_loopback_it_warns_and_resets_nothing() {
    let mut command = command(&["serve", "--http", "0.0.0.0:0", "--resp", "off", "--admin", "127.0.0.1:0"]);
    command.env_remove("TIDEGATE_HTTP_TOKEN");
    let server = Proxy::started(command);
    server.wait_for("can use up any key over HTTP");
    let call = format!("curl -s http://127.0.0.1:{}/v1/keys/default?key=a -X DELETE", server.address.port());
    assert!(shell(&server, &call).contains("TIDEGATE_HTTP_TOKEN sets a token"));
}

#[test]
fn several_servers_count_together_and_settle_each_others_reservations() {
    let redis = Redis::start(&[]);
    let url = redis.url();
    let served = || {
        let mut command = asked_over_http(&["--store", &url, "--store-deadline", "5s"]);
        command.env("TIDEGATE_HTTP_TOKEN", "a-token-of-some-length");
        Proxy::started(command)
    };
    let (one, other) = (served(), served());
    let call = |server: &Proxy, path: &str, body: &str| {
        let fields = "-H 'Authorization: Bearer a-token-of-some-length'";
        timeless(&shell(server, &format!("curl -s {fields} http://127.0.0.1:8080{path} --json '{body}'")))
    };
    let charges = r#""charges": [{"limit": "100/day", "key": "ann", "cost": 60}]"#;
    let reserved = call(&one, "/v1/reserve", &format!("{{{charges}}}"));
    assert_eq!(reserved["remaining"], 40);
    assert_eq!(call(&other, "/v1/check", &format!("{{{charges}}}"))["allowed"], false);
    let settling = format!(r#"{{"reservation": {}, "cost": 10}}"#, reserved["reservation"]);
    assert_eq!(call(&other, "/v1/settle", &settling)["settled"], true);
    assert_eq!(call(&one, "/v1/settle", &settling)["settled"], false);
    assert_eq!(call(&one, "/v1/check", &format!("{{{charges}, \"peek\": true}}"))["remaining"], 90);
    let slow = r#"{"charges": [{"limit": "1/year burst 101", "key": "k"}]}"#;
    let refused = call(&one, "/v1/check", slow);
    assert_eq!(refused["status"], 400, "{refused}");
}

/// It knows more methods than the document can name, all of which a proxy may ask by; and it sends `0` as a field whose
/// pattern needs a character that is neither letter nor digit, and takes that for valid.
const ITS_LIMITS: &str = r#"
[[operations]]
include-path = "/v1/forward-auth"
checks.unsupported_method.enabled = false
checks.positive_data_acceptance.enabled = false
"#;

/// What schemathesis finds, which tries all that the document of the interface allows, and what it does not allow. `which`
/// says of which operations.
fn schemathesis(server: &Proxy, which: &[&str]) -> Output {
    let tools = root().join(".tools/schemathesis");
    assert!(tools.exists(), "schemathesis is not installed; ./test does it");
    let folder = tempfile::TempDir::new().unwrap();
    fs::write(folder.path().join("schemathesis.toml"), ITS_LIMITS).unwrap();
    let mut run = Command::new("python3");
    run.env("PYTHONPATH", fs::canonicalize(&tools).unwrap())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .current_dir(folder.path());
    run.args(["-m", "schemathesis.cli", "run", "--seed", "1", "--no-color", "--warnings", "off"]);
    run.args(["--max-examples", "25", "--request-timeout", "20"]).args(which);
    run.arg(format!("http://{}/openapi.json", server.address));
    run.output().unwrap()
}

#[track_caller]
fn finds_nothing(files: &[(&str, &str)], flags: &[&str], which: &[&str]) {
    let folder = tempfile::TempDir::new().unwrap();
    files.iter().for_each(|(name, text)| fs::write(folder.path().join(name), text).unwrap());
    let mut command = asked_over_http(flags);
    command.current_dir(folder.path());
    let server = Proxy::started(command);
    let output = schemathesis(&server, which);
    assert!(output.status.success(), "{}\n{}", String::from_utf8_lossy(&output.stdout), server.said());
}

#[test]
fn schemathesis_finds_nothing() {
    // Policies charge each descriptor of a call of the rate limit service too, unless they are about something else.
    let policies = "[[policies]]\nname = \"p\"\nmatch = { host = \"example.com\" }\nlimits = \"60/min\"\n";
    // By whatever method a proxy asks, it is answered alike.
    let which = ["--exclude-operation-id-regex", "asked_(head|put|patch|delete|options|trace)"];
    finds_nothing(&[("tidegate.toml", policies)], &["--config", "tidegate.toml"], &which);
}

#[test]
fn schemathesis_finds_nothing_where_rules_and_limits_of_other_services_are_in_force() {
    let limits = "- {namespace: api, max_value: 10, seconds: 60, variables: [user]}\n";
    let rules =
        "domain: edge\ndescriptors:\n  - {key: remote_address, rate_limit: {unit: minute, requests_per_unit: 9}}\n";
    let files = [("limits.yaml", limits), ("edge.yaml", rules)];
    let flags = "--limitador-limits limits.yaml --ratelimit-config edge.yaml --ratelimit-headers ratelimit";
    let which = [
        "--include-path-regex",
        "^/(json|check|report|status|limits|counters)",
        "--phases",
        "examples,coverage,fuzzing",
    ];
    finds_nothing(&files, &flags.split(' ').collect::<Vec<_>>(), &which);
}
