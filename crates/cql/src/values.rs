//! Bound values, and composite values in their serialized form: taking apart and putting together
//! collections, tuples, vectors.
//!
//! Agrees with `org.apache.cassandra.serializers.CollectionSerializer`, `db.marshal.TupleType`,
//! `db.marshal.VectorType`; docs/formats/types.md §2.

use std::cmp::Ordering;

use bytes::Bytes;
use rows::{ColumnData, ComplexColumn, counter};
use stdx::Cursor;
use types::{CqlType, collection};

use crate::error::CqlError;
use crate::functions::VALUE_BYTES_MAX;

mod bound;

pub(crate) use bound::as_stored;

/// A bound value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BoundValue {
    /// A serialized value.
    Bytes(Bytes),
    /// null
    Null,
    /// No value: the column stays as it is.
    Unset,
}

/// The error for bytes that are no value of their type.
pub(crate) fn malformed(what: &str) -> CqlError {
    CqlError::invalid(format!("Not enough bytes to read a {what}"))
}

/// Refuses a bound collection that says to have a negative number of elements, whatever stands
/// behind the number. Where the bytes are only validated, as those of a literal, Cassandra
/// complains of the bytes behind it instead.
pub(crate) fn check_count(ty: &CqlType, value: &Bytes) -> Result<(), CqlError> {
    let kind = match ty {
        CqlType::List { .. } => "list",
        CqlType::Set { .. } => "set",
        CqlType::Map { .. } => "map",
        _ => return Ok(()),
    };
    match Cursor::new(value).i32() {
        Ok(..0) => Err(CqlError::invalid(format!("The data cannot be deserialized as a {kind}"))),
        _ => Ok(()),
    }
}

/// `part`, which must be a slice of `whole`, as shared bytes, without a copy.
fn share(whole: &Bytes, part: &[u8]) -> Bytes {
    if part.is_empty() { Bytes::new() } else { whole.slice_ref(part) }
}

/// The elements of a serialized list or set; null elements are refused.
pub(crate) fn split_list(value: &Bytes) -> Result<Vec<Bytes>, CqlError> {
    let mut cursor = Cursor::new(value);
    let count = cursor.i32().map_err(|_| malformed("list"))?;
    let mut elements = Vec::new();
    for _ in 0..count {
        let element = cursor.int_bytes().map_err(|_| malformed("list"))?;
        let element = element.ok_or_else(|| CqlError::invalid("null is not supported inside collections"))?;
        elements.push(share(value, element));
    }
    if !cursor.is_empty() {
        return Err(CqlError::invalid("Unexpected extraneous bytes after list value"));
    }
    Ok(elements)
}

/// The entries of a serialized map; nulls are refused.
pub(crate) fn split_map(value: &Bytes) -> Result<Vec<(Bytes, Bytes)>, CqlError> {
    let mut cursor = Cursor::new(value);
    let count = cursor.i32().map_err(|_| malformed("map"))?;
    let mut entries = Vec::new();
    for _ in 0..count {
        let mut part = || {
            let part = cursor.int_bytes().map_err(|_| malformed("map"))?;
            part.ok_or_else(|| CqlError::invalid("null is not supported inside collections"))
        };
        let (key, element) = (part()?, part()?);
        entries.push((share(value, key), share(value, element)));
    }
    if !cursor.is_empty() {
        return Err(CqlError::invalid("Unexpected extraneous bytes after map value"));
    }
    Ok(entries)
}

/// The fields of a serialized tuple or user type; trailing fields may be missing.
pub(crate) fn split_tuple(value: &Bytes) -> Result<Vec<Option<Bytes>>, CqlError> {
    let mut cursor = Cursor::new(value);
    let mut fields = Vec::new();
    while !cursor.is_empty() {
        let field = cursor.int_bytes().map_err(|_| malformed("tuple field"))?;
        fields.push(field.map(|field| share(value, field)));
    }
    Ok(fields)
}

