//! limitador's limits, and the expressions in them.

use tidegate_core::{Algorithm, Cost, Handling};
use tidegate_policy::limitador::{Call, read};
use tidegate_policy::{Entry, Keys};

use crate::{Door, text};

pub(crate) const LIMITS: Door = Door {
    name: "limitador",
    enter: |input| file(&text(input)),
    bytes_per_byte: 1024,
    words: &[
        "- namespace: ns\n",
        "  max_value: 1\n",
        "  seconds: 60\n",
        "  conditions:\n",
        "    - \"descriptors[0].a == 'b'\"\n",
        "  variables: [a]\n",
        "  name: n\n",
        "  id: i\n",
        "{namespace: ns, max_value: 1, seconds: 1}",
        "[]",
        "null",
        "4294967296",
        "31536000",
    ],
};

pub(crate) const CEL: Door = Door {
    name: "cel",
    enter: cel,
    bytes_per_byte: 2048,
    words: &[
        "descriptors[0].a",
        "descriptors[1]['b.c']",
        "==",
        "!=",
        "<=",
        ">",
        "&&",
        "||",
        "!",
        "in ",
        "(",
        ")",
        "[",
        "]",
        ",",
        ".",
        "'",
        "\"",
        "\\n",
        "-",
        "has(",
        "int(",
        "string(",
        "size(",
        ".startsWith('",
        ".endsWith(",
        ".contains(",
        "limit.id",
        "limit.name",
        "null",
        "true",
        "false",
        "42",
        "user",
        "9223372036854775807",
        "?",
        "+",
        "{",
    ],
};

fn file(text: &str) {
    let read = |algorithm| read("f", text, algorithm, Handling::default());
    let (Ok(windows), Ok(_)) = (read(Algorithm::FixedWindow), read(Algorithm::TokenBucket)) else { return };
    let first = [Entry { key: "a", value: "b" }, Entry { key: "b.c", value: "7" }, Entry { key: "user", value: "ü" }];
    let second = [Entry { key: "b.c", value: "" }];
    for namespace in windows.as_slice().iter().map(|limit| limit.namespace.as_str()) {
        for descriptors in [&[][..], &[&first[..]], &[&first, &second]] {
            let mut keys = Keys::new();
            let charged = windows.charging(&Call { namespace, descriptors }, Cost::ONE, &mut keys);
            assert!(charged.charges.len() <= tidegate_core::CHARGES_MAX);
            assert_eq!(charged.charges.len(), charged.places.len());
        }
    }
}

/// The expression as the condition and as the variable of a limit.
fn cel(input: &[u8]) {
    let mut quoted = String::from("\"");
    for c in text(input).chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => quoted.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    file(&format!("- {{namespace: n, max_value: 1, seconds: 1, id: i, conditions: [{quoted}]}}"));
    file(&format!("- {{namespace: n, max_value: 1, seconds: 1, variables: [{quoted}]}}"));
}
