//! The service over TLS: by a client that verifies its certificate, and by a real Envoy that does.

use std::fs;

use crate::authority::Authority;
use crate::page::snippet;
use crate::proxy::Envoy;
use crate::python;
use crate::server::{Asked, written};
use crate::support::nginx::Nginx;

const RULES: &str = "domain: d\ndescriptors:\n  - {key: k, rate_limit: {unit: day, requests_per_unit: 10}}\n";
const AGREED: &str = "whoever believes the authority is served\nnew connections have the new certificate\n\
                      the old connection goes on\n";

fn over_tls(authority: &Authority, name: &str, rules: &str) -> Asked {
    let (identity, rules) = (authority.identity(name), written(authority.folder(), "d.yaml", rules));
    let [certificate, key] = [&identity.certificate, &identity.key].map(|file| file.to_str().unwrap());
    Asked::by(&rules, &["--tls-cert", certificate, "--tls-key", key])
}

#[test]
fn a_client_verifies_the_certificate_that_is_in_use() {
    let (old, new) = (Authority::new(), Authority::new());
    let next = new.identity("next");
    let asked = over_tls(&old, "served", RULES);
    let folder = old.folder();
    for (from, to) in
        [(old.file(), "old.ca"), (new.file(), "new.ca"), (next.certificate, "next.pem"), (next.key, "next.key")]
    {
        fs::copy(from, folder.join(to)).unwrap();
    }
    // The port is the same on every address, and the certificate is for this name too.
    let target = format!("localhost:{}", asked.grpc.port());
    assert_eq!(python::run("../envoy/secure.py", &[target.as_ref(), folder.as_os_str()]), AGREED);
    let metrics = asked.server.metrics();
    assert!(metrics.value("tidegate_connections_by_protocol_total{version=\"2\",tls=\"yes\"}") >= 2);
    assert_eq!(metrics.value("tidegate_tls_reloads_total{result=\"applied\"}"), 1);
}

#[test]
fn envoy_asks_over_tls_and_believes_nobody_else() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let rules =
        "domain: edge\ndescriptors:\n  - {key: remote_address, rate_limit: {unit: day, requests_per_unit: 2}}\n";
    let (asked, nginx) = (over_tls(&authority, "served", rules), Nginx::start());
    let trusting = |authority: &Authority| {
        let file = authority.file();
        let tls = snippet("envoy.yaml, of the cluster").replace("/etc/tidegate/ca.pem", file.to_str().unwrap());
        let cluster = "    - name: tidegate\n";
        let changes =
            [(cluster, format!("{cluster}{tls}")), ("failure_mode_deny: false", "failure_mode_deny: true".to_owned())];
        Envoy::start(asked.grpc, &nginx, &changes.each_ref().map(|(from, to)| (*from, to.as_str())))
    };
    let statuses = |envoy: &Envoy| [(); 3].map(|()| envoy.get(&[]).status);
    assert_eq!(statuses(&trusting(&authority)), [200, 200, 429]);
    assert_eq!(statuses(&trusting(&stranger)), [500, 500, 500]);
    assert_eq!(nginx.requests(), 2);
}
