//! Writes values as JSON text. See [`crate::json`].

use std::fmt::Write;

use crate::collection::{self, VectorElements};
use crate::literal::{self, hex, put_list};
use crate::{CqlType, CustomType, temporal};

/// The value as JSON. Bytes that are not a value of the type become hex digits.
pub fn to_json(ty: &CqlType, bytes: &[u8]) -> String {
    let mut out = String::new();
    put(&mut out, ty, bytes);
    out
}

/// Appends the value as JSON.
pub fn put_json(out: &mut String, ty: &CqlType, bytes: &[u8]) {
    put(out, ty, bytes);
}

/// Appends a JSON string, in double quotes.
pub fn put_json_string(out: &mut String, text: &str) {
    out.push('"');
    put_escaped(out, text);
    out.push('"');
}

/// Appends text with escapes. Runs of text without an escape are copied whole; bytes that need one
/// are ASCII, so a run always ends between characters.
fn put_escaped(out: &mut String, mut text: &str) {
    while let Some(at) = text.bytes().position(|byte| byte < b' ' || byte == b'"' || byte == b'\\') {
        let (run, rest) = text.split_at(at);
        out.push_str(run);
        match rest.as_bytes()[0] {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            8 => out.push_str("\\b"),
            12 => out.push_str("\\f"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            control => write!(out, "\\u{control:04X}").expect("a String takes all"),
        }
        text = &rest[1..];
    }
    out.push_str(text);
}

fn put(out: &mut String, ty: &CqlType, bytes: &[u8]) {
    match ty {
        CqlType::Text | CqlType::Ascii => put_json_string(out, &String::from_utf8_lossy(bytes)),
        CqlType::Blob => put_blob(out, bytes),
        CqlType::List { element, .. } | CqlType::Set { element, .. } => {
            put_list(out, ['[', ']'], collection::elements(bytes), |out, item| put(out, element, item));
        }
        CqlType::Vector { element, dimension } => {
            let elements = VectorElements::new(element, *dimension, bytes).map_while(Result::ok);
            put_list(out, ['[', ']'], elements, |out, item| put(out, element, item));
        }
        CqlType::Map { key, value, .. } => {
            put_list(out, ['{', '}'], collection::entries(bytes), |out, (name, item)| {
                put_key(out, key, name);
                out.push_str(": ");
                put(out, value, item);
            });
        }
        CqlType::Tuple(types) => {
            let fields = collection::fields(bytes, types.len()).zip(types.iter());
            put_list(out, ['[', ']'], fields, |out, (field, ty)| put_nullable(out, ty, field));
        }
        CqlType::Udt(udt, _) => {
            let fields = collection::fields(bytes, udt.fields.len()).zip(&udt.fields);
            put_list(out, ['{', '}'], fields, |out, (field, (name, ty))| {
                put_field_name(out, name);
                out.push_str(": ");
                put_nullable(out, ty, field);
            });
        }
        CqlType::Custom(custom) => put_custom(out, custom, bytes),
        _ => put_scalar(out, ty, bytes),
    }
}

fn put_blob(out: &mut String, bytes: &[u8]) {
    out.push_str("\"0x");
    out.push_str(&hex(bytes));
    out.push('"');
}

fn put_nullable(out: &mut String, ty: &CqlType, value: Option<&[u8]>) {
    match value {
        Some(value) => put(out, ty, value),
        None => out.push_str("null"),
    }
}

/// Appends a key of an object. Keys are strings in JSON, so other JSON is put into a string.
fn put_key(out: &mut String, ty: &CqlType, key: &[u8]) {
    let json = to_json(ty, key);
    if json.starts_with('"') { out.push_str(&json) } else { put_json_string(out, &json) }
}

/// Appends a field name. A name that is not lower case stands in quotes inside of JSON's quotes.
fn put_field_name(out: &mut String, name: &str) {
    let quoted = name != name.to_lowercase();
    put_json_string(out, &if quoted { format!("\"{name}\"") } else { name.to_owned() });
}

fn put_custom(out: &mut String, custom: &CustomType, bytes: &[u8]) {
    match custom {
        CustomType::Reversed(ty) => put(out, ty, bytes),
        CustomType::LexicalUuid => put_scalar(out, &CqlType::Uuid, bytes),
        CustomType::LegacyDate => put_scalar(out, &CqlType::Timestamp, bytes),
        _ => put_blob(out, bytes),
    }
}

fn put_scalar(out: &mut String, ty: &CqlType, bytes: &[u8]) {
    use CqlType::{BigInt, Boolean, Counter, Decimal, Double, Float, Int, SmallInt, TinyInt, Varint};
    let is_number = matches!(ty, TinyInt | SmallInt | Int | BigInt | Counter | Varint | Decimal | Float | Double);
    let text = match ty {
        CqlType::Timestamp => match <[u8; 8]>::try_from(bytes) {
            Ok(millis) => temporal::print_timestamp(i64::from_be_bytes(millis), ' '),
            Err(_) => String::new(),
        },
        _ => match literal::scalar(ty, bytes) {
            Some(text) => text,
            None => return put_blob(out, bytes),
        },
    };
    match text.as_str() {
        // JSON has no such numbers
        "NaN" | "Infinity" | "-Infinity" => out.push_str("null"),
        // Cassandra fails here
        "" if matches!(ty, Boolean) => out.push_str("null"),
        text if !text.is_empty() && (is_number || matches!(ty, Boolean)) => out.push_str(text),
        text => put_json_string(out, text),
    }
}
