//! `EXPLAIN` and `EXPLAIN ANALYZE`: a statement on data behind two words that Cassandra does not
//! have.

use super::{Parser, Result};
use crate::ast::{Explain, Statement};
use crate::lexer::{Keyword, Kind};

impl<'a> Parser<'a> {
    pub(super) fn explain(&mut self) -> Result<Explain<'a>> {
        self.expect_keyword(Keyword::Explain)?;
        let analyze = self.accept_keyword(Keyword::Analyze)?;
        let statement = match self.token.kind {
            Kind::Keyword(Keyword::Select) => Statement::Select(self.select()?),
            Kind::Keyword(Keyword::Insert) => Statement::Insert(self.insert()?),
            Kind::Keyword(Keyword::Update) => Statement::Update(self.update()?),
            Kind::Keyword(Keyword::Delete) => Statement::Delete(self.delete()?),
            Kind::Keyword(Keyword::Begin) => Statement::Batch(self.batch()?),
            _ => return Err(self.expected("SELECT, INSERT, UPDATE, DELETE or BEGIN BATCH to explain")),
        };
        Ok(Explain { analyze, statement: Box::new(statement) })
    }
}
