//! The page of the documentation, and the snippets that have titles in it.

use std::fs;
use std::path::Path;

/// The snippet with this title.
pub(crate) fn snippet(title: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/envoy.md");
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let is_head =
        |line: &&str| line.strip_prefix("```").and_then(|head| head.split_once(' ')).is_some_and(|(_, it)| it == title);
    let mut lines = text.lines();
    lines.find(is_head).unwrap_or_else(|| panic!("docs/envoy.md has no snippet {title:?}"));
    lines.take_while(|line| *line != "```").map(|line| format!("{line}\n")).collect()
}
