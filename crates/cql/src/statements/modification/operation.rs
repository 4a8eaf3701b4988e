//! What a statement does to one column of a row.
//!
//! Agrees with the `Operation` classes in `org.apache.cassandra.cql3.{Constants,Lists,Sets,Maps,UserTypes}`.

use bytes::Bytes;
use rows::{ColumnData, Row};
use schema::{ColumnId, TableMetadata};
use types::{CqlType, number, timeuuid};

use super::{WriteTime, cell};
use crate::context::Bindings;
use crate::error::CqlError;
use crate::terms::Term;
use crate::values;
use crate::values::BoundValue;

/// Which column, and its type.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    /// Its id.
    pub id: ColumnId,
    /// Its type.
    pub ty: CqlType,
}

/// What is done to a column.
#[derive(Clone, Debug)]
pub(crate) enum Operation {
    /// A value for a column of one cell.
    Set(ColumnId, Term),
    /// A value for a column of many cells: what was there goes.
    SetComplex(Target, Term),
    /// `c = c + n`, of a counter.
    Increment(ColumnId, Term),
    /// `c = c - n`, of a counter.
    Decrement(ColumnId, Term),
    /// `n = n + 1`, `t = t + 'x'` in a conditional statement.
    AddValue(Target, Term),
    /// Elements for a collection of many cells.
    Add(Target, Term),
    /// Elements before those of a list.
    Prepend(Target, Term),
    /// `l = l - […]`: elements equal to these go.
    DiscardFromList(ColumnId, Term),
    /// `s = s - {…}`, `m = m - {…}`: these go.
    Discard(Target, Term),
    /// `m[k] = v`
    SetKey(ColumnId, Term, Term),
    /// `l[i] = v`
    SetIndex(ColumnId, Term, Term),
    /// `u.f = v`
    SetField(ColumnId, usize, Term),
    /// `DELETE c`, of one cell or many.
    Delete(ColumnId, bool),
    /// `DELETE m[k]`, `DELETE s[e]`
    DeleteKey(Target, Term),
    /// `DELETE l[i]`
    DeleteIndex(ColumnId, Term),
    /// `DELETE u.f`
    DeleteField(ColumnId, usize),
}

impl Operation {
    /// The column.
    pub fn column(&self) -> ColumnId {
        match self {
            Self::Set(id, _)
            | Self::Increment(id, _)
            | Self::Decrement(id, _)
            | Self::DiscardFromList(id, _)
            | Self::SetKey(id, ..)
            | Self::SetIndex(id, ..)
            | Self::SetField(id, ..)
            | Self::Delete(id, _)
            | Self::DeleteIndex(id, _)
            | Self::DeleteField(id, _) => *id,
            Self::SetComplex(target, _)
            | Self::AddValue(target, _)
            | Self::Add(target, _)
            | Self::Prepend(target, _)
            | Self::Discard(target, _)
            | Self::DeleteKey(target, _) => target.id,
        }
    }

    /// Must see the row as it is.
    pub fn requires_read(&self) -> bool {
        matches!(self, Self::AddValue(..) | Self::DiscardFromList(..) | Self::SetIndex(..) | Self::DeleteIndex(..))
    }

