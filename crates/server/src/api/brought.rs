//! Limits that a call brings, with the key that each charges.
//!
//! A limit is known by its name: all calls that bring the same name charge the same buckets, and one that brings other
//! numbers has changed the limit (law 10), so a plan for each key is one limit. One algorithm's debt says nothing under
//! another, so that makes it another limit.

use std::borrow::Cow;

use tidegate_core::{Algorithm, CHARGES_MAX, Charge, Cost, Handling, Limit, LimitId, Mode, Quota, QuotaError};

use super::key;
use crate::json::{Fault, Reader};

/// The name of a limit that is brought without one.
pub(super) const NAME: &str = "default";
/// The longest name, in characters.
pub(super) const NAME_CHARS_MAX: usize = 64;

const FIELDS: [&str; 6] = ["limit", "key", "name", "cost", "algorithm", "shadow"];

/// A limit that a call brings, and its claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Brought<'a> {
    pub(super) name: Cow<'a, str>,
    /// `None` if it is unlimited.
    pub(super) quota: Option<Quota>,
    pub(super) mode: Mode,
    key: Cow<'a, [u8]>,
    cost: Cost,
}

impl Brought<'_> {
    /// What it claims; nothing if it is unlimited.
    pub(super) fn charge(&self, handling: Handling) -> Option<Charge<'_>> {
        let quota = self.quota?;
        let charge = Charge::new(identity(&self.name, quota.algorithm()), quota, &self.key);
        Some(charge.with_cost(self.cost).with_mode(self.mode).with_handling(handling))
    }

    /// Would both charge one bucket under different numbers?
    fn contradicts(&self, other: &Self) -> bool {
        let algorithm = |one: &Self| one.quota.map(|quota| quota.algorithm());
        self.name == other.name
            && self.key == other.key
            && self.quota != other.quota
            && algorithm(self) == algorithm(other)
    }
}

/// The identity of a limit of this name.
pub(super) fn identity(name: &str, algorithm: Algorithm) -> LimitId {
    let plain = LimitId::of("api", name);
    if algorithm == Algorithm::TokenBucket { plain } else { plain.beside(algorithm.name()) }
}

/// The quota of a limit under an algorithm; `None` if it is unlimited.
pub(super) fn quota(limit: &Limit, algorithm: Algorithm) -> Result<Option<Quota>, QuotaError> {
    limit.quota().map(|quota| quota.with_algorithm(algorithm)).transpose()
}

/// Can it be the name of a limit?
pub(super) fn is_name(text: &str) -> bool {
    let is_of_it = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let begins = text.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
    begins && text.len() <= NAME_CHARS_MAX && text.bytes().all(is_of_it)
}

/// What is said of a name that is none.
pub(super) const NO_NAME: &str =
    "a name has 1 to 64 letters, digits, `-`, `_` and `.`, and begins with a letter or a digit";

/// Reads the limits of a call.
pub(super) fn read_all<'a>(reader: &mut Reader<'a>) -> Result<Vec<Brought<'a>>, Fault> {
    let (at, mut all) = (reader.at(), Vec::<Brought<'_>>::with_capacity(1));
    reader.list("a list of charges", |reader, place| {
        if place == CHARGES_MAX {
            return Err(reader.fault(format_args!("one decision makes at most {CHARGES_MAX} charges")));
        }
        let (at, brought) = (reader.at(), read(reader)?);
        if let Some(first) = all.iter().position(|other| brought.contradicts(other)) {
            return Err(Fault::conflict(
                at,
                format_args!(
                    "this and charge {first} have one name and one key, but different limits; give each limit a `name`"
                ),
            ));
        }
        all.push(brought);
        Ok(())
    })?;
    if all.is_empty() {
        Err(Fault::new(at, "there is nothing to charge; a call makes one charge at least"))
    } else {
        Ok(all)
    }
}

