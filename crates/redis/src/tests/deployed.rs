//! One server in all the ways it can be reached, and a service that sentinels watch.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use tidegate_core::{Charge, Cost};
use tokio::time::{Instant, sleep};

use super::sentinel::Sentinel;
use super::server::{Kind, Server, free_port, in_step, until};
use super::sharing::{ask, charge};
use crate::{FailureKind, RedisOptions, RedisStore, SetupError, StoreError, TlsError, TlsFiles};

fn options() -> RedisOptions {
    RedisOptions { deadline: Duration::from_secs(5), ..RedisOptions::default() }
}

fn store(url: &str) -> RedisStore {
    RedisStore::new(url, options()).unwrap()
}

async fn passes(store: &RedisStore, key: &[u8]) -> bool {
    ask(store, charge("10/day", key)).await.unwrap().is_allowed()
}

fn address(server: &Server) -> String {
    format!("127.0.0.1:{}", server.port())
}

#[tokio::test]
async fn a_database_a_protocol_and_a_socket_are_what_the_url_says() {
    for kind in Kind::ALL {
        let socket = tempfile::tempdir().unwrap();
        let path = socket.path().join("redis.sock");
        let path = path.to_str().unwrap();
        let server = Server::start_with(kind, &["--unixsocket", path]);
        let url = server.url();
        let socket = format!("redis+unix://{path}?db=6");
        for (database, url) in [(5, format!("{url}/5")), (7, format!("{url}/7?protocol=resp3")), (6, socket)] {
            let store = store(&url);
            assert!(passes(&store, b"k").await, "{kind:?}, {url}");
            assert!(server.text(&["INFO", "keyspace"]).contains(&format!("db{database}:keys=1")), "{kind:?}, {url}");
        }
    }
}

#[tokio::test]
async fn a_database_that_there_is_not_is_named() {
    let server = Server::start(Kind::Redis7);
    let store = RedisStore::new(&format!("{}/99", server.url()), RedisOptions::default()).unwrap();
    assert!(ask(&store, charge("10/day", b"k")).await.is_err());
    assert_eq!(store.complaint().await.kind(), FailureKind::Deployment);
}

/// The user that the crate's documentation describes.
const USER: &str = "~tg{* +eval +evalsha +script|load +time +get +set +del +select";

#[tokio::test]
async fn br_089_a_user_who_may_do_no_more_than_is_documented_is_enough() {
    for kind in Kind::ALL {
        let server = Server::start(kind);
        let user: Vec<_> =
            ["ACL", "SETUSER", "gate", "on", ">s/e?c#r", "-@all"].into_iter().chain(USER.split(' ')).collect();
        server.ask(&user);
        for end in ["", "?protocol=resp3", "/3"] {
            let store = store(&format!("redis://gate:s%2Fe%3Fc%23r@{}{end}", address(&server)));
            for _ in 0..3 {
                assert!(passes(&store, b"k").await, "{kind:?}, {end}");
            }
            let look = Charge { cost: Cost::ZERO, ..charge("10/day", b"k") };
            tidegate_core::Store::grant(&store, look.limit, &look.quota, b"k", 2).await.unwrap();
            tidegate_core::Store::reset(&store, look.limit, b"k").await.unwrap();
            assert_eq!(store.probe().await.unwrap().name, None, "what it may not ask it does not know");
            assert_eq!(store.state().complaint, None);
        }
    }
}

#[tokio::test]
async fn what_the_user_may_not_do_is_named_once_with_what_to_grant() {
    for kind in Kind::ALL {
        let server = Server::start(kind);
        server.ask(&["ACL", "SETUSER", "blind", "on", ">pw", "-@all", "+@scripting", "+time", "+get", "~tg{*"]);
        server.ask(&["ACL", "SETUSER", "else", "on", ">pw", "+@all", "~other:*"]);
        for user in ["blind", "else"] {
            let store = store(&format!("redis://{user}:pw@{}", address(&server)));
            for _ in 0..3 {
                let error = ask(&store, charge("10/day", b"k")).await.unwrap_err();
                assert_eq!(error.kind(), Some(FailureKind::Permission), "{kind:?}, {user}: {error}");
            }
            let complaint = store.complaint().await;
            assert!(complaint.to_string().contains("~PREFIX{* +eval +evalsha"), "{complaint}");
            assert_eq!(store.state().complaint, Some(complaint));
            assert!(
                tokio::time::timeout(Duration::from_millis(50), store.complaint()).await.is_err(),
                "it is told once"
            );
        }
    }
}

