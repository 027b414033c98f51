//! How clients come in: TLS, the PROXY protocol, unix sockets.

use std::num::NonZeroUsize;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore, SupportedProtocolVersion, crypto::ring, version};
use tidegate_server::{Bounds, Drain, Entrance, Jokes, ListenAddress, Pem, ProxyProtocol, Setup, Tls, serve_all};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsConnector;

use crate::support::{Client, Scene, Stage, eventually, upstream};

/// An upstream that says what it got, and the proxy before it.
async fn stage(scene: Scene) -> Stage {
    let (upstream, _) = upstream(|request: Request<Incoming>| async move {
        Response::new(Full::<Bytes>::from(format!("{:?}", request.headers())))
    })
    .await;
    scene.before(upstream)
}

/// A certificate for these names, by itself; and its files.
fn certificate(names: &[&str]) -> (CertificateDer<'static>, Pem) {
    let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
    let made = rcgen::generate_simple_self_signed(names).unwrap();
    let pem = Pem { chain: made.cert.pem().into_bytes(), key: made.signing_key.serialize_pem().into_bytes() };
    (made.cert.der().clone(), pem)
}

fn connector(
    trusted: &[&CertificateDer<'static>],
    versions: &[&'static SupportedProtocolVersion],
    alpn: &[&[u8]],
) -> TlsConnector {
    let mut roots = RootCertStore::empty();
    trusted.iter().for_each(|one| roots.add((*one).clone()).unwrap());
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let mut config =
        config.with_protocol_versions(versions).unwrap().with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
    TlsConnector::from(Arc::new(config))
}

/// Everything that comes back for one request, after which the connection is closed.
async fn ask(mut socket: impl AsyncRead + AsyncWrite + Unpin, before: &str) -> String {
    let request = format!("{before}GET / HTTP/1.1\r\nhost: a.example\r\nconnection: close\r\n\r\n");
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let _ = socket.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}

async fn ask_over_tls(stage: &Stage, connector: &TlsConnector, name: &'static str) -> std::io::Result<String> {
    let socket = TcpStream::connect(stage.address).await?;
    let socket = connector.connect(ServerName::try_from(name).unwrap(), socket).await?;
    Ok(ask(socket, "").await)
}

fn secure(tls: Tls) -> Scene {
    Scene { entrance: Entrance { tls: Some(tls), ..Entrance::default() }, ..Scene::default() }
}

#[tokio::test]
async fn clients_may_speak_either_version_of_tls_and_are_told_apart_from_clear_text() {
    let (trusted, pem) = certificate(&["a.example"]);
    let stage = stage(secure(Tls::new(&[pem]).unwrap())).await;
    for version in [&version::TLS12, &version::TLS13] {
        for alpn in [&[][..], &[b"http/1.1".as_slice()]] {
            let answer = ask_over_tls(&stage, &connector(&[&trusted], &[version], alpn), "a.example").await.unwrap();
            assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
            assert!(answer.contains(r#""x-forwarded-proto": "https""#), "{answer}");
        }
    }
    assert_eq!(stage.metric("tidegate_connections_by_protocol_total{version=\"1.1\",tls=\"yes\"}"), 4);
}

/// Asks on a connection, lets it rest, and asks again; both answers.
async fn ask_around_a_rest(mut socket: impl AsyncRead + AsyncWrite + Unpin) -> String {
    socket.write_all(b"GET / HTTP/1.1\r\nhost: a.example\r\n\r\n").await.unwrap();
    let mut answers = vec![0; 4096];
    let length = socket.read(&mut answers).await.unwrap();
    answers.truncate(length);
    tokio::time::sleep(Duration::from_secs(7)).await;
    String::from_utf8_lossy(&answers).into_owned() + &ask(socket, "").await
}

#[tokio::test]
async fn a_connection_that_rested_goes_on() {
    let (trusted, pem) = certificate(&["a.example"]);
    let clear = stage(Scene::default()).await;
    let secure = stage(secure(Tls::new(&[pem]).unwrap())).await;
    let connector = connector(&[&trusted], &[&version::TLS13], &[]);
    let socket = TcpStream::connect(secure.address).await.unwrap();
    let socket = connector.connect(ServerName::try_from("a.example").unwrap(), socket).await.unwrap();
    let rested =
        tokio::join!(ask_around_a_rest(TcpStream::connect(clear.address).await.unwrap()), ask_around_a_rest(socket));
    for answers in [rested.0, rested.1] {
        assert_eq!(answers.matches("HTTP/1.1 200 OK").count(), 2, "{answers}");
    }
    assert_eq!(clear.metric("tidegate_connections_accepted_total"), 1);
}

#[tokio::test]
async fn http2_is_agreed_in_the_handshake() {
    let (trusted, pem) = certificate(&["a.example"]);
    let stage = stage(secure(Tls::new(&[pem]).unwrap())).await;
    let socket = TcpStream::connect(stage.address).await.unwrap();
    let connector = connector(&[&trusted], &[&version::TLS13], &[b"h2", b"http/1.1"]);
    let socket = connector.connect(ServerName::try_from("a.example").unwrap(), socket).await.unwrap();
    assert_eq!(socket.get_ref().1.alpn_protocol(), Some(b"h2".as_slice()));
    let io = hyper_util::rt::TokioIo::new(socket);
    let executor = hyper_util::rt::TokioExecutor::new();
    let (mut sender, connection) = hyper::client::conn::http2::handshake(executor, io).await.unwrap();
    tokio::spawn(connection);
    let request = Request::get("https://a.example/").body(Full::<Bytes>::default()).unwrap();
    let answer = sender.send_request(request).await.unwrap();
    assert_eq!((answer.status().as_u16(), answer.version()), (200, http::Version::HTTP_2));
    assert_eq!(stage.metric("tidegate_connections_by_protocol_total{version=\"2\",tls=\"yes\"}"), 1);
}

#[tokio::test]
async fn certificates_are_chosen_by_name_and_replaced() {
    let [(a, pem_a), (b, pem_b), (c, pem_c)] =
        [["a.example"], ["*.b.example"], ["a.example"]].map(|names| certificate(&names));
    let tls = Tls::new(&[pem_a.clone(), pem_b.clone()]).unwrap();
    let stage = stage(secure(tls.clone())).await;
    let asked = async |trusted: &CertificateDer<'static>, name| {
        ask_over_tls(&stage, &connector(&[trusted], &[&version::TLS13], &[]), name).await.is_ok()
    };
    assert!(asked(&a, "a.example").await && asked(&b, "www.b.example").await && !asked(&b, "b.example").await);
    tls.replace(&[pem_c, pem_b.clone()]).unwrap();
    assert!(asked(&c, "a.example").await && !asked(&a, "a.example").await && asked(&b, "www.b.example").await);
    // What cannot be used changes nothing.
    let error = tls.replace(&[Pem { key: pem_b.key, ..pem_a }]).unwrap_err();
    assert_eq!((error.place, error.to_string().as_str()), (0, "its key is not that of the certificate"));
    assert!(asked(&c, "a.example").await);
    eventually("the failures are counted", || stage.metric("tidegate_connections_refused_total{reason=\"tls\"}") >= 2)
        .await;
}

#[test]
fn what_is_wrong_with_a_pair_is_said() {
    let (_, pem) = certificate(&["a.example"]);
    let check = |chain: &[u8], key: &[u8], expect: &str| {
        let error = Tls::new(&[Pem { chain: chain.to_vec(), key: key.to_vec() }]).unwrap_err();
        assert_eq!(error.to_string(), expect);
    };
    check(b"", &pem.key, "there is no certificate in it");
    check(&pem.key, &pem.key, "there is no certificate in it");
    check(&pem.chain, &pem.chain, "there is no private key in it");
    check(
        &pem.chain,
        b"-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n",
        "its key is encrypted; it must be without a passphrase",
    );
    assert!(Tls::new(&[]).is_err());
}

#[tokio::test]
async fn clear_text_where_tls_is_expected_is_told_so() {
    let (_, pem) = certificate(&["a.example"]);
    let stage = stage(secure(Tls::new(&[pem]).unwrap())).await;
    let answer = ask(TcpStream::connect(stage.address).await.unwrap(), "").await;
    assert!(answer.starts_with("HTTP/1.1 400 ") && answer.ends_with("https://\n"), "{answer}");
    // A handshake that is none, too.
    let mut client = Client::to(stage.address).await;
    client.send(b"\x16\x03\x01\x00\x05hello").await;
    client.rest().await;
    eventually("they are counted", || stage.metric("tidegate_connections_refused_total{reason=\"tls\"}") == 2).await;
}

#[tokio::test]
async fn a_handshake_that_does_not_end_is_cut() {
    let (_, pem) = certificate(&["a.example"]);
    let bounds = Bounds { header_timeout: Duration::from_millis(50), ..Bounds::default() };
    let stage = stage(Scene { bounds, ..secure(Tls::new(&[pem]).unwrap()) }).await;
    let mut client = Client::to(stage.address).await;
    client.send(b"\x16\x03\x01\x02\x00\x01").await;
    assert_eq!(client.rest().await, "");
    eventually("it is counted", || stage.metric("tidegate_connections_too_slow_total") == 1).await;
}

fn introduced(trust: &'static str) -> Scene {
    let believed = if trust.is_empty() { tidegate_server::Trust::default() } else { trust.parse().unwrap() };
    let entrance = Entrance { proxy_protocol: ProxyProtocol::Any, trust: believed.into(), ..Entrance::default() };
    Scene { entrance, trust, ..Scene::default() }
}

#[tokio::test]
async fn a_header_says_who_the_client_is() {
    let stage = stage(introduced("loopback")).await;
    let connect = || async { TcpStream::connect(stage.address).await.unwrap() };
    let answer = ask(connect().await, "PROXY TCP4 203.0.113.7 198.51.100.1 56324 80\r\n").await;
    assert!(answer.contains(r#""x-forwarded-for": "203.0.113.7""#), "{answer}");
    let v2 = "\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\x01\x02\x03\x04\x05\x06\x07\x08\0\x01\0\x02";
    let answer = ask(connect().await, v2).await;
    assert!(answer.contains(r#""x-forwarded-for": "1.2.3.4""#), "{answer}");
    let answer = ask(connect().await, "PROXY UNKNOWN\r\n").await;
    assert!(answer.contains(r#""x-forwarded-for": "127.0.0.1""#), "{answer}");
}

#[tokio::test]
async fn a_header_may_come_in_pieces() {
    let stage = stage(introduced("loopback")).await;
    let mut client = Client::to(stage.address).await;
    for byte in b"PROXY TCP6 2001:db8::7 ::1 1 2\r\n" {
        client.send([*byte]).await;
        tokio::task::yield_now().await;
    }
    let answer = client.get("/").await;
    assert!(answer.text().contains(r#""x-forwarded-for": "2001:db8::7""#), "{answer:?}");
}

#[tokio::test]
async fn whoever_is_not_trusted_or_not_introduced_is_refused() {
    let refused = |stage: &Stage, reason: &str| {
        stage.metric(&format!("tidegate_connections_refused_total{{reason=\"{reason}\"}}"))
    };
    let header = "PROXY TCP4 203.0.113.7 198.51.100.1 56324 80\r\n";
    for trust in ["", "192.0.2.0/24"] {
        let stage = stage(introduced(trust)).await;
        assert_eq!(ask(TcpStream::connect(stage.address).await.unwrap(), header).await, "");
        eventually("it is counted", || refused(&stage, "untrusted") == 1).await;
    }
    let stage = stage(introduced("loopback")).await;
    for wrong in ["", "PROXY TCP4 203.0.113.7 198.51.100.1 56324\r\n", "proxy UNKNOWN\r\n"] {
        assert_eq!(ask(TcpStream::connect(stage.address).await.unwrap(), wrong).await, "");
    }
    eventually("they are counted", || refused(&stage, "proxy-header") == 3).await;
}

#[tokio::test]
async fn a_header_goes_before_tls() {
    let (trusted, pem) = certificate(&["a.example"]);
    let mut scene = introduced("loopback");
    scene.entrance.tls = Some(Tls::new(&[pem]).unwrap());
    let stage = stage(scene).await;
    let mut socket = TcpStream::connect(stage.address).await.unwrap();
    socket.write_all(b"PROXY TCP4 203.0.113.7 198.51.100.1 56324 443\r\n").await.unwrap();
    let connector = connector(&[&trusted], &[&version::TLS13], &[]);
    let socket = connector.connect(ServerName::try_from("a.example").unwrap(), socket).await.unwrap();
    let answer = ask(socket, "").await;
    assert!(answer.contains(r#""x-forwarded-for": "203.0.113.7""#) && answer.contains(r#""https""#), "{answer}");
}

#[tokio::test]
async fn a_unix_socket_and_a_port_are_served_side_by_side_until_the_end() {
    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join("socket");
    let one = NonZeroUsize::MIN;
    let mut listeners = format!("unix:{}", path.display()).parse::<ListenAddress>().unwrap().bind(one).unwrap();
    listeners.extend("127.0.0.1:0".parse::<ListenAddress>().unwrap().bind(one).unwrap());
    let address = listeners[1].local_addr().unwrap().unwrap();
    let drain = Drain::new();
    let served = tokio::spawn(serve_all(listeners, Jokes::new(|| 0), Setup::default(), drain.started()));
    for _ in 0..3 {
        assert!(ask(UnixStream::connect(&path).await.unwrap(), "").await.starts_with("HTTP/1.1 200 "));
        assert!(ask(TcpStream::connect(address).await.unwrap(), "").await.starts_with("HTTP/1.1 200 "));
    }
    drain.start();
    served.await.unwrap().unwrap();
    assert!(!path.exists() && StdUnixStream::connect(&path).is_err());
}
