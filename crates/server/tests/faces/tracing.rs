//! Spans, as a collector gets them: what they say, where they hang, and that nobody waits for them.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use serde_json::{Value, json};
use tidegate::policy::file::{Format, read};
use tidegate::{Clock as _, Gate, ManualClock, Memory, TableOptions, Time};
use tidegate_server::{
    Bounds, DeskSetup, Drain, Gateway, GatewaySetup, Metrics, OperationSetup, StoreLevel, TraceSetup, Upstream, bind,
};

use crate::support::{Client, eventually, metric, nobody, one_each, upstream};

const NOW: Time = Time::from_nanos(1_771_404_500_012_345_678);
const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "b7ad6b7169203331";

/// What a collector was sent, one export after the other.
#[derive(Clone, Default)]
struct Collected(Arc<Mutex<Vec<Value>>>);

impl Collected {
    /// A collector that answers with this status.
    async fn answering(status: StatusCode) -> (SocketAddr, Self) {
        let collected = Self::default();
        let kept = collected.clone();
        let (address, _) = upstream(move |request: Request<Incoming>| {
            let kept = kept.clone();
            async move {
                assert_eq!((request.method().as_str(), request.uri().path()), ("POST", "/v1/traces"));
                assert_eq!(request.headers()["content-type"], "application/json");
                let body = request.into_body().collect().await.unwrap().to_bytes();
                kept.0.lock().unwrap().push(serde_json::from_slice(&body).unwrap());
                let mut answer = Response::new(Full::<Bytes>::from("{}"));
                *answer.status_mut() = status;
                answer
            }
        })
        .await;
        (address, collected)
    }

    fn exports(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    fn spans(&self) -> Vec<Value> {
        let exports = self.0.lock().unwrap();
        let scopes = exports.iter().map(|export| &export["resourceSpans"][0]);
        scopes.flat_map(|scope| scope["scopeSpans"][0]["spans"].as_array().unwrap().clone()).collect()
    }
}

/// An attribute of a span, or of a resource.
fn attribute<'a>(of: &'a Value, key: &str) -> Option<&'a str> {
    let all = of["attributes"].as_array().unwrap();
    let value = &all.iter().find(|attribute| attribute["key"] == key)?["value"];
    value["stringValue"].as_str().or(value["intValue"].as_str())
}

/// A gateway that traces, on a thread of its own.
struct Tracing {
    address: SocketAddr,
    metrics: Arc<Metrics>,
    notices: Arc<Mutex<Vec<String>>>,
    drain: Drain,
    thread: Option<JoinHandle<std::io::Result<()>>>,
}

impl Tracing {
    fn to(collector: SocketAddr, sample: &str, trust: &str, upstream: SocketAddr) -> Self {
        let policies = format!(
            "[client]\ntrust = [\"{trust}\"]\n\n[[policies]]\nname = \"api\"\nkey = \"global\"\nlimits = \"2/min\"\n"
        );
        let policies = read("test.toml", &policies, Format::Toml).unwrap().policies;
        let (clock, notices, drain) = (ManualClock::new(), Arc::new(Mutex::new(Vec::new())), Drain::new());
        clock.set(NOW);
        let (heard, time) = (Arc::clone(&notices), clock.clone());
        let desk = DeskSetup::new(
            Gate::new(policies, Memory::new(TableOptions::with_keys(64), clock)),
            StoreLevel::of_memory,
            Arc::new(move || time.now()),
            OperationSetup::of_memory(),
        );
        let desk = DeskSetup {
            notice: Arc::new(move |text: &str| heard.lock().unwrap().push(text.to_owned())),
            traces: Some(TraceSetup {
                endpoint: format!("http://{collector}").parse().unwrap(),
                sample: sample.parse().unwrap(),
            }),
            ..desk
        };
        let gateway = Gateway::new(GatewaySetup {
            upstreams: Some(format!("http://{upstream}").parse::<Upstream>().unwrap().into()),
            bounds: Bounds { grace: Duration::ZERO, ..Bounds::default() },
            ..GatewaySetup::new(desk)
        });
        let metrics = Arc::clone(gateway.desk().metrics());
        let listeners = bind("127.0.0.1:0".parse().unwrap(), NonZeroUsize::MIN).unwrap();
        let (address, until) = (listeners[0].local_addr().unwrap(), drain.clone());
        let thread = std::thread::spawn(move || gateway.run(one_each(listeners), None, &until));
        Self { address, metrics, notices, drain, thread: Some(thread) }
    }

