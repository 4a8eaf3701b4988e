//! Values as JSON. The frequent types are written here directly; all other types are written by
//! `types::json`, whose text for the frequent types is the same.
//!
//! sstabledump prints the first eight bytes of a counter's context as its value, and so does this
//! file.

use types::CqlType;
use types::json::put_json;

/// Appends the JSON of a value.
#[inline]
pub fn put(out: &mut String, ty: &CqlType, bytes: &[u8]) {
    match ty {
        CqlType::Int => match bytes.try_into() {
            Ok(value) => out.push_str(itoa::Buffer::new().format(i32::from_be_bytes(value))),
            Err(_) => put_json(out, ty, bytes),
        },
        CqlType::BigInt | CqlType::Counter => match bytes.first_chunk() {
            Some(value) if bytes.len() == 8 || *ty == CqlType::Counter => {
                out.push_str(itoa::Buffer::new().format(i64::from_be_bytes(*value)));
            }
            _ => put_json(out, ty, bytes),
        },
        _ => put_json(out, ty, bytes),
    }
}
