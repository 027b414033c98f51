//! Expressions of CEL, as far as limits need them.
//!
//! ```text
//! any        = all { "||" all }
//! all        = comparison { "&&" comparison }
//! comparison = unary [ ("==" | "!=" | "<" | "<=" | ">" | ">=") unary | "in" (list | descriptor) ]
//! unary      = "!" unary | "-" number | value
//! value      = ( text | number | true | false | null | entry | call | "(" any ")" ) { "." test "(" any ")" }
//! entry      = descriptor ( "." name | "[" text "]" ) | name | "limit" "." ( "id" | "name" )
//! descriptor = "descriptors" "[" number "]"
//! call       = ( "int" | "string" | "size" | "has" ) "(" any ")"
//! test       = "startsWith" | "endsWith" | "contains"
//! list       = "[" [ any { "," any } ] "]"
//! ```
//!
//! Whatever else CEL has is refused by name. So is what can be seen to make no sense before anyone asks: a text compared
//! with a number, a condition that is neither true nor false. Every expression has a type, so it can fail in two ways
//! only: an entry is missing, or `int` meets a text that is no number.
//!
//! Read `token`, `parse`, `calls`, `value`.

mod calls;
mod parse;
#[cfg(test)]
mod tests;
mod token;
mod value;

use std::fmt;

use super::Call;
use value::Value;
pub(super) use value::{Comparison, Expr, Place, Type};

/// The longest expression, in bytes.
pub const EXPRESSION_BYTES_MAX: usize = 4096;
/// How deep parentheses, `!` and calls may be nested.
const DEPTH_MAX: u8 = 32;
/// The highest place of a descriptor that can be named; the first is 0.
pub(super) const DESCRIPTOR_MAX: u16 = 255;

/// What an expression may say of its own limit.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Own<'a> {
    pub(super) id: Option<&'a str>,
    pub(super) name: Option<&'a str>,
}

/// Why an expression is not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CelError {
    /// The byte at which it goes wrong.
    pub at: usize,
    message: String,
}

impl CelError {
    fn new(at: usize, message: impl fmt::Display) -> Self {
        Self { at, message: message.to_string() }
    }

    /// CEL has it, and it is not read here.
    fn refused(at: usize, what: impl fmt::Display) -> Self {
        Self::new(at, format_args!("{what} is not read here; docs/limitador.md says what is"))
    }
}

impl fmt::Display for CelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for CelError {}

/// A condition: true or false of each call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Condition {
    pub(super) source: String,
    pub(super) expr: Expr,
}

impl Condition {
    pub(super) fn parse(source: &str, own: Own<'_>) -> Result<Self, CelError> {
        match parse::expression(source, own)? {
            (expr, Type::Flag) => Ok(Self { source: source.to_owned(), expr }),
            (_, other) => Err(CelError::new(0, format_args!("a condition is true or false, and this is {other}"))),
        }
    }

    /// Does it hold? Where an entry is missing it does not.
    pub(super) fn holds(&self, call: &Call<'_>) -> bool {
        self.expr.value(call) == Some(Value::Flag(true))
    }
}

/// A variable: its value for a call is part of the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Variable {
    pub(super) source: String,
    expr: Expr,
}

impl Variable {
    pub(super) fn parse(source: &str, own: Own<'_>) -> Result<Self, CelError> {
        let (expr, _) = parse::expression(source, own)?;
        Ok(Self { source: source.to_owned(), expr })
    }

    /// Calls `with` with the value as a text; `None` if the call has none.
    pub(super) fn with_value<R>(&self, call: &Call<'_>, with: impl FnOnce(&str) -> R) -> Option<R> {
        Some(match self.expr.value(call)? {
            Value::Text(text) => with(&text),
            Value::Whole(number) => with(&number.to_string()),
            Value::Flag(is) => with(if is { "true" } else { "false" }),
            Value::Null => with("null"),
        })
    }
}
