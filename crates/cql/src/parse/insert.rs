//! `INSERT`, and `USING`.
//!
//! Must agree with: the rules `insertStatement`, `jsonValue`, `usingClause`.

use super::{Parser, Result};
use crate::ast::{Insert, InsertSource, JsonValue, Using};
use crate::lexer::{Keyword, Kind};

impl<'a> Parser<'a> {
    pub(super) fn insert(&mut self) -> Result<Insert<'a>> {
        self.expect_keyword(Keyword::Insert)?;
        self.expect_keyword(Keyword::Into)?;
        let table = self.table_name()?;
        let source = match self.token.kind {
            Kind::OpenParen => self.inserted_values()?,
            Kind::Keyword(Keyword::Json) => self.inserted_json()?,
            _ => return Err(self.expected("'(' or JSON")),
        };
        let if_not_exists = self.if_not_exists()?;
        let using = self.optional_using()?;
        Ok(Insert { table, source, if_not_exists, using })
    }

    fn inserted_values(&mut self) -> Result<InsertSource<'a>> {
        let columns = self.parenthesised(Self::column)?;
        self.expect_keyword(Keyword::Values)?;
        let values = self.parenthesised(Self::term)?;
        Ok(InsertSource::Values { columns, values })
    }

    fn inserted_json(&mut self) -> Result<InsertSource<'a>> {
        self.advance()?;
        let value = match self.accept_bind_marker()? {
            Some(marker) => JsonValue::Bind(marker),
            None => JsonValue::Literal(self.string("a JSON string or a bind marker")?),
        };
        let mut default_unset = false;
        if self.accept_keyword(Keyword::Default)? {
            default_unset = self.accept_keyword(Keyword::Unset)?;
            if !default_unset && !self.accept_keyword(Keyword::Null)? {
                return Err(self.expected("NULL or UNSET"));
            }
        }
        Ok(InsertSource::Json { value, default_unset })
    }

    /// `USING TIMESTAMP t AND TTL n`, or nothing.
    pub(super) fn optional_using(&mut self) -> Result<Using<'a>> {
        let mut using = Using::default();
        if !self.accept_keyword(Keyword::Using)? {
            return Ok(using);
        }
        loop {
            if self.accept_keyword(Keyword::Timestamp)? {
                using.timestamp = Some(self.integer_or_marker()?);
            } else if self.accept_keyword(Keyword::Ttl)? {
                using.ttl = Some(self.integer_or_marker()?);
            } else {
                return Err(self.expected("TIMESTAMP or TTL"));
            }
            if !self.accept_keyword(Keyword::And)? {
                return Ok(using);
            }
        }
    }
}
