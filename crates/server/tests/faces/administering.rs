//! What an operator does by the admin face of a gateway, on a driven clock.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::{Value, json};
use tidegate::policy::{ClientAddress, KeySalt, Policies, Policy};
use tidegate::{Clock as _, FailureMode, Gate, Handling, ManualClock, Memory, Mode, TableOptions, Time};
use tidegate_server::{AdminToken, DeskSetup, Drain, Gateway, GatewaySetup, OperationSetup, StoreLevel, bind};

use crate::support::{Answer, Client, metric, one_each};

type Store = Memory<ManualClock>;

/// 2001-09-09T01:46:40Z.
const START: Time = Time::from_secs(1_000_000_000);
const TOKEN: &str = "a-token-of-some-length";

/// A gateway that serves jokes under these policies.
struct Running {
    gateway: Arc<Gateway<Store>>,
    address: SocketAddr,
    admin: SocketAddr,
    clock: ManualClock,
    drain: Drain,
    thread: Option<JoinHandle<std::io::Result<()>>>,
}

fn by_key(limits: &[(&str, &str)]) -> Policy {
    let policy = Policy::new("by-key", "header:x-api-key".parse().unwrap());
    limits.iter().fold(policy, |policy, (name, limit)| policy.with_limit(name, limit.parse().unwrap(), Mode::Enforce))
}

fn policies(all: Vec<Policy>) -> Policies {
    Policies::new(ClientAddress::default(), all).unwrap()
}

impl Running {
    fn start(policies: Policies, operate: impl FnOnce(OperationSetup<Store>) -> OperationSetup<Store>) -> Self {
        let (clock, drain) = (ManualClock::new(), Drain::new());
        clock.set(START);
        let time = clock.clone();
        let desk = DeskSetup::new(
            Gate::new(policies, Memory::new(TableOptions::with_keys(4_096), clock.clone())),
            StoreLevel::of_memory,
            Arc::new(move || time.now()),
            operate(OperationSetup::of_memory()),
        );
        let desk = DeskSetup { salt: KeySalt::new(b"pepper").unwrap(), ..desk };
        let gateway = Arc::new(Gateway::new(GatewaySetup::new(desk)));
        let bound = || bind("127.0.0.1:0".parse().unwrap(), NonZeroUsize::MIN).unwrap();
        let (listeners, admin_listener) = (bound(), bound().remove(0));
        let (address, admin) = (listeners[0].local_addr().unwrap(), admin_listener.local_addr().unwrap());
        let (serving, until) = (Arc::clone(&gateway), drain.clone());
        let thread = std::thread::spawn(move || serving.run(one_each(listeners), Some(admin_listener), &until));
        Self { gateway, address, admin, clock, drain, thread: Some(thread) }
    }

    fn plain(limits: &[(&str, &str)]) -> Self {
        Self::start(policies(vec![by_key(limits)]), |plain| plain)
    }

    /// How many of so many requests of this key pass.
    async fn passing(&self, key: &str, count: usize) -> usize {
        let mut client = Client::to(self.address).await;
        let mut passed = 0;
        for _ in 0..count {
            client.send(format!("GET / HTTP/1.1\r\nhost: a\r\nx-api-key: {key}\r\n\r\n")).await;
            passed += usize::from(client.answer().await.status == 200);
        }
        passed
    }

    async fn raw(&self, request: &str) -> Answer {
        let mut client = Client::to(self.admin).await;
        client.send(request).await;
        client.answer().await
    }

    /// An operator's request, with a body if there is one.
    async fn ask(&self, method: &str, target: &str, body: &str) -> Answer {
        let length = body.len();
        let fields = if body.is_empty() { String::new() } else { "content-type: application/json\r\n".to_owned() };
        let head = format!("{method} {target} HTTP/1.1\r\nhost: localhost\r\n{fields}content-length: {length}\r\n\r\n");
        self.raw(&format!("{head}{body}")).await
    }

    /// The JSON of an answer that is one.
    async fn done(&self, method: &str, target: &str, body: &str) -> Value {
        let answer = self.ask(method, target, body).await;
        assert_eq!((answer.status, answer.field("content-type")), (200, Some("application/json")), "{answer:?}");
        assert_eq!(answer.field("cache-control"), Some("no-store"));
        serde_json::from_slice(&answer.body).unwrap()
    }

