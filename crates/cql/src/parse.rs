//! Text to syntax tree: a recursive descent over the tokens, one file per family of statements.
//!
//! The parser looks one token ahead, in a few places two; where the grammar cannot be decided so
//! (`(int)x` against `(a, b)`), it tries and goes back. It copies a text only where the tree's text
//! differs from the statement's: names in capitals, strings with doubled quotes.
//!
//! Invariants: the tree is never deeper than [`NESTING_MAX`] + [`LINKS_MAX`], so that whoever walks
//! it (or drops it) may recurse; bind markers are numbered in the order of the text.
//!
//! Must agree with: Cassandra 5.0.8's `Parser.g`.

mod alter;
mod auth;
mod batch;
mod condition;
mod create;
mod delete;
mod describe;
mod drop;
mod error;
mod explain;
mod function;
mod insert;
mod name;
mod property;
mod role;
mod select;
mod selectable;
mod statement;
mod table;
mod term;
mod type_name;
mod update;
mod where_clause;

use std::borrow::Cow;

pub use error::SyntaxError;

use crate::ast::{BindMarker, Ident, Parsed, Pos, WhereClause};
use crate::lexer::{Keyword, Kind, Lexer, Token};

/// The longest statement in bytes: what the largest frame of the protocol can carry. Longer ones
/// are refused.
pub const STATEMENT_SIZE_MAX: usize = 256 << 20;

/// How deep parentheses, collections, calls and types may stand in each other. Deeper ones are
/// refused.
pub const NESTING_MAX: u32 = 64;

/// How many operators and selections (`a + b`, `a.b`, `a[b]`) one term may chain. More are refused.
pub const LINKS_MAX: u32 = 256;

/// How many bind markers a statement may have: the protocol counts them in 16 bits. More are
/// refused.
pub const BIND_MARKERS_MAX: usize = 65535;

/// Parses one statement, which may end with semicolons.
pub fn parse(text: &str) -> Result<Parsed<'_>, SyntaxError> {
    if text.len() > STATEMENT_SIZE_MAX {
        return Err(SyntaxError::plain(format!(
            "Statement of {} bytes is longer than the maximum of {STATEMENT_SIZE_MAX} bytes",
            text.len()
        )));
    }
    let mut parser = Parser::new(text)?;
    let statement = parser.statement()?;
    while parser.token.kind == Kind::Semicolon {
        parser.advance()?;
    }
    if parser.token.kind != Kind::End {
        return Err(parser.expected("the end of the statement"));
    }
    Ok(Parsed { statement, bind_markers: parser.bind_markers })
}

/// Parses the text after `WHERE`, as the schema keeps that of a materialized view.
pub fn where_clause(text: &str) -> Result<WhereClause<'_>> {
    let mut parser = Parser::new(text)?;
    let clause = parser.where_clause()?;
    if parser.token.kind != Kind::End {
        return Err(parser.expected("the end of the condition"));
    }
    Ok(clause)
}

type Result<T, E = SyntaxError> = std::result::Result<T, E>;

/// The state of a parse.
struct Parser<'a> {
    lexer: Lexer<'a>,
    /// The token not yet consumed.
    token: Token,
    bind_markers: Vec<Option<Ident<'a>>>,
    /// How many terms, selectables, types, parentheses we are in.
    depth: u32,
    /// How many links the outermost term has so far.
    links: u32,
}

