//! Whether bytes are a value of a type. Agrees with the `validate` of each class of
//! `org.apache.cassandra.serializers`, messages included. Validating a valid scalar allocates
//! nothing.

use std::borrow::Cow;

use stdx::Cursor;

use crate::collection::{self, VectorElements};
use crate::{CqlType, CustomType, TypeError, UserType};

/// Deepest nesting of values that is followed. The nesting of types has its own limits (`marshal`,
/// `cql_name`).
const DEPTH_MAX: usize = 128;

/// Checks that `bytes` are a value of the type.
#[inline]
pub fn validate(ty: &CqlType, bytes: &[u8]) -> Result<(), TypeError> {
    match ty {
        CqlType::Blob | CqlType::Varint => Ok(()),
        CqlType::Text if std::str::from_utf8(bytes).is_ok() => Ok(()),
        CqlType::Int | CqlType::Float if bytes.len() == 4 => Ok(()),
        CqlType::BigInt | CqlType::Double | CqlType::Timestamp | CqlType::Counter if bytes.len() == 8 => Ok(()),
        CqlType::Uuid if bytes.len() == 16 => Ok(()),
        _ => validate_rest(ty, bytes, DEPTH_MAX),
    }
}

fn fail<T>(message: impl Into<Cow<'static, str>>) -> Result<T, TypeError> {
    Err(TypeError::Bytes(message.into()))
}

/// Accepts the given lengths; the message of the refusal says what was expected.
fn length(bytes: &[u8], lengths: &[usize], expected: &str) -> Result<(), TypeError> {
    if lengths.contains(&bytes.len()) { Ok(()) } else { fail(format!("{expected} ({})", bytes.len())) }
}

fn validate_rest(ty: &CqlType, bytes: &[u8], depth: usize) -> Result<(), TypeError> {
    let Some(depth) = depth.checked_sub(1) else { return fail("Values nest too deep") };
    match ty {
        CqlType::Blob | CqlType::Varint => Ok(()),
        CqlType::Ascii => match bytes.iter().find(|byte| !byte.is_ascii()) {
            Some(byte) => fail(format!("Invalid byte for ascii: {}", *byte as i8)),
            None => Ok(()),
        },
        CqlType::Text => {
            if std::str::from_utf8(bytes).is_ok() || is_lax_utf8(bytes) {
                Ok(())
            } else {
                fail("String didn't validate.")
            }
        }
        CqlType::Boolean => length(bytes, &[0, 1], "Expected 1 or 0 byte value"),
        CqlType::TinyInt => length(bytes, &[1], "Expected 1 byte for a tinyint"),
        CqlType::SmallInt => length(bytes, &[2], "Expected 2 bytes for a smallint"),
        CqlType::Int => length(bytes, &[0, 4], "Expected 4 or 0 byte int"),
        CqlType::BigInt | CqlType::Counter => length(bytes, &[0, 8], "Expected 8 or 0 byte long"),
        CqlType::Float => length(bytes, &[0, 4], "Expected 4 or 0 byte value for a float"),
        CqlType::Double => length(bytes, &[0, 8], "Expected 8 or 0 byte value for a double"),
        CqlType::Timestamp => length(bytes, &[0, 8], "Expected 8 or 0 byte long for date"),
        CqlType::Date => length(bytes, &[4], "Expected 4 byte long for date"),
        CqlType::Time => length(bytes, &[8], "Expected 8 byte long for time"),
        CqlType::Uuid => length(bytes, &[0, 16], "UUID should be 16 or 0 bytes"),
        CqlType::TimeUuid => timeuuid(bytes),
        CqlType::Decimal if (1..4).contains(&bytes.len()) => {
            fail(format!("Expected 0 or at least 4 bytes ({})", bytes.len()))
        }
        CqlType::Decimal => Ok(()),
        CqlType::Inet => match bytes.len() {
            0 | 4 | 16 => Ok(()),
            _ => fail(format!("Expected 4 or 16 byte inetaddress; got {}", crate::literal::hex(bytes))),
        },
        CqlType::Duration => duration(bytes),
        CqlType::Empty if !bytes.is_empty() => fail("EmptyType only accept empty values"),
        CqlType::Empty => Ok(()),
        CqlType::List { element, .. } => elements(bytes, &[element], "list", depth),
        CqlType::Set { element, .. } => elements(bytes, &[element], "set", depth),
        CqlType::Map { key, value, .. } => elements(bytes, &[key, value], "map", depth),
        CqlType::Tuple(types) => tuple(types, bytes, depth),
        CqlType::Udt(udt, _) => user_type(udt, bytes, depth),
        CqlType::Vector { element, dimension } => vector(ty, element, *dimension, bytes, depth),
        CqlType::Custom(custom) => validate_custom(custom, bytes, depth),
    }
}

