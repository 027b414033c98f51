//! The configuration file, in each of its notations.

use tidegate_policy::file::{Format, read};

use crate::{Door, text};

/// A node of the tree takes some 100 bytes, and a table doubles as it grows; a fault keeps its line.
const BYTES_PER_BYTE: usize = 1024;

pub(crate) const TOML: Door = Door {
    name: "config_toml",
    enter: |input| config(input, Format::Toml),
    bytes_per_byte: BYTES_PER_BYTE,
    words: &[
        "[[policies]]\n",
        "name = \"a\"\n",
        "limits = \"60/min\"\n",
        "key = [\"client\"]\n",
        "[policies.match]\n",
        "[client]\n",
        "[proxy]\n",
        "trust = \"10.0.0.0/8\"\n",
        "path = \"/a/*/b\"\n",
        "mode = \"shadow\"\n",
        "[[policies.overrides]]\n",
        "[policies.penalty]\n",
        "'''",
        "\"\"\"",
        "1979-05-27T07:32:00Z",
        "[[",
        "]]",
        "{",
        "}",
        "=",
        "\\u0041",
        "0x_1",
        "+nan",
    ],
};

pub(crate) const YAML: Door = Door {
    name: "config_yaml",
    enter: |input| config(input, Format::Yaml),
    bytes_per_byte: BYTES_PER_BYTE,
    words: &[
        "policies:\n",
        "- name: a\n",
        "  limits: 60/min\n",
        "  key: [client]\n",
        "  match:\n",
        "    path: /a\n",
        "proxy:\n",
        "client:\n",
        "---\n",
        "...\n",
        "&a ",
        "*a",
        "!!str ",
        "? ",
        ": ",
        "- ",
        "|\n",
        ">-\n",
        "[",
        "]",
        "{",
        "}",
        "%YAML 1.2\n",
        "# c\n",
        "\t",
        "'",
        "\"",
        "<<: *a\n",
    ],
};

pub(crate) const JSON: Door = Door {
    name: "config_json",
    enter: |input| config(input, Format::Json),
    bytes_per_byte: BYTES_PER_BYTE,
    words: &[
        "{\"policies\":[",
        "{\"name\":\"a\",\"limits\":\"60/min\"}",
        "\"key\":[\"client\"],",
        "]}",
        "[",
        "]",
        "{",
        "}",
        "\"",
        "\\u0000",
        "\\ud83d",
        "\\ude00",
        "1e999",
        "-0",
        "null",
        "true",
        ",",
        ":",
    ],
};

/// What reads well is printed as a file that says the same.
fn config(input: &[u8], format: Format) {
    let text = text(input);
    match read("f", &text, format) {
        Ok(config) => {
            let printed = config.to_toml();
            let again = read("printed", &printed, Format::Toml);
            let again = again.unwrap_or_else(|error| panic!("what is printed is not read: {error}\n{printed}"));
            assert_eq!(again.policies, config.policies, "{printed}");
        }
        Err(error) => {
            assert!(!error.faults().is_empty(), "an error says what is wrong");
            assert!(!error.to_string().is_empty());
        }
    }
}
