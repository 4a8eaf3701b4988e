//! Whether a condition holds for a row. Agrees with the `Bound` classes of `ColumnCondition`.

use bytes::Bytes;
use rows::row::compare_paths;
use rows::{Cell, ColumnData, ComplexColumn, Row};
use types::CqlType;

use super::{BoundCondition, BoundPart, BoundTest};
use crate::ast::Operator;
use crate::error::CqlError;
use crate::restrictions::{contains, contains_key};
use crate::values;

fn invalid<T>(message: impl Into<String>) -> Result<T, CqlError> {
    Err(CqlError::invalid(message))
}

impl BoundCondition {
    /// Whether the condition holds for a row; None: there is no row, which is as if it had no
    /// value.
    pub fn holds(&self, row: Option<&Row>) -> Result<bool, CqlError> {
        let data = row.and_then(|row| row.column(self.column.id));
        let whole = || values::column_value(&self.column.ty, data);
        match (&self.part, &self.column.ty) {
            (BoundPart::Whole, ty) if ty.is_collection() && ty.is_multi_cell() => self.collection_holds(&whole()),
            (BoundPart::Whole, ty) => self.value_holds(ty, &whole()),
            (BoundPart::Element(key), CqlType::Map { key: key_type, value, .. }) => {
                let Some(key) = key else { return invalid("Invalid null value for map element access") };
                let found = match data {
                    Some(ColumnData::Complex(complex)) => value_at(&self.column.ty, complex, key),
                    _ => {
                        let entries = whole().map_or(Ok(Vec::new()), |map| values::split_map(&map))?;
                        let mut entries = entries.into_iter();
                        entries.find(|(other, _)| types::compare(key_type, other, key).is_eq()).map(|(_, value)| value)
                    }
                };
                self.value_holds(value, &found)
            }
            (BoundPart::Element(index), CqlType::List { element, .. }) => {
                let Some(index) = index else { return invalid("Invalid null value for list element access") };
                let index = <[u8; 4]>::try_from(index.as_ref()).map_or(0, i32::from_be_bytes);
                let Ok(place) = usize::try_from(index) else {
                    return invalid(format!("Invalid negative list index {index}"));
                };
                let found = match data {
                    Some(ColumnData::Complex(complex)) => complex.cells.get(place).map(|cell| cell.value.clone()),
                    _ => {
                        let elements = whole().map_or(Ok(Vec::new()), |list| values::split_list(&list))?;
                        elements.into_iter().nth(place)
                    }
                };
                self.value_holds(element, &found)
            }
            (BoundPart::Field(field), CqlType::Udt(udt, _)) => {
                let Some((_, ty)) = udt.fields.get(*field) else { return Ok(false) };
                let found = match data {
                    Some(ColumnData::Complex(complex)) => {
                        value_at(&self.column.ty, complex, &values::field_path(*field))
                    }
                    _ => {
                        let fields = whole().map_or(Ok(Vec::new()), |value| values::split_tuple(&value))?;
                        fields.into_iter().nth(*field).flatten()
                    }
                };
                self.value_holds(ty, &found)
            }
            (BoundPart::Element(_) | BoundPart::Field(_), _) => Ok(false),
        }
    }

    fn value_holds(&self, ty: &CqlType, found: &Option<Bytes>) -> Result<bool, CqlError> {
        self.test.holds(&|operator, values| {
            for value in values {
                if answers(operator, ty, found.as_ref(), value.as_ref())? {
                    return Ok(true);
                }
            }
            Ok(false)
        })
    }

    /// A collection of many cells, where empty and null are the same.
    fn collection_holds(&self, found: &Option<Bytes>) -> Result<bool, CqlError> {
        self.test.holds(&|operator, values| self.any_collection(operator, values, found))
    }

    fn any_collection(
        &self,
        operator: Operator,
        values: &[Option<Bytes>],
        found: &Option<Bytes>,
    ) -> Result<bool, CqlError> {
        let ty = &self.column.ty;
        let is_contains = matches!(operator, Operator::Contains | Operator::ContainsKey);
        for value in values {
            let is_empty = match value {
                None => true,
                Some(value) if is_contains => {
                    return Ok(found.as_ref().is_some_and(|found| test(operator, ty, found, value)));
                }
                Some(value) => values::split_list(value).is_ok_and(|elements| elements.is_empty()),
            };
            match (is_empty, operator) {
                (true, Operator::Eq) if found.is_none() => return Ok(true),
                (true, Operator::Eq) => {}
                (true, Operator::Neq) => return Ok(found.is_some()),
                (true, operator) => {
                    let what = match (value, ty) {
                        (None, _) => "null",
                        (_, CqlType::List { .. }) => "an empty list",
                        (_, CqlType::Set { .. }) => "an empty set",
                        _ => "an empty map",
                    };
                    return invalid(format!("Invalid comparison with {what} for operator \"{}\"", operator.symbol()));
                }
                (false, operator) => {
                    if answers(operator, ty, found.as_ref(), value.as_ref())? {
                        return Ok(true);
                    }
                }
            }
        }
        Ok(false)
    }
}

/// The value of the cell of a path. A statement may have tens of thousands of conditions on as
/// many cells: these are not passed for each of them.
fn value_at(ty: &CqlType, complex: &ComplexColumn, path: &[u8]) -> Option<Bytes> {
    let order = |cell: &Cell| compare_paths(ty, cell.path.as_deref().unwrap_or_default(), path);
    let at = complex.cells.binary_search_by(order).ok()?;
    complex.cells.get(at).map(|cell| cell.value.clone())
}

/// Tells whether an operator is true for one of some values.
type IsTrueForAny<'a> = dyn Fn(Operator, &[Option<Bytes>]) -> Result<bool, CqlError> + 'a;

impl BoundTest {
    /// Whether the comparison holds.
    fn holds(&self, any: &IsTrueForAny<'_>) -> Result<bool, CqlError> {
        match self {
            Self::Any(operator, values) => any(*operator, values),
            Self::NoneOf(values) => Ok(!any(Operator::Eq, values)?),
            Self::Between(low, high) => {
                let one = std::slice::from_ref;
                Ok(any(Operator::Gte, one(low))? && any(Operator::Lte, one(high))?)
            }
        }
    }
}

/// `found operator value`, where either may be null.
fn answers(operator: Operator, ty: &CqlType, found: Option<&Bytes>, value: Option<&Bytes>) -> Result<bool, CqlError> {
    Ok(match (found, value) {
        (Some(found), Some(value)) => test(operator, ty, found, value),
        (None, Some(_)) => operator == Operator::Neq,
        (found, None) => match operator {
            Operator::Eq => found.is_none(),
            Operator::Neq => found.is_some(),
            _ => {
                return invalid(format!("Invalid comparison with null for operator \"{}\"", operator.symbol()));
            }
        },
    })
}

fn test(operator: Operator, ty: &CqlType, found: &Bytes, value: &Bytes) -> bool {
    let order = || types::compare(ty, found, value);
    match operator {
        Operator::Eq => order().is_eq(),
        Operator::Neq => order().is_ne(),
        Operator::Lt => order().is_lt(),
        Operator::Lte => order().is_le(),
        Operator::Gt => order().is_gt(),
        Operator::Gte => order().is_ge(),
        Operator::Contains => contains(ty, found, value),
        Operator::ContainsKey => contains_key(ty, found, value),
        Operator::Like => false,
    }
}
