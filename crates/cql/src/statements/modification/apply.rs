//! Applying the operations of a statement to a row that is being written.
//!
//! Agrees with the `execute` methods of the `Operation` classes in
//! `org.apache.cassandra.cql3.{Constants,Lists,Sets,Maps,UserTypes}`.

use bytes::Bytes;
use schema::ColumnId;
use types::{CqlType, number, timeuuid};

use super::operation::TypedColumn;
use super::pending_row::PendingRow;
use super::{Operation, WriteTime, cell};
use crate::context::Bindings;
use crate::error::CqlError;
use crate::sources::ElementPlace;
use crate::terms::Term;
use crate::values::{self, BoundValue};

impl Operation {
    /// Writes what the operation does.
    pub(super) fn apply(&self, writer: &mut Writer<'_>) -> Result<(), CqlError> {
        match self {
            Self::Set(column, value) => writer.set(*column, value),
            Self::SetComplex(column, value) => writer.set_complex(column, value),
            Self::Increment(column, by) => writer.increment(*column, by),
            Self::Decrement(column, by) => writer.decrement(*column, by),
            Self::AddValue(column, value) => writer.add_value(column, value),
            Self::Add(column, elements) => writer.add(column, elements),
            Self::Prepend(column, elements) => writer.prepend(column, elements),
            Self::DiscardFromList(column, elements) => writer.discard_from_list(*column, elements),
            Self::Discard(column, elements) => writer.discard(column, elements),
            Self::SetKey(column, key, value) => {
                let key = map_key(key, writer.bindings)?;
                writer.set_part(*column, key, value)
            }
            Self::SetIndex(column, index, value) => writer.set_index(*column, index, value),
            Self::SetField(column, field, value) => writer.set_part(*column, values::field_path(*field), value),
            Self::Delete(column, is_complex) => {
                writer.delete(*column, *is_complex);
                Ok(())
            }
            Self::DeleteKey(column, key) => writer.delete_key(column, key),
            Self::DeleteIndex(column, index) => writer.delete_index(*column, index),
            Self::DeleteField(column, field) => {
                writer.put(*column, values::field_path(*field), None);
                Ok(())
            }
        }
    }
}

/// A row that is being written, and what it is written with.
pub(super) struct Writer<'a> {
    pub pending: PendingRow<'a>,
    pub bindings: &'a Bindings<'a>,
    pub time: &'a WriteTime,
}