/// Whether Cassandra accepts the bytes as text although they are not UTF-8: surrogates, and the
/// two-byte zero of Java.
fn is_lax_utf8(bytes: &[u8]) -> bool {
    let mut rest = bytes;
    let continues = |bytes: &[u8]| bytes.iter().all(|byte| byte & 0xc0 == 0x80);
    while let Some(first) = rest.first() {
        let length = match first {
            0x00..=0x7f => 1,
            0xc0 | 0xc2..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf7 => 4,
            _ => return false,
        };
        let Some(tail) = rest.get(1..length) else { return false };
        let second_fits = match (first, tail.first()) {
            (0xc0, Some(second)) => *second == 0x80,
            (0xe0, Some(second)) => *second >= 0xa0,
            (0xf0, Some(second)) => *second >= 0x90,
            _ => true,
        };
        if !second_fits || !continues(tail) {
            return false;
        }
        rest = &rest[length..];
    }
    true
}

fn timeuuid(bytes: &[u8]) -> Result<(), TypeError> {
    length(bytes, &[0, 16], "UUID should be 16 or 0 bytes")?;
    match (bytes.first(), bytes.get(6)) {
        // Cassandra prints the first digit of the value here, not its version
        (Some(first), Some(version)) if version >> 4 != 1 => {
            fail(format!("Invalid version for TimeUUID type: 0x{:x}", first >> 4))
        }
        _ => Ok(()),
    }
}

fn duration(bytes: &[u8]) -> Result<(), TypeError> {
    if bytes.len() < 3 {
        return fail(format!("Expected at least 3 bytes for a duration ({})", bytes.len()));
    }
    let mut cursor = Cursor::new(bytes);
    let (Ok(months), Ok(days), Ok(nanoseconds)) = (cursor.svint(), cursor.svint(), cursor.svint()) else {
        return fail("Not enough bytes to read a duration");
    };
    if i32::try_from(months).is_err() {
        return fail(format!("The duration months must be a 32 bits integer but was: {months}"));
    }
    if i32::try_from(days).is_err() {
        return fail(format!("The duration days must be a 32 bits integer but was: {days}"));
    }
    let parts = [months, days, nanoseconds];
    if parts.iter().any(|part| *part < 0) && parts.iter().any(|part| *part > 0) {
        return fail(format!(
            "The duration months, days and nanoseconds must be all of the same sign ({months}, {days}, {nanoseconds})"
        ));
    }
    Ok(())
}

fn elements(bytes: &[u8], types: &[&CqlType], kind: &'static str, depth: usize) -> Result<(), TypeError> {
    let too_short = || TypeError::Bytes(format!("Not enough bytes to read a {kind}").into());
    let mut cursor = Cursor::new(bytes);
    let count = cursor.i32().map_err(|_| too_short())?;
    if count < 0 && cursor.is_empty() {
        return fail(format!("The data cannot be deserialized as a {kind}"));
    }
    for _ in 0..count {
        for ty in types {
            match cursor.int_bytes().map_err(|_| too_short())? {
                Some(element) => validate_rest(ty, element, depth)?,
                None => return fail("Null value read when not allowed"),
            }
        }
    }
    if cursor.is_empty() { Ok(()) } else { fail(format!("Unexpected extraneous bytes after {kind} value")) }
}

