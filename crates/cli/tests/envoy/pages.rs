//! What the page says of commands and files is so.

use std::fs;

use tempfile::TempDir;

use crate::page::snippet;
use crate::server::Asked;
use crate::support::http::get;
use crate::support::program::run_in;

#[test]
fn the_files_of_the_page_serve_and_are_checked() {
    let folder = TempDir::new().unwrap();
    let rules = folder.path().join("rules");
    fs::create_dir(&rules).unwrap();
    fs::write(rules.join("edge.yaml"), snippet("rules/edge.yaml")).unwrap();
    fs::write(folder.path().join("tidegate.toml"), snippet("tidegate.toml")).unwrap();
    let config = folder.path().join("tidegate.toml");
    let asked = Asked::by(&rules, &["--config", config.to_str().unwrap()]);
    let line = snippet("json");
    let call = line.split_once("-d '").unwrap().1.trim_end().trim_end_matches('\'');
    let told = asked.told(call);
    assert_eq!(told["statuses"][0]["limitRemaining"], 59, "{told}");
    assert_eq!(get(asked.server.address, "/healthcheck").status, 200);
    let user = r#"{"domain":"edge","descriptors":[{"entries":[{"key":"user","value":"ann"}]}]}"#;
    assert_eq!(asked.told(user)["statuses"][0]["currentLimit"]["name"], "per-user.limit-1");

    let checked = run_in(folder.path(), &["check", "--ratelimit-config", "rules"]);
    assert_eq!(checked.code, Some(0), "{}", checked.err);
    for line in ["3 rules", "edge: remote_address", "edge: api_key_big-customer", "60/min  (fixed-window)"] {
        assert!(checked.out.contains(line), "{line}: {}", checked.out);
    }
    let both = run_in(folder.path(), &["check", "--ratelimit-config", "rules", "--config", "tidegate.toml"]);
    assert!(both.out.contains("3 rules") && both.out.contains("1 policy"), "{both:?}");
    fs::write(rules.join("edge.yaml"), "domain: edge\ndescriptors: [{kye: a}]\n").unwrap();
    let wrong = run_in(folder.path(), &["check", "--ratelimit-config", "rules"]);
    assert_eq!(wrong.code, Some(2));
    assert!(wrong.err.contains("rules/edge.yaml:2:16: a descriptor has no key `kye`"), "{}", wrong.err);
}

#[test]
fn the_command_of_the_page_is_understood() {
    let folder = TempDir::new().unwrap();
    let words = snippet("start");
    let words: Vec<_> = words.split_whitespace().skip(1).collect();
    // It has understood everything when it finds that there are no files.
    let run = run_in(folder.path(), &words);
    assert_eq!(run.code, Some(2), "{}", run.err);
    assert!(run.err.contains("cannot read rules"), "{}", run.err);
}
