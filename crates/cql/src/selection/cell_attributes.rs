//! When cells were written and when they expire: `writetime`, `maxwritetime`, `ttl` of columns and
//! of parts of them.
//!
//! Agrees with `org.apache.cassandra.cql3.selection.ColumnTimestamps` and `WritetimeOrTTLSelector`.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use rows::{Cell, ColumnData};
use types::{CqlType, collection};

use super::{Column, RowView, Selector};
use crate::ast::CellAttribute;
use crate::context::Bindings;
use crate::error::CqlError;
use crate::values;

/// The cell or cells whose write time or TTL is selected: a column, or a part of one with the
/// selector of that part's whole.
#[derive(Clone, Debug)]
pub(crate) enum AttributeTarget {
    /// A column.
    Column(Column),
    /// A field: of what, its own selector, which.
    Field(Box<AttributeTarget>, Selector, usize),
    /// An element: of what, the type and selector of the collection, the key.
    Element(Box<AttributeTarget>, CqlType, Selector, Selector, Arc<str>),
    /// A slice: of what, the type and selector of the collection, its ends.
    Slice(Box<AttributeTarget>, CqlType, Selector, Option<Selector>, Option<Selector>),
}

/// Timestamps or remaining seconds; None where there is none.
enum AttributeValues {
    /// There is no cell.
    Nothing,
    /// The write time or TTL of one cell.
    One(Option<i64>),
    /// The write times or TTLs of the cells of a collection or user type.
    Many(Vec<Option<i64>>),
}

impl AttributeValues {
    fn get(self, index: usize) -> Self {
        match self {
            Self::Many(all) => all.get(index).map_or(Self::Nothing, |stamp| Self::One(*stamp)),
            // an element of what is frozen was written with all of it
            one => one,
        }
    }

    fn slice(self, range: Range<usize>) -> Self {
        match self {
            _ if range.is_empty() => Self::Nothing,
            Self::Many(all) => Self::Many(all.get(range).unwrap_or_default().to_vec()),
            one => one,
        }
    }

    fn max(self) -> Self {
        match self {
            Self::Many(all) if all.is_empty() => Self::Nothing,
            Self::Many(all) => Self::One(all.into_iter().flatten().max()),
            one => one,
        }
    }
}

impl AttributeTarget {
    /// The value of `writetime`, `maxwritetime` or `ttl` of it.
    pub fn value(&self, attribute: CellAttribute, row: &RowView<'_>) -> Result<Option<Bytes>, CqlError> {
        let stamps = self.attribute_values(attribute, row)?;
        let stamps = if attribute == CellAttribute::MaxWriteTime { stamps.max() } else { stamps };
        let put = |out: &mut Vec<u8>, stamp: i64| match attribute {
            CellAttribute::Ttl => out.extend_from_slice(&i32::try_from(stamp).unwrap_or(i32::MAX).to_be_bytes()),
            CellAttribute::WriteTime | CellAttribute::MaxWriteTime => out.extend_from_slice(&stamp.to_be_bytes()),
        };
        let mut out = Vec::new();
        match stamps {
            AttributeValues::Nothing | AttributeValues::One(None) => return Ok(None),
            AttributeValues::One(Some(stamp)) => put(&mut out, stamp),
            AttributeValues::Many(all) if all.is_empty() => return Ok(None),
            AttributeValues::Many(all) => {
                collection::put_count(&mut out, all.len());
                for stamp in all {
                    let mut value = Vec::new();
                    if let Some(stamp) = stamp {
                        put(&mut value, stamp);
                    }
                    stdx::put_int_bytes(&mut out, stamp.map(|_| value.as_slice()));
                }
            }
        }
        Ok(Some(out.into()))
    }