    fn spans(&self, result: &str) -> u64 {
        metric(&self.metrics, &format!("tidegate_trace_spans_total{{result=\"{result}\"}}"))
    }

    async fn get(&self, path: &str, fields: &str) -> u16 {
        let mut client = Client::to(self.address).await;
        client.send(format!("GET {path} HTTP/1.1\r\nhost: a.example\r\n{fields}\r\n")).await;
        client.answer().await.status
    }

    /// Stops it, after which all spans were sent.
    async fn end(mut self) {
        self.drain.start();
        let thread = self.thread.take().unwrap();
        // The collector needs this thread.
        let ended = tokio::task::spawn_blocking(move || thread.join()).await.unwrap();
        assert!(matches!(ended, Ok(Ok(()))));
    }
}

impl Drop for Tracing {
    fn drop(&mut self) {
        self.drain.start();
    }
}

/// An upstream that keeps the value of traceparent of each request.
async fn keeping() -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
    let kept = Arc::new(Mutex::new(Vec::new()));
    let keeper = Arc::clone(&kept);
    let (address, _) = upstream(move |request: Request<Incoming>| {
        let field = |name| request.headers().get(name).map_or(String::new(), |it| it.to_str().unwrap().to_owned());
        keeper.lock().unwrap().push(format!("{} {}", field("traceparent"), field("tracestate")));
        async { Response::new(Full::<Bytes>::from("hello")) }
    })
    .await;
    (address, kept)
}

#[tokio::test]
async fn each_request_is_a_span_and_the_upstream_hangs_below_it() {
    let ((collector, collected), (upstream, kept)) = (Collected::answering(StatusCode::OK).await, keeping().await);
    let tracing = Tracing::to(collector, "1", "10.0.0.0/8", upstream);
    let parent = format!("traceparent: 00-{TRACE}-{PARENT}-01\r\ntracestate: a=b\r\nuser-agent: probe/1.0\r\n");
    assert_eq!(tracing.get("/a?b=c", &parent).await, 200);
    assert_eq!(tracing.get("/a", "tracestate: c=d\r\n").await, 200);
    assert_eq!(tracing.get("/a", "").await, 429);
    let metrics = Arc::clone(&tracing.metrics);
    tracing.end().await;
    assert_eq!(metric(&metrics, "tidegate_trace_spans_total{result=\"exported\"}"), 3);
    let resource = collected.0.lock().unwrap()[0]["resourceSpans"][0]["resource"].clone();
    assert_eq!(attribute(&resource, "service.name"), Some("tidegate"));

    let spans = collected.spans();
    let (first, second, third) = (&spans[0], &spans[1], &spans[2]);
    assert_eq!((&first["traceId"], &first["parentSpanId"]), (&json!(TRACE), &json!(PARENT)));
    assert_eq!((&first["name"], &first["kind"], &first["status"]), (&json!("GET"), &json!(2), &Value::Null));
    let at = json!("1771404500012345678");
    assert_eq!((&first["startTimeUnixNano"], &first["endTimeUnixNano"]), (&at, &at));
    for (key, value) in [
        ("http.request.method", "GET"),
        ("url.path", "/a"),
        ("url.query", "b=c"),
        ("server.address", "a.example"),
        ("user_agent.original", "probe/1.0"),
        ("client.address", "127.0.0.1"),
        ("network.protocol.version", "1.1"),
        ("http.response.status_code", "200"),
        ("http.response.body.size", "5"),
        ("tidegate.decision", "allowed"),
        ("tidegate.policy", "api"),
        ("tidegate.limit", "limit-1"),
        ("tidegate.remaining", "1"),
    ] {
        assert_eq!(attribute(first, key), Some(value), "{key}");
    }
    assert_eq!(attribute(third, "tidegate.decision"), Some("denied"));
    assert_eq!((&second["parentSpanId"], third["traceId"] == second["traceId"]), (&Value::Null, false));

    let text = |span: &Value, key: &str| span[key].as_str().unwrap().to_owned();
    let expected = [(first, " a=b"), (second, " ")]
        .map(|(span, state)| format!("00-{}-{}-01{state}", text(span, "traceId"), text(span, "spanId")));
    assert_eq!(*kept.lock().unwrap(), expected);
    assert_eq!((text(second, "traceId").len(), text(second, "spanId").len()), (32, 16));
}

