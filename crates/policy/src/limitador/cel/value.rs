//! What an expression is, and its value for a call.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;

use crate::limitador::Call;

/// An expression whose parts are of the types that they have to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::limitador) enum Expr {
    Flag(bool),
    Whole(i64),
    Text(String),
    Null,
    Entry(Place),
    Has(Place),
    Not(Box<Self>),
    All(Vec<Self>),
    Any(Vec<Self>),
    Compare(Box<Self>, Comparison, Box<Self>),
    In(Box<Self>, Vec<Self>),
    Test(Box<Self>, Test, Box<Self>),
    WholeOf(Box<Self>),
    TextOf(Box<Self>),
    SizeOf(Box<Self>),
}

/// Where an entry stands.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::limitador) struct Place {
    /// In which descriptor; in any, if only the key is given.
    pub(in crate::limitador) descriptor: Option<u16>,
    pub(in crate::limitador) key: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::limitador) enum Comparison {
    Is,
    IsNot,
    Below,
    AtMost,
    Above,
    AtLeast,
}

impl Comparison {
    pub(super) const ALL: [(&'static str, Self); 6] = [
        ("==", Self::Is),
        ("!=", Self::IsNot),
        ("<", Self::Below),
        ("<=", Self::AtMost),
        (">", Self::Above),
        (">=", Self::AtLeast),
    ];

    fn holds(self, ordering: Ordering) -> bool {
        match self {
            Self::Is => ordering.is_eq(),
            Self::IsNot => ordering.is_ne(),
            Self::Below => ordering.is_lt(),
            Self::AtMost => ordering.is_le(),
            Self::Above => ordering.is_gt(),
            Self::AtLeast => ordering.is_ge(),
        }
    }
}

/// What is asked of a text about another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::limitador) enum Test {
    StartsWith,
    EndsWith,
    Contains,
}

/// What an expression is for every call that has its entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::limitador) enum Type {
    Flag,
    Whole,
    Text,
    Null,
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Flag => "true or false",
            Self::Whole => "a number",
            Self::Text => "a text",
            Self::Null => "null",
        })
    }
}

/// The value of an expression. Values of different types are never compared, but for null.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Value<'v> {
    Null,
    Flag(bool),
    Whole(i64),
    Text(Cow<'v, str>),
}

impl Expr {
    /// The value for a call; `None` if an entry is missing, or a text is not the number that it should be.
    ///
    /// As in CEL, what is missing does not matter to `&&` beside something false, nor to `||` beside something true.
    pub(super) fn value<'v>(&'v self, call: &Call<'v>) -> Option<Value<'v>> {
        match self {
            Self::Flag(is) => Some(Value::Flag(*is)),
            Self::Whole(number) => Some(Value::Whole(*number)),
            Self::Text(text) => Some(Value::Text(text.into())),
            Self::Null => Some(Value::Null),
            Self::Entry(place) => call.entry(place).map(|text| Value::Text(text.into())),
            Self::Has(Place { descriptor: Some(number), .. }) if call.descriptor(*number).is_none() => None,
            Self::Has(place) => Some(Value::Flag(call.entry(place).is_some())),
            Self::Not(inner) => inner.flag(call).map(|is| Value::Flag(!is)),
            Self::All(all) => unless(all, false, call),
            Self::Any(any) => unless(any, true, call),
            Self::Compare(left, comparison, right) => {
                Some(Value::Flag(comparison.holds(left.value(call)?.cmp(&right.value(call)?))))
            }
            Self::In(item, list) => {
                let item = item.value(call)?;
                Some(Value::Flag(list.iter().any(|one| one.value(call).as_ref() == Some(&item))))
            }
            Self::Test(text, test, about) => {
                let (text, about) = (text.text(call)?, about.text(call)?);
                Some(Value::Flag(match test {
                    Test::StartsWith => text.starts_with(&*about),
                    Test::EndsWith => text.ends_with(&*about),
                    Test::Contains => text.contains(&*about),
                }))
            }
            Self::WholeOf(text) => text.text(call)?.parse().ok().map(Value::Whole),
            Self::TextOf(inner) => Some(Value::Text(match inner.value(call)? {
                Value::Text(text) => text,
                Value::Whole(number) => number.to_string().into(),
                Value::Flag(is) => is.to_string().into(),
                Value::Null => "null".into(),
            })),
            Self::SizeOf(text) => i64::try_from(text.text(call)?.chars().count()).ok().map(Value::Whole),
        }
    }

    fn flag(&self, call: &Call<'_>) -> Option<bool> {
        match self.value(call)? {
            Value::Flag(is) => Some(is),
            Value::Null | Value::Whole(_) | Value::Text(_) => None,
        }
    }

    fn text<'v>(&'v self, call: &Call<'v>) -> Option<Cow<'v, str>> {
        match self.value(call)? {
            Value::Text(text) => Some(text),
            Value::Null | Value::Whole(_) | Value::Flag(_) => None,
        }
    }
}

/// `decisive` if one of them is, the other if none is; and nothing known if one is not known that could be.
fn unless<'v>(parts: &'v [Expr], decisive: bool, call: &Call<'v>) -> Option<Value<'v>> {
    let mut is_known = true;
    for part in parts {
        match part.flag(call) {
            Some(is) if is == decisive => return Some(Value::Flag(decisive)),
            Some(_) => {}
            None => is_known = false,
        }
    }
    is_known.then_some(Value::Flag(!decisive))
}
