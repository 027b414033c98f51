//! How real clients reach the program: curl over HTTP/2 and TLS, unix sockets, and behind a load balancer.

mod support;

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rcgen::{CertifiedKey, KeyPair};
use support::PATIENCE;
use support::program::{Proxy, run};
use tempfile::TempDir;

/// What curl prints for one request: the head, the body, and a line with version, status and whether it verified.
fn curl(arguments: &[&str]) -> String {
    let told = "\n%{http_version} %{http_code} %{ssl_verify_result}";
    let mut command = Command::new("curl");
    command.args(["-s", "-S", "-i", "--max-time", "20", "-w", told]).args(arguments);
    let output = command.output().expect("curl is installed; ./test installs it");
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn pair(name: &str) -> CertifiedKey<KeyPair> {
    rcgen::generate_simple_self_signed([name.to_owned()]).unwrap()
}

/// Writes a certificate and its key into a folder, each file as a whole.
fn write(folder: &Path, pair: &CertifiedKey<KeyPair>) {
    for (name, text) in [("cert.pem", pair.cert.pem()), ("key.pem", pair.signing_key.serialize_pem())] {
        fs::write(folder.join("next"), text).unwrap();
        fs::rename(folder.join("next"), folder.join(name)).unwrap();
    }
}

/// A proxy with TLS, whose certificate is for `a.example` and lies in a folder.
struct Secure {
    folder: TempDir,
    proxy: Proxy,
}

impl Secure {
    fn start(flags: &[&str]) -> Self {
        let folder = TempDir::new().unwrap();
        write(folder.path(), &pair("a.example"));
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        let (cert, key) = (path("cert.pem"), path("key.pem"));
        let proxy = Proxy::start(&[&["--tls-cert", &cert, "--tls-key", &key][..], flags].concat());
        Self { folder, proxy }
    }

    /// Asks as a client that trusts this certificate alone.
    fn ask(&self, trusted: &CertifiedKey<KeyPair>, arguments: &[&str]) -> String {
        let trusted_file = self.folder.path().join("trusted.pem");
        fs::write(&trusted_file, trusted.cert.pem()).unwrap();
        let port = self.proxy.address.port();
        let (to, url) = (format!("a.example:{port}:127.0.0.1"), format!("https://a.example:{port}/"));
        curl(&[&["--cacert", trusted_file.to_str().unwrap(), "--resolve", &to][..], arguments, &[&url]].concat())
    }

    fn metric(&self, series: &str) -> u64 {
        self.proxy.metrics().value(series)
    }

    fn until(&self, series: &str, value: u64) {
        let since = Instant::now();
        while self.metric(series) != value {
            assert!(since.elapsed() < PATIENCE, "{series} never was {value}; it said:\n{}", self.proxy.said());
            thread::sleep(Duration::from_millis(10));
        }
    }
}

#[test]
fn curl_speaks_every_version_with_and_without_tls_and_is_limited_in_each() {
    let proxy = Proxy::start(&["--limit", "2/h"]);
    let url = format!("http://{}/", proxy.address);
    let last = |text: &str| text.lines().last().unwrap_or_default().to_owned();
    assert_eq!(last(&curl(&["--http2-prior-knowledge", &url])), "2 200 0");
    assert_eq!(last(&curl(&["--http1.1", &url])), "1.1 200 0");
    let denied = curl(&["--http2-prior-knowledge", &url]);
    assert!(denied.starts_with("HTTP/2 429") && denied.contains("\nretry-after: "), "{denied}");

    let secure = Secure::start(&["--limit", "3/h"]);
    let port = secure.proxy.address.port();
    let url = format!("https://127.0.0.1:{port}/");
    assert_eq!(last(&curl(&["-k", "--http2", "--tls-max", "1.2", &url])), "2 200 18");
    assert_eq!(last(&curl(&["-k", "--http2", "--tlsv1.3", &url])), "2 200 18");
    assert_eq!(last(&curl(&["-k", "--http1.1", &url])), "1.1 200 18");
    assert!(curl(&["-k", "--http2", &url]).starts_with("HTTP/2 429"));
    let clear = curl(&[&format!("http://127.0.0.1:{port}/")]);
    assert!(clear.starts_with("HTTP/1.1 400") && clear.contains("https://"), "{clear}");
}

#[test]
fn a_unix_socket_and_several_ports_are_served_side_by_side() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("tidegate.sock");
    let (socket, second) = (format!("unix:{}:600", path.display()), "127.0.0.1:0");
    let mut proxy = Proxy::start(&["--limit", "2/h", "--listen", &socket, "--listen", second, "--workers", "2"]);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let ask = || curl(&["--unix-socket", path.to_str().unwrap(), "http://localhost/"]);
    assert!(ask().starts_with("HTTP/1.1 200") && ask().starts_with("HTTP/1.1 200"));
    // All who come by the socket are one client, and those who come by a port are others.
    assert!(ask().starts_with("HTTP/1.1 429"));
    assert!(curl(&[&format!("http://{}/", proxy.address)]).starts_with("HTTP/1.1 200"));
    proxy.signal("TERM");
    assert!(proxy.ended().success() && !path.exists());
}

