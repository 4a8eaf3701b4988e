//! `CREATE TABLE` and `ALTER TABLE`.
//!
//! Must agree with: the rules `createTableStatement`, `tableDefinition`, `tableColumns`,
//! `columnMask`, `alterTableStatement`.

use std::collections::HashSet;

use super::{Parser, Result};
use crate::ast::{AlterTable, ColumnDefinition, ColumnMask, CreateTable, Ident, PrimaryKey, TableAlteration};
use crate::lexer::{Keyword, Kind};

impl<'a> Parser<'a> {
    pub(super) fn create_table(&mut self) -> Result<CreateTable<'a>> {
        self.advance()?;
        let if_not_exists = self.if_not_exists()?;
        let name = self.table_name()?;
        let (mut columns, mut primary_keys) = (Vec::new(), Vec::new());
        self.expect(Kind::OpenParen, "'('")?;
        self.table_column(&mut columns, &mut primary_keys)?;
        while self.accept(Kind::Comma)? {
            if !matches!(self.token.kind, Kind::Comma | Kind::CloseParen) {
                self.table_column(&mut columns, &mut primary_keys)?;
            }
        }
        self.expect(Kind::CloseParen, "',' or ')'")?;
        let with = self.table_properties()?;
        Ok(CreateTable {
            name,
            if_not_exists,
            columns,
            primary_keys,
            clustering_order: with.clustering_order,
            compact_storage: with.compact_storage,
            properties: with.properties,
        })
    }

    /// A column, or `PRIMARY KEY (…)`.
    fn table_column(
        &mut self,
        columns: &mut Vec<ColumnDefinition<'a>>,
        primary_keys: &mut Vec<PrimaryKey<'a>>,
    ) -> Result<()> {
        if self.accept_keywords(Keyword::Primary, &[Keyword::Key])? {
            primary_keys.push(self.primary_key()?);
            return Ok(());
        }
        let column = self.column_definition()?;
        if self.accept_keywords(Keyword::Primary, &[Keyword::Key])? {
            primary_keys.push(PrimaryKey { partition: vec![column.name.clone()], clustering: Vec::new() });
        }
        columns.push(column);
        Ok(())
    }

    /// `name type [STATIC] [MASKED WITH …]`.
    fn column_definition(&mut self) -> Result<ColumnDefinition<'a>> {
        let name = self.new_column()?;
        let type_name = self.type_name()?;
        let is_static = self.accept_keyword(Keyword::Static)?;
        let mask = match self.at_keyword(Keyword::Masked) {
            true => Some(self.column_mask()?),
            false => None,
        };
        Ok(ColumnDefinition { name, type_name, is_static, mask })
    }

    /// `MASKED WITH f(…)` or `MASKED WITH DEFAULT`.
    fn column_mask(&mut self) -> Result<ColumnMask<'a>> {
        self.expect_keyword(Keyword::Masked)?;
        self.expect_keyword(Keyword::With)?;
        if self.at_keyword(Keyword::Default) && !matches!(self.peek(), Kind::OpenParen | Kind::Dot) {
            self.advance()?;
            return Ok(ColumnMask { function: None, arguments: Vec::new() });
        }
        let function = Some(self.function_name()?);
        Ok(ColumnMask { function, arguments: self.parenthesised_or_empty(Self::term)? })
    }

    /// `(a, b)` or `((a, b), c)` after `PRIMARY KEY`.
    pub(super) fn primary_key(&mut self) -> Result<PrimaryKey<'a>> {
        self.expect(Kind::OpenParen, "'('")?;
        let partition = match self.at(Kind::OpenParen) {
            true => self.parenthesised(Self::new_column)?,
            false => vec![self.new_column()?],
        };
        let mut clustering = Vec::new();
        while self.accept(Kind::Comma)? {
            clustering.push(self.new_column()?);
        }
        self.expect(Kind::CloseParen, "',' or ')'")?;
        Ok(PrimaryKey { partition, clustering })
    }

    pub(super) fn alter_table(&mut self) -> Result<AlterTable<'a>> {
        self.advance()?;
        let if_exists = self.if_exists()?;
        let name = self.table_name()?;
        let Kind::Keyword(keyword) = self.token.kind else {
            return Err(self.expected("ALTER, ADD, DROP, RENAME or WITH"));
        };
        let alteration = match keyword {
            Keyword::Alter => self.alter_column()?,
            Keyword::Add => self.add_columns()?,
            Keyword::Drop => self.drop_columns()?,
            Keyword::Rename => {
                let (if_exists, columns) = self.renames(Self::new_column)?;
                TableAlteration::Rename { if_exists, columns }
            }
            Keyword::With => {
                self.advance()?;
                TableAlteration::With(self.properties()?)
            }
            _ => return Err(self.expected("ALTER, ADD, DROP, RENAME or WITH")),
        };
        Ok(AlterTable { name, if_exists, alteration })
    }

    fn alter_column(&mut self) -> Result<TableAlteration<'a>> {
        self.advance()?;
        let if_exists = self.if_exists()?;
        let column = self.column()?;
        if !if_exists && self.accept_keyword(Keyword::TypeWord)? {
            return Ok(TableAlteration::AlterColumn { column, type_name: self.type_name()? });
        }
        if self.accept_keywords(Keyword::Drop, &[Keyword::Masked])? {
            return Ok(TableAlteration::MaskColumn { if_exists, column, mask: None });
        }
        if !self.at_keyword(Keyword::Masked) {
            return Err(self.expected("TYPE, MASKED or DROP MASKED"));
        }
        let mask = Some(self.column_mask()?);
        Ok(TableAlteration::MaskColumn { if_exists, column, mask })
    }

    fn add_columns(&mut self) -> Result<TableAlteration<'a>> {
        self.advance()?;
        let if_not_exists = self.if_not_exists()?;
        let columns = match self.at(Kind::OpenParen) {
            true => self.parenthesised(Self::column_definition)?,
            false => vec![self.column_definition()?],
        };
        Ok(TableAlteration::Add { if_not_exists, columns })
    }

    fn drop_columns(&mut self) -> Result<TableAlteration<'a>> {
        self.advance()?;
        if self.at_keyword(Keyword::Compact) && self.peek() == Kind::Keyword(Keyword::Storage) {
            self.advance()?;
            self.advance()?;
            return Ok(TableAlteration::DropCompactStorage);
        }
        let if_exists = self.if_exists()?;
        let columns: Vec<Ident<'a>> = match self.at(Kind::OpenParen) {
            true => self.parenthesised(Self::new_column)?,
            false => vec![self.new_column()?],
        };
        let timestamp = match self.accept_keywords(Keyword::Using, &[Keyword::Timestamp])? {
            true => Some(self.timestamp()?),
            false => None,
        };
        Ok(TableAlteration::Drop { if_exists, columns, timestamp })
    }

    fn timestamp(&mut self) -> Result<i64> {
        let number = self.lexer.text(self.token).parse();
        match number {
            Ok(timestamp) if self.at(Kind::Integer) => {
                self.advance()?;
                Ok(timestamp)
            }
            _ => Err(self.expected("a timestamp in microseconds, which fits in 64 bits")),
        }
    }

    /// `RENAME [IF EXISTS] a TO b AND c TO d`. As in Cassandra, of several new names for one old
    /// name the last counts.
    pub(super) fn renames(
        &mut self,
        name: fn(&mut Self) -> Result<Ident<'a>>,
    ) -> Result<(bool, Vec<(Ident<'a>, Ident<'a>)>)> {
        self.expect_keyword(Keyword::Rename)?;
        let if_exists = self.if_exists()?;
        let mut renames = Vec::new();
        loop {
            let from = name(self)?;
            self.expect_keyword(Keyword::To)?;
            renames.push((from, name(self)?));
            if !self.accept_keyword(Keyword::And)? {
                break;
            }
        }
        let mut seen = HashSet::new();
        let mut last: Vec<_> = renames.into_iter().rev().filter(|(from, _)| seen.insert(from.text.clone())).collect();
        last.reverse();
        Ok((if_exists, last))
    }
}
