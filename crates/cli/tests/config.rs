//! The proxy run from a configuration file: what it says is what happens, and what cannot happen is refused.

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use support::http::{Connection, Reply, get, get_with};
use support::program::{Proxy, Run, run};
use support::redis::Redis;
use support::upstream::{Upstream, head};
use tempfile::TempDir;

/// A file in a folder of its own.
struct Written {
    _folder: TempDir,
    path: PathBuf,
}

impl Written {
    fn new(name: &str, contents: &str) -> Self {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join(name);
        fs::write(&path, contents).unwrap();
        Self { _folder: folder, path }
    }

    fn path(&self) -> &str {
        self.path.to_str().unwrap()
    }

    fn serve(&self, flags: &[&str]) -> Proxy {
        Proxy::start(&[&["--config", self.path(), "--workers", "1"], flags].concat())
    }
}

/// What is said about a file with which the proxy does not start.
fn refused(name: &str, contents: &str, flags: &[&str]) -> String {
    let file = Written::new(name, contents);
    let Run { code, out, err } = run(&[&["proxy", "--config", file.path()], flags].concat());
    assert_eq!((code, out.as_str()), (Some(2), ""), "{err}");
    err.replace(file.path(), name)
}

#[track_caller]
fn check_has(text: &str, parts: &[&str]) {
    parts.iter().for_each(|part| assert!(text.contains(part), "{part:?} is in\n{text}"));
}

const TABLE: &str = r#"
[exempt]
paths = ["/status"]

[[policies]]
name = "everybody"
key = "global"
limits = "1000/h"

[[policies]]
name = "by-client"
limits = "20/h"
exempt = { addresses = ["192.0.2.0/24"] }

[[policies]]
name = "by-key"
key = "header:x-api-key"
on_missing = "skip"
limits = "3/h"
exempt = { keys = ["internal"] }

[[policies.overrides]]
key = "gold"
limits = "6/h"
until = 2999-01-01T00:00:00Z

[[policies.overrides]]
key = "silver"
limits = "5/h"
until = 2001-01-01T00:00:00Z

[[policies]]
name = "dear"
match = { path = "/joke", method = "GET" }
key = "global"
cost = 10
limits = { name = "tokens", limit = "50/h", on_store_failure = "deny" }
final = true

[[policies]]
name = "behind"
match = { path = "/joke" }
limits = "0/h"

[[policies]]
name = "watched"
limits = { name = "strict", limit = "1/h", mode = "shadow", at_bound = "pool", sharing = "leased:10" }
"#;

/// What is left under the limit that binds, and its name; nothing where no limit is told of.
fn binding(reply: &Reply) -> Option<(String, u64)> {
    let (name, rest) = reply.field("ratelimit")?.split_once(';')?;
    let left = rest.split(';').find_map(|part| part.strip_prefix("r="))?;
    Some((name.trim_matches('"').to_owned(), left.parse().unwrap()))
}

