//! `WHERE`: relations.
//!
//! Must agree with: the rules `whereClause`, `relation`, `relationType`, `customIndexExpression`,
//! `tupleOfIdentifiers`, `singleColumnInValues`, `inMarker` and their like. The grammar of
//! Cassandra 5.0 has no `BETWEEN` and no `NOT IN`.

use super::{Parser, Result};
use crate::ast::{CustomIndexExpression, Ident, InValues, Operator, QualifiedName, Relation, Term, WhereClause};
use crate::lexer::{Keyword, Kind};

impl<'a> Parser<'a> {
    /// The text after `WHERE`.
    pub(super) fn where_clause(&mut self) -> Result<WhereClause<'a>> {
        let mut clause = WhereClause::default();
        loop {
            if self.at_custom_expression() {
                clause.expressions.push(self.custom_expression()?);
            } else {
                clause.relations.push(self.relation()?);
            }
            if !self.accept_keyword(Keyword::And)? {
                return Ok(clause);
            }
        }
    }

    /// `expr(`, written exactly so: the grammar has it as one token.
    fn at_custom_expression(&self) -> bool {
        self.at(Kind::Ident)
            && self.lexer.text(self.token) == "expr"
            && self.lexer.source().as_bytes().get(self.token.end as usize) == Some(&b'(')
    }

    fn custom_expression(&mut self) -> Result<CustomIndexExpression<'a>> {
        self.advance()?;
        self.advance()?;
        let name = self.bindless_name("an index name", "Bind variables cannot be used for index names")?;
        self.expect(Kind::Comma, "','")?;
        let value = self.term()?;
        self.expect(Kind::CloseParen, "')'")?;
        Ok(CustomIndexExpression { index: QualifiedName { keyspace: None, name }, value })
    }

    fn relation(&mut self) -> Result<Relation<'a>> {
        match self.token.kind {
            Kind::Keyword(Keyword::Token) => self.token_relation(),
            Kind::OpenParen => self.parenthesised_relation(),
            _ => self.column_relation(),
        }
    }

    fn token_relation(&mut self) -> Result<Relation<'a>> {
        self.advance()?;
        let columns = self.parenthesised(Self::column)?;
        if self.accept_keyword(Keyword::Between)? {
            let (low, high) = self.low_and_high(Self::term)?;
            return Ok(Relation::TokenBetween { columns, low, high });
        }
        let operator = self.comparison()?;
        Ok(Relation::Token { columns, operator, value: self.term()? })
    }

    /// A relation in parentheses, or one of a tuple of columns.
    fn parenthesised_relation(&mut self) -> Result<Relation<'a>> {
        if matches!(self.peek_two().1, Kind::Comma | Kind::CloseParen) {
            return self.tuple_relation();
        }
        self.advance()?;
        let relation = self.nested(Self::relation)?;
        self.expect(Kind::CloseParen, "')'")?;
        Ok(relation)
    }

    fn tuple_relation(&mut self) -> Result<Relation<'a>> {
        let columns = self.parenthesised(Self::column)?;
        if self.at_keyword(Keyword::In) || self.at_keyword(Keyword::Not) {
            let negated = self.in_or_not_in()?;
            let values = self.in_values(Self::tuple_or_marker)?;
            return Ok(Relation::TupleIn { columns, values, negated });
        }
        if self.accept_keyword(Keyword::Between)? {
            let (low, high) = self.low_and_high(Self::tuple_or_marker)?;
            return Ok(Relation::TupleBetween { columns, low, high });
        }
        let operator = self.comparison()?;
        Ok(Relation::Tuple { columns, operator, value: self.tuple_or_marker()? })
    }

    fn tuple_or_marker(&mut self) -> Result<Term<'a>> {
        match self.accept_bind_marker()? {
            Some(marker) => Ok(Term::Bind(marker)),
            None => self.nested(Self::tuple_literal),
        }
    }

    fn column_relation(&mut self) -> Result<Relation<'a>> {
        let column = self.column()?;
        match self.token.kind {
            Kind::Keyword(Keyword::In | Keyword::Not) => {
                let negated = self.in_or_not_in()?;
                Ok(Relation::ColumnIn { column, values: self.in_values(Self::term)?, negated })
            }
            Kind::Keyword(Keyword::Between) => {
                self.advance()?;
                let (low, high) = self.low_and_high(Self::term)?;
                Ok(Relation::Between { column, low, high })
            }
            Kind::Keyword(Keyword::Is) => {
                self.advance()?;
                self.expect_keyword(Keyword::Not)?;
                self.expect_keyword(Keyword::Null)?;
                Ok(Relation::IsNotNull { column })
            }
            Kind::Keyword(Keyword::Like) => {
                self.advance()?;
                Ok(Relation::Column { column, operator: Operator::Like, value: self.term()? })
            }
            Kind::OpenBracket => self.element_relation(column),
            _ => {
                let operator = self.comparison_or_contains()?;
                Ok(Relation::Column { column, operator, value: self.term()? })
            }
        }
    }

    fn element_relation(&mut self, column: Ident<'a>) -> Result<Relation<'a>> {
        self.advance()?;
        let key = self.term()?;
        self.expect(Kind::CloseBracket, "']'")?;
        let operator = self.comparison()?;
        Ok(Relation::Element { column, key, operator, value: self.term()? })
    }

    /// `IN`, or `NOT IN`. Returns whether it is the latter.
    pub(super) fn in_or_not_in(&mut self) -> Result<bool> {
        let negated = self.accept_keyword(Keyword::Not)?;
        self.expect_keyword(Keyword::In)?;
        Ok(negated)
    }

    /// The text after `BETWEEN`: two values with `AND` between them.
    pub(super) fn low_and_high(
        &mut self,
        mut value: impl FnMut(&mut Self) -> Result<Term<'a>>,
    ) -> Result<(Term<'a>, Term<'a>)> {
        let low = value(self)?;
        self.expect_keyword(Keyword::And)?;
        Ok((low, value(self)?))
    }

    /// The text after `IN`: a bind marker or values in parentheses.
    pub(super) fn in_values(&mut self, value: impl FnMut(&mut Self) -> Result<Term<'a>>) -> Result<InValues<'a>> {
        match self.accept_bind_marker()? {
            Some(marker) => Ok(InValues::Bind(marker)),
            None => Ok(InValues::List(self.parenthesised_or_empty(value)?)),
        }
    }

    /// `= < <= > >= !=`.
    fn comparison(&mut self) -> Result<Operator> {
        match self.accept_comparison()? {
            Some(operator) => Ok(operator),
            None => Err(self.expected("one of = < <= > >= !=")),
        }
    }

    /// A comparison, `CONTAINS` or `CONTAINS KEY`.
    pub(super) fn comparison_or_contains(&mut self) -> Result<Operator> {
        if let Some(operator) = self.accept_comparison()? {
            return Ok(operator);
        }
        if !self.accept_keyword(Keyword::Contains)? {
            return Err(self.expected("an operator (= < <= > >= != IN CONTAINS)"));
        }
        Ok(match self.accept_keyword(Keyword::Key)? {
            true => Operator::ContainsKey,
            false => Operator::Contains,
        })
    }

    pub(super) fn accept_comparison(&mut self) -> Result<Option<Operator>> {
        let operator = match self.token.kind {
            Kind::Eq => Operator::Eq,
            Kind::Lt => Operator::Lt,
            Kind::Lte => Operator::Lte,
            Kind::Gt => Operator::Gt,
            Kind::Gte => Operator::Gte,
            Kind::Neq => Operator::Neq,
            _ => return Ok(None),
        };
        self.advance()?;
        Ok(Some(operator))
    }
}
