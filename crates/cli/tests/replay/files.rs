//! Logs as they lie about: compressed, cut off, empty, spoilt, and longer than memory.

use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use super::support::http::get_with;
use super::support::is_long;
use super::support::logs::{figures, line, report};
use super::support::program::{Proxy, Run, command, run_in};
use super::{FIGURES, folder, replay};

#[test]
fn br_180_clients_of_ipv6_are_networks() {
    let line = |client: &str| format!("{client} - - [07/Sep/2023:15:58:36 +0200] \"GET / HTTP/2.0\" 302 360\n");
    let log =
        ["fe80::a00:27ff:fe00:1%enp0s8", "::1", "2001:db8::1", "[2001:db8::1]:443", "2001:db8::2"].map(line).concat();
    let folder = folder("log", log.as_bytes());
    let report = report(&folder.path().join("log"), &["--limit", "1/min"]);
    assert_eq!(figures(&report, FIGURES), [5, 3, 2, 1]);
    assert_eq!(report["top_clients"][0]["client"], "2001:db8::");
}

#[test]
fn br_187_a_format_that_drifts_is_reported_with_its_lines() {
    let drifted =
        "192.0.2.46 - - [23/May/2022:14:50:37 +0800] \"POST /m HTTP/1.1\" store=1&op=2 346 \"-\" \"okhttp\" \"-\"\n";
    let log = drifted.repeat(10) + &(0..10).map(|second| line(1, second, "/")).collect::<String>();
    let Run { code, out, err } = replay(log.as_bytes(), &["--limit", "1/s"]);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    for said in [
        "read       10 of 20 lines, 50.00%",
        "unread     10 lines, such as",
        "log:1: status expected, got store=1&op=2",
        "(--format names another format, or writes one down)",
    ] {
        assert!(out.contains(said), "no {said:?} in\n{out}");
    }
}

#[test]
fn a_log_that_cannot_be_read_is_an_error_that_says_why() {
    let folder = folder("rubbish", b"neither this\nnor that is a log\n");
    for (log, message) in [
        ("nowhere", "cannot read nowhere: No such file or directory"),
        (".", "cannot read .: it is a directory; name the files in it"),
        ("rubbish", "rubbish is of no known format; it begins with\n  neither this\nname the format by --format"),
    ] {
        let Run { code, out, err } = run_in(folder.path(), &["replay", log, "--limit", "1/s"]);
        assert_eq!((code, out.as_str()), (Some(1), ""), "{log} said {err}");
        assert!(err.starts_with("error: ") && err.contains(message), "{log} said {err}");
    }
}

#[test]
fn an_empty_log_has_no_requests_and_says_so() {
    for contents in [&b""[..], b"\n\r\n", b"#Version: 1.0\n#Fields: date time c-ip\n"] {
        let Run { code, out, err } = replay(contents, &["--limit", "1/s"]);
        assert_eq!((code, err.as_str()), (Some(0), "warning: no requests were replayed\n"));
        assert!(out.contains("requests   0 from 0 clients"), "{out}");
    }
    assert!(replay(b"", &["--limit", "1/s"]).out.starts_with("log        log, format none, it is empty\n"));
}

#[test]
fn lines_that_are_not_as_they_should_be_are_counted_and_shown() {
    let mut log = b"\xef\xbb\xbf".to_vec();
    log.extend(line(1, 0, "/with-a-mark-before-it").bytes());
    // The ends of Windows, bytes that are no UTF-8, an escape that a terminal would obey, and a line of 10 MB.
    log.extend(line(2, 1, "/returns").replace('\n', "\r\n").bytes());
    log.extend(line(2, 2, "/XX").bytes().map(|byte| if byte == b'X' { 0xff } else { byte }));
    log.extend(line(2, 3, "/\u{1b}[31m").bytes());
    log.extend(std::iter::repeat_n(b'y', 10 << 20));
    log.push(b'\n');
    log.extend(line(3, 4, "/\0").bytes());
    log.extend(b"torn\n\n");
    log.extend(line(3, 5, "/no-end").trim_end().bytes());

    let Run { code, out, err } = replay(&log, &["--limit", "1/min"]);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    for said in [
        "read       5 of 8 lines, 62.50%",
        "unread     3 lines, such as",
        "log:5: line of at most 1 MiB expected, got yyyyyyyyyyyyyyyyyyyy...",
        "log:7: client address expected, got torn",
        "requests   5 from 2 clients",
    ] {
        assert!(out.contains(said), "no {said:?} in\n{out}");
    }
    assert!(!out.contains('\u{1b}') && !out.contains('\0'), "{out:?}");
    let Run { code, out, .. } = replay(&log, &["--limit", "1/min", "--json", "--fail-if", "unparsed > 30%"]);
    let json: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, figures(&json, ["requests", "unparsed", "blank"])), (Some(3), [5, 3, 1]));
}

