//! What the program writes: its access log, and what it says of itself.

mod support;

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use self::support::PATIENCE;
use self::support::http::{get, get_with};
use self::support::program::{Proxy, run, serving};

fn until<T>(what: &str, look: impl Fn() -> Option<T>) -> T {
    let since = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(since.elapsed() < PATIENCE, "never: {what}");
        sleep(Duration::from_millis(5));
    }
}

fn lines(path: &Path) -> Vec<String> {
    fs::read_to_string(path).unwrap_or_default().lines().map(str::to_owned).collect()
}

fn has(path: &Path, count: usize) -> Option<Vec<String>> {
    Some(lines(path)).filter(|lines| lines.len() >= count)
}

#[test]
fn each_request_has_a_line_with_its_decision() {
    let folder = TempDir::new().unwrap();
    let mut proxy = Proxy::start_in(folder.path(), &["--limit", "2/h", "--access-log", "access.log"]);
    assert!(proxy.said().contains("combined, in access.log"), "{}", proxy.said());
    for _ in 0..3 {
        get_with(proxy.address, "/joke?a=b", &[("user-agent", "probe/1.0")]);
    }
    proxy.signal("TERM");
    assert!(proxy.ended().success());
    let lines = lines(&folder.path().join("access.log"));
    assert_eq!(lines.len(), 3, "{lines:?}");
    for (line, (status, decision, remaining)) in
        lines.iter().zip([(200, "allowed", 1), (200, "allowed", 0), (429, "denied", 0)])
    {
        assert!(line.starts_with("127.0.0.1 - - ["), "{line}");
        assert!(line.contains(&format!("+0000] \"GET /joke?a=b HTTP/1.1\" {status} ")), "{line}");
        let fields: Vec<_> = line.split('"').skip(1).step_by(2).collect();
        assert_eq!(fields[1..4], ["-", "probe/1.0", decision], "{line}");
        assert_eq!((fields[4], fields[6], fields[8]), ("store", "limit-1", remaining.to_string().as_str()), "{line}");
        let wait: f64 = fields[9].parse().unwrap_or(0.0);
        assert_eq!(wait > 1_700.0 && wait <= 1_800.0, status == 429, "{line}");
    }
}

#[test]
fn a_log_can_be_moved_away_and_the_program_told_or_not() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("access.log");
    let flags = ["--limit", "100/h", "--access-log", "access.log", "--access-log-format", "json"];
    let proxy = Proxy::start_in(folder.path(), &flags);
    for (round, signal) in [Some("USR1"), Some("HUP"), None].into_iter().enumerate() {
        get(proxy.address, &format!("/{round}"));
        until("the line is there", || has(&path, 1));
        let moved = folder.path().join(format!("access.log.{round}"));
        fs::rename(&path, &moved).unwrap();
        signal.iter().for_each(|signal| proxy.signal(signal));
        until("a new file is there", || path.exists().then_some(()));
        let line: Value = serde_json::from_str(&lines(&moved)[0]).unwrap();
        assert_eq!((&line["target"], lines(&moved).len()), (&Value::from(format!("/{round}")), 1));
    }
}

#[test]
fn a_log_on_standard_output_is_for_whoever_reads_it() {
    let mut command =
        serving(&["--limit", "100/h", "--access-log", "-", "--access-log-format", "json", "--log", "json"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let said = first_line(&mut child);
    get(
        said["fields"]["try"]
            .as_str()
            .unwrap()
            .trim_start_matches("curl -i http://")
            .trim_end_matches('/')
            .parse()
            .unwrap(),
        "/a",
    );
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let told: Value = serde_json::from_str(&line).unwrap();
    assert_eq!((&told["target"], &told["decision"]), (&Value::from("/a"), &Value::from("allowed")));
    end(child);
}

/// The first line that it says on standard error, which is JSON.
fn first_line(child: &mut Child) -> Value {
    let mut line = String::new();
    let mut one = [0];
    let stderr = child.stderr.as_mut().unwrap();
    while !line.ends_with('\n') && stderr.read(&mut one).unwrap() == 1 {
        line.push(char::from(one[0]));
    }
    serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
}

fn end(mut child: Child) -> String {
    child.kill().unwrap();
    let mut rest = String::new();
    child.stderr.take().unwrap().read_to_string(&mut rest).unwrap();
    child.wait().unwrap();
    rest
}

#[test]
fn to_a_machine_it_speaks_in_objects() {
    let mut child = serving(&["--limit", "3/h", "--key", "header:x-api-key", "--log", "json"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let started = first_line(&mut child);
    assert_eq!(started["level"], "info");
    assert!(started["message"].as_str().unwrap().starts_with("tidegate "), "{started}");
    assert!(started["fields"]["limit-1"].as_str().unwrap().contains("3/h"), "{started}");
    let time = started["time"].as_str().unwrap();
    assert_eq!((time.len(), &time[10..11], &time[26..]), (27, "T", "Z"), "{time}");
    // A key that callers can invent earns a warning.
    let warned = first_line(&mut child);
    assert_eq!(warned["level"], "warning", "{warned}");
    end(child);
}

#[test]
fn it_says_no_more_than_it_is_asked_to() {
    let flags = ["--limit", "3/h", "--key", "header:x-api-key", "--log", "json", "--log-level", "warning"];
    let mut child = serving(&flags).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    assert_eq!(first_line(&mut child)["level"], "warning");
    end(child);
}

#[test]
fn what_cannot_be_is_refused() {
    for (flags, hint) in [
        (["--access-log-format", "xml"], "expected combined, common or json"),
        (["--log", "xml"], "expected text or json"),
        (["--log-level", "loud"], "expected error, warning or info"),
    ] {
        let run = run(&["proxy", "--limit", "3/h", flags[0], flags[1]]);
        assert_eq!(run.code, Some(2));
        assert!(run.err.contains(hint), "{}", run.err);
    }
    let run = run(&["proxy", "--limit", "3/h", "--listen", "127.0.0.1:0", "--access-log", "/nowhere/access.log"]);
    assert_eq!(run.code, Some(1));
    assert!(run.err.contains("cannot write the access log to /nowhere/access.log: No such file"), "{}", run.err);
}
