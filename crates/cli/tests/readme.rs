//! What README.md and the page on choosing a limit say is so: their commands are understood, and what they show is what
//! the program prints.

mod support;

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};

use support::http::get;
use support::logs::{apache_logs, real_log_is_absent};
use support::program::{Proxy, run_in};
use tempfile::TempDir;

/// The ways in which the README calls the program.
const CALLS: [&str; 2] = ["tidegate ", "cargo run --release -- "];

/// The commands that call a service, in the order in which it names them.
const CALLERS: [&str; 2] = ["audit", "load"];

/// A block between fences: what stands behind the first fence, and the lines.
struct Block {
    language: String,
    lines: Vec<String>,
}

/// Where whoever reads the README is.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join("..")
}

fn blocks(page: &str) -> Vec<Block> {
    let readme = root().join(page);
    let readme = fs::read_to_string(&readme).unwrap_or_else(|error| panic!("{}: {error}", readme.display()));
    let mut blocks = Vec::new();
    let mut lines = readme.lines();
    while let Some(fence) = lines.next() {
        if let Some(language) = fence.strip_prefix("```") {
            let lines = lines.by_ref().take_while(|line| *line != "```").map(str::to_owned).collect();
            blocks.push(Block { language: language.to_owned(), lines });
        }
    }
    blocks
}

/// Each call of the program in a console block: its arguments, and the lines that are shown below it.
fn calls(page: &str) -> Vec<(Vec<String>, Vec<String>)> {
    let mut calls = Vec::new();
    for block in blocks(page).into_iter().filter(|block| block.language == "console") {
        let mut lines = block.lines.into_iter().peekable();
        while let Some(line) = lines.next() {
            let shown = std::iter::from_fn(|| lines.next_if(|line| !line.starts_with("$ "))).collect();
            let command = line.strip_prefix("$ ").unwrap_or_else(|| panic!("no command: {line}"));
            if let Some(arguments) = CALLS.iter().find_map(|call| command.strip_prefix(call)) {
                calls.push((words(arguments), shown));
            }
        }
    }
    calls
}

/// The words of a command line as a shell splits them, where it has single quotes and nothing else to look out for.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![];
    for (i, part) in line.split('\'').enumerate() {
        let is_plain = !part.contains(['"', '\\', '|', '>', '&', '#']);
        assert!(is_plain || i % 2 == 1, "read it as a shell does: {line}");
        match i % 2 {
            0 => words.extend(part.split_whitespace().map(str::to_owned)),
            _ => words.push(part.to_owned()),
        }
    }
    words
}

#[test]
fn each_server_that_it_starts_would_start() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let mut counts = [0, 0];
    for (arguments, _) in calls("README.md") {
        let (kind, listen) = match &*arguments[0] {
            "proxy" => (0, "--listen"),
            "serve" => (1, "--resp"),
            _ => continue,
        };
        // A port that is taken is what it finds last, when it has understood everything else.
        let own = [listen, &taken, "--admin", "off"].map(str::to_owned);
        let tried = run_in(&root(), &[arguments.clone(), own.to_vec()].concat());
        assert_eq!(tried.code, Some(1), "{arguments:?}: {}", tried.err);
        assert!(tried.err.contains("cannot listen on"), "{arguments:?}: {}", tried.err);
        counts[kind] += 1;
    }
    assert!(counts[0] >= 2 && counts[1] == 1, "the README starts proxies and a decision server");
}

#[test]
fn what_other_commands_print_is_what_it_shows() {
    if real_log_is_absent() {
        return;
    }
    assert!(check_printed("README.md") >= 1, "the README explains a limit");
}

#[test]
fn what_is_said_of_choosing_a_limit_is_what_is_printed() {
    if real_log_is_absent() {
        return;
    }
    assert!(check_printed("docs/choosing-a-limit.md") >= 8);
}

/// How many commands there were.
fn check_printed(page: &str) -> usize {
    // The log that it replays.
    let folder = TempDir::new().unwrap();
    fs::copy(apache_logs(), folder.path().join("access.log")).unwrap();
    let mut count = 0;
    let is_by_itself = |name: &str| !["proxy", "serve"].contains(&name) && !CALLERS.contains(&name);
    for (arguments, mut shown) in calls(page).into_iter().filter(|(arguments, _)| is_by_itself(&arguments[0])) {
        let tried = run_in(folder.path(), &arguments);
        assert_eq!(tried.code, Some(0), "{arguments:?}: {}", tried.err);
        let mut printed: Vec<_> = tried.out.lines().collect();
        // Three points stand for what follows.
        if shown.pop_if(|last| last == "...").is_some() {
            printed.truncate(shown.len());
        }
        assert_eq!(printed, shown, "{arguments:?}");
        count += 1;
    }
    count
}

#[test]
fn each_service_that_it_calls_could_be_this_one() {
    let proxy = Proxy::start(&["--limit", "20/s burst 5"]);
    let mut called = Vec::new();
    for (mut arguments, shown) in
        calls("README.md").into_iter().filter(|(arguments, _)| CALLERS.contains(&&*arguments[0]))
    {
        let url = arguments.iter_mut().find(|argument| argument.starts_with("http://")).expect("a URL");
        *url = proxy.url();
        let tried = run_in(&root(), &arguments);
        assert_eq!(tried.code, Some(0), "{arguments:?}: {}", tried.err);
        assert!(shown.is_empty() && tried.out.contains(&proxy.url()), "{}", tried.out);
        called.push(arguments.swap_remove(0));
    }
    assert_eq!(called, CALLERS);
}

#[test]
fn the_fourth_answer_is_the_one_that_it_shows() {
    let block = blocks("README.md").into_iter().find(|block| block.language == "http").unwrap();
    let [head, body] =
        [block.lines.split(|line| line.is_empty()).next(), block.lines.split(|line| line.is_empty()).nth(1)];
    let proxy = Proxy::start(&["--limit", "3/min"]);
    (0..3).for_each(|_| assert_eq!(get(proxy.address, "/").status, 200));
    let denied = get(proxy.address, "/");
    // A second may have begun since the first request.
    let as_shown = |text: &str| text.replace("t=19", "t=20").replace("in 19 seconds", "in 20 seconds");
    for line in &head.unwrap()[1..] {
        let (name, value) = line.split_once(": ").unwrap();
        let is_wait = name == "retry-after" && denied.field(name) == Some("19");
        assert!(is_wait || denied.field(name).map(as_shown).as_deref() == Some(value), "{line}: {denied:?}");
    }
    assert_eq!(head.unwrap()[0], format!("HTTP/1.1 {} Too Many Requests", denied.status));
    let shown: String = body.unwrap().iter().map(|line| line.trim_start()).collect();
    assert_eq!(as_shown(denied.text().trim_end()), shown);
}
