//! `DELETE` and `TRUNCATE`.
//!
//! Must agree with: the rules `deleteStatement`, `deleteOp`, `usingClauseDelete`,
//! `truncateStatement`.

use super::{Parser, Result};
use crate::ast::{Delete, Deletion, QualifiedName};
use crate::lexer::{Keyword, Kind};

impl<'a> Parser<'a> {
    pub(super) fn delete(&mut self) -> Result<Delete<'a>> {
        self.expect_keyword(Keyword::Delete)?;
        let deletions = match self.at_keyword(Keyword::From) {
            true => Vec::new(),
            false => self.comma_separated(Self::deletion)?,
        };
        self.expect_keyword(Keyword::From)?;
        let table = self.table_name()?;
        let timestamp = match self.accept_keywords(Keyword::Using, &[Keyword::Timestamp])? {
            true => Some(self.integer_or_marker()?),
            false => None,
        };
        self.expect_keyword(Keyword::Where)?;
        let where_clause = self.where_clause()?;
        let condition = self.optional_condition()?;
        Ok(Delete { deletions, table, timestamp, where_clause, condition })
    }

    fn deletion(&mut self) -> Result<Deletion<'a>> {
        let column = self.column()?;
        if self.accept(Kind::OpenBracket)? {
            let key = self.term()?;
            self.expect(Kind::CloseBracket, "']'")?;
            return Ok(Deletion::Element(column, key));
        }
        if self.accept(Kind::Dot)? {
            return Ok(Deletion::Field(column, self.field()?));
        }
        Ok(Deletion::Column(column))
    }

    pub(super) fn truncate(&mut self) -> Result<QualifiedName<'a>> {
        self.expect_keyword(Keyword::Truncate)?;
        self.accept_keyword(Keyword::Table)?;
        self.table_name()
    }
}