    /// The detail of a refusal.
    async fn refused(&self, method: &str, target: &str, body: &str) -> (u16, String) {
        let answer = self.ask(method, target, body).await;
        (answer.status, answer.problem())
    }

    async fn remaining(&self, key: &str) -> Vec<u64> {
        let look = self.done("GET", &format!("/v1/keys?policy=by-key&key={key}"), "").await;
        look["limits"].as_array().unwrap().iter().map(|limit| limit["remaining"].as_u64().unwrap()).collect()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.drain.start();
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(std::thread::panicking() || matches!(ended, Some(Ok(Ok(())))));
    }
}

#[tokio::test]
async fn a_look_tells_how_it_stands_and_changes_nothing() {
    let running = Running::plain(&[("minute", "3/min"), ("day", "50/day")]);
    assert_eq!(running.passing("gold-1", 2).await, 2);
    running.clock.advance(Duration::from_secs(5));
    for _ in 0..3 {
        let look = running.done("GET", "/v1/keys?policy=by-key&key=gold-1", "").await;
        let minute = json!({
            "name": "minute", "limit": "3/min", "mode": "enforce", "burst": 3, "remaining": 1, "deficit": 2,
            "reset_after_s": 35.0, "next_token_after_s": 15.0, "source": "store", "held_by": null,
        });
        assert_eq!(look["limits"][0], minute);
        assert_eq!(look["limits"][1]["remaining"], 48);
        assert_eq!((&look["key"], &look["bytes"]), (&json!("\"gold-1\""), &json!("7606676f6c642d31")));
        assert_eq!(look["hash"], "4ca1e5107d43ccc7");
        assert_eq!((&look["exempt"], &look["override"]), (&json!(false), &json!(false)));
    }
    let same = running.done("GET", "/v1/keys?policy=by-key&bytes=7606676f6c642d31&limit=day", "").await;
    assert_eq!((same["limits"].as_array().unwrap().len(), &same["limits"][0]["name"]), (1, &json!("day")));
    // A key that nobody has used is full, and looking at it takes no memory.
    assert_eq!(running.remaining("other").await, [3, 50]);
    assert_eq!(metric(running.gateway.desk().metrics(), "tidegate_keys"), 2);
    let mut client = Client::to(running.admin).await;
    client.send("HEAD /v1/policies HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
    assert!(client.head().await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn a_reset_fills_and_a_grant_gives_back_of_all_limits_or_of_one() {
    let running = Running::plain(&[("minute", "3/min"), ("day", "5/day")]);
    assert_eq!(running.passing("gold-1", 9).await, 3);
    assert_eq!(running.remaining("gold-1").await, [0, 2]);
    let look = running.done("POST", "/v1/keys/grant?policy=by-key&key=gold-1", "{\"tokens\": 1}").await;
    assert_eq!((&look["limits"][0]["remaining"], &look["limits"][1]["remaining"]), (&json!(1), &json!(3)));
    running.done("POST", "/v1/keys/grant?policy=by-key&key=gold-1&limit=day", "{\"tokens\": 100}").await;
    assert_eq!(running.remaining("gold-1").await, [1, 5]);
    assert_eq!(running.passing("gold-1", 9).await, 1);
    running.done("DELETE", "/v1/keys?policy=by-key&key=gold-1&limit=minute", "").await;
    assert_eq!(running.remaining("gold-1").await, [3, 4]);
    running.done("DELETE", "/v1/keys?policy=by-key&key=gold-1", "").await;
    assert_eq!(running.remaining("gold-1").await, [3, 5]);
}

#[tokio::test]
async fn an_override_holds_until_it_is_removed_and_outlives_another_file() {
    const TARGET: &str = "/v1/keys/override?policy=by-key&key=gold-1";
    let running = Running::plain(&[("minute", "3/min")]);
    assert_eq!(running.passing("gold-1", 9).await, 3);
    let put = running.done("PUT", TARGET, "{\"limits\": \"5/min\"}").await;
    let expect = json!({
        "policy": "by-key", "key": ["gold-1"], "limits": { "minute": "5/min" }, "until": null,
        "since": "2001-09-09T01:46:40Z", "in_force": true, "put_off": null,
    });
    assert_eq!(put, expect);
    // Three were used: of five, two are left (law 10); and others have what they had.
    assert_eq!((running.passing("gold-1", 9).await, running.passing("other", 9).await), (2, 3));
    let look = running.done("GET", "/v1/keys?policy=by-key&key=gold-1", "").await;
    assert_eq!((&look["override"], &look["limits"][0]["limit"]), (&json!(true), &json!("5/min")));
    // Lower again at once: what is owed is at most the burst.
    running.done("PUT", TARGET, "{\"limits\": {\"minute\": \"4/min\"}}").await;
    assert_eq!(running.passing("gold-1", 9).await, 0);
    running.clock.advance(Duration::from_secs(15));
    assert_eq!(running.passing("gold-1", 9).await, 1);

    running.gateway.desk().replace(policies(vec![by_key(&[("minute", "2/min")])]));
    let all = running.done("GET", "/v1/overrides", "").await;
    assert_eq!((all["overrides"].as_array().unwrap().len(), &all["overrides"][0]["in_force"]), (1, &json!(true)));
    running.gateway.desk().replace(policies(vec![by_key(&[("second", "1/s")])]));
    let all = running.done("GET", "/v1/overrides", "").await;
    assert_eq!(all["overrides"][0]["put_off"], "the policy has no limit `minute`");
    running.gateway.desk().replace(policies(vec![by_key(&[("minute", "3/min")])]));
    let look = running.done("GET", "/v1/keys?policy=by-key&key=gold-1", "").await;
    assert_eq!(look["limits"][0]["limit"], "4/min");

    assert_eq!(running.done("DELETE", TARGET, "").await, json!({ "overrides": [] }));
    let (status, detail) = running.refused("DELETE", TARGET, "").await;
    assert_eq!((status, detail.starts_with("no override of this key was put in force")), (404, true));
    let look = running.done("GET", "/v1/keys?policy=by-key&key=gold-1", "").await;
    assert_eq!(look["limits"][0]["limit"], "3/min");
}

#[tokio::test]
async fn br_076_a_look_is_right_whatever_the_limit_was_before() {
    let running = Running::plain(&[("minute", "10/min")]);
    let file = |limit: &str| running.gateway.desk().replace(policies(vec![by_key(&[("minute", limit)])]));
    file("100/min");
    assert_eq!(running.passing("gold-1", 50).await, 50);
    assert_eq!(running.remaining("gold-1").await, [50]);
    file("10/min");
    assert_eq!(running.remaining("gold-1").await, [0]);
    file("150/min");
    assert_eq!(running.remaining("gold-1").await, [100]);
}

#[tokio::test]
async fn an_override_ends_when_it_says() {
    let running = Running::plain(&[("minute", "3/min")]);
    let body = "{\"limits\": \"unlimited\", \"until\": \"2001-09-09T01:47:40Z\"}";
    running.done("PUT", "/v1/keys/override?policy=by-key&key=gold-1", body).await;
    assert_eq!(running.passing("gold-1", 9).await, 9);
    running.clock.advance(Duration::from_secs(60));
    assert_eq!(running.passing("gold-1", 9).await, 3);
    assert_eq!(running.done("GET", "/v1/overrides", "").await, json!({ "overrides": [] }));
    let (status, detail) = running.refused("PUT", "/v1/keys/override?policy=by-key&key=gold-1", body).await;
    assert_eq!((status, detail.as_str()), (400, "`until` is over: it is 2001-09-09T01:47:40Z now"));
}

#[tokio::test]
async fn there_are_so_many_overrides_and_no_more() {
    let running = Running::plain(&[("minute", "3/min")]);
    for i in 0..256 {
        running.done("PUT", &format!("/v1/keys/override?policy=by-key&key=k{i}"), "{\"limits\": \"9/min\"}").await;
    }
    let (status, detail) =
        running.refused("PUT", "/v1/keys/override?policy=by-key&key=more", "{\"limits\": \"9/min\"}").await;
    assert_eq!((status, detail.starts_with("there are 256 overrides")), (409, true), "{detail}");
    running.done("PUT", "/v1/keys/override?policy=by-key&key=k7", "{\"limits\": \"8/min\"}").await;
    running.done("DELETE", "/v1/keys/override?policy=by-key&key=k8", "").await;
    running.done("PUT", "/v1/keys/override?policy=by-key&key=more", "{\"limits\": \"9/min\"}").await;
}

#[tokio::test]
async fn what_cannot_be_is_refused_with_what_and_where() {
    let running = Running::plain(&[("minute", "3/min"), ("day", "9/day")]);
    let (key, grant, special) =
        ("/v1/keys?policy=by-key&key=a", "/v1/keys/grant?policy=by-key&key=a", "/v1/keys/override?policy=by-key&key=a");
    for (method, target, body, status, expect) in [
        ("GET", "/v1/keys", "", 400, "which policy? Add `policy=NAME`"),
        ("GET", "/v1/keys?policy=by-ip&key=a", "", 404, "there is no policy `by-ip`"),
        ("GET", "/v1/keys?policy=by-key", "", 400, "the policy's key has 1 parts, and here are 0 values"),
        ("GET", "/v1/keys?policy=by-key&bytes=00", "", 400, "the bytes are not those of a key of this policy"),
        ("GET", &format!("{key}&limit=hour"), "", 404, "policy `by-key` has no limit `hour`"),
        ("POST", grant, "{\"token\": 5}", 400, "a grant has no field `token`; it has `tokens`"),
        ("PUT", special, "{\"limit\": {}}", 400, "line 1, column 1 of the body: an override needs `limits`"),
        (
            "PUT",
            special,
            "{\"limits\": \"5/min\"}",
            400,
            "line 1, column 12 of the body: the policy has several limits",
        ),
        (
            "PUT",
            special,
            "{\"limits\": {\"minute\": 5}}",
            400,
            "line 1, column 23 of the body: `5`: a count needs a period",
        ),
        (
            "PUT",
            special,
            "{\"limits\": {\"minute\": \"5/m\"}}",
            400,
            "line 1, column 26 of the body: `5/m`: `m` could be",
        ),
        ("PUT", special, &format!("{{\"limits\": \"{}\"}}", "x".repeat(20_000)), 413, "the body is too long"),
        ("GET", "/v1/denied", "", 404, "the keys denied most are not counted; start the program with --denied-keys"),
        ("GET", "/v2", "", 404, "there are /livez, /readyz, /metrics, /v1/policies, /v1/keys, "),
    ] {
        let (found, detail) = running.refused(method, target, body).await;
        assert!(found == status && detail.starts_with(expect), "{method} {target} {body}: {found} {detail}");
    }
    for (method, target, allow) in [
        ("POST", "/v1/policies", "GET, HEAD"),
        ("POST", key, "GET, HEAD, DELETE"),
        ("GET", grant, "POST"),
        ("OPTIONS", special, "PUT, DELETE"),
    ] {
        let answer = running.ask(method, target, "").await;
        assert_eq!((answer.status, answer.field("allow")), (405, Some(allow)), "{method} {target}");
        assert_eq!(answer.field("access-control-allow-origin"), None);
    }
    // What a page can send without asking first is no JSON.
    let simple = format!(
        "POST {grant} HTTP/1.1\r\nhost: localhost\r\ncontent-type: text/plain\r\ncontent-length: 2\r\n\r\n{{}}"
    );
    assert_eq!(running.raw(&simple).await.status, 415);
    assert_eq!(running.done("GET", "/v1/overrides", "").await, json!({ "overrides": [] }));
}

#[tokio::test]
async fn the_policies_in_force_are_told_with_how_often_they_decided() {
    let running = Running::plain(&[("minute", "3/min")]);
    running.passing("gold-1", 5).await;
    running.gateway.desk().read_from("tidegate.toml");
    let told = running.done("GET", "/v1/policies", "").await;
    assert_eq!((&told["file"], &told["read_at"]), (&json!("tidegate.toml"), &json!("2001-09-09T01:46:40Z")));
    let policy = &told["policies"][0];
    assert_eq!(
        (&policy["name"], &policy["key"], &policy["charged"]),
        (&json!("by-key"), &json!(["header:x-api-key"]), &json!(5))
    );
    let limit = json!({
        "name": "minute", "limit": "3/min", "algorithm": "token-bucket", "mode": "enforce", "on_store_failure": "local",
        "sharing": "exact", "decisions": { "allowed": 3, "denied": 2, "never": 0 },
    });
    assert_eq!(policy["limits"], json!([limit]));
}

#[tokio::test]
async fn the_keys_denied_most_are_listed_plain_or_by_their_hashes() {
    for are_denied_hashed in [false, true] {
        // As many as are denied, so that none has to make room for another.
        let setup = |plain| OperationSetup { denied_keys: 3, are_denied_hashed, ..plain };
        let running = Running::start(policies(vec![by_key(&[("minute", "1/min")])]), setup);
        for (key, count) in [("ann", 5), ("bob", 3), ("eve", 2), ("fine", 1)] {
            running.passing(key, count).await;
        }
        let told = running.done("GET", "/v1/denied", "").await;
        let counts: Vec<_> =
            told["denied"].as_array().unwrap().iter().map(|one| one["count"].as_u64().unwrap()).collect();
        assert_eq!((counts, &told["missed"], &told["hashed"]), (vec![4, 2, 1], &json!(0), &json!(are_denied_hashed)));
        let first = &told["denied"][0];
        let hash = KeySalt::new(b"pepper").unwrap().hash(b"v\x03ann").to_string();
        assert_eq!(
            (&first["policy"], &first["limit"], &first["error"]),
            (&json!("by-key"), &json!("minute"), &json!(0))
        );
        assert_eq!((&first["hash"], &first["since"]), (&json!(hash), &json!("2001-09-09T01:46:40Z")));
        let plain = if are_denied_hashed { Value::Null } else { json!("\"ann\"") };
        assert_eq!((&first["key"], first["bytes"].is_null()), (&plain, are_denied_hashed));
        assert_eq!(running.done("DELETE", "/v1/denied", "").await["denied"], json!([]));
    }
}

#[tokio::test]
async fn with_a_token_all_but_the_probes_needs_it() {
    let setup = |plain| OperationSetup { token: Some(AdminToken::new(TOKEN).unwrap()), ..plain };
    let running = Running::start(policies(vec![by_key(&[("minute", "1/min")])]), setup);
    for target in ["/livez", "/readyz"] {
        assert_eq!(running.raw(&format!("GET {target} HTTP/1.1\r\nhost: elsewhere\r\n\r\n")).await.status, 200);
    }
    for target in ["/metrics", "/v1/policies", "/v1/keys?policy=by-key&key=a", "/nowhere"] {
        let answer = running.ask("GET", target, "").await;
        assert_eq!((answer.status, answer.field("www-authenticate")), (401, Some("Bearer")), "{target}");
        let request = format!("GET {target} HTTP/1.1\r\nhost: elsewhere\r\nauthorization: Bearer {TOKEN}\r\n\r\n");
        assert_ne!(running.raw(&request).await.status, 401, "{target}");
    }
    assert_eq!(metric(running.gateway.desk().metrics(), "tidegate_admin_denied_total{reason=\"token\"}"), 4);
}

#[tokio::test]
async fn without_a_token_a_page_that_points_its_name_here_is_not_answered() {
    let running = Running::plain(&[("minute", "1/min")]);
    let by = async |host: &str| running.raw(&format!("GET /v1/policies HTTP/1.1\r\nhost: {host}\r\n\r\n")).await.status;
    assert_eq!((by("evil.example").await, by("localhost:1").await, by("127.0.0.1").await), (403, 200, 200));
    assert_eq!(metric(running.gateway.desk().metrics(), "tidegate_admin_denied_total{reason=\"host\"}"), 1);
}

#[tokio::test]
async fn a_store_that_is_down_is_no_reason_unless_a_limit_then_denies() {
    let mode =
        |mode: FailureMode| by_key(&[("minute", "1/min")]).with_handling(Handling::default().with_on_failure(mode));
    for (policy, status) in
        [(mode(FailureMode::Allow), 200), (mode(FailureMode::default()), 200), (mode(FailureMode::Deny), 503)]
    {
        let down = |plain| OperationSetup { is_up: |_| false, ..plain };
        let running = Running::start(policies(vec![policy]), down);
        let answer = running.ask("GET", "/readyz", "").await;
        assert_eq!(answer.status, status);
        if status == 503 {
            let why = "the store does not answer, and limit `minute` of policy `by-key` denies everything without it";
            assert!(answer.problem().starts_with(why), "{answer:?}");
        }
        assert_eq!(running.ask("GET", "/livez", "").await.status, 200);
    }
}