/// Takes the bytes of a part from those that a value may still have, [`VALUE_BYTES_MAX`] at first.
/// One column, or one bound value, may be a part of a value many times.
pub(crate) fn take_room(room: &mut usize, part: &Bytes) -> Result<(), CqlError> {
    match room.checked_sub(part.len()) {
        Some(left) => {
            *room = left;
            Ok(())
        }
        None => {
            let most = VALUE_BYTES_MAX >> 20;
            Err(CqlError::invalid(format!("A collection, tuple or vector of the statement is larger than {most} MiB")))
        }
    }
}

/// Serializes a list, or a set whose elements are in order.
pub(crate) fn pack_list<B: AsRef<[u8]>>(elements: &[B]) -> Bytes {
    collection::build_list(elements).into()
}

/// Serializes a map whose keys are in order.
pub(crate) fn pack_map(entries: &[(Bytes, Bytes)]) -> Bytes {
    let mut out = Vec::new();
    collection::put_count(&mut out, entries.len());
    for (key, value) in entries {
        stdx::put_int_bytes(&mut out, Some(key));
        stdx::put_int_bytes(&mut out, Some(value));
    }
    out.into()
}

/// Serializes a tuple or user type.
pub(crate) fn pack_tuple<B: AsRef<[u8]>>(fields: &[Option<B>]) -> Bytes {
    collection::build_tuple(fields).into()
}

/// Serializes a vector.
pub(crate) fn pack_vector(element: &CqlType, elements: &[Bytes]) -> Bytes {
    collection::build_vector(element, elements).into()
}

/// Sorts the elements of a set and drops duplicates.
pub(crate) fn sort_set(element: &CqlType, elements: &mut Vec<Bytes>) {
    elements.sort_by(|a, b| types::compare(element, a, b));
    elements.dedup_by(|a, b| types::compare(element, a, b) == Ordering::Equal);
}

/// Sorts the entries of a map; of two entries with the same key the later one stays.
pub(crate) fn sort_map(key: &CqlType, entries: &mut Vec<(Bytes, Bytes)>) {
    entries.sort_by(|a, b| types::compare(key, &a.0, &b.0));
    // the sort is stable, so the later of two equal keys is the second; dedup keeps the first
    // entry, which therefore takes the value of the second
    entries.dedup_by(|later, kept| {
        let same = types::compare(key, &later.0, &kept.0) == Ordering::Equal;
        if same {
            std::mem::swap(&mut later.1, &mut kept.1);
        }
        same
    });
}

/// Appends the value of a column to a result row: `[int]` length and bytes; length -1 if there is
/// no value.
pub(crate) fn put_column(out: &mut Vec<u8>, ty: &CqlType, data: Option<&ColumnData>) {
    match data {
        None => stdx::put_i32(out, -1),
        Some(ColumnData::Simple(cell)) if *ty == CqlType::Counter => {
            stdx::put_i32(out, 8);
            stdx::put_i64(out, counter::total(&cell.value));
        }
        Some(ColumnData::Simple(cell)) => stdx::put_int_bytes(out, Some(&cell.value)),
        Some(ColumnData::Complex(complex)) if complex.cells.is_empty() => stdx::put_i32(out, -1),
        Some(ColumnData::Complex(complex)) => {
            let length_at = out.len();
            stdx::put_i32(out, 0);
            put_complex(out, ty, complex);
            let length = i32::try_from(out.len() - length_at - 4).expect("a row is less than 2 GiB");
            out[length_at..length_at + 4].copy_from_slice(&length.to_be_bytes());
        }
    }
}

