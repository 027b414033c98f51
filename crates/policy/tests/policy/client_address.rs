//! Whose request it is.

use tidegate_policy::{AddressField, ClientAddress, ENTRIES_MAX, KeyText, LINES_MAX, Peer};

use crate::given::{Gate, Given, key_of, policy, trusting};

/// `script` is `peer | line | line ...`.
#[track_caller]
fn check_field(address: &ClientAddress, script: &str, expect: &str) {
    let mut words = script.split('|').map(str::trim);
    let peer = match words.next().unwrap() {
        "unix" => Peer::Unix,
        ip => Peer::Ip(ip.parse().unwrap()),
    };
    let request = words.fold(Given::peer(peer), |request, line| request.with(address.field.name(), line));
    assert_eq!(address.of(&request).to_string(), expect, "{script}");
}

#[track_caller]
fn check(trust: &str, script: &str, expect: &str) {
    check_field(&trusting(trust), script, expect);
}

#[track_caller]
fn check_forwarded(trust: &str, script: &str, expect: &str) {
    check_field(&ClientAddress { field: AddressField::Forwarded, ..trusting(trust) }, script, expect);
}

#[test]
fn with_nobody_trusted_it_is_the_peer() {
    check("", "203.0.113.50 | 198.51.100.1", "203.0.113.50");
    check("", "10.0.0.1 | 198.51.100.1", "10.0.0.1");
    check("", "::ffff:192.0.2.1", "192.0.2.1");
    check("", "unix | 198.51.100.1", "unix");
}

#[test]
fn all_lines_are_one_list() {
    check("10.0.0.0/8", "10.0.0.1 | 198.51.100.1 | 203.0.113.7", "203.0.113.7");
    check("10.0.0.0/8", "10.0.0.1 | 203.0.113.7 | 10.0.0.3, 10.0.0.2", "203.0.113.7");
    check("10.0.0.0/8", "10.0.0.1 | 203.0.113.7 | | ,", "203.0.113.7");
    check("10.0.0.0/8", "10.0.0.1", "10.0.0.1");
}

#[test]
fn a_malformed_entry_ends_the_walk_at_the_last_trusted_hop() {
    check("10.0.0.0/8", "10.0.0.1 | garbage", "10.0.0.1");
    check("10.0.0.0/8", "10.0.0.1 | 203.0.113.7, garbage, 10.0.0.2", "10.0.0.2");
    check("10.0.0.0/8", "10.0.0.1 | 203.0.113.7, unknown", "10.0.0.1");
    check("10.0.0.0/8", "10.0.0.1 | 203.0.113.7 198.51.100.1", "10.0.0.1");
    check("10.0.0.0/8", "10.0.0.1 | fe80::1%eth0", "fe80::1");
    let zone = "z".repeat(300);
    check("10.0.0.0/8", &format!("10.0.0.1 | 203.0.113.7, fe80::1%{zone}"), "10.0.0.1");
}

#[test]
fn wrapped_addresses_are_unwrapped_before_they_are_trusted() {
    check("10.0.0.0/8", "::ffff:10.0.0.1 | 203.0.113.7, ::ffff:10.0.0.2", "203.0.113.7");
    check("10.0.0.0/8", "64:ff9b::10.0.0.1 | ::ffff:203.0.113.7", "203.0.113.7");
    check("::ffff:10.0.0.0/104", "10.0.0.1 | 203.0.113.7", "203.0.113.7");
}

#[test]
fn trusting_everybody_takes_the_leftmost() {
    check("*", "203.0.113.50 | 198.51.100.1, 2001:db8::1", "198.51.100.1");
    check("0.0.0.0/0", "203.0.113.50 | 198.51.100.1, 203.0.113.7", "198.51.100.1");
}