/// The missing part when a field cannot be read: its length, or its bytes.
fn missing_of(remaining: usize) -> &'static str {
    const LENGTH_BYTES: usize = 4;
    if remaining < LENGTH_BYTES { "size of " } else { "" }
}

fn tuple(types: &[CqlType], bytes: &[u8], depth: usize) -> Result<(), TypeError> {
    let mut fields = collection::Fields::new(bytes);
    for (index, ty) in types.iter().enumerate() {
        let missing = missing_of(fields.remaining());
        match fields.next() {
            None => return Ok(()),
            Some(Err(_)) => return fail(format!("Not enough bytes to read {missing}{index}th component")),
            Some(Ok(None)) => {}
            Some(Ok(Some(field))) => validate_rest(ty, field, depth)?,
        }
    }
    if fields.is_empty() { Ok(()) } else { fail("Invalid remaining data after end of tuple value") }
}

fn user_type(udt: &UserType, bytes: &[u8], depth: usize) -> Result<(), TypeError> {
    let mut fields = collection::Fields::new(bytes);
    for (index, (name, ty)) in udt.fields.iter().enumerate() {
        let missing = missing_of(fields.remaining());
        match fields.next() {
            None => return Ok(()),
            Some(Err(_)) => return fail(format!("Not enough bytes to read {missing}{index}th field {name}")),
            Some(Ok(None)) => {}
            Some(Ok(Some(field))) => validate_rest(ty, field, depth).map_err(|error| {
                TypeError::Bytes(format!("Failure validating the {index}th field {name}; {error}").into())
            })?,
        }
    }
    if fields.is_empty() { Ok(()) } else { fail("Invalid remaining data after end of UDT value") }
}

fn vector(ty: &CqlType, element: &CqlType, dimension: u32, bytes: &[u8], depth: usize) -> Result<(), TypeError> {
    if bytes.is_empty() {
        return fail("Invalid empty vector value");
    }
    let mut elements = VectorElements::new(element, dimension, bytes);
    for item in &mut elements {
        match item {
            Ok(item) => validate_rest(element, item, depth)?,
            Err(_) => return fail(format!("Not enough bytes to read a {}", ty.cql_name())),
        }
    }
    match elements.remaining() {
        0 => Ok(()),
        left => fail(format!("Unexpected {left} extraneous bytes after {} value", ty.cql_name())),
    }
}

fn validate_custom(custom: &CustomType, bytes: &[u8], depth: usize) -> Result<(), TypeError> {
    match custom {
        CustomType::LexicalUuid => length(bytes, &[0, 16], "UUID should be 16 or 0 bytes"),
        CustomType::LegacyDate => length(bytes, &[0, 8], "Expected 8 or 0 byte long for date"),
        CustomType::Reversed(ty) => validate_rest(ty, bytes, depth),
        CustomType::Composite(types) => composite(types, bytes, depth),
        CustomType::DynamicComposite(aliases) => dynamic_composite(aliases, bytes, depth),
        CustomType::PartitionerDefinedOrder(_) | CustomType::Unknown(_) => Ok(()),
    }
}

fn composite(types: &[CqlType], bytes: &[u8], depth: usize) -> Result<(), TypeError> {
    let mut cursor = Cursor::new(bytes);
    if bytes.starts_with(&[0xff, 0xff]) {
        let _ = cursor.skip(2);
    }
    let mut types = types.iter();
    let mut index = 0;
    while !cursor.is_empty() {
        let Some(ty) = types.next() else { return fail("Too many bytes for comparator") };
        let component = component(&mut cursor, index)?;
        validate_rest(ty, component, depth)?;
        match cursor.u8() {
            Err(_) => return fail(format!("Not enough bytes to read the end-of-component byte of component{index}")),
            Ok(end) if end != 0 && !cursor.is_empty() => {
                return fail(format!("Invalid bytes remaining after an end-of-component at component{index}"));
            }
            Ok(_) => {}
        }
        index += 1;
    }
    Ok(())
}

fn component<'a>(cursor: &mut Cursor<'a>, index: usize) -> Result<&'a [u8], TypeError> {
    let too_short = |what| TypeError::Bytes(format!("Not enough bytes to read {what} of component {index}").into());
    let length = cursor.u16().map_err(|_| too_short("value size"))?;
    cursor.take(usize::from(length)).map_err(|_| too_short("value"))
}

