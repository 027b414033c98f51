//! Limits of limitador as those meet them who follow their page, and who change the file.

mod support;

use std::fs;
use std::path::Path;
use std::process::Command;

use support::program::{Proxy, asked_over_http, run_in};
use tempfile::TempDir;

/// The page, in whose windows no edge comes by while the test runs.
fn page() -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/limitador.md");
    let page = fs::read_to_string(page).unwrap();
    page.replace("seconds: 60", "seconds: 31536000").replace("w=60", "w=31536000").replace("in 60 s", "in 31536000 s")
}

/// The blocks of the page in this language.
fn blocks<'p>(page: &'p str, language: &'p str) -> impl Iterator<Item = &'p str> {
    let blocks = page.split("\n```").skip(1).step_by(2);
    blocks.filter_map(move |block| block.strip_prefix(language)?.strip_prefix('\n'))
}

/// A server by the limits of this text, in a folder of its own.
fn served(limits: &str, flags: &[&str]) -> (Proxy, TempDir) {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("limits.yaml"), limits).unwrap();
    let mut command = asked_over_http(&["--limitador-limits", "limits.yaml"]);
    command.args(flags).current_dir(folder.path());
    (Proxy::started(command), folder)
}

/// What a shell prints that runs `script` where the server is.
fn shell(server: &Proxy, script: &str) -> String {
    let script = script.replace("127.0.0.1:8080", &server.address.to_string());
    let script = script.replace("127.0.0.1:9464", &server.admin.to_string());
    let output = Command::new("sh").args(["-c", &script]).output().unwrap();
    assert!(output.status.success(), "{script}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The status of a call, and what is left behind it.
fn call(server: &Proxy, path: &str, delta: u64) -> String {
    let body =
        format!(r#"{{"namespace":"ns","values":{{"u":"ann"}},"delta":{delta},"response_headers":"DraftVersion03"}}"#);
    let show = "-o /dev/null -w '%{http_code} %header{x-ratelimit-remaining} %header{retry-after}'";
    shell(server, &format!("curl -s {show} http://127.0.0.1:8080/{path} --json '{body}'")).trim_end().to_owned()
}

#[test]
fn what_the_page_shows_is_what_is_answered() {
    let page = page();
    let yaml = blocks(&page, "yaml").next().unwrap();
    let (server, _folder) = served(yaml, &[]);
    let mut calls = 0;
    for block in blocks(&page, "console") {
        let (line, shown) = block.split_once('\n').unwrap_or((block, ""));
        match line.strip_prefix("$ tidegate serve") {
            Some(flags) => assert_eq!(flags, " --limitador-limits limits.yaml"),
            None => {
                assert_eq!(shell(&server, line.strip_prefix("$ ").unwrap()).trim_end(), shown, "{line}");
                calls += 1;
            }
        }
    }
    assert_eq!(calls, 5);
}

#[test]
fn a_look_charges_nothing_and_a_report_whatever_is_left() {
    let limits = "- {namespace: ns, max_value: 10, seconds: 31536000, variables: [u]}";
    let (server, _folder) = served(limits, &[]);
    assert_eq!(call(&server, "check", 10), "200 10");
    assert!(call(&server, "check", 11).starts_with("429 10"));
    assert_eq!(call(&server, "report", 7), "200");
    assert_eq!(call(&server, "check_and_report", 0), "200 3");
    assert!(call(&server, "check_and_report", 4).starts_with("429 3 "));
    // More than is left has happened: nothing is left.
    assert_eq!(call(&server, "report", 4), "200");
    assert!(call(&server, "check", 1).starts_with("429 0"));
    let counted = shell(&server, &format!("curl -s http://{}/metrics", server.admin));
    assert!(counted.contains(r#"policy="limitador:ns",limit="limit-1""#), "{counted}");
}

#[test]
fn br_076_a_raised_limit_keeps_what_was_counted_and_can_be_looked_at() {
    let limits = |max: u64| format!("- {{namespace: ns, max_value: {max}, seconds: 31536000, variables: [u]}}\n");
    let (server, folder) = served(&limits(10), &[]);
    assert_eq!(call(&server, "check_and_report", 10), "200 0");
    assert!(call(&server, "check_and_report", 1).starts_with("429 0 "));
    fs::write(folder.path().join("limits.yaml"), limits(100)).unwrap();
    server.wait_for("limits.yaml was read anew; limits in force: 1");
    assert_eq!(call(&server, "check_and_report", 40), "200 50");
    let shown = shell(&server, "curl -s http://127.0.0.1:8080/limits/ns");
    assert!(shell(&server, "curl -s http://127.0.0.1:8080/counters/ns").contains("counters are not listed"));
    assert!(shown.contains(r#""max_value":100"#) && shown.contains(r#""variables":["u"]"#), "{shown}");
    // A mistake changes nothing.
    fs::write(folder.path().join("limits.yaml"), "- {namespace: ns, seconds: 1}").unwrap();
    server.wait_for("nothing was changed: the limits that were in force go on");
    assert_eq!(call(&server, "check", 50), "200 50");
}

#[test]
fn as_a_token_bucket_no_edge_lets_twice_the_number_pass() {
    let limits = "- {namespace: ns, max_value: 10, seconds: 31536000, variables: [u]}";
    let (server, _folder) = served(limits, &["--limitador-algorithm", "token-bucket"]);
    assert_eq!(call(&server, "check_and_report", 9), "200 1");
    let denied = call(&server, "check_and_report", 2);
    // A tenth of a year for one token, instead of the rest of the window.
    let wait: u64 = denied.strip_prefix("429 1 ").unwrap().parse().unwrap();
    assert!((3_153_000..=3_153_600).contains(&wait), "{denied}");
}

/// What Envoy would be told: the code over all, and what is left under the limit that binds.
fn over_json(server: &Proxy, hits: u64) -> String {
    let entries = r#"[{"key":"u","value":"ann"}]"#;
    let body = format!(r#"{{"domain":"ns","descriptors":[{{"entries":{entries}}}],"hitsAddend":{hits}}}"#);
    let said = shell(server, &format!("curl -s http://127.0.0.1:8080/json --json '{body}'"));
    let said: serde_json::Value = serde_json::from_str(&said).unwrap();
    let (code, first) = (&said["overallCode"], &said["statuses"][0]);
    let name = first["currentLimit"]["name"].as_str().unwrap_or("none");
    format!("{} {} {name}", code.as_str().unwrap(), first["limitRemaining"].as_u64().unwrap_or(0))
}

#[test]
fn calls_of_envoy_are_charged_and_a_raised_limit_keeps_what_was_counted() {
    let limits =
        |max: u64| format!("- {{namespace: ns, max_value: {max}, seconds: 31536000, variables: [u], name: y}}\n");
    let (server, folder) = served(&limits(10), &[]);
    assert_eq!(over_json(&server, 4), "OK 6 y");
    assert_eq!(over_json(&server, 7), "OVER_LIMIT 6 y");
    assert_eq!(over_json(&server, 6), "OK 0 y");
    fs::write(folder.path().join("limits.yaml"), limits(100)).unwrap();
    server.wait_for("limits.yaml was read anew; limits in force: 1");
    assert_eq!(over_json(&server, 40), "OK 50 y");
    // A mistake changes nothing.
    fs::write(folder.path().join("limits.yaml"), "- {namespace: ns, seconds: 1}").unwrap();
    server.wait_for("nothing was changed: the limits that were in force go on");
    assert_eq!(over_json(&server, 50), "OK 0 y");
    let counted = shell(&server, &format!("curl -s http://{}/metrics", server.admin));
    assert!(counted.contains(r#"policy="limitador:ns",limit="y""#), "{counted}");
}

#[test]
fn br_169_a_mistake_is_told_at_the_start_with_its_place() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("l.yaml"), "- namespace: ns\n  seconds: 60\n  conditions: [\"a = 'b'\"]\n").unwrap();
    let run = run_in(folder.path(), &["serve", "--limitador-limits", "l.yaml"]);
    assert_eq!(run.code, Some(2), "{}", run.err);
    assert!(run.err.contains("l.yaml:1:3: a limit needs `max_value`"), "{}", run.err);
    assert!(run.err.contains("l.yaml:3:19: `=` compares nothing; write `==`"), "{}", run.err);
}

#[test]
fn without_limits_there_are_no_such_calls() {
    let server = Proxy::started(asked_over_http::<&str>(&[]));
    assert!(call(&server, "check", 1).starts_with("404"));
}
