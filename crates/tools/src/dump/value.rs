//! Values as JSON. The frequent types are written without a detour; the rest, and what equals them, is `types::json`.
//!
//! sstabledump prints a counter's context as if its first eight bytes were the count, and so does this.

use types::CqlType;
use types::json::put_json;

/// Appends a value.
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