fn dynamic_composite(aliases: &[(u8, CqlType)], bytes: &[u8], depth: usize) -> Result<(), TypeError> {
    let mut cursor = Cursor::new(bytes);
    let mut index = 0;
    while !cursor.is_empty() {
        let too_short = |what: &str| TypeError::Bytes(format!("Not enough bytes to {what} {index}").into());
        let header = cursor.u16().map_err(|_| too_short("header of the comparator part of component"))?;
        let alias = aliases.iter().find(|(alias, _)| header & 0x8000 != 0 && *alias == header as u8);
        if header & 0x8000 != 0 && alias.is_none() {
            return fail(format!("Cannot find comparator for component {index}"));
        }
        if header & 0x8000 == 0 {
            cursor.skip(usize::from(header)).map_err(|_| too_short("read comparator name of component"))?;
        }
        let component = component(&mut cursor, index)?;
        if let Some((_, ty)) = alias {
            validate_rest(ty, component, depth)?;
        }
        let end = cursor.u8().map_err(|_| too_short("read the end-of-component byte of component"))?;
        if end != 0 && !cursor.is_empty() {
            return fail(format!("Invalid bytes remaining after an end-of-component at component{index}"));
        }
        index += 1;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn what_is_refused_says_what_cassandra_says() {
        let list = CqlType::List { element: Arc::new(CqlType::Int), frozen: true };
        let tuple = CqlType::Tuple(Arc::new([CqlType::Int, CqlType::Text]));
        let vector = CqlType::Vector { element: Arc::new(CqlType::Float), dimension: 3 };
        let cases: [(&CqlType, &[u8], &str); 15] = [
            (&CqlType::Int, &[1, 2, 3], "Expected 4 or 0 byte int (3)"),
            (&CqlType::TinyInt, &[], "Expected 1 byte for a tinyint (0)"),
            (&CqlType::SmallInt, &[1], "Expected 2 bytes for a smallint (1)"),
            (&CqlType::Ascii, &[0x41, 0xe9], "Invalid byte for ascii: -23"),
            (&CqlType::Text, &[0xff], "String didn't validate."),
            (&CqlType::Boolean, &[0, 0], "Expected 1 or 0 byte value (2)"),
            (&CqlType::Inet, &[1, 2, 3], "Expected 4 or 16 byte inetaddress; got 010203"),
            (&CqlType::Uuid, &[0; 15], "UUID should be 16 or 0 bytes (15)"),
            (&CqlType::TimeUuid, &[0x40; 16], "Invalid version for TimeUUID type: 0x4"),
            (&list, &[], "Not enough bytes to read a list"),
            (&list, &[0, 0, 0, 1, 0, 0, 0, 4, 1], "Not enough bytes to read a list"),
            (&list, &[0, 0, 0, 0, 9], "Unexpected extraneous bytes after list value"),
            (&tuple, &[0, 0, 0, 4, 1], "Not enough bytes to read 0th component"),
            (&vector, &[0; 8], "Not enough bytes to read a vector<float, 3>"),
            (&vector, &[0; 13], "Unexpected 1 extraneous bytes after vector<float, 3> value"),
        ];
        for (ty, bytes, message) in cases {
            assert_eq!(validate(ty, bytes).expect_err(message).to_string(), message);
        }
    }

    #[test]
    fn lengths_from_outside_cost_nothing() {
        let list = CqlType::List { element: Arc::new(CqlType::Empty), frozen: true };
        assert!(validate(&list, &[0x7f, 0xff, 0xff, 0xff]).is_err());
        assert!(validate(&list, &[0xff; 4]).is_err());
    }

    #[test]
    fn text_of_old_java_is_taken() {
        for text in [&[0xc0, 0x80][..], &[0xed, 0xa0, 0x80, 0xed, 0xb0, 0x80], "žluťoučký 🐎".as_bytes(), b""] {
            assert_eq!(validate(&CqlType::Text, text), Ok(()));
        }
    }
}