#[tokio::test]
async fn only_a_peer_that_is_trusted_decides_what_is_sampled() {
    for (trust, sample, flag, expected) in [
        ("10.0.0.0/8", "0", "01", 0),
        ("10.0.0.0/8", "1", "00", 1),
        ("127.0.0.0/8", "0", "01", 1),
        ("127.0.0.0/8", "1", "00", 0),
    ] {
        let ((collector, collected), (upstream, kept)) = (Collected::answering(StatusCode::OK).await, keeping().await);
        let tracing = Tracing::to(collector, sample, trust, upstream);
        tracing.get("/", &format!("traceparent: 00-{TRACE}-{PARENT}-{flag}\r\n")).await;
        tracing.end().await;
        assert_eq!(collected.spans().len(), expected, "{trust} {sample} {flag}");
        let passed_on = kept.lock().unwrap()[0].clone();
        assert!(passed_on.starts_with(&format!("00-{TRACE}-")) && !passed_on.contains(PARENT), "{passed_on}");
        assert!(passed_on.ends_with(&format!("-0{expected} ")), "{passed_on}");
    }
}

#[tokio::test]
async fn a_collector_that_is_away_holds_nobody_up_and_is_told_of_once() {
    let (away, (upstream, _)) = (nobody().await, keeping().await);
    let tracing = Tracing::to(away, "1", "10.0.0.0/8", upstream);
    assert_eq!([tracing.get("/", "").await, tracing.get("/", "").await], [200, 200]);
    eventually("it is told", || !tracing.notices.lock().unwrap().is_empty()).await;
    let (metrics, notices) = (Arc::clone(&tracing.metrics), Arc::clone(&tracing.notices));
    tracing.end().await;
    let notices = notices.lock().unwrap();
    assert_eq!(notices.len(), 1, "{notices:?}");
    assert!(notices[0].starts_with(&format!("spans cannot be sent to http://{away}/v1/traces: ")), "{notices:?}");
    assert_eq!(metric(&metrics, "tidegate_trace_spans_total{result=\"failed\"}"), 2);
}

#[tokio::test]
async fn what_a_collector_refuses_is_given_up_and_what_it_cannot_take_now_is_sent_again() {
    for (status, again) in [(StatusCode::BAD_REQUEST, false), (StatusCode::SERVICE_UNAVAILABLE, true)] {
        let ((collector, collected), (upstream, _)) = (Collected::answering(status).await, keeping().await);
        let tracing = Tracing::to(collector, "1", "10.0.0.0/8", upstream);
        tracing.get("/", "").await;
        eventually("it was sent", || collected.exports() >= 1).await;
        if again {
            eventually("it was sent again", || collected.exports() >= 2).await;
        } else {
            eventually("it was given up", || tracing.spans("failed") == 1).await;
        }
        tracing.end().await;
    }
}