#[tokio::test]
async fn a_wrong_password_is_named_and_not_shown_and_a_right_one_is_found_when_it_comes() {
    let server = Server::start(Kind::Redis7);
    server.ask(&["ACL", "SETUSER", "gate", "on", ">other", "allkeys", "allcommands"]);
    let store = store(&format!("redis://gate:hidden@{}", address(&server)));
    let complaint = store.complaint().await;
    assert_eq!(complaint.kind(), FailureKind::Login);
    assert!(!format!("{complaint} {complaint:?} {store:?}").contains("hidden"));
    assert!(ask(&store, charge("10/day", b"k")).await.is_err());
    server.ask(&["ACL", "SETUSER", "gate", ">hidden"]);
    recovers(&store).await;
    assert_eq!(store.state().complaint, None);
}

async fn recovers(store: &RedisStore) {
    let start = Instant::now();
    while ask(store, charge("1000000/s", b"recovers")).await.is_err() {
        assert!(start.elapsed() < Duration::from_secs(20), "it did not recover");
        sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_probe_says_what_server_it_is_and_warns_of_one_that_forgets() {
    for (kind, name) in Kind::ALL.into_iter().zip(["redis 7.0.15", "redis 8.2.3", "valkey 9.1.2"]) {
        let server = Server::start_with(kind, &["--maxmemory-policy", "allkeys-lru"]);
        let info = store(&server.url()).probe().await.unwrap();
        assert_eq!(info.to_string(), format!("{name} (standalone)"));
        assert!(info.warning().is_some_and(|warning| warning.contains("volatile-ttl")));
    }
    let away = RedisStore::new("redis://127.0.0.1:1", RedisOptions::default()).unwrap();
    assert!(matches!(away.probe().await, Err(StoreError::Unavailable | StoreError::Deadline)));
}

/// An authority, and a server's certificate from it.
struct Certificates {
    folder: tempfile::TempDir,
}

impl Certificates {
    fn for_host(host: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, pem: String| std::fs::write(folder.path().join(name), pem).unwrap();
        let mut authority = CertificateParams::new(Vec::new()).unwrap();
        authority.distinguished_name.push(DnType::CommonName, "authority");
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        write("ca.pem", authority.self_signed(&key).unwrap().pem());
        let issuer = Issuer::new(authority, key);
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(vec![host.to_owned()]).unwrap().signed_by(&key, &issuer).unwrap();
        write("server.pem", certificate.pem());
        write("server.key", key.serialize_pem());
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A server that speaks TLS on a port of its own, and whether it wants a certificate from whoever asks.
    fn serve(&self, wants_ours: bool) -> (Server, u16) {
        let port = free_port();
        let file = |name| self.path(name).to_str().unwrap().to_owned();
        let (ca, certificate, key) = (file("ca.pem"), file("server.pem"), file("server.key"));
        let wants = if wants_ours { "yes" } else { "no" };
        let tls = ["--tls-port", &port.to_string(), "--tls-ca-cert-file", &ca, "--tls-cert-file", &certificate];
        let rest = ["--tls-key-file", &key, "--tls-auth-clients", wants];
        (Server::start_with(Kind::Redis7, &[&tls[..], &rest].concat()), port)
    }
}

fn trusting(ca: &Path) -> RedisOptions {
    RedisOptions { tls: TlsFiles { ca: Some(ca.to_path_buf()), ..TlsFiles::default() }, ..options() }
}

#[tokio::test]
async fn a_server_is_asked_over_tls_if_its_certificate_is_trusted_and_its_own() {
    let certificates = Certificates::for_host("localhost");
    let (_server, port) = certificates.serve(false);
    let trusted = trusting(&certificates.path("ca.pem"));
    let url = format!("rediss://localhost:{port}");
    assert!(passes(&RedisStore::new(&url, trusted.clone()).unwrap(), b"k").await);

    let other = Certificates::for_host("localhost");
    for (url, options) in [
        (url.clone(), trusting(&other.path("ca.pem"))),
        (url.clone(), options()),
        (format!("rediss://127.0.0.1:{port}"), trusted.clone()),
    ] {
        let store = RedisStore::new(&url, RedisOptions { deadline: Duration::from_millis(500), ..options }).unwrap();
        assert!(ask(&store, charge("10/day", b"k")).await.is_err(), "{url}");
        let complaint = store.complaint().await;
        assert_eq!(complaint.kind(), FailureKind::Tls, "{complaint}");
    }

    let plain = RedisStore::new(&format!("redis://localhost:{port}"), trusted).unwrap_err();
    assert!(matches!(plain, SetupError::Tls(TlsError::NotAsked)), "{plain}");
    let nothing = RedisStore::new(&url, trusting(&certificates.path("server.key"))).unwrap_err();
    assert!(nothing.to_string().contains("there are none"), "{nothing}");
    let missing = RedisStore::new(&url, trusting(Path::new("/missing.pem"))).unwrap_err();
    assert!(missing.to_string().contains("/missing.pem"), "{missing}");
}

#[tokio::test]
async fn a_server_that_wants_a_certificate_is_shown_ours() {
    let certificates = Certificates::for_host("localhost");
    let (_server, port) = certificates.serve(true);
    let url = format!("rediss://localhost:{port}");
    let mut options = trusting(&certificates.path("ca.pem"));
    options.tls.certificate = Some(certificates.path("server.pem"));
    let half = RedisStore::new(&url, options.clone()).unwrap_err();
    assert!(matches!(half, SetupError::Tls(TlsError::Half)), "{half}");
    let nobody = RedisStore::new(&url, trusting(&certificates.path("ca.pem"))).unwrap();
    assert_eq!(nobody.complaint().await.kind(), FailureKind::Tls);
    options.tls.key = Some(certificates.path("server.key"));
    assert!(passes(&RedisStore::new(&url, options).unwrap(), b"k").await);
}

/// A primary with its replica, and a sentinel.
fn watched() -> (Server, Server, Sentinel) {
    let primary = Server::start(Kind::Redis7);
    let port = primary.port().to_string();
    let replica = Server::start_with(Kind::Redis7, &["--replicaof", &format!("127.0.0.1 {port}")]);
    until("the replica is in step", || replica.text(&["INFO", "replication"]).contains("master_link_status:up"));
    let sentinel = Sentinel::start(&primary);
    until("the sentinel knows the replica", || {
        sentinel.ask(&["replicas", "main"]).is_ok_and(|replicas| !replicas.into_sequence().unwrap().is_empty())
    });
    (primary, replica, sentinel)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_primary_is_where_the_sentinels_say_also_after_it_died() {
    let (mut primary, replica, sentinel) = watched();
    // The first of the sentinels is away: the next is asked.
    let url = format!("redis+sentinel://127.0.0.1:1,127.0.0.1:{}/main", sentinel.port());
    let store = RedisStore::new(&url, RedisOptions { deadline: Duration::from_millis(500), ..options() }).unwrap();
    recovers(&store).await;
    assert!(passes(&store, b"k").await);
    in_step(&primary, &replica);
    primary.kill();
    assert!(ask(&store, charge("1000000/s", b"k2")).await.is_err());
    recovers(&store).await;
    let look = Charge { cost: Cost::ZERO, ..charge("10/day", b"k") };
    assert_eq!(ask(&store, look).await.unwrap().remaining(), 9, "what was replicated is kept");
    assert!(replica.text(&["INFO", "replication"]).contains("role:master"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn br_094_a_primary_that_was_demoted_is_left_for_the_new_one() {
    let (primary, replica, sentinel) = watched();
    let url = format!("redis+sentinel://127.0.0.1:{}/main", sentinel.port());
    let store = RedisStore::new(&url, RedisOptions { deadline: Duration::from_millis(500), ..options() }).unwrap();
    recovers(&store).await;
    until("the sentinel fails over", || sentinel.ask(&["failover", "main"]).is_ok());
    until("the roles are swapped", || primary.text(&["INFO", "replication"]).contains("role:slave"));
    let start = Instant::now();
    recovers(&store).await;
    assert!(start.elapsed() < Duration::from_secs(5), "within a second, and the machine may be busy");
    assert!(passes(&store, b"k").await);
    assert!(replica.text(&["INFO", "replication"]).contains("role:master"));
}

#[tokio::test]
async fn a_service_that_no_sentinel_watches_is_named() {
    let primary = Server::start(Kind::Redis7);
    let sentinel = Sentinel::start(&primary);
    let store = store(&format!("redis+sentinel://127.0.0.1:{},127.0.0.1:1/mian", sentinel.port()));
    let complaint = store.complaint().await;
    assert!(complaint.to_string().contains("mian"), "{complaint}");
}
