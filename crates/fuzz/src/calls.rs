//! Calls over HTTP: the bodies that a stranger sends, and the tokens that come back.

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