/// Walks a table of requests: path and API key, and what is to be answered: status, the limit that binds, what is left.
fn walk(proxy: &Proxy) {
    let mut connection = Connection::open(proxy.address);
    for (path, key, status, limit, left) in [
        ("/", "", 200, "by-client/limit-1", 19),
        ("/", "a", 200, "by-key/limit-1", 2),
        ("/", "a", 200, "by-key/limit-1", 1),
        ("/", "a", 200, "by-key/limit-1", 0),
        ("/", "a", 429, "by-key/limit-1", 0),
        ("/", "gold", 200, "by-key/limit-1", 5),
        ("/", "silver", 200, "by-key/limit-1", 2),
        ("/", "internal", 200, "by-client/limit-1", 13),
        ("/status", "a", 404, "", 0),
        ("/joke", "internal", 200, "by-client/limit-1", 12),
        ("/%6aoke", "internal", 404, "by-client/limit-1", 11),
        ("/a/../joke", "internal", 404, "by-client/limit-1", 10),
        ("/joke", "internal", 200, "by-client/limit-1", 9),
        ("/joke", "internal", 200, "dear/tokens", 0),
        ("/joke", "internal", 429, "dear/tokens", 0),
        ("/", "", 200, "by-client/limit-1", 7),
    ] {
        let fields: &[(&str, &str)] = if key.is_empty() { &[] } else { &[("x-api-key", key)] };
        let reply = connection.ask("GET", path, fields);
        let expected = (!limit.is_empty()).then(|| (limit.to_owned(), left));
        assert_eq!((reply.status, binding(&reply)), (status, expected), "{path} {key}: {reply:?}");
    }
    let metrics = proxy.metrics();
    let series = |policy: &str, limit: &str, mode: &str, outcome: &str| {
        let labels = format!("policy=\"{policy}\",limit=\"{limit}\",mode=\"{mode}\",outcome=\"{outcome}\"");
        metrics.value(&format!("tidegate_decisions_total{{{labels}}}"))
    };
    assert_eq!(series("by-key", "limit-1", "enforce", "denied"), 1);
    assert_eq!((series("dear", "tokens", "enforce", "allowed"), series("dear", "tokens", "enforce", "denied")), (5, 1));
    assert_eq!(series("behind", "limit-1", "enforce", "denied"), 0, "behind one that is final");
    assert_eq!(series("watched", "strict", "shadow", "allowed"), 1);
    assert!(series("watched", "strict", "shadow", "denied") > 0);
}

#[test]
fn a_table_of_requests_is_decided_as_the_file_says_in_memory() {
    let file = Written::new("tidegate.toml", TABLE);
    let proxy = file.serve(&[]);
    let said = proxy.said();
    check_has(&said, &["policies   6, from ", "everybody  every request, by global\n", "limit-1 1000/h", "; final"]);
    check_has(&said, &["strict 1/h in shadow", "tidegate check --config "]);
    proxy.wait_for("`on_store_failure` and `sharing` of policy `dear` say nothing without --store");
    walk(&proxy);
}

#[test]
fn a_table_of_requests_is_decided_as_the_file_says_in_a_shared_store() {
    let redis = Redis::start(&[]);
    let file = Written::new("tidegate.toml", TABLE);
    let proxy = file.serve(&["--store", &redis.url(), "--store-deadline", "1s"]);
    check_has(&proxy.said(), &["each limit does what its `on_store_failure` says", "at most 10 tokens of a key"]);
    walk(&proxy);
}

#[test]
fn check_says_of_the_table_what_the_proxy_does() {
    let file = Written::new("tidegate.toml", TABLE);
    let check = |line: &str, key: &str| {
        let header = format!("x-api-key: {key}");
        let Run { code, out, .. } = run(&["check", "--config", file.path(), "--request", line, "--header", &header]);
        assert_eq!(code, Some(0));
        out
    };
    check_has(&check("GET /joke", "gold"), &["which has limits of its own", "dear\n  applies", "dear comes earlier"]);
    check_has(&check("GET /joke", "internal"), &["by-key\n  does not    charge: its key is exempt"]);
    assert!(!check("GET /", "silver").contains("which has limits of its own"));
}

#[test]
fn the_example_of_the_documentation_serves_plans_and_a_route_that_costs_ten() {
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/tidegate.example.toml");
    let proxy = Proxy::start(&["--config", example]);
    let left = |path: &str, key: &str| {
        let reply = get_with(proxy.address, path, &[("x-api-key", key)]);
        binding(&reply).map(|(limit, left)| (reply.status, limit, left)).unwrap()
    };
    assert_eq!(left("/", "someone"), (200, "by-key/minute".to_owned(), 19));
    assert_eq!(left("/", "gold-1"), (200, "by-key/minute".to_owned(), 39));
    assert_eq!(left("/", "trial-7"), (200, "by-key/minute".to_owned(), 9));
    let dear: Vec<_> = (0..11).map(|_| get(proxy.address, "/joke").status).collect();
    assert_eq!(dear, [[200; 10].as_slice(), &[429]].concat());
}

