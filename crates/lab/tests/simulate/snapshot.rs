//! Texts that are held against files.

use std::fs;
use std::path::Path;

/// Set it to write the snapshots anew instead of comparing with them.
const UPDATE: &str = "TIDEGATE_UPDATE_SNAPSHOTS";

/// Compares a text, without its styles, with the file of this name under `tests/snapshots`.
#[track_caller]
pub(crate) fn check(name: &str, text: &str) {
    check_file(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join("snapshots").join(name), &plain(text));
}

/// Compares a text with a file.
#[track_caller]
pub(crate) fn check_file(path: &Path, text: &str) {
    if std::env::var_os(UPDATE).is_some() {
        fs::write(path, text).unwrap();
    }
    let expected =
        fs::read_to_string(path).unwrap_or_else(|error| panic!("{error}; set {UPDATE}=1 to write {}", path.display()));
    assert!(text == expected, "{} has changed; if that was meant, set {UPDATE}=1; it is now\n{text}", path.display());
}

/// A text without ANSI sequences, as a terminal without colours has it.
pub(crate) fn plain(text: &str) -> String {
    let (mut plain, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once('\u{1b}') {
        plain.push_str(before);
        rest = after.split_once('m').map_or("", |(_, rest)| rest);
    }
    plain + rest
}
