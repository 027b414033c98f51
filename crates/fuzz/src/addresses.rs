//! Where a shared store is, as its URL says.

use crate::{Door, text};

pub(crate) const STORE_URL: Door = Door {
    name: "store_url",
    enter: |input| tidegate_redis::fuzz::url(&text(input)),
    bytes_per_byte: 128,
    words: &[
        "redis://",
        "rediss://",
        "valkey://",
        "unix://",
        "redis+sentinel://",
        "redis+cluster://",
        "user:pass@",
        "host",
        ":6379",
        ",",
        "/0",
        "/master",
        "?db=1",
        "&",
        "=",
        "%40",
        "%",
        "[::1]",
        "[",
        "]",
        "@",
        "0.0.0.0",
    ],
};
