//! `tidegate replay` as its user meets it: a real log, limits compared, conditions, and what is printed and drawn.

mod files;
#[path = "../support/mod.rs"]
mod support;
mod times;

use std::fs;
use std::path::Path;

use serde_json::Value;
use support::logs::{apache_logs, figures, line, real_log_is_absent, report};
use support::program::{Run, run, run_in};
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
    if real_log_is_absent() {
        return;
    }
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
fn two_configurations_are_compared() {
    if real_log_is_absent() {
        return;
    }
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
fn what_only_the_response_tells_is_read_from_the_status() {
    // Ten log-ins, of which every other one fails; three failures an hour may be.
    let lines = (0..10).map(|i| line(1, i, "/login").replace(" 200 ", if i % 2 == 0 { " 401 " } else { " 200 " }));
    let folder = folder("log", lines.collect::<String>().as_bytes());
    let file = "[[policies]]\nname = \"log-in\"\nlimits = \"3/h\"\ncharge_for = [\"401\"]\n";
    fs::write(folder.path().join("limits.toml"), file).unwrap();
    let Run { out, .. } = run_in(folder.path(), &["replay", "log", "--config", "limits.toml", "--json"]);
    let json: Value = serde_json::from_str(&out).unwrap();
    // The third failure is the fifth request; behind it there is no room for any.
    assert_eq!(figures(&json, FIGURES), [10, 1, 5, 1]);
}

#[test]
fn what_a_log_cannot_show_is_said() {
    let file = "[[policies]]\nname = \"a\"\nkey = \"cookie:session\"\nlimits = \"3/h\"\n\
                penalty = { after = \"3/min\", hold = \"1h\" }\n";
    let folder = folder("log", line(1, 0, "/").as_bytes());
    fs::write(folder.path().join("limits.toml"), file).unwrap();
    let Run { code, out, err } = run_in(folder.path(), &["replay", "log", "--config", "limits.toml"]);
    assert_eq!(code, Some(0), "{err}");
    for said in ["no log tells the cookie session, so it counts as missing", "policy `a`: its penalty is left out"] {
        assert!(out.contains(said), "no {said:?} in\n{out}");
    }
}

#[test]
fn a_job_can_be_made_to_fail() {
    if real_log_is_absent() {
        return;
    }
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
    if real_log_is_absent() {
        return;
    }
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
fn the_clients_come_as_a_table() {
    if real_log_is_absent() {
        return;
    }
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
fn what_happened_over_time_is_drawn() {
    if real_log_is_absent() {
        return;
    }
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
