//! Whose requests are counted together, through the whole program: `--key`, `--trust`, `--client-from`.

mod support;

use support::http::Connection;
use support::program::Proxy;

/// The peer of all tests, as a network to trust.
const PEER: &str = "127.0.0.1/32";

/// Asks once for each set of fields, on one connection; which were let pass?
fn ask(proxy: &Proxy, requests: &[&[(&str, &str)]]) -> Vec<bool> {
    let mut connection = Connection::open(proxy.address);
    let mut pass = |fields| match connection.ask("GET", "/", fields).status {
        200 => true,
        429 => false,
        status => panic!("{status}"),
    };
    requests.iter().map(|fields| pass(*fields)).collect()
}

/// Asks once for each value of X-Forwarded-For.
fn ask_for(proxy: &Proxy, values: &[&str]) -> Vec<bool> {
    let fields: Vec<_> = values.iter().map(|value| [("X-Forwarded-For", *value)]).collect();
    ask(proxy, &fields.iter().map(|fields| fields.as_slice()).collect::<Vec<_>>())
}

#[test]
fn each_value_of_a_header_field_has_its_own_bucket() {
    let proxy = Proxy::start(&["--limit", "1/h", "--key", "header:X-Api-Key"]);
    let passed = ask(
        &proxy,
        &[
            &[("x-api-key", "a")],
            &[("X-API-KEY", "a")],
            &[("X-Api-Key", "A")],
            &[("X-Api-Key", "b")],
            &[],
            &[],
            &[("X-Api-Key", "")],
        ],
    );
    assert_eq!(passed, [true, false, true, true, true, false, true], "without the field it is the client's address");
}

#[test]
fn each_value_of_a_cookie_has_its_own_bucket() {
    let proxy = Proxy::start(&["--limit", "1/h", "--key", "cookie:session"]);
    let passed = ask(
        &proxy,
        &[
            &[("Cookie", "session=a; theme=dark")],
            &[("Cookie", "theme=light; session=a")],
            &[("Cookie", "theme=light"), ("Cookie", "session=a")],
            &[("Cookie", "session=b")],
            &[("Cookie", "Session=a")],
        ],
    );
    assert_eq!(passed, [true, false, false, true, true]);
}

#[test]
fn a_global_limit_is_everybodys() {
    let proxy = Proxy::start(&["--limit", "3/h", "--key", "global", "--trust", PEER]);
    let from = ["203.0.113.1", "203.0.113.2", "203.0.113.3", "203.0.113.4"];
    assert_eq!(ask_for(&proxy, &from), [true, true, true, false]);
}

#[test]
fn several_parts_are_one_key() {
    let proxy = Proxy::start(&["--limit", "1/h", "--key", "client,header:x-api-key", "--trust", PEER]);
    let passed = ask(
        &proxy,
        &[
            &[("X-Forwarded-For", "203.0.113.1"), ("X-Api-Key", "a")],
            &[("X-Forwarded-For", "203.0.113.2"), ("X-Api-Key", "a")],
            &[("X-Forwarded-For", "203.0.113.1"), ("X-Api-Key", "b")],
            &[("X-Forwarded-For", "203.0.113.1"), ("X-Api-Key", "a")],
        ],
    );
    assert_eq!(passed, [true, true, true, false]);
}

#[test]
fn br_116_an_entry_may_have_a_port() {
    let proxy = Proxy::start(&["--limit", "1/h", "--trust", PEER]);
    let entries = ["203.0.113.9:51000", "203.0.113.9:51001", "203.0.113.9", "[2001:db8::9]:443", "2001:db8::9"];
    assert_eq!(ask_for(&proxy, &entries), [true, false, false, true, false]);
}

