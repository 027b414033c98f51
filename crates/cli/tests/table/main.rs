//! One file with five policies, in front of a real nginx: everybody together, each client, each API key with its plan,
//! log-ins that fail, and a dear route. A table of requests says what each is answered, and `tidegate check` says of
//! each which limits apply.

#[path = "../support/mod.rs"]
mod support;

use std::collections::BTreeMap;

use support::http::{Connection, Reply};
use support::nginx::Nginx;
use support::program::{Proxy, Run, run};
use support::redis::Redis;

const TABLE: &str = include_str!("requests.txt");
const CONFIG: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/table/tidegate.toml");
const LOCATIONS: &str = r#"
        location = /login/wrong { return 401 "no\n"; }
        location = /login/broken { return 500 "broken\n"; }
        location = /missing { return 404 "nothing\n"; }
        location / { return 200 "ok\n"; }
"#;
/// The type of a problem that a penalty made.
const HELD: &str = "https://iana.org/assignments/http-problem-types#abnormal-usage-detected";

/// What is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Request {
    client: &'static str,
    method: &'static str,
    path: &'static str,
    key: &'static str,
}

/// A line of the table.
#[derive(Clone, Copy, Debug)]
struct Row {
    request: Request,
    /// The status that the upstream answers with; `-` if it is not to be asked.
    upstream: &'static str,
    answer: &'static str,
    /// The limit that binds, and what is left under it.
    binding: Option<(&'static str, u64)>,
}

fn table() -> Vec<Row> {
    let lines = TABLE.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    let row = |line: &'static str| match line.split_whitespace().collect::<Vec<_>>()[..] {
        [client, method, path, key, upstream, answer, limit, left] => Row {
            request: Request { client, method, path, key },
            upstream,
            answer,
            binding: (limit != "-").then(|| (limit, left.parse().unwrap())),
        },
        _ => panic!("a row has eight words: {line}"),
    };
    lines.map(row).collect()
}

impl Request {
    fn fields(&self) -> Vec<(&'static str, &'static str)> {
        let key = (self.key != "-").then_some(("x-api-key", self.key));
        [("x-forwarded-for", self.client)].into_iter().chain(key).collect()
    }

    /// The limits that apply, as `tidegate check` says: `policy/limit` and how much it allows at once.
    fn checked(&self) -> BTreeMap<String, u64> {
        let fields = self.fields().into_iter().map(|(name, value)| format!("{name}: {value}"));
        let fields = fields.flat_map(|field| ["--header".to_owned(), field]);
        let line = format!("{} {}", self.method, self.path);
        let fixed = ["check", "--config", CONFIG, "--client", "127.0.0.1", "--request", &line].map(str::to_owned);
        let Run { code, out, err } = run(&fixed.into_iter().chain(fields).collect::<Vec<_>>());
        assert_eq!(code, Some(0), "{err}");
        // A paragraph for each policy: its name, and what it does.
        let applying = out.split("\n\n").filter_map(|paragraph| {
            let (policy, rest) = paragraph.split_once('\n')?;
            let limit = rest.lines().find_map(|line| line.trim().strip_prefix("limit-1 "))?;
            let most = limit.trim().split('/').next()?.parse().unwrap();
            rest.contains("  applies ").then(|| (format!("{policy}/limit-1"), most))
        });
        applying.collect()
    }
}

/// The parameter of this name of a list's items, by the items' names.
fn parameters(reply: &Reply, field: &str, name: &str) -> BTreeMap<String, u64> {
    let items = reply.field(field).into_iter().flat_map(|list| list.split(", "));
    let parameter = |item: &str| {
        let (limit, rest) = item.split_once(';')?;
        let value = rest.split(';').find_map(|part| part.strip_prefix(name)?.strip_prefix('='))?;
        Some((limit.trim_matches('"').to_owned(), value.parse().unwrap()))
    };
    items.filter_map(parameter).collect()
}

/// What came back, in the words of the table.
fn answered(reply: &Reply) -> String {
    match reply.status {
        429 if reply.json()["type"] == HELD => "held".to_owned(),
        status => status.to_string(),
    }
}

fn walk(store: &[&str]) {
    let nginx = Nginx::serving(LOCATIONS);
    let url = nginx.url();
    let proxy = Proxy::start(&[&["--config", CONFIG, "--upstream", &url], store].concat());
    let mut connection = Connection::open(proxy.address);
    let mut checked = BTreeMap::new();
    let table = table();
    assert!(table.len() >= 100, "{} rows", table.len());
    for (i, row) in table.iter().enumerate() {
        let request = row.request;
        let reply = connection.ask(request.method, request.path, &request.fields());
        let binding = parameters(&reply, "ratelimit", "r").into_iter().next();
        let expected = (row.answer.to_owned(), row.binding.map(|(limit, left)| (limit.to_owned(), left)));
        assert_eq!((answered(&reply), binding), expected, "row {}: {row:?}: {reply:?}", i + 1);
        assert!(row.upstream == "-" || row.upstream == row.answer, "row {}: {row:?}", i + 1);
        assert_eq!(reply.field("retry-after").is_some(), reply.status == 429, "row {}: {reply:?}", i + 1);
        let limits = checked.entry(request).or_insert_with(|| request.checked());
        assert_eq!(*limits, parameters(&reply, "ratelimit-policy", "q"), "row {}: {row:?}", i + 1);
    }
    let passed = table.iter().filter(|row| row.upstream != "-").count() as u64;
    assert_eq!(nginx.requests(), passed, "what was denied never reached the upstream");
    let metrics = proxy.metrics();
    let held = table.iter().filter(|row| row.answer == "held").count() as u64;
    assert_eq!(metrics.value("tidegate_requests_held_total"), held);
    assert_eq!(metrics.value("tidegate_holds_total"), 1);
    let log_ins = table.iter().filter(|row| row.request.method == "POST" && row.upstream != "-").count() as u64;
    assert_eq!(metrics.value("tidegate_reservations_total{result=\"settled\"}"), log_ins);
    assert_eq!(metrics.value("tidegate_reservations_total{result=\"not-settled\"}"), 0);
}

#[test]
fn each_request_of_the_table_is_answered_as_it_says_in_memory() {
    walk(&[]);
}

#[test]
fn each_request_of_the_table_is_answered_as_it_says_in_a_shared_store() {
    let redis = Redis::start(&[]);
    walk(&["--store", &redis.url(), "--store-deadline", "5s"]);
}
