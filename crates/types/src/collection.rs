//! Collections, tuples, user types and vectors as one serialized value: how it is taken apart and
//! put together.
//!
//! ```text
//! list, set      i32 count, count × (i32 length, bytes)
//! map            i32 count, count × (key, value), each i32 length, bytes
//! tuple, UDT     fields × (i32 length, -1 = null; bytes); trailing fields may be missing
//! vector         n × bytes if the elements have a fixed length, else n × (uvint length, bytes)
//! ```
//!
//! Sets and maps are sorted by element and key, without duplicates. Readers take bytes that are not
//! trusted: they end with an error and never allocate by a length found in the bytes. Agrees with
//! `CollectionSerializer`, `TupleType`, `VectorType`.

use std::cmp::Ordering;

use stdx::{Cursor, CursorError, put_i32, put_int_bytes, put_vbytes};

use crate::{CqlType, TypeError, compare};

/// An iterator over the elements of a list or set, or over key, value, key, value of a map. None is
/// a null, which only values of IN may hold.
#[derive(Clone, Debug)]
pub struct Elements<'a> {
    cursor: Cursor<'a>,
    left: usize,
}

impl<'a> Elements<'a> {
    /// The elements of a list or set.
    pub fn new(bytes: &'a [u8]) -> Result<Self, TypeError> {
        Self::with_arity(bytes, 1)
    }

    /// The keys and values of a map, by turns.
    pub fn of_map(bytes: &'a [u8]) -> Result<Self, TypeError> {
        Self::with_arity(bytes, 2)
    }

    fn with_arity(bytes: &'a [u8], arity: usize) -> Result<Self, TypeError> {
        let mut cursor = Cursor::new(bytes);
        let count = cursor.i32().ok().and_then(|count| usize::try_from(count).ok());
        let count = count.ok_or(TypeError::Bytes("The data cannot be deserialized as a collection".into()))?;
        Ok(Self { cursor, left: count.saturating_mul(arity) })
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = Result<Option<&'a [u8]>, CursorError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let element = self.cursor.int_bytes();
        if element.is_err() {
            self.left = 0;
        }
        Some(element)
    }
}

/// Number of elements (of a map: entries) that a serialized collection claims to have; not checked.
pub fn count(bytes: &[u8]) -> usize {
    Cursor::new(bytes).i32().ok().and_then(|count| usize::try_from(count).ok()).unwrap_or(0)
}

/// The elements of a valid list or set. Of an invalid value, the elements before the damage.
pub fn elements(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    Elements::new(bytes).into_iter().flatten().map_while(Result::ok).map(Option::unwrap_or_default)
}

/// The entries of a valid map. Of an invalid value, the entries before the damage.
pub fn entries(bytes: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let mut all = Elements::of_map(bytes).into_iter().flatten().map_while(Result::ok).map(Option::unwrap_or_default);
    std::iter::from_fn(move || Some((all.next()?, all.next()?)))
}

/// An iterator over the fields of a tuple or user type that the value has; the fields behind them
/// are null.
#[derive(Clone, Debug)]
pub struct Fields<'a>(Cursor<'a>);

impl<'a> Fields<'a> {
    /// The fields of a serialized tuple or user type.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(Cursor::new(bytes))
    }

    /// Whether no field is left.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Bytes that are left.
    pub fn remaining(&self) -> usize {
        self.0.remaining()
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<Option<&'a [u8]>, CursorError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.0.int_bytes();
        if field.is_err() {
            self.0 = Cursor::new(&[]);
        }
        Some(field)
    }
}

/// The first `count` fields of a valid tuple or user type; fields that the value lacks are null.
pub fn fields(bytes: &[u8], count: usize) -> impl Iterator<Item = Option<&[u8]>> {
    let mut fields = Fields::new(bytes);
    (0..count).map(move |_| fields.next().and_then(Result::ok).flatten())
}

/// An iterator over the elements of a vector.
#[derive(Clone, Debug)]
pub struct VectorElements<'a> {
    cursor: Cursor<'a>,
    fixed: Option<usize>,
    left: u32,
}

impl<'a> VectorElements<'a> {
    /// The elements of a serialized vector.
    pub fn new(element: &CqlType, dimension: u32, bytes: &'a [u8]) -> Self {
        Self { cursor: Cursor::new(bytes), fixed: element.fixed_length(), left: dimension }
    }

    /// Bytes behind the elements that were taken so far.
    pub fn remaining(&self) -> usize {
        self.cursor.remaining()
    }
}

impl<'a> Iterator for VectorElements<'a> {
    type Item = Result<&'a [u8], CursorError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let element = match self.fixed {
            Some(length) => self.cursor.take(length),
            None => self.cursor.vbytes(),
        };
        if element.is_err() {
            self.left = 0;
        }
        Some(element)
    }
}

/// Serializes a list of these elements in their order.
pub fn build_list<T: AsRef<[u8]>>(elements: &[T]) -> Vec<u8> {
    let mut out = Vec::with_capacity(4 + elements.iter().map(|element| 4 + element.as_ref().len()).sum::<usize>());
    put_count(&mut out, elements.len());
    elements.iter().for_each(|element| put_int_bytes(&mut out, Some(element.as_ref())));
    debug_assert!(self::elements(&out).count() == elements.len(), "a list decodes to its elements");
    out
}

/// Serializes a set: sorts the elements and drops duplicates.
pub fn build_set<T: AsRef<[u8]>>(element: &CqlType, mut elements: Vec<T>) -> Vec<u8> {
    elements.sort_by(|a, b| compare(element, a.as_ref(), b.as_ref()));
    elements.dedup_by(|a, b| compare(element, a.as_ref(), b.as_ref()) == Ordering::Equal);
    build_list(&elements)
}

