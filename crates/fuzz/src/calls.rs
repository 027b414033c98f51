//! Calls that a stranger sends: over HTTP their bodies, and the tokens that come back; over gRPC their messages.

use crate::Door;

pub(crate) const CALLS: Door = Door {
    name: "calls",
    enter: |input| tidegate_server::fuzz::call(input),
    bytes_per_byte: 128,
    words: &[
        "{\"charges\": [{\"limit\": \"60/min burst 10\", \"key\": \"user-42\"}]}",
        "\"request\": {",
        "\"headers\": {\"a\": [\"b\"]}",
        "\"claims\": {}",
        "\"cost\": 18446744073709551616",
        "\"key\": [\"a\", \"\"]",
        "\"algorithm\": \"sliding-log\"",
        "\"peek\": true",
        "\"open_for_s\": 5e0",
        "\"reservation\": \"01\"",
        "\\ud83d\\ude00",
        "\\u0000",
        "[[[[",
        "null",
        "1e400",
        "-0.0",
    ],
};

/// The least that makes a descriptor or an entry are two bytes of the message.
pub(crate) const RATE_LIMIT_CALLS: Door = Door {
    name: "rate_limit_calls",
    enter: |input| tidegate_server::fuzz::rate_limit_call(input),
    bytes_per_byte: 512,
    words: &[
        "\0\0\0\0\x05",
        "\n\x01d",
        "\x12\0",
        "\x12\x08\n\x06\n\x01a\x12\x01x",
        "\x12\x10\n\x06\n\x01b\x12\x01y\n\x06\n\x01c\x12\x01z",
        "\x12\x04\x08\x03\x10\x01",
        "\x1a\x02\x08\0",
        "\x18\x7f",
        " \x01",
    ],
};
