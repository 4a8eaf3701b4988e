//! Names: of columns, fields, keyspaces, tables, functions, roles.
//!
//! Must agree with: the rules `cident`, `ident`, `fident`, `noncol_ident`, `keyspaceName`,
//! `columnFamilyName`, `functionName`, `userOrRoleName`, `username`, `identity`.

use std::borrow::Cow;

use super::{Parser, Result, SyntaxError};
use crate::ast::{Ident, Pos, QualifiedName};
use crate::lexer::{Keyword, Kind, Token, Use};

/// Whether a token may stand for a name of anything but a function or a type.
pub(super) fn is_name(kind: Kind) -> bool {
    match kind {
        Kind::Ident | Kind::QuotedName => true,
        Kind::Keyword(keyword) => keyword.usage() != Use::Reserved,
        _ => false,
    }
}

/// Whether a token may stand for the name of a function.
pub(super) fn is_function_name(kind: Kind) -> bool {
    match kind {
        Kind::Ident | Kind::QuotedName | Kind::Keyword(Keyword::Token | Keyword::Count) => true,
        Kind::Keyword(keyword) => matches!(keyword.usage(), Use::Any | Use::Type(_)),
        _ => false,
    }
}

impl<'a> Parser<'a> {
    /// A name that may not be empty.
    pub(super) fn name(&mut self, what: &str) -> Result<Ident<'a>> {
        if is_name(self.token.kind) && !self.is_empty_name() {
            return self.take_name();
        }
        Err(self.expected(what))
    }

    /// The name of a column, which may be empty (`""`): old tables have such columns.
    pub(super) fn column(&mut self) -> Result<Ident<'a>> {
        if is_name(self.token.kind) { self.take_name() } else { Err(self.expected("a column name")) }
    }

    /// The name of a column that is being made: not empty.
    pub(super) fn new_column(&mut self) -> Result<Ident<'a>> {
        self.name("a column name")
    }

    pub(super) fn field(&mut self) -> Result<Ident<'a>> {
        self.name("a field name")
    }

    fn is_empty_name(&self) -> bool {
        self.at(Kind::QuotedName) && self.token.end - self.token.start == 2
    }

    /// Consumes the token as a name.
    pub(super) fn take_name(&mut self) -> Result<Ident<'a>> {
        let token = self.token;
        self.advance()?;
        Ok(name_of(self.lexer.text(token), token))
    }

    pub(super) fn keyspace_name(&mut self) -> Result<Ident<'a>> {
        if self.at(Kind::Question) {
            return Err(SyntaxError::plain("Bind variables cannot be used for keyspace names"));
        }
        self.name("a keyspace name")
    }

    /// `[keyspace.]table`.
    pub(super) fn table_name(&mut self) -> Result<QualifiedName<'a>> {
        self.qualified("a table name", "Bind variables cannot be used for table names")
    }

    /// `[keyspace.]index`.
    pub(super) fn index_name(&mut self) -> Result<QualifiedName<'a>> {
        self.qualified("an index name", "Bind variables cannot be used for index names")
    }

    fn qualified(&mut self, what: &str, no_bind: &'static str) -> Result<QualifiedName<'a>> {
        let first = self.bindless_name(what, no_bind)?;
        if !self.accept(Kind::Dot)? {
            return Ok(QualifiedName { keyspace: None, name: first });
        }
        let name = self.bindless_name(what, no_bind)?;
        Ok(QualifiedName { keyspace: Some(first), name })
    }

    /// A name; a bind marker in its place is told that it may not stand there.
    pub(super) fn bindless_name(&mut self, what: &str, no_bind: &'static str) -> Result<Ident<'a>> {
        if self.at(Kind::Question) {
            return Err(SyntaxError::plain(no_bind));
        }
        self.name(what)
    }

    /// `[keyspace.]function`.
    pub(super) fn function_name(&mut self) -> Result<QualifiedName<'a>> {
        if is_name(self.token.kind) && self.peek() == Kind::Dot {
            let keyspace = self.take_name()?;
            self.advance()?;
            let name = self.unqualified_function_name()?;
            return Ok(QualifiedName { keyspace: Some(keyspace), name });
        }
        let name = self.unqualified_function_name()?;
        Ok(QualifiedName { keyspace: None, name })
    }

    /// The name of a function in a keyspace known otherwise.
    pub(super) fn unqualified_function_name(&mut self) -> Result<Ident<'a>> {
        if is_function_name(self.token.kind) && !self.is_empty_name() {
            return self.take_name();
        }
        Err(self.expected("a function name"))
    }

    /// The name of a role, which may also be a string.
    pub(super) fn role_name(&mut self) -> Result<Ident<'a>> {
        if matches!(self.token.kind, Kind::String | Kind::DollarString) {
            return self.take_string_name();
        }
        self.bindless_name("a role name", "Bind variables cannot be used for role names")
    }

    /// The name of a user: no keyword, not in double quotes.
    pub(super) fn user_name(&mut self) -> Result<Ident<'a>> {
        let refusal = "Quoted strings are are not supported for user names and USER is deprecated, please use ROLE";
        self.plain_or_string("a user name", refusal)
    }

    /// An identity, or a role in the statements about identities.
    pub(super) fn identity(&mut self) -> Result<Ident<'a>> {
        self.plain_or_string("an identity", "Quoted strings are are not supported for identity")
    }

    /// A name as it is written, capitals kept.
    fn plain_or_string(&mut self, what: &str, quoted_refusal: &'static str) -> Result<Ident<'a>> {
        match self.token.kind {
            Kind::String | Kind::DollarString => self.take_string_name(),
            Kind::QuotedName => Err(SyntaxError::plain(quoted_refusal)),
            Kind::Ident => {
                let text = Cow::Borrowed(self.lexer.text(self.token));
                let pos = self.pos();
                self.advance()?;
                Ok(Ident { text, quoted: false, pos })
            }
            _ => Err(self.expected(what)),
        }
    }

    fn take_string_name(&mut self) -> Result<Ident<'a>> {
        let (text, pos) = (self.string_text(), self.pos());
        self.advance()?;
        Ok(Ident { text, quoted: true, pos })
    }
}

/// A name token's name: folded to lower case, or without its quotes.
#[inline]
fn name_of<'a>(text: &'a str, token: Token) -> Ident<'a> {
    let pos = Pos(token.start);
    if token.kind == Kind::QuotedName {
        let inside = &text[1..text.len() - 1];
        let text = match inside.contains('"') {
            true => Cow::Owned(inside.replace("\"\"", "\"")),
            false => Cow::Borrowed(inside),
        };
        return Ident { text, quoted: true, pos };
    }
    let text = match text.bytes().any(|b| b.is_ascii_uppercase()) {
        true => Cow::Owned(text.to_ascii_lowercase()),
        false => Cow::Borrowed(text),
    };
    Ident { text, quoted: false, pos }
}