#[test]
fn the_walk_is_bounded() {
    let hops = |count: usize| vec!["10.0.0.9"; count].join(",");
    check("10.0.0.0/8", &format!("10.0.0.1 | 203.0.113.7,{}", hops(ENTRIES_MAX - 1)), "203.0.113.7");
    check("10.0.0.0/8", &format!("10.0.0.1 | 203.0.113.7,{}", hops(ENTRIES_MAX)), "10.0.0.9");
    check("10.0.0.0/8", &format!("10.0.0.1 | 203.0.113.7{}", ",".repeat(ENTRIES_MAX)), "10.0.0.1");
    let lines = |count: usize| vec!["| 10.0.0.9"; count].join(" ");
    check("10.0.0.0/8", &format!("10.0.0.1 | 203.0.113.7 {}", lines(LINES_MAX - 1)), "203.0.113.7");
    check("10.0.0.0/8", &format!("10.0.0.1 | 203.0.113.7 {}", lines(LINES_MAX)), "10.0.0.9");
}

#[test]
fn forwarded_is_read_as_rfc_7239_says() {
    check_forwarded("10.0.0.0/8", "10.0.0.1 | for=203.0.113.7", "203.0.113.7");
    check_forwarded("10.0.0.0/8", r#"10.0.0.1 | For="[2001:db8:cafe::17]:4711""#, "2001:db8:cafe::17");
    check_forwarded("10.0.0.0/8", "10.0.0.1 | for=203.0.113.7;proto=http;by=203.0.113.43", "203.0.113.7");
    check_forwarded("10.0.0.0/8", "10.0.0.1 | for=198.51.100.1, for=203.0.113.7 | FOR=10.0.0.2", "203.0.113.7");
    check_forwarded("10.0.0.0/8", r#"10.0.0.1 | for=203.0.113.7;host="a,b;for=1.2.3.4""#, "203.0.113.7");
    check_forwarded("10.0.0.0/8", r#"10.0.0.1 | for="203.0.113.7:_port", , for=10.0.0.2"#, "203.0.113.7");
}

#[test]
fn forwarded_that_names_nobody_ends_the_walk() {
    for element in ["unknown", "_hidden", "\"_hidden:80\"", "\"203.0.113.7", "203.0.113.7;for=203.0.113.8", ""] {
        check_forwarded("10.0.0.0/8", &format!("10.0.0.1 | for=203.0.113.9, for={element}, for=10.0.0.2"), "10.0.0.2");
    }
    check_forwarded("10.0.0.0/8", "10.0.0.1 | for=203.0.113.9, proto=https, for=10.0.0.2", "10.0.0.2");
}

#[test]
fn a_quote_in_a_forged_element_swallows_nothing_of_the_proxies() {
    check_forwarded("10.0.0.0/8", r#"10.0.0.1 | for="x, for=203.0.113.7"#, "203.0.113.7");
    check_forwarded("10.0.0.0/8", r#"10.0.0.1 | for="x | for=203.0.113.7"#, "203.0.113.7");
    check_forwarded("10.0.0.0/8", r#"10.0.0.1 | for="x\, for="[2001:db8::9]:443""#, "2001:db8::9");
}

#[test]
fn only_the_named_field_is_read() {
    let address = ClientAddress { field: AddressField::Forwarded, ..trusting("10.0.0.0/8") };
    let request = Given::from("10.0.0.1").xff("198.51.100.1").with("forwarded", "for=203.0.113.7");
    assert_eq!(address.of(&request).to_string(), "203.0.113.7");
    assert_eq!(trusting("10.0.0.0/8").of(&request).to_string(), "198.51.100.1");
}

#[test]
fn fields_are_known_by_name() {
    let field = |text: &str| text.parse::<AddressField>().unwrap();
    assert_eq!(field("X-Forwarded-For"), AddressField::XForwardedFor);
    assert_eq!(field("FORWARDED"), AddressField::Forwarded);
    assert_eq!(field("CF-Connecting-IP").to_string(), "cf-connecting-ip");
    assert!("a b".parse::<AddressField>().is_err());
}

#[test]
fn br_116_ports_do_not_make_clients() {
    let mut gate = Gate::new(trusting("10.0.0.1"), vec![policy("client", &["1/min"])]);
    let entries = ["203.0.113.9:51000", "203.0.113.9:51001", "203.0.113.9", "[2001:db8::9]:443", "2001:db8::9"];
    let answers = entries.map(|entry| gate.allows(&Given::from("10.0.0.1").xff(entry)));
    assert_eq!(answers, [true, false, false, true, false]);
}

#[test]
fn br_118_what_a_client_writes_leftmost_is_not_believed() {
    let forged = |peer: &str| {
        let peer = Given::from(peer);
        (0..10).map(move |i| peer.clone().xff(format!("198.51.100.{i}, 203.0.113.7")))
    };
    let mut gate = Gate::new(trusting("10.0.0.0/8"), vec![policy("client", &["3/min"])]);
    assert_eq!(gate.passing(forged("10.0.0.1")), 3);
    assert_eq!(gate.buckets(), 1);
    assert!(gate.allows(&Given::from("10.0.0.1").xff("198.51.100.1")));
    assert_eq!(gate.passing(forged("203.0.113.50")), 3);
    assert!(!gate.allows(&Given::from("203.0.113.50")));
    check("10.0.0.0/8", "10.0.0.1 | 198.51.100.1, 203.0.113.7", "203.0.113.7");
    check("10.0.0.0/8", "203.0.113.50 | 198.51.100.1, 203.0.113.7", "203.0.113.50");
    check("10.0.0.0/8", "10.0.0.1 | 10.1.1.1, 10.0.0.9", "10.1.1.1");
}

#[test]
fn br_120_a_network_of_ipv6_is_one_client() {
    let mut gate = Gate::new(trusting(""), vec![policy("client", &["3/min"])]);
    assert_eq!(gate.passing((1..=10).map(|i| Given::from(&format!("2001:db8:1:2::{i:x}")))), 3);
    assert!(gate.allows(&Given::from("2001:db8:1:3::1")));
    assert_eq!(gate.passing(["192.0.2.1", "192.0.2.2"].map(Given::from)), 2);
    assert_eq!(gate.buckets(), 4);
}

#[test]
fn br_121_mapped_addresses_are_the_addresses_they_map() {
    let mut gate = Gate::new(trusting(""), vec![policy("client", &["1/min"])]);
    let peers = ["192.0.2.1", "::ffff:192.0.2.1", "::ffff:c000:201", "::ffff:192.0.2.2"];
    assert_eq!(peers.map(|peer| gate.allows(&Given::from(peer))), [true, false, false, true]);
}

#[test]
fn br_123_behind_a_unix_socket_all_are_one_client_unless_it_is_trusted() {
    let key = |trust: &str, request: &Given| KeyText(&key_of(&trusting(trust), "client", request)).to_string();
    let bare = Given::peer(Peer::Unix);
    let forwarded = bare.clone().xff("203.0.113.7");
    assert_eq!(key("", &bare), "unix");
    assert_eq!(key("unix", &bare), "unix");
    assert_eq!(key("unix", &forwarded), "203.0.113.7");
    assert_eq!(key("", &forwarded), "unix");
    assert_eq!(key("10.0.0.0/8", &forwarded), "unix");
}

#[test]
fn br_125_balancers_do_not_split_a_client() {
    let mut gate = Gate::new(trusting("10.0.0.0/8"), vec![policy("client", &["2/min"])]);
    let entries = ["203.0.113.7, 10.0.0.11", "203.0.113.7, 10.0.0.12", ", 203.0.113.7 ,,10.0.0.13"];
    let answers = entries.map(|entry| gate.allows(&Given::from("10.0.0.1").xff(entry)));
    assert_eq!(answers, [true, true, false]);
    assert_eq!(gate.buckets(), 1);
}

#[test]
fn br_126_a_networks_own_field_is_believed_from_that_network() {
    let field: AddressField = "CF-Connecting-IP".parse().unwrap();
    let address = ClientAddress { field, ..trusting("10.0.0.0/8") };
    check_field(&address, "10.0.0.1 | 203.0.113.7", "203.0.113.7");
    check_field(&address, "10.0.0.1 | 203.0.113.8", "203.0.113.8");
    check_field(&address, "203.0.113.99 | 203.0.113.7", "203.0.113.99");
}
