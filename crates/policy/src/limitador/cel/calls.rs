//! The functions of expressions.

use super::CelError;
use super::parse::{Parser, Term};
use super::value::{Expr, Test, Type};

/// For a message.
const FUNCTIONS: &str = "`int`, `string`, `size`, `has`, and behind a text `.startsWith`, `.endsWith`, `.contains`";

impl<'a> Parser<'a> {
    /// A function in front of its argument, whose opening parenthesis was taken.
    pub(super) fn call(&mut self, name: &str, at: usize) -> Result<Term<'a>, CelError> {
        if !["int", "string", "size", "has"].contains(&name) {
            return Err(unknown(name, at));
        }
        let (argument_at, (argument, kind)) = self.argument()?;
        let (expr, kind) = match (name, argument, kind) {
            ("int", argument, Type::Text) => (Expr::WholeOf(Box::new(argument)), Type::Whole),
            ("int", argument, Type::Whole) => (argument, Type::Whole),
            ("string", argument, _) => (Expr::TextOf(Box::new(argument)), Type::Text),
            ("size", argument, Type::Text) => (Expr::SizeOf(Box::new(argument)), Type::Whole),
            ("has", Expr::Entry(place), _) => (Expr::Has(place), Type::Flag),
            ("has", ..) => return Err(CelError::new(argument_at, "`has` takes an entry, such as descriptors[0].key")),
            (_, _, kind) => return Err(CelError::new(argument_at, format_args!("`{name}` takes a text, not {kind}"))),
        };
        Ok(Term::Value(expr, kind))
    }

    /// A function behind a term that begins at `at`; its opening parenthesis was taken.
    pub(super) fn method(
        &mut self,
        term: Term<'a>,
        at: usize,
        name: &str,
        name_at: usize,
    ) -> Result<Term<'a>, CelError> {
        let test = match name {
            "startsWith" => Test::StartsWith,
            "endsWith" => Test::EndsWith,
            "contains" => Test::Contains,
            _ => return Err(unknown(name, name_at)),
        };
        let text = self.value(term, at)?;
        let (argument_at, argument) = self.argument()?;
        for ((_, kind), at) in [(&text, at), (&argument, argument_at)] {
            if *kind != Type::Text {
                return Err(CelError::new(at, format_args!("`{name}` is about a text, not {kind}")));
            }
        }
        Ok(Term::Value(Expr::Test(Box::new(text.0), test, Box::new(argument.0)), Type::Flag))
    }

    /// The one argument of a function, up to its closing parenthesis.
    fn argument(&mut self) -> Result<(usize, (Expr, Type)), CelError> {
        let at = self.at();
        let argument = self.nested(Self::any)?;
        self.expect_sign(")")?;
        Ok((at, argument))
    }
}

fn unknown(name: &str, at: usize) -> CelError {
    CelError::new(at, format_args!("the function `{name}` is not read here; there are {FUNCTIONS}"))
}
