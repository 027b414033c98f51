//! A gRPC client of Python that calls a gRPC server of Python through the proxy, on clear text and over TLS on both sides.

use crate::authority::Authority;
use crate::python::{self, Server};
use crate::support::program::Proxy;

const CHECKS: &str = "check_unary\ncheck_failure\ncheck_streams\ncheck_talk\ncheck_many_at_once\ncheck_deadline\n\
                      check_cancel\n";

#[test]
fn calls_of_all_kinds_pass_through_the_proxy_over_tls_on_both_sides() {
    let authority = Authority::new();
    let identity = authority.identity("server");
    let server = Server::start("grpc_server.py", &[&identity.certificate, &identity.key]);
    let (url, ca) = (format!("https://localhost:{}", server.port), authority.file());
    let [ca, certificate, key] = [&ca, &identity.certificate, &identity.key].map(|file| file.to_str().unwrap());
    let flags = ["--limit", "100000/h", "--upstream", &url, "--upstream-ca", ca];
    let proxy = Proxy::start(&[&flags[..], &["--tls-cert", certificate, "--tls-key", key]].concat());
    let target = format!("localhost:{}", proxy.address.port());
    assert_eq!(python::run("grpc_client.py", &[target.as_str(), ca]), CHECKS);
    // One was cancelled by its client, and one by its deadline.
    assert_eq!((server.line().as_str(), server.line().as_str()), ("cancelled", "cancelled"));
}

#[test]
fn calls_of_all_kinds_pass_through_the_proxy_to_a_server_on_clear_text() {
    let server = Server::start::<&str>("grpc_server.py", &[]);
    let url = format!("/test.Bytes=h2c://127.0.0.1:{}", server.port);
    let proxy = Proxy::start(&["--limit", "100000/h", "--upstream", &url]);
    assert_eq!(python::run("grpc_client.py", &[proxy.address.to_string()]), CHECKS);
    assert_eq!((server.line().as_str(), server.line().as_str()), ("cancelled", "cancelled"));
}
