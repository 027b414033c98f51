//! The mistake that limits everybody at once: a proxy stands in front, and nobody said that it is to be trusted.
//!
//! Then every request comes from the proxy's address, and all visitors share one bucket.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::{Attributes, Client, Trust};

/// After this many requests through one private peer the warning is due.
const REQUESTS: u32 = 100;
/// After this many requests without a reason to warn nobody looks any more.
const LOOKS_MAX: u32 = 100_000;
/// The fields by which a proxy says for whom it speaks.
const FORWARDING: [&str; 4] = ["x-forwarded-for", "forwarded", "x-real-ip", "cf-connecting-ip"];

/// Watches for traffic that all comes from one private peer with a forwarding field, while nobody is trusted.
///
/// Shared by all threads; takes no lock. Once the matter is settled, a request costs one load.
#[derive(Debug)]
pub struct OnePrivatePeer {
    /// The mark of the only peer so far; 0 if there was none.
    peer: AtomicU64,
    /// Requests that count.
    forwarded: AtomicU32,
    /// Requests in all. From [`LOOKS_MAX`] on nobody looks.
    looks: AtomicU32,
}

impl OnePrivatePeer {
    /// A watch. If anybody is trusted there is nothing to watch for.
    #[must_use]
    pub fn new(trust: &Trust) -> Self {
        let looks = if trust.is_nothing() { 0 } else { LOOKS_MAX };
        Self { peer: AtomicU64::new(0), forwarded: AtomicU32::new(0), looks: AtomicU32::new(looks) }
    }

    /// Has the matter been settled, so that nobody needs to look any more?
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.looks.load(Ordering::Relaxed) >= LOOKS_MAX
    }

    /// Looks at a request. The warning's text, once, if it is due.
    pub fn look<A: Attributes + ?Sized>(&self, attributes: &A) -> Option<String> {
        if self.is_settled() {
            return None;
        }
        self.looks.fetch_add(1, Ordering::Relaxed);
        let peer = Client::from(attributes.peer());
        let forwarded = is_forwarded(attributes);
        // Probes come from private peers without a field, and say nothing about where visitors come from.
        if is_private(peer) && !forwarded {
            return None;
        }
        if !is_private(peer) || !self.is_the_only(peer) {
            self.settle();
            return None;
        }
        let count = self.forwarded.fetch_add(1, Ordering::Relaxed) + 1;
        (count == REQUESTS).then(|| {
            self.settle();
            warning(peer)
        })
    }

    fn settle(&self) {
        self.looks.store(LOOKS_MAX, Ordering::Relaxed);
    }

    fn is_the_only(&self, peer: Client) -> bool {
        let mark = mark(peer);
        match self.peer.compare_exchange(0, mark, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => true,
            Err(first) => first == mark,
        }
    }
}

fn warning(peer: Client) -> String {
    format!(
        "all of {REQUESTS} requests came from {peer} and were forwarded for others, but nothing is trusted, so all \
         visitors share one bucket; if that is your proxy, start with `--trust {peer}`, or write \
         `trust = \"{peer}\"` below `[client]` in the configuration file"
    )
}

fn is_forwarded<A: Attributes + ?Sized>(attributes: &A) -> bool {
    FORWARDING.iter().any(|name| {
        let mut found = false;
        attributes.header_lines(name, &mut |_| found = true);
        found
    })
}

/// A number for each peer, never 0. Different ones may share one, at worst for a warning too many.
fn mark(peer: Client) -> u64 {
    match peer {
        Client::Ip(IpAddr::V4(ip)) => 1 << 32 | u64::from(ip.to_bits()),
        Client::Ip(IpAddr::V6(ip)) => {
            let bits = ip.to_bits();
            // Both halves, cut to 64 bits on purpose.
            (bits as u64 ^ ((bits >> 64) as u64).rotate_left(32)) | 1 << 63
        }
        Client::Unix => 1,
    }
}

/// An address that no visitor from the internet has.
fn is_private(peer: Client) -> bool {
    match peer {
        Client::Ip(IpAddr::V4(ip)) => {
            let shared = ip.octets()[0] == 100 && ip.octets()[1] & 0xc0 == 64;
            ip.is_private() || ip.is_loopback() || ip.is_link_local() || shared
        }
        Client::Ip(IpAddr::V6(ip)) => ip.is_unique_local() || ip.is_loopback() || ip.is_unicast_link_local(),
        Client::Unix => true,
    }
}
