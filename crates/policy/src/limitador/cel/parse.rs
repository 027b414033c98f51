//! From words to an expression, whose types are checked on the way.

use super::token::{Token, Word, tokens};
use super::value::{Comparison, Expr, Place, Type};
use super::{CelError, DEPTH_MAX, DESCRIPTOR_MAX, EXPRESSION_BYTES_MAX, Own};

/// What stands at a place of an expression: a value, or something that has values.
pub(super) enum Term<'a> {
    Value(Expr, Type),
    Descriptors,
    Descriptor(u16),
    Limit,
    /// A name alone: the entry of that key, whichever descriptor it stands in.
    Name(&'a str),
}

/// Reads an expression.
pub(super) fn expression(text: &str, own: Own<'_>) -> Result<(Expr, Type), CelError> {
    if text.len() > EXPRESSION_BYTES_MAX {
        return Err(CelError::new(
            0,
            format_args!("the expression is too long; {EXPRESSION_BYTES_MAX} bytes are the most"),
        ));
    }
    let mut parser = Parser { tokens: &tokens(text)?, end: text.len(), own, depth: 0 };
    let value = parser.any()?;
    match parser.tokens.first() {
        None => Ok(value),
        Some(Token { at, word: Word::Sign("?" | "-") }) => Err(CelError::refused(*at, "arithmetic")),
        Some(Token { at, .. }) => Err(CelError::new(*at, "nothing more was expected here")),
    }
}

pub(super) struct Parser<'a> {
    tokens: &'a [Token<'a>],
    /// The length of the text, in bytes.
    end: usize,
    own: Own<'a>,
    /// How many parentheses, signs and calls are open, at most [`DEPTH_MAX`].
    depth: u8,
}

impl<'a> Parser<'a> {
    pub(super) fn at(&self) -> usize {
        self.tokens.first().map_or(self.end, |token| token.at)
    }

    pub(super) fn take_sign(&mut self, sign: &str) -> bool {
        let is_next = matches!(self.tokens.first(), Some(Token { word: Word::Sign(next), .. }) if *next == sign);
        self.tokens = &self.tokens[usize::from(is_next)..];
        is_next
    }

    pub(super) fn expect_sign(&mut self, sign: &str) -> Result<(), CelError> {
        let at = self.at();
        if self.take_sign(sign) { Ok(()) } else { Err(CelError::new(at, format_args!("expected `{sign}`"))) }
    }

    fn next(&mut self) -> Option<&'a Token<'a>> {
        let (first, rest) = self.tokens.split_first()?;
        self.tokens = rest;
        Some(first)
    }

    /// An expression between brackets, however deep they stand.
    pub(super) fn any(&mut self) -> Result<(Expr, Type), CelError> {
        self.joined("||", Expr::Any, |parser| parser.joined("&&", Expr::All, Self::comparison))
    }

    fn joined(
        &mut self,
        sign: &str,
        join: impl Fn(Vec<Expr>) -> Expr,
        part: impl Fn(&mut Self) -> Result<(Expr, Type), CelError>,
    ) -> Result<(Expr, Type), CelError> {
        let at = self.at();
        let (first, kind) = part(self)?;
        if !matches!(self.tokens.first(), Some(Token { word: Word::Sign(next), .. }) if *next == sign) {
            return Ok((first, kind));
        }
        let mut parts = vec![flag(first, kind, at, sign)?];
        while self.take_sign(sign) {
            let at = self.at();
            let (next, kind) = part(self)?;
            parts.push(flag(next, kind, at, sign)?);
        }
        Ok((join(parts), Type::Flag))
    }

    fn comparison(&mut self) -> Result<(Expr, Type), CelError> {
        let at = self.at();
        let left = self.unary()?;
        let is_name = matches!(left, Term::Name(_));
        let left = self.value(left, at)?;
        let operator = match self.tokens.first() {
            Some(Token { at, word: Word::Sign(sign) }) => {
                Comparison::ALL.iter().find(|(known, _)| known == sign).map(|(_, comparison)| (*at, *comparison))
            }
            Some(Token { word: Word::Name("in"), .. }) => {
                self.next();
                return self.within(left);
            }
            _ => None,
        };
        let Some((operator_at, comparison)) = operator else { return Ok(left) };
        self.next();
        let right_at = self.at();
        let right = match self.unary()? {
            Term::Name(name) if is_name => {
                let message = format!("`{name}` is a name here, not a text; a text stands in quotes: '{name}'");
                return Err(CelError::new(right_at, message));
            }
            term => self.value(term, right_at)?,
        };
        compared(left, comparison, right, operator_at)
    }