impl Writer<'_> {
    /// A cell of a column of many cells; without a value a tombstone.
    fn put(&mut self, column: ColumnId, path: Bytes, value: Option<Bytes>) {
        self.pending.put(cell(column, Some(path), value, self.time));
    }

    fn set(&mut self, column: ColumnId, value: &Term) -> Result<(), CqlError> {
        match value.eval(self.bindings)? {
            BoundValue::Bytes(value) => self.pending.row.add_cell(cell(column, None, Some(value), self.time)),
            BoundValue::Null => self.pending.row.add_cell(cell(column, None, None, self.time)),
            BoundValue::Unset => {}
        }
        Ok(())
    }

    fn set_complex(&mut self, column: &TypedColumn, value: &Term) -> Result<(), CqlError> {
        match value.eval(self.bindings)? {
            BoundValue::Unset => Ok(()),
            value => {
                self.pending.delete(column.id, self.time.overwrite());
                match value {
                    BoundValue::Bytes(bytes) => self.add_elements(column, &bytes),
                    BoundValue::Null | BoundValue::Unset => Ok(()),
                }
            }
        }
    }

    fn increment(&mut self, column: ColumnId, by: &Term) -> Result<(), CqlError> {
        if let Some(increment) = increment(by, self.bindings)? {
            self.pending.row.add_increment(column, self.time.timestamp, increment);
        }
        Ok(())
    }

    fn decrement(&mut self, column: ColumnId, by: &Term) -> Result<(), CqlError> {
        let Some(decrement) = increment(by, self.bindings)? else { return Ok(()) };
        let increment = decrement.checked_neg().ok_or_else(|| {
            CqlError::invalid(format!(
                "The negation of {decrement} overflows supported counter precision (signed 8 bytes integer)"
            ))
        })?;
        self.pending.row.add_increment(column, self.time.timestamp, increment);
        Ok(())
    }

    fn add_value(&mut self, column: &TypedColumn, value: &Term) -> Result<(), CqlError> {
        if let Some(old) = self.pending.value(column.id) {
            let sum = add_values(&column.ty, &old, value, self.bindings)?;
            self.pending.row.add_cell(cell(column.id, None, Some(sum), self.time));
        }
        Ok(())
    }

    fn add(&mut self, column: &TypedColumn, elements: &Term) -> Result<(), CqlError> {
        match elements.eval(self.bindings)? {
            BoundValue::Bytes(bytes) => self.add_elements(column, &bytes),
            BoundValue::Null | BoundValue::Unset => Ok(()),
        }
    }

    /// Adds the elements of a serialized collection, or the fields of a user type, as cells.
    fn add_elements(&mut self, column: &TypedColumn, bytes: &Bytes) -> Result<(), CqlError> {
        let id = column.id;
        match &column.ty {
            CqlType::Map { .. } => {
                for (key, value) in values::split_map(bytes)? {
                    self.put(id, key, Some(value));
                }
            }
            CqlType::Set { .. } => {
                for element in values::split_list(bytes)? {
                    self.put(id, element, Some(Bytes::new()));
                }
            }
            CqlType::Udt(udt, _) => {
                for (at, field) in values::split_tuple(bytes)?.into_iter().take(udt.fields.len()).enumerate() {
                    if let Some(value) = field {
                        self.put(id, values::field_path(at), Some(value));
                    }
                }
            }
            _ => {
                for element in values::split_list(bytes)? {
                    self.put(id, appended(self.bindings), Some(element));
                }
            }
        }
        Ok(())
    }

    fn prepend(&mut self, column: &TypedColumn, elements: &Term) -> Result<(), CqlError> {
        if let BoundValue::Bytes(bytes) = elements.eval(self.bindings)? {
            for (value, path) in prepended(values::split_list(&bytes)?, self.bindings) {
                self.put(column.id, path, Some(value));
            }
        }
        Ok(())
    }

    fn discard_from_list(&mut self, column: ColumnId, elements: &Term) -> Result<(), CqlError> {
        if let BoundValue::Bytes(bytes) = elements.eval(self.bindings)? {
            for path in self.pending.paths_of(column, values::split_list(&bytes)?) {
                self.put(column, path, None);
            }
        }
        Ok(())
    }

    fn discard(&mut self, column: &TypedColumn, elements: &Term) -> Result<(), CqlError> {
        if let BoundValue::Bytes(bytes) = elements.eval(self.bindings)? {
            for path in values::split_list(&bytes)? {
                self.put(column.id, path, None);
            }
        }
        Ok(())
    }

    /// An element of a map or a list, or a field of a user type.
    fn set_part(&mut self, column: ColumnId, path: Bytes, value: &Term) -> Result<(), CqlError> {
        match value.eval(self.bindings)? {
            BoundValue::Bytes(value) => self.put(column, path, Some(value)),
            BoundValue::Null => self.put(column, path, None),
            BoundValue::Unset => {}
        }
        Ok(())
    }

    fn set_index(&mut self, column: ColumnId, index: &Term, value: &Term) -> Result<(), CqlError> {
        let index = match index.eval(self.bindings)? {
            BoundValue::Bytes(bytes) => bytes,
            BoundValue::Null => return Err(CqlError::invalid("Invalid null value for list index")),
            BoundValue::Unset => return Err(CqlError::invalid("Invalid unset value for list index")),
        };
        // what is wrong with the value is said before what is wrong with the index
        let evaluated = value.eval(self.bindings)?;
        let path = self.pending.path_at(column, &index, "Attempted to set an element on a list which is null")?;
        match evaluated {
            BoundValue::Bytes(value) => self.put(column, path, Some(value)),
            BoundValue::Null => self.put(column, path, None),
            BoundValue::Unset => {}
        }
        Ok(())
    }

    fn delete(&mut self, column: ColumnId, is_complex: bool) {
        if is_complex {
            self.pending.delete(column, self.time.deletion());
        } else {
            self.pending.row.add_cell(cell(column, None, None, self.time));
        }
    }

    fn delete_key(&mut self, column: &TypedColumn, key: &Term) -> Result<(), CqlError> {
        let path = if matches!(column.ty, CqlType::Set { .. }) {
            set_element(key, self.bindings)?
        } else {
            map_key(key, self.bindings)?
        };
        self.put(column.id, path, None);
        Ok(())
    }

    fn delete_index(&mut self, column: ColumnId, index: &Term) -> Result<(), CqlError> {
        let index = match index.eval(self.bindings)? {
            BoundValue::Bytes(bytes) => bytes,
            BoundValue::Null => return Err(CqlError::invalid("Invalid null value for list index")),
            BoundValue::Unset => return Ok(()),
        };
        let path = self.pending.path_at(column, &index, "Attempted to delete an element from a list which is null")?;
        self.put(column, path, None);
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

/// Turns bytes whose order is that of a number into bytes whose signed order is that number's.
const SIGNED: u32 = 0x8080_8080;
/// Elements of one transaction are told apart by so many bits, beside which the bits of a UUID's
/// variant stand. A transaction has fewer elements, because each takes some bytes of a request.
const ELEMENT_BITS: u32 = 0x00ff_ffff;

/// The path of an element that is appended.
fn appended(bindings: &Bindings<'_>) -> Bytes {
    let uuid = match bindings.sources.element_place() {
        Some(ElementPlace { micros, nth }) => {
            timeuuid::from_micros(micros, u64::from((nth & ELEMENT_BITS) ^ SIGNED) << 32 | u64::from(SIGNED))
        }
        None => bindings.sources.timeuuid(),
    };
    Bytes::copy_from_slice(&uuid)
}

/// Elements to prepend with their paths: clocks that run backwards from the reference of
/// [`timeuuid`], so that what is prepended later sorts earlier. A time UUID is never given twice,
/// so neither is its mirror image; the elements of one statement share it and are told apart, in
/// their order, by its last bytes.
fn prepended(elements: Vec<Bytes>, bindings: &Bindings<'_>) -> Vec<(Bytes, Bytes)> {
    const TICKS_PER_MILLI: i64 = 10_000;
    const TICKS_PER_MICRO: i64 = 10;
    let (ticks, [a, b, c, d]) = match bindings.sources.element_place() {
        // of two statements of a transaction the later one's elements stand first
        Some(ElementPlace { micros, nth }) => {
            (micros.wrapping_mul(TICKS_PER_MICRO), ((!nth & ELEMENT_BITS) ^ SIGNED).to_be_bytes())
        }
        // clock sequence and first bytes of the node stay: they tell nodes apart
        None => {
            let uuid = bindings.sources.timeuuid();
            (timeuuid::unix_ticks(&uuid), [uuid[8], uuid[9], uuid[10] & 0x7f, uuid[11] & 0x7f])
        }
    };
    let reference = timeuuid::LIST_REFERENCE_MILLIS * TICKS_PER_MILLI;
    let mirrored = reference.wrapping_sub(ticks.wrapping_sub(reference));
    let path = |at: usize| {
        let place = split_seven(u32::try_from(at).unwrap_or(u32::MAX));
        let low = [a, b, c, d, place[0], place[1], place[2], place[3]];
        Bytes::copy_from_slice(&timeuuid::from_parts(mirrored, u64::from_be_bytes(low)))
    };
    elements.into_iter().enumerate().map(|(at, element)| (element, path(at))).collect()
}

/// 28 bits in four bytes of seven: so that signed bytes order as the number does.
fn split_seven(number: u32) -> [u8; 4] {
    [21, 14, 7, 0].map(|shift| u8::try_from((number >> shift) & 0x7f).expect("seven bits"))
}