    fn attribute_values(&self, attribute: CellAttribute, row: &RowView<'_>) -> Result<AttributeValues, CqlError> {
        Ok(match self {
            Self::Column(column) => of_column(attribute, column, row),
            Self::Field(of, selector, index) => match selector.value(row)? {
                Some(_) => of.attribute_values(attribute, row)?.get(*index),
                None => AttributeValues::Nothing,
            },
            Self::Element(of, ty, selector, key, _) => match (selector.value(row)?, key.value(row)?) {
                (Some(value), Some(key)) => match keys(ty, &value).position(|found| compare(ty, found, &key).is_eq()) {
                    Some(index) => of.attribute_values(attribute, row)?.get(index),
                    None => AttributeValues::Nothing,
                },
                _ => AttributeValues::Nothing,
            },
            Self::Slice(of, ty, selector, from, to) => {
                let end = |end: &Option<Selector>| Ok(end.as_ref().map(|end| end.value(row)).transpose()?.flatten());
                let (from, to): (Result<_, CqlError>, Result<_, CqlError>) = (end(from), end(to));
                let (from, to): (Option<Bytes>, Option<Bytes>) = (from?, to?);
                let Some(value) = selector.value(row)? else { return Ok(AttributeValues::Nothing) };
                let before = |found: &&[u8]| from.as_ref().is_some_and(|from| compare(ty, found, from).is_lt());
                let within = |found: &&[u8]| to.as_ref().is_none_or(|to| compare(ty, found, to).is_le());
                let start = keys(ty, &value).take_while(before).count();
                let end = keys(ty, &value).take_while(within).count();
                of.attribute_values(attribute, row)?.slice(start..end)
            }
        })
    }

    /// Its terms evaluated.
    pub fn bind(&mut self, bindings: &Bindings<'_>) -> Result<(), CqlError> {
        match self {
            Self::Column(_) => Ok(()),
            Self::Field(of, selector, _) => {
                of.bind(bindings)?;
                selector.bind(bindings)
            }
            Self::Element(of, _, selector, key, name) => {
                of.bind(bindings)?;
                selector.bind(bindings)?;
                key.bind_key(bindings, name)
            }
            Self::Slice(of, _, selector, from, to) => {
                of.bind(bindings)?;
                selector.bind(bindings)?;
                for place in [from, to] {
                    if let Some(end) = place
                        && !end.bind_end(bindings)?
                    {
                        *place = None;
                    }
                }
                Ok(())
            }
        }
    }
}

/// The keys of a map or the elements of a set, in their order.
fn keys<'v>(ty: &CqlType, value: &'v [u8]) -> Box<dyn Iterator<Item = &'v [u8]> + 'v> {
    match ty {
        CqlType::Map { .. } => Box::new(collection::entries(value).map(|(key, _)| key)),
        _ => Box::new(collection::elements(value)),
    }
}

fn compare(ty: &CqlType, a: &[u8], b: &[u8]) -> std::cmp::Ordering {
    match ty {
        CqlType::Map { key: ty, .. } | CqlType::Set { element: ty, .. } => types::compare(ty, a, b),
        _ => a.cmp(b),
    }
}

fn of_column(attribute: CellAttribute, column: &Column, row: &RowView<'_>) -> AttributeValues {
    let of_cell = |cell: &Cell| cell_attribute(attribute, cell, row.now);
    match row.data(column) {
        None => AttributeValues::Nothing,
        Some(ColumnData::Simple(cell)) => AttributeValues::One(of_cell(cell)),
        Some(ColumnData::Complex(complex)) => AttributeValues::Many(match column.ty() {
            // cells and fields are in one order: to search for each of many fields would take
            // seconds
            CqlType::Udt(udt, _) => {
                let mut cells = complex.cells.iter().peekable();
                let is_of = |cell: &&Cell, field| values::field_index(cell.path.as_ref()) == Some(field);
                (0..udt.fields.len()).map(|field| cells.next_if(|cell| is_of(cell, field)).and_then(of_cell)).collect()
            }
            _ => complex.cells.iter().map(of_cell).collect(),
        }),
    }
}

fn cell_attribute(attribute: CellAttribute, cell: &Cell, now: u32) -> Option<i64> {
    match attribute {
        CellAttribute::WriteTime | CellAttribute::MaxWriteTime => Some(cell.timestamp),
        CellAttribute::Ttl => cell.local_deletion_time.checked_sub(now).filter(|_| cell.is_expiring()).map(i64::from),
    }
}
