//! `DROP` of everything: the word after it says what, the rest is `[IF EXISTS]` and a name.
//!
//! Must agree with: the rules `drop…Statement`.

use super::{Parser, Result};
use crate::ast::{
    DropFunction, DropIdentity, DropKeyspace, DropNamed, DropRole, DropTrigger, QualifiedName, Statement,
};
use crate::lexer::{Keyword, Kind};

impl<'a> Parser<'a> {
    pub(super) fn drop(&mut self) -> Result<Statement<'a>> {
        self.expect_keyword(Keyword::Drop)?;
        let what = "KEYSPACE, TABLE, TYPE, INDEX, MATERIALIZED VIEW, FUNCTION, AGGREGATE, TRIGGER, ROLE, USER \
                    or IDENTITY";
        let Kind::Keyword(keyword) = self.token.kind else {
            return Err(self.expected(what));
        };
        match keyword {
            Keyword::Keyspace => self.drop_keyspace(),
            Keyword::Table => self.drop_named(Self::table_name).map(Statement::DropTable),
            Keyword::TypeWord => self.drop_named(Self::user_type_name).map(Statement::DropType),
            Keyword::Index => self.drop_named(Self::index_name).map(Statement::DropIndex),
            Keyword::Materialized => self.drop_view(),
            Keyword::Function => self.drop_function().map(Statement::DropFunction),
            Keyword::Aggregate => self.drop_function().map(Statement::DropAggregate),
            Keyword::Trigger => self.drop_trigger(),
            Keyword::Role | Keyword::User => self.drop_role(keyword == Keyword::User),
            Keyword::Identity => self.drop_identity(),
            _ => Err(self.expected(what)),
        }
    }

    fn drop_keyspace(&mut self) -> Result<Statement<'a>> {
        self.advance()?;
        let if_exists = self.if_exists()?;
        Ok(Statement::DropKeyspace(DropKeyspace { name: self.keyspace_name()?, if_exists }))
    }

    fn drop_named(&mut self, name: fn(&mut Self) -> Result<QualifiedName<'a>>) -> Result<DropNamed<'a>> {
        self.advance()?;
        let if_exists = self.if_exists()?;
        Ok(DropNamed { name: name(self)?, if_exists })
    }

    fn drop_view(&mut self) -> Result<Statement<'a>> {
        self.advance()?;
        if !self.at_keyword(Keyword::View) {
            return Err(self.expected("VIEW"));
        }
        self.drop_named(Self::table_name).map(Statement::DropView)
    }

    fn drop_function(&mut self) -> Result<DropFunction<'a>> {
        self.advance()?;
        let if_exists = self.if_exists()?;
        let name = self.function_name()?;
        let arguments = match self.at(Kind::OpenParen) {
            true => Some(self.parenthesised_or_empty(Self::type_name)?),
            false => None,
        };
        Ok(DropFunction { name, if_exists, arguments })
    }

    fn drop_trigger(&mut self) -> Result<Statement<'a>> {
        self.advance()?;
        let if_exists = self.if_exists()?;
        let name = self.name("a trigger name")?;
        self.expect_keyword(Keyword::On)?;
        Ok(Statement::DropTrigger(DropTrigger { name, if_exists, table: self.table_name()? }))
    }

    fn drop_role(&mut self, user: bool) -> Result<Statement<'a>> {
        self.advance()?;
        let if_exists = self.if_exists()?;
        let name = if user { self.user_name()? } else { self.role_name()? };
        Ok(Statement::DropRole(DropRole { name, if_exists }))
    }

    fn drop_identity(&mut self) -> Result<Statement<'a>> {
        self.advance()?;
        let if_exists = self.if_exists()?;
        Ok(Statement::DropIdentity(DropIdentity { identity: self.identity()?, if_exists }))
    }
}
