//! Protocols of bytes: commands of the Redis protocol, and the header of a load balancer.

use crate::{Door, chosen};

pub(crate) const RESP: Door = Door {
    name: "resp",
    enter: resp,
    bytes_per_byte: 64,
    words: &[
        "*2147483648\r\n",
        "*1\r\n",
        "*5\r\n$11\r\nCL.THROTTLE\r\n$1\r\nk\r\n$2\r\n15\r\n$2\r\n30\r\n$2\r\n60\r\n",
        "*-1\r\n",
        "$2147483648\r\n",
        "$0\r\n\r\n",
        "$-1\r\n",
        "\r\n",
        "\"",
        "\\x00",
        "'",
        "PING\r\n",
        "THROTTLE k 1 1 1 1\r\n",
        "9223372036854775807",
        "HELLO 3 AUTH default p\r\n",
        "AUTH p\r\n",
    ],
};

pub(crate) const PROXY_PROTOCOL: Door = Door {
    name: "proxy_protocol",
    enter: |input| tidegate_server::fuzz::proxy_header(input),
    bytes_per_byte: 0,
    words: &[
        "PROXY ",
        "TCP4 ",
        "TCP6 ",
        "UNKNOWN",
        "192.0.2.1 198.51.100.1 1 2\r\n",
        "::1 ::2 65535 0\r\n",
        "\r\n",
        "\r\n\r\n\0\r\nQUIT\n",
        "\x21\x11\0\x0c",
        "\x21\x21\0\x24",
        "\x20\0\0\0",
    ],
};

/// The first byte says in pieces of which length the rest comes: what comes in pieces reads as what comes at once.
fn resp(input: &[u8]) {
    let (length, input) = chosen(input);
    tidegate_server::fuzz::commands(input, length % 32 + 1);
}
