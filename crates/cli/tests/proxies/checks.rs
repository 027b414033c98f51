//! What holds behind each of the proxies.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use crate::api::{Api, Seen, answer};
use crate::front::{Away, Front, Recipe, nobody, shown_file};
use crate::support::http::{Connection, Reply, get, request};
use crate::support::program::{Proxy, command};
use crate::support::{free_address, freeze};

/// What the file on the page lets pass at once. The next one is back after 36 seconds.
const BURST: usize = 20;
const REFILL_S: u64 = 36;
/// A body that no single packet holds.
const BODY_BYTES: usize = 100_000;
/// A page says that requests go on half a second later. A machine with much to do may take longer, but hardly each time.
const DELAY_MAX: Duration = Duration::from_millis(1_500);
const TRIES_MAX: usize = 3;

/// Tidegate at this address, by the file of the page, with further flags.
pub(crate) fn tidegate(address: SocketAddr, flags: &[&str]) -> Proxy {
    // The file has been read when the server says that it serves.
    let (_folder, path) = shown_file("forward-auth.md", "tidegate.toml");
    tidegate_by(address, &[&["--config", path.to_str().unwrap()], flags].concat())
}

/// Tidegate at this address, by these flags.
pub(crate) fn tidegate_by(address: SocketAddr, flags: &[&str]) -> Proxy {
    let address = address.to_string();
    let mut command =
        command(&["serve", "--http", &address, "--grpc", "off", "--resp", "off", "--admin", "127.0.0.1:0"]);
    command.args(flags);
    Proxy::started(command)
}

/// All that a caller could say about who it is and what it asks.
fn forged(i: usize) -> Vec<(String, String)> {
    let address = format!("198.51.100.{i}");
    let fields = [
        ("X-Forwarded-For", address.clone()),
        ("X-Real-IP", address.clone()),
        ("Forwarded", format!("for={address}")),
        ("CF-Connecting-IP", address.clone()),
        ("X-Forwarded-Host", format!("other-{i}.example")),
        ("X-Forwarded-Method", "OPTIONS".to_owned()),
        ("X-Forwarded-Uri", "/healthz".to_owned()),
    ];
    fields.map(|(name, value)| (name.to_owned(), value)).to_vec()
}

fn ask(connection: &mut Connection, method: &str, target: &str, fields: &[(String, String)], body: usize) -> Reply {
    let length = ("Content-Length".to_owned(), body.to_string());
    let fields: Vec<_> = fields.iter().chain((body > 0).then_some(&length)).collect();
    let fields: Vec<_> = fields.iter().map(|(name, value)| (&**name, &**value)).collect();
    let bytes = [request(method, target, &fields), vec![b'x'; body]].concat();
    connection.send(&bytes).unwrap();
    connection.reply(method).unwrap()
}

#[track_caller]
fn is_denied(reply: &Reply) {
    assert_eq!(reply.status, 429, "{reply:?}");
    let wait: u64 = reply.field("retry-after").expect("a denial says when to come back").parse().unwrap();
    assert!((1..=REFILL_S).contains(&wait), "{reply:?}");
    assert!(reply.field("ratelimit").unwrap().starts_with("\"limit-1\";r=0;t="), "{reply:?}");
    assert_eq!(reply.field("ratelimit-policy"), Some("\"limit-1\";q=100;w=3600;tidegate-burst=20"));
    assert_eq!(reply.field("content-type"), Some("application/problem+json"));
    assert_eq!(reply.field("cache-control"), Some("no-store"));
    assert_eq!((&reply.json()["status"], &reply.json()["violated-policies"][0]), (&429.into(), &"limit-1".into()));
}

/// As many pass as may, with their bodies; the others get a true 429, whoever they say they are.
pub(crate) fn callers_are_limited(recipe: &Recipe) {
    let (api, address) = (Api::start(), free_address());
    let front = recipe.start(address, api.address(), Away::AsWritten);
    let tidegate = tidegate(address, &[]);
    api.seen();
    let mut connection = Connection::open(front.address);
    for i in 0..BURST {
        let (method, body) = if i % 2 == 0 { ("GET", 0) } else { ("POST", BODY_BYTES) };
        let reply = ask(&mut connection, method, &format!("/items?page={i}&deny_status=200"), &forged(i), body);
        assert_eq!((reply.status, reply.text()), (200, "api\n"), "{i}: {reply:?}");
        let seen = api.seen().pop().expect("it reached the API");
        assert_eq!(seen.line, format!("{method} /items?page={i}&deny_status=200"));
        assert_eq!(seen.body_bytes, body);
        let told = if recipe.tells_caller { reply.field("ratelimit") } else { seen.field("ratelimit") };
        let left = format!("\"limit-1\";r={}", BURST - 1 - i);
        assert!(told.is_some_and(|told| told.starts_with(&left)), "{left} in {reply:?} or {seen:?}");
    }
    for i in 0..5 {
        let denied = ask(&mut Connection::open(front.address), "GET", "/items", &forged(BURST + i), 0);
        is_denied(&denied);
    }
    is_denied(&ask(&mut Connection::open(front.address), "POST", "/", &[], BODY_BYTES));
    assert_eq!(api.seen(), [], "what was denied never got there");
    let outcomes = ["allowed", "denied"].map(|outcome| tidegate.decisions("limit-1", outcome));
    assert_eq!(outcomes, [BURST as u64, 6]);
}