#[test]
fn yaml_and_json_say_the_same() {
    for (name, contents) in [
        ("a.yaml", "policies:\n  - name: api\n    limits: 2/h\n"),
        ("a.json", r#"{"policies": [{"name": "api", "limits": "2/h"}]}"#),
        ("a.toml", "[[policies]]\nname = \"api\"\nlimits = \"2/h\"\n"),
    ] {
        let proxy = Written::new(name, contents).serve(&[]);
        assert_eq!([(); 3].map(|()| get(proxy.address, "/").status), [200, 200, 429], "{name}");
    }
}

#[test]
fn settings_of_the_proxy_stand_in_the_file_and_a_flag_before_them() {
    let contents = "[proxy]\nheaders = [\"draft-6\", \"x-ratelimit\"]\ngrace = 1\n\n[[policies]]\nname = \"p\"\nlimits = \"2/h\"\n";
    let file = Written::new("tidegate.toml", contents);
    let reply = get(file.serve(&[]).address, "/");
    assert_eq!((reply.field("ratelimit-limit"), reply.field("x-ratelimit-limit")), (Some("2"), Some("2")), "{reply:?}");
    let reply = get(file.serve(&["--headers", "none"]).address, "/");
    assert_eq!(reply.field("ratelimit-limit"), None);
}

#[test]
fn upstreams_stand_in_the_file_with_what_they_are_for() {
    let upstream = |name: &'static str| {
        Upstream::start(move |socket| {
            let mut connection = Connection::over(socket);
            while head(&mut connection).is_some() {
                let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{name}", name.len());
                connection.send(answer.as_bytes()).unwrap();
            }
        })
    };
    let (all, files) = (upstream("all"), upstream("files"));
    let contents = format!(
        "[proxy]\nupstream = [\"{}\", \"/files={}\"]\n\n[[policies]]\nname = \"p\"\nlimits = \"9/h\"\n",
        all.url(),
        files.url()
    );
    let proxy = Written::new("tidegate.toml", &contents).serve(&[]);
    let asked =
        ["/", "/files/a", "/files/../a", "/a/%2e%2e/files"].map(|path| get(proxy.address, path).text().to_owned());
    assert_eq!(asked, ["all", "files", "all", "files"]);
    let said = proxy.said();
    check_has(&said, &[&format!("/files={}", files.url()), &all.url()]);
    let twice = contents.replace("/files=", "");
    check_has(
        &refused("tidegate.toml", &twice, &[]),
        &["tidegate.toml:2:12: two upstreams are for all requests; name one"],
    );
}

#[test]
fn denials_can_be_read_by_scripts_of_configured_origins() {
    let policy = "[[policies]]\nname = \"p\"\nlimits = \"1/h\"\n";
    let settings =
        "[proxy]\ncors_origins = [\"https://app.example\", \"https://b.example\"]\ncors_credentials = true\n\n";
    let file = Written::new("tidegate.toml", &format!("{settings}{policy}"));
    let proxy = file.serve(&[]);
    let told = ["https://b.example", "https://b.example", "https://c.example"].map(|origin| {
        let reply = get_with(proxy.address, "/", &[("origin", origin)]);
        let fields = ["access-control-allow-origin", "access-control-allow-credentials", "vary"];
        (reply.status, fields.map(|name| reply.field(name).map(str::to_owned)))
    });
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(told[0], (200, [None, None, None]), "what passes is left to the upstream");
    assert_eq!(told[1], (429, [some("https://b.example"), some("true"), some("Origin")]));
    assert_eq!(told[2], (429, [None, None, some("Origin")]));
    let printed = run(&["proxy", "--print-config", "--config", file.path()]).out;
    check_has(&printed, &["cors_origins = \"https://app.example,https://b.example\"", "cors_credentials = "]);
    let any = format!("[proxy]\ncors_origins = \"*\"\ncors_credentials = true\n\n{policy}");
    check_has(&refused("tidegate.toml", &any, &[]), &["any page could read with its visitors' credentials"]);
    let path = format!("[proxy]\ncors_origins = \"https://app.example/\"\n\n{policy}");
    check_has(&refused("tidegate.toml", &path, &[]), &["tidegate.toml:2:16: `https://app.example/` is no origin"]);
}

