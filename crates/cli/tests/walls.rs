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
const MAY_USE: &[Row] = &[
    Row("tidegate-core", &[], Others::Only(&[])),
    Row("tidegate-memory", &["tidegate-core"], Others::Only(&["bytemuck", "foldhash", "loom"])),
    Row(
        "tidegate-redis",
        &["tidegate-core"],
        Others::Only(&["futures-util", "redis", "rustls", "rustls-native-certs", "sha2", "tokio", "tokio-rustls"]),
    ),
    Row("tidegate-policy", &["tidegate-core"], Others::Only(&["ipnet", "saphyr-parser", "sha2", "toml"])),
    Row(
        "tidegate",
        &["tidegate-core", "tidegate-memory", "tidegate-redis", "tidegate-policy"],
        Others::Only(&["quanta", "tokio"]),
    ),
    Row("tidegate-http", &["tidegate", "tidegate-core", "tidegate-policy"], Others::Not(&["tokio-util", "clap"])),
    Row(
        "tidegate-server",
        &["tidegate-http", "tidegate", "tidegate-core", "tidegate-policy"],
        Others::Not(&["clap", "quanta", "tidegate-memory"]),
    ),
    Row(
        "tidegate-lab",
        &["tidegate", "tidegate-core", "tidegate-memory", "tidegate-policy"],
        Others::Not(&["clap", "quanta"]),
    ),
    Row(
        "tidegate-cli",
        &["tidegate-lab", "tidegate-server", "tidegate-http", "tidegate", "tidegate-policy"],
        Others::Not(&["hyper", "quanta"]),
    ),
    Row(
        "tidegate-fuzz",
        &["tidegate-lab", "tidegate-server", "tidegate-http", "tidegate-redis", "tidegate-policy", "tidegate-core"],
        Others::Only(&[]),
    ),
];

/// A crate, the crates of ours that it may use, and which of the others.
struct Row(&'static str, &'static [&'static str], Others);

enum Others {
    Only(&'static [&'static str]),
    Not(&'static [&'static str]),
}

impl Row {
    fn may_use(&self, used: &str) -> bool {
        let is_ours = MAY_USE.iter().any(|row| row.0 == used);
        match self.2 {
            _ if is_ours => self.1.contains(&used),
            Others::Only(these) => these.contains(&used),
            Others::Not(these) => !these.contains(&used),
        }
    }
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
    let listed: BTreeSet<_> = MAY_USE.iter().map(|Row(name, ..)| (*name).to_owned()).collect();
    assert_eq!(listed, dependencies.keys().cloned().collect(), "each crate has its row in MAY_USE");
    for row in MAY_USE {
        for used in &dependencies[row.0] {
            assert!(row.may_use(used), "{} must know nothing of {used}", row.0);
        }
    }
}

/// A file of a crate, as far as it ships.
struct Source {
    path: PathBuf,
    code: String,
}

impl Source {
    /// What ships of a crate: all of `src`, without comments and without what is there for tests alone.
    fn all_of(name: &str) -> Vec<Self> {
        let folder = workspace().join("crates").join(name.strip_prefix("tidegate-").unwrap_or(name)).join("src");
        let (mut sources, mut for_tests) = (Vec::new(), Vec::new());
        for path in files(&folder) {
            let (code, modules) = shipped(&fs::read_to_string(&path).expect("a source"));
            let is_head = ["lib.rs", "main.rs", "mod.rs"].iter().any(|name| path.ends_with(name));
            let within = if is_head { path.with_file_name("") } else { path.with_extension("") };
            for_tests.extend(modules.into_iter().map(|module| within.join(module)));
            sources.push(Self { path, code });
        }
        sources.retain(|source| !for_tests.iter().any(|module| source.path.with_extension("").starts_with(module)));
        sources
    }

    fn reads_the_clock(&self) -> bool {
        let words = ["Instant::now", "SystemTime::now", "quanta::", ".elapsed()", "UNIX_EPOCH"];
        words.iter().any(|word| self.code.contains(word))
    }

    fn needs_std(&self) -> bool {
        self.code.contains("std::") || self.code.contains("alloc::")
    }
}

/// All Rust files in a folder and those below it.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let (folders, files): (Vec<_>, Vec<_>) =
        entries.map(|entry| entry.expect("an entry").path()).partition(|path| path.is_dir());
    let sources = files.into_iter().filter(|path| path.extension().is_some_and(|extension| extension == "rs"));
    sources.chain(folders.iter().flat_map(|folder| self::files(folder))).collect()
}

/// The lines that ship, and the names of the modules that are there for tests alone, in files of their own.
fn shipped(source: &str) -> (String, Vec<String>) {
    let (mut code, mut modules) = (String::new(), Vec::new());
    let mut lines = source.lines().filter(|line| !line.trim_start().starts_with("//"));
    while let Some(line) = lines.next() {
        if !is_for_tests(line) {
            code.extend([line, "\n"]);
            continue;
        }
        let item = lines.find(|line| !line.trim_start().starts_with("#[")).unwrap_or_default();
        if let Some((_, module)) = item.trim_end_matches(';').split_once("mod ").filter(|_| item.ends_with(';')) {
            modules.push(module.to_owned());
        } else if item.ends_with('{') {
            let indent = &item[..item.len() - item.trim_start().len()];
            let is_end = |line: &&str| line.strip_prefix(indent).is_some_and(|rest| rest.starts_with('}'));
            lines.find(is_end).expect("what is opened is closed, as rustfmt sets it");
        } else {
            assert!(item.ends_with([';', ',']), "write it so that it is seen where it ends: {item}");
        }
    }
    (code, modules)
}

