//! `SELECT`: the clauses in their one order. What is selected is in `selectable`, what rows are
//! asked for in `where_clause`.
//!
//! Must agree with: the rules `selectStatement`, `orderByClause`, `groupByClause`.

use super::{Parser, Result};
use crate::ast::{Ordering, Select, WhereClause};
use crate::lexer::Keyword;

impl<'a> Parser<'a> {
    pub(super) fn select(&mut self) -> Result<Select<'a>> {
        self.expect_keyword(Keyword::Select)?;
        let json = self.accept_select_modifier(Keyword::Json)?;
        let distinct = self.accept_select_modifier(Keyword::Distinct)?;
        let selectors = self.selectors()?;
        self.expect_keyword(Keyword::From)?;
        let table = self.table_name()?;
        let where_clause = self.optional_where()?;
        let group_by = match self.accept_keywords(Keyword::Group, &[Keyword::By])? {
            true => self.comma_separated(Self::selectable)?,
            false => Vec::new(),
        };
        let order_by = match self.accept_keywords(Keyword::Order, &[Keyword::By])? {
            true => self.comma_separated(Self::ordering)?,
            false => Vec::new(),
        };
        let per_partition_limit = match self.accept_keywords(Keyword::Per, &[Keyword::Partition, Keyword::Limit])? {
            true => Some(self.integer_or_marker()?),
            false => None,
        };
        let limit = match self.accept_keyword(Keyword::Limit)? {
            true => Some(self.integer_or_marker()?),
            false => None,
        };
        let allow_filtering = self.accept_keywords(Keyword::Allow, &[Keyword::Filtering])?;
        Ok(Select {
            json,
            distinct,
            selectors,
            table,
            where_clause,
            group_by,
            order_by,
            per_partition_limit,
            limit,
            allow_filtering,
        })
    }

    /// `WHERE …`, if it is there.
    pub(super) fn optional_where(&mut self) -> Result<WhereClause<'a>> {
        match self.accept_keyword(Keyword::Where)? {
            true => self.where_clause(),
            false => Ok(WhereClause::default()),
        }
    }

    fn ordering(&mut self) -> Result<Ordering<'a>> {
        let column = self.column()?;
        let ann_of = match self.accept_keywords(Keyword::Ann, &[Keyword::Of])? {
            true => Some(self.term()?),
            false => None,
        };
        let descending = self.accept_keyword(Keyword::Desc)?;
        if !descending {
            self.accept_keyword(Keyword::Asc)?;
        }
        Ok(Ordering { column, ann_of, descending })
    }
}
