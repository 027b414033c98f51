//! What a caller asks: a request for the policies in force, or limits that it brings.

use std::time::Duration;

use tidegate_core::{Cost, OPEN_FOR};

use super::brought::{self, Brought};
use super::described::Described;
use crate::json::{Fault, Reader, read};

/// The longest that a reservation stays open: a year.
const OPEN_S_MAX: u64 = 365 * 86_400;

const CHECK: [&str; 4] = ["request", "charges", "cost", "peek"];
const RESERVE: [&str; 4] = ["request", "charges", "cost", "open_for_s"];

/// What a caller asks.
pub(super) struct Question<'a> {
    pub(super) subject: Subject<'a>,
    /// Is it but a look?
    pub(super) is_peek: bool,
    /// How long a reservation stays open.
    pub(super) open_for: Duration,
}

/// What it is about.
pub(super) enum Subject<'a> {
    Request(Box<Described<'a>>),
    Charges(Vec<Brought<'a>>),
}

impl<'a> Question<'a> {
    /// The question of a call of `/v1/check`.
    pub(super) fn check(text: &'a str) -> Result<Self, Fault> {
        read(text, |reader| Self::read(reader, "a check", &CHECK))
    }

    /// The question of a call of `/v1/reserve`.
    pub(super) fn reserve(text: &'a str) -> Result<Self, Fault> {
        read(text, |reader| Self::read(reader, "a reservation", &RESERVE))
    }

    fn read(reader: &mut Reader<'a>, what: &str, fields: &[&'static str]) -> Result<Self, Fault> {
        let at = reader.at();
        let (mut request, mut charges, mut cost) = (None, None, None);
        let (mut is_peek, mut open_for) = (false, OPEN_FOR);
        reader.object(what, fields, |reader, field| {
            let at = reader.at();
            match field {
                "request" => request = Some(Box::new(Described::read(reader)?)),
                "charges" => charges = Some(brought::read_all(reader)?),
                "cost" => cost = Some((Cost::new(reader.whole_number("a whole number of tokens")?), at)),
                "peek" => is_peek = reader.truth()?,
                _ => open_for = open_for_s(reader)?,
            }
            Ok(())
        })?;
        let subject = match (request, charges, cost) {
            (Some(mut request), None, cost) => {
                request.cost = cost.map(|(cost, _)| cost);
                Subject::Request(request)
            }
            (None, Some(charges), None) => Subject::Charges(charges),
            (None, Some(_), Some((_, at))) => {
                return Err(Fault::new(at, "each charge has a `cost` of its own; write it there").within("cost"));
            }
            (Some(_), Some(_), _) => {
                return Err(Fault::new(
                    at,
                    "there are both `request` and `charges`; policies decide on the one, the limits that \
                                           you bring on the other",
                ));
            }
            (None, None, _) => {
                return Err(Fault::new(
                    at,
                    "what is it about? There must be `charges`, such as [{\"limit\": \"60/min\", \
                                           \"key\": \"user-42\"}], or a `request` for the policies in force",
                ));
            }
        };
        Ok(Self { subject, is_peek, open_for })
    }
}

fn open_for_s(reader: &mut Reader<'_>) -> Result<Duration, Fault> {
    let (at, seconds) = (reader.at(), reader.whole_number("a whole number of seconds")?);
    match (1..=OPEN_S_MAX).contains(&seconds) {
        true => Ok(Duration::from_secs(seconds)),
        false => Err(Fault::new(at, format_args!("a reservation stays open for 1 to {OPEN_S_MAX} seconds"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_about_a_request_or_about_charges() {
        let json = r#"{"cost": 3, "request": {}, "peek": true}"#;
        let question = Question::check(json).unwrap_or_else(|fault| panic!("{fault:?}"));
        assert!(question.is_peek);
        assert!(matches!(question.subject, Subject::Request(request) if request.cost == Some(Cost::new(3))));
        let json = r#"{"charges": [{"key": "a", "limit": "5/s"}], "open_for_s": 60}"#;
        let question = Question::reserve(json).unwrap_or_else(|fault| panic!("{fault:?}"));
        assert!(matches!(question.subject, Subject::Charges(charges) if charges.len() == 1));
        assert_eq!(question.open_for, Duration::from_secs(60));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let charges = r#""charges": [{"key": "a", "limit": "5/s"}]"#;
        for (json, expect) in [
            ("{}".to_owned(), "what is it about?"),
            ("{\"cost\": 1}".to_owned(), "what is it about?"),
            (format!("{{{charges}, \"cost\": 1}}"), "each charge has a `cost` of its own"),
            (format!("{{{charges}, \"request\": {{}}}}"), "there are both `request` and `charges`"),
            (format!("{{{charges}, \"open_for_s\": 1}}"), "there is no field `open_for_s` in a check"),
            ("[]".to_owned(), "expected a check, not a list"),
        ] {
            let fault = Question::check(&json).err().unwrap();
            assert!(fault.message().starts_with(expect), "{json}: {}", fault.message());
        }
        for seconds in ["0", "31536001"] {
            let fault = Question::reserve(&format!("{{{charges}, \"open_for_s\": {seconds}}}")).err().unwrap();
            assert_eq!(fault.pointer(), "/open_for_s");
        }
        assert!(Question::reserve("{\"peek\": true}").is_err());
    }
}