/// What `X-RateLimit-*` say reaches the caller, or the API where the proxy tells only that; and with a denial the caller.
pub(crate) fn another_dialect_is_told(recipe: &Recipe) {
    let (api, address) = (Api::start(), free_address());
    let front = recipe.start(address, api.address(), Away::AsWritten);
    let _tidegate = tidegate_by(address, &["--limit", "2/h", "--headers", "x-ratelimit"]);
    for left in ["1", "0"] {
        api.seen();
        let reply = get(front.address, "/");
        let seen = api.seen().pop().expect("it reached the API");
        let told = |name| if recipe.tells_caller { reply.field(name) } else { seen.field(name) };
        assert_eq!([told("x-ratelimit-limit"), told("x-ratelimit-remaining")], [Some("2"), Some(left)], "{reply:?}");
        assert!(told("x-ratelimit-reset").is_some_and(|reset| reset.parse::<u64>().is_ok()), "{reply:?} {seen:?}");
        assert_eq!(told("ratelimit"), None, "what Tidegate does not say is not made up");
    }
    let denied = get(front.address, "/");
    let told = ["x-ratelimit-limit", "x-ratelimit-remaining"].map(|name| denied.field(name));
    assert_eq!((denied.status, told), (429, [Some("2"), Some("0")]), "{denied:?}");
    let [reset, wait] = ["x-ratelimit-reset", "retry-after"].map(|name| denied.field(name).unwrap().parse::<u64>());
    assert!((1..=1_800).contains(&wait.unwrap()) && reset.unwrap() >= 1, "{denied:?}");
}

/// The proxy asks about the request as it is, without its body, on a connection that stays open.
pub(crate) fn requests_are_asked_about(recipe: &Recipe) {
    let fields = "RateLimit: \"a\";r=1;t=1\r\n";
    let (api, asked) = (Api::start(), Api::answering(move |_| answer("200 OK", fields, "")));
    let front = recipe.start(asked.address(), api.address(), Away::AsWritten);
    asked.seen();
    let mut connection = Connection::open(front.address);
    let mut fields = forged(1);
    fields.push(("X-Api-Key".to_owned(), "k1".to_owned()));
    for _ in 0..3 {
        assert_eq!(ask(&mut connection, "POST", "/items?page=1", &fields, BODY_BYTES).status, 200);
    }
    let seen = asked.seen();
    assert_eq!(seen.len(), 3);
    for ask in &seen {
        is_about(ask, recipe.asks_below);
    }
    assert_eq!(seen[1].connection, seen[2].connection, "a connection that is there is used again");
}

#[track_caller]
fn is_about(ask: &Seen, asks_below: bool) {
    let target = ask.line.split_once(' ').unwrap().1;
    let host = match asks_below {
        true => {
            assert_eq!(ask.line, "POST /v1/forward-auth/items?page=1");
            ask.field("host")
        }
        false => {
            assert_eq!(target.split('?').next(), Some("/v1/forward-auth"));
            assert!(!target.contains("page"), "the query is not the caller's: {ask:?}");
            let said = (ask.field("x-forwarded-method"), ask.field("x-forwarded-uri"));
            assert_eq!(said, (Some("POST"), Some("/items?page=1")));
            ask.field("x-forwarded-host")
        }
    };
    assert_eq!(host, Some("api.example"));
    assert_eq!((ask.body_bytes, ask.field("transfer-encoding")), (0, None), "the body is not sent");
    assert_eq!(ask.field("x-api-key"), Some("k1"));
    let client = ask.field("x-forwarded-for").and_then(|list| list.rsplit(',').next()).unwrap().trim();
    assert!(!client.starts_with("198.51.100."), "{ask:?}");
    let count = |name: &str| ask.fields.iter().filter(|(each, _)| each == name).count();
    assert!(asks_below || count("x-forwarded-uri") == 1 && count("x-forwarded-method") == 1, "{ask:?}");
}

