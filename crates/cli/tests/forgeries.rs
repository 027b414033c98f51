//! A client that lies about who it is: whatever it writes into its request, it is charged as itself, and nobody else is
//! charged for it.

mod support;

use support::http::Connection;
use support::program::Proxy;
use support::upstream::{Upstream, head};

/// The client that lies, as the proxy before this one sees it.
const LIAR: &str = "203.0.113.7";
/// Somebody whom it would like to be.
const VICTIM: &str = "198.51.100.1";

/// What it writes where the addresses of earlier hops stand.
const LIES: &[&str] = &[
    // Another address, in all the ways that one can be written.
    "198.51.100.1",
    "198.51.100.1:51000",
    "[198.51.100.1]",
    "\"198.51.100.1\"",
    "::ffff:198.51.100.1",
    "[::ffff:198.51.100.1]:443",
    "64:ff9b::198.51.100.1",
    "2001:db8::1",
    "[2001:db8::1%eth0]:80",
    "for=198.51.100.1",
    // Addresses that are trusted, so that the walk might go on past the liar.
    "127.0.0.1",
    "10.0.0.9",
    "198.51.100.1, 127.0.0.1",
    "198.51.100.1, 10.0.0.9, 10.0.0.8",
    "198.51.100.1, ::ffff:10.0.0.9",
    "::1",
    "localhost",
    // What is no address at all, so that the walk might stop early or fall back.
    "unknown",
    "_hidden",
    "-",
    "999.999.999.999",
    "198.51.100.1.2",
    "198.51.100",
    "0x c6.0x33.0x64.0x01",
    "3325256705",
    "198.51.100.01",
    "198.51.100.1 203.0.113.9",
    "198.51.100.1;203.0.113.9",
    "%31%39%38.51.100.1",
    "fe80::1%aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "../../etc/passwd",
    "' or 1=1 --",
    "client:198.51.100.1",
    // Lists that are odd.
    "",
    ",",
    ", ,,198.51.100.1",
    "198.51.100.1,",
    "\t198.51.100.1\t",
    "198.51.100.1,198.51.100.1,198.51.100.1,198.51.100.1,198.51.100.1,198.51.100.1,198.51.100.1,198.51.100.1",
];

/// Fields that say who a client is, none of which this proxy was told to read.
const OTHER_FIELDS: &[&str] = &[
    "Forwarded",
    "X-Real-IP",
    "CF-Connecting-IP",
    "True-Client-IP",
    "X-Client-IP",
    "X-Cluster-Client-IP",
    "X-Originating-IP",
    "X-Remote-Addr",
    "Client-IP",
    "X-Forwarded",
    "Forwarded-For",
    "X_Forwarded_For",
    "X-ProxyUser-Ip",
    "Via",
];

/// Asks once, with these lines of fields.
fn status(connection: &mut Connection, lines: &[(&str, &str)]) -> u16 {
    connection.ask("GET", "/", lines).status
}

/// The liar's limit is used up by the truth; then each of `requests` must find it so. The victim's must be untouched.
fn all_are_the_liar(proxy: &Proxy, truth: &[(&str, &str)], requests: &[Vec<(&str, &str)>], victim: &[(&str, &str)]) {
    let mut connection = Connection::open(proxy.address);
    assert_eq!([(); 2].map(|()| status(&mut connection, truth)), [200, 429]);
    for lines in requests {
        assert_eq!(status(&mut connection, lines), 429, "{lines:?} got it a bucket of its own");
    }
    if !victim.is_empty() {
        assert_eq!([(); 2].map(|()| status(&mut connection, victim)), [200, 429], "somebody else was charged");
    }
}

#[test]
fn with_nothing_trusted_no_field_says_who_a_client_is() {
    let proxy = Proxy::start(&["--limit", "1/h"]);
    let one_line = LIES.iter().map(|lie| vec![("X-Forwarded-For", *lie)]);
    let several =
        LIES.iter().map(|lie| vec![("X-Forwarded-For", *lie), ("x-forwarded-for", LIAR), ("X-FORWARDED-FOR", *lie)]);
    let others = OTHER_FIELDS.iter().map(|field| vec![(*field, VICTIM)]);
    let requests: Vec<_> = one_line.chain(several).chain(others).collect();
    all_are_the_liar(&proxy, &[], &requests, &[]);
}

