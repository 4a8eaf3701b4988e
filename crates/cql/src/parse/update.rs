//! `UPDATE`, and the many forms of `SET`: a value, `c = c + 1`, `c += 1`, `c = [1] + c`, an
//! element, a field. Whether two settings of one column go together is seen here, once all are
//! known.
//!
//! Must agree with: the rules `updateStatement`, `columnOperation`, `normalColumnOperation` and
//! their like, and `Operation.RawUpdate.isCompatibleWith`.

use super::name::is_name;
use super::{Parser, Result, SyntaxError};
use crate::ast::{Assignment, AssignmentOperation, Ident, LiteralKind, Term, Update};
use crate::lexer::{Keyword, Kind};

impl<'a> Parser<'a> {
    pub(super) fn update(&mut self) -> Result<Update<'a>> {
        self.expect_keyword(Keyword::Update)?;
        let table = self.table_name()?;
        let using = self.optional_using()?;
        self.expect_keyword(Keyword::Set)?;
        let assignments = self.comma_separated(Self::assignment)?;
        check_compatible(&assignments)?;
        self.expect_keyword(Keyword::Where)?;
        let where_clause = self.where_clause()?;
        let condition = self.optional_condition()?;
        Ok(Update { table, using, assignments, where_clause, condition })
    }

    fn assignment(&mut self) -> Result<Assignment<'a>> {
        let column = self.column()?;
        let operation = match self.token.kind {
            Kind::Eq => {
                self.advance()?;
                self.assigned(&column)?
            }
            Kind::PlusEq => {
                self.advance()?;
                AssignmentOperation::Add(self.term()?)
            }
            Kind::MinusEq => {
                self.advance()?;
                AssignmentOperation::Subtract(self.term()?)
            }
            Kind::OpenBracket => self.assigned_element()?,
            Kind::Dot => self.assigned_field()?,
            _ => return Err(self.expected("one of = += -= [ .")),
        };
        Ok(Assignment { column, operation })
    }

    fn assigned_element(&mut self) -> Result<AssignmentOperation<'a>> {
        self.advance()?;
        let key = self.term()?;
        self.expect(Kind::CloseBracket, "']'")?;
        self.expect(Kind::Eq, "'='")?;
        Ok(AssignmentOperation::SetElement(key, self.term()?))
    }

    fn assigned_field(&mut self) -> Result<AssignmentOperation<'a>> {
        self.advance()?;
        let field = self.field()?;
        self.expect(Kind::Eq, "'='")?;
        Ok(AssignmentOperation::SetField(field, self.term()?))
    }

    /// The text after `column =`: a value, `column ± value` or `value + column`.
    fn assigned(&mut self, column: &Ident<'a>) -> Result<AssignmentOperation<'a>> {
        if is_name(self.token.kind) && !matches!(self.peek(), Kind::OpenParen | Kind::Dot) {
            return self.assigned_from_column(column);
        }
        let value = self.term()?;
        if !self.accept(Kind::Plus)? {
            return Ok(AssignmentOperation::Set(value));
        }
        if self.column()? != *column {
            return Err(SyntaxError::plain("Only expressions of the form X = <value> + X are supported."));
        }
        Ok(AssignmentOperation::Prepend(value))
    }

    fn assigned_from_column(&mut self, column: &Ident<'a>) -> Result<AssignmentOperation<'a>> {
        let same = self.column()? == *column;
        let refusal =
            |sign: &str| SyntaxError::plain(format!("Only expressions of the form X = X {sign}<value> are supported."));
        match self.token.kind {
            Kind::Plus | Kind::Minus => {
                let sign = self.token.kind;
                self.advance()?;
                let value = self.term()?;
                match (same, sign) {
                    (false, Kind::Plus) => Err(refusal("+")),
                    (false, _) => Err(refusal("-")),
                    (true, Kind::Plus) => Ok(AssignmentOperation::Add(value)),
                    (true, _) => Ok(AssignmentOperation::Subtract(value)),
                }
            }
            // `c = c -1`: the sign belongs to the number.
            Kind::Integer => {
                let literal = self.take_literal(LiteralKind::Integer)?;
                if !same {
                    return Err(refusal(if literal.text.starts_with('-') { "- " } else { "+ " }));
                }
                Ok(AssignmentOperation::Add(Term::Literal(literal)))
            }
            _ => Err(self.expected("'+' or '-' after the column")),
        }
    }
}

/// Refuses a column that is set twice, or set and changed.
fn check_compatible(assignments: &[Assignment<'_>]) -> Result<()> {
    if assignments.len() < 2 {
        return Ok(());
    }
    // Sorted, so that this takes no square of the number of assignments.
    let mut sorted: Vec<&Assignment<'_>> = assignments.iter().collect();
    sorted.sort_by(|a, b| a.column.text.cmp(&b.column.text).then_with(|| field_of(a).cmp(&field_of(b))));
    for group in sorted.chunk_by(|a, b| a.column == b.column) {
        let is_set = |a: &&&Assignment<'_>| matches!(a.operation, AssignmentOperation::Set(_));
        let set = group.len() > 1 && group.iter().any(|a| is_set(&a));
        let same_field = group.windows(2).any(|pair| field_of(pair[0]).is_some_and(|f| Some(f) == field_of(pair[1])));
        if set || same_field {
            return Err(SyntaxError::plain(format!("Multiple incompatible setting of column {}", group[0].column)));
        }
    }
    Ok(())
}

fn field_of<'x>(assignment: &'x Assignment<'_>) -> Option<&'x str> {
    match &assignment.operation {
        AssignmentOperation::SetField(field, _) => Some(field.as_str()),
        _ => None,
    }
}
