//! What `docs/redis.md` says is so.

use redis::{ConnectionLike as _, cmd};
use tidegate_core::{Algorithm, Charge, Store as _};
use tidegate_redis::FailureKind;

use crate::given::{charge, kept, passes, patient};
use crate::server::{Kind, Server};

const PAGE: &str = include_str!("../../../../docs/redis.md");

/// The line of the page that begins like this.
fn line(start: &str) -> &'static str {
    PAGE.lines().find(|line| line.starts_with(start)).unwrap_or_else(|| panic!("the page has no line `{start}..`"))
}

#[tokio::test]
async fn the_rights_that_the_page_names_are_enough() {
    for kind in Kind::ALL {
        let server = Server::start(kind);
        let mut words = line("ACL SETUSER").split(' ');
        let mut grant = cmd(words.next().unwrap());
        words.for_each(|word| {
            grant.arg(word);
        });
        assert_eq!(server.connection().req_command(&grant), Ok(redis::Value::Okay));
        let store = patient(&server.url().replace("redis://", "redis://tidegate:password@"));
        let three = charge("3/day", b"k");
        assert_eq!(passes(&store, three, 4).await, 3, "{kind:?}");
        store.grant(three.limit, &three.quota, b"k", 1).await.unwrap();
        store.reset(three.limit, b"k").await.unwrap();
        assert_eq!(passes(&store, three, 4).await, 3, "{kind:?}");
    }
}

#[tokio::test]
async fn the_rights_that_the_page_names_for_sliding_logs_are_enough_for_them() {
    for kind in Kind::ALL {
        let server = Server::start(kind);
        let added = line("For sliding logs add").split('`').nth(1).unwrap();
        let mut grant = cmd("ACL");
        line("ACL SETUSER").split(' ').skip(1).chain(added.split(' ')).for_each(|word| {
            grant.arg(word);
        });
        assert_eq!(server.connection().req_command(&grant), Ok(redis::Value::Okay));
        let store = patient(&server.url().replace("redis://", "redis://tidegate:password@"));
        let three = charge("3/h", b"k");
        let log = Charge { quota: three.quota.with_algorithm(Algorithm::SlidingLog).unwrap(), ..three };
        assert_eq!(passes(&store, log, 4).await, 3, "{kind:?}");
        store.grant(log.limit, &log.quota, b"k", 1).await.unwrap();
        assert_eq!(passes(&store, log, 4).await, 1, "{kind:?}");
        let raised = Charge { quota: charge("5/h", b"k").quota.with_algorithm(Algorithm::SlidingLog).unwrap(), ..log };
        assert_eq!(passes(&store, raised, 4).await, 2, "{kind:?}");
        store.reset(log.limit, b"k").await.unwrap();
        assert_eq!(passes(&store, log, 4).await, 3, "{kind:?}");
    }
}

#[tokio::test]
async fn a_bucket_is_kept_as_the_page_says() {
    let server = Server::start(Kind::Redis7);
    let store = patient(&server.url());
    assert_eq!(passes(&store, charge("3/day", b"user-42"), 1).await, 1);
    let mut connection = server.connection();
    let key = String::from_utf8(kept(&mut connection).remove(0).0).unwrap();
    let shown = line("tg{");
    // Another limit has other letters.
    let but_the_limit = |name: &str| name.strip_suffix(&name[name.len() - 7..]).map(str::to_owned);
    assert_eq!(but_the_limit(shown), but_the_limit(&key));
    assert_eq!(shown.len(), key.len());
    assert_eq!(connection.req_command(cmd("STRLEN").arg(&key)), Ok(redis::Value::Int(26)));
}

#[test]
fn each_kind_of_failure_has_its_line() {
    for kind in FailureKind::ALL {
        line(&format!("| `{}` |", kind.label()));
    }
    let lines = PAGE.lines().skip_while(|line| !line.starts_with("| kind |")).skip(2);
    assert_eq!(lines.take_while(|line| line.starts_with('|')).count(), FailureKind::ALL.len());
}

#[tokio::test]
async fn the_servers_of_the_tests_are_of_the_versions_that_the_page_names() {
    for (kind, version) in [(Kind::Redis7, "7.0.15"), (Kind::Redis8, "8.2.3"), (Kind::Valkey9, "9.1.2")] {
        let server = Server::start(kind);
        let info: String =
            redis::from_redis_value(server.connection().req_command(cmd("INFO").arg("server")).unwrap()).unwrap();
        assert!(info.contains(version) && PAGE.contains(version), "{kind:?} is not {version}");
    }
}