#[test]
fn preflights_are_counted_where_a_policy_names_them() {
    let contents = "[[policies]]\nname = \"p\"\nmatch = { method = [\"GET\", \"OPTIONS\"] }\nlimits = \"1/h\"\n";
    let asked = |contents: &str| {
        let proxy = Written::new("tidegate.toml", contents).serve(&[]);
        let fields = [("origin", "https://a.example"), ("access-control-request-method", "POST")];
        [(); 2].map(|()| Connection::open(proxy.address).ask("OPTIONS", "/", &fields).status == 429)
    };
    assert_eq!(asked(contents), [false, true]);
    assert_eq!(asked("[[policies]]\nname = \"p\"\nlimits = \"1/h\"\n"), [false, false]);
}

#[test]
fn what_the_proxy_does_not_do_is_refused_with_its_line() {
    let said = refused(
        "tidegate.toml",
        r#"
[proxy]
workers = 0

[[policies]]
name = "model"
key = "claim:user"
limits = "100/min"
"#,
        &[],
    );
    check_has(
        &said,
        &[
            "tidegate.toml:3:11: expected a whole number from 1 to 1024",
            "tidegate.toml:7:1: the proxy verifies no claims, so no request has one; use another part of the request",
        ],
    );
    let said = refused("a.yaml", "policies:\n  - name: p\n    key: claim:user\n    limits: 5/min\n", &[]);
    check_has(&said, &["a.yaml:3:5: the proxy verifies no claims"]);
}

#[test]
fn a_wrong_file_is_refused_with_all_its_mistakes() {
    let said = refused("tidegate.toml", "[[policies]]\nname = \"p\"\nlimits = \"5/m\"\non-missing = \"skip\"\n", &[]);
    check_has(&said, &["tidegate.toml:3:13: `5/m`", "tidegate.toml:4:1: a policy has no key `on-missing`"]);
    check_has(&refused("tidegate.toml", "", &[]), &["tidegate.toml has no policies, so nothing would be limited"]);
    let Run { code, err, .. } = run(&["proxy", "--config", "/nowhere/tidegate.toml"]);
    assert_eq!(code, Some(2));
    check_has(&err, &["cannot read /nowhere/tidegate.toml"]);
}

#[test]
fn a_limit_that_the_store_cannot_keep_is_refused_with_its_line() {
    let contents =
        "[[policies]]\nname = \"p\"\nlimits = \"1/s\"\npenalty = { after = \"1/year burst 101\", hold = \"1h\" }\n";
    let said = refused("tidegate.toml", contents, &["--store", "redis://127.0.0.1:1"]);
    check_has(&said, &["tidegate.toml:4:1: `1/year burst 101` cannot be kept exactly in a shared store"]);
    let contents = "[[policies]]\nname = \"p\"\nlimits = \"1/s\"\noverrides = [{ key = \"192.0.2.1\", limits = \"1/y burst 4000\" }]\n";
    let said = refused("tidegate.toml", contents, &["--store", "redis://127.0.0.1:1"]);
    check_has(&said, &["tidegate.toml:4:1: `1/year burst 4000` cannot be kept exactly in a shared store"]);
}

