//! Upstreams over TLS.

use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tidegate_server::UpstreamTls;
use tokio_rustls::TlsAcceptor;

use crate::support::{Client, Log, Scene, Stage, raw_upstream};

/// What an upstream is signed by.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    file: tempfile::NamedTempFile,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).unwrap();
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(certificate.pem().as_bytes()).unwrap();
        Self { issuer: Issuer::new(params, key), file }
    }

    /// What trusts it, and nobody else.
    pub(crate) fn trusted(&self) -> UpstreamTls {
        UpstreamTls::trusting_file(self.file.path()).unwrap()
    }

    /// A server of this name that prefers these protocols.
    pub(crate) fn acceptor(&self, name: &str, protocols: &[&str]) -> TlsAcceptor {
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new([name.to_owned()]).unwrap().signed_by(&key, &self.issuer).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let mut config = config.with_no_client_auth().with_single_cert(vec![certificate.into()], key).unwrap();
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        TlsAcceptor::from(Arc::new(config))
    }
}

/// An upstream that says which version of HTTP it is spoken to in, and by what name.
async fn secured(acceptor: TlsAcceptor) -> (SocketAddr, Log) {
    let log = Log::default();
    let seen = log.clone();
    let address = raw_upstream(move |socket| {
        let (acceptor, seen) = (acceptor.clone(), seen.clone());
        async move {
            let Ok(stream) = acceptor.accept(socket).await else { return };
            seen.connections.fetch_add(1, SeqCst);
            let session = stream.get_ref().1;
            let http2 = session.alpn_protocol() == Some(b"h2");
            let name = session.server_name().unwrap_or("no name").to_owned();
            let service = service_fn(move |request: Request<Incoming>| {
                let text = format!("{:?} {name} {}", request.version(), request.uri());
                async move { Ok::<_, std::convert::Infallible>(Response::new(Full::<Bytes>::from(text))) }
            });
            let stream = TokioIo::new(stream);
            let _ = match http2 {
                true => {
                    hyper::server::conn::http2::Builder::new(TokioExecutor::new())
                        .serve_connection(stream, service)
                        .await
                }
                false => hyper::server::conn::http1::Builder::new().serve_connection(stream, service).await,
            };
        }
    })
    .await;
    (address, log)
}

fn before(upstream: SocketAddr, host: &str, trusted: UpstreamTls) -> Stage {
    let mut scene = Scene::of(&[&format!("https://{host}:{}", upstream.port())]);
    scene.tls = Some(trusted);
    scene.before(upstream)
}

#[tokio::test]
async fn the_upstream_chooses_the_version_of_http() {
    let authority = Authority::new();
    for (protocols, expected) in [
        (&["h2", "http/1.1"][..], "HTTP/2.0 localhost https://a/x?y"),
        (&["http/1.1"], "HTTP/1.1 localhost /x?y"),
        (&["http/1.1", "h2"], "HTTP/1.1 localhost /x?y"),
        (&[], "HTTP/1.1 localhost /x?y"),
    ] {
        let (upstream, log) = secured(authority.acceptor("localhost", protocols)).await;
        let stage = before(upstream, "localhost", authority.trusted());
        for _ in 0..3 {
            let mut client = Client::to(stage.address).await;
            client.send("GET /x?y HTTP/1.1\r\nhost: a\r\n\r\n").await;
            assert_eq!(client.answer().await.text(), expected, "{protocols:?}");
        }
        assert_eq!(log.connections(), 1, "{protocols:?}");
    }
}

#[tokio::test]
async fn an_upstream_is_known_by_its_address_too() {
    let authority = Authority::new();
    let (upstream, _) = secured(authority.acceptor("127.0.0.1", &["h2"])).await;
    let stage = before(upstream, "127.0.0.1", authority.trusted());
    assert_eq!(Client::to(stage.address).await.get("/").await.text(), "HTTP/2.0 no name https://test/");
}

#[tokio::test]
async fn an_upstream_that_is_not_trusted_is_a_502_that_says_why() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let (untrusted, log) = secured(stranger.acceptor("localhost", &["h2"])).await;
    let (misnamed, _) = secured(authority.acceptor("other.example", &["h2"])).await;
    let plain = raw_upstream(|mut socket| async move {
        let _ = tokio::io::AsyncWriteExt::write_all(&mut socket, b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
    })
    .await;
    for (upstream, why) in
        [(untrusted, "invalid peer certificate"), (misnamed, "not valid for name"), (plain, "received corrupt")]
    {
        let stage = before(upstream, "localhost", authority.trusted());
        let answer = Client::to(stage.address).await.get("/").await;
        assert_eq!(answer.status, 502);
        let detail = answer.problem();
        let begin = format!("the upstream https://localhost:{} cannot be spoken to over TLS: ", upstream.port());
        assert!(detail.starts_with(&begin) && detail.contains(why), "{detail}");
        assert_eq!(stage.metric("tidegate_upstream_failures_total{reason=\"tls\"}"), 1);
    }
    assert_eq!(log.connections(), 0);
}

#[tokio::test]
async fn an_upstream_that_does_not_shake_hands_is_a_504() {
    let upstream = raw_upstream(|socket| async move {
        let _held = socket;
        std::future::pending::<()>().await;
    })
    .await;
    let mut scene = Scene::of(&["https://UPSTREAM"]);
    scene.tls = Some(Authority::new().trusted());
    scene.bounds.upstream.connect_timeout = std::time::Duration::from_millis(100);
    let stage = scene.before(upstream);
    let (mut first, mut second) = (Client::to(stage.address).await, Client::to(stage.address).await);
    for client in [&mut first, &mut second] {
        client.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
    }
    assert_eq!((first.answer().await.status, second.answer().await.status), (504, 504));
}

#[test]
fn a_file_without_authorities_is_refused_with_the_reason() {
    let error = |path: &std::path::Path| UpstreamTls::trusting_file(path).unwrap_err().to_string();
    let empty = tempfile::NamedTempFile::new().unwrap();
    assert_eq!(error(empty.path()), format!("certificates in {}: there are none", empty.path().display()));
    assert!(error("/nowhere/ca.pem".as_ref()).starts_with("certificates in /nowhere/ca.pem: "));
}