/// Where to go back to.
struct Checkpoint<'a> {
    lexer: Lexer<'a>,
    token: Token,
    bind_markers: usize,
    links: u32,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Result<Self> {
        let token = Token { kind: Kind::End, start: 0, end: 0 };
        let mut parser = Parser { lexer: Lexer::new(text), token, bind_markers: Vec::new(), depth: 0, links: 0 };
        parser.advance()?;
        Ok(parser)
    }

    /// Consumes the current token.
    #[inline]
    fn advance(&mut self) -> Result<()> {
        match self.lexer.next_token() {
            Ok(token) => {
                self.token = token;
                Ok(())
            }
            Err(error) => Err(SyntaxError::lexical(self.lexer.source(), error)),
        }
    }

    /// The kind of the token after the current one.
    fn peek(&self) -> Kind {
        let mut lexer = self.lexer;
        lexer.next_token().map_or(Kind::End, |token| token.kind)
    }

    /// The kinds of the two tokens after the current one.
    fn peek_two(&self) -> (Kind, Kind) {
        let mut lexer = self.lexer;
        let mut next = || lexer.next_token().map_or(Kind::End, |token| token.kind);
        (next(), next())
    }

    fn checkpoint(&self) -> Checkpoint<'a> {
        Checkpoint { lexer: self.lexer, token: self.token, bind_markers: self.bind_markers.len(), links: self.links }
    }

    fn rewind(&mut self, checkpoint: Checkpoint<'a>) {
        self.lexer = checkpoint.lexer;
        self.token = checkpoint.token;
        self.bind_markers.truncate(checkpoint.bind_markers);
        self.links = checkpoint.links;
    }

    #[inline]
    fn at(&self, kind: Kind) -> bool {
        self.token.kind == kind
    }

    #[inline]
    fn at_keyword(&self, keyword: Keyword) -> bool {
        self.token.kind == Kind::Keyword(keyword)
    }

    /// Consumes the token if it is of this kind.
    #[inline]
    fn accept(&mut self, kind: Kind) -> Result<bool> {
        let found = self.at(kind);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    #[inline]
    fn accept_keyword(&mut self, keyword: Keyword) -> Result<bool> {
        self.accept(Kind::Keyword(keyword))
    }

    /// Consumes the two keywords if the first is there; then the second must be.
    fn accept_keywords(&mut self, first: Keyword, then: &[Keyword]) -> Result<bool> {
        let found = self.accept_keyword(first)?;
        if found {
            for &keyword in then {
                self.expect_keyword(keyword)?;
            }
        }
        Ok(found)
    }

    fn expect(&mut self, kind: Kind, what: &str) -> Result<()> {
        if self.at(kind) { self.advance() } else { Err(self.expected(what)) }
    }

    fn expect_keyword(&mut self, keyword: Keyword) -> Result<()> {
        if self.at_keyword(keyword) {
            return self.advance();
        }
        Err(self.expected(&keyword.text().to_ascii_uppercase()))
    }

    /// `IF NOT EXISTS`, if it is there.
    fn if_not_exists(&mut self) -> Result<bool> {
        self.accept_keywords(Keyword::If, &[Keyword::Not, Keyword::Exists])
    }

    /// `IF EXISTS`, if it is there.
    fn if_exists(&mut self) -> Result<bool> {
        self.accept_keywords(Keyword::If, &[Keyword::Exists])
    }

    /// One or more things with commas between.
    fn comma_separated<T>(&mut self, mut item: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        // Not `vec![item]`: that has room for one only.
        let mut items = Vec::new();
        loop {
            items.push(item(self)?);
            if !self.accept(Kind::Comma)? {
                return Ok(items);
            }
        }
    }

    /// `(a, b, …)` with at least one thing.
    fn parenthesised<T>(&mut self, item: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        self.expect(Kind::OpenParen, "'('")?;
        let items = self.comma_separated(item)?;
        self.expect(Kind::CloseParen, "',' or ')'")?;
        Ok(items)
    }

    /// `(a, b, …)`, also `()`.
    fn parenthesised_or_empty<T>(&mut self, item: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        if self.at(Kind::OpenParen) && self.peek() == Kind::CloseParen {
            self.advance()?;
            self.advance()?;
            return Ok(Vec::new());
        }
        self.parenthesised(item)
    }

    /// Parses something that may stand in itself, one level deeper.
    #[inline]
    fn nested<T>(&mut self, inner: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth == 0 {
            self.links = 0;
        }
        if self.depth == NESTING_MAX {
            return Err(self.refused(&format!("nested more than {NESTING_MAX} levels deep")));
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    /// Counts one more link in the chain of a term.
    #[inline]
    fn link(&mut self) -> Result<()> {
        self.links += 1;
        if self.links > LINKS_MAX {
            return Err(self.refused(&format!("more than {LINKS_MAX} operations in one term")));
        }
        Ok(())
    }

    /// A bind marker, if the token begins one: `?` or `:name`.
    fn accept_bind_marker(&mut self) -> Result<Option<BindMarker<'a>>> {
        match self.token.kind {
            Kind::Question => self.advance()?,
            Kind::Colon => {
                self.advance()?;
                let name = self.name("the name of a bind marker")?;
                return self.new_bind_marker(Some(name)).map(Some);
            }
            _ => return Ok(None),
        }
        self.new_bind_marker(None).map(Some)
    }

    fn new_bind_marker(&mut self, name: Option<Ident<'a>>) -> Result<BindMarker<'a>> {
        let index = self.bind_markers.len();
        if index == BIND_MARKERS_MAX {
            return Err(self.refused(&format!("more than {BIND_MARKERS_MAX} bind markers")));
        }
        self.bind_markers.push(name.clone());
        Ok(BindMarker { index: index as u16, name })
    }

    /// The text of a string token, without its quotes.
    fn string_text(&self) -> Cow<'a, str> {
        let text = self.lexer.text(self.token);
        if self.at(Kind::DollarString) {
            return Cow::Borrowed(&text[2..text.len() - 2]);
        }
        let inside = &text[1..text.len() - 1];
        if inside.contains('\'') { Cow::Owned(inside.replace("''", "'")) } else { Cow::Borrowed(inside) }
    }

    /// A string, which must be there.
    fn string(&mut self, what: &str) -> Result<Cow<'a, str>> {
        if !matches!(self.token.kind, Kind::String | Kind::DollarString) {
            return Err(self.expected(what));
        }
        let text = self.string_text();
        self.advance()?;
        Ok(text)
    }

    fn pos(&self) -> Pos {
        Pos(self.token.start)
    }

    /// The error that something else should stand here.
    #[cold]
    fn expected(&self, what: &str) -> SyntaxError {
        SyntaxError::expected(self.lexer.source(), self.token, what)
    }

    /// The error that there is too much here.
    #[cold]
    fn refused(&self, why: &str) -> SyntaxError {
        SyntaxError::at(self.lexer.source(), self.token, why)
    }
}

#[cfg(test)]
mod tests;
