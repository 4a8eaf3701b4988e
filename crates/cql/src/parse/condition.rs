//! `IF` of modifications.
//!
//! Must agree with: the rules `updateConditions`, `columnCondition`. The grammar of Cassandra 5.0
//! has no `BETWEEN` and no `NOT IN`.

use super::{Parser, Result};
use crate::ast::{ColumnCondition, Condition, ConditionPart, ConditionTest};
use crate::lexer::{Keyword, Kind};

impl<'a> Parser<'a> {
    /// `IF EXISTS`, `IF conditions`, or nothing.
    pub(super) fn optional_condition(&mut self) -> Result<Condition<'a>> {
        if !self.accept_keyword(Keyword::If)? {
            return Ok(Condition::None);
        }
        if self.at_keyword(Keyword::Exists) && !self.is_test_next() {
            self.advance()?;
            return Ok(Condition::Exists);
        }
        let mut conditions = vec![self.column_condition()?];
        while self.accept_keyword(Keyword::And)? {
            conditions.push(self.column_condition()?);
        }
        Ok(Condition::Columns(conditions))
    }

    /// Whether the next token makes a column of this one.
    fn is_test_next(&self) -> bool {
        matches!(
            self.peek(),
            Kind::Eq
                | Kind::Neq
                | Kind::Lt
                | Kind::Lte
                | Kind::Gt
                | Kind::Gte
                | Kind::OpenBracket
                | Kind::Dot
                | Kind::Keyword(Keyword::In | Keyword::Not | Keyword::Between | Keyword::Contains)
        )
    }

    fn column_condition(&mut self) -> Result<ColumnCondition<'a>> {
        let column = self.column()?;
        let part = match self.token.kind {
            Kind::OpenBracket => {
                self.advance()?;
                let key = self.term()?;
                self.expect(Kind::CloseBracket, "']'")?;
                ConditionPart::Element(key)
            }
            Kind::Dot => {
                self.advance()?;
                ConditionPart::Field(self.field()?)
            }
            _ => ConditionPart::Whole,
        };
        let test = self.condition_test(matches!(part, ConditionPart::Whole))?;
        Ok(ColumnCondition { column, part, test })
    }

    fn condition_test(&mut self, whole: bool) -> Result<ConditionTest<'a>> {
        if self.at_keyword(Keyword::In) || self.at_keyword(Keyword::Not) {
            return Ok(match self.in_or_not_in()? {
                true => ConditionTest::NotIn(self.in_values(Self::term)?),
                false => ConditionTest::In(self.in_values(Self::term)?),
            });
        }
        if self.accept_keyword(Keyword::Between)? {
            let (low, high) = self.low_and_high(Self::term)?;
            return Ok(ConditionTest::Between(low, high));
        }
        let operator = match self.accept_comparison()? {
            Some(operator) => operator,
            None if whole => self.comparison_or_contains()?,
            None => return Err(self.expected("one of = < <= > >= != IN")),
        };
        Ok(ConditionTest::Compare(operator, self.term()?))
    }
}
