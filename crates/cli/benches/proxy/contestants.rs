//! Who is measured: nginx, HAProxy where it is installed, and we, each with one worker before the same upstream.
//!
//! All of them are set to do the same: one limit by the header `x-api-key`, connections kept open on both sides, no
//! access log. Over TLS they show the same certificate, and speak HTTP/1.1 in it.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use crate::client;
use crate::process::{Server, free_address};

/// Debian puts servers where a user's path does not lead.
pub(crate) const NGINX: &str = "/usr/sbin/nginx";
pub(crate) const HAPROXY: &str = "/usr/sbin/haproxy";

const CERTIFICATE: &str = "certificate.pem";
const KEY: &str = "key.pem";

/// How the callers connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wire {
    Plain,
    Tls,
}

/// How strict the limit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Strictness {
    /// A thousand a second for each key: nobody is denied.
    Generous,
    /// One a minute for each key: nearly everybody is denied.
    Strict,
}

/// Where configurations, a certificate and sockets are put; it is removed at the end.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> io::Result<Self> {
        let path = std::env::temp_dir().join(format!("tidegate-bench-{}", std::process::id()));
        fs::create_dir_all(&path)?;
        let folder = Self(path);
        let own = rcgen::generate_simple_self_signed([client::HOST.to_owned()]).map_err(io::Error::other)?;
        folder.write(CERTIFICATE, &own.cert.pem())?;
        folder.write(KEY, &own.signing_key.serialize_pem())?;
        Ok(folder)
    }

    /// The certificate that callers trust.
    pub(crate) fn certificate(&self) -> io::Result<CertificateDer<'static>> {
        CertificateDer::from_pem_file(self.0.join(CERTIFICATE)).map_err(io::Error::other)
    }

    fn write(&self, name: &str, text: &str) -> io::Result<PathBuf> {
        let path = self.0.join(name);
        fs::write(&path, text)?;
        Ok(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What cannot be removed is small.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// What stands behind all of them.
pub(crate) fn upstream(folder: &Folder) -> io::Result<Server> {
    let address = free_address()?;
    nginx(folder, address, Wire::Plain, "", r#"default_type text/plain; return 200 "hello\n";"#)
}

/// nginx with `limit_req`, as its documentation sets up a proxy with connections that are kept.
pub(crate) fn nginx_limiting(
    folder: &Folder,
    upstream: SocketAddr,
    wire: Wire,
    strictness: Strictness,
) -> io::Result<Server> {
    let (rate, burst) = match strictness {
        Strictness::Generous => ("1000r/s", "burst=1000 nodelay"),
        Strictness::Strict => ("1r/m", ""),
    };
    let http = format!(
        "limit_req_zone $http_x_api_key zone=keys:32m rate={rate};
         limit_req_status 429;
         upstream api {{ server {upstream}; keepalive 64; keepalive_requests 1000000000; }}"
    );
    let location = format!(
        r#"limit_req zone=keys {burst};
           proxy_pass http://api;
           proxy_http_version 1.1;
           proxy_set_header Connection "";"#
    );
    nginx(folder, free_address()?, wire, &http, &location)
}

/// nginx in one process, which is its worker.
fn nginx(folder: &Folder, address: SocketAddr, wire: Wire, http: &str, location: &str) -> io::Result<Server> {
    let name = format!("nginx-{}", address.port());
    let path = folder.0.display();
    let tls = match wire {
        Wire::Plain => String::new(),
        Wire::Tls => {
            format!(
                "ssl; ssl_protocols TLSv1.3; ssl_certificate {path}/{CERTIFICATE}; ssl_certificate_key {path}/{KEY}"
            )
        }
    };
    let configuration = folder.write(
        &format!("{name}.conf"),
        &format!(
            "daemon off;
             master_process off;
             pid {path}/{name}.pid;
             error_log /dev/null emerg;
             events {{ worker_connections 1024; }}
             http {{
                 access_log off;
                 client_body_temp_path {path}/{name}-body;
                 proxy_temp_path {path}/{name}-proxy;
                 fastcgi_temp_path {path}/{name}-fastcgi;
                 uwsgi_temp_path {path}/{name}-uwsgi;
                 scgi_temp_path {path}/{name}-scgi;
                 keepalive_requests 1000000000;
                 {http}
                 server {{ listen {address} {tls}; location / {{ {location} }} }}
             }}"
        ),
    )?;
    let mut command = Command::new(NGINX);
    command.arg("-e").arg("/dev/null").arg("-c").arg(configuration);
    Server::start(command, address)
}

/// HAProxy with a stick table; it counts in a sliding window, so a strict limit allows one in a minute.
pub(crate) fn haproxy_limiting(folder: &Folder, upstream: SocketAddr, strictness: Strictness) -> io::Result<Server> {
    let address = free_address()?;
    let (period, allowed) = match strictness {
        Strictness::Generous => ("1s", 1000),
        Strictness::Strict => ("60s", 1),
    };
    let configuration = folder.write(
        &format!("haproxy-{}.cfg", address.port()),
        &format!(
            "global
                 nbthread 1
                 maxconn 4096
             defaults
                 mode http
                 timeout connect 5s
                 timeout client 60s
                 timeout server 60s
                 http-reuse always
             frontend api
                 bind {address}
                 stick-table type string len 32 size 200k expire 2m store http_req_rate({period})
                 http-request track-sc0 hdr(x-api-key)
                 http-request deny deny_status 429 if {{ sc_http_req_rate(0) gt {allowed} }}
                 default_backend upstream
             backend upstream
                 server one {upstream}\n"
        ),
    )?;
    let mut command = Command::new(HAPROXY);
    command.arg("-db").arg("-q").arg("-f").arg(configuration);
    Server::start(command, address)
}

/// The proxy that is measured for.
pub(crate) fn tidegate(
    folder: &Folder,
    upstream: SocketAddr,
    wire: Wire,
    strictness: Strictness,
) -> io::Result<Server> {
    let limit = if strictness == Strictness::Strict { "1/min" } else { "1000/s" };
    tidegate_with(folder, upstream, wire, &["--key", "header:x-api-key", "--limit", limit])
}

/// The same without a limit.
pub(crate) fn tidegate_unlimited(folder: &Folder, upstream: SocketAddr) -> io::Result<Server> {
    tidegate_with(folder, upstream, Wire::Plain, &["--key", "header:x-api-key", "--limit", "unlimited"])
}

/// The same with policies from a file: three that apply to each request, and two that are looked at.
pub(crate) fn tidegate_by_file(folder: &Folder, upstream: SocketAddr) -> io::Result<Server> {
    let file = folder.write(
        "policies.toml",
        r#"[[policies]]
           name = "everybody"
           key = "global"
           limits = "1000000/s"

           [[policies]]
           name = "by-client"
           limits = "1000000/s"

           [[policies]]
           name = "by-key"
           key = "header:x-api-key"
           limits = "1000/s"

           [[policies]]
           name = "log-in"
           match = { method = "POST", path = "/login" }
           limits = "10/min"

           [[policies]]
           name = "dear"
           match = { path = "/search/*" }
           cost = 10
           limits = "100/min"
        "#,
    )?;
    tidegate_with(folder, upstream, Wire::Plain, &["--config", &file.display().to_string()])
}

fn tidegate_with(folder: &Folder, upstream: SocketAddr, wire: Wire, limits: &[&str]) -> io::Result<Server> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    command.current_dir(&folder.0).args(["proxy", "--workers", "1", "--listen", "127.0.0.1:0", "--admin", "off"]);
    command.args(limits).arg("--upstream").arg(format!("http://{upstream}"));
    if wire == Wire::Tls {
        command.args(["--tls-cert", CERTIFICATE, "--tls-key", KEY]);
    }
    Server::start_announced(command)
}
