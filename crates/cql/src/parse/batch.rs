//! `BEGIN BATCH … APPLY BATCH`.
//!
//! Must agree with: the rules `batchStatement`, `batchStatementObjective`.

use types::BatchKind;

use super::{Parser, Result};
use crate::ast::{Batch, Modification};
use crate::lexer::{Keyword, Kind};

impl<'a> Parser<'a> {
    pub(super) fn batch(&mut self) -> Result<Batch<'a>> {
        self.expect_keyword(Keyword::Begin)?;
        let kind = if self.accept_keyword(Keyword::Unlogged)? {
            BatchKind::Unlogged
        } else if self.accept_keyword(Keyword::Counter)? {
            BatchKind::Counter
        } else {
            BatchKind::Logged
        };
        self.expect_keyword(Keyword::Batch)?;
        let using = self.optional_using()?;
        let mut statements = Vec::new();
        while !self.accept_keyword(Keyword::Apply)? {
            statements.push(self.modification()?);
            self.accept(Kind::Semicolon)?;
        }
        self.expect_keyword(Keyword::Batch)?;
        Ok(Batch { kind, using, statements })
    }

    fn modification(&mut self) -> Result<Modification<'a>> {
        match self.token.kind {
            Kind::Keyword(Keyword::Insert) => self.insert().map(Modification::Insert),
            Kind::Keyword(Keyword::Update) => self.update().map(Modification::Update),
            Kind::Keyword(Keyword::Delete) => self.delete().map(Modification::Delete),
            _ => Err(self.expected("INSERT, UPDATE, DELETE or APPLY BATCH")),
        }
    }
}
