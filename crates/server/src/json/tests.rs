//! What is read is what serde_json reads, and what is wrong says where.

use super::*;

/// Reads any value, to its end.
fn skip(reader: &mut Reader<'_>) -> Result<(), Fault> {
    match reader.kind() {
        Kind::Object => reader.entries("an object", |reader, _, _| skip(reader)),
        Kind::List => reader.list("a list", |reader, _| skip(reader)),
        Kind::Text => reader.text("a text").map(drop),
        Kind::Number => reader.whole_number("a whole number").map(drop),
        Kind::True | Kind::False => reader.truth().map(drop),
        Kind::Null | Kind::Nothing => reader.truth().map(drop),
    }
}

#[test]
fn texts_are_those_that_serde_json_reads() {
    let texts = [
        r#""""#,
        r#""a""#,
        r#""\"\\\/\b\f\n\r\t""#,
        r#""\u00e9\u0000""#,
        r#""\ud83d\ude00x""#,
        r#""é😀""#,
        r#""\ud83d""#,
        r#""\ude00\ud83d""#,
        r#""\ud83d\u0041""#,
        r#""\x""#,
        r#""\u12""#,
        r#""\u+123""#,
        r#""\"#,
        r#"""#,
        "\"a\nb\"",
        "\"a\tb\"",
        "\"\u{7f}\u{2028}\"",
        r#"'a'"#,
        r#""a"b"#,
        r#""\u00éé""#,
    ];
    for json in texts {
        let ours = read(json, |reader| reader.text("a text").map(|text| text.into_owned())).ok();
        assert_eq!(ours, serde_json::from_str::<String>(json).ok(), "{json}");
    }
}

#[test]
fn whole_numbers_are_read_as_they_may_be_written() {
    let number = |json: &str| read(json, |reader| reader.whole_number("a whole number")).ok();
    let written = ["0", "7", "18446744073709551615", "-0", "5.0", "5e0", "50.00e-1", "2E+3", "9007199254740993.0"];
    let values = [0, 7, u64::MAX, 0, 5, 5, 5, 2_000, 9_007_199_254_740_992];
    assert_eq!(written.map(number), values.map(Some));
    for wrong in [
        "",
        "-1",
        "1.5",
        "01",
        "1.",
        ".5",
        "+1",
        "1e",
        "1e+",
        "--1",
        "1-2",
        "0x1",
        "1e400",
        "18446744073709551616",
        "NaN",
    ] {
        assert_eq!(number(wrong), None, "{wrong}");
    }
}

#[test]
fn documents_are_those_that_serde_json_reads() {
    let documents = [
        "{}",
        "[]",
        " [ 1 , 2 ] ",
        r#"{"a":1,"b":[true,{"c":"d"}]}"#,
        "[1,]",
        "[1 2]",
        "{,}",
        r#"{"a"}"#,
        r#"{"a":}"#,
        r#"{a:1}"#,
        r#"{"a":1,}"#,
        "[",
        "{",
        r#"{"a":1"#,
        "[]]",
        "{} {}",
        "tru",
        "true false",
        "\u{feff}{}",
        "[truefalse]",
        "[true,false]",
    ];
    for json in documents {
        let theirs = serde_json::from_str::<serde_json::Value>(json).is_ok();
        assert_eq!(read(json, skip).is_ok(), theirs, "{json}");
    }
}

#[test]
fn every_text_that_is_cut_or_changed_is_read_or_refused_as_by_serde_json() {
    let whole = r#"{"charges": [{"limit": "60/min", "key": ["a\u00e9\n", "b"], "cost": 12}], "peek": false}"#;
    for at in (0..whole.len()).filter(|at| whole.is_char_boundary(*at)) {
        for put in ["", "\"", "\\", ",", "}", "]", "0", "{", "\u{e9}", "\n", "-", "."] {
            let changed = format!("{}{put}{}", &whole[..at], &whole[at + 1..]);
            // What is right there and wrong here is a number that is not whole, and nothing else in this text.
            let theirs = serde_json::from_str::<serde_json::Value>(&changed);
            let is_whole = theirs.as_ref().is_ok_and(|value| value["charges"][0]["cost"].as_u64().is_some());
            match read(&changed, skip) {
                Ok(()) => assert!(theirs.is_ok(), "{changed}"),
                Err(fault) => assert!(theirs.is_err() || !is_whole, "{changed}: {fault:?}"),
            }
            let _ = read(&whole[..at], skip).unwrap_err();
        }
    }
}

#[test]
fn what_is_wrong_says_what_and_where() {
    let fields = ["limit", "cost"];
    let read = |json: &str| {
        let fault = read(json, |reader| {
            reader.list("a list of charges", |reader, _| {
                reader.object("a charge", &fields, |reader, field| match field {
                    "limit" => reader.text("a limit such as \"60/min\"").map(drop),
                    _ => reader.whole_number("a whole number of tokens").map(drop),
                })
            })
        });
        let fault = fault.unwrap_err();
        format!("{} {}: {}", fault.pointer(), fault.place(json), fault.message())
    };
    let cases = [
        ("", " line 1, column 1: there is nothing here; expected JSON"),
        ("{}", " line 1, column 1: expected a list of charges, not an object"),
        ("[null]", "/0 line 1, column 2: expected a charge, not null; leave the field out"),
        ("[{\"cost\": \"5\"}]", "/0/cost line 1, column 11: expected a whole number of tokens, not a text"),
        ("[{}, {\n  \"cost\": -5}]", "/1/cost line 2, column 11: expected a whole number of tokens, not `-5`"),
        (
            "[{\"limits\": \"5/s\"}]",
            "/0 line 1, column 3: there is no field `limits` in a charge; did you mean `limit`?",
        ),
        ("[{\"\u{e9}\": 1}]", "/0 line 1, column 3: there is no field `\u{e9}` in a charge; there are `limit`, `cost`"),
        ("[{\"cost\": 1, \"c\\u006fst\": 2}]", "/0 line 1, column 14: `cost` is there twice"),
        ("[] x", " line 1, column 4: the text goes on behind its value"),
        ("[{\"limit\": \"a", "/0/limit line 1, column 14: the text has no end; expected `\"`"),
    ];
    cases.into_iter().for_each(|(json, expect)| assert_eq!(read(json), expect, "{json}"));
}

#[test]
fn there_is_an_end_to_what_is_read() {
    let many = format!("[{}1]", "1,".repeat(2_000));
    assert!(read(&many, skip).unwrap_err().message().contains("more than 1024 items"));
}