    /// What reads a list before it writes, in the words of guardrails.
    pub fn reading_list(&self) -> Option<&'static str> {
        match self {
            Self::SetIndex(..) => Some("Setting of list items by index requiring read before write"),
            Self::DiscardFromList(..) => Some("Removal of list items requiring read before write"),
            Self::DeleteIndex(..) => Some("Removal of list items by index requiring read before write"),
            _ => None,
        }
    }

    /// Does it to a row that is being written.
    pub fn apply(
        &self,
        row: &mut Row,
        table: &TableMetadata,
        bindings: &Bindings<'_>,
        time: &WriteTime,
        before: Option<&Row>,
    ) -> Result<(), CqlError> {
        let put = |row: &mut Row, id: ColumnId, path: Bytes, value: Option<Bytes>| {
            row.add_complex_cell(table, cell(id, Some(path), value, time));
        };
        match self {
            Self::Set(id, term) => match term.eval(bindings)? {
                BoundValue::Bytes(value) => row.add_cell(cell(*id, None, Some(value), time)),
                BoundValue::Null => row.add_cell(cell(*id, None, None, time)),
                BoundValue::Unset => {}
            },
            Self::SetComplex(target, term) => match term.eval(bindings)? {
                BoundValue::Unset => {}
                value => {
                    row.add_complex_deletion(target.id, time.overwrite());
                    if let BoundValue::Bytes(bytes) = value {
                        add(row, table, target, &bytes, bindings, time)?;
                    }
                }
            },
            Self::Increment(id, term) => {
                if let Some(increment) = increment(term, bindings)? {
                    row.add_increment(*id, time.timestamp, increment);
                }
            }
            Self::Decrement(id, term) => {
                if let Some(decrement) = increment(term, bindings)? {
                    let increment = decrement.checked_neg().ok_or_else(|| {
                        CqlError::invalid(format!(
                            "The negation of {decrement} overflows supported counter precision (signed 8 bytes integer)"
                        ))
                    })?;
                    row.add_increment(*id, time.timestamp, increment);
                }
            }
            Self::AddValue(target, term) => {
                if let Some(ColumnData::Simple(old)) = before.and_then(|row| row.column(target.id)) {
                    let sum = add_values(&target.ty, &old.value, term, bindings)?;
                    row.add_cell(cell(target.id, None, Some(sum), time));
                }
            }
            Self::Add(target, term) => {
                if let BoundValue::Bytes(bytes) = term.eval(bindings)? {
                    add(row, table, target, &bytes, bindings, time)?;
                }
            }
            Self::Prepend(target, term) => {
                if let BoundValue::Bytes(bytes) = term.eval(bindings)? {
                    for (value, path) in prepended(values::split_list(&bytes)?, bindings) {
                        put(row, target.id, path, Some(value));
                    }
                }
            }
            Self::DiscardFromList(id, term) => {
                if let BoundValue::Bytes(bytes) = term.eval(bindings)? {
                    let unwanted = values::split_list(&bytes)?;
                    for found in list_cells(before, *id).iter().filter(|found| unwanted.contains(&found.value)) {
                        put(row, *id, found.path.clone().unwrap_or_default(), None);
                    }
                }
            }
            Self::Discard(target, term) => {
                if let BoundValue::Bytes(bytes) = term.eval(bindings)? {
                    for path in values::split_list(&bytes)? {
                        put(row, target.id, path, None);
                    }
                }
            }
            Self::SetKey(id, key, term) => {
                let key = map_key(key, bindings)?;
                match term.eval(bindings)? {
                    BoundValue::Bytes(value) => put(row, *id, key, Some(value)),
                    BoundValue::Null => put(row, *id, key, None),
                    BoundValue::Unset => {}
                }
            }
            Self::SetIndex(id, index, term) => {
                let index = match index.eval(bindings)? {
                    BoundValue::Bytes(bytes) => bytes,
                    BoundValue::Null => return Err(CqlError::invalid("Invalid null value for list index")),
                    BoundValue::Unset => return Err(CqlError::invalid("Invalid unset value for list index")),
                };
                let value = term.eval(bindings)?;
                let path = path_at(before, *id, &index, "Attempted to set an element on a list which is null")?;
                match value {
                    BoundValue::Bytes(value) => put(row, *id, path, Some(value)),
                    BoundValue::Null => put(row, *id, path, None),
                    BoundValue::Unset => {}
                }
            }
            Self::SetField(id, field, term) => match term.eval(bindings)? {
                BoundValue::Bytes(value) => put(row, *id, values::field_path(*field), Some(value)),
                BoundValue::Null => put(row, *id, values::field_path(*field), None),
                BoundValue::Unset => {}
            },
            Self::Delete(id, true) => row.add_complex_deletion(*id, time.deletion()),
            Self::Delete(id, false) => row.add_cell(cell(*id, None, None, time)),
            Self::DeleteKey(target, key) => {
                let path = if matches!(target.ty, CqlType::Set { .. }) {
                    set_element(key, bindings)?
                } else {
                    map_key(key, bindings)?
                };
                put(row, target.id, path, None);
            }
            Self::DeleteIndex(id, index) => {
                let index = match index.eval(bindings)? {
                    BoundValue::Bytes(bytes) => bytes,
                    BoundValue::Null => return Err(CqlError::invalid("Invalid null value for list index")),
                    BoundValue::Unset => return Ok(()),
                };
                let path = path_at(before, *id, &index, "Attempted to delete an element from a list which is null")?;
                put(row, *id, path, None);
            }
            Self::DeleteField(id, field) => put(row, *id, values::field_path(*field), None),
        }
        Ok(())
    }
}

/// The sum of two numbers, or two texts as one.
fn add_values(ty: &CqlType, old: &Bytes, term: &Term, bindings: &Bindings<'_>) -> Result<Bytes, CqlError> {
    let BoundValue::Bytes(more) = term.eval(bindings)? else {
        return Err(CqlError::invalid("Invalid null or unset value for an addition"));
    };
    let sum = number::calculate(number::Operator::Add, (ty, old), (ty, &more));
    let sum = sum.map_err(|error| CqlError::invalid(error.to_string()))?;
    Ok(sum.map_or_else(|| old.clone(), Bytes::from))
}

