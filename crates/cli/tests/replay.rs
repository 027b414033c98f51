//! `tidegate replay` as its user meets it: a real log, limits compared, conditions, and files that are not as they
//! should be.

mod support;

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use support::logs::{apache_logs, figures, line, report};
use support::program::{Run, command, run, run_in};
use tempfile::TempDir;

const FIGURES: [&str; 4] = ["requests", "clients", "denied", "denied_clients"];

/// A folder with one file.
fn folder(name: &str, contents: &[u8]) -> TempDir {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join(name), contents).unwrap();
    folder
}

/// Runs a replay of one file of this content.
fn replay(contents: &[u8], arguments: &[&str]) -> Run {
    let folder = folder("log", contents);
    run_in(folder.path(), &[&["replay", "log"], arguments].concat())
}

#[test]
fn a_real_log_has_the_figures_that_are_known() {
    let log = apache_logs();
    let loose = report(&log, &["--limit", "60/min burst 20"]);
    assert_eq!(figures(&loose, FIGURES), [10_000, 1_753, 35, 1]);
    assert_eq!(figures(&loose, ["admitted", "unparsed", "late"]), [9_965, 0, 0]);
    let tight = report(&log, &["--limit", "10/min burst 5"]);
    assert_eq!(figures(&tight, FIGURES), [10_000, 1_753, 1_399, 74]);

    let Run { code, out, err } = run(&["replay", log.to_str().unwrap(), "--limit", "60/min burst 20"]);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    for said in [
        "format combined",
        "10,000 of 10,000 lines, 100%",
        "whole seconds; the requests of one second are spread over it evenly",
        "requests   10,000 from 1,753 clients",
        "denied     35, 0.350%, of 1 client, 0.057%",
        "75.97.9.59                                    273       35  2015-05-18 08:05, 108",
    ] {
        assert!(out.contains(said), "no {said:?} in\n{out}");
    }
    assert!(!out.contains('\u{1b}'), "colour where no terminal is");
}

#[test]
fn br_061_a_replayed_log_forgets_what_passed_a_period_ago() {
    let requests: String = [0, 4, 8, 9, 10, 13, 14].map(|second| line(1, second, "/")).concat();
    let folder = folder("log", requests.as_bytes());
    let denied = |arguments: &[&str]| figures(&report(&folder.path().join("log"), arguments), ["denied"])[0];
    // Those at 9 and 13 come a second early.
    assert_eq!(denied(&["--limit", "3/10s", "--algorithm", "sliding-log"]), 2);
    assert_eq!(denied(&["--limit", "3/10s", "--limit", "6/min", "--algorithm", "sliding-log"]), 2);
    assert_eq!(denied(&["--limit", "3/10s", "--limit", "4/min", "--algorithm", "sliding-log"]), 3);
}

#[test]
fn two_configurations_are_compared() {
    let log = apache_logs();
    let limits = ["--limit", "60/min burst 20", "--compare", "10/min burst 5"];
    let compared = report(&log, &limits);
    assert_eq!(figures(&compared, FIGURES), [10_000, 1_753, 35, 1]);
    let there =
        figures(&compared["comparison"], ["denied", "denied_clients", "newly_denied", "newly_admitted_clients"]);
    assert_eq!(there, [1_399, 74, 1_364, 0]);

    // The same from a file; and a file that is wrong is refused with its line.
    let folder = folder("tight.toml", b"[[policies]]\nname = \"tight\"\nlimits = \"10/min burst 5\"\n");
    let file = folder.path().join("tight.toml");
    let of_file = report(&log, &["--limit", "60/min burst 20", "--compare", file.to_str().unwrap()]);
    assert_eq!(of_file["comparison"]["newly_denied"], 1_364);
    assert_eq!(figures(&report(&log, &["--config", file.to_str().unwrap()]), FIGURES)[2], 1_399);
    fs::write(&file, "[[policies]]\nlimit = 5\n").unwrap();
    let Run { code, err, .. } = run(&["replay", log.to_str().unwrap(), "--config", file.to_str().unwrap()]);
    assert!(code == Some(2) && err.contains("tight.toml:2:1"), "{err}");
}

