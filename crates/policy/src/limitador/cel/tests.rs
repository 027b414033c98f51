//! Expressions: what they are worth for a call, and how those that are refused are told.

use super::*;
use crate::Entry;

const FIRST: [Entry<'_>; 5] = [
    Entry { key: "req.method", value: "GET" },
    Entry { key: "user_id", value: "old" },
    Entry { key: "user_id", value: "ann" },
    Entry { key: "size", value: "42" },
    Entry { key: "empty", value: "" },
];
const SECOND: [Entry<'_>; 2] = [Entry { key: "plan", value: "gold" }, Entry { key: "req.method", value: "POST" }];
const OWN: Own<'_> = Own { id: Some("my_id"), name: None };

/// What an expression is worth as a variable, `-` if it has no value, and the column and words if it is refused.
#[track_caller]
fn check(source: &str, expect: &str) {
    let call = Call { namespace: "ns", descriptors: &[&FIRST, &SECOND] };
    let got = match Variable::parse(source, OWN) {
        Ok(variable) => variable.with_value(&call, str::to_owned).unwrap_or_else(|| "-".to_owned()),
        Err(error) => format!("{}: {error}", error.at),
    };
    assert_eq!(got, expect, "{source}");
}

#[test]
fn what_the_documentation_of_limitador_shows() {
    check("descriptors[0]['req.method'] == 'GET'", "true");
    check("descriptors[0]['req.method'] != 'GET'", "false");
    check(r#"descriptors[0]["req.method"] == "POST""#, "false");
    check("descriptors[0].user_id", "ann");
    check("descriptors[1].plan == 'gold'", "true");
    check("limit.id == 'my_id'", "true");
    check("limit.name == null", "true");
    check("limit.name == 'x'", "false");
    check("descriptors[0].user_id.contains('nn')", "true");
    check("descriptors[0].user_id.endsWith('baz')", "false");
    check("descriptors[0].user_id.startsWith('an')", "true");
    check("int(descriptors[0].size) > 41", "true");
    check("int(descriptors[0].size) <= -42", "false");
    check("100", "100");
    check("string(int('7')) == '7'", "true");
}

#[test]
fn names_of_old_files_are_entries_of_any_descriptor() {
    check("plan", "gold");
    check("user_id == 'ann'", "true");
    check("size == '42'", "true");
    check("nobody == 'ann'", "-");
}

#[test]
fn what_is_missing_has_no_value() {
    check("descriptors[0].nobody", "-");
    check("descriptors[7].user_id == 'ann'", "-");
    check("!(descriptors[0].nobody == 'x')", "-");
    check("int(descriptors[0].user_id) > 1", "-");
    check("int(descriptors[0].empty) > 1", "-");
    check("descriptors[0].empty == ''", "true");
    check("has(descriptors[0].nobody)", "false");
    check("has(descriptors[0].empty) && 'user_id' in descriptors[0]", "true");
    check("'plan' in descriptors[7]", "-");
    check("has(plan)", "true");
}

#[test]
fn what_is_missing_matters_only_where_it_decides() {
    check("descriptors[0].nobody == 'x' || true", "true");
    check("true || descriptors[0].nobody == 'x'", "true");
    check("descriptors[0].nobody == 'x' && false", "false");
    check("descriptors[0].nobody == 'x' || false", "-");
    check("descriptors[0].nobody == 'x' && true", "-");
}

#[test]
fn signs_bind_as_in_cel() {
    check("true || false && false", "true");
    check("(true || false) && false", "false");
    check("!false && true", "true");
    check("!!true", "true");
    check("!plan.startsWith('g')", "false");
    check("1 < 2 && 2 >= 2 && 'a' < 'b'", "true");
    check("plan in ['silver', 'gold']", "true");
    check("plan in []", "false");
    check("3 in [1, 2]", "false");
    check("size(plan) == 4", "true");
    check(
        r"'\'\\\n' == '\x'",
        r#"13: an escape other than \\, \', \", \n, \r and \t is not read here; docs/limitador.md says what is"#,
    );
    check(r#"'it\'s' == "it's""#, "true");
    check("'size' == 'größe' || size('größe') == 5", "true");
}

#[test]
fn what_is_not_read_is_named() {
    let refused = |what: &str| format!("{what} is not read here; docs/limitador.md says what is");
    for (source, at, what) in [
        ("1 + 2", 2, "arithmetic"),
        ("1 - 2 == 1", 2, "arithmetic"),
        ("-size", 0, "arithmetic"),
        ("plan == 'a' ? 1 : 2", 12, "a choice by `?`"),
        ("{'a': 1}", 0, "a map"),
        ("1.5 < 2", 0, "a number that is no plain whole one"),
        ("5u", 0, "a number that is no plain whole one"),
        ("0x1f", 0, "a number that is no plain whole one"),
        ("r'a'", 0, "a text with letters in front of its quotes"),
        ("'''a'''", 0, "a text in triple quotes"),
        ("plan // why", 5, "a comment"),
        ("['a']", 0, "a list elsewhere than behind `in`"),
        ("descriptors[size(plan)].a", 12, "an index that is no whole number"),
        ("descriptors[0][plan]", 15, "a key that is not a text in quotes"),
        ("plan in descriptors[0]", 8, "a key that is not a text in quotes"),
    ] {
        check(source, &format!("{at}: {}", refused(what)));
    }
    let functions = "is not read here; there are `int`, `string`, `size`, `has`, and behind a text `.startsWith`, \
                     `.endsWith`, `.contains`";
    check("plan.matches('(a+)+')", &format!("5: the function `matches` {functions}"));
    check("descriptors.exists(d, d.plan == 'x')", &format!("12: the function `exists` {functions}"));
    check("uint('42') == 42", &format!("0: the function `uint` {functions}"));
}

#[test]
fn mistakes_are_told_with_what_was_meant() {
    check("plan = 'gold'", "5: `=` compares nothing; write `==`");
    check("true & false", "5: write `&&`");
    check("method == POST", "10: `POST` is a name here, not a text; a text stands in quotes: 'POST'");
    check("req.method == 'GET'", "0: `req.method`: an entry whose key has a dot is descriptors[0]['req.method']");
    check("descriptors.plan", "12: which descriptor? Write descriptors[0].plan");
    check("descriptors[0] == 'a'", "0: which entry? Write descriptors[0].key");
    check("descriptors[256].a", "12: the last descriptor is descriptors[255]");
    check("limit.max", "6: a limit has `limit.id` and `limit.name`");
    check("size > 41", "5: a text is compared with a number; int(...) is the number that a text is");
    check("plan && true", "0: `&&` takes what is true or false, and this is a text");
    check("!plan", "1: `!` takes what is true or false, and this is a text");
    check("null < null", "5: null has no order");
    check("plan in [1]", "9: a text is never in a list with a number");
    check("'gold", "0: the text does not end; a quote is missing");
    check("plan ==", "7: something is missing at the end");
    check("", "0: something is missing at the end");
    check("(plan", "5: expected `)`");
    check("plan plan", "5: nothing more was expected here");
    check("1 == 1 == 1", "7: nothing more was expected here");
    check("plan.size", "0: `plan.size`: an entry whose key has a dot is descriptors[0]['plan.size']");
    check("9223372036854775808", "0: the number is too large");
    check("a # b", "2: `#` is no sign of CEL");
    let error = Condition::parse("descriptors[0].plan", OWN).unwrap_err();
    assert_eq!(error.to_string(), "a condition is true or false, and this is a text");
}

#[test]
fn depth_and_length_are_bounded() {
    let nested = |count: usize| format!("{}true{}", "(".repeat(count), ")".repeat(count));
    check(&nested(usize::from(DEPTH_MAX)), "true");
    let too_deep = "this is nested too deep; the maximum is 32";
    for (source, at) in [(nested(2_000), 33), ("!".repeat(4_000) + "true", 33), ("size(".repeat(800), 165)] {
        check(&source, &format!("{at}: {too_deep}"));
    }
    // What is long and flat is read without going deep.
    check(&format!("true{}", " && true".repeat(500)), "true");
    check(&" ".repeat(EXPRESSION_BYTES_MAX + 1), "0: the expression is too long; 4096 bytes are the most");
}
