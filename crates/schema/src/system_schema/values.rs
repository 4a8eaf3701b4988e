//! The few value encodings that the schema tables need.
//!
//! Frozen collections are an i32 count and elements with i32 lengths; sets and maps are in element
//! order. See docs/formats/types.md.

use std::collections::BTreeMap;

use bytes::Bytes;
use stdx::Cursor;
use stdx::put::{put_i32, put_int_bytes};

/// Encodes a text.
pub fn text(value: &str) -> Bytes {
    Bytes::copy_from_slice(value.as_bytes())
}

/// Encodes a boolean.
pub fn boolean(value: bool) -> Bytes {
    Bytes::from_static(if value { &[1] } else { &[0] })
}

/// Encodes an int.
pub fn int(value: i32) -> Bytes {
    Bytes::copy_from_slice(&value.to_be_bytes())
}

/// Encodes a bigint or timestamp.
pub fn bigint(value: i64) -> Bytes {
    Bytes::copy_from_slice(&value.to_be_bytes())
}

/// Encodes a double.
pub fn double(value: f64) -> Bytes {
    Bytes::copy_from_slice(&value.to_be_bytes())
}

fn put_count(out: &mut Vec<u8>, count: usize) {
    put_i32(out, i32::try_from(count).expect("schema collections are small"));
}

/// Encodes a frozen<list<text>>, or a frozen<set<text>> whose elements are in order.
pub fn text_list(values: impl IntoIterator<Item = String>) -> Bytes {
    let values: Vec<String> = values.into_iter().collect();
    let mut out = Vec::new();
    put_count(&mut out, values.len());
    for value in &values {
        put_int_bytes(&mut out, Some(value.as_bytes()));
    }
    out.into()
}

/// Encodes a frozen<list<boolean>>.
pub fn boolean_list(values: impl IntoIterator<Item = bool>) -> Bytes {
    let values: Vec<bool> = values.into_iter().collect();
    let mut out = Vec::new();
    put_count(&mut out, values.len());
    for value in values {
        put_int_bytes(&mut out, Some(&[u8::from(value)]));
    }
    out.into()
}

/// Encodes a frozen<map<text, text>>.
pub fn text_map(map: &BTreeMap<String, String>) -> Bytes {
    pairs(map.iter().map(|(key, value)| (key, value.as_bytes())))
}

/// Encodes a frozen<map<text, blob>>.
pub fn blob_map(map: &BTreeMap<String, Vec<u8>>) -> Bytes {
    pairs(map.iter().map(|(key, value)| (key, value.as_slice())))
}

fn pairs<'a>(pairs: impl ExactSizeIterator<Item = (&'a String, &'a [u8])>) -> Bytes {
    let mut out = Vec::new();
    put_count(&mut out, pairs.len());
    for (key, value) in pairs {
        put_int_bytes(&mut out, Some(key.as_bytes()));
        put_int_bytes(&mut out, Some(value));
    }
    out.into()
}

/// Reads a text.
pub fn read_text(bytes: &[u8]) -> Option<String> {
    std::str::from_utf8(bytes).ok().map(str::to_owned)
}

/// Reads a boolean.
pub fn read_boolean(bytes: &[u8]) -> Option<bool> {
    bytes.first().map(|byte| *byte != 0)
}

/// Reads an int.
pub fn read_int(bytes: &[u8]) -> Option<i32> {
    bytes.try_into().ok().map(i32::from_be_bytes)
}

/// Reads a bigint or timestamp.
pub fn read_bigint(bytes: &[u8]) -> Option<i64> {
    bytes.try_into().ok().map(i64::from_be_bytes)
}

/// Reads a double.
pub fn read_double(bytes: &[u8]) -> Option<f64> {
    bytes.try_into().ok().map(f64::from_be_bytes)
}

/// Reads a frozen<list<text>> or frozen<set<text>>.
pub fn read_text_list(bytes: &[u8]) -> Option<Vec<String>> {
    let mut cursor = Cursor::new(bytes);
    let count = cursor.i32().ok()?;
    let mut list = Vec::new();
    for _ in 0..count {
        list.push(read_text(cursor.int_bytes().ok()??)?);
    }
    Some(list)
}

/// Reads a frozen<list<boolean>>.
pub fn read_boolean_list(bytes: &[u8]) -> Option<Vec<bool>> {
    let mut cursor = Cursor::new(bytes);
    let count = cursor.i32().ok()?;
    let mut list = Vec::new();
    for _ in 0..count {
        list.push(read_boolean(cursor.int_bytes().ok()??)?);
    }
    Some(list)
}

/// Reads a frozen<map<text, blob>>.
pub fn read_blob_map(bytes: &[u8]) -> Option<BTreeMap<String, Vec<u8>>> {
    let mut cursor = Cursor::new(bytes);
    let count = cursor.i32().ok()?;
    let mut map = BTreeMap::new();
    for _ in 0..count {
        let key = read_text(cursor.int_bytes().ok()??)?;
        map.insert(key, cursor.int_bytes().ok()??.to_vec());
    }
    Some(map)
}

/// Reads a frozen<map<text, text>>.
pub fn read_text_map(bytes: &[u8]) -> Option<BTreeMap<String, String>> {
    read_blob_map(bytes)?.into_iter().map(|(key, value)| Some((key, read_text(&value)?))).collect()
}