fn read<'a>(reader: &mut Reader<'a>) -> Result<Brought<'a>, Fault> {
    let at = reader.at();
    let (mut limit, mut key, mut name, mut cost) = (None, None, Cow::Borrowed(NAME), Cost::ONE);
    let (mut algorithm, mut algorithm_at, mut mode) = (Algorithm::TokenBucket, at, Mode::Enforce);
    reader.object("a charge", &FIELDS, |reader, field| {
        let at = reader.at();
        match field {
            "limit" => {
                let text = reader.text("a limit such as \"60/min\"")?;
                limit = Some((text.parse::<Limit>().map_err(|error| Fault::new(at, error))?, at));
            }
            "key" => key = Some(key::read(reader)?),
            "name" => {
                name = reader.text("a name")?;
                is_name(&name).then_some(()).ok_or_else(|| Fault::new(at, NO_NAME))?;
            }
            "cost" => cost = Cost::new(reader.whole_number("a whole number of tokens")?),
            "algorithm" => {
                let text = reader.text("the name of an algorithm")?;
                (algorithm, algorithm_at) = (text.parse().map_err(|error| Fault::new(at, error))?, at);
            }
            _ => mode = if reader.truth()? { Mode::Shadow } else { Mode::Enforce },
        }
        Ok(())
    })?;
    let Some((limit, limit_at)) = limit else {
        return Err(Fault::new(at, "a charge needs a `limit`, such as \"60/min\""));
    };
    let key = key.ok_or_else(|| Fault::new(at, "a charge needs a `key`, such as \"user-42\""))?;
    let quota = quota(&limit, algorithm).map_err(|error| match algorithm {
        Algorithm::TokenBucket => Fault::new(limit_at, error).within("limit"),
        _ => Fault::new(algorithm_at, error).within("algorithm"),
    })?;
    Ok(Brought { name, quota, mode, key, cost })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    #[track_caller]
    fn refused(json: &str, expect: &str) {
        let fault = json::read(json, read_all).unwrap_err();
        assert_eq!(format!("{}: {}", fault.pointer(), fault.message()), expect, "{json}");
    }

    #[test]
    fn charges_are_read() {
        let json = r#"[{"key":"ann","limit":"60/min burst 10"},
                       {"limit":"5/h","algorithm":"sliding-log","key":["t","ann"],"name":"t.h","cost":2,"shadow":true},
                       {"limit":"Unlimited","key":""}]"#;
        let all = json::read(json, read_all).unwrap();
        let charge = all[0].charge(Handling::default()).unwrap();
        assert_eq!((charge.key, charge.cost, charge.quota.burst()), (&b"ann"[..], Cost::ONE, 10));
        assert_eq!(charge.limit, LimitId::of("api", "default"));
        let charge = all[1].charge(Handling::default()).unwrap();
        assert_eq!(
            (charge.cost, charge.mode, charge.quota.algorithm()),
            (Cost::new(2), Mode::Shadow, Algorithm::SlidingLog)
        );
        assert_ne!(charge.limit, LimitId::of("api", "t.h"));
        assert_eq!(all[2].charge(Handling::default()), None);
    }

    #[test]
    fn what_is_wrong_is_named() {
        refused("[]", ": there is nothing to charge; a call makes one charge at least");
        refused(r#"[{"key":"a"}]"#, "/0: a charge needs a `limit`, such as \"60/min\"");
        refused(r#"[{"limit":"60/min"}]"#, "/0: a charge needs a `key`, such as \"user-42\"");
        refused(r#"[{"key":"a","limit":"60"}]"#, "/0/limit: `60`: a count needs a period; write `60/s` or `60/min`");
        refused(r#"[{"key":"a","limit":60}]"#, "/0/limit: expected a limit such as \"60/min\", not a number");
        let algorithms = "expected one of `token-bucket`, `fixed-window`, `sliding-counter`, `sliding-log`";
        refused(r#"[{"key":"a","limit":"6/s","algorithm":"gcra"}]"#, &format!("/0/algorithm: {algorithms}"));
        refused(
            r#"[{"key":"a","algorithm":"fixed-window","limit":"6/s burst 9"}]"#,
            "/0/algorithm: a fixed window passes exactly its count at once; leave the burst out, or use token-bucket",
        );
        refused(r#"[{"key":"a","limit":"6/s","name":"../x"}]"#, &format!("/0/name: {NO_NAME}"));
        refused(
            r#"[{"key":"a","limit":"6/s","burst":3}]"#,
            &format!(
                "/0: there is no field `burst` in a charge; there are {}",
                FIELDS.map(|field| format!("`{field}`")).join(", ")
            ),
        );
        let many = format!("[{}]", vec![r#"{"key":"a","limit":"6/s"}"#; CHARGES_MAX + 1].join(","));
        refused(&many, "/16: one decision makes at most 16 charges");
    }

    #[test]
    fn br_139_two_limits_on_one_key_have_names_of_their_own() {
        refused(
            r#"[{"key":"a","limit":"5/min"},{"key":"a","limit":"50/day"}]"#,
            "/1: this and charge 0 have one name and one key, but different limits; give each limit a `name`",
        );
        for fine in [
            r#"[{"key":"a","limit":"5/min"},{"key":"a","limit":"50/day","name":"day"}]"#,
            r#"[{"key":"a","limit":"5/min"},{"key":"b","limit":"50/day"}]"#,
            r#"[{"key":"a","limit":"5/min"},{"key":"a","limit":"5/min"}]"#,
            r#"[{"key":"a","limit":"5/min"},{"key":"a","limit":"5/min","algorithm":"fixed-window"}]"#,
        ] {
            assert!(json::read(fine, read_all).is_ok(), "{fine}");
        }
    }
}
