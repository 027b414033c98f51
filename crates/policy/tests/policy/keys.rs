//! Whose bucket it is.

use tidegate_core::Mode;
use tidegate_policy::{Charging, KeyText, KeyValue, Keys, OnMissing, Policies, Policy, VALUE_BYTES_MAX};

use crate::given::{Gate, Given, key_of, policy, trusting};

const PEER: &str = "203.0.113.7";

fn key(parts: &str, request: &Given) -> Vec<u8> {
    key_of(&trusting(""), parts, request)
}

#[track_caller]
fn check_text(parts: &str, request: Given, expect: &str) {
    assert_eq!(KeyText(&key(parts, &request)).to_string(), expect);
}

fn scoped(scope: &str, who: &str) -> Given {
    Given::from(PEER).with("scope", scope).with("who", who)
}

#[test]
fn br_107_distinct_tuples_are_distinct_keys() {
    for separator in [":", "|", "/", "\n", ",", "\0", "v", "\u{1}", "\u{3}"] {
        let (ab, bc) = (format!("a{separator}b"), format!("b{separator}c"));
        let mut gate = Gate::new(trusting(""), vec![policy("header:scope,header:who", &["1/min"])]);
        assert_eq!(gate.passing([scoped(&ab, "c"), scoped("a", &bc)]), 2, "{separator:?}");
        assert!(!gate.allows(&scoped("a", &bc)));
    }
    // The product's own separators: the tag and the length of a part.
    let mut gate = Gate::new(trusting(""), vec![policy("header:scope,header:who", &["1/min"])]);
    assert_eq!(gate.passing([scoped("av\u{1}b", "c"), scoped("a", "bv\u{1}c"), scoped("a", "b")]), 3);
    assert_eq!(gate.passing([scoped("api", "2001:db8::1"), scoped("api:2001", "db8::1")]), 2);
    let built = key("header:scope,header:who", &scoped("a:b", "c"));
    assert_eq!(KeyText(&built).values().unwrap(), [KeyValue::Value(b"a:b"), KeyValue::Value(b"c")]);
}

#[test]
fn br_109_keys_compare_as_bytes() {
    let spellings = ["user@example.org", "USER@example.org", " user@example.org ", "uSeR@Example.ORG"];
    let requests = spellings.into_iter().chain(["uSeR@Example.ORG"; 2]);
    let mut gate = Gate::new(trusting(""), vec![policy("header:email", &["5/min"])]);
    assert_eq!(gate.passing(requests.map(|email| Given::from(PEER).with("email", email))), 6);
    assert_eq!(gate.buckets(), 4);
}

