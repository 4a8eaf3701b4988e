//! `CREATE` of keyspaces, types, indexes, views and triggers; tables and functions have their own
//! files.
//!
//! Must agree with: the rules `createKeyspaceStatement`, `createTypeStatement`,
//! `createIndexStatement`, `createMaterializedViewStatement`, `createTriggerStatement`.

use super::{Parser, Result, SyntaxError};
use crate::ast::{
    CreateIndex, CreateKeyspace, CreateTrigger, CreateType, CreateView, Ident, IndexTarget, IndexTargetKind, Statement,
    TypeName,
};
use crate::lexer::{Keyword, Kind};

impl<'a> Parser<'a> {
    pub(super) fn create(&mut self) -> Result<Statement<'a>> {
        self.expect_keyword(Keyword::Create)?;
        let Kind::Keyword(keyword) = self.token.kind else {
            return Err(self.expected_creation());
        };
        match keyword {
            Keyword::Keyspace => self.create_keyspace().map(Statement::CreateKeyspace),
            Keyword::Table => self.create_table().map(Statement::CreateTable),
            Keyword::TypeWord => self.create_type().map(Statement::CreateType),
            Keyword::Index | Keyword::Custom => self.create_index().map(Statement::CreateIndex),
            Keyword::Materialized => self.create_view().map(Statement::CreateView),
            Keyword::Trigger => self.create_trigger().map(Statement::CreateTrigger),
            Keyword::Role => self.create_role().map(Statement::CreateRole),
            Keyword::User => self.create_user().map(Statement::CreateRole),
            Keyword::Function | Keyword::Aggregate | Keyword::Or => self.create_function_or_aggregate(),
            _ => Err(self.expected_creation()),
        }
    }

    #[cold]
    fn expected_creation(&self) -> SyntaxError {
        self.expected("KEYSPACE, TABLE, TYPE, INDEX, MATERIALIZED VIEW, FUNCTION, AGGREGATE, TRIGGER, ROLE or USER")
    }

    fn create_keyspace(&mut self) -> Result<CreateKeyspace<'a>> {
        self.advance()?;
        let if_not_exists = self.if_not_exists()?;
        let name = self.keyspace_name()?;
        self.expect_keyword(Keyword::With)?;
        Ok(CreateKeyspace { name, if_not_exists, properties: self.properties()? })
    }

    fn create_type(&mut self) -> Result<CreateType<'a>> {
        self.advance()?;
        let if_not_exists = self.if_not_exists()?;
        let name = self.user_type_name()?;
        self.expect(Kind::OpenParen, "'('")?;
        let mut fields = vec![self.type_field()?];
        while self.accept(Kind::Comma)? {
            if !matches!(self.token.kind, Kind::Comma | Kind::CloseParen) {
                fields.push(self.type_field()?);
            }
        }
        self.expect(Kind::CloseParen, "',' or ')'")?;
        Ok(CreateType { name, if_not_exists, fields })
    }

    fn type_field(&mut self) -> Result<(Ident<'a>, TypeName<'a>)> {
        Ok((self.field()?, self.type_name()?))
    }

    fn create_index(&mut self) -> Result<CreateIndex<'a>> {
        let custom = self.accept_keyword(Keyword::Custom)?;
        self.expect_keyword(Keyword::Index)?;
        let if_not_exists = self.if_not_exists()?;
        let name = match self.at_keyword(Keyword::On) {
            true => None,
            false => Some(self.bindless_name("an index name", "Bind variables cannot be used for index names")?),
        };
        self.expect_keyword(Keyword::On)?;
        let table = self.table_name()?;
        let targets = self.parenthesised_or_empty(Self::index_target)?;
        let using = match self.accept_keyword(Keyword::Using)? {
            true => Some(self.string("the name of an index class as a string")?),
            false => None,
        };
        let properties = self.optional_properties()?;
        Ok(CreateIndex { name, if_not_exists, custom, table, targets, using, properties })
    }

    fn index_target(&mut self) -> Result<IndexTarget<'a>> {
        let kind = match self.token.kind {
            Kind::Keyword(Keyword::Values) => IndexTargetKind::Values,
            Kind::Keyword(Keyword::Keys) => IndexTargetKind::Keys,
            Kind::Keyword(Keyword::Entries) => IndexTargetKind::Entries,
            Kind::Keyword(Keyword::Full) => IndexTargetKind::Full,
            _ => IndexTargetKind::Simple,
        };
        if kind == IndexTargetKind::Simple || self.peek() != Kind::OpenParen {
            return Ok(IndexTarget { kind: IndexTargetKind::Simple, column: self.column()? });
        }
        self.advance()?;
        self.advance()?;
        let column = self.column()?;
        self.expect(Kind::CloseParen, "')'")?;
        Ok(IndexTarget { kind, column })
    }

    fn create_view(&mut self) -> Result<CreateView<'a>> {
        self.advance()?;
        self.expect_keyword(Keyword::View)?;
        let if_not_exists = self.if_not_exists()?;
        let name = self.table_name()?;
        self.expect_keyword(Keyword::As)?;
        self.expect_keyword(Keyword::Select)?;
        let selectors = self.selectors()?;
        self.expect_keyword(Keyword::From)?;
        let base = self.table_name()?;
        let where_clause = self.optional_where()?;
        self.expect_keyword(Keyword::Primary)?;
        self.expect_keyword(Keyword::Key)?;
        let primary_key = self.primary_key()?;
        let with = self.table_properties()?;
        if with.compact_storage {
            let why = "COMPACT STORAGE tables are not allowed starting with version 4.0";
            return Err(SyntaxError::plain(why));
        }
        Ok(CreateView {
            name,
            if_not_exists,
            selectors,
            base,
            where_clause,
            primary_key,
            clustering_order: with.clustering_order,
            properties: with.properties,
        })
    }

    fn create_trigger(&mut self) -> Result<CreateTrigger<'a>> {
        self.advance()?;
        let if_not_exists = self.if_not_exists()?;
        let name = self.name("a trigger name")?;
        self.expect_keyword(Keyword::On)?;
        let table = self.table_name()?;
        self.expect_keyword(Keyword::Using)?;
        let class = self.string("the name of a trigger class as a string")?;
        Ok(CreateTrigger { name, if_not_exists, table, class })
    }
}
