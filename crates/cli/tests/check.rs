//! `tidegate check` as its user meets it.

mod support;

use std::fs;

use support::program::{Run, run};
use tempfile::TempDir;

/// Runs `tidegate check --config` on a file of this name and contents, in a fresh folder.
fn check_file(name: &str, contents: &str, more: &[&str]) -> Run {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join(name);
    fs::write(&path, contents).unwrap();
    let path = path.to_str().unwrap();
    let arguments = [&["check", "--config", path], more].concat();
    let Run { code, out, err } = run(&arguments);
    Run { code, out, err: err.replace(path, name) }
}

/// What it prints about a file that is fine.
#[track_caller]
fn said(contents: &str, more: &[&str]) -> String {
    let Run { code, out, err } = check_file("tidegate.toml", contents, more);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    out
}

#[track_caller]
fn check_has(text: &str, parts: &[&str]) {
    parts.iter().for_each(|part| assert!(text.contains(part), "{part:?} is in\n{text}"));
}

const FILE: &str = r#"
[[policies]]
name = "p1"
match = { path = "/p1", method = "GET" }
limits = "100/2s"
final = true

[[policies]]
name = "default"
limits = ["1/s", { name = "trial", limit = "10/15min", mode = "shadow" }]
exempt = { paths = ["/healthz"] }

[[policies.overrides]]
key = "198.51.100.9"
limits = { limit-1 = "5/s" }
until = 2999-01-01T00:00:00Z
"#;

#[test]
fn br_141_it_says_which_policies_apply_and_why() {
    let p1 = said(FILE, &["--request", "GET /p1?x"]);
    check_has(&p1, &["client 192.0.2.1, path /p1", "applies     is about GET /p1", "192.0.2.1 (client)", "100/2s"]);
    check_has(&p1, &["does not    apply: p1 comes earlier, matches, and is final"]);
    let other = said(FILE, &["--request", "POST http://a.org/a/../p1", "--client", "198.51.100.9"]);
    check_has(&other, &["path /p1", "does not    apply: its method is another", "applies     is about every request"]);
    check_has(&other, &["198.51.100.9 (client), which has limits of its own", "5/s", "in shadow"]);
    check_has(&said(FILE, &["--request", "/healthz"]), &["does not    charge: its path is exempt"]);
}

#[test]
fn br_165_br_097_it_says_what_the_limits_mean() {
    let all = said(FILE, &[]);
    check_has(
        &all,
        &["2 policies", "about       GET /p1; final", "never exceeded", "period         900 s", "store away     local"],
    );
    check_has(&all, &["1 key has limits of its own", "exempt      paths /healthz"]);
    let bucket = said("[[policies]]\nname = 'p'\nlimits = '60/min burst 10'\n", &[]);
    check_has(&bucket, &["11 in any second, 70 in any minute, 3,610 in any hour", "period         60 s"]);
}

#[test]
fn a_wrong_file_ends_it_with_every_mistake() {
    let Run { code, out, err } = check_file("t.toml", "[[policies]]\nname = 'p'\nlimit = '5/m'\nlimits = '5/m'\n", &[]);
    assert_eq!((code, out.as_str()), (Some(2), ""));
    check_has(&err, &["error: t.toml:3:1: a policy has no key `limit`; did you mean `limits`?", "3 | limit = '5/m'"]);
    check_has(&err, &["t.toml:4:13: `5/m`: `m` could be a minute or a month"]);
    let yaml = check_file("t.yaml", "policies:\n- name: p\n  limits: 5\n", &[]);
    assert_eq!(yaml.code, Some(2));
    check_has(&yaml.err, &["t.yaml:3:11: `5`: a count needs a period"]);
    assert_eq!(check_file("t.json", "{\"policies\": []}", &[]).code, Some(0));
    let missing = run(&["check", "--config", "/nowhere/tidegate.toml"]);
    assert_eq!(missing.code, Some(2));
    check_has(&missing.err, &["cannot read /nowhere/tidegate.toml"]);
}

#[test]
fn flags_say_the_same_as_a_file() {
    let flags = run(&[
        "check",
        "--limit",
        "60/min",
        "--key",
        "header:x-api-key",
        "--request",
        "/",
        "--header",
        "X-Api-Key: k1",
    ]);
    assert_eq!(flags.code, Some(0));
    check_has(&flags.out, &["default", "key         \"k1\" (header x-api-key)", "60/min"]);
    check_has(&flags.err, &["warning: policy `default` is keyed by header x-api-key"]);
    let file = "[[policies]]\nname = 'default'\nkey = 'header:x-api-key'\nlimits = '60/min'\n";
    let file = check_file("t.toml", file, &["--request", "/", "--header", "X-Api-Key: k1"]);
    assert_eq!((file.out, file.err), (flags.out, flags.err));
    for wrong in [
        &["check"][..],
        &["check", "--limit", "1/s", "--config", "x.toml"],
        &["check", "--limit", "1/s", "--client", "::1"],
        &["check", "--limit", "1/s", "--request", "no path"],
        &["check", "--limit", "1/s", "--request", "/", "--client", "me"],
        &["check", "--limit", "1/s", "--request", "/", "--header", "x"],
        &["check", "--limit", "5/m"],
    ] {
        assert_eq!(run(wrong).code, Some(2), "{wrong:?}");
    }
}

#[test]
fn a_sample_has_all_that_a_request_has() {
    let file = r#"
[client]
trust = "10.0.0.0/8"

[[policies]]
name = "keyed"
match = { host = "*.a.org", header = { x-plan = "gold" } }
key = ["client", "claim:sub", "segment:2"]
cost = { header = "x-cost" }
limits = "60/min"
on_missing = "deny"

[[policies]]
name = "by-client"
match = { host = "*.a.org", header = { x-plan = "gold" } }
limits = "600/min"
"#;
    let request = ["--request", "GET http://www.a.org/users/7", "--client", "10.0.0.1", "--header", "x-plan: gold"];
    let more = ["--header", "x-cost: 3", "--header", "x-forwarded-for: 203.0.113.7", "--claim", "sub=u1"];
    check_has(
        &said(file, &[&request[..], &more[..]].concat()),
        &["203.0.113.7, \"u1\", \"7\" (client, claim sub, segment 2)", "costs       3"],
    );
    check_has(&said(file, &request), &["does not    let it pass: it has no claim sub, so it is denied"]);
    check_has(&said(file, &["--request", "/"]), &["its host is another", "no policy matches, so the request passes"]);
}

#[test]
fn br_071_it_says_what_follows_from_responses_and_denials() {
    let file = r#"
[[policies]]
name = "log-in"
charge_for = ["401", "5xx"]
limits = "5/min"
penalty = { after = "10/h", of = ["401"], hold = "1d" }

[[policies]]
name = "model"
cost = { response = "x-tokens", estimate = 500 }
limits = { name = "tokens", limit = "100000/day", mode = "shadow" }
penalty = { after = "3/min", hold = "30s" }
"#;
    for more in [&[][..], &["--request", "POST /login"]] {
        let said = said(file, more);
        check_has(&said, &["charged for responses 401, 5xx; taken at the request, and given back for others"]);
        check_has(&said, &["penalty     after 10/h of responses 401, held back for 1day"]);
        check_has(&said, &["no more than 10 that could be are under way at once"]);
        check_has(
            &said,
            &["penalty     after 3/min of denials, held back for 30s", "in shadow: counted, and denies nothing"],
        );
    }
    let request = said(file, &["--request", "POST /login"]);
    check_has(&request, &["costs       500 until x-tokens of the response says what"]);
}
