//! The walls between the rooms, held against what is really there.
//!
//! ARCHITECTURE.md says which crate may use which, and that one file reads the clock. This test asks cargo and the
//! sources.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// What each crate may use, of ours and of others. A crate that is not listed here is a wall that nobody built.
const MAY_USE: &[(&str, &[&str], Others)] = &[
    ("tidegate-core", &[], Others::Only(&[])),
    ("tidegate-memory", &["tidegate-core"], Others::Only(&["bytemuck", "foldhash", "loom"])),
    ("tidegate-policy", &["tidegate-core"], Others::Only(&["ipnet", "sha2"])),
    ("tidegate", &["tidegate-core", "tidegate-memory", "tidegate-policy"], Others::Only(&["quanta", "tokio"])),
    ("tidegate-http", &["tidegate", "tidegate-core", "tidegate-policy"], Others::Not(&["tokio-util", "clap"])),
    (
        "tidegate-server",
        &["tidegate-http", "tidegate", "tidegate-core", "tidegate-policy"],
        Others::Not(&["clap", "quanta", "tidegate-memory"]),
    ),
    (
        "tidegate-cli",
        &["tidegate-server", "tidegate-http", "tidegate", "tidegate-policy"],
        Others::Not(&["hyper", "quanta"]),
    ),
];

enum Others {
    Only(&'static [&'static str]),
    Not(&'static [&'static str]),
}

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("crates/cli is two folders down").to_path_buf()
}

/// The direct dependencies of each crate of ours, without those that only tests need.
fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let cargo = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(workspace())
        .output()
        .expect("cargo runs");
    assert!(cargo.status.success(), "{}", String::from_utf8_lossy(&cargo.stderr));
    let metadata: Value = serde_json::from_slice(&cargo.stdout).expect("cargo prints JSON");
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let packages = metadata["packages"].as_array().expect("packages");
    let used = |package: &Value| {
        let dependencies = package["dependencies"].as_array().expect("dependencies").iter();
        dependencies.filter(|one| one["kind"].is_null()).map(|one| text(&one["name"])).collect()
    };
    packages.iter().map(|package| (text(&package["name"]), used(package))).collect()
}

#[test]
fn each_crate_uses_only_what_it_may_know() {
    let dependencies = dependencies();
    let listed: BTreeSet<_> = MAY_USE.iter().map(|(name, ..)| (*name).to_owned()).collect();
    assert_eq!(listed, dependencies.keys().cloned().collect(), "each crate has its row in MAY_USE");
    for (name, ours, others) in MAY_USE {
        for used in &dependencies[*name] {
            let is_ours = dependencies.contains_key(used);
            let may = match others {
                _ if is_ours => ours.contains(&used.as_str()),
                Others::Only(these) => these.contains(&used.as_str()),
                Others::Not(these) => !these.contains(&used.as_str()),
            };
            assert!(may, "{name} must know nothing of {used}");
        }
    }
}

/// All sources of the crates, without tests, benches and examples.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()) {
        if entry.is_dir() {
            sources(&entry, found);
        } else if entry.extension().is_some_and(|extension| extension == "rs") {
            found.push(entry);
        }
    }
}

/// The part of a source that ships: what stands before its tests, without comments.
fn shipped(source: &str) -> String {
    let code = source.split("#[cfg(test)]").next().unwrap_or_default();
    let code = code.split("#[cfg(all(test").next().unwrap_or_default();
    code.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

fn all_sources() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for (name, ..) in MAY_USE {
        let folder = name.strip_prefix("tidegate-").unwrap_or(name);
        sources(&workspace().join("crates").join(folder).join("src"), &mut found);
    }
    assert!(found.len() > 40, "the sources are where they are looked for");
    found
}

#[test]
fn one_file_reads_the_clock() {
    let clock = Path::new("crates").join("tidegate").join("src").join("clock.rs");
    let readers: Vec<_> = all_sources()
        .into_iter()
        .filter(|path| {
            let code = shipped(&fs::read_to_string(path).expect("a source"));
            ["Instant::now", "SystemTime::now", "quanta::", ".elapsed()", "UNIX_EPOCH"]
                .iter()
                .any(|word| code.contains(word))
        })
        .collect();
    assert_eq!(readers, [workspace().join(clock)]);
}

#[test]
fn no_crate_has_unsafe_code_and_the_core_has_no_std() {
    for (name, ..) in MAY_USE {
        let folder = name.strip_prefix("tidegate-").unwrap_or(name);
        let src = workspace().join("crates").join(folder).join("src");
        let head =
            ["lib.rs", "main.rs"].iter().find_map(|file| fs::read_to_string(src.join(file)).ok()).expect("a head");
        assert!(head.contains("#![forbid(unsafe_code)]"), "{name} forbids unsafe code");
    }
    let core = workspace().join("crates").join("core").join("src");
    let head = fs::read_to_string(core.join("lib.rs")).expect("a head");
    assert!(head.contains("#![no_std]"));
    let mut found = Vec::new();
    sources(&core, &mut found);
    for path in found {
        let code = shipped(&fs::read_to_string(&path).expect("a source"));
        assert!(!code.contains("std::") && !code.contains("alloc::"), "{} is without std", path.display());
    }
}
