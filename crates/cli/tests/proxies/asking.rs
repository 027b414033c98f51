//! The endpoint itself, asked as its page says.

use std::process::Command;

use crate::checks::{tidegate, tidegate_by};
use crate::page::{Page, Ports};
use crate::support::free_address;
use crate::support::http::Connection;

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