#[test]
fn the_client_of_a_load_balancer_is_whom_its_header_names() {
    let flags = ["--limit", "1/h", "--proxy-protocol", "any", "--trust", "loopback"];
    let proxy = Proxy::start(&flags);
    let url = format!("http://{}/", proxy.address);
    let named = curl(&["--haproxy-protocol", &url]);
    assert!(named.starts_with("HTTP/1.1 200"), "{named}");
    assert!(curl(&["--haproxy-protocol", "--http2-prior-knowledge", &url]).starts_with("HTTP/2 429"));
    assert!(!curl(&[&url]).starts_with("HTTP"), "without the header there is no answer");
    let refused = run(&["proxy", "--limit", "1/h", "--proxy-protocol", "v1"]);
    assert!(refused.code == Some(2) && refused.err.contains("--trust"), "{refused:?}");
}

#[test]
fn certificates_are_replaced_while_clients_come_and_go() {
    let secure = Secure::start(&["--limit", "1000000/h"]);
    let [second, third] = [pair("a.example"), pair("a.example")];
    let url = format!("https://127.0.0.1:{}/", secure.proxy.address.port());
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let client = scope.spawn(|| {
            let mut asked = 0;
            while !stop.load(Ordering::Relaxed) {
                assert!(curl(&["-k", "--http2", &url]).starts_with("HTTP/2 200"));
                asked += 1;
            }
            asked
        });
        write(secure.folder.path(), &second);
        secure.until("tidegate_tls_reloads_total{result=\"applied\"}", 1);
        assert!(secure.ask(&second, &[]).starts_with("HTTP/2 200"));

        // A bad pair leaves the old one in use, and is told.
        fs::write(secure.folder.path().join("key.pem"), third.signing_key.serialize_pem()).unwrap();
        secure.proxy.signal("HUP");
        secure.until("tidegate_tls_reloads_total{result=\"failed\"}", 1);
        assert_eq!(secure.metric("tidegate_tls_last_reload_successful"), 0);
        secure.proxy.wait_for("its key is not that of the certificate");
        assert!(secure.ask(&second, &[]).starts_with("HTTP/2 200"));

        // A link that leads elsewhere is a change like any other.
        let elsewhere = TempDir::new_in(secure.folder.path()).unwrap();
        write(elsewhere.path(), &third);
        for name in ["cert.pem", "key.pem"] {
            symlink(elsewhere.path().join(name), secure.folder.path().join("link")).unwrap();
            fs::rename(secure.folder.path().join("link"), secure.folder.path().join(name)).unwrap();
        }
        secure.until("tidegate_tls_last_reload_successful", 1);
        assert!(secure.ask(&third, &[]).starts_with("HTTP/2 200"));
        stop.store(true, Ordering::Relaxed);
        assert!(client.join().unwrap() > 0);
    });
}

#[test]
fn what_is_wrong_with_the_files_is_said_at_the_start() {
    let folder = TempDir::new().unwrap();
    write(folder.path(), &pair("a.example"));
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let check = |flags: &[&str], expect: &str| {
        let ended = run(&[&["proxy", "--limit", "1/h", "--listen", "127.0.0.1:0", "--admin", "off"], flags].concat());
        assert!(ended.code == Some(2) && ended.err.contains(expect), "{ended:?}");
    };
    let (cert, key, missing) = (path("cert.pem"), path("key.pem"), path("missing.pem"));
    check(&["--tls-cert", &cert], "each --tls-cert has a --tls-key");
    check(&["--tls-cert", &missing, "--tls-key", &key], &format!("cannot read {missing}: No such file"));
    check(&["--tls-cert", &key, "--tls-key", &key], &format!("cannot use {key}: there is no certificate in it"));
    check(&["--tls-cert", &cert, "--tls-key", &cert], &format!("cannot use {cert}: there is no private key in it"));
    check(&["--trust", "file:missing.txt"], "cannot read the trusted networks in missing.txt");
}

#[test]
fn a_file_of_trusted_networks_is_read_anew_with_the_configuration() {
    let folder = TempDir::new().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("networks.txt", "# the balancer's\n192.0.2.0/24\n");
    write(
        "tidegate.toml",
        "[client]\ntrust = \"file:networks.txt\"\n\n[[policies]]\nname = \"api\"\nlimits = \"1/h\"\n",
    );
    let proxy = Proxy::start_in(folder.path(), &["--config", "tidegate.toml"]);
    let url = format!("http://{}/", proxy.address);
    let asked = |ip: &str| curl(&["-H", &format!("x-forwarded-for: {ip}"), &url]);
    assert!(asked("203.0.113.1").starts_with("HTTP/1.1 200") && asked("203.0.113.2").starts_with("HTTP/1.1 429"));
    write("networks.txt", "192.0.2.0/24\n127.0.0.0/8 # and this machine\n");
    proxy.signal("HUP");
    proxy.wait_for("was read anew");
    assert!(asked("203.0.113.3").starts_with("HTTP/1.1 200") && asked("203.0.113.3").starts_with("HTTP/1.1 429"));
    write("networks.txt", "127.0.0.1/8\n");
    proxy.signal("HUP");
    proxy.wait_for("networks.txt:1: `127.0.0.1/8`");
    assert!(asked("203.0.113.4").starts_with("HTTP/1.1 200"), "what was in force goes on");
}