#[test]
fn br_111_control_bytes_work_and_are_never_shown_raw() {
    let hostile: [&[u8]; 6] = [b"a\r\nb", b"a\0b", b"a", b"\x1b[31m", b"\xff\xfe", "\u{202e}".as_bytes()];
    let mut gate = Gate::new(trusting(""), vec![policy("header:who", &["1/min"])]);
    for value in hostile {
        let request = Given::from(PEER).with("who", value);
        assert!(gate.allows(&request) && !gate.allows(&request), "{value:?}");
        let text = KeyText(&key("header:who", &request)).to_string();
        assert!(text.bytes().all(|byte| byte.is_ascii_graphic()), "{text:?}");
    }
    check_text("header:who", Given::from(PEER).with("who", b"a\0\r\n\xff\"b"), r#""a\0\r\n\xff\"b""#);
    assert_eq!(KeyText(b"user\x1b:1").to_string(), r"user\u{1b}:1");
}

#[test]
fn br_112_an_empty_value_is_a_value_and_an_absent_one_falls_back() {
    let mut gate = Gate::new(trusting(""), vec![policy("header:who", &["1/min"])]);
    for value in ["203.0.113.5, 198.51.100.7", "\t", "\u{2028}", ""] {
        let request = Given::from(PEER).with("who", value);
        assert!(gate.allows(&request) && !gate.allows(&request), "{value:?}");
    }
    // Absent: by client, apart from every value, and apart from a limit by client.
    let absent = Given::from(PEER);
    assert!(gate.allows(&absent) && !gate.allows(&absent));
    assert!(gate.allows(&Given::from("203.0.113.8")));
    assert!(gate.allows(&Given::from(PEER).with("who", PEER)));
    assert!(gate.allows(&Given::from(PEER).with("who", [203, 0, 113, 7])));
    assert_ne!(key("header:who", &absent), key("client", &absent));
    check_text("header:who", absent.clone(), "missing (203.0.113.7)");
    check_text("client,header:who,cookie:s", absent, "203.0.113.7, missing (203.0.113.7), missing (203.0.113.7)");
}

#[test]
fn br_112_an_absent_value_is_denied_or_skipped_as_configured() {
    let charging = |on_missing, request: &Given| {
        let policies = vec![policy("client,header:who", &["1/min"]).with_on_missing(on_missing)];
        let policies = Policies::new(trusting(""), policies).unwrap();
        format!("{:?}", policies.charging(request, &mut Keys::new())).split(['(', ' ']).next().unwrap().to_owned()
    };
    let (absent, present) = (Given::from(PEER), Given::from(PEER).with("who", ""));
    assert_eq!(charging(OnMissing::Client, &absent), "Charged");
    assert_eq!(charging(OnMissing::Deny, &absent), "Denied");
    assert_eq!(charging(OnMissing::Skip, &absent), "Free");
    assert_eq!(charging(OnMissing::Deny, &present), "Charged");
    assert_eq!(charging(OnMissing::Skip, &present), "Charged");
}

/// The pair of Wang, Feng, Lai and Yu (2004): equal under MD5, also with any equal bytes behind.
fn md5_pair() -> [Vec<u8>; 2] {
    const FIRST: &str = "d131dd02c5e6eec4693d9a0698aff95c2fcab58712467eab4004583eb8fb7f89\
                         55ad340609f4b30283e488832571415a085125e8f7cdc99fd91dbdf280373c5b\
                         d8823e3156348f5bae6dacd436c919c6dd53e2b487da03fd02396306d248cda0\
                         e99f33420f577ee8ce54b67080a80d1ec69821bcb6a8839396f9652b6ff72a70";
    let first: Vec<u8> =
        (0..FIRST.len()).step_by(2).map(|i| u8::from_str_radix(&FIRST[i..i + 2], 16).unwrap()).collect();
    let mut second = first.clone();
    [19, 45, 59, 83, 109, 123].iter().for_each(|i| second[*i] ^= 0x80);
    [first, second]
}

#[test]
fn br_114_what_collides_under_md5_has_buckets_of_its_own() {
    for behind in [0, VALUE_BYTES_MAX] {
        let requests = md5_pair().map(|value| Given::from(PEER).with("who", [value, vec![b'x'; behind]].concat()));
        let mut gate = Gate::new(trusting(""), vec![policy("header:who", &["1/min"])]);
        assert_eq!(gate.passing(requests.clone()), 2);
        assert_eq!(gate.passing(requests), 0);
    }
}

#[test]
fn long_values_are_hashed() {
    let request = |length| Given::from(PEER).with("who", vec![b'x'; length]);
    assert_eq!(key("header:who", &request(VALUE_BYTES_MAX)).len(), 2 + VALUE_BYTES_MAX);
    assert_eq!(key("header:who", &request(VALUE_BYTES_MAX + 1)).len(), 2 + 32);
    assert_ne!(key("header:who", &request(500)), key("header:who", &request(501)));
    // SHA-256 of the length in 8 bytes and 200 times `x`, by another implementation.
    check_text("header:who", request(200), "sha256:8b70c0b60fdb5152");
    // A value that looks like a hash is a value.
    let hash = key("header:who", &request(200));
    let forged = Given::from(PEER).with("who", &hash[2..]);
    assert_ne!(key("header:who", &forged), hash);
}

#[test]
fn secrets_are_hashed() {
    check_text("cookie:s", Given::from(PEER).with("cookie", "s=abc"), "sha256:ce91dc5eec0139ad");
    check_text("header:authorization", Given::from(PEER).with("authorization", "abc"), "sha256:ce91dc5eec0139ad");
    let twice = Given::from(PEER).with("authorization", "a").with("authorization", "bc");
    assert_eq!(key("header:authorization", &twice)[0], b'h');
    assert_ne!(
        key("header:authorization", &twice),
        key("header:authorization", &Given::from(PEER).with("authorization", "abc"))
    );
}

#[test]
fn lines_of_a_field_keep_their_borders() {
    let request = |lines: &[&str]| lines.iter().fold(Given::from(PEER), |request, line| request.with("who", line));
    let keys = [
        &["a", "b"][..],
        &["a, b"],
        &["a\nb"],
        &["ab"],
        &["b", "a"],
        &["a", "b", ""],
        &["", "a", "b"],
        &["\u{1}a\u{1}b"],
    ]
    .map(|lines| key("header:who", &request(lines)));
    let distinct: std::collections::HashSet<_> = keys.iter().collect();
    assert_eq!(distinct.len(), keys.len());
    check_text("header:who", request(&["a", "", "b\0"]), r#""a" and "" and "b\0""#);
    let long = "x".repeat(VALUE_BYTES_MAX - 1);
    assert_eq!(key("header:who", &request(&[&long, "y"]))[0], b'h');
    assert_ne!(key("header:who", &request(&[&long, "y"])), key("header:who", &request(&[&format!("{long}y")])));
}

#[test]
fn the_first_cookie_of_the_name_counts() {
    #[track_caller]
    fn check(lines: &[&str], expect: Option<&str>) {
        let with =
            |name: &str, lines: &[&str]| lines.iter().fold(Given::from(PEER), |request, line| request.with(name, line));
        let expect = expect.map(|value| key("cookie:s", &with("cookie", &[&format!("s={value}")])));
        let expect = expect.unwrap_or_else(|| key("cookie:s", &Given::from(PEER)));
        assert_eq!(key("cookie:s", &with("cookie", lines)), expect, "{lines:?}");
    }
    check(&["a=1; s=2; s=3"], Some("2"));
    check(&["a=1", "b=2;s=3", "s=4"], Some("3"));
    check(&["S=1; ss=2; xs=3"], None);
    check(&["s"], None);
    check(&["a=s=1"], None);
    check(&["s=a=b"], Some("a=b"));
    check(&[" s = 1 "], Some("1"));
    check(&["s="], Some(""));
    check(&["s=\"q\""], Some("\"q\""));
    check(&[&format!("{}s=1", "a=1;".repeat(256))], None);
}

#[test]
fn the_host_is_read_where_it_stands() {
    check_text("header:host", Given::from(PEER).with("host", "forged"), r#""api.example.org""#);
}

#[test]
fn many_long_keys_find_room() {
    let value = |i: usize| format!("{i}").repeat(100);
    let request = (0..8).fold(Given::from(PEER), |request, i| request.with(&format!("h{i}"), value(i)));
    let parts: Vec<_> = (0..8).map(|i| format!("header:h{i}")).collect();
    let built = key(&parts.join(","), &request);
    let values: Vec<_> = (0..8).map(value).collect();
    let expect: Vec<_> = values.iter().map(|value| KeyValue::Value(value.as_bytes())).collect();
    assert_eq!(KeyText(&built).values().unwrap(), expect);
}

#[test]
fn keys_can_be_built_in_the_same_room_again() {
    let parts: Vec<_> = (0..4).map(|i| format!("header:h{i}")).collect();
    let skipping = policy(&parts.join(","), &["1/min"]).with_on_missing(OnMissing::Skip);
    let other = Policy::new("other", "client,header:h0".parse().unwrap())
        .with_limits(["1/min".parse().unwrap()], Mode::Enforce);
    let policies = Policies::new(trusting(""), vec![skipping, other]).unwrap();
    let built = |request: &Given, keys: &mut Keys| match policies.charging(request, keys) {
        Charging::Charged(charges) => charges.iter().map(|charge| KeyText(charge.key).to_string()).collect(),
        _ => Vec::new(),
    };
    let with = |count: usize, value: &str| {
        (0..count).fold(Given::from(PEER), |request, i| request.with(&format!("h{i}"), value))
    };
    let (long, mut keys) = ("x".repeat(100), Keys::new());
    for (count, value) in [(4, long.as_str()), (4, "y"), (3, &long), (3, "y"), (0, ""), (4, &long)] {
        let value_text = format!("\"{value}\"");
        let all = (count == 4).then(|| [value_text.as_str(); 4].join(", "));
        let first = if count > 0 { format!("{PEER}, {value_text}") } else { format!("{PEER}, missing ({PEER})") };
        let expect: Vec<_> = all.into_iter().chain([first]).collect();
        assert_eq!(built(&with(count, value), &mut keys), expect);
    }
}

#[test]
fn what_is_not_built_from_parts_is_shown_as_bytes() {
    let built = key("client", &Given::from(PEER));
    let text = |bytes: &[u8]| KeyText(bytes).to_string();
    assert_eq!(text(&built), PEER);
    assert_eq!(text(&[&built[..], b"v"].concat()), r"c\u{4}\xcb\0q\u{7}v");
    assert_eq!(text(&built[..5]), r"c\u{4}\xcb\0q");
    assert_eq!(text(b"g\x01x"), r"g\u{1}x");
    assert_eq!(text(b"h\x01x"), r"h\u{1}x");
    assert_eq!(text(b"user 1"), "user 1");
    assert_eq!(text(b""), "");
}
