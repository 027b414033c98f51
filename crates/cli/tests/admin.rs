//! What an operator does with the real program and curl: the page about it, a shared store, tokens, and buckets that
//! outlive a restart.

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use support::http::get_with;
use support::program::{Proxy, Run, run, serving};
use support::redis::Redis;
use tempfile::TempDir;

const CURL: &str = "/usr/bin/curl";

/// Runs a line in a shell, in this folder.
fn shell(folder: &Path, line: &str) -> String {
    assert!(Path::new(CURL).exists(), "{CURL} is missing; ./test installs it");
    let output = Command::new("sh").args(["-c", line]).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// What curl prints, as JSON.
fn curl(proxy: &Proxy, method: &str, target: &str, body: &str) -> Value {
    let body = if body.is_empty() { String::new() } else { format!("-H 'Content-Type: application/json' -d '{body}'") };
    let line = format!("{CURL} -s -X {method} {body} 'http://{}{target}'", proxy.admin);
    serde_json::from_str(&shell(Path::new("."), &line)).unwrap_or_else(|error| panic!("{error} of {line}"))
}

fn page() -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/admin.md");
    fs::read_to_string(&page).unwrap_or_else(|error| panic!("{}: {error}", page.display()))
}

/// The blocks of the page in this language.
fn blocks<'p>(page: &'p str, language: &str) -> Vec<&'p str> {
    let fence = format!("```{language}\n");
    page.split(&fence).skip(1).map(|rest| rest.split("```").next().unwrap()).collect()
}

/// The same without what is another each time: instants, and lengths of time but for their whole seconds.
fn steady(value: &Value) -> Value {
    match value {
        Value::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), field(name, value))).collect(),
        Value::Array(all) => all.iter().map(steady).collect(),
        other => other.clone(),
    }
}

fn field(name: &str, value: &Value) -> Value {
    match (name, value) {
        ("since" | "read_at", Value::String(text)) if text.len() == "2026-12-24T18:00:00Z".len() => "then".into(),
        (name, Value::Number(_)) if name.ends_with("_after_s") => "some seconds".into(),
        (_, value) => steady(value),
    }
}

#[test]
fn the_page_about_it_says_what_is_so() {
    let page = page();
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("tidegate.toml"), blocks(&page, "toml")[0]).unwrap();
    let proxy = Proxy::start_in(folder.path(), &["--config", "tidegate.toml", "--denied-keys", "10"]);
    let here = |line: &str| {
        let line = line.replace("127.0.0.1:9464", &proxy.admin.to_string());
        line.replace("127.0.0.1:8080", &proxy.address.to_string())
    };
    let mut commands = 0;
    for block in blocks(&page, "console") {
        for example in block.split("$ ").filter(|example| !example.is_empty()) {
            let (command, shown) = example.split_once('\n').unwrap();
            let printed = shell(folder.path(), &here(command));
            commands += 1;
            if command.contains("joke.json") {
                continue;
            }
            let printed: Value = serde_json::from_str(&printed).unwrap_or_else(|error| panic!("{error}: {command}"));
            assert_eq!(printed["status"], Value::Null, "{command}: {printed}");
            if !shown.is_empty() {
                let shown: Value = serde_json::from_str(shown).unwrap_or_else(|error| panic!("{error}: {shown}"));
                assert_eq!(steady(&printed), steady(&shown), "{command}");
            }
        }
    }
    assert!(commands >= 9, "{commands}");
}

