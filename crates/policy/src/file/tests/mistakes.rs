//! What people write by mistake, and what they are told.

use super::super::{Format, read};
use super::toml;

/// The faults of a text: line, column and message of each.
fn faults(text: &str, format: Format) -> Vec<String> {
    let Err(error) = read("f", text, format) else { return Vec::new() };
    error.faults().iter().map(|fault| format!("{}:{} {}", fault.line, fault.column, fault.message)).collect()
}

#[track_caller]
fn check(text: &str, expect: &[&str]) {
    assert_eq!(faults(text, Format::Toml), expect, "{text}");
}

/// A policy with these lines, which begin at line 3.
#[track_caller]
fn check_policy(lines: &str, expect: &[&str]) {
    check(&format!("[[policies]]\nname = \"p\"\n{lines}\n"), expect);
}

#[test]
fn all_mistakes_are_shown_at_once() {
    let text = "\
[client]
trusted_proxies = \"10.0.0.0/8\"
ipv6_prefix = 200

[[policies]]
name = \"a\"
limits = [\"60/min\", \"5/m\", 100]
modee = \"shadow\"
match = { path = \"api\", methods = \"GET\" }

[[policies]]
name = \"a\"
limit = \"60/min\"
";
    check(
        text,
        &[
            "2:1 the client has no key `trusted_proxies`; did you mean `trust`?",
            "3:15 expected a whole number from 0 to 128",
            "7:24 `5/m`: `m` could be a minute or a month; write `5/min` or `5/month`",
            "7:28 `100`: a count needs a period; write `100/s` or `100/min`",
            "8:1 a policy has no key `modee`; did you mean `mode`?",
            "9:18 a path begins with a slash; did you mean `/api`?",
            "9:25 a match has no key `methods`; did you mean `method`?",
            "12:8 a policy needs `limits`, such as `limits = \"60/min\"`",
            "12:8 a policy `a` is there already; give each a name of its own",
            "13:1 a policy has no key `limit`; did you mean `limits`?",
        ],
    );
    let shown = toml(text).unwrap_err().to_string();
    let first = "tidegate.toml:2:1: the client has no key `trusted_proxies`; did you mean `trust`?\n  \
                 2 | trusted_proxies = \"10.0.0.0/8\"\n    | ^^^^^^^^^^^^^^^\n";
    assert!(shown.starts_with(first), "{shown}");
}

#[test]
fn br_165_an_ambiguous_unit_is_refused_with_its_place() {
    let hint = "`m` could be a minute or a month";
    for text in ["1/m", "1/1 m", "1/1M"] {
        let found = faults(&format!("policies = [{{ name = 'p', limits = '{text}' }}]"), Format::Toml);
        assert!(matches!(&found[..], [one] if one.contains(hint) && one.starts_with("1:")), "{found:?}");
    }
    for text in ["1/90", "1/-1s", "1/0s", "1/1m30s", "90"] {
        assert_eq!(
            faults(&format!("policies = [{{ name = 'p', limits = '{text}' }}]"), Format::Toml).len(),
            1,
            "{text}"
        );
    }
    let period = |text: &str| {
        let config = toml(&format!("policies = [{{ name = 'p', limits = '1/{text}' }}]")).unwrap();
        config.policies.as_slice()[0].limits()[0].limit.quota().unwrap().rate().period().as_secs()
    };
    let periods = ["1min", "1day", "1week", "1month", "1year", "1d", "1w", "1mo"].map(period);
    assert_eq!(periods, [60, 86_400, 604_800, 2_592_000, 31_536_000, 86_400, 604_800, 2_592_000]);
    check_policy(
        "limits = '1/s'\npenalty = { after = '5/min', hold = '10m' }",
        &["4:37 `10m`: `m` could be a minute or a month; write `10min`"],
    );
}

#[test]
fn br_167_a_limit_without_a_period_is_refused_with_the_likely_intent() {
    let cases = [
        ("100", "`100`: a count needs a period; write `100/s` or `100/min`"),
        ("100 burst 50", "`100 burst 50`: a count needs a period; write `100/s burst 50` or `100/min burst 50`"),
        ("100/ burst 50", "`100/ burst 50`: a count needs a period; write `100/s burst 50` or `100/min burst 50`"),
        (
            "100/10 burst 50",
            "`100/10 burst 50`: the period has no unit; write `100/10s burst 50` or `100/10min burst 50`",
        ),
        ("", "the limit is empty; write one such as `60/min`, `0/min` to block, or `unlimited` to allow everything"),
    ];
    for (text, expect) in cases {
        let found = faults(&format!("[[policies]]\nname = 'p'\nlimits = '{text}'"), Format::Toml);
        assert!(matches!(&found[..], [one] if one.starts_with("3:") && one.ends_with(expect)), "{found:?}");
    }
}

#[test]
fn br_169_only_a_text_or_a_list_of_texts_is_a_list_of_limits() {
    let json = |limits: &str| format!("{{\"policies\": [\n{{\"name\": \"p\", \"limits\": {limits}}}]}}");
    let read = |limits: &str| read("f", &json(limits), Format::Json);
    assert_eq!(read("\"1/s\""), read("[\"1/s\"]"));
    assert!(read("\"1/s\"").is_ok());
    for (limits, expect) in [
        ("[]", "2:25 the list is empty; expected limits such as \"60/min\", or leave the key out"),
        ("null", "2:25 expected limits such as \"60/min\", found nothing"),
        ("5", "2:25 `5`: a count needs a period; write `5/s` or `5/min`"),
        ("[[\"1/s\"]]", "2:26 expected limits such as \"60/min\", found a list"),
    ] {
        assert_eq!(faults(&json(limits), Format::Json), [expect]);
    }
    let yaml = |limits: &str| faults(&format!("policies:\n- name: p\n  limits: {limits}\n"), Format::Yaml);
    assert_eq!(yaml("1/s"), [""; 0]);
    assert_eq!(yaml("[]"), ["3:11 the list is empty; expected limits such as \"60/min\", or leave the key out"]);
    assert_eq!(yaml(""), ["3:9 expected limits such as \"60/min\", found nothing"]);
    assert_eq!(yaml("5"), ["3:11 `5`: a count needs a period; write `5/s` or `5/min`"]);
}

#[test]
fn br_170_short_forms_without_a_unit_are_refused() {
    for text in ["5/60", "5 per 60", "10s", "5/m", "1 per 10s"] {
        assert_eq!(
            faults(&format!("policies = [{{ name = 'p', limits = '{text}' }}]"), Format::Toml).len(),
            1,
            "{text}"
        );
    }
    for text in ["5/60s", "10/s"] {
        assert!(toml(&format!("policies = [{{ name = 'p', limits = '{text}' }}]")).is_ok(), "{text}");
    }
}

#[test]
fn words_that_others_use_are_understood() {
    check_policy(
        "limits = '1/s'\nburst = 5\ndry_run = true\npath = '/x'",
        &[
            "4:1 a policy has no key `burst`; the burst is part of a limit: `60/min burst 10`",
            "5:1 a policy has no key `dry_run`; did you mean `mode = \"shadow\"`?",
            "6:1 a policy has no key `path`; write it in the match: `match = { path = \"/api/*\" }`",
        ],
    );
    check("policy = []", &["1:1 the file has no key `policy`; policies are a list: `[[policies]]` in TOML"]);
    check_policy("limits = '1/s'\nmode = 'shadwo'", &["4:8 `shadwo` is not known; did you mean `shadow`?"]);
    check_policy(
        "limits = '1/s'\non_missing = 'ignore'",
        &["4:14 `ignore` is not known; expected one of `client`, `deny`, `skip`"],
    );
    check_policy("limits = '1/s'\nkey = 'ip'", &["4:7 `ip` is no part of a key; did you mean `client`?"]);
    check_policy("limits = '1/s'\nkey = ['client', 'client']", &["4:7 the key has `client` twice"]);
    check_policy(
        "limits = '1/s'\nmatch = { header = { x-plan = 5, X-Plan = 'a', 'a b' = 'c' } }",
        &[
            "4:31 expected a text, or `true` for any value, found a number; put it in double quotes",
            "4:34 header x-plan is there already; case does not matter",
            "4:48 `a b` is no header field: ` ` cannot stand in a name; only letters, digits and !#$%&'*+-.^_`|~ can",
        ],
    );
    check_policy(
        "limits = '1/s'\npenalty = { after = '0/s' }",
        &[
            "4:11 a penalty needs `after`, such as \"5/15min\", and `hold`, such as \"1h\"",
            "4:21 a penalty comes after some offences within a time, such as `5/15min`",
        ],
    );
    for hold in ["h", "1", "40d", "0s", "1h burst 1", "-1h", "soon", ""] {
        let found = faults(
            &format!("policies = [{{ name = 'p', limits = '1/s', penalty = {{ after = '5/s', hold = '{hold}' }} }}]"),
            Format::Toml,
        );
        assert!(matches!(&found[..], [one] if one.contains("is no length of time")), "{hold}: {found:?}");
    }
    check_policy("limits = '1/s'\ncost = 1.5", &["4:8 expected a whole number from 0 to 4294967296"]);
    check_policy(
        "limits = '1/s'\ncost = { header = 'a', response = 'b' }",
        &["4:8 a cost is a number, `{ header = NAME, otherwise = N }` or `{ response = NAME, estimate = N }`"],
    );
    check_policy(
        "limits = { limit = '10/s burst 20', algorithm = 'fixed-window' }",
        &["3:20 `10/s burst 20` as a fixed-window: a fixed window passes exactly its count at once; leave the burst \
           out, or use token-bucket"],
    );
}

#[test]
fn single_keys_are_checked_against_their_policy() {
    check_policy(
        "limits = ['1/s', { name = 'day', limit = '9/day' }]\noverrides = [\n\
         { key = '10.0.0.1', limits = '2/s' },\n\
         { key = 'me', limits = { dya = '2/s' } },\n\
         { key = ['::1', 'x'], limits = { day = '2/m' } },\n\
         { key = '::1', limits = { day = '2/d' }, until = 2026-12-24 },\n\
         { key = '::2', limits = { limit-1 = '2/s' } },\n\
         { limits = { day = '1/s' } },\n\
         ]\nexempt = { keys = ['10.0.0.2', '10.0.0.2'] }",
        &[
            "5:30 the policy has several limits; write `{ limit-1 = \"...\", day = \"...\" }`",
            "6:9 `me` is no address; the key's part `client` is one, such as `203.0.113.7`",
            "6:26 the policy has no limit `dya`; did you mean `day`?",
            "7:9 the policy's key has 1 parts, and here are 2 values; write one for each",
            "7:43 `2/m`: `m` could be a minute or a month; write `2/min` or `2/month`",
            "8:50 `2026-12-24` is a day, and where it ends depends on the time zone; write `2026-12-24T00:00:00Z`",
            "9:9 the key `::2` is there twice; only one of them can count",
            "10:1 an override needs a `key`, the value of the policy's key",
            "12:32 the key `10.0.0.2` is there twice; only one of them can count",
        ],
    );
}

#[test]
fn what_shows_only_together_has_its_place_too() {
    let many: String = (0..17).map(|i| format!("[[policies]]\nname = \"p{i}\"\nlimits = \"1/s\"\n")).collect();
    let found = faults(&many, Format::Toml);
    assert!(matches!(&found[..], [one] if one.starts_with("50:8 17 limits apply to one request")), "{found:?}");
}

#[test]
fn mistakes_of_syntax_have_their_place() {
    let starts = |text: &str, format, expect: &str| {
        let found = faults(text, format);
        assert!(matches!(&found[..], [one, ..] if one.starts_with(expect)), "{found:?}");
    };
    starts("[client]\ntrust = 10.0.0.0/8\n", Format::Toml, "2:");
    starts("a = 1\na = 2\n", Format::Toml, "2:1");
    starts("a: [1\nb: 2\n", Format::Yaml, "2:");
    starts("client: {}\nclient: {}\n", Format::Yaml, "2:1 `client` is there already");
    starts("client: &a {}\nexempt: *a\n", Format::Yaml, "2:9 aliases are not read here");
    starts("client: !x {}\n", Format::Yaml, "1:");
    starts("client: {}\n---\nclient: {}\n", Format::Yaml, "2:1 a second document begins here");
    starts("{\"client\": {},\n}", Format::Json, "2:1 JSON has no comma behind the last item");
    starts("{\"client\": {}, \"client\": {}}", Format::Json, "1:16 `client` is there already");
    starts("[]", Format::Json, "1:1 expected the file as a table, found a list");
    starts("// x", Format::Json, "1:1 JSON has no comments");
    assert_eq!(faults("", Format::Toml), [""; 0]);
    assert_eq!(faults("", Format::Yaml), [""; 0]);
    assert_eq!(faults("{}", Format::Json), [""; 0]);
}

#[test]
fn places_are_told_in_characters() {
    check(
        "# \u{fc}\u{1f600}\npolicies = [{ name = '\u{e9}', limits = '1/s' }] # \u{e9}",
        &["2:22 `\u{e9}` is no name; names have 1 to 64 letters, digits, dots, hyphens and underscores"],
    );
    let yaml = "# \u{fc}\u{1f600}\npolicies:\n- {name: p, x-\u{e9}: 1, limits: 5/m}\n";
    let found = faults(yaml, Format::Yaml);
    assert!(found[0].starts_with("3:13 a policy has no key `x-\u{e9}`"), "{found:?}");
    assert!(found[1].starts_with("3:31 `5/m`"), "{found:?}");
}

#[test]
fn a_key_s_limits_alone_are_read_as_json() {
    let limits = ["minute", "day"];
    let policy = limits.into_iter().fold(crate::Policy::new("p", Default::default()), |policy, name| {
        policy.with_limit(name, "1/min".parse().unwrap(), Default::default())
    });
    let read = |text: &str| super::super::read_override("the body", text, &policy, vec!["192.0.2.1".to_owned()]);
    let special = read(r#"{"limits": {"day": "9/day"}, "until": "1970-01-01T00:01:00Z"}"#).unwrap();
    assert_eq!((special.limits[0].0.as_str(), special.limits.len(), special.until_s), ("day", 1, Some(60)));
    for (text, expect) in [
        (r#"{"limit": "9/day"}"#, "1:2 an override has no key `limit`; did you mean `limits`?"),
        (r#"{"limits": {"day": 9}}"#, "1:20 `9`: a count needs a period; write `9/s` or `9/min`"),
        (r#"{"limits": {"dax": "9/day"}}"#, "1:13 the policy has no limit `dax`; did you mean `day`?"),
        (r#"{"limits": {"day": "9/day"}, "until": 5}"#, "1:39 expected a text, a time such as"),
        (r#"{"limits": "#, "1:12 the file ends here; expected a value"),
        ("[]", "1:1 expected an override as a table, found a list"),
    ] {
        let error = read(text).unwrap_err();
        let faults: Vec<_> =
            error.faults().iter().map(|it| format!("{}:{} {}", it.line, it.column, it.message)).collect();
        assert!(faults.iter().any(|fault| fault.starts_with(expect)), "{text}: {faults:?}");
    }
}