#[test]
fn br_118_what_a_client_writes_on_the_left_is_not_believed() {
    let forged: Vec<_> = (0..10).map(|i| format!("198.51.100.{i}, 203.0.113.7")).collect();
    let forged: Vec<_> = forged.iter().map(String::as_str).collect();
    let three_of_ten: Vec<_> = (0..10).map(|i| i < 3).collect();

    let trusting = Proxy::start(&["--limit", "3/h", "--trust", PEER, "--trust", "10.0.0.0/8"]);
    assert_eq!(ask_for(&trusting, &forged), three_of_ten);
    assert_eq!(ask_for(&trusting, &["203.0.113.7", "198.51.100.0"]), [false, true]);
    assert_eq!(ask_for(&trusting, &["10.1.1.1, 10.0.0.9"; 3]), [true; 3]);
    assert_eq!(ask_for(&trusting, &["10.1.1.1", "10.0.0.9"]), [false, true], "the leftmost of only trusted ones");

    let distrusting = Proxy::start(&["--limit", "3/h", "--trust", "10.0.0.0/8"]);
    assert_eq!(ask_for(&distrusting, &forged), three_of_ten, "all of them are the peer");
    assert_eq!(ask(&distrusting, &[&[]]), [false]);
}

#[test]
fn br_118_lines_of_one_field_are_one_list() {
    let proxy = Proxy::start(&["--limit", "1/h", "--trust", "127.0.0.1"]);
    let passed = ask(
        &proxy,
        &[
            &[("X-Forwarded-For", "198.51.100.1"), ("X-Forwarded-For", "203.0.113.7")],
            &[("X-Forwarded-For", "198.51.100.2"), ("X-Forwarded-For", "203.0.113.7")],
            &[("X-Forwarded-For", "203.0.113.7"), ("X-Forwarded-For", "198.51.100.3")],
            &[("X-Forwarded-For", "198.51.100.1")],
        ],
    );
    assert_eq!(passed, [true, false, true, true]);
}

#[test]
fn br_125_one_client_behind_several_balancers_is_one() {
    let proxy = Proxy::start(&["--limit", "2/h", "--trust", "127.0.0.1,10.0.0.0/8"]);
    let lists = ["203.0.113.7, 10.0.0.11", "203.0.113.7, 10.0.0.12", ", 203.0.113.7 ,,10.0.0.13"];
    assert_eq!(ask_for(&proxy, &lists), [true, true, false]);
}

#[test]
fn br_126_a_field_of_a_cdn_is_believed_from_the_trusted_alone() {
    let from: [&[(&str, &str)]; 3] = [
        &[("CF-Connecting-IP", "203.0.113.7"), ("X-Forwarded-For", "198.51.100.1")],
        &[("CF-Connecting-IP", "203.0.113.8"), ("X-Forwarded-For", "198.51.100.1")],
        &[("CF-Connecting-IP", "203.0.113.7"), ("X-Forwarded-For", "198.51.100.2")],
    ];
    let start = |trust| Proxy::start(&["--limit", "1/h", "--client-from", "CF-Connecting-IP", "--trust", trust]);
    assert_eq!(ask(&start(PEER), &from), [true, true, false]);
    assert_eq!(ask(&start("10.0.0.0/8"), &from), [true, false, false], "spoofed, so all are the peer");
}

#[test]
fn br_126_one_private_peer_for_everybody_is_warned_of_once() {
    let proxy = Proxy::start(&["--limit", "10/h"]);
    let visitors: Vec<_> = (0..250).map(|i| format!("203.0.113.{i}")).collect();
    let passed = ask_for(&proxy, &visitors.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(passed.into_iter().filter(|passed| *passed).count(), 10, "all share one bucket");
    let said = proxy.wait_for("start with `--trust 127.0.0.1`");
    assert_eq!(said.matches("warning:").count(), 1, "{said}");

    let told = Proxy::start(&["--limit", "10/h", "--trust", "127.0.0.1"]);
    let passed = ask_for(&told, &visitors.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(passed.into_iter().filter(|passed| *passed).count(), 250);
    assert!(!told.said().contains("warning:"));
}
