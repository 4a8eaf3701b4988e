//! The text between `SELECT` and `FROM`.
//!
//! Must agree with: the rules `selectClause`, `selectors`, `selector`, `selectionAddition` and
//! below.

use super::name::{is_function_name, is_name};
use super::{Parser, Result};
use crate::ast::{Arithmetic, CellAttribute, QualifiedName, Selectable, Selector, Term};
use crate::lexer::{Keyword, Kind};

impl<'a> Parser<'a> {
    /// Consumes `JSON` or `DISTINCT`, if it is meant as such and not as a column of that name.
    pub(super) fn accept_select_modifier(&mut self, keyword: Keyword) -> Result<bool> {
        if !self.at_keyword(keyword) {
            return Ok(false);
        }
        let (next, then) = self.peek_two();
        let is_modifier = match next {
            Kind::Star | Kind::Minus | Kind::OpenParen | Kind::OpenBracket | Kind::OpenBrace => true,
            Kind::Question | Kind::Colon | Kind::Keyword(Keyword::Null | Keyword::Token) => true,
            // `json AS x` names the column `json`; `JSON as, b` selects a column `as`.
            Kind::Keyword(Keyword::As) => {
                matches!(then, Kind::Comma | Kind::Keyword(Keyword::From | Keyword::As))
            }
            Kind::Keyword(Keyword::Nan | Keyword::Infinity) => true,
            Kind::String | Kind::DollarString | Kind::Integer | Kind::Float | Kind::Boolean => true,
            Kind::Duration | Kind::Uuid | Kind::Hex | Kind::NegativeNan | Kind::NegativeInfinity => true,
            kind => is_name(kind),
        };
        if is_modifier {
            self.advance()?;
        }
        Ok(is_modifier)
    }

