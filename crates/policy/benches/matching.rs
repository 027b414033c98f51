//! From a request to its charges: what matching and keys cost.
//!
//! The targets: a hundred policies, of which five match, take at most 2 microseconds; ten thousand overrides add
//! nothing to that which can be measured. Each figure is the best of many rounds, each of many requests.

use std::hint::black_box;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use tidegate_policy::{
    Attributes, Charging, ClientAddress, HeaderMatch, Keys, Match, Override, Peer, Policies, Policy,
};

const ROUNDS: usize = 200;
const REQUESTS: u32 = 2_000;

struct Request {
    method: &'static str,
    host: &'static str,
    path: String,
    peer: IpAddr,
    headers: Vec<(&'static str, String)>,
}

impl Attributes for Request {
    fn peer(&self) -> Peer {
        Peer::Ip(self.peer)
    }

    fn method(&self) -> &str {
        self.method
    }

    fn path(&self) -> &str {
        &self.path
    }

    fn host(&self) -> Option<&str> {
        Some(self.host)
    }

    fn header_lines<'a>(&'a self, name: &str, each: &mut dyn FnMut(&'a [u8])) {
        self.headers.iter().filter(|(known, _)| *known == name).for_each(|(_, value)| each(value.as_bytes()));
    }
}

/// A request as browsers send it.
fn request(path: &str) -> Request {
    let names = ["accept", "accept-encoding", "accept-language", "user-agent", "cookie", "referer"];
    let mut headers: Vec<_> = names.iter().map(|name| (*name, "some value of some length".to_owned())).collect();
    headers.push(("x-plan", "gold".to_owned()));
    headers.push(("x-api-key", "key-4711".to_owned()));
    Request { method: "GET", host: "api.example.org", path: path.to_owned(), peer: [203, 0, 113, 7].into(), headers }
}

fn policy(name: &str, key: &str, matching: Match) -> Policy {
    let limits = ["1000/min".parse().expect("a limit")];
    Policy::new(name, key.parse().expect("a key")).with_limits(limits, Default::default()).with_match(matching)
}

fn on(paths: &[&str]) -> Match {
    Match { paths: paths.iter().map(|path| path.parse().expect("a pattern")).collect(), ..Match::default() }
}

/// A hundred policies: by path exactly, by its beginning, with a wildcard, by host, by method and by header. Of a
/// request to `/api/users/7/orders` five apply.
fn hundred() -> Vec<Policy> {
    let header = |value: &str| HeaderMatch { name: "x-plan".parse().expect("a name"), values: vec![value.to_owned()] };
    let mut all = vec![
        policy("everything", "client", Match::default()),
        policy("api", "client", on(&["/api/*"])),
        policy("orders", "header:x-api-key", on(&["/api/users/*/orders"])),
        policy("host", "client", Match { hosts: vec!["*.example.org".parse().expect("a host")], ..Match::default() }),
        policy("gold", "client", Match { headers: vec![header("gold")], ..Match::default() }),
    ];
    for i in 5..100 {
        let path = |begin: &str| on(&[&format!("{begin}{i}")]);
        let matching = match i % 5 {
            0 => path("/api/exact/"),
            1 => on(&[&format!("/v{i}/*")]),
            2 => on(&[&format!("/api/users/*/things-{i}")]),
            3 => Match { hosts: vec![format!("h{i}.example.com").parse().expect("a host")], ..Match::default() },
            _ => Match { headers: vec![header(&format!("plan-{i}"))], ..Match::default() },
        };
        all.push(policy(&format!("p{i}"), "client,header:x-api-key", matching));
    }
    all
}

/// The best nanoseconds for one request, and how many charges it makes.
fn measure(policies: &Policies, request: &Request) -> (f64, usize) {
    let charges = |request: &Request| match policies.charging(black_box(request), &mut Keys::new()) {
        Charging::Charged(charges) => black_box(&charges).len(),
        other => black_box(usize::from(other.is_matched())),
    };
    let round = || {
        let start = Instant::now();
        (0..REQUESTS).for_each(|_| _ = charges(request));
        start.elapsed() / REQUESTS
    };
    let best = (0..ROUNDS).map(|_| round()).min().unwrap_or(Duration::MAX);
    (best.as_nanos() as f64, charges(request))
}

fn main() {
    let of = |policies| Policies::new(ClientAddress::default(), policies).expect("policies");
    let show = |name: &str, policies: &Policies, request: &Request| {
        let (ns, charges) = measure(policies, request);
        println!("{name:<58} {ns:>6.0} ns  {charges} charges");
        ns
    };
    println!("\nfrom a request to its charges");
    show("one policy about everything", &of(vec![policy("p", "client", Match::default())]), &request("/"));
    show("one policy about a path", &of(vec![policy("p", "client", on(&["/api/*"]))]), &request("/api/users"));
    let all = of(hundred());
    let five = show("a hundred policies, five of them", &all, &request("/api/users/7/orders"));
    show("the same, the path to be normalised first", &all, &request("/api/./users/%37/orders"));
    println!("target 2000 ns: {}", if five <= 2_000.0 { "met" } else { "missed" });

    let special = |i: u32| Override {
        key: vec![format!("key-{i}")],
        limits: vec![("limit-1".to_owned(), "5000/min".parse().expect("a limit"))],
        until_s: None,
    };
    let keyed = |keys: std::ops::Range<u32>| {
        let plain = policy("p", "header:x-api-key", Match::default());
        of(vec![keys.map(special).fold(plain, Policy::with_override)])
    };
    let none = show("no override", &keyed(0..0), &request("/"));
    let one = show("one override, which the key has", &keyed(4_711..4_712), &request("/"));
    let many = show("ten thousand overrides, one of which the key has", &keyed(0..10_000), &request("/"));
    println!("overrides at all cost {:.0} ns; ten thousand instead of one {:.0} ns", one - none, many - one);
}
