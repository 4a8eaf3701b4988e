//! `ALTER` of keyspaces, types and views.
//!
//! Must agree with: the rules `alterKeyspaceStatement`, `alterTypeStatement`,
//! `alterMaterializedViewStatement`.

use super::{Parser, Result};
use crate::ast::{AlterKeyspace, AlterType, AlterView, Statement, TypeAlteration};
use crate::lexer::{Keyword, Kind};

impl<'a> Parser<'a> {
    pub(super) fn alter(&mut self) -> Result<Statement<'a>> {
        self.expect_keyword(Keyword::Alter)?;
        let what = "KEYSPACE, TABLE, TYPE, MATERIALIZED VIEW, ROLE or USER";
        let Kind::Keyword(keyword) = self.token.kind else {
            return Err(self.expected(what));
        };
        match keyword {
            Keyword::Keyspace => self.alter_keyspace().map(Statement::AlterKeyspace),
            Keyword::Table => self.alter_table().map(Statement::AlterTable),
            Keyword::TypeWord => self.alter_type().map(Statement::AlterType),
            Keyword::Materialized => self.alter_view().map(Statement::AlterView),
            Keyword::Role => self.alter_role().map(Statement::AlterRole),
            Keyword::User => self.alter_user().map(Statement::AlterRole),
            _ => Err(self.expected(what)),
        }
    }

    fn alter_keyspace(&mut self) -> Result<AlterKeyspace<'a>> {
        self.advance()?;
        let if_exists = self.if_exists()?;
        let name = self.keyspace_name()?;
        self.expect_keyword(Keyword::With)?;
        Ok(AlterKeyspace { name, if_exists, properties: self.properties()? })
    }

    fn alter_view(&mut self) -> Result<AlterView<'a>> {
        self.advance()?;
        self.expect_keyword(Keyword::View)?;
        let if_exists = self.if_exists()?;
        let name = self.table_name()?;
        self.expect_keyword(Keyword::With)?;
        Ok(AlterView { name, if_exists, properties: self.properties()? })
    }

    fn alter_type(&mut self) -> Result<AlterType<'a>> {
        self.advance()?;
        let if_exists = self.if_exists()?;
        let name = self.user_type_name()?;
        let alteration = match self.token.kind {
            Kind::Keyword(Keyword::Alter) => {
                self.advance()?;
                let field = self.field()?;
                self.expect_keyword(Keyword::TypeWord)?;
                TypeAlteration::AlterField(field, self.type_name()?)
            }
            Kind::Keyword(Keyword::Add) => {
                self.advance()?;
                let if_not_exists = self.if_not_exists()?;
                TypeAlteration::Add { if_not_exists, field: self.field()?, type_name: self.type_name()? }
            }
            Kind::Keyword(Keyword::Rename) => {
                let (if_exists, fields) = self.renames(Self::field)?;
                TypeAlteration::Rename { if_exists, fields }
            }
            _ => return Err(self.expected("ALTER, ADD or RENAME")),
        };
        Ok(AlterType { name, if_exists, alteration })
    }
}
