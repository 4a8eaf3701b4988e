//! Which statement it is.
//!
//! Must agree with: the rule `cqlStatement`.

use super::{Parser, Result};
use crate::ast::Statement;
use crate::lexer::{Keyword, Kind};

impl<'a> Parser<'a> {
    pub(super) fn statement(&mut self) -> Result<Statement<'a>> {
        let Kind::Keyword(keyword) = self.token.kind else {
            return Err(self.expected_statement());
        };
        match keyword {
            Keyword::Select => self.select().map(Statement::Select),
            Keyword::Insert => self.insert().map(Statement::Insert),
            Keyword::Update => self.update().map(Statement::Update),
            Keyword::Delete => self.delete().map(Statement::Delete),
            Keyword::Begin => self.batch().map(Statement::Batch),
            Keyword::UseWord => self.use_keyspace(),
            Keyword::Truncate => self.truncate().map(Statement::Truncate),
            Keyword::Create => self.create(),
            Keyword::Alter => self.alter(),
            Keyword::Drop => self.drop(),
            Keyword::Add => self.add_identity().map(Statement::AddIdentity),
            Keyword::Grant | Keyword::Revoke => self.grant_or_revoke(),
            Keyword::List => self.list(),
            Keyword::Describe | Keyword::Desc => self.describe().map(Statement::Describe),
            Keyword::Explain => self.explain().map(Statement::Explain),
            _ => Err(self.expected_statement()),
        }
    }

    fn use_keyspace(&mut self) -> Result<Statement<'a>> {
        self.advance()?;
        self.keyspace_name().map(Statement::Use)
    }

    #[cold]
    fn expected_statement(&self) -> super::SyntaxError {
        self.expected(
            "a statement (SELECT, INSERT, UPDATE, DELETE, BEGIN BATCH, USE, TRUNCATE, CREATE, ALTER, DROP, \
             GRANT, REVOKE, LIST, DESCRIBE, EXPLAIN)",
        )
    }
}
