//! The core stands alone: no std, no allocation, no dependencies, no unsafe code.
//!
//! Without `std` in a crate and without other crates there is no clock to read and no I/O to do.

use std::fs;
use std::path::{Path, PathBuf};

fn read(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn the_crate_forbids_std_and_unsafe_code() {
    let lib = read("src/lib.rs");
    for attribute in ["#![no_std]", "#![forbid(unsafe_code)]"] {
        assert!(lib.lines().any(|line| line == attribute), "{attribute} is missing");
    }
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let paths = entries.map(|entry| entry.expect("a readable folder").path());
    paths.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}

#[test]
fn no_file_brings_std_or_alloc_back() {
    let files = files_below(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    assert!(files.len() > 5, "only {} files", files.len());
    for file in files {
        let text = fs::read_to_string(&file).expect("a source file");
        for word in ["extern crate", "std::", "alloc::"] {
            assert!(!text.contains(word), "`{word}` in {}", file.display());
        }
    }
}

#[test]
fn the_manifest_names_no_dependency() {
    let manifest = read("Cargo.toml");
    let (_, behind) = manifest.split_once("\n[dependencies]\n").expect("a section of dependencies, empty");
    let section = behind.split("\n[").next().unwrap_or_default();
    assert_eq!(section.trim(), "", "the core has dependencies");
    let other = manifest.lines().filter(|line| line.starts_with('[') && line.contains("dependencies"));
    assert_eq!(other.collect::<Vec<_>>(), ["[dependencies]", "[dev-dependencies]"]);
}