    /// What is behind `in`.
    fn within(&mut self, (item, kind): (Expr, Type)) -> Result<(Expr, Type), CelError> {
        let at = self.at();
        if !self.take_sign("[") {
            return match (self.primary()?, item) {
                (Term::Descriptor(number), Expr::Text(key)) => {
                    Ok((Expr::Has(Place { descriptor: Some(number), key }), Type::Flag))
                }
                (Term::Descriptor(_), _) => Err(CelError::refused(at, "a key that is not a text in quotes")),
                _ => Err(CelError::new(at, "expected a list such as ['a', 'b'], or a descriptor")),
            };
        }
        let mut list = Vec::new();
        while !self.take_sign("]") {
            if !list.is_empty() {
                self.expect_sign(",")?;
            }
            let at = self.at();
            let (next, next_kind) = self.nested(Self::any)?;
            if next_kind != kind {
                return Err(CelError::new(at, format_args!("{kind} is never in a list with {next_kind}")));
            }
            list.push(next);
        }
        Ok((Expr::In(Box::new(item), list), Type::Flag))
    }

    fn unary(&mut self) -> Result<Term<'a>, CelError> {
        let at = self.at();
        if self.take_sign("!") {
            let term = self.nested(Self::unary)?;
            let (inner, kind) = self.value(term, at + 1)?;
            return Ok(Term::Value(Expr::Not(Box::new(flag(inner, kind, at + 1, "!")?)), Type::Flag));
        }
        if !self.take_sign("-") {
            return self.primary();
        }
        match self.next() {
            Some(Token { word: Word::Whole(number), .. }) => Ok(Term::Value(Expr::Whole(-number), Type::Whole)),
            _ => Err(CelError::refused(at, "arithmetic")),
        }
    }

    /// A step deeper.
    pub(super) fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, CelError>) -> Result<T, CelError> {
        if self.depth >= DEPTH_MAX {
            return Err(CelError::new(self.at(), format_args!("this is nested too deep; the maximum is {DEPTH_MAX}")));
        }
        self.depth += 1;
        let read = read(self)?;
        self.depth -= 1;
        Ok(read)
    }

    /// Something, and what is asked of it by dots and brackets.
    fn primary(&mut self) -> Result<Term<'a>, CelError> {
        let at = self.at();
        let mut term = self.first(at)?;
        loop {
            let next_at = self.at();
            term = if self.take_sign(".") {
                self.behind_dot(term, at)?
            } else if self.take_sign("[") {
                let term = self.indexed(term, next_at)?;
                self.expect_sign("]")?;
                term
            } else {
                return Ok(term);
            };
        }
    }

    fn first(&mut self, at: usize) -> Result<Term<'a>, CelError> {
        let Some(token) = self.next() else { return Err(CelError::new(at, "something is missing at the end")) };
        Ok(match &token.word {
            Word::Text(text) => Term::Value(Expr::Text(text.clone()), Type::Text),
            Word::Whole(number) => Term::Value(Expr::Whole(*number), Type::Whole),
            Word::Sign("(") => {
                let (expr, kind) = self.nested(Self::any)?;
                self.expect_sign(")")?;
                Term::Value(expr, kind)
            }
            Word::Sign("[") => return Err(CelError::refused(at, "a list elsewhere than behind `in`")),
            Word::Sign(sign) => return Err(CelError::new(at, format_args!("`{sign}` is not expected here"))),
            Word::Name(name) if self.take_sign("(") => self.call(name, at)?,
            Word::Name("true") => Term::Value(Expr::Flag(true), Type::Flag),
            Word::Name("false") => Term::Value(Expr::Flag(false), Type::Flag),
            Word::Name("null") => Term::Value(Expr::Null, Type::Null),
            Word::Name("descriptors") => Term::Descriptors,
            Word::Name("limit") => Term::Limit,
            Word::Name("in") => return Err(CelError::new(at, "something is missing in front of `in`")),
            Word::Name(name) => Term::Name(name),
        })
    }

    /// What is behind the dot that stands behind a term which begins at `at`.
    fn behind_dot(&mut self, term: Term<'a>, at: usize) -> Result<Term<'a>, CelError> {
        let name_at = self.at();
        let Some(Token { word: Word::Name(name), .. }) = self.next() else {
            return Err(CelError::new(name_at, "a name is missing behind the dot"));
        };
        if self.take_sign("(") {
            return self.method(term, at, name, name_at);
        }
        match (term, *name) {
            (Term::Descriptor(number), key) => Ok(entry(number, key)),
            (Term::Limit, "id") => Ok(own(self.own.id)),
            (Term::Limit, "name") => Ok(own(self.own.name)),
            (Term::Limit, _) => Err(CelError::new(name_at, "a limit has `limit.id` and `limit.name`")),
            (Term::Descriptors, _) => {
                Err(CelError::new(name_at, format_args!("which descriptor? Write descriptors[0].{name}")))
            }
            (Term::Name(root), key) => Err(CelError::new(
                at,
                format_args!("`{root}.{key}`: an entry whose key has a dot is descriptors[0]['{root}.{key}']"),
            )),
            (Term::Value(_, kind), _) => Err(CelError::new(name_at, format_args!("{kind} has no fields"))),
        }
    }

    /// What is between the brackets behind a term.
    fn indexed(&mut self, term: Term<'a>, at: usize) -> Result<Term<'a>, CelError> {
        let index_at = self.at();
        let index = self.next().map(|token| &token.word);
        match (term, index) {
            (Term::Descriptors, Some(Word::Whole(number))) => match u16::try_from(*number) {
                Ok(number) if number <= DESCRIPTOR_MAX => Ok(Term::Descriptor(number)),
                _ => Err(CelError::new(index_at, format_args!("the last descriptor is descriptors[{DESCRIPTOR_MAX}]"))),
            },
            (Term::Descriptors, _) => Err(CelError::refused(index_at, "an index that is no whole number")),
            (Term::Descriptor(number), Some(Word::Text(key))) => Ok(entry(number, key)),
            (Term::Descriptor(_), _) => Err(CelError::refused(index_at, "a key that is not a text in quotes")),
            _ => Err(CelError::new(at, "only `descriptors` and a descriptor have something at an index")),
        }
    }

    /// The value of a term that begins at `at`.
    pub(super) fn value(&self, term: Term<'_>, at: usize) -> Result<(Expr, Type), CelError> {
        match term {
            Term::Value(expr, kind) => Ok((expr, kind)),
            Term::Name(name) => Ok((Expr::Entry(Place { descriptor: None, key: name.to_owned() }), Type::Text)),
            Term::Descriptors => {
                Err(CelError::new(at, "which entry? Write descriptors[0].key or descriptors[0]['key']"))
            }
            Term::Descriptor(number) => {
                Err(CelError::new(at, format_args!("which entry? Write descriptors[{number}].key")))
            }
            Term::Limit => Err(CelError::new(at, "a limit has `limit.id` and `limit.name`")),
        }
    }
}

fn entry<'a>(descriptor: u16, key: &str) -> Term<'a> {
    Term::Value(Expr::Entry(Place { descriptor: Some(descriptor), key: key.to_owned() }), Type::Text)
}

/// What a limit says of itself is known when its expressions are read.
fn own<'a>(text: Option<&str>) -> Term<'a> {
    match text {
        Some(text) => Term::Value(Expr::Text(text.to_owned()), Type::Text),
        None => Term::Value(Expr::Null, Type::Null),
    }
}

fn flag(expr: Expr, kind: Type, at: usize, sign: &str) -> Result<Expr, CelError> {
    match kind {
        Type::Flag => Ok(expr),
        _ => Err(CelError::new(at, format_args!("`{sign}` takes what is true or false, and this is {kind}"))),
    }
}

/// A comparison, if it can have a meaning: of two values of one type, or with null.
fn compared(
    (left, left_kind): (Expr, Type),
    comparison: Comparison,
    (right, right_kind): (Expr, Type),
    at: usize,
) -> Result<(Expr, Type), CelError> {
    let is_equality = matches!(comparison, Comparison::Is | Comparison::IsNot);
    let has_null = left_kind == Type::Null || right_kind == Type::Null;
    if left_kind != right_kind && !(has_null && is_equality) {
        let hint = match (left_kind, right_kind) {
            (Type::Text, Type::Whole) | (Type::Whole, Type::Text) => "; int(...) is the number that a text is",
            _ => "",
        };
        return Err(CelError::new(at, format_args!("{left_kind} is compared with {right_kind}{hint}")));
    }
    if !is_equality && (has_null || left_kind == Type::Flag) {
        return Err(CelError::new(at, format_args!("{left_kind} has no order")));
    }
    Ok((Expr::Compare(Box::new(left), comparison, Box::new(right)), Type::Flag))
}