#[test]
fn in_a_shared_store_what_is_done_holds_for_every_process() {
    let redis = Redis::start(&[]);
    let url = redis.url();
    let flags = ["--limit", "3/h", "--key", "header:x-api-key", "--store", &url, "--store-deadline", "2s"];
    let [one, other] = [Proxy::start(&flags), Proxy::start(&flags)];
    let ask = |proxy: &Proxy| get_with(proxy.address, "/joke", &[("x-api-key", "gold-1")]).status;
    assert_eq!([ask(&one), ask(&other), ask(&one), ask(&one)], [200, 200, 200, 429]);

    let name = curl(&one, "GET", "/v1/policies", "")["policies"][0]["name"].as_str().unwrap().to_owned();
    let key = format!("policy={name}&key=gold-1");
    let look = |proxy: &Proxy| curl(proxy, "GET", &format!("/v1/keys?{key}"), "")["limits"][0].clone();
    assert_eq!((&look(&other)["remaining"], &look(&other)["source"]), (&0.into(), &"store".into()));
    let granted = curl(&one, "POST", &format!("/v1/keys/grant?{key}"), "{\"tokens\": 2}");
    assert_eq!(granted["limits"][0]["remaining"], 2);
    assert_eq!([ask(&one), ask(&one), ask(&one)], [200, 200, 429]);
    curl(&other, "DELETE", &format!("/v1/keys?{key}"), "");
    assert_eq!(look(&other)["remaining"], 3);
    assert_eq!([ask(&other), ask(&other), ask(&other), ask(&other)], [200, 200, 200, 429]);

    // An override holds in the process that it was given to, and what is owed is counted under it.
    curl(&one, "PUT", &format!("/v1/keys/override?{key}"), "{\"limits\": \"5/h\"}");
    curl(&one, "DELETE", &format!("/v1/keys?{key}"), "");
    assert_eq!(look(&one)["remaining"], 5);
    // What the store cannot keep exactly is refused, as in the file.
    let refused = curl(&one, "PUT", &format!("/v1/keys/override?{key}"), "{\"limits\": \"1/year burst 1000\"}");
    assert!(refused["detail"].as_str().unwrap().contains("cannot be kept exactly in a shared store"), "{refused}");
}

#[test]
fn br_071_a_look_shows_a_penalty_which_it_does_not_touch_and_a_reset_ends_it() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("tidegate.toml");
    let policy = "[[policies]]\nname = \"log-in\"\nkey = \"header:x-user\"\nlimits = \"2/h\"\n\
                  penalty = { after = \"1/h\", hold = \"1d\" }\n";
    fs::write(&file, policy).unwrap();
    let redis = Redis::start(&[]);
    for store in [&[][..], &["--store", &redis.url(), "--store-deadline", "2s"]] {
        let flags = [&["--config", file.to_str().unwrap()], store].concat();
        let proxy = Proxy::start(&flags);
        let ask = || get_with(proxy.address, "/joke", &[("x-user", "ann")]);
        let look = || curl(&proxy, "GET", "/v1/keys?policy=log-in&key=ann", "")["penalty"].clone();
        assert_eq!((&look()["held"], &look()["offences_left"]), (&false.into(), &1.into()));
        assert_eq!([ask().status, ask().status, ask().status], [200, 200, 429]);
        for _ in 0..3 {
            let wait = look()["held_after_s"].as_f64().unwrap();
            let retry_after: f64 = ask().field("retry-after").unwrap().parse().unwrap();
            assert!(wait > 86_000.0 && wait <= retry_after, "{wait} of {retry_after}");
            assert!(retry_after <= 86_400.0, "asking in vain makes it no longer: {retry_after}");
        }
        assert_eq!((&look()["held"], &look()["offences_left"]), (&true.into(), &0.into()));
        let after = curl(&proxy, "DELETE", "/v1/keys?policy=log-in&key=ann", "");
        assert_eq!((&after["penalty"]["held"], &after["penalty"]["offences_left"]), (&false.into(), &1.into()));
        assert_eq!([ask().status, ask().status, ask().status], [200, 200, 429]);
        curl(&proxy, "DELETE", "/v1/keys?policy=log-in&key=ann", "");
    }
}

