//! What requests say: who the client is, cookies, paths, and all that keys are made of.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::OnceLock;

use tidegate_policy::file::{Format, read};
use tidegate_policy::{Attributes, Keys, LastHop, Peer, Policies, normal_path};

use crate::{Door, chosen};

pub(crate) const HEADER_FIELDS: Door = Door {
    name: "header_fields",
    enter: request,
    bytes_per_byte: 256,
    words: &[
        "x-forwarded-for: ",
        "forwarded: ",
        "cookie: ",
        "x-api-key: ",
        "10.0.0.1",
        "192.0.2.7",
        "for=",
        "for=\"[2001:db8::1]:443\"",
        "for=_hidden",
        "unknown",
        ";proto=https",
        ", ",
        ";",
        "=",
        "\"",
        "\\",
        "::ffff:10.0.0.1",
        "64:ff9b::1",
        "fe80::1%eth0",
        ":8080",
        "session=",
        "/a/../b",
        "%2e%2e/",
        "//",
        "?x",
        "\n",
    ],
};

/// Everything that a key can be made of, by each field that proxies leave an address in.
fn policies() -> &'static [Policies; 3] {
    static POLICIES: OnceLock<[Policies; 3]> = OnceLock::new();
    let with = |field: &str| {
        let toml = format!(
            r#"
            client = {{ trust = "10.0.0.0/8", from = "{field}", ipv6_prefix = 56 }}
            [[policies]]
            name = "a"
            key = ["client", "header:x-api-key", "cookie:session", "segment:2", "claim:plan"]
            limits = "60/min"
            [[policies]]
            name = "b"
            key = ["header:cookie"]
            limits = ["1/s", "60/min"]
            match = {{ path = "/a/*/b", host = "*.example.com" }}
            on_missing = "skip"
            exempt = {{ addresses = "192.0.2.0/24", paths = "/healthz" }}
            "#
        );
        read("f", &toml, Format::Toml).expect("a configuration").policies
    };
    POLICIES.get_or_init(|| ["x-forwarded-for", "forwarded", "cf-connecting-ip"].map(with))
}

/// A request: its path on the first line, and fields below it.
struct Request<'a> {
    path: &'a str,
    fields: Vec<(&'a str, &'a [u8])>,
}

impl Attributes for Request<'_> {
    fn peer(&self) -> Peer {
        Peer::Ip(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)))
    }

    fn method(&self) -> &str {
        "GET"
    }

    fn path(&self) -> &str {
        self.path
    }

    fn host(&self) -> Option<&str> {
        self.fields.iter().find(|(name, _)| *name == "host").and_then(|(_, value)| std::str::from_utf8(value).ok())
    }

    fn header_lines<'b>(&'b self, name: &str, each: &mut dyn FnMut(&'b [u8])) {
        self.fields.iter().filter(|(known, _)| *known == name).for_each(|(_, value)| each(value));
    }

    fn claim(&self, name: &str) -> Option<&[u8]> {
        self.fields.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }
}

fn request(input: &[u8]) {
    let (choice, input) = chosen(input);
    let mut lines = input.split(|byte| *byte == b'\n');
    let path = lines.next().and_then(|line| std::str::from_utf8(line).ok()).unwrap_or("/");
    let fields = lines.filter_map(|line| {
        let colon = line.iter().position(|byte| *byte == b':')?;
        Some((std::str::from_utf8(&line[..colon]).ok()?, line[colon + 1..].trim_ascii()))
    });
    let request = Request { path, fields: fields.collect() };
    let normal = normal_path(path);
    assert_eq!(normal_path(&normal), normal, "a path in its normal form stays as it is");
    request.header_lines("x-forwarded-for", &mut what_a_proxy_adds_is_the_last_hop);
    let policies = &policies()[choice % 3];
    let mut keys = Keys::new();
    policies.client().of(&request);
    drop(policies.charging(&request, &mut keys));
    drop(policies.consider(&request));
}

/// Whatever a client has written, the entry behind it is read as it was written.
fn what_a_proxy_adds_is_the_last_hop(said: &[u8]) {
    let added = [said, b", 203.0.113.7"].concat();
    let peer = Some(Peer::Ip(IpAddr::V4(Ipv4Addr::new(203, 0, 113, 7))));
    assert_eq!(LastHop::of(&added), Some(LastHop { peer, before: said }));
}
