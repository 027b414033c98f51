//! Short texts that people write: limits, and the values of flags and settings.

use tidegate_core::{Algorithm, FailureMode, Limit};
use tidegate_http::{Cors, Dialect};
use tidegate_lab::log::Zone;
use tidegate_lab::replay::{FailIf, Filter};
use tidegate_lab::simulate::{Chosen, Sweep};
use tidegate_policy::{AddressField, HostPattern, KeyParts, PathPattern, Statuses, Trust};
use tidegate_server::{Destination, ListenAddress, LogFormat, OtlpEndpoint, Upstream};

use crate::{Door, chosen, text};

pub(crate) const LIMIT: Door = Door {
    name: "limit",
    enter: |input| limit(&text(input)),
    bytes_per_byte: 16,
    words: &[
        "60",
        "/",
        "min",
        " burst ",
        "10",
        "unlimited",
        "s",
        "ms",
        "us",
        "h",
        "day",
        "week",
        "month",
        "year",
        "m",
        "0",
        "4294967296",
        "18446744073709551615",
        "1.5",
        " per ",
        "second",
        "-1",
        "\u{a0}",
        "1_000",
        "hours",
    ],
};

pub(crate) const FLAGS: Door = Door {
    name: "flags",
    enter: flags,
    bytes_per_byte: 4096,
    words: &[
        "header:x-api-key",
        "cookie:session",
        "segment:2",
        "claim:plan",
        "client",
        "global",
        "10.0.0.0/8",
        "2001:db8::/32",
        "private",
        "unix",
        "*",
        "/a/*/b",
        "*.example.com",
        "4xx",
        "500-599",
        "https://",
        "http://a:80",
        "unix:/a",
        "h2c://",
        "local:0.5",
        "deny",
        "status = 200",
        " and ",
        " or ",
        "not ",
        "(",
        ")",
        "path ~ \"^/a(b|c)*$\"",
        "\"",
        "path=/api,",
        "+01:00",
        "edge-burst:rate=5",
        "..",
        ",",
        "=",
    ],
};

/// A limit is printed as it is read.
fn limit(text: &str) {
    match text.parse::<Limit>() {
        Ok(limit) => {
            let printed = limit.to_string();
            assert_eq!(printed.parse::<Limit>().as_ref(), Ok(&limit), "{printed}");
        }
        Err(error) => {
            assert!(error.at() <= text.len() && text.is_char_boundary(error.at()), "it points into the text");
            drop(error.to_string());
        }
    }
}

/// The first byte says which parser reads the rest.
fn flags(input: &[u8]) {
    let (choice, input) = chosen(input);
    let text = &*text(input);
    /// Tells the mistake, if there is one.
    fn read<T: std::str::FromStr<Err: std::fmt::Display>>(text: &str) -> Option<T> {
        text.parse().map_err(|error: T::Err| error.to_string()).ok()
    }
    fn told<T>(_: Option<T>) {}
    let parsers: [fn(&str); 18] = [
        |text| {
            let Some(parts) = read::<KeyParts>(text) else { return };
            assert_eq!(parts.to_text().parse(), Ok(parts), "key parts are written as they are read");
        },
        |text| {
            let Some(trust) = read::<Trust>(text) else { return };
            let printed = trust.to_string();
            assert_eq!(printed.parse().as_ref(), Ok(&trust), "{printed}");
        },
        |text| told(read::<PathPattern>(text)),
        |text| told(read::<HostPattern>(text)),
        |text| told(read::<AddressField>(text)),
        |text| told(read::<Statuses>(text)),
        |text| told(read::<Algorithm>(text)),
        |text| told(read::<FailureMode>(text)),
        |text| told(read::<Cors>(text)),
        |text| told(read::<Dialect>(text)),
        |text| told(read::<Filter>(text)),
        |text| told(read::<FailIf>(text)),
        |text| told(read::<Chosen>(text)),
        |text| told(read::<Sweep>(text)),
        |text| told(read::<Zone>(text)),
        |text| told(read::<Upstream>(text)),
        |text| told(read::<Destination>(text)),
        |text| {
            told(read::<ListenAddress>(text));
            told(read::<LogFormat>(text));
            told(read::<OtlpEndpoint>(text));
        },
    ];
    parsers[choice % parsers.len()](text);
}
