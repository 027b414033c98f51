//! The body of a call, as limitador takes it.

use std::borrow::Cow;

use tidegate_core::Cost;
use tidegate_policy::Entry;
use tidegate_policy::limitador::Call;

use crate::json::{Fault, read};

const FIELDS: [&str; 4] = ["namespace", "values", "delta", "response_headers"];
/// The only shape of fields that there is.
const DRAFT: &str = "DraftVersion03";

/// What is asked about: a namespace, the entries of the one descriptor, and a cost.
#[derive(Debug)]
pub(super) struct Asked<'a> {
    namespace: Cow<'a, str>,
    values: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    pub(super) delta: Cost,
    /// Does the caller want to be told of limits in fields?
    pub(super) wants_fields: bool,
}

impl<'a> Asked<'a> {
    /// Reads a body.
    pub(super) fn read(text: &'a str) -> Result<Self, Fault> {
        read(text, |reader| {
            let (at, mut namespace) = (reader.at(), None);
            let (mut values, mut delta, mut wants_fields) = (Vec::new(), Cost::ONE, false);
            reader.object("a call", &FIELDS, |reader, field| {
                match field {
                    "namespace" => namespace = Some(reader.text("the text of a namespace")?),
                    "values" => reader.entries("an object of texts", |reader, name, _| {
                        let value = reader.text("a text").map_err(|fault| fault.within(name))?;
                        values.push((name.clone(), value));
                        Ok(())
                    })?,
                    "delta" => delta = Cost::new(reader.whole_number("a whole number")?),
                    _ => {
                        let at = reader.at();
                        if reader.text("a text")? != DRAFT {
                            return Err(Fault::new(at, format_args!("expected \"{DRAFT}\", or leave it out")));
                        }
                        wants_fields = true;
                    }
                }
                Ok(())
            })?;
            let namespace = namespace.ok_or_else(|| Fault::new(at, "a call needs a `namespace`"))?;
            Ok(Self { namespace, values, delta, wants_fields })
        })
    }

    /// Calls `with` with the call, in which the values are the first descriptor.
    pub(super) fn with_call<R>(&self, with: impl FnOnce(&Call<'_>) -> R) -> R {
        let entries: Vec<_> = self.values.iter().map(|(key, value)| Entry { key, value }).collect();
        with(&Call { namespace: &self.namespace, descriptors: &[&entries] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_read_and_what_is_wrong_with_it_is_named() {
        let text = r#"{"namespace":"ns","values":{"a":"b","c":"d"},"delta":3,"response_headers":"DraftVersion03"}"#;
        let asked = Asked::read(text).unwrap();
        assert_eq!((asked.delta, asked.wants_fields), (Cost::new(3), true));
        let entries =
            asked.with_call(|call| call.descriptors[0].iter().map(|it| it.value.to_owned()).collect::<Vec<_>>());
        assert_eq!(entries, ["b", "d"]);
        assert_eq!(Asked::read(r#"{"namespace":"ns"}"#).unwrap().delta, Cost::ONE);
        for (text, pointer, message) in [
            ("{}", "", "a call needs a `namespace`"),
            (r#"{"namespace":"a","values":{"b":1}}"#, "/values/b", "expected a text, not a number"),
            (
                r#"{"namespace":"a","response_headers":"v1"}"#,
                "/response_headers",
                "expected \"DraftVersion03\", or leave it out",
            ),
        ] {
            let fault = Asked::read(text).unwrap_err();
            assert_eq!((fault.pointer(), fault.message()), (pointer, message));
        }
        assert!(Asked::read(r#"{"namespace":"a","value":{}}"#).unwrap_err().message().contains("`value`"));
    }
}