#[test]
fn a_peer_that_is_not_among_the_trusted_is_not_believed() {
    let proxy = Proxy::start(&["--limit", "1/h", "--trust", "10.0.0.0/8", "--trust", "192.0.2.0/24"]);
    let requests: Vec<_> = LIES.iter().map(|lie| vec![("X-Forwarded-For", *lie)]).collect();
    all_are_the_liar(&proxy, &[], &requests, &[]);
}

#[test]
fn behind_a_trusted_proxy_what_stands_on_its_left_is_not_believed() {
    let proxy = Proxy::start(&["--limit", "1/h", "--trust", "127.0.0.0/8,10.0.0.0/8"]);
    // A proxy that adds to the line that it got, two in a row, and one that adds a line of its own.
    let added: Vec<_> = LIES.iter().map(|lie| format!("{lie}, {LIAR}")).collect();
    let twice: Vec<_> = LIES.iter().map(|lie| format!("{lie}, {LIAR}, 10.0.0.9")).collect();
    let one_line = added.iter().chain(&twice).map(|value| vec![("X-Forwarded-For", value.as_str())]);
    let own_line = LIES.iter().map(|lie| vec![("X-Forwarded-For", *lie), ("X-Forwarded-For", LIAR)]);
    let many = LIES.iter().map(|lie| {
        vec![
            ("x-forwarded-for", *lie),
            ("X-Forwarded-For", VICTIM),
            ("X-FORWARDED-FOR", LIAR),
            ("x-Forwarded-for", "10.0.0.8"),
        ]
    });
    let others = OTHER_FIELDS.iter().map(|field| vec![(*field, VICTIM), ("X-Forwarded-For", LIAR)]);
    let requests: Vec<_> = one_line.chain(own_line).chain(many).chain(others).collect();
    all_are_the_liar(&proxy, &[("X-Forwarded-For", LIAR)], &requests, &[("X-Forwarded-For", VICTIM)]);
}

#[test]
fn the_field_of_rfc_7239_is_walked_in_the_same_way() {
    let proxy = Proxy::start(&["--limit", "1/h", "--client-from", "Forwarded", "--trust", "127.0.0.0/8,10.0.0.0/8"]);
    let truth = format!("for={LIAR}");
    let lies = [
        "for=198.51.100.1",
        "For=\"198.51.100.1:80\";proto=https",
        "for=\"[2001:db8::1]\"",
        "for=unknown",
        "for=_secret",
        "for=10.0.0.9",
        "for=198.51.100.1;for=10.0.0.9",
        "by=10.0.0.9",
        "host=\"a, for=198.51.100.1\"",
        "for=\"198.51.100.1, for=10.0.0.9\"",
        "for=\"198.51.100.1",
        "for=",
        "=;=,",
        "",
    ];
    let added: Vec<_> = lies.iter().map(|lie| format!("{lie}, {truth}")).collect();
    let one_line = added.iter().map(|value| vec![("Forwarded", value.as_str())]);
    let own_line = lies.iter().map(|lie| vec![("Forwarded", *lie), ("forwarded", truth.as_str())]);
    let others = LIES.iter().map(|lie| vec![("X-Forwarded-For", *lie), ("Forwarded", truth.as_str())]);
    let requests: Vec<_> = one_line.chain(own_line).chain(others).collect();
    all_are_the_liar(&proxy, &[("Forwarded", &truth)], &requests, &[("Forwarded", "for=198.51.100.1")]);
}

#[test]
fn what_is_passed_on_names_the_peer_and_no_lie() {
    let upstream = Upstream::start(|socket| {
        let mut connection = Connection::over(socket);
        while let Some((_, fields)) = head(&mut connection) {
            let lines = fields.iter().filter(|(name, _)| name == "x-forwarded-for");
            let told = lines.map(|(_, value)| value.as_str()).collect::<Vec<_>>().join("|");
            let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{told}", told.len());
            connection.send(answer.as_bytes()).unwrap();
        }
    });
    let proxy = Proxy::start(&["--limit", "1000/h", "--upstream", &upstream.url()]);
    let mut connection = Connection::open(proxy.address);
    for lie in LIES {
        let answer = connection.ask("GET", "/", &[("X-Forwarded-For", *lie), ("x-forwarded-for", LIAR)]);
        assert_eq!((answer.status, answer.text()), (200, "127.0.0.1"), "{lie}");
    }
}
