//! WebSockets through the proxy.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

use crate::authority::Authority;
use crate::python::{self, Server, tools};
use crate::support::program::Proxy;

fn talk(proxy: &Proxy) -> String {
    python::run("websocket_client.py", &[format!("ws://{}/chat", proxy.address)])
}

#[test]
fn a_python_client_talks_through_the_proxy_and_a_denied_one_is_told_so() {
    let server = Server::start::<&str>("websocket_server.py", &[]);
    let url = format!("http://127.0.0.1:{}", server.port);
    let proxy = Proxy::start(&["--limit", "2/h", "--upstream", &url]);
    assert_eq!(talk(&proxy), "closed 4000 enough\n");
    assert_eq!(talk(&proxy), "closed 4000 enough\n");
    let denied = talk(&proxy);
    assert!(denied.starts_with("status 429 ") && !denied.contains("None"), "{denied}");
}

#[test]
fn a_client_talks_through_the_proxy_to_a_server_over_tls() {
    let authority = Authority::new();
    let identity = authority.identity("server");
    let server = Server::start("websocket_server.py", &[&identity.certificate, &identity.key]);
    let url = format!("/chat=https://localhost:{}", server.port);
    let ca = authority.file();
    let proxy = Proxy::start(&["--limit", "9/h", "--upstream", &url, "--upstream-ca", ca.to_str().unwrap()]);
    assert_eq!(talk(&proxy), "closed 4000 enough\n");
}

#[test]
fn websocat_talks_through_the_proxy() {
    let server = Server::start::<&str>("websocket_server.py", &[]);
    let url = format!("http://127.0.0.1:{}", server.port);
    let proxy = Proxy::start(&["--limit", "9/h", "--upstream", &url]);
    let program = tools().join("websocat/websocat");
    let mut client = Command::new(&program)
        .arg(format!("ws://{}/chat", proxy.address))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("this test needs websocat (run ./test, which installs it): {error}"));
    let (mut says, mut hears) = (client.stdin.take().unwrap(), BufReader::new(client.stdout.take().unwrap()));
    for word in ["one\n", "two\n", "three\n"] {
        says.write_all(word.as_bytes()).unwrap();
        let mut line = String::new();
        hears.read_line(&mut line).unwrap();
        assert_eq!(line, word);
    }
    assert_eq!(proxy.metrics().value("tidegate_upgraded_connections"), 1);
    drop(says);
    assert!(client.wait().unwrap().success());
}
