//! Terms: what has a value without a row. No bare name stands in a term, so `1 + c` ends before `+`
//! where a column follows: that is how an UPDATE prepends.
//!
//! Must agree with: the rules `term`, `termAddition`, `termMultiplication`, `termGroup`,
//! `simpleTerm`, `value`, `constant`, `collectionLiteral`, `usertypeLiteral`, `tupleLiteral`,
//! `function`, `intValue`.

use std::borrow::Cow;

use super::name::{is_function_name, is_name};
use super::{Parser, Result};
use crate::ast::{Arithmetic, FunctionCall, Literal, LiteralKind, Term, TypeName};
use crate::lexer::{Keyword, Kind};

impl<'a> Parser<'a> {
    /// A term.
    pub(super) fn term(&mut self) -> Result<Term<'a>> {
        self.nested(Self::addition)
    }

    fn addition(&mut self) -> Result<Term<'a>> {
        let mut left = self.multiplication()?;
        loop {
            let operator = match self.token.kind {
                // `c = [1] + c` prepends: what follows is the column, not a term.
                Kind::Plus if !self.is_column_next() => Arithmetic::Add,
                Kind::Minus => Arithmetic::Subtract,
                _ => return Ok(left),
            };
            self.advance()?;
            self.link()?;
            let right = self.multiplication()?;
            left = Term::Operation(Box::new(left), operator, Box::new(right));
        }
    }

    /// Whether after the current token a name stands that begins no function call.
    fn is_column_next(&self) -> bool {
        let (name, then) = self.peek_two();
        is_name(name) && !matches!(then, Kind::OpenParen | Kind::Dot)
    }

    fn multiplication(&mut self) -> Result<Term<'a>> {
        let mut left = self.signed()?;
        loop {
            let Some(operator) = self.product_operator() else { return Ok(left) };
            self.advance()?;
            self.link()?;
            let right = self.signed()?;
            left = Term::Operation(Box::new(left), operator, Box::new(right));
        }
    }

    /// The current token as an operator between the factors of a product.
    pub(super) fn product_operator(&self) -> Option<Arithmetic> {
        match self.token.kind {
            Kind::Star => Some(Arithmetic::Multiply),
            Kind::Slash => Some(Arithmetic::Divide),
            Kind::Percent => Some(Arithmetic::Modulo),
            _ => None,
        }
    }

    fn signed(&mut self) -> Result<Term<'a>> {
        if self.accept(Kind::Minus)? {
            return Ok(Term::Negation(Box::new(self.simple_term()?)));
        }
        self.simple_term()
    }

    /// A term without operators.
    fn simple_term(&mut self) -> Result<Term<'a>> {
        if let Some(kind) = self.literal_kind() {
            return self.take_literal(kind).map(Term::Literal);
        }
        match self.token.kind {
            Kind::Question | Kind::Colon => match self.accept_bind_marker()? {
                Some(marker) => Ok(Term::Bind(marker)),
                None => Err(self.expected("a bind marker")),
            },
            Kind::Keyword(Keyword::Null) => {
                self.advance()?;
                Ok(Term::Null)
            }
            Kind::OpenParen => self.hinted_or_tuple(),
            Kind::OpenBracket => self.list_literal(),
            Kind::OpenBrace => self.braced(),
            Kind::Keyword(Keyword::Cast) if self.peek() == Kind::OpenParen => self.cast(),
            kind if is_function_name(kind) || is_name(kind) => self.function_call(),
            _ => Err(self.expected("a value")),
        }
    }

    /// The kind of constant the token is, if it is one.
    #[inline]
    pub(super) fn literal_kind(&self) -> Option<LiteralKind> {
        Some(match self.token.kind {
            Kind::String | Kind::DollarString => LiteralKind::String,
            Kind::Integer => LiteralKind::Integer,
            Kind::Float | Kind::NegativeNan | Kind::NegativeInfinity => LiteralKind::Float,
            Kind::Keyword(Keyword::Nan | Keyword::Infinity) => LiteralKind::Float,
            Kind::Boolean => LiteralKind::Boolean,
            Kind::Duration => LiteralKind::Duration,
            Kind::Uuid => LiteralKind::Uuid,
            Kind::Hex => LiteralKind::Hex,
            _ => return None,
        })
    }

    /// Consumes the token, which is a constant of this kind.
    pub(super) fn take_literal(&mut self, kind: LiteralKind) -> Result<Literal<'a>> {
        let pos = self.pos();
        let text = match self.token.kind {
            Kind::String | Kind::DollarString => self.string_text(),
            // Negative NaN is NaN, as in Cassandra.
            Kind::Keyword(Keyword::Nan) | Kind::NegativeNan => Cow::Borrowed("NaN"),
            Kind::Keyword(Keyword::Infinity) => Cow::Borrowed("Infinity"),
            Kind::NegativeInfinity => Cow::Borrowed("-Infinity"),
            _ => Cow::Borrowed(self.lexer.text(self.token)),
        };
        self.advance()?;
        Ok(Literal { kind, text, pos })
    }

    /// An integer or a bind marker, as after `LIMIT` or `TTL`.
    pub(super) fn integer_or_marker(&mut self) -> Result<Term<'a>> {
        if self.at(Kind::Integer) {
            return self.take_literal(LiteralKind::Integer).map(Term::Literal);
        }
        match self.accept_bind_marker()? {
            Some(marker) => Ok(Term::Bind(marker)),
            None => Err(self.expected("an integer or a bind marker")),
        }
    }

    /// `(type)term`, or a tuple.
    fn hinted_or_tuple(&mut self) -> Result<Term<'a>> {
        if let Some(hint) = self.accept_type_hint(Self::at_simple_term)? {
            let of = self.nested(Self::simple_term)?;
            return Ok(Term::TypeHint(hint, Box::new(of)));
        }
        self.tuple_literal()
    }

    /// Consumes `(type)`, if it stands here and something it can be the type of follows.
    pub(super) fn accept_type_hint(&mut self, follows: fn(&Self) -> bool) -> Result<Option<TypeName<'a>>> {
        let may_be_type = match self.peek() {
            Kind::String | Kind::DollarString => true,
            Kind::Keyword(Keyword::Set) => true,
            kind => is_name(kind),
        };
        if !may_be_type {
            return Ok(None);
        }
        let checkpoint = self.checkpoint();
        self.advance()?;
        if let Ok(hint) = self.type_name()
            && self.at(Kind::CloseParen)
        {
            self.advance()?;
            if follows(self) {
                return Ok(Some(hint));
            }
        }
        self.rewind(checkpoint);
        Ok(None)
    }

    fn at_simple_term(&self) -> bool {
        self.literal_kind().is_some()
            || (is_function_name(self.token.kind) && matches!(self.peek(), Kind::OpenParen | Kind::Dot))
            || self.at_named_marker()
            || matches!(
                self.token.kind,
                Kind::Question
                    | Kind::OpenParen
                    | Kind::OpenBracket
                    | Kind::OpenBrace
                    | Kind::Keyword(Keyword::Null | Keyword::Cast)
            )
    }

    /// `:name`; a colon before anything else stands between a key and its value: `{('a'): 'b'}`.
    pub(super) fn at_named_marker(&self) -> bool {
        self.at(Kind::Colon) && is_name(self.peek())
    }

    /// `(a, b)`.
    pub(super) fn tuple_literal(&mut self) -> Result<Term<'a>> {
        Ok(Term::Tuple(self.parenthesised(Self::term)?))
    }

    fn list_literal(&mut self) -> Result<Term<'a>> {
        self.advance()?;
        if self.accept(Kind::CloseBracket)? {
            return Ok(Term::List(Vec::new()));
        }
        let items = self.comma_separated(Self::term)?;
        self.expect(Kind::CloseBracket, "',' or ']'")?;
        Ok(Term::List(items))
    }

    /// `{…}`: a set, a map or a user-defined type.
    fn braced(&mut self) -> Result<Term<'a>> {
        self.advance()?;
        if self.accept(Kind::CloseBrace)? {
            return Ok(Term::Set(Vec::new()));
        }
        let literal = if is_name(self.token.kind) && self.peek() == Kind::Colon {
            Term::UserType(self.comma_separated(Self::field_value)?)
        } else {
            let first = self.term()?;
            if self.at(Kind::Colon) { self.map_after(first)? } else { self.set_after(first)? }
        };
        self.expect(Kind::CloseBrace, "',' or '}'")?;
        Ok(literal)
    }

    fn field_value(&mut self) -> Result<(crate::ast::Ident<'a>, Term<'a>)> {
        let field = self.field()?;
        self.expect(Kind::Colon, "':'")?;
        Ok((field, self.term()?))
    }

    fn map_after(&mut self, first: Term<'a>) -> Result<Term<'a>> {
        self.advance()?;
        let mut entries = vec![(first, self.term()?)];
        while self.accept(Kind::Comma)? {
            entries.push(self.map_entry()?);
        }
        Ok(Term::Map(entries))
    }

    fn map_entry(&mut self) -> Result<(Term<'a>, Term<'a>)> {
        let key = self.term()?;
        self.expect(Kind::Colon, "':'")?;
        Ok((key, self.term()?))
    }

    fn set_after(&mut self, first: Term<'a>) -> Result<Term<'a>> {
        let mut items = vec![first];
        while self.accept(Kind::Comma)? {
            items.push(self.term()?);
        }
        Ok(Term::Set(items))
    }

    /// `{}` or `{k: v, …}` and nothing else.
    pub(super) fn map_literal(&mut self) -> Result<Vec<(Term<'a>, Term<'a>)>> {
        self.expect(Kind::OpenBrace, "'{'")?;
        if self.accept(Kind::CloseBrace)? {
            return Ok(Vec::new());
        }
        let entries = self.comma_separated(Self::map_entry)?;
        self.expect(Kind::CloseBrace, "',' or '}'")?;
        Ok(entries)
    }

    /// `CAST(term AS type)`.
    fn cast(&mut self) -> Result<Term<'a>> {
        self.advance()?;
        self.advance()?;
        let of = self.nested(Self::simple_term)?;
        self.expect_keyword(Keyword::As)?;
        let native = self.native_type()?;
        self.expect(Kind::CloseParen, "')'")?;
        Ok(Term::Cast(Box::new(of), native))
    }

    fn function_call(&mut self) -> Result<Term<'a>> {
        let call_follows = matches!(self.peek(), Kind::OpenParen | Kind::Dot);
        if !call_follows {
            return Err(self.expected("a value"));
        }
        let name = self.function_name()?;
        let arguments = self.parenthesised_or_empty(Self::term)?;
        Ok(Term::Function(Box::new(FunctionCall { name, arguments })))
    }
}
