//! What holds for any request.

use proptest::collection::vec;
use proptest::prelude::*;
use tidegate_policy::{
    AddressField, Attributes, ClientAddress, FieldName, KeyPart, KeyParts, KeyText, Keys, LINES_MAX, Peer, Trust,
};

use crate::given::{Given, key_of, trusting};

/// Bytes that look like borders of parts, mostly few.
fn value() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![Just(b'v'), Just(b'l'), Just(b'm'), Just(b'c'), Just(0), Just(1), Just(2), Just(3)];
    prop_oneof![9 => vec(byte.clone(), 0..5), 1 => vec(byte, 120..140)]
}

/// A peer, and the lines of three fields.
type Tuple = (u8, [Vec<Vec<u8>>; 3]);

fn tuple() -> impl Strategy<Value = Tuple> {
    let lines = || vec(value(), 0..3);
    (0..2_u8, [lines(), lines(), lines()])
}

fn request((peer, fields): &Tuple) -> Given {
    let from = Given::from(&format!("192.0.2.{peer}"));
    let lines = fields.iter().enumerate().flat_map(|(i, lines)| lines.iter().map(move |line| (i, line)));
    lines.fold(from, |request, (i, line)| request.with(&format!("h{i}"), line))
}

/// Do two requests differ in what `h0,h1,h2` are made of?
fn differ(a: &Tuple, b: &Tuple) -> bool {
    let falls_back = a.1.iter().any(Vec::is_empty);
    a.1 != b.1 || (falls_back && a.0 != b.0)
}

/// What somebody may write into a forwarding field.
fn forged() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let entry = prop_oneof![
        any::<Vec<u8>>(),
        "(for=|)\"?(198\\.51\\.100\\.[0-9]|10\\.0\\.0\\.1|\\[2001:db8::1\\]:80|unknown)?[\",;\\\\ ]{0,3}"
            .prop_map(String::into_bytes),
    ];
    let line = vec(entry, 0..4).prop_map(|entries| entries.join(&b','));
    vec(line, 0..LINES_MAX + 4)
}

proptest! {
    #[test]
    fn distinct_tuples_are_distinct_keys(a in tuple(), b in tuple()) {
        let key = |tuple| key_of(&trusting(""), "header:h0,header:h1,header:h2", &request(tuple));
        prop_assert_eq!(key(&a) != key(&b), differ(&a, &b));
    }

    /// Cut in two at another place, the same bytes are other parts.
    #[test]
    fn borders_cannot_be_moved(bytes in value(), at in any::<prop::sample::Index>(), to in any::<prop::sample::Index>()) {
        let (at, to) = (at.index(bytes.len() + 1), to.index(bytes.len() + 1));
        let key = |at| {
            let request = Given::from("192.0.2.1").with("h0", &bytes[..at]).with("h1", &bytes[at..]);
            key_of(&trusting(""), "header:h0,header:h1", &request)
        };
        prop_assert_eq!(key(at) == key(to), at == to);
    }

    #[test]
    fn a_key_can_be_read_back(tuple in tuple()) {
        let key = key_of(&trusting(""), "client,header:h0,header:h1,header:h2", &request(&tuple));
        prop_assert_eq!(KeyText(&key).values().map(|values| values.len()), Some(4));
    }

    #[test]
    fn any_bytes_can_be_shown(bytes in any::<Vec<u8>>()) {
        let text = KeyText(&bytes).to_string();
        prop_assert!(!text.chars().any(char::is_control), "{:?}", text);
    }

    #[test]
    fn any_text_can_be_parsed(text in "\\PC{0,40}|(\\[|10\\.|::|/|%|client|header|cookie|,|:|\\*|ff){0,8}") {
        let _ = (text.parse::<Trust>().map_err(|error| error.to_string()), text.parse::<AddressField>());
        let _ = text.parse::<KeyParts>().map_err(|error| error.to_string());
        let _ = (text.parse::<KeyPart>(), text.parse::<FieldName>().map_err(|error| error.to_string()));
    }

    #[test]
    fn a_list_of_networks_survives_its_text(text in "((10|192\\.0\\.2)\\.0\\.0/(8|16|24)|2001:db8::/(32|64)|::1|unix|\\*|private)") {
        if let Ok(trust) = text.parse::<Trust>() {
            prop_assert_eq!(trust.to_string().parse::<Trust>(), Ok(trust));
        }
    }

    #[test]
    fn nothing_forged_changes_an_untrusted_peer(lines in forged()) {
        for field in [AddressField::XForwardedFor, AddressField::Forwarded] {
            let address = ClientAddress { field, ..trusting("10.0.0.0/8") };
            let forged = |peer| lines.iter().fold(Given::peer(peer), |request, line| request.with(address.field.name(), line));
            prop_assert_eq!(address.of(&forged("203.0.113.50".parse::<std::net::IpAddr>().unwrap().into())).to_string(), "203.0.113.50");
            prop_assert_eq!(address.of(&forged(Peer::Unix)).to_string(), "unix");
        }
    }

    /// Proxies append to the last line, or each a line of its own.
    #[test]
    fn nothing_forged_reaches_past_the_rightmost_untrusted(lines in forged(), own_line in any::<bool>(), hops in 0..3_usize) {
        for (field, client, hop) in [
            (AddressField::XForwardedFor, "203.0.113.7", "10.0.0.2"),
            (AddressField::Forwarded, "for=\"203.0.113.7:80\";proto=https", "for=10.0.0.2"),
        ] {
            let address = ClientAddress { field, ..trusting("10.0.0.0/8") };
            let mut lines = lines.clone();
            for appended in [client].into_iter().chain(std::iter::repeat_n(hop, hops)) {
                match lines.last_mut() {
                    Some(last) if !own_line => last.extend_from_slice(format!(", {appended}").as_bytes()),
                    _ => lines.push(appended.into()),
                }
            }
            let request = lines.iter().fold(Given::from("10.0.0.1"), |request, line| request.with(address.field.name(), line));
            prop_assert_eq!(address.of(&request).to_string(), "203.0.113.7");
        }
    }

    #[test]
    fn any_field_can_be_walked(lines in forged()) {
        for field in [AddressField::XForwardedFor, AddressField::Forwarded] {
            let address = ClientAddress { field, ..trusting("*") };
            let request = lines.iter().fold(Given::from("10.0.0.1"), |request, line| request.with(address.field.name(), line));
            let mut keys = Keys::new();
            prop_assert!(matches!(address.key(&request, &mut keys).len(), 6 | 18));
            prop_assert_eq!(request.peer(), Peer::Ip([10, 0, 0, 1].into()));
        }
    }
}
