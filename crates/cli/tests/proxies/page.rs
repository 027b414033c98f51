//! The pages of the documentation, and what stands in their fences.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

/// The ports that the pages speak of, and what stands there.
const TIDEGATE: &str = "8080";
const API: &str = "9000";
const FRONT: &str = "8000";

/// Who listens where, in a test.
#[derive(Clone, Copy)]
pub(crate) struct Ports {
    pub(crate) tidegate: SocketAddr,
    pub(crate) api: SocketAddr,
    pub(crate) front: SocketAddr,
}

impl Ports {
    /// A snippet with these ports for those of the page.
    pub(crate) fn put_into(self, snippet: &str) -> String {
        let Self { tidegate, api, front } = self;
        let ports = [(TIDEGATE, tidegate.port()), (API, api.port()), (FRONT, front.port())];
        // A number is a whole one, and what was put in is not looked at again.
        let is_digit = |c: char| c.is_ascii_digit();
        let mut text = String::new();
        let mut rest = snippet;
        while let Some(at) = rest.find(is_digit) {
            let length = rest[at..].find(|c| !is_digit(c)).unwrap_or(rest.len() - at);
            let number = &rest[at..at + length];
            text.push_str(&rest[..at]);
            match ports.iter().find(|(port, _)| *port == number) {
                Some((_, port)) => text.push_str(&port.to_string()),
                None => text.push_str(number),
            }
            rest = &rest[at + length..];
        }
        text + rest
    }
}

/// A page of `docs/`.
pub(crate) struct Page {
    name: &'static str,
    /// What stands behind the language at the head of a fence, and the text in it.
    snippets: Vec<(String, String)>,
}

impl Page {
    pub(crate) fn named(name: &'static str) -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let mut snippets = Vec::new();
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            if let Some((_, title)) = line.strip_prefix("```").and_then(|head| head.split_once(' ')) {
                let lines = lines.by_ref().take_while(|line| *line != "```");
                snippets.push((title.to_owned(), lines.map(|line| format!("{line}\n")).collect()));
            } else if line.starts_with("```") {
                lines.by_ref().find(|line| *line == "```");
            }
        }
        Self { name, snippets }
    }

    /// The snippet with this title.
    pub(crate) fn snippet(&self, title: &str) -> &str {
        let mut titled = self.snippets.iter().filter(|(each, _)| each == title);
        let (Some((_, text)), None) = (titled.next(), titled.next()) else {
            panic!("docs/{} has not one snippet {title:?}", self.name)
        };
        text
    }
}
