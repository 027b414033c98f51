//! Asked over HTTP/2, in clear text and over TLS: by curl, and by Envoy.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::authority::Authority;
use crate::checks::{self, tidegate};
use crate::front::{Recipe, tool};
use crate::page::Page;
use crate::support::free_address;
use crate::{USUAL, with};

const FIELDS: [&str; 4] = ["-H", "X-Forwarded-For: 203.0.113.7", "-H", "Host: shop.example"];

fn curl(flags: &[&str], url: &str) -> String {
    let output = Command::new("curl").arg("-s").args(flags).args(FIELDS).arg(url).output();
    let output = output.unwrap_or_else(|error| panic!("curl: {error}; ./test installs it"));
    assert!(output.status.success(), "{flags:?} {url}: {}", output.status);
    String::from_utf8(output.stdout).unwrap()
}

/// A server at `url` lets as many pass as the file of the page says, and tells the next one all that there is to tell. The
/// pages are those that each call of curl asks for, on one connection.
#[track_caller]
fn is_asked(flags: &[&str], url: &str, pages: &[String]) {
    let flags_each = [flags, &["-X", "PUT", "-o", "/dev/null", "-w", "%{http_version} %{http_code}\n"]].concat();
    let each: String = pages.iter().map(|page| curl(&flags_each, &format!("{url}/a?page={page}"))).collect();
    assert_eq!(each, "2 200\n".repeat(20));
    let denied = curl(&[flags, &["-i", "-H", "X-Forwarded-Uri: /b", "-H", "X-Forwarded-Method: DELETE"]].concat(), url);
    let (head, body) = denied.split_once("\r\n\r\n").unwrap();
    let mut lines = head.lines();
    assert_eq!(lines.next().map(str::trim), Some("HTTP/2 429"), "{denied}");
    let fields: Vec<_> = lines.filter_map(|line| line.split_once(": ")).collect();
    let field = |name: &str| fields.iter().find(|(each, _)| *each == name).map(|(_, value)| *value);
    assert_eq!(field("ratelimit-policy"), Some("\"limit-1\";q=100;w=3600;tidegate-burst=20"), "{denied}");
    assert_eq!(field("content-type"), Some("application/problem+json"));
    let wait: u64 = field("retry-after").expect("it says when to come back").parse().unwrap();
    assert!((1..=36).contains(&wait), "{denied}");
    let problem: Value = serde_json::from_str(body).unwrap();
    assert_eq!((&problem["status"], &problem["violated-policies"][0]), (&429.into(), &"limit-1".into()));
}

/// What the access log says of the first and of the last request.
fn told(log: &Path) -> [Value; 2] {
    let text = fs::read_to_string(log).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 21, "{text}");
    [0, 20].map(|i| {
        let words = ["client", "method", "host", "target", "decision"];
        words.iter().map(|name| lines[i][*name].clone()).collect()
    })
}

#[test]
fn requests_are_asked_about_in_clear_text_and_over_tls() {
    let authority = Authority::new();
    let (identity, ca) = (authority.identity("tidegate"), authority.file());
    let [certificate, key, ca] = [&identity.certificate, &identity.key, &ca].map(|file| file.to_str().unwrap());
    let (clear, secure) = (["--http2-prior-knowledge"], ["--http2", "--cacert", ca]);
    let tls = ["--tls-cert", certificate, "--tls-key", key];
    // This curl does not use a connection again that it has begun with prior knowledge.
    let (one_by_one, at_once) = ((1..=20).map(|page| page.to_string()).collect::<Vec<_>>(), ["[1-20]".to_owned()]);
    for (scheme, of_curl, of_tidegate, pages) in
        [("http", &clear[..], &[][..], &one_by_one[..]), ("https", &secure, &tls, &at_once)]
    {
        let (folder, address) = (TempDir::new().unwrap(), free_address());
        let log = folder.path().join("access.log");
        let logged = ["--access-log", log.to_str().unwrap(), "--access-log-format", "json"];
        let mut tidegate = tidegate(address, &[&logged[..], of_tidegate].concat());
        // The certificate is for both names, and curl asks for the one in the URL.
        is_asked(of_curl, &format!("{scheme}://localhost:{}/v1/forward-auth", address.port()), pages);
        let metrics = tidegate.metrics();
        let tls = if scheme == "https" { "yes" } else { "no" };
        let series = format!("tidegate_connections_by_protocol_total{{version=\"2\",tls=\"{tls}\"}}");
        assert_eq!(metrics.value(&series), pages.len() as u64 + 1);
        tidegate.signal("TERM");
        assert!(tidegate.ended().success());
        let expect = [["PUT", "/a?page=1", "allowed"], ["DELETE", "/b", "denied"]];
        let expect = expect.map(|[method, target, decision]| {
            Value::from_iter(["203.0.113.7", method, "shop.example", target, decision])
        });
        assert_eq!(told(&log), expect);
    }
}

const ENVOY: Recipe = Recipe {
    page: "envoy-ext-authz.md",
    files: &["envoy.yaml"],
    command: || with(tool("envoy/envoy"), "-c envoy.yaml --use-dynamic-base-id --concurrency 1 -l warning"),
    at_home: in_http2,
    tells_store_away: false,
    asks_below: true,
    ..USUAL
};

/// The configuration of the page, with what it says of HTTP/2.
fn in_http2(text: String) -> String {
    let cluster = "    - name: tidegate\n";
    assert_eq!(text.matches(cluster).count(), 1);
    let page = Page::named("envoy-ext-authz.md");
    text.replace(cluster, &format!("{cluster}{}", page.snippet("envoy.yaml, of the cluster")))
}

#[test]
fn envoy_asks_in_http_2() {
    checks::callers_are_limited(&ENVOY);
}