fn is_for_tests(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("#[cfg(test)]") || line.starts_with("#[cfg(all(test,")
}

#[test]
fn one_file_reads_the_clock() {
    let sources: Vec<_> = MAY_USE.iter().flat_map(|Row(name, ..)| Source::all_of(name)).collect();
    assert!(sources.len() > 40, "the sources are where they are looked for");
    let readers = sources.iter().filter(|source| source.reads_the_clock());
    let readers: Vec<_> = readers.map(|source| source.path.strip_prefix(workspace()).expect("ours")).collect();
    assert_eq!(readers, [Path::new("crates").join("tidegate").join("src").join("clock.rs")]);
}

#[test]
fn the_lab_knows_sockets_and_the_present_in_three_rooms_only() {
    let lab = workspace().join("crates").join("lab").join("src");
    let rooms = ["wire", "load", "audit"].map(|room| lab.join(room));
    let is_in_a_room = |source: &Source| rooms.iter().any(|room| source.path.starts_with(room));
    let (within, outside): (Vec<_>, Vec<_>) = Source::all_of("tidegate-lab").into_iter().partition(is_in_a_room);
    let words = ["tokio::", "hyper::", "http::", "std::net::Tcp", "SystemClock"];
    for source in outside {
        let known = words.iter().find(|word| source.code.contains(**word));
        assert_eq!(known, None, "{}", source.path.display());
    }
    for word in ["tokio::", "SystemClock"] {
        assert!(within.iter().any(|source| source.code.contains(word)), "{word} is known in these rooms");
    }
}

#[test]
fn no_crate_has_unsafe_code_and_the_core_has_no_std() {
    for Row(name, ..) in MAY_USE {
        let sources = Source::all_of(name);
        let is_head = |source: &&Source| ["lib.rs", "main.rs"].iter().any(|head| source.path.ends_with(head));
        let head = sources.iter().find(is_head).expect("a head");
        assert!(head.code.contains("#![forbid(unsafe_code)]"), "{name} forbids unsafe code");
        assert_eq!(head.code.contains("#![no_std]"), *name == "tidegate-core");
    }
    for source in Source::all_of("tidegate-core") {
        assert!(!source.needs_std(), "{} is without std", source.path.display());
    }
}

#[test]
fn what_is_there_for_tests_alone_is_told_from_what_ships() {
    let source = "\
use std::fmt;
#[cfg(test)]
mod model;
#[cfg(all(test, not(loom)))]
#[path = \"x.rs\"]
pub(crate) mod stress;
// Instant::now() in a comment
fn shipped() {
    #[cfg(test)]
    crate::stress::count(Instant::now());
    shipped();
}
#[cfg(test)]
mod tests {
    fn now() {
        Instant::now();
    }
}
#[cfg(not(test))]
fn also_shipped() {}
";
    let (code, modules) = shipped(source);
    assert_eq!(code, "use std::fmt;\nfn shipped() {\n    shipped();\n}\n#[cfg(not(test))]\nfn also_shipped() {}\n");
    assert_eq!(modules, ["model", "stress"]);
}

#[test]
fn a_broken_wall_is_seen() {
    let source = |code: &str| Source { path: PathBuf::new(), code: code.to_owned() };
    let readers = [
        "let now = tokio::time::Instant::now();",
        "use quanta::Clock;",
        "SystemTime::now()",
        "if start.elapsed() > limit {",
        "time.duration_since(UNIX_EPOCH)",
    ];
    readers.iter().for_each(|code| assert!(source(code).reads_the_clock(), "{code}"));
    assert!(!source("let now = clock.now();").reads_the_clock());
    assert!(source("use std::fmt;").needs_std() && source("alloc::vec::Vec").needs_std());
    assert!(!source("use core::fmt;").needs_std());

    let may = |name: &str, used: &str| MAY_USE.iter().find(|row| row.0 == name).expect("a row").may_use(used);
    for (name, used) in [
        ("tidegate-core", "serde"),
        ("tidegate-core", "tidegate-memory"),
        ("tidegate-memory", "tidegate-policy"),
        ("tidegate-policy", "http"),
        ("tidegate", "hyper"),
        ("tidegate", "tidegate-http"),
        ("tidegate-http", "tidegate-server"),
        ("tidegate-server", "quanta"),
        ("tidegate-server", "tidegate-memory"),
        ("tidegate-lab", "clap"),
        ("tidegate-lab", "tidegate-server"),
        ("tidegate-cli", "hyper"),
    ] {
        assert!(!may(name, used), "{name} must know nothing of {used}");
    }
    assert!(may("tidegate", "quanta") && may("tidegate-server", "hyper") && may("tidegate-cli", "clap"));
}
