//! The warning that a proxy stands in front which nobody trusts.

use tidegate_policy::{OnePrivatePeer, Peer};

use crate::given::{Given, trusting};

/// The warnings over these requests.
fn warnings(trust: &str, requests: impl IntoIterator<Item = Given>) -> Vec<String> {
    let watch = OnePrivatePeer::new(&trusting(trust).trust);
    requests.into_iter().filter_map(|request| watch.look(&request)).collect()
}

fn forwarded(peer: &str, count: usize) -> impl Iterator<Item = Given> {
    let peer = Given::from(peer);
    (0..count).map(move |i| peer.clone().xff(format!("203.0.113.{}", i % 256)))
}

#[test]
fn br_126_one_private_peer_and_nothing_trusted_is_said_once() {
    let all = warnings("", forwarded("10.0.0.1", 300));
    assert_eq!(all.len(), 1);
    assert_eq!(
        all[0],
        "all of 100 requests came from 10.0.0.1 and were forwarded for others, but nothing is trusted, so all visitors \
         share one bucket; if that is your proxy, start with `--trust 10.0.0.1`, or write \
         `trust = \"10.0.0.1\"` below `[client]` in the configuration file"
    );
    assert_eq!(warnings("", forwarded("10.0.0.1", 100)).len(), 1);
    assert_eq!(warnings("", forwarded("10.0.0.1", 99)).len(), 0);
}

#[test]
fn every_private_peer_counts() {
    for peer in ["127.0.0.1", "::1", "::ffff:10.0.0.1", "192.168.1.1", "172.31.0.1", "100.64.0.1", "fd00::1", "fe80::1"]
    {
        assert_eq!(warnings("", forwarded(peer, 200)).len(), 1, "{peer}");
    }
    let unix = (0..200).map(|_| Given::peer(Peer::Unix).with("forwarded", "for=203.0.113.7"));
    let all = warnings("", unix);
    assert!(all.len() == 1 && all[0].contains("`--trust unix`"), "{all:?}");
}

#[test]
fn probes_do_not_hide_it() {
    let probe = || Given::from("10.0.0.250");
    assert_eq!(warnings("", forwarded("10.0.0.1", 150).flat_map(|request| [probe(), request])).len(), 1);
}

#[test]
fn there_is_no_warning_without_the_mistake() {
    assert_eq!(warnings("10.0.0.0/8", forwarded("10.0.0.1", 200)).len(), 0);
    assert_eq!(warnings("192.168.0.0/16", forwarded("10.0.0.1", 200)).len(), 0);
    assert_eq!(warnings("", forwarded("203.0.113.50", 200)).len(), 0);
    assert_eq!(warnings("", (0..200).map(|_| Given::from("10.0.0.1"))).len(), 0);
    assert_eq!(warnings("", forwarded("10.0.0.2", 1).chain(forwarded("10.0.0.1", 200))).len(), 0);
    let visitor = [Given::from("203.0.113.50")];
    assert_eq!(warnings("", forwarded("10.0.0.1", 50).chain(visitor).chain(forwarded("10.0.0.1", 200))).len(), 0);
}

#[test]
fn threads_get_one_warning_between_them() {
    let watch = OnePrivatePeer::new(&trusting("").trust);
    let count = std::thread::scope(|scope| {
        let look = || forwarded("10.0.0.1", 1000).filter_map(|request| watch.look(&request)).count();
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(look)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum::<usize>()
    });
    assert_eq!(count, 1);
}