/// Serializes a map: sorts by key; of several entries with one key the last counts.
pub fn build_map<K: AsRef<[u8]>, V: AsRef<[u8]>>(key: &CqlType, mut entries: Vec<(K, V)>) -> Vec<u8> {
    entries.reverse();
    entries.sort_by(|(a, _), (b, _)| compare(key, a.as_ref(), b.as_ref()));
    entries.dedup_by(|(a, _), (b, _)| compare(key, a.as_ref(), b.as_ref()) == Ordering::Equal);
    let mut out = Vec::new();
    put_count(&mut out, entries.len());
    for (key, value) in &entries {
        put_int_bytes(&mut out, Some(key.as_ref()));
        put_int_bytes(&mut out, Some(value.as_ref()));
    }
    debug_assert!(self::entries(&out).count() == entries.len(), "a map decodes to its entries");
    out
}

/// Serializes a tuple or user type.
pub fn build_tuple<T: AsRef<[u8]>>(fields: &[Option<T>]) -> Vec<u8> {
    let mut out = Vec::new();
    fields.iter().for_each(|field| put_int_bytes(&mut out, field.as_ref().map(AsRef::as_ref)));
    debug_assert!(Fields::new(&out).count() == fields.len(), "a tuple decodes to its fields");
    out
}

/// Serializes a vector.
pub fn build_vector<T: AsRef<[u8]>>(element: &CqlType, elements: &[T]) -> Vec<u8> {
    let mut out = Vec::new();
    for item in elements {
        match element.fixed_length() {
            Some(_) => out.extend_from_slice(item.as_ref()),
            None => put_vbytes(&mut out, item.as_ref()),
        }
    }
    out
}

/// Appends the count that a collection begins with.
pub fn put_count(out: &mut Vec<u8>, count: usize) {
    put_i32(out, i32::try_from(count).expect("a collection in memory has less than 2^31 elements"));
}

/// The value at `key` in a frozen map; of a set, the element itself.
pub fn get<'a>(ty: &CqlType, bytes: &'a [u8], key: &[u8]) -> Option<&'a [u8]> {
    match ty {
        CqlType::Set { element, .. } => elements(bytes).find(|item| compare(element, item, key) == Ordering::Equal),
        CqlType::Map { key: key_type, .. } => {
            entries(bytes).find(|(found, _)| compare(key_type, found, key) == Ordering::Equal).map(|(_, value)| value)
        }
        _ => None,
    }
}

/// The part of a frozen set or map from `from` to `to`, both inclusive; None: no limit on that
/// side.
pub fn slice(ty: &CqlType, bytes: &[u8], from: Option<&[u8]>, to: Option<&[u8]>) -> Vec<u8> {
    let inside = |ty: &CqlType, key: &[u8]| {
        from.is_none_or(|from| compare(ty, from, key) != Ordering::Greater)
            && to.is_none_or(|to| compare(ty, key, to) != Ordering::Greater)
    };
    match ty {
        CqlType::Set { element, .. } => {
            build_list(&elements(bytes).filter(|item| inside(element, item)).collect::<Vec<_>>())
        }
        CqlType::Map { key, .. } => {
            let kept: Vec<_> = entries(bytes).filter(|(found, _)| inside(key, found)).collect();
            let mut out = Vec::new();
            put_count(&mut out, kept.len());
            for (key, value) in kept {
                put_int_bytes(&mut out, Some(key));
                put_int_bytes(&mut out, Some(value));
            }
            out
        }
        _ => bytes.to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn sets_and_maps_are_sorted_without_duplicates() {
        let set = build_set(&CqlType::TinyInt, vec![[3u8], [0xff], [3], [1]]);
        assert_eq!(elements(&set).collect::<Vec<_>>(), [&[0xffu8][..], &[1], &[3]]);
        let map = build_map(&CqlType::TinyInt, vec![([2u8], "a"), ([1], "b"), ([2], "c")]);
        assert_eq!(entries(&map).collect::<Vec<_>>(), [(&[1u8][..], &b"b"[..]), (&[2], b"c")]);
        let ty = CqlType::Map { key: Arc::new(CqlType::TinyInt), value: Arc::new(CqlType::Text), frozen: true };
        assert_eq!(get(&ty, &map, &[2]), Some(&b"c"[..]));
        assert_eq!(get(&ty, &map, &[3]), None);
        assert_eq!(entries(&slice(&ty, &map, Some(&[2]), None)).count(), 1);
        assert_eq!(count(&slice(&ty, &map, None, Some(&[0]))), 0);
    }

    #[test]
    fn fields_that_are_missing_are_null() {
        let tuple = build_tuple(&[Some("a"), None]);
        assert_eq!(fields(&tuple, 3).collect::<Vec<_>>(), [Some(&b"a"[..]), None, None]);
    }

    #[test]
    fn vectors_have_lengths_only_where_they_must() {
        assert_eq!(build_vector(&CqlType::Int, &[[0, 0, 0, 1], [0, 0, 0, 2]]).len(), 8);
        let small = build_vector(&CqlType::SmallInt, &[[0, 1], [0, 2]]);
        assert_eq!(small, [2, 0, 1, 2, 0, 2]);
        let back: Result<Vec<_>, _> = VectorElements::new(&CqlType::SmallInt, 2, &small).collect();
        assert_eq!(back, Ok(vec![&[0u8, 1][..], &[0, 2]]));
    }

    #[test]
    fn broken_collections_end() {
        assert!(Elements::new(&[]).is_err());
        assert!(Elements::new(&[0xff; 4]).is_err());
        assert_eq!(elements(&[0x7f, 0xff, 0xff, 0xff, 0, 0]).count(), 0);
        assert_eq!(entries(&[0, 0, 0, 2, 0, 0, 0, 1, 7]).count(), 0);
    }
}