/// Stopped, frozen, or never there: requests go on, or are told so, as the page says.
pub(crate) fn while_tidegate_is_away(recipe: &Recipe) {
    let api = Api::start();
    if recipe.can_go_on {
        let address = free_address();
        let front = recipe.start(address, api.address(), Away::AsWritten);
        goes_on(&api, &front);
        let tidegate = tidegate(address, &[]);
        let counted = get(front.address, "/");
        assert!(counted.field("ratelimit").is_some(), "when it is back, it is asked: {counted:?}");
        freeze(tidegate.id());
        goes_on(&api, &front);
        tidegate.signal("CONT");
        drop(tidegate);
        goes_on(&api, &front);
    }
    let front = recipe.start(nobody(), api.address(), Away::Closed);
    api.seen();
    let told = ask(&mut Connection::open(front.address), "POST", "/", &[], BODY_BYTES);
    assert_eq!(told.status, recipe.closed_status, "{told:?}");
    assert_eq!(told.field("retry-after").is_some(), recipe.can_go_on && !recipe.asks_below, "{told:?}");
    assert_eq!(api.seen(), []);
}

#[track_caller]
fn goes_on(api: &Api, front: &Front) {
    api.seen();
    for attempt in 1.. {
        let since = Instant::now();
        let reply = ask(&mut Connection::open(front.address), "POST", "/", &[], BODY_BYTES);
        let delay = since.elapsed();
        assert_eq!((reply.status, reply.field("ratelimit")), (200, None), "{reply:?}");
        let seen = api.seen();
        assert_eq!((seen.len(), seen[0].body_bytes), (1, BODY_BYTES), "once, and whole");
        if delay < DELAY_MAX {
            return;
        }
        assert!(attempt < TRIES_MAX, "the caller has waited for {delay:?}");
    }
}

/// A WebSocket is asked about once, when it is opened.
pub(crate) fn a_websocket_is_asked_about_once(recipe: &Recipe) {
    let (api, address) = (Api::start(), free_address());
    let front = recipe.start(address, api.address(), Away::AsWritten);
    let tidegate = tidegate(address, &[]);
    let upgrade = [
        ("Connection", "Upgrade"),
        ("Upgrade", "websocket"),
        ("Sec-WebSocket-Version", "13"),
        ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ];
    let mut connection = Connection::open(front.address);
    connection.send(&request("GET", "/socket", &upgrade)).unwrap();
    assert_eq!(connection.head().unwrap().status, 101);
    for _ in 0..5 {
        connection.send(b"hello\n").unwrap();
        assert_eq!(connection.line().unwrap(), "hello");
    }
    assert_eq!(tidegate.decisions("limit-1", "allowed"), 1);
    for _ in 1..BURST {
        assert_eq!(get(front.address, "/").status, 200);
    }
    is_denied(&Connection::open(front.address).ask("GET", "/socket", &upgrade));
}

/// The store of Tidegate is away, and the limit says `deny`: the caller is told so, and not that it asked too much.
pub(crate) fn a_store_that_is_away_is_told(recipe: &Recipe) {
    let (api, address) = (Api::start(), free_address());
    let front = recipe.start(address, api.address(), Away::AsWritten);
    let away = format!("redis://{}", nobody());
    let flags = ["--limit", "100/h burst 20", "--store", &away, "--on-store-failure", "deny"];
    let _tidegate = tidegate_by(address, &flags);
    api.seen();
    let told = get(front.address, "/");
    if recipe.tells_store_away {
        assert_eq!((told.status, told.field("retry-after")), (503, Some("1")), "{told:?}");
        assert!(told.json()["type"].as_str().unwrap().ends_with("temporary-reduced-capacity"), "{told:?}");
        assert_eq!(api.seen(), []);
    } else {
        assert_eq!(told.status, 200, "as the page says");
    }
}

/// What the API itself denies passes as it is, and a request that it breaks off at is not sent to it again.
pub(crate) fn the_api_is_left_alone(recipe: &Recipe) {
    let (api, address) = (Api::start(), free_address());
    let front = recipe.start(address, api.address(), Away::AsWritten);
    let _tidegate = tidegate(address, &[]);
    let reply = get(front.address, "/forbidden");
    assert_eq!((reply.status, reply.text(), reply.field("retry-after")), (403, "not for you\n", None), "{reply:?}");
    api.seen();
    let reply = ask(&mut Connection::open(front.address), "POST", "/broken", &[], 0);
    assert_eq!((reply.status / 100, api.seen().len()), (5, 1), "{reply:?}");
}
