//! The same requests in the logs of many programs are denied the same.
//!
//! The fixtures come from `scripts/make-log-fixtures`: nginx, Apache, HAProxy, Caddy, Traefik and Envoy wrote their own;
//! those of IIS, CloudFront and the load balancers of AWS are written after their vendors' documentation.

use std::path::{Path, PathBuf};

use tidegate_core::{Limit, Mode};
use tidegate_lab::log::{Feed, Feeds, Format, Source, Zone};
use tidegate_lab::replay::{Filter, Options, Report, replay};
use tidegate_policy::{ClientAddress, KeyParts, Policies, Policy};

/// Each fixture, the format that it is recognised as, and whether it tells the user agent.
const FIXTURES: [(&str, &str, bool); 15] = [
    ("nginx-combined", "combined", true),
    ("nginx-main", "main", true),
    ("nginx-json", "json", true),
    ("apache-common", "common", false),
    ("apache-combined", "combined", true),
    ("apache-vhost-combined", "vhost-combined", true),
    ("haproxy", "haproxy", false),
    ("caddy", "caddy", true),
    ("traefik", "traefik", false),
    ("traefik-json", "traefik-json", false),
    ("envoy", "envoy", true),
    ("alb", "alb", true),
    ("elb", "elb", true),
    ("iis", "w3c", true),
    ("cloudfront", "cloudfront", true),
];

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name).with_extension("log")
}

fn replayed(name: &str, format: Option<&str>, limit: &str, filter: Option<&str>) -> Report {
    let format: Option<Format> = format.map(|format| format.parse().unwrap());
    let feed = Feed::new(Source::open(&fixture(name)).unwrap(), format.as_ref(), Zone::UTC).unwrap();
    let limits = [limit.parse::<Limit>().unwrap()];
    let policy = Policy::new("default", KeyParts::default()).with_limits(limits, Mode::Enforce);
    let policies = Policies::new(ClientAddress::default(), vec![policy]).unwrap();
    let filter: Option<Filter> = filter.map(|filter| filter.parse().unwrap());
    replay(&mut Feeds::new(vec![feed]), policies, None, &Options { filter, ..Options::default() }, &mut |_| {})
}

/// Its name, its requests, and those that were denied.
type Fate = (String, u64, u64);

/// What became of each client, and of each path.
fn fates(report: &Report) -> (Vec<Fate>, Vec<Fate>) {
    let clients = report.top_clients.iter().map(|line| (line.client.clone(), line.requests, line.denied)).collect();
    let mut paths: Vec<_> =
        report.top_paths.iter().map(|line| (line.path.clone(), line.requests, line.denied)).collect();
    paths.sort();
    (clients, paths)
}

#[test]
fn the_same_requests_are_denied_in_every_format() {
    let first = replayed("nginx-combined", None, "5/h", None);
    let (clients, paths) = fates(&first);
    let expected = [("127.0.0.2", 12, 7), ("127.0.0.3", 8, 3), ("127.0.0.4", 4, 0), ("127.0.0.5", 2, 0)];
    assert_eq!(clients, expected.map(|(client, requests, denied)| (client.to_owned(), requests, denied)));
    assert!(paths.iter().any(|(path, ..)| path == "/b/%20c") && paths.iter().all(|(path, ..)| !path.contains('?')));
    for (name, format, _) in FIXTURES {
        let report = replayed(name, None, "5/h", None);
        assert_eq!((report.unparsed, report.logs[0].1.as_str()), (0, format), "{name}: {:?}", report.examples);
        assert_eq!(fates(&report), (clients.clone(), paths.clone()), "{name}");
    }
}

#[test]
fn formats_that_are_written_down_read_the_same() {
    let expected = fates(&replayed("nginx-combined", None, "5/h", None));
    for (name, format) in [
        ("nginx-custom", "$msec|$remote_addr|$request_method|$request_uri|$status|$request_time|$http_user_agent"),
        ("nginx-combined", r#"%h %^ %e [%d:%t %^] "%r" %s %b "%R" "%u""#),
        ("apache-combined", r#"%h %l %u %t \"%r\" %>s %O \"%{Referer}i\" \"%{User-Agent}i\""#),
        (
            "apache-vhost-combined",
            r#"{host}:{-} {client} {-} {user} [{time}] "{request}" {status} {bytes} "{-}" "{agent}""#,
        ),
    ] {
        let report = replayed(name, Some(format), "5/h", None);
        assert_eq!((report.unparsed, fates(&report)), (0, expected.clone()), "{format}: {:?}", report.examples);
    }
}

#[test]
fn what_was_escaped_is_read_as_it_was_sent() {
    for (name, ..) in FIXTURES.iter().filter(|(.., tells_agent)| *tells_agent) {
        let report = replayed(name, None, "5/h", Some(r#"agent = 'say "hi" \ there'"#));
        assert_eq!(report.requests, 26, "{name}");
    }
    let posts: Vec<_> =
        FIXTURES.iter().map(|(name, ..)| replayed(name, None, "5/h", Some("method = POST")).requests).collect();
    assert!(posts.iter().all(|count| *count == posts[0] && *count > 0), "{posts:?}");
}