#[test]
fn a_log_may_be_compressed_and_come_from_standard_input() {
    let folder = folder("log", (0..2_000).map(|i| line(i % 7, i / 3, "/")).collect::<String>().as_bytes());
    let plain = report(&folder.path().join("log"), &["--limit", "20/min"]);
    assert_eq!(figures(&plain, ["requests", "clients"]), [2_000, 7]);
    for (program, ending) in [("gzip", "gz"), ("bzip2", "bz2"), ("zstd", "zst")] {
        // Two of them in one file, as `cat` makes it, and under a name that says nothing.
        let pack = format!(
            "head -n 500 log | {program} -c > packed && tail -n +501 log | {program} -c >> packed && test -s packed"
        );
        let packed = Command::new("sh").args(["-c", &pack]).current_dir(folder.path()).status().unwrap();
        assert!(packed.success(), "{program} is not there; `./test` installs it (.{ending})");
        let packed = report(&folder.path().join("packed"), &["--limit", "20/min"]);
        assert_eq!(figures(&packed, FIGURES), figures(&plain, FIGURES), "{program}");

        let mut child = command(&["replay", "-", "--limit", "20/min", "--json"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(&fs::read(folder.path().join("packed")).unwrap()).unwrap();
        let out: Value = serde_json::from_slice(&child.wait_with_output().unwrap().stdout).unwrap();
        assert_eq!(
            (figures(&out, FIGURES), &out["logs"][0]["log"]),
            (figures(&plain, FIGURES), &"standard input".into())
        );
    }
}

#[test]
fn a_compressed_log_that_breaks_off_is_reported_as_far_as_it_goes() {
    let folder = folder("log", (0..20_000).map(|i| line(i * 7 % 2_003, i / 50, "/")).collect::<String>().as_bytes());
    for program in ["gzip", "bzip2", "zstd"] {
        let cut = format!("{program} -c log > whole && head -c $(($(wc -c < whole) * 9 / 10)) whole > cut");
        assert!(Command::new("sh").args(["-c", &cut]).current_dir(folder.path()).status().unwrap().success());
        let Run { code, out, err } = run_in(folder.path(), &["replay", "cut", "--limit", "1/s"]);
        assert_eq!(code, Some(1), "{program}: {err}");
        if program == "zstd" {
            // What its decoder has not given out yet goes with the rest.
            assert!(err.starts_with("error: cut cannot be read: "), "{err}");
            continue;
        }
        assert!(err.starts_with("error: the answer is that of a part: cut breaks off after line "), "{program}: {err}");
        if program == "gzip" {
            assert!(out.contains("broken     cut breaks off after line 1"), "{out}");
            assert!(!out.contains("unread"), "the half of a line at the end is no line: {out}");
        }
    }
    fs::write(folder.path().join("cut"), [0x1f, 0x8b, 8]).unwrap();
    let Run { code, err, .. } = run_in(folder.path(), &["replay", "cut", "--limit", "1/s"]);
    assert!(code == Some(1) && err.starts_with("error: cut cannot be read: "), "{err}");
}

#[test]
fn the_log_of_the_proxy_itself_is_replayed() {
    for format in ["combined", "json"] {
        let folder = TempDir::new().unwrap();
        // Two workers could tell of two requests in another order than that in which they were decided.
        let flags = ["--workers", "1", "--limit", "5/h", "--access-log", "access.log", "--access-log-format", format];
        let mut proxy = Proxy::start_in(folder.path(), &flags);
        for _ in 0..8 {
            get_with(proxy.address, "/joke?a=b", &[("user-agent", "probe/1.0")]);
        }
        proxy.signal("TERM");
        assert!(proxy.ended().success());
        let replayed = report(&folder.path().join("access.log"), &["--limit", "5/h"]);
        assert_eq!(figures(&replayed, FIGURES), [8, 1, 3, 1], "{format}: {replayed}");
        assert_eq!(figures(&replayed["by_status"]["4xx"], ["requests", "denied"]), [3, 3], "{format}");
        assert_eq!(replayed["top_paths"][0]["path"], "/joke", "{format}");
    }
}

/// A log as large as one likes costs no more memory than its live keys.
#[test]
fn memory_is_bounded() {
    let (lines, clients) = if is_long() { (10_000_000, 200_000) } else { (400_000, 20_000) };
    const PER_S: u64 = 500;
    let probe = "import resource, subprocess, sys\n\
                 done = subprocess.run(sys.argv[1:])\n\
                 print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024, file=sys.stderr)\n\
                 sys.exit(done.returncode)\n";
    let mut child = Command::new("python3")
        .args(["-c", probe, env!("CARGO_BIN_EXE_tidegate"), "replay", "-", "--limit", "60/min", "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("python3 runs");
    let mut pipe = std::io::BufWriter::with_capacity(1 << 20, child.stdin.take().unwrap());
    for i in 0..lines {
        let (second, client) = (1_795_964_668 + i / PER_S, i.wrapping_mul(0x9e37_79b9_7f4a_7c15) % clients);
        // Every tenth path is asked for but once.
        let path = if i % 10 == 0 { i } else { i % 100 };
        writeln!(pipe, "{{\"ts\":{second},\"client_ip\":\"2001:db8:{:x}:{:x}::1\",\"method\":\"GET\",\"uri\":\"/{path}\",\"status\":200}}", client >> 16, client & 0xffff).unwrap();
    }
    drop(pipe);
    let output = child.wait_with_output().unwrap();
    let peak: u64 = String::from_utf8(output.stderr).unwrap().trim().parse().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(figures(&report, ["requests", "clients", "unparsed"]), [lines, clients, 0]);
    let bound = (64 << 20) + 64 * (120 * PER_S) + 200 * clients;
    assert!(peak < bound, "{peak} bytes of at most {bound}");
    println!("{lines} lines of {clients} clients: {peak} bytes of at most {bound}");
}