    /// `*` (then there are none) or selectors.
    pub(super) fn selectors(&mut self) -> Result<Vec<Selector<'a>>> {
        if self.accept(Kind::Star)? {
            return Ok(Vec::new());
        }
        self.comma_separated(Self::selector)
    }

    fn selector(&mut self) -> Result<Selector<'a>> {
        let selectable = self.selectable()?;
        let alias = match self.accept_keyword(Keyword::As)? {
            true => Some(self.name("an alias name")?),
            false => None,
        };
        Ok(Selector { selectable, alias })
    }

    /// A selectable.
    pub(super) fn selectable(&mut self) -> Result<Selectable<'a>> {
        self.nested(Self::selected_sum)
    }

    fn selected_sum(&mut self) -> Result<Selectable<'a>> {
        let mut left = self.selected_product()?;
        loop {
            let operator = match self.token.kind {
                Kind::Plus => Arithmetic::Add,
                Kind::Minus => Arithmetic::Subtract,
                _ => return Ok(left),
            };
            self.advance()?;
            self.link()?;
            let right = self.selected_product()?;
            left = Selectable::Operation(Box::new(left), operator, Box::new(right));
        }
    }

    fn selected_product(&mut self) -> Result<Selectable<'a>> {
        let mut left = self.selected_group()?;
        loop {
            let Some(operator) = self.product_operator() else { return Ok(left) };
            self.advance()?;
            self.link()?;
            let right = self.selected_group()?;
            left = Selectable::Operation(Box::new(left), operator, Box::new(right));
        }
    }

    /// A simple selectable with its sign and its `.field` and `[element]`s.
    fn selected_group(&mut self) -> Result<Selectable<'a>> {
        if self.accept(Kind::Minus)? {
            let of = self.nested(Self::selected_group)?;
            return Ok(Selectable::Negation(Box::new(of)));
        }
        let of = self.simple_selectable()?;
        self.selected_parts(of)
    }

    /// The `.field` and `[element]`s after a selectable.
    fn selected_parts(&mut self, mut of: Selectable<'a>) -> Result<Selectable<'a>> {
        loop {
            of = match self.token.kind {
                Kind::Dot => {
                    self.advance()?;
                    Selectable::Field(Box::new(of), self.field()?)
                }
                Kind::OpenBracket => {
                    self.advance()?;
                    let part = self.element_or_slice(of)?;
                    self.expect(Kind::CloseBracket, "']'")?;
                    part
                }
                _ => return Ok(of),
            };
            self.link()?;
        }
    }

    fn element_or_slice(&mut self, of: Selectable<'a>) -> Result<Selectable<'a>> {
        let of = Box::new(of);
        if self.accept(Kind::Range)? {
            return Ok(Selectable::Slice(of, None, Some(self.term()?)));
        }
        let from = self.term()?;
        if !self.accept(Kind::Range)? {
            return Ok(Selectable::Element(of, from));
        }
        let to: Option<Term<'a>> = match self.at(Kind::CloseBracket) {
            true => None,
            false => Some(self.term()?),
        };
        Ok(Selectable::Slice(of, Some(from), to))
    }

    /// A selectable without operators and parts.
    fn simple_selectable(&mut self) -> Result<Selectable<'a>> {
        match self.token.kind {
            kind if is_name(kind) || kind == Kind::Keyword(Keyword::Token) => self.named(kind),
            Kind::OpenParen => self.parenthesised_selectable(),
            Kind::OpenBracket => self.selected_list(),
            Kind::OpenBrace => self.selected_braces(),
            Kind::Question | Kind::Colon => match self.accept_bind_marker()? {
                Some(marker) => Ok(Selectable::Bind(marker)),
                None => Err(self.expected("a bind marker")),
            },
            Kind::Keyword(Keyword::Null) => {
                self.advance()?;
                Ok(Selectable::Null)
            }
            _ => match self.literal_kind() {
                Some(kind) => self.take_literal(kind).map(Selectable::Literal),
                None => Err(self.expected("a column name, a function or a value")),
            },
        }
    }

    /// A column, a function call, or one of the functions with a grammar of their own.
    fn named(&mut self, kind: Kind) -> Result<Selectable<'a>> {
        // Most selectors are just columns: what follows them cannot be a call, a field or a
        // comment.
        if matches!(self.lexer.next_byte(), b'(' | b'.' | b'-' | b'/') {
            let (next, then) = self.peek_two();
            match (kind, next) {
                (Kind::Keyword(keyword), Kind::OpenParen) => return self.keyword_call(keyword, then),
                (_, Kind::OpenParen) => return self.selected_call(),
                (_, Kind::Dot) if self.at_qualified_call() => return self.selected_call(),
                _ => {}
            }
        }
        Ok(Selectable::Column(self.column()?))
    }

    /// `name.name(` here.
    fn at_qualified_call(&self) -> bool {
        let mut lexer = self.lexer;
        let mut next = || lexer.next_token().map_or(Kind::End, |token| token.kind);
        let (_dot, name, open) = (next(), next(), next());
        is_function_name(name) && open == Kind::OpenParen
    }

    /// `keyword(…)`; `then` is the token after the parenthesis.
    fn keyword_call(&mut self, keyword: Keyword, then: Kind) -> Result<Selectable<'a>> {
        match keyword {
            Keyword::Count if then == Kind::Star => {
                self.advance()?;
                self.advance()?;
                self.advance()?;
                self.expect(Kind::CloseParen, "')'")?;
                Ok(Selectable::CountRows)
            }
            Keyword::Writetime => self.cell_attribute(CellAttribute::WriteTime),
            Keyword::Maxwritetime => self.cell_attribute(CellAttribute::MaxWriteTime),
            Keyword::Ttl => self.cell_attribute(CellAttribute::Ttl),
            Keyword::Cast => self.selected_cast(),
            _ => self.selected_call(),
        }
    }

    fn cell_attribute(&mut self, attribute: CellAttribute) -> Result<Selectable<'a>> {
        self.advance()?;
        self.advance()?;
        let column = Selectable::Column(self.column()?);
        let of = self.selected_parts(column)?;
        self.expect(Kind::CloseParen, "')'")?;
        Ok(Selectable::CellAttribute(attribute, Box::new(of)))
    }

    fn selected_cast(&mut self) -> Result<Selectable<'a>> {
        self.advance()?;
        self.advance()?;
        let of = self.selectable()?;
        self.expect_keyword(Keyword::As)?;
        let native = self.native_type()?;
        self.expect(Kind::CloseParen, "')'")?;
        Ok(Selectable::Cast(Box::new(of), native))
    }

    fn selected_call(&mut self) -> Result<Selectable<'a>> {
        let name: QualifiedName<'a> = self.function_name()?;
        let arguments = self.parenthesised_or_empty(Self::selectable)?;
        Ok(Selectable::Function(name, arguments))
    }

    /// `(type)x`, a tuple, or just parentheses.
    fn parenthesised_selectable(&mut self) -> Result<Selectable<'a>> {
        if let Some(hint) = self.accept_type_hint(Self::at_selectable)? {
            let of = self.nested(Self::simple_selectable)?;
            return Ok(Selectable::TypeHint(hint, Box::new(of)));
        }
        Ok(Selectable::Tuple(self.parenthesised(Self::selectable)?))
    }

    /// Whether a simple selectable begins here. `AS` does not: `(a) AS b` is an alias.
    fn at_selectable(&self) -> bool {
        match self.token.kind {
            Kind::Keyword(Keyword::As) => false,
            Kind::Keyword(Keyword::Token | Keyword::Null) => true,
            Kind::OpenParen | Kind::OpenBracket | Kind::OpenBrace | Kind::Question => true,
            Kind::Colon => self.at_named_marker(),
            kind => is_name(kind) || self.literal_kind().is_some(),
        }
    }

    fn selected_list(&mut self) -> Result<Selectable<'a>> {
        self.advance()?;
        if self.accept(Kind::CloseBracket)? {
            return Ok(Selectable::List(Vec::new()));
        }
        let items = self.comma_separated(Self::selectable)?;
        self.expect(Kind::CloseBracket, "',' or ']'")?;
        Ok(Selectable::List(items))
    }

    /// `{…}`: a set, a map or a user-defined type.
    fn selected_braces(&mut self) -> Result<Selectable<'a>> {
        self.advance()?;
        if self.accept(Kind::CloseBrace)? {
            return Ok(Selectable::Set(Vec::new()));
        }
        let first = self.selectable()?;
        let selectable = if self.accept(Kind::Colon)? {
            let mut pairs = vec![(first, self.selectable()?)];
            while self.accept(Kind::Comma)? {
                let key = self.selectable()?;
                self.expect(Kind::Colon, "':'")?;
                pairs.push((key, self.selectable()?));
            }
            Selectable::MapOrUserType(pairs)
        } else {
            let mut items = vec![first];
            while self.accept(Kind::Comma)? {
                items.push(self.selectable()?);
            }
            Selectable::Set(items)
        };
        self.expect(Kind::CloseBrace, "',' or '}'")?;
        Ok(selectable)
    }
}
