//! Several upstreams behind one proxy, by host and path, and over what they are reached.

use std::net::SocketAddr;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tidegate_server::HostTold;
use tokio::net::UnixListener;

use crate::support::{Client, Scene, Stage, upstream};

/// An upstream that says what it got, as `name: host path`.
async fn named(name: &'static str) -> SocketAddr {
    let (address, _) = upstream(move |request: Request<Incoming>| async move {
        let host = request.headers()["host"].to_str().unwrap().to_owned();
        Response::new(Full::<Bytes>::from(format!("{name}: {host} {}", request.uri())))
    })
    .await;
    address
}

async fn ask(stage: &Stage, host: &str, target: &str) -> String {
    let mut client = Client::to(stage.address).await;
    client.send(format!("GET {target} HTTP/1.1\r\nhost: {host}\r\n\r\n")).await;
    let answer = client.answer().await;
    if answer.status == 200 { answer.text().to_owned() } else { format!("{} {}", answer.status, answer.problem()) }
}

/// A proxy with one destination for each text; its URL is that of an upstream of its own.
async fn stage(destinations: [&'static str; 3]) -> Stage {
    let mut texts = Vec::new();
    for head in destinations {
        let address = named(head).await;
        texts.push(format!("{head}http://{address}"));
    }
    Scene { upstreams: texts, ..Scene::default() }.before("127.0.0.1:1".parse().unwrap())
}

#[tokio::test]
async fn a_request_goes_to_the_most_special_upstream_with_its_path_as_it_came() {
    let stage = stage(["", "/v1=", "api.example.org="]).await;
    for (host, target, expected) in [
        ("x", "/", ": x /"),
        ("x", "/v1/a?b", "/v1=: x /v1/a?b"),
        ("x", "/v10", ": x /v10"),
        ("api.example.org:80", "/v1", "api.example.org=: api.example.org:80 /v1"),
        // What the upstream's own server makes of dot segments is its own; it gets them as they are.
        ("x", "/v1/../secret", ": x /v1/../secret"),
        ("x", "/a/%2e%2e/v1/x", "/v1=: x /a/%2e%2e/v1/x"),
        ("x", "http://api.example.org/", "api.example.org=: api.example.org /"),
    ] {
        assert_eq!(ask(&stage, host, target).await, expected, "{host} {target}");
    }
}

#[tokio::test]
async fn a_request_that_is_for_no_upstream_is_a_404_that_says_so() {
    let stage = stage(["/a=", "/b=", "api.example.org="]).await;
    assert_eq!(ask(&stage, "x", "/a").await, "/a=: x /a");
    assert_eq!(ask(&stage, "x", "/c").await, "404 no upstream is there for this host and path");
    assert_eq!(ask(&stage, "x", "/a/../c").await, "404 no upstream is there for this host and path");
}

#[tokio::test]
async fn an_upstream_is_told_its_own_host_if_it_should_be() {
    let upstream = named("a").await;
    let stage = Scene { host: HostTold::Upstream, ..Scene::default() }.before(upstream);
    assert_eq!(ask(&stage, "x", "/").await, format!("a: {upstream} /"));
}

#[tokio::test]
async fn an_upstream_is_reached_over_a_unix_socket() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("api.sock");
    let listener = UnixListener::bind(&path).unwrap();
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let service = service_fn(|request: Request<Incoming>| async move {
                Ok::<_, std::convert::Infallible>(Response::new(Full::<Bytes>::from(format!("{}", request.uri()))))
            });
            tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(socket), service));
        }
    });
    let text = format!("unix:{}", path.display());
    let stage = Scene::of(&[&text]).before("127.0.0.1:1".parse().unwrap());
    assert_eq!(ask(&stage, "x", "/over/a/socket").await, "/over/a/socket");
    drop(folder);
    let stage = Scene::of(&[&text]).before("127.0.0.1:1".parse().unwrap());
    let answer = ask(&stage, "x", "/").await;
    assert!(answer.starts_with(&format!("502 the upstream {text} cannot be reached: ")), "{answer}");
}
