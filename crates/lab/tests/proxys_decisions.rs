//! A replay decides as the proxy does: beside it, the table that the proxy keeps its buckets in decides on the same
//! requests, by the same file of policies.

use std::net::{IpAddr, Ipv4Addr};

use tidegate_core::{CHARGES_MAX, Decision, Time};
use tidegate_lab::log::{Feed, Feeds, Source, Zone};
use tidegate_lab::replay::{Options, Report, replay};
use tidegate_memory::{Table, TableOptions};
use tidegate_policy::file::{Format, read};
use tidegate_policy::{Attributes, Charging, Keys, Peer, Policies};

/// Every algorithm, alone and with others; limits in shadow; keys of paths; a policy that is final, and an exemption.
const FILE: &str = r#"
[exempt]
paths = ["/health"]

[[policies]]
name = "log"
algorithm = "sliding-log"
limits = ["9/10s", "45/min"]

[[policies]]
name = "counter"
match = { path = "/a/*" }
algorithm = "sliding-counter"
limits = "5/10s"

[[policies]]
name = "window"
key = ["client", "segment:1"]
algorithm = "fixed-window"
limits = "3/5s"

[[policies]]
name = "bucket"
key = "global"
limits = "15/10s burst 9"

[[policies]]
name = "trial"
mode = "shadow"
algorithm = "sliding-log"
limits = "3/10s"
"#;

fn policies() -> Policies {
    read("policies.toml", FILE, Format::Toml).unwrap_or_else(|error| panic!("{error}")).policies
}

struct Asked {
    client: u8,
    path: String,
    ms: u64,
}

impl Attributes for Asked {
    fn peer(&self) -> Peer {
        Peer::Ip(IpAddr::V4(Ipv4Addr::new(10, 0, 0, self.client)))
    }

    fn method(&self) -> &str {
        "GET"
    }

    fn path(&self) -> &str {
        &self.path
    }

    fn host(&self) -> Option<&str> {
        None
    }

    fn header_lines<'a>(&'a self, _: &str, _: &mut dyn FnMut(&'a [u8])) {}
}

fn requests() -> Vec<Asked> {
    let (mut random, mut ms) = (3_u64, 1_795_964_668_000);
    let mut next = |below: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (random >> 33) % below
    };
    let paths = ["/a/x", "/a/y/z", "/b", "/health", "/"];
    let request = |_| {
        ms += next(300);
        Asked { client: next(4) as u8, path: paths[next(5) as usize].to_owned(), ms }
    };
    (0..5_000).map(request).collect()
}

fn replayed(requests: &[Asked]) -> Report {
    let line = |asked: &Asked| {
        format!(
            "{{\"ts\":{}.{:03},\"client_ip\":\"10.0.0.{}\",\"method\":\"GET\",\"uri\":\"{}\",\"status\":200}}\n",
            asked.ms / 1000,
            asked.ms % 1000,
            asked.client,
            asked.path
        )
    };
    let log = std::io::Cursor::new(requests.iter().map(line).collect::<String>().into_bytes());
    let feed = Feed::new(Source::from_bytes("requests", log).unwrap(), None, Zone::UTC).unwrap();
    replay(&mut Feeds::new(vec![feed]), policies(), None, &Options::default(), &mut |_| {})
}

#[test]
fn a_replay_decides_as_the_proxy_does() {
    let requests = requests();
    let report = replayed(&requests);
    let policies = policies();
    let (table, mut keys) = (Table::new(TableOptions::with_keys(10_000)), Keys::new());
    let (mut denied, mut by_limit) = (0, std::collections::BTreeMap::new());
    for asked in &requests {
        let Charging::Charged(charges) = policies.charging(asked, &mut keys) else { continue };
        let mut decisions = [Decision::unmade(&charges[0].quota); CHARGES_MAX];
        let decisions = &mut decisions[..charges.len()];
        let verdict = table.decide_at(&charges, decisions, Time::from_nanos(asked.ms * 1_000_000)).unwrap();
        denied += u64::from(!verdict.allowed);
        for (i, decision) in decisions.iter().enumerate() {
            let place = charges.place(i).unwrap();
            let name = format!("{}/{}", place.policy.name(), place.limit.name);
            *by_limit.entry(name).or_insert(0) += u64::from(!decision.is_allowed());
        }
    }
    assert_eq!((report.requests, report.outcome.denied), (5_000, denied));
    for limit in &report.outcome.limits {
        let name = format!("{}/{}", limit.policy, limit.limit);
        assert_eq!(limit.denied, by_limit[&name], "{name}");
        let of_policy = report.outcome.limits.iter().filter(|other| other.policy == limit.policy);
        assert!(of_policy.map(|other| other.denied).sum::<u64>() > 0, "{name} was not tried");
    }
    assert!(denied > 500 && denied < 4_500, "{denied}");
}