#[test]
fn beyond_the_loopback_it_needs_a_token_and_says_if_others_can_read_it() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("token");
    let path = file.to_str().unwrap();
    let flags = ["proxy", "--limit", "3/min", "--listen", "127.0.0.1:0"];
    let Run { code, err, .. } = run(&[&flags[..], &["--admin", "0.0.0.0:0"]].concat());
    assert!(code == Some(2) && err.contains("add --admin-token-file"), "{code:?} {err}");
    let Run { code, err, .. } = run(&[&flags[..], &["--admin-token-file", path]].concat());
    assert!(code == Some(2) && err.contains("No such file"), "{code:?} {err}");
    fs::write(&file, "short\n").unwrap();
    let Run { code, err, .. } = run(&[&flags[..], &["--admin-token-file", path]].concat());
    assert!(code == Some(2) && err.contains("a token has 16 to 512 characters"), "{code:?} {err}");

    fs::write(&file, "0123456789abcdef\n").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let proxy = Proxy::started({
        let mut command = serving(&["--limit", "3/min", "--admin-token-file", path]);
        command.args(["--denied-keys", "3", "--denied-keys-hashed", "--key-hash-salt", "pepper"]);
        command
    });
    proxy.wait_for("everybody on this machine can read the token");
    assert_eq!((proxy.admin("/livez").status, proxy.admin("/metrics").status), (200, 401));
    let with = format!("{CURL} -s -H \"Authorization: Bearer $(cat {path})\" http://{}/v1/denied", proxy.admin);
    assert_eq!(serde_json::from_str::<Value>(&shell(folder.path(), &with)).unwrap()["hashed"], true);
}

/// A proxy whose one key, the client, has nothing left of its limit.
fn drained(file: &Path) -> Proxy {
    let proxy = keeping(file);
    let statuses: Vec<_> = (0..4).map(|_| support::http::get(proxy.address, "/joke").status).collect();
    assert_eq!(statuses, [200, 200, 200, 429]);
    proxy
}

fn keeping(file: &Path) -> Proxy {
    Proxy::start(&["--limit", "3/h", "--save-state", file.to_str().unwrap()])
}

fn stop(mut proxy: Proxy) -> String {
    proxy.signal("TERM");
    assert!(proxy.ended().success());
    proxy.wait_for("saved in")
}

fn status(proxy: &Proxy) -> u16 {
    support::http::get(proxy.address, "/joke").status
}

#[test]
fn buckets_outlive_a_stop_and_a_kill_leaves_those_of_the_stop_before() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("state");
    let said = stop(drained(&file));
    assert!(said.contains(&format!("1 buckets are saved in {}", file.display())), "{said}");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(!folder.path().join("state.new").exists());

    let proxy = keeping(&file);
    proxy.wait_for("1 buckets go on as");
    assert_eq!(status(&proxy), 429);
    let before = fs::read(&file).unwrap();
    proxy.signal("KILL");
    drop(proxy);
    assert_eq!(fs::read(&file).unwrap(), before);
    let proxy = keeping(&file);
    assert_eq!(status(&proxy), 429);
    // Another configuration keeps what is owed: of ten, seven are left.
    stop(proxy);
    let proxy = Proxy::start(&["--limit", "10/h", "--save-state", file.to_str().unwrap()]);
    assert_eq!((0..9).filter(|_| status(&proxy) == 200).count(), 7);
}

#[test]
fn a_file_that_cannot_be_used_is_kept_aside_and_told_and_the_buckets_start_full() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("state");
    stop(drained(&file));
    let whole = fs::read(&file).unwrap();
    let mut altered = whole.clone();
    altered[40] ^= 1;
    let cut = whole[..whole.len() - 3].to_vec();
    for (what, contents, why) in [
        ("cut", cut, "it is damaged"),
        ("altered", altered, "it is damaged"),
        ("empty", Vec::new(), "it holds no saved buckets"),
        ("foreign", b"[[policies]]\n".to_vec(), "it holds no saved buckets"),
    ] {
        fs::write(&file, &contents).unwrap();
        let proxy = drained(&file);
        assert!(proxy.said().contains(why), "{what}: {}", proxy.said());
        assert_eq!(fs::read(folder.path().join("state.damaged")).unwrap(), contents, "{what}");
        stop(proxy);
    }
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    let mut proxy = drained(&file);
    assert!(proxy.said().contains("it is no file"), "{}", proxy.said());
    proxy.signal("TERM");
    assert!(proxy.ended().success());
    proxy.wait_for("the buckets could not be saved");
    assert!(file.is_dir() && !folder.path().join("state.new").exists());
}
