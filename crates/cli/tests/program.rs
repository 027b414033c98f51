//! The program as its user meets it: help, messages, exit codes, and what it leaves alone.

mod support;

use std::fs;
use std::io::Read as _;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};

use support::program::{Proxy, Run, command, run};

/// Set it to write the snapshots anew instead of comparing with them.
const UPDATE: &str = "TIDEGATE_UPDATE_SNAPSHOTS";

/// Compares a text with the file of this name under `tests/snapshots`.
#[track_caller]
fn check_snapshot(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join("snapshots").join(name);
    if std::env::var_os(UPDATE).is_some() {
        fs::write(&path, text).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{error}; set {UPDATE}=1 to write {name}"));
    assert_eq!(text, expected, "{name} has changed; if that was meant, set {UPDATE}=1");
}

/// Runs what must succeed, and returns what it printed.
#[track_caller]
fn answer(arguments: &[&str]) -> String {
    let Run { code, out, err } = run(arguments);
    assert_eq!((code, err.as_str()), (Some(0), ""), "{arguments:?}");
    out
}

/// Runs what must be refused with exit code 2, and expects this on standard error and nothing as an answer.
#[track_caller]
fn check_refused(arguments: &[&str], message: &str) {
    let Run { code, out, err } = run(arguments);
    assert_eq!((code, out.as_str()), (Some(2), ""), "{arguments:?} said {err}");
    assert!(err.starts_with("error: ") && err.contains(message), "{arguments:?} said {err}");
}

#[test]
fn help_is_what_it_was() {
    check_snapshot("help.txt", &answer(&["--help"]));
    assert_eq!(answer(&["-h"]), answer(&["help"]));
    for name in
        ["proxy", "serve", "explain", "check", "simulate", "replay", "tune", "load", "audit", "completions", "man"]
    {
        check_snapshot(&format!("help-{name}.txt"), &answer(&[name, "--help"]));
        assert_eq!(answer(&[name, "--help"]), answer(&["help", name]));
    }
    check_snapshot("help-proxy-short.txt", &answer(&["proxy", "-h"]));
}

#[test]
fn explain_is_what_it_was() {
    let limits = ["60/min burst 10", "3/min", "10/15min", "500/s", "7/day", "0/min", "unlimited"];
    check_snapshot("explain.txt", &limits.map(|limit| answer(&["explain", limit])).join("\n"));
    check_snapshot("explain-json.txt", &limits.map(|limit| answer(&["explain", "--json", limit])).concat());
    let window = ["explain", "59/min", "--algorithm", "fixed-window"];
    check_snapshot("explain-fixed-window.txt", &answer(&window));
    let leased = ["explain", "60/min burst 10", "--leased", "5", "--nodes", "3"];
    check_snapshot("explain-leased.txt", &answer(&leased));
}

#[test]
fn explain_says_what_is_never_exceeded() {
    let words = answer(&["explain", "60/min burst 10"]);
    assert!(words.contains("11 in any second, 70 in any minute, 3,610 in any hour"), "{words}");
    let json: serde_json::Value = serde_json::from_str(&answer(&["explain", "60/min burst 10", "--json"])).unwrap();
    let most: Vec<_> = json["never_exceeded"].as_array().unwrap().iter().map(|case| case["most"].as_u64()).collect();
    assert_eq!(most, [Some(11), Some(70), Some(3_610)]);
    assert_eq!(
        (&json["count"], &json["burst"], &json["period_ns"]),
        (&60.into(), &10.into(), &60_000_000_000_u64.into())
    );
}

#[test]
fn version() {
    assert_eq!(answer(&["--version"]), format!("tidegate {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn without_a_command_it_says_how_it_is_called() {
    let Run { code, out, err } = run::<&str>(&[]);
    assert_eq!((code, out.as_str()), (Some(2), ""));
    assert_eq!(err, answer(&["--help"]));
    check_refused(&["proxi"], "similar subcommand exists: 'proxy'");
    check_refused(&["proxy"], "--limit <LIMIT>");
    check_refused(&["explain", "1/s", "--jsn"], "similar argument exists: '--json'");
}

#[test]
fn a_wrong_flag_is_refused_with_what_was_likely_meant() {
    for (flags, message) in [
        (["--limit", "100"], "write `100/s` or `100/min`"),
        (["--limit", "-5/s"], "a limit has no signs; write `0/min` to block"),
        (["--limit", ""], "the limit is empty; write one such as `60/min`, `0/min` to block, or `unlimited`"),
        (["--key", "header:"], "`header:`: the name is empty"),
        (["--key", "header"], "write `header:NAME`"),
        (
            ["--key", "foo"],
            "expected `client`, `header:NAME`, `cookie:NAME`, `segment:NUMBER`, `claim:NAME` or `global`",
        ),
        (["--key", "x-api-key"], "did you mean `header:x-api-key`?"),
        (["--trust", "10.0.0.1/8"], "did you mean `10.0.0.0/8`, or the address `10.0.0.1`?"),
        (["--trust", "10.0.0.0"], "did you mean `10.0.0.0/8`"),
        (["--upstream", "ftp://x"], "an upstream over `ftp` is not supported; use `http`, `https`, `h2c` or"),
        (["--upstream", "a.org:80/=http://x"], "`a.org:80` is more than a host; did you mean `a.org`?"),
        (["--upstream", "/a*=http://x"], "`/a*` is no plain path"),
        (["--upstream-host", "x"], "expected `client` or `upstream`"),
        (["--stream-timeout", "0"], "expected a whole number of seconds from 1 to 604800"),
        (["--upstream", "127.0.0.1:9000"], "write it like `http://127.0.0.1:9000`"),
        (["--algorithm", "x"], "[possible values: token-bucket, fixed-window, sliding-counter, sliding-log]"),
        (["--at-bound", "x"], "[possible values: displace, deny, pool]"),
        (["--admin", "0.0.0.0:9464"], "without a token it asks nobody who they are; add --admin-token-file"),
        (["--admin", "no"], "expected an address with a port, such as 127.0.0.1:9464, or off"),
        (["--workers", "0"], "expected a whole number from 1 to 1024"),
        (["--max-keys", "0"], "expected a whole number from 1 to 4294967296"),
        (["--listen", "localhost"], "expected an address with a port, such as 127.0.0.1:8080"),
        (["--listen", ":8080"], "expected an address with a port, such as 127.0.0.1:8080"),
        (["--headers", "draft-9"], "expected one of `draft-10`"),
        (["--client-from", "x forwarded"], "cannot stand in a name"),
        (["--upstream-timeout", "0"], "expected a whole number of seconds from 1 to 86400"),
    ] {
        check_refused(&[&["proxy", "--limit", "3/min"], flags.as_slice()].concat(), message);
    }
}

#[test]
fn flags_that_contradict_each_other_are_refused() {
    let burst = ["proxy", "--limit", "60/min burst 10", "--algorithm", "fixed-window"];
    check_refused(&burst, "leave the burst out, or use token-bucket");
    check_refused(&["explain", burst[2], burst[3], burst[4]], "leave the burst out, or use token-bucket");
    let many: Vec<_> = ["proxy"].into_iter().chain(["--limit", "1/s"].repeat(17)).collect();
    check_refused(&many, "17 limits apply to one request; the maximum is 16");
}

#[test]
fn br_041_zero_blocks_unlimited_allows_and_nothing_else_says_either() {
    assert!(answer(&["explain", "0/min"]).contains("blocked"));
    assert!(answer(&["explain", "unlimited"]).contains("everything passes"));
    for text in ["0", "null", ""] {
        check_refused(&["explain", text], "`0/min`");
        check_refused(&["explain", text], "`unlimited`");
    }
    check_refused(&["explain"], "<LIMIT>");
    check_refused(&["proxy"], "--limit <LIMIT>");
}

#[test]
fn br_165_m_is_neither_a_minute_nor_a_month() {
    for text in ["1/1m", "1/1 m", "1/1M", "1/1m30s", "5/m"] {
        check_refused(&["explain", text], "`m` could be a minute or a month; write `");
    }
    let period_s = |text: &str| {
        let json: serde_json::Value = serde_json::from_str(&answer(&["explain", "--json", text])).unwrap();
        json["period_ns"].as_u64().unwrap() / 1_000_000_000
    };
    for (unit, expected) in
        [("1min", 60), ("1day", 86_400), ("1d", 86_400), ("1week", 604_800), ("1w", 604_800), ("1mo", 2_592_000)]
    {
        assert_eq!(period_s(&format!("1/{unit}")), expected, "{unit}");
    }
    assert_eq!((period_s("1/1month"), period_s("1/1year")), (2_592_000, 31_536_000));
    check_refused(&["explain", "1/1.5h"], "the same period is `1/90min`");
    check_refused(&["explain", "1/90"], "the period has no unit; write `1/90s` or `1/90min`");
    check_refused(&["explain", "1/-1s"], "no signs");
    check_refused(&["explain", "1/0s"], "the period is 0");
}

#[test]
fn br_167_a_limit_without_a_period_is_never_silent() {
    for (text, message) in [
        ("100", "write `100/s` or `100/min`"),
        ("100 burst 50", "write `100/s burst 50` or `100/min burst 50`"),
        ("100/ burst 50", "write `100/s burst 50` or `100/min burst 50`"),
        ("100/10 burst 50", "write `100/10s burst 50` or `100/10min burst 50`"),
        ("", "the limit is empty"),
    ] {
        check_refused(&["proxy", "--limit", text], message);
    }
}

#[test]
fn br_170_numbers_by_position_need_their_unit() {
    for (text, message) in [
        ("5/60", "write `5/60s` or `5/60min`"),
        ("5 per 60", "write `5/60s` or `5/60min`"),
        ("10s", "there is a period but no count; write `1/10s`"),
        ("5/m", "write `5/min` or `5/month`"),
        ("1 per 10s", "write the period after a slash: `1/10s`"),
    ] {
        check_refused(&["explain", text], message);
    }
    assert!(answer(&["explain", "5/60s"]).starts_with("5/min "));
    assert!(answer(&["explain", "10/s"]).starts_with("10/s "));
}

#[test]
fn a_taken_port_is_a_failure_that_says_what_to_do() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let Run { code, err, .. } = run(&["proxy", "--limit", "3/min", "--admin", "off", "--listen", &address]);
    assert_eq!(code, Some(1));
    assert!(err.contains(&address) && err.contains("try --listen") && err.contains("in use"), "{err}");
    let Run { code, err, .. } = run(&["proxy", "--limit", "3/min", "--listen", "127.0.0.1:0", "--admin", &address]);
    assert_eq!(code, Some(1));
    assert!(err.contains(&address) && err.contains("--admin off"), "{err}");
}

#[test]
fn the_first_lines_say_what_is_limited_and_how_to_try_it() {
    let proxy = Proxy::start(&["--limit", "3/min", "--limit", "100/day", "--key", "global", "--shadow"]);
    let said = proxy.said();
    for part in [
        &format!("on http://{}\n", proxy.address),
        "joke of the day",
        "key        global; in shadow, so nothing is denied\n",
        "limit-1    3/min  (token-bucket)\n",
        "limit-2    100/day  (token-bucket)\n",
        "never exceeded 3 in any second, 6 in any minute",
        &format!("curl -i http://{}/\n", proxy.address),
    ] {
        assert!(said.contains(part), "no {part:?} in\n{said}");
    }
}

#[test]
fn a_key_that_callers_make_up_and_trust_in_everybody_are_warned_of() {
    let proxy = Proxy::start(&["--limit", "3/min", "--key", "header:x-api-key", "--trust", "*"]);
    proxy.wait_for("warning: everybody is trusted");
    proxy.wait_for("put a limit by client beside it");
}

#[test]
fn completions_are_scripts_of_their_shells() {
    for (shell, sign) in [
        ("bash", "complete -F _tidegate"),
        ("zsh", "#compdef tidegate"),
        ("fish", "complete -c tidegate"),
        ("elvish", "edit:completion:arg-completer[tidegate]"),
        ("powershell", "Register-ArgumentCompleter"),
    ] {
        let script = answer(&["completions", shell]);
        assert!(script.contains(sign) && script.contains("upstream-timeout"), "{script}");
        check_parses(shell, &script);
    }
    check_refused(&["completions", "tcsh"], "[possible values: bash, elvish, fish, powershell, zsh]");
}

/// Has the shell read the script without running it, if that shell is there.
fn check_parses(shell: &str, script: &str) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("script");
    fs::write(&file, script).unwrap();
    if let Ok(read) = Command::new(shell).arg("-n").arg(&file).output() {
        assert!(read.status.success(), "{shell}: {}", String::from_utf8_lossy(&read.stderr));
    }
}

#[test]
fn the_manual_has_a_page_for_each_command() {
    let pages = answer(&["man"]);
    for name in ["tidegate", "tidegate-proxy", "tidegate-explain", "tidegate-completions", "tidegate-man"] {
        assert!(pages.lines().any(|line| line.starts_with(&format!(".TH {name} 1"))), "{name}");
    }
    // What stands at the start of a line is a request that roff knows, or an escape of it.
    let known = [".ie", ".el", ".TH", ".SH", ".SS", ".TP", ".PP", ".RS", ".RE", ".br", ".sp", ".IP", ".nf", ".fi"];
    let requests = pages.lines().filter(|line| line.starts_with('.'));
    requests.for_each(|line| assert!(known.contains(&line.split(' ').next().unwrap()), "{line}"));
}

#[test]
fn without_a_terminal_nothing_is_coloured() {
    let is_plain = |run: &Run| !run.out.contains('\u{1b}') && !run.err.contains('\u{1b}');
    for arguments in [&["--help"][..], &["explain", "3/min"], &["explain", "x"], &["completions", "bash"]] {
        assert!(is_plain(&run(arguments)), "{arguments:?}");
    }
    let forced = command(&["explain", "x"]).env("CLICOLOR_FORCE", "1").output().unwrap();
    assert!(forced.stderr.contains(&0x1b), "colour is there to be left out");
    let both = command(&["explain", "x"]).env("CLICOLOR_FORCE", "1").env("NO_COLOR", "1").output().unwrap();
    let proxy = Proxy::start(&["--limit", "3/min"]);
    assert!(!proxy.said().contains('\u{1b}'));
    assert!(!both.stderr.contains(&0x1b), "{}", String::from_utf8_lossy(&both.stderr));
}

#[test]
fn a_reader_that_stops_early_is_no_failure() {
    for arguments in [&["man"][..], &["completions", "zsh"], &["explain", "3/min"], &["explain", "3/min", "--json"]] {
        let mut child = command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let mut err = String::new();
        child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        assert_eq!((child.wait().unwrap().code(), err.as_str()), (Some(0), ""), "{arguments:?}");
    }
}

#[test]
fn an_answer_that_cannot_be_written_is_a_failure() {
    let Ok(full) = fs::OpenOptions::new().write(true).open("/dev/full") else { return };
    let failed = command(&["explain", "3/min"]).stdout(full).output().unwrap();
    assert_eq!(failed.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&failed.stderr).starts_with("error: cannot print the answer: "));
}

#[test]
fn nothing_is_written_into_the_folder_it_runs_in() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in [&["--help"][..], &["explain", "3/min"], &["man"], &["completions", "bash"], &["proxy"]] {
        command(arguments).current_dir(&folder).output().unwrap();
    }
    let mut proxy = Proxy::start_in(folder.path(), &["--limit", "1/min"]);
    let statuses = [(); 2].map(|()| support::http::get(proxy.address, "/").status);
    proxy.signal("TERM");
    assert_eq!((statuses, proxy.ended().code()), ([200, 429], Some(0)));
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
}
