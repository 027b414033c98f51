//! What costs the sender nothing must cost nothing here.

use tidegate_fuzz::{Door, INPUT_BYTES_MAX, door};

use crate::allocator::peak_bytes_of;

fn peak_bytes(name: &str, input: &[u8]) -> usize {
    let Door { enter, .. } = door(name).expect("a door of this name");
    peak_bytes_of(|| enter(input))
}

#[test]
fn a_frame_that_announces_two_thousand_million_elements_costs_nothing() {
    for announced in
        ["*2147483648\r\n", "*2147483647\r\n$1\r\na\r\n", "*1024\r\n", "*1\r\n$2147483648\r\n", "*1\r\n$262144\r\n"]
    {
        let input = [b"\x1f", announced.as_bytes()].concat();
        let peak_bytes = peak_bytes("resp", &input);
        assert!(peak_bytes <= 1_024, "{announced:?}: {peak_bytes} bytes");
    }
}

#[test]
fn a_call_that_announces_four_gibibytes_costs_nothing() {
    // The length of the message, of its domain, and of a descriptor.
    for input in [&b"\0\xff\xff\xff\xff\x0a\x01d"[..], b"\x0a\xff\xff\xff\xff\x0fd", b"\x12\xff\xff\xff\xff\x0f\x0a"] {
        let bytes = peak_bytes("rate_limit_calls", input);
        assert!(bytes <= 1_024, "{input:?}: {bytes} bytes");
    }
}

#[test]
fn nesting_that_is_never_closed_ends_at_a_depth() {
    let opens = [
        ("config_json", "["),
        ("config_json", "{\"policies\":"),
        ("config_yaml", "["),
        ("config_yaml", "- "),
        ("config_yaml", "{a: "),
        ("config_yaml", "? "),
        ("config_toml", "a = ["),
        ("config_toml", "a.b = {c = "),
        ("descriptor_rules", "descriptors: [{"),
        ("limitador", "- "),
        ("cel", "("),
        ("cel", "!"),
        ("cel", "size("),
        ("cel", "x in ["),
        ("flags", "("),
        ("flags", "not "),
        ("resp", "*1\r\n"),
    ];
    for (name, open) in opens {
        let nested = open.repeat(INPUT_BYTES_MAX / open.len());
        // The first byte chooses one of the parsers of flags: the tenth reads conditions.
        let input = if name == "flags" { format!("\n{nested}") } else { nested };
        let peak_bytes = peak_bytes(name, input.as_bytes());
        assert!(peak_bytes <= 128 * INPUT_BYTES_MAX, "{name}: {open:?}: {peak_bytes} bytes");
    }
}
