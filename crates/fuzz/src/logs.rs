//! Access logs: any lines, in each format that is known and in one that the input brings.

use tidegate_lab::log::{Format, Known, Line, Lines, NextLine, Parsed, Parser, Zone, detect};

use crate::{Door, chosen, text};

pub(crate) const ACCESS_LOG: Door = Door {
    name: "access_log",
    enter: log,
    bytes_per_byte: 64,
    words: &[
        "192.0.2.7 - ann [29/Nov/2026:15:04:28 +0000] \"GET /a HTTP/1.1\" 200 12 \"-\" \"curl\"\n",
        "\\x22",
        "\\\"",
        "\"",
        "[",
        "]",
        "- ",
        "2026-11-29T15:04:28.123Z",
        "{\"ts\":1764428668.1,\"request\":{\"remote_ip\":\"192.0.2.7\",\"uri\":\"/\",\"method\":\"GET\"},\"status\":200,\"duration\":0.1}\n",
        "#Fields: date time c-ip cs-method cs-uri-stem sc-status\n",
        "#Version: 1.0\n",
        "\\u0041",
        "\t",
        "1e999",
        "$remote_addr [$time_local] \"$request\"\n",
        "%h %l %u %t \"%r\" %>s %b\n",
        "haproxy[1]: 192.0.2.7:1 [29/Nov/2026:15:04:28.123] f b/s 0/0/0/1/1 200 5 - - ---- 1/1/0/0/0 0/0 \"GET / HTTP/1.1\"\n",
    ],
};

/// The first byte says which format; one of them is that of the first line.
fn log(input: &[u8]) {
    let (choice, input) = chosen(input);
    let place = Zone::UTC;
    let mut lines = Lines::new(input);
    if let Ok(first) = lines.first(16) {
        drop(detect(first));
    }
    let format = match Known::ALL.get(choice % (Known::ALL.len() + 1)) {
        Some(known) => Format::Known(*known),
        None => {
            let first = input.split(|byte| *byte == b'\n').next().unwrap_or_default();
            let Ok(format) = text(first).parse() else { return };
            format
        }
    };
    let mut parser = Parser::new(&format, place);
    while let Ok(NextLine::Line(bytes)) = lines.next_line() {
        let mut line = Line::default();
        match parser.read(bytes, &mut line) {
            Parsed::Request => {
                drop(line.path_text());
                drop(line.text(line.agent));
                let _ = line.authority();
            }
            Parsed::Nothing => {}
            Parsed::Fault(fault) => drop(fault.to_string()),
        }
    }
}
