//! The endpoint itself, asked as its page says.

use std::fs;
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::checks::{tidegate, tidegate_by};
use crate::page::{Page, Ports};
use crate::support::free_address;
use crate::support::http::{Connection, get_with};

/// What curl prints when it is called as the page says.
fn curl(call: &str) -> String {
    let mut words = Vec::new();
    for (i, part) in call.split('\'').enumerate() {
        match i % 2 {
            0 => words.extend(part.split_whitespace().map(str::to_owned)),
            _ => words.push(part.to_owned()),
        }
    }
    let output = Command::new("curl").arg("-s").args(&words).output();
    let output = output.unwrap_or_else(|error| panic!("curl: {error}; ./test installs it"));
    String::from_utf8(output.stdout).unwrap()
}

/// The answer has every line that is shown. A second may have begun since.
#[track_caller]
fn is_as_shown(printed: &str, shown: &str) {
    let earlier = shown.replace("t=36", "t=35").replace("retry-after: 36", "retry-after: 35");
    for (line, or) in shown.lines().zip(earlier.lines()) {
        assert!(printed.lines().any(|each| each == line || each == or), "{line:?} in\n{printed}");
    }
}

#[test]
fn what_the_page_shows_is_what_is_answered() {
    let page = Page::named("forward-auth.md");
    let address = free_address();
    let _tidegate = tidegate(address, &[]);
    let shown = page.snippet("asking");
    let mut calls = shown.lines().filter_map(|line| line.strip_prefix("$ "));
    assert_eq!(calls.next(), Some("tidegate serve --config tidegate.toml --http 127.0.0.1:8080"));
    let ports = Ports { tidegate: address, api: address, front: address };
    let call = ports.put_into(calls.next().unwrap().strip_prefix("curl ").unwrap());
    is_as_shown(&curl(&call), page.snippet("passes"));
    for _ in 1..20 {
        assert!(curl(&call).starts_with("HTTP/1.1 200 OK"));
    }
    is_as_shown(&curl(&call), page.snippet("denied"));
    assert!(curl(&call.replace("/v1/forward-auth", "/v1/forward-auth?deny_status=403")).starts_with("HTTP/1.1 403"));
    assert!(curl(&call.replace("203.0.113.7", "203.0.113.8")).starts_with("HTTP/1.1 200 OK"));
}

#[test]
fn br_132_on_one_connection_each_request_has_its_own_key() {
    let address = free_address();
    let _tidegate = tidegate_by(address, &["--limit", "10/min", "--key", "header:x-api-key"]);
    let mut connection = Connection::open(address);
    let mut passed = [0, 0];
    for i in 0..100 {
        let fields = [("X-Api-Key", ["A", "B"][i % 2]), ("X-Forwarded-For", "203.0.113.7")];
        let reply = connection.ask("GET", "/v1/forward-auth", &fields);
        assert!(matches!(reply.status, 200 | 429), "{reply:?}");
        passed[i % 2] += usize::from(reply.status == 200);
    }
    assert_eq!(passed, [10, 10]);
}

#[test]
fn the_access_log_tells_of_the_request_that_is_meant() {
    let (folder, address) = (TempDir::new().unwrap(), free_address());
    let path = folder.path().join("access.log");
    let log = ["--access-log", path.to_str().unwrap(), "--access-log-format", "json"];
    let mut tidegate = tidegate_by(address, &[&["--limit", "1/h"], &log[..]].concat());
    let fields = [
        ("X-Forwarded-For", "203.0.113.7"),
        ("X-Forwarded-Method", "DELETE"),
        ("X-Forwarded-Host", "shop.example"),
        ("X-Forwarded-Uri", "/items?page=1"),
    ];
    let asked = ["/v1/forward-auth", "/v1/forward-auth"].map(|at| get_with(address, at, &fields).status);
    let refused = get_with(address, "/v1/forward-auth", &[("X-Forwarded-For", "nobody")]).status;
    assert_eq!((asked, refused), ([200, 429], 400));
    tidegate.signal("TERM");
    assert!(tidegate.ended().success());
    let text = fs::read_to_string(path).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told = |line: &Value| ["client", "method", "host", "target", "decision"].map(|name| line[name].clone());
    for (line, decision) in lines.iter().zip(["allowed", "denied"]) {
        let expect = ["203.0.113.7", "DELETE", "shop.example", "/items?page=1", decision];
        assert_eq!(told(line), expect.map(Value::from), "{line}");
        assert_eq!(line["peer"], "127.0.0.1", "who asks");
    }
    assert_eq!((lines.len(), &lines[2]["target"]), (3, &"/v1/forward-auth".into()), "what means nothing is as it came");
}
