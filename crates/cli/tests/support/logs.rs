//! Access logs for tests: a real one that lies beside the checkout, and such as are written for the purpose.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::program::{Run, run};

/// Names another place of the log.
const APACHE_LOGS: &str = "TIDEGATE_APACHE_LOGS";

/// A public log of 10,000 lines, which is no part of the project: `Common Data Formats/apache_logs` of elastic/examples.
pub(crate) fn apache_logs() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("crates/cli is two folders down");
    std::env::var_os(APACHE_LOGS).map_or_else(|| root.join("../shared/data/apache_logs"), PathBuf::from)
}

/// Is that log not there? Then it is said, past what captures the words of tests, and there is nothing to test.
pub(crate) fn real_log_is_absent() -> bool {
    let log = apache_logs();
    if !log.exists() {
        let _ = writeln!(std::io::stderr(), "not tested: {} is not there; {APACHE_LOGS} can name it", log.display());
    }
    !log.exists()
}

/// A line of the combined format: the client `10.0.A.B` of a number, so many seconds into a certain hour.
pub(crate) fn line(client: u32, second: u32, path: &str) -> String {
    let [_, _, a, b] = client.to_be_bytes();
    let (minute, second) = (second / 60 % 60, second % 60);
    format!(
        "10.0.{a}.{b} - - [29/Nov/2026:15:{minute:02}:{second:02} +0000] \"GET {path} HTTP/1.1\" 200 5 \"-\" \"-\"\n"
    )
}

/// The report of a replay with these arguments, which must succeed.
#[track_caller]
pub(crate) fn report(log: &Path, arguments: &[&str]) -> Value {
    let Run { code, out, err } = run(&[&["replay", log.to_str().unwrap(), "--json"], arguments].concat());
    assert_eq!((code, err.as_str()), (Some(0), ""), "{arguments:?}");
    serde_json::from_str(&out).unwrap()
}

/// Figures of a report.
#[track_caller]
pub(crate) fn figures<const N: usize>(report: &Value, names: [&str; N]) -> [u64; N] {
    names.map(|name| report[name].as_u64().unwrap_or_else(|| panic!("no {name} in {report}")))
}