#[test]
fn flags_that_belong_into_the_file_are_told_so() {
    let contents = "[[policies]]\nname = \"p\"\nlimits = \"5/min\"\n";
    for (flags, message) in [
        (&["--limit", "3/min"][..], "write into tidegate.toml: --limit as `limits` in a policy"),
        (&["--key", "global", "--shadow"], "--key as `key` in a policy, --shadow as `mode = \"shadow\"` in a policy"),
        (&["--trust", "10.0.0.0/8"], "--trust as `trust` below `[client]`"),
        (&["--client-from", "forwarded"], "--client-from as `from` below `[client]`"),
        (&["--algorithm", "fixed-window"], "--algorithm as `algorithm` in a policy"),
        (&["--at-bound", "deny"], "--at-bound as `at_bound` in a policy"),
        (&["--store", "redis://127.0.0.1:1", "--leased", "5"], "--leased as `sharing = \"leased:TOKENS\"` in a policy"),
    ] {
        check_has(&refused("tidegate.toml", contents, flags), &[message]);
    }
}

#[test]
fn the_file_that_flags_print_serves_as_they_do() {
    let flags = [
        "--limit",
        "3/h",
        "--limit",
        "20/day",
        "--key",
        "header:x-api-key,client",
        "--trust",
        "loopback",
        "--at-bound",
        "pool",
        "--client-from",
        "x-real-ip",
        "--headers",
        "draft-7,x-ratelimit:epoch",
        "--max-keys",
        "1000",
        "--upstream-timeout",
        "5",
        "--grace",
        "2",
    ];
    let Run { code, out, err } = run(&[&["proxy", "--print-config"], &flags[..]].concat());
    assert_eq!((code, err.as_str()), (Some(0), ""));
    let file = Written::new("tidegate.toml", &out);
    let (flags, config) = (Proxy::start(&flags), Proxy::start(&["--config", file.path()]));
    let walk = |proxy: &Proxy| {
        let ask = |client: &str, key: &str| {
            let reply = get_with(proxy.address, "/", &[("x-real-ip", client), ("x-api-key", key)]);
            let fields = ["ratelimit-policy", "ratelimit", "x-ratelimit-limit", "x-ratelimit-remaining"];
            (reply.status, fields.map(|name| reply.field(name).map(str::to_owned)), reply.body)
        };
        let asked = ["a", "a", "b", "a", "a", "b"].map(|key| ["192.0.2.1", "192.0.2.2"].map(|client| ask(client, key)));
        // What is left until the bucket is full differs by how fast this goes.
        asked.map(|pair| pair.map(|(status, fields, _)| (status, fields.map(|field| field.map(without_times)))))
    };
    assert_eq!(walk(&flags), walk(&config));
    let series = |proxy: &Proxy| {
        let metrics = proxy.metrics();
        metrics.series().into_iter().map(str::to_owned).collect::<BTreeSet<_>>()
    };
    assert_eq!(series(&flags), series(&config));
    let again = run(&["proxy", "--print-config", "--config", file.path()]);
    assert_eq!(again.out, out, "a file that was printed prints itself");
}

#[test]
fn what_flags_want_of_a_store_is_printed_and_where_it_is_stays_a_flag() {
    let store = ["--store", "redis://:s3cret@127.0.0.1:1", "--leased", "5", "--on-store-failure", "local:0.25"];
    let Run { code, out, .. } =
        run(&[&["proxy", "--print-config", "--limit", "90/min", "--shadow"], &store[..]].concat());
    assert_eq!(code, Some(0));
    check_has(&out, &["mode = \"shadow\"", "on_store_failure = \"local:0.25\"", "sharing = \"leased:5\""]);
    assert!(!out.contains("s3cret") && !out.contains("127.0.0.1"), "{out}");
    let file = Written::new("tidegate.toml", &out);
    assert_eq!(run(&["proxy", "--print-config", "--config", file.path()]).out, out);
}

/// A field's value without seconds until something happens.
fn without_times(value: String) -> String {
    value.split(',').filter(|part| !part.contains("reset")).collect::<Vec<_>>().join(",")
}
