//! An nginx that is reached over TLS.

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::authority::Authority;
use crate::support::http::get;
use crate::support::program::Proxy;
use crate::support::{PATIENCE, free_address};

/// A port that was free may be taken before nginx has it.
const TRIES_MAX: usize = 5;

/// An nginx that says by which protocol, name and host it was asked, ended with the test.
struct Nginx {
    child: Child,
    address: SocketAddr,
}

impl Nginx {
    fn start(authority: &Authority, http2: &str) -> Self {
        authority.identity("nginx");
        (0..TRIES_MAX).find_map(|_| Self::try_start(authority.folder(), http2)).expect("nginx starts on a free port")
    }

    fn try_start(folder: &Path, http2: &str) -> Option<Self> {
        let address = free_address();
        fs::write(folder.join("nginx.conf"), configuration(address, http2)).unwrap();
        let debian = Path::new("/usr/sbin/nginx");
        let mut command = if debian.exists() { Command::new(debian) } else { Command::new("nginx") };
        command.arg("-p").arg(folder).args(["-c", "nginx.conf", "-e", "error.log"]).stderr(Stdio::null());
        let child = command.spawn().unwrap_or_else(|error| {
            panic!("these tests need nginx (`apt-get install nginx`, or run ./test, which installs it): {error}")
        });
        let mut nginx = Self { child, address };
        let since = Instant::now();
        while since.elapsed() < PATIENCE && nginx.child.try_wait().unwrap().is_none() {
            if TcpStream::connect(address).is_ok() {
                return Some(nginx);
            }
            thread::sleep(Duration::from_millis(5));
        }
        None
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // It is one process, so nothing of it stays.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn configuration(address: SocketAddr, http2: &str) -> String {
    let kinds = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
    let folders: String = kinds.iter().map(|kind| format!("    {kind}_temp_path {kind};\n")).collect();
    format!(
        "daemon off;
master_process off;
pid nginx.pid;
error_log error.log;
events {{ worker_connections 1024; }}
http {{
{folders}    access_log off;
    server {{
        listen {address} ssl {http2};
        ssl_certificate nginx.pem;
        ssl_certificate_key nginx.key;
        location / {{ return 200 \"$server_protocol $ssl_server_name $http_host $connection $request_uri\"; }}
    }}
}}
"
    )
}

/// Asks twice; both answers, without the number of the connection, if it was the same one.
fn asked(proxy: &Proxy, port: u16) -> String {
    let [first, second] = [(); 2].map(|()| get(proxy.address, "/a?b"));
    assert_eq!((first.status, first.text()), (200, second.text()), "one connection serves both");
    let words: Vec<_> = first.text().split(' ').collect();
    let [protocol, name, host, _, target] = words[..] else { panic!("{first:?}") };
    format!("{protocol} {name} {} {target}", host.replace(&port.to_string(), "PORT"))
}

#[test]
fn nginx_is_reached_over_tls_in_both_versions_of_http() {
    let authority = Authority::new();
    let ca = authority.file();
    for (http2, protocol) in [("http2", "HTTP/2.0"), ("", "HTTP/1.1")] {
        let nginx = Nginx::start(&authority, http2);
        let port = nginx.address.port();
        let url = format!("https://localhost:{port}");
        let flags = ["--limit", "9/h", "--upstream", &url, "--upstream-ca", ca.to_str().unwrap(), "--workers", "1"];
        let proxy = Proxy::start(&[&flags[..], &["--upstream-host", "upstream"]].concat());
        assert_eq!(asked(&proxy, port), format!("{protocol} localhost localhost:PORT /a?b"));
    }
}

#[test]
fn nginx_is_not_spoken_to_if_the_system_does_not_trust_it() {
    let authority = Authority::new();
    let nginx = Nginx::start(&authority, "http2");
    let url = format!("https://localhost:{}", nginx.address.port());
    let proxy = Proxy::start(&["--limit", "9/h", "--upstream", &url]);
    let answer = get(proxy.address, "/");
    let detail = answer.json()["detail"].as_str().unwrap().to_owned();
    let expected = format!("the upstream {url} cannot be spoken to over TLS: invalid peer certificate: UnknownIssuer");
    assert_eq!((answer.status, detail), (502, expected));
    assert_eq!(proxy.metrics().value("tidegate_upstream_failures_total{reason=\"tls\"}"), 1);
}
