//! A real Prometheus scrapes a run under load, and what it has counted is what the callers saw.

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use self::support::PATIENCE;
use self::support::free_address;
use self::support::http::{Connection, get};
use self::support::program::Proxy;
use self::support::redis::Redis;
use self::support::upstream::{Upstream, head};

const MISSING: &str = "install the Debian package `prometheus`; ./test does";

const POLICIES: &str = r#"
[[policies]]
name = "by-key"
key = "header:x-api-key"
on_missing = "skip"

[[policies.limits]]
name = "hour"
limit = "100/h"

[[policies.limits]]
name = "trial"
limit = "40/h"
mode = "shadow"
"#;

/// Callers at once, requests of each, and what each may send in an hour.
const CALLERS: u64 = 4;
const REQUESTS: u64 = 150;
const BURST: u64 = 100;
const TRIAL: u64 = 40;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_path_buf()
}

/// A server of its own folder, ended with the test.
struct Prometheus {
    child: Child,
    address: SocketAddr,
    _folder: TempDir,
}

impl Prometheus {
    fn scraping(admin: SocketAddr) -> Self {
        let (folder, address) = (TempDir::new().unwrap(), free_address());
        let rules = repository().join("deploy/prometheus/alerts.yml");
        let config = format!(
            "global: {{ scrape_interval: 1s, scrape_timeout: 1s }}\nrule_files: [{}]\n\
             scrape_configs: [{{ job_name: tidegate, static_configs: [{{ targets: ['{admin}'] }}] }}]\n",
            rules.display()
        );
        fs::write(folder.path().join("prometheus.yml"), config).unwrap();
        let child = Command::new("prometheus")
            .current_dir(folder.path())
            .args(["--config.file=prometheus.yml", "--storage.tsdb.path=data", "--log.level=error"])
            .arg(format!("--web.listen-address={address}"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("prometheus: {error}; {MISSING}"));
        let server = Self { child, address, _folder: folder };
        let since = Instant::now();
        while std::net::TcpStream::connect(address).is_err() || get(address, "/-/ready").status != 200 {
            assert!(since.elapsed() < PATIENCE, "prometheus does not start");
            thread::sleep(Duration::from_millis(50));
        }
        server
    }

    /// The samples of an expression now: labels, and value.
    fn query(&self, expression: &str) -> Vec<(Value, u64)> {
        let escaped: String = expression.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let answer = get(self.address, &format!("/api/v1/query?query={escaped}")).json();
        let samples = answer["data"]["result"].as_array().unwrap_or_else(|| panic!("{answer}")).iter();
        let value = |sample: &Value| sample["value"][1].as_str().unwrap().parse::<f64>().unwrap() as u64;
        samples.map(|sample| (sample["metric"].clone(), value(sample))).collect()
    }

    fn sum(&self, expression: &str) -> u64 {
        self.query(expression).iter().map(|(_, value)| value).sum()
    }

    /// Waits until the expression has this sum.
    fn wait_for(&self, expression: &str, expected: u64) {
        let since = Instant::now();
        while self.sum(expression) != expected {
            assert!(since.elapsed() < PATIENCE, "{expression} is {:?}, not {expected}", self.query(expression));
            thread::sleep(Duration::from_millis(100));
        }
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn upstream() -> Upstream {
    Upstream::start(|socket| {
        let mut connection = Connection::over(socket);
        while head(&mut connection).is_some() {
            connection.send(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").unwrap();
        }
    })
}

fn proxy(folder: &TempDir, flags: &[&str]) -> Proxy {
    fs::write(folder.path().join("tidegate.toml"), POLICIES).unwrap();
    let all = [&["--config", "tidegate.toml", "--access-log", "access.log"], flags].concat();
    Proxy::start_in(folder.path(), &all)
}

/// What the callers were answered, by status.
fn load(address: SocketAddr) -> BTreeMap<u16, u64> {
    let mut seen = BTreeMap::new();
    let callers: Vec<_> = (0..CALLERS)
        .map(|caller| {
            thread::spawn(move || {
                let (mut connection, key) = (Connection::open(address), format!("caller-{caller}"));
                let ask = |_| connection.ask("GET", "/", &[("x-api-key", &key)]).status;
                (0..REQUESTS).map(ask).collect::<Vec<_>>()
            })
        })
        .collect();
    for status in callers.into_iter().flat_map(|caller| caller.join().unwrap()) {
        *seen.entry(status).or_default() += 1;
    }
    seen
}

#[test]
fn what_prometheus_has_counted_is_what_the_callers_saw() {
    let (upstream, folder) = (upstream(), TempDir::new().unwrap());
    let proxy = proxy(&folder, &["--upstream", &upstream.url()]);
    let prometheus = Prometheus::scraping(proxy.admin_address());
    let seen = load(proxy.address);
    assert_eq!(seen, BTreeMap::from([(200, CALLERS * BURST), (429, CALLERS * (REQUESTS - BURST))]));
    // Without a key nothing is charged.
    assert_eq!(get(proxy.address, "/").status, 200);
    let all = CALLERS * REQUESTS + 1;
    prometheus.wait_for("tidegate_responses_total", all);
    for (expression, expected) in [
        ("tidegate_responses_total{code=\"200\"}", seen[&200] + 1),
        ("tidegate_responses_total{code=\"429\"}", seen[&429]),
        ("tidegate_requests_total", all),
        ("tidegate_requests_total{decision=\"allowed\"}", CALLERS * TRIAL),
        ("tidegate_requests_total{decision=\"shadow-denied\"}", CALLERS * (BURST - TRIAL)),
        ("tidegate_requests_total{decision=\"denied\"}", seen[&429]),
        ("tidegate_requests_total{decision=\"free\"}", 1),
        ("tidegate_decisions_total{limit=\"hour\",outcome=\"allowed\"}", seen[&200]),
        ("tidegate_decisions_total{limit=\"hour\",outcome=\"denied\"}", seen[&429]),
        ("tidegate_decisions_total{limit=\"trial\",outcome=\"allowed\"}", CALLERS * TRIAL),
        // The last nine of a hundred leave less than ten, and so does the last one.
        ("tidegate_near_limit_total{limit=\"hour\"}", CALLERS * 10),
        ("tidegate_upstream_responses_total{class=\"2xx\"}", seen[&200] + 1),
        ("tidegate_decision_seconds_count", all),
        ("tidegate_keys", CALLERS * 2),
        ("tidegate_connections_accepted_total", CALLERS + 1),
        ("up", 1),
    ] {
        prometheus.wait_for(expression, expected);
    }
    prometheus.wait_for("tidegate_access_log_lines_total{result=\"written\"}", all);
    assert_eq!(fs::read_to_string(folder.path().join("access.log")).unwrap().lines().count() as u64, all);
}

/// Runs promtool in the folder of the rules.
fn promtool(arguments: &[&str], input: &str) -> (bool, String) {
    let mut child = Command::new("promtool")
        .args(arguments)
        .current_dir(repository().join("deploy/prometheus"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("promtool: {error}; {MISSING}"));
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    (
        output.status.success(),
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr)),
    )
}

#[test]
fn promtool_takes_the_metrics_the_rules_and_what_the_rules_are_to_do() {
    let folder = TempDir::new().unwrap();
    let proxy = proxy(&folder, &[]);
    load(proxy.address);
    assert_eq!(promtool(&["check", "metrics"], &proxy.metrics().0), (true, String::new()));
    for arguments in [["check", "rules", "alerts.yml"], ["test", "rules", "alerts.test.yml"]] {
        let (is_fine, said) = promtool(&arguments, "");
        assert!(is_fine && said.contains("SUCCESS"), "{said}");
    }
}

/// The names of series that stand in a text.
fn names_in(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("tidegate_")).map(str::to_owned).collect()
}

/// The names of series, and of metrics, that a proxy shows whose buckets are here, and one whose are elsewhere. The first has a
/// certificate.
fn shown() -> (BTreeSet<String>, BTreeSet<String>) {
    let (folder, redis) = (TempDir::new().unwrap(), Redis::start(&[]));
    let (mut series, mut metrics) = (BTreeSet::new(), BTreeSet::new());
    // A family without any series is not shown, so there has to be a certificate whose end can be told.
    let own = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    fs::write(folder.path().join("cert.pem"), own.cert.pem()).unwrap();
    fs::write(folder.path().join("key.pem"), own.signing_key.serialize_pem()).unwrap();
    let tls = vec!["--tls-cert", "cert.pem", "--tls-key", "key.pem"];
    for flags in [tls, vec!["--store", redis.url().as_str()]] {
        let scrape = proxy(&folder, &flags).metrics();
        series.extend(scrape.series().iter().map(|series| series.split('{').next().unwrap().to_owned()));
        let types = scrape.0.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next());
        metrics.extend(types.map(str::to_owned));
    }
    (series, metrics)
}

#[test]
fn dashboard_alerts_and_documentation_speak_of_what_is_there() {
    let (series, metrics) = shown();
    // A metric can be there without a series.
    let known: BTreeSet<_> = series.union(&metrics).cloned().collect();
    let file = |path: &str| fs::read_to_string(repository().join(path)).unwrap();
    for path in ["deploy/grafana/tidegate.json", "deploy/prometheus/alerts.yml", "deploy/prometheus/alerts.test.yml"] {
        let named = names_in(&file(path));
        assert!(named.len() > 5, "{path} names {named:?}");
        assert!(named.is_subset(&known), "{path} names what is not there: {:?}", named.difference(&known));
    }
    let documented = file("docs/observability.md");
    let rows = documented.lines().filter_map(|line| line.strip_prefix("| `tidegate_")?.split(['`', '{']).next());
    let rows: BTreeSet<_> = rows.map(|name| format!("tidegate_{name}")).collect();
    assert_eq!(rows, metrics, "the table of docs/observability.md has each metric, and no other");
}

#[test]
fn the_dashboard_asks_for_its_data_source() {
    let text = fs::read_to_string(repository().join("deploy/grafana/tidegate.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&text).unwrap();
    let variables: Vec<_> = dashboard["templating"]["list"].as_array().unwrap().iter().collect();
    assert_eq!(
        (&variables[0]["name"], &variables[0]["type"]),
        (&Value::from("datasource"), &Value::from("datasource"))
    );
    let mut ids = BTreeSet::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "two panels of one number: {panel}");
        for target in panel["targets"].as_array().into_iter().flatten() {
            assert_eq!(target["datasource"]["uid"], "${datasource}", "{target}");
        }
    }
    assert!(ids.len() > 15);
}