/// By how much a counter grows; None: not at all.
fn increment(term: &Term, bindings: &Bindings<'_>) -> Result<Option<i64>, CqlError> {
    match term.eval(bindings)? {
        BoundValue::Bytes(bytes) => match <[u8; 8]>::try_from(bytes.as_ref()) {
            Ok(bytes) => Ok(Some(i64::from_be_bytes(bytes))),
            Err(_) => Err(CqlError::invalid("Invalid empty value for counter increment")),
        },
        BoundValue::Null => Err(CqlError::invalid("Invalid null value for counter increment")),
        BoundValue::Unset => Ok(None),
    }
}

fn map_key(key: &Term, bindings: &Bindings<'_>) -> Result<Bytes, CqlError> {
    match key.eval(bindings)? {
        BoundValue::Bytes(bytes) => Ok(bytes),
        BoundValue::Null => Err(CqlError::invalid("Invalid null map key")),
        BoundValue::Unset => Err(CqlError::invalid("Invalid unset map key")),
    }
}

fn set_element(element: &Term, bindings: &Bindings<'_>) -> Result<Bytes, CqlError> {
    match element.eval(bindings)? {
        BoundValue::Bytes(bytes) => Ok(bytes),
        BoundValue::Null | BoundValue::Unset => Err(CqlError::invalid("Invalid null set element")),
    }
}

/// Adds the elements of a serialized collection, or the fields of a user type, as cells.
fn add(
    row: &mut Row,
    table: &TableMetadata,
    target: &Target,
    bytes: &Bytes,
    bindings: &Bindings<'_>,
    time: &WriteTime,
) -> Result<(), CqlError> {
    let id = target.id;
    let mut put = |path: Bytes, value: Bytes| row.add_complex_cell(table, cell(id, Some(path), Some(value), time));
    match &target.ty {
        CqlType::Map { .. } => {
            for (key, value) in values::split_map(bytes)? {
                put(key, value);
            }
        }
        CqlType::Set { .. } => {
            for element in values::split_list(bytes)? {
                put(element, Bytes::new());
            }
        }
        CqlType::Udt(udt, _) => {
            for (at, field) in values::split_tuple(bytes)?.into_iter().take(udt.fields.len()).enumerate() {
                if let Some(value) = field {
                    put(values::field_path(at), value);
                }
            }
        }
        _ => {
            for element in values::split_list(bytes)? {
                put(Bytes::copy_from_slice(&bindings.sources.timeuuid()), element);
            }
        }
    }
    Ok(())
}

/// Elements to prepend with their paths: clocks that run backwards from the reference of [`timeuuid`], so that what is
/// prepended later sorts earlier. A time UUID is never given twice, so neither is its mirror image; the elements of one
/// statement share it and are told apart, in their order, by its last bytes.
fn prepended(elements: Vec<Bytes>, bindings: &Bindings<'_>) -> Vec<(Bytes, Bytes)> {
    const TICKS_PER_MILLI: i64 = 10_000;
    let uuid = bindings.sources.timeuuid();
    let reference = timeuuid::LIST_REFERENCE_MILLIS * TICKS_PER_MILLI;
    let mirrored = reference - (timeuuid::unix_ticks(&uuid) - reference);
    let path = |at: usize| {
        // clock sequence and first bytes of the node stay: they tell nodes apart
        let place = split_seven(u32::try_from(at).unwrap_or(u32::MAX));
        let low = [uuid[8], uuid[9], uuid[10] & 0x7f, uuid[11] & 0x7f, place[0], place[1], place[2], place[3]];
        Bytes::copy_from_slice(&timeuuid::from_parts(mirrored, u64::from_be_bytes(low)))
    };
    elements.into_iter().enumerate().map(|(at, element)| (element, path(at))).collect()
}

/// 28 bits in four bytes of seven: so that signed bytes order as the number does.
fn split_seven(number: u32) -> [u8; 4] {
    [21, 14, 7, 0].map(|shift| u8::try_from((number >> shift) & 0x7f).expect("seven bits"))
}

fn list_cells(before: Option<&Row>, id: ColumnId) -> &[rows::Cell] {
    match before.and_then(|row| row.column(id)) {
        Some(ColumnData::Complex(complex)) => &complex.cells,
        _ => &[],
    }
}

fn path_at(before: Option<&Row>, id: ColumnId, index: &Bytes, when_null: &str) -> Result<Bytes, CqlError> {
    let cells = list_cells(before, id);
    let index = <[u8; 4]>::try_from(index.as_ref()).map_or(0, i32::from_be_bytes);
    if cells.is_empty() {
        return Err(CqlError::invalid(when_null));
    }
    let found = usize::try_from(index).ok().and_then(|index| cells.get(index));
    let out = || CqlError::invalid(format!("List index {index} out of bound, list has size {}", cells.len()));
    Ok(found.ok_or_else(out)?.path.clone().unwrap_or_default())
}
