//! `--where`: which requests of a log count.
//!
//! A [condition](crate::expression) over the fields of a line. Numbers: `status`, `bytes`, `duration` in seconds. Texts:
//! `method`, `path`, `target`, `query`, `host`, `protocol`, `client`, `user`, `agent`, `referer`, `forwarded`. A text is
//! compared as a whole, or searched with `~` for a regular expression. What a line does not tell is 0 or empty.

use regex_lite::Regex;

use crate::expression::{self, Condition, ConditionError, Operator, Word};
use crate::log::Line;

/// Which requests count.
#[derive(Clone, Debug)]
pub struct Filter(Condition<Comparison>);

#[derive(Clone, Debug)]
enum Comparison {
    Number(Number, Operator, f64),
    Text(Text, bool, String),
    Matches(Text, bool, Regex),
}

#[derive(Clone, Copy, Debug)]
enum Number {
    Status,
    Bytes,
    Duration,
}

#[derive(Clone, Copy, Debug)]
enum Text {
    Method,
    Path,
    Target,
    Query,
    Host,
    Protocol,
    Client,
    User,
    Agent,
    Referer,
    Forwarded,
}

const NUMBERS: [(&str, Number); 3] =
    [("status", Number::Status), ("bytes", Number::Bytes), ("duration", Number::Duration)];
const TEXTS: [(&str, Text); 11] = [
    ("method", Text::Method),
    ("path", Text::Path),
    ("target", Text::Target),
    ("query", Text::Query),
    ("host", Text::Host),
    ("protocol", Text::Protocol),
    ("client", Text::Client),
    ("user", Text::User),
    ("agent", Text::Agent),
    ("referer", Text::Referer),
    ("forwarded", Text::Forwarded),
];

impl Filter {
    /// Does this line count?
    pub(crate) fn takes(&self, line: &Line<'_>) -> bool {
        self.0.holds(&mut |comparison| match comparison {
            Comparison::Number(field, operator, value) => {
                field.of(line).partial_cmp(value).is_some_and(|order| operator.holds(order))
            }
            Comparison::Text(field, is, value) => (field.of(line) == *value) == *is,
            Comparison::Matches(field, is, pattern) => pattern.is_match(&field.of(line)) == *is,
        })
    }
}

impl Number {
    fn of(self, line: &Line<'_>) -> f64 {
        match self {
            Self::Status => f64::from(line.status),
            Self::Bytes => line.bytes.unwrap_or(0) as f64,
            Self::Duration => line.duration_ns.unwrap_or(0) as f64 / 1e9,
        }
    }
}

impl Text {
    fn of<'a>(self, line: &Line<'a>) -> std::borrow::Cow<'a, str> {
        line.text(match self {
            Self::Method => line.method,
            Self::Path => return line.path_text(),
            Self::Target => line.target,
            Self::Query if line.query.is_empty() => {
                let mark = memchr::memchr(b'?', line.target).map_or(line.target.len(), |at| at + 1);
                &line.target[mark..]
            }
            Self::Query => line.query,
            Self::Host => line.authority(),
            Self::Protocol => line.protocol,
            Self::Client => line.client,
            Self::User => line.user,
            Self::Agent => line.agent,
            Self::Referer => line.referer,
            Self::Forwarded => line.forwarded,
        })
    }
}

impl std::str::FromStr for Filter {
    type Err = ConditionError;

    /// Reads a condition.
    ///
    /// # Errors
    /// It is none; the error points at the column.
    fn from_str(text: &str) -> Result<Self, ConditionError> {
        expression::read(text, compare).map(Self)
    }
}

fn compare<'a>(name: Word<'a>, operator: Operator, value: Word<'a>) -> Result<Comparison, (Word<'a>, String)> {
    if let Some((_, field)) = NUMBERS.iter().find(|(known, _)| *known == name.text) {
        let number = value.text.parse::<f64>().ok().filter(|number| number.is_finite());
        return match (operator, number) {
            (Operator::Matches | Operator::MatchesNot, _) => {
                Err((value, format!("`{}` is a number; it is compared with = != < <= > >=", name.text)))
            }
            (_, Some(number)) => Ok(Comparison::Number(*field, operator, number)),
            (_, None) => Err((value, format!("expected a number, got `{}`", value.text))),
        };
    }
    let Some((_, field)) = TEXTS.iter().find(|(known, _)| *known == name.text) else {
        let names = NUMBERS.iter().map(|(name, _)| *name).chain(TEXTS.iter().map(|(name, _)| *name));
        let names = names.collect::<Vec<_>>().join(", ");
        return Err((name, format!("there is no field `{}`; there are {names}", name.text)));
    };
    match operator {
        Operator::Is | Operator::IsNot => Ok(Comparison::Text(*field, operator == Operator::Is, value.text.to_owned())),
        Operator::Matches | Operator::MatchesNot => {
            let pattern = Regex::new(value.text).map_err(|error| (value, format!("no regular expression: {error}")))?;
            Ok(Comparison::Matches(*field, operator == Operator::Matches, pattern))
        }
        _ => Err((value, format!("`{}` is a text; it is compared with = != ~ !~", name.text))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(condition: &str, expect: bool) {
        let filter: Filter = condition.parse().unwrap_or_else(|error| panic!("{error}"));
        let line = Line {
            status: 503,
            method: b"GET",
            target: b"/api/x?y=1",
            agent: br#"say \"hi\""#,
            duration_ns: Some(1_500_000_000),
            ..Line::default()
        };
        assert_eq!(filter.takes(&line), expect, "{condition}");
    }

    #[test]
    fn conditions_hold_as_they_read() {
        check(r#"status >= 500 and path ~ "^/api""#, true);
        check("status < 500 or method = GET", true);
        check("not (status = 503 or method = POST)", false);
        check(
            "status != 503 and nothing = 1 or x = 1".replace("nothing", "bytes").replace('x', "bytes").as_str(),
            false,
        );
        check("path=/api/x and query=y=1", true);
        check("path = /api/x and query = 'y=1' and target = '/api/x?y=1'", true);
        check("duration > 1.4 and duration <= 1.5", true);
        check(r##"agent ~ 'say "hi"' and host = "" and user !~ "." "##, true);
    }

    #[test]
    fn a_mistake_points_at_its_column() {
        let error = |text: &str| text.parse::<Filter>().unwrap_err().to_string();
        assert_eq!(error("status >="), "column 10: a value is missing\n  status >=\n           ^");
        assert_eq!(error("status 5"), "column 8: expected one of = != < <= > >= ~ !~\n  status 5\n         ^");
        assert!(error("é = 1").starts_with("column 1: there is no field `é`; there are status, bytes"));
        assert!(error("path = a und status = 5").starts_with("column 10: `und` is too much here; expected `and` or"));
        assert!(error("path = 'a").starts_with("column 8: this ' is not closed"));
        assert!(error("(path = a").starts_with("column 10: expected `)`"));
        assert!(error("status ~ 5").starts_with("column 10: `status` is a number"));
        assert!(error("path > 5").starts_with("column 8: `path` is a text"));
        assert!(error("path ~ '('").starts_with("column 8: no regular expression"));
        assert!(error("path = a)").starts_with("column 9: `)` is too much here"));
        assert!(error("").starts_with("column 1: a comparison is missing"));
        assert!(error(&"not ".repeat(100)).contains("nested deeper than 32"));
    }
}