#[test]
fn a_job_can_be_made_to_fail() {
    let log = apache_logs();
    let replay =
        |limit: &str, fail_if: &str| run(&["replay", log.to_str().unwrap(), "--limit", limit, "--fail-if", fail_if]);
    for (limit, fail_if, code) in [
        ("60/min burst 20", "denied > 0.1%", 3),
        ("60/min burst 20", "denied > 0.35%", 0),
        ("60/min burst 20", "denied >= 0.35%", 3),
        ("60/min burst 20", "denied_clients > 1 or unparsed > 0", 0),
        ("10/min burst 5", "denied_clients > 1 and not (denied < 1000)", 3),
    ] {
        let Run { code: ended, out, err } = replay(limit, fail_if);
        assert_eq!(ended, Some(code), "{fail_if}: {err}");
        assert!(out.contains("requests   10,000"), "the report is printed all the same");
        assert_eq!(err.is_empty(), code == 0, "{err}");
    }
    assert_eq!(replay("1/s", "denied > 0").err, "error: --fail-if 'denied > 0' holds\n");
}

#[test]
fn what_is_looked_at_can_be_narrowed() {
    let log = apache_logs();
    let requests = |arguments: &[&str]| {
        figures(&report(&log, &[&["--limit", "1/s"], arguments].concat()), ["requests", "excluded"])
    };
    assert_eq!(requests(&["--where", "status >= 500"]), [3, 9_997]);
    assert_eq!(requests(&["--where", r#"path ~ "^/presentations/" and status = 200"#]).iter().sum::<u64>(), 10_000);
    let [before, _] = requests(&["--until", "2015-05-18"]);
    let [after, _] = requests(&["--since", "2015-05-18T00:00:00Z"]);
    assert!(before > 0 && before + after == 10_000);
    assert_eq!(requests(&["--since", "2015-05-18 02:00", "--tz", "+02:00"])[0], after);
}

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
fn br_184_a_slow_response_is_replayed_when_its_request_came() {
    let second = |minute: u32, second: u32| line(1, minute * 60 + second, "/");
    let folder = folder("log", [second(5, 24), second(0, 22), second(5, 25)].concat().as_bytes());
    let replay = |reorder: &str| {
        let limits = ["--limit", "1/min", "--reorder", reorder];
        let report = report(&folder.path().join("log"), &limits);
        figures(&report, ["requests", "denied", "late"])
    };
    // In the order of time allow, allow, deny; as they came, with the late one at the stream's time, allow, deny, deny.
    assert_eq!(replay("600"), [3, 1, 0]);
    assert_eq!(replay("1"), [3, 2, 1]);
}

#[test]
fn br_185_times_without_a_zone_are_taken_as_one_that_is_said() {
    let line =
        |time: &str| format!("192.0.2.1:1 [{time}] f b/s1 0/0/0/0/0 200 1 - - ---- 1/1/0/0/0 0/0 \"GET / HTTP/1.1\"\n");
    // The clock in Berlin is put back from 3:00 to 2:00, so that these two are a second apart.
    let log = line("25/Oct/2026:02:59:59.500") + &line("25/Oct/2026:02:00:00.500");
    let Run { out, .. } = replay(log.as_bytes(), &["--limit", "1/2s", "--tz", "Europe/Berlin", "--reorder", "7200"]);
    assert!(
        out.contains("denied     1, ") && out.contains("span       2026-10-25 00:59:59 to 2026-10-25 01:00:00"),
        "{out}"
    );
    assert!(
        out.contains("zone       times that name no zone are taken as Europe/Berlin (--tz names another)"),
        "{out}"
    );
    let Run { out, .. } = replay(log.as_bytes(), &["--limit", "1/2s"]);
    assert!(out.contains("are taken as UTC") && out.contains("late       1 line came later"), "{out}");
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
fn the_clients_come_as_a_table() {
    let log = apache_logs();
    let csv = run(&["replay", log.to_str().unwrap(), "--limit", "60/min burst 20", "--top", "2", "--csv"]).out;
    let lines: Vec<_> = csv.split("\r\n").collect();
    assert_eq!(lines[0], "client,requests,denied,busiest_minute_unix_s,in_busiest_minute");
    assert_eq!((lines[1], lines.len()), ("75.97.9.59,273,35,1431936300,108", 4));
}

#[test]
fn a_mistake_is_named_with_its_place() {
    let folder = folder("log", line(1, 0, "/").as_bytes());
    for (arguments, message) in [
        (&["--limit", "1/s", "--where", "statu > 5"][..], "column 1: there is no field `statu`; there are status,"),
        (
            &["--limit", "1/s", "--where", "status > x"],
            "column 10: expected a number, got `x`\n  status > x\n           ^",
        ),
        (&["--limit", "1/s", "--where", "path ~ '('"], "column 8: no regular expression"),
        (&["--limit", "1/s", "--fail-if", "denid > 1"], "column 1: there is no figure `denid`; there are lines,"),
        (&["--limit", "1/s", "--fail-if", "requests > 5%"], "column 12: `requests` is a whole itself"),
        (&["--limit", "1/s", "--since", "yesterday"], "--since: `yesterday` is no moment; expected one such as"),
        (&["--limit", "1/s", "--since", "2026-11-30", "--until", "2026-11-29"], "--until is not after --since"),
        (&["--limit", "1/s", "--format", "combine"], "there is no format `combine`; there are auto, caddy"),
        (&["--limit", "1/s", "--format", "$status"], "`$status` does not say when a request came"),
        (
            &["--limit", "1/s", "--tz", "Middle/Earth"],
            "expected UTC or a distance from it, such as +02:00, or the name of a zone",
        ),
        (&["--limit", "1/s", "--json", "--csv"], "'--json' cannot be used with '--csv'"),
        (&["--limit", "1/s", "--compare", "10/m"], "--compare '10/m' is neither a file nor a limit"),
        (&["--limit", "1/s", "--config", "x.toml"], "what is limited stands in the file alone"),
        (&["--config", "x.toml"], "x.toml"),
        (&["--limit", "1/s", "--reorder-lines", "0"], "--reorder-lines"),
        (&["--limit", "1/s", "--json", "--plot"], "--plot without a file draws in the terminal, where --json and"),
        (&["--limit", "1/s", "--plot", "log"], "--plot log: name it FILE.svg or FILE.png"),
        (&["--limit", "1/s", "--html", "log"], "--html log: name it FILE.html"),
        (&["--limit", "1/s", "log"], "log is named twice"),
        (&["--limit", "1/s", "-", "-"], "standard input, -, can be read but once"),
        (&[], "--limit <LIMIT>"),
    ] {
        let Run { code, out, err } = run_in(folder.path(), &[&["replay", "log"], arguments].concat());
        assert_eq!((code, out.as_str()), (Some(2), ""), "{arguments:?} said {err}");
        assert!(err.starts_with("error: ") && err.contains(message), "{arguments:?} said {err}");
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
fn logs_that_overlap_are_one_stream() {
    let folder = TempDir::new().unwrap();
    // Of three servers that run beside each other; the third rotated its log, and is named in the wrong order.
    let of = |server: u32, from: u32, to: u32| -> String {
        (from..to).map(|second| line(second % 5, second, &format!("/{server}"))).collect()
    };
    let logs = [("c2", of(3, 900, 1_800)), ("a", of(1, 0, 1_800)), ("b", of(2, 0, 1_800)), ("c1", of(3, 0, 900))];
    logs.iter().for_each(|(name, text)| fs::write(folder.path().join(name), text).unwrap());
    let names = logs.each_ref().map(|(name, _)| *name);
    let all = run_in(folder.path(), &[&["replay", "--json", "--limit", "20/min burst 5"], &names[..]].concat());
    let all: Value = serde_json::from_str(&all.out).unwrap();
    assert_eq!((figures(&all, ["requests", "late"]), all["logs"].as_array().unwrap().len()), ([5_400, 0], 4));

    // The same in one file, in the order of time.
    let one: String = (0..1_800).flat_map(|second| [1, 2, 3].map(|_| line(second % 5, second, "/"))).collect();
    let one: Value =
        serde_json::from_str(&replay(one.as_bytes(), &["--json", "--limit", "20/min burst 5"]).out).unwrap();
    assert_eq!(figures(&all, FIGURES), figures(&one, FIGURES));
    assert!(figures(&one, ["denied"]) > [1_000]);
}

#[test]
fn the_log_of_the_proxy_itself_is_replayed() {
    use support::http::get_with;
    use support::program::Proxy;

    for format in ["combined", "json"] {
        let folder = TempDir::new().unwrap();
        let flags = ["--limit", "5/h", "--access-log", "access.log", "--access-log-format", format];
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

#[test]
fn what_happened_over_time_is_drawn() {
    let folder = TempDir::new().unwrap();
    let log = apache_logs();
    let replay = |more: &[&str]| {
        let limits = ["replay", log.to_str().unwrap(), "--limit", "60/min burst 20", "--compare", "10/min burst 5"];
        let Run { code, out, err } = run_in(folder.path(), &[&limits[..], more].concat());
        assert_eq!((code, err.as_str()), (Some(0), ""), "{more:?}");
        out
    };
    assert!(replay(&["--plot"]).contains("60/min burst 20  9,965 admitted, 35 denied, of 1 client\n"));
    replay(&["--html", "report.html", "--plot", "report.svg"]);
    replay(&["--plot", "report.png"]);
    let read = |name: &str| fs::read(folder.path().join(name)).unwrap();
    assert!(read("report.png").starts_with(b"\x89PNG"));
    let svg = String::from_utf8(read("report.svg")).unwrap();
    for said in ["10,000 requests of 1,753 clients", "2015-05-18", ">8,601 admitted, 1,399 denied, of 74 clients<"] {
        assert!(svg.contains(said), "no {said:?} in\n{svg}");
    }

    // The page holds the report, and asks for nothing from anywhere.
    let html = String::from_utf8(read("report.html")).unwrap();
    let json = html.split_once("id=\"report\">").unwrap().1.split_once("</script>").unwrap().0;
    let json: Value = serde_json::from_str(json).unwrap();
    assert_eq!(figures(&json, FIGURES), [10_000, 1_753, 35, 1]);
    assert_eq!(
        json["timeline"]["denied_there"].as_array().unwrap().iter().filter_map(Value::as_u64).sum::<u64>(),
        1_399
    );
    assert!(html.contains("default-src 'none'"));
    let page = html.replace(&json.to_string(), "").replace("http://www.w3.org/2000/svg", "");
    assert!(!page.contains("src=") && !page.contains("href=") && !page.contains("://"), "{page}");
}

/// A log as large as one likes costs no more memory than its live keys.
#[test]
fn memory_is_bounded() {
    let long = support::is_long();
    let (lines, clients) = if long { (10_000_000, 200_000) } else { (400_000, 20_000) };
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

/// Several people's scripts read this; its names stay.
#[test]
fn the_names_in_json_stay() {
    let folder = folder("log", line(1, 0, "/").as_bytes());
    let json = report(&folder.path().join("log"), &["--limit", "1/s"]);
    let names: Vec<_> = json.as_object().unwrap().keys().cloned().collect();
    assert_eq!(
        names.join(" "),
        "admitted assumed_zone blank broken by_status clients denied denied_clients excluded first_unix_s has_whole_stamps \
         last_unix_s late least_left limits lines logs requests timeline top_clients top_paths unparsed \
         unparsed_examples unseen"
    );
    assert!(Path::new(json["logs"][0]["log"].as_str().unwrap()).ends_with("log"));
}
