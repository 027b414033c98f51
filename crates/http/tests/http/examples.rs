//! The examples, run.

use std::sync::Arc;

#[cfg(feature = "axum")]
use http_body_util::BodyExt;
use http_body_util::Full;
use hyper_util::rt::TokioIo;
use tidegate::{Limiter, ManualClock, Memory};
use tokio::net::{TcpListener, TcpStream};

use crate::given::{block_on, seconds};

#[cfg(feature = "axum")]
#[path = "../../examples/axum.rs"]
#[expect(dead_code, reason = "the example's main")]
mod axum_example;
#[path = "../../examples/hyper.rs"]
#[expect(dead_code, reason = "the example's main")]
mod hyper_example;

fn three_a_minute() -> (Limiter<Memory<ManualClock>>, ManualClock) {
    let clock = ManualClock::new();
    (Limiter::builder().limit("per-user", "3/min".parse().unwrap()).clock(clock.clone()).build(), clock)
}

#[cfg(feature = "axum")]
#[test]
fn the_axum_service_limits_each_user_by_plan() {
    use axum::body::Body;
    use axum::extract::ConnectInfo;
    use http::Request;
    use tower::ServiceExt;

    let (limiter, clock) = three_a_minute();
    let app = axum_example::app(limiter).unwrap();
    let ask = |token: Option<&'static str>| {
        let app = app.clone();
        let peer = std::net::SocketAddr::from(([203, 0, 113, 7], 4711));
        let request = Request::get("/").extension(ConnectInfo(peer));
        let request = token.into_iter().fold(request, |request, token| request.header("authorization", token));
        block_on(async move {
            let answer = app.oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
            let (parts, body) = answer.into_parts();
            (parts.status.as_u16(), parts.headers, body.collect().await.unwrap().to_bytes())
        })
    };
    for left in (0..3).rev() {
        let (status, headers, body) = ask(Some("Bearer ann"));
        assert_eq!((status, &*body), (200, &b"Hello, Ann!\n"[..]));
        assert_eq!(headers["ratelimit"].to_str().unwrap().split(';').nth(1), Some(&*format!("r={left}")));
    }
    let (status, headers, body) = ask(Some("Bearer ann"));
    assert_eq!((status, &headers["retry-after"]), (429, &http::HeaderValue::from(20)));
    let problem: serde_json::Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(problem["violated-policies"], serde_json::json!(["per-user"]));

    let (status, headers, _) = ask(Some("Bearer bob"));
    assert_eq!((status, headers["ratelimit-policy"].to_str().unwrap()), (200, r#""per-user";q=600;w=60"#));
    let strangers = [(); 4].map(|()| ask(None).0);
    assert_eq!(strangers, [200, 200, 200, 429]);
    clock.advance(seconds(20));
    assert_eq!([ask(Some("Bearer ann")).0, ask(Some("Bearer ann")).0], [200, 429]);
}

#[test]
fn the_hyper_service_limits_each_client_by_address() {
    block_on(async {
        let (limiter, clock) = three_a_minute();
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = tokio::spawn(hyper_example::serve(listener, limiter));
        let clock = Arc::new(clock);
        let status = async || {
            let socket = TcpStream::connect(address).await.unwrap();
            let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(socket)).await.unwrap();
            tokio::spawn(connection);
            let request = http::Request::get("/").header("host", "a.example").body(Full::<bytes::Bytes>::default());
            let answer = sender.send_request(request.unwrap()).await.unwrap();
            answer.status().as_u16()
        };
        for expect in [200, 200, 200, 429] {
            assert_eq!(status().await, expect);
        }
        clock.advance(seconds(20));
        assert_eq!((status().await, status().await), (200, 429));
        server.abort();
    });
}