/// The serialized value of a column.
pub(crate) fn column_value(ty: &CqlType, data: Option<&ColumnData>) -> Option<Bytes> {
    match data? {
        ColumnData::Simple(cell) if *ty == CqlType::Counter => {
            Some(Bytes::copy_from_slice(&counter::total(&cell.value).to_be_bytes()))
        }
        ColumnData::Simple(cell) => Some(cell.value.clone()),
        ColumnData::Complex(complex) if complex.cells.is_empty() => None,
        ColumnData::Complex(complex) => {
            let mut out = Vec::new();
            put_complex(&mut out, ty, complex);
            Some(out.into())
        }
    }
}

fn put_complex(out: &mut Vec<u8>, ty: &CqlType, complex: &ComplexColumn) {
    match ty {
        CqlType::Udt(udt, _) => put_udt(out, udt.fields.len(), complex),
        CqlType::Map { .. } => {
            collection::put_count(out, complex.cells.len());
            for cell in &complex.cells {
                stdx::put_int_bytes(out, Some(cell.path.as_deref().unwrap_or_default()));
                stdx::put_int_bytes(out, Some(&cell.value));
            }
        }
        CqlType::Set { .. } => {
            collection::put_count(out, complex.cells.len());
            for cell in &complex.cells {
                stdx::put_int_bytes(out, Some(cell.path.as_deref().unwrap_or_default()));
            }
        }
        _ => {
            collection::put_count(out, complex.cells.len());
            for cell in &complex.cells {
                stdx::put_int_bytes(out, Some(&cell.value));
            }
        }
    }
}

fn put_udt(out: &mut Vec<u8>, fields: usize, complex: &ComplexColumn) {
    let mut cells = complex.cells.iter().peekable();
    for field in 0..fields {
        let is_field = |path: Option<&Bytes>| field_index(path) == Some(field);
        match cells.peek() {
            Some(cell) if is_field(cell.path.as_ref()) => {
                stdx::put_int_bytes(out, Some(&cell.value));
                cells.next();
            }
            _ => stdx::put_i32(out, -1),
        }
    }
}

/// The field that a cell of a user type holds.
pub(crate) fn field_index(path: Option<&Bytes>) -> Option<usize> {
    let bytes: [u8; 2] = path?.as_ref().try_into().ok()?;
    Some(usize::from(u16::from_be_bytes(bytes)))
}

/// The path of a field of a user type.
pub(crate) fn field_path(field: usize) -> Bytes {
    let index = u16::try_from(field).expect("a user type has less than 2^15 fields");
    Bytes::copy_from_slice(&index.to_be_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_is_split() {
        let elements = vec![Bytes::from_static(b"a"), Bytes::new(), Bytes::from_static(b"ccc")];
        assert_eq!(split_list(&pack_list(&elements)).unwrap(), elements);
        let fields = vec![Some(Bytes::from_static(b"a")), None, Some(Bytes::new())];
        assert_eq!(split_tuple(&pack_tuple(&fields)).unwrap(), fields);
        let entries = vec![(Bytes::from_static(b"k"), Bytes::from_static(b"v"))];
        assert_eq!(split_map(&pack_map(&entries)).unwrap(), entries);
    }

    #[test]
    fn broken_collections_are_refused() {
        assert!(split_list(&Bytes::from_static(&[0, 0, 0, 1])).is_err());
        assert!(split_list(&Bytes::from_static(&[0, 0, 0, 0, 9])).is_err());
        assert!(split_list(&Bytes::from_static(&[0, 0, 0, 1, 255, 255, 255, 255])).is_err());
        assert!(split_map(&Bytes::from_static(&[0, 0, 0, 1, 0, 0, 0, 0])).is_err());
    }

    #[test]
    fn the_last_of_equal_map_keys_stays() {
        let entry = |k: &'static [u8], v: &'static [u8]| (Bytes::from_static(k), Bytes::from_static(v));
        let mut entries = vec![entry(b"b", b"1"), entry(b"a", b"2"), entry(b"b", b"3")];
        sort_map(&CqlType::Text, &mut entries);
        assert_eq!(entries, vec![entry(b"a", b"2"), entry(b"b", b"3")]);
    }
}
