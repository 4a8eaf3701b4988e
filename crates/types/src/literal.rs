//! Text forms of values: the value of a string literal, the CQL literal of a value, and its plain
//! text.
//!
//! Agrees with `AbstractType.fromString`, `CQL3Type.toCQLLiteral` and `AbstractType.getString`.

use num_bigint::BigInt;
use stdx::Cursor;

use crate::collection::{self, VectorElements};
use crate::composite::{components, escape};
use crate::duration::Duration;
use crate::ident::maybe_quote;
use crate::{CqlType, CustomType, TypeError, inet, java_number, radix, temporal, timeuuid};

/// The bytes as lower-case hex digits.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 0x0f)]).collect()
}

/// The bytes of hex digits in any case. None: another character, or an odd number of digits.
pub fn unhex(text: &str) -> Option<Vec<u8>> {
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else { return None };
    let mut bytes = Vec::with_capacity(pairs.len());
    let mut all = 0;
    for [high, low] in pairs {
        let (high, low) = (HEX_VALUES[usize::from(*high)], HEX_VALUES[usize::from(*low)]);
        all |= high | low;
        bytes.push(high << 4 | low & 0x0f);
    }
    (all != NO_HEX).then_some(bytes)
}

/// Marks a byte that is no hex digit. Its upper half has no bit in common with a digit's value.
const NO_HEX: u8 = 0xff;

/// The value of each byte as a hex digit, or [`NO_HEX`].
static HEX_VALUES: [u8; 256] = {
    let mut table = [NO_HEX; 256];
    let mut digit = 0;
    while digit < 16 {
        table[b"0123456789abcdef"[digit] as usize] = digit as u8;
        table[b"0123456789ABCDEF"[digit] as usize] = digit as u8;
        digit += 1;
    }
    table
};

/// The canonical text of a UUID.
pub fn print_uuid(uuid: &[u8; 16]) -> String {
    let digits = hex(uuid);
    format!("{}-{}-{}-{}-{}", &digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..])
}

/// Reads a UUID in its canonical form.
pub fn parse_uuid(text: &str) -> Option<[u8; 16]> {
    const DASHES: [usize; 4] = [8, 13, 18, 23];
    let bytes = text.as_bytes();
    if bytes.len() != 36 || DASHES.iter().any(|at| bytes[*at] != b'-') {
        return None;
    }
    let digits: String = text.split('-').collect();
    unhex(&digits)?.try_into().ok()
}

/// The bytes of a decimal.
pub fn encode_decimal(unscaled: &BigInt, scale: i32) -> Vec<u8> {
    let mut out = scale.to_be_bytes().to_vec();
    out.extend_from_slice(&unscaled.to_signed_bytes_be());
    out
}

/// Unscaled value and scale of a serialized decimal.
pub fn decode_decimal(bytes: &[u8]) -> Option<(BigInt, i32)> {
    let (scale, unscaled) = bytes.split_first_chunk::<4>()?;
    Some((BigInt::from_signed_bytes_be(unscaled), i32::from_be_bytes(*scale)))
}

/// The value that a text stands for. An empty text is the empty value, if the type has one. The
/// caller handles the timestamp `now`, because there is no clock here.
pub fn parse_text(ty: &CqlType, text: &str) -> Result<Vec<u8>, TypeError> {
    let refuse = |message: String| TypeError::Text(message);
    match ty {
        CqlType::Text => Ok(text.as_bytes().to_vec()),
        CqlType::Ascii if text.is_ascii() => Ok(text.as_bytes().to_vec()),
        CqlType::Ascii => {
            // Java counts a character beyond 16 bits as two
            let length = text.chars().find(|one| !one.is_ascii()).map_or(1, char::len_utf16);
            Err(refuse(format!(
                "Invalid ASCII character in string literal: java.nio.charset.UnmappableCharacterException: Input length = {length}"
            )))
        }
        CqlType::Blob => blob(text),
        CqlType::Boolean => boolean(text),
        CqlType::Date => Ok(temporal::parse_date(text)?.to_be_bytes().to_vec()),
        CqlType::Time => Ok(temporal::parse_time(text)?.to_be_bytes().to_vec()),
        CqlType::Tuple(types) => tuple(ty, &types.iter().collect::<Vec<_>>(), text),
        CqlType::Udt(udt, _) => tuple(ty, &udt.fields.iter().map(|(_, ty)| ty).collect::<Vec<_>>(), text),
        CqlType::List { .. } | CqlType::Set { .. } | CqlType::Map { .. } | CqlType::Vector { .. } => blob(text),
        CqlType::Counter => blob(text),
        CqlType::Custom(custom) => parse_custom(custom, text),
        _ if text.is_empty() => Ok(Vec::new()),
        CqlType::Empty => Err(refuse(format!("'{text}' is not empty"))),
        CqlType::TinyInt => integer(text.parse::<i8>().map(i8::to_be_bytes), "byte", text),
        CqlType::SmallInt => integer(text.parse::<i16>().map(i16::to_be_bytes), "short", text),
        CqlType::Int => integer(text.parse::<i32>().map(i32::to_be_bytes), "int", text),
        CqlType::BigInt => integer(text.parse::<i64>().map(i64::to_be_bytes), "long", text),
        CqlType::Varint => {
            let value = java_number::parse_integer(text);
            Ok(value.ok_or_else(|| not_a_number("int", text))?.to_signed_bytes_be())
        }
        CqlType::Decimal => {
            let value = java_number::parse_decimal(text);
            let (unscaled, scale) = value.ok_or_else(|| not_a_number("BigDecimal", text))?;
            Ok(encode_decimal(&unscaled, scale))
        }
        CqlType::Float => {
            let value = java_number::parse_float(text);
            let value = value.ok_or_else(|| refuse(format!("Unable to make float from '{text}'")))?;
            Ok(value.to_be_bytes().to_vec())
        }
        CqlType::Double => {
            let value = java_number::parse_double(text);
            let value = value.ok_or_else(|| refuse(format!("Unable to make double from '{text}'")))?;
            Ok(value.to_be_bytes().to_vec())
        }
        CqlType::Timestamp => Ok(temporal::parse_timestamp(text)?.to_be_bytes().to_vec()),
        CqlType::Duration => Ok(Duration::parse(text)?.encode()),
        CqlType::Inet => inet::parse(text).ok_or_else(|| refuse(format!("Unable to make inet address from '{text}'"))),
        CqlType::Uuid => {
            let uuid = parse_uuid(text).ok_or_else(|| refuse(format!("Unable to make UUID from '{text}'")))?;
            Ok(uuid.to_vec())
        }
        CqlType::TimeUuid => {
            let uuid = parse_uuid(text).ok_or_else(|| refuse(format!("Unknown timeuuid representation: {text}")))?;
            if !timeuuid::is_timeuuid(&uuid) {
                return Err(refuse("TimeUUID supports only version 1 UUIDs".to_owned()));
            }
            Ok(uuid.to_vec())
        }
    }
}

fn blob(text: &str) -> Result<Vec<u8>, TypeError> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    unhex(digits).ok_or_else(|| TypeError::Text(format!("cannot parse '{text}' as hex bytes")))
}

fn boolean(text: &str) -> Result<Vec<u8>, TypeError> {
    if text.is_empty() || text.eq_ignore_ascii_case("false") {
        return Ok(vec![0]);
    }
    if text.eq_ignore_ascii_case("true") {
        return Ok(vec![1]);
    }
    Err(TypeError::Text(format!("Unable to make boolean from '{text}'")))
}

fn integer<const N: usize, E>(value: Result<[u8; N], E>, what: &str, text: &str) -> Result<Vec<u8>, TypeError> {
    value.map(Vec::from).map_err(|_| TypeError::Text(format!("Unable to make {what} from '{text}'")))
}

/// Why a text is no varint or decimal; a long text is not repeated.
fn not_a_number(what: &str, text: &str) -> TypeError {
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    TypeError::Text(match digits > radix::DIGITS_MAX {
        true => format!("unable to make {what} from a text of {digits} digits; {} are read at most", radix::DIGITS_MAX),
        false => format!("unable to make {what} from '{text}'"),
    })
}

/// Fields with `:` between them, `@` for null; `\:` and `\@` stand for the characters.
fn tuple(ty: &CqlType, types: &[&CqlType], text: &str) -> Result<Vec<u8>, TypeError> {
    let parts = split_colons(text);
    if parts.len() > types.len() {
        return Err(TypeError::Text(format!(
            "Invalid tuple literal: too many elements. Type {} expects {} but got {}",
            ty.cql_name(),
            types.len(),
            parts.len()
        )));
    }
    let mut fields = Vec::with_capacity(parts.len());
    for (part, ty) in parts.iter().zip(types) {
        let field =
            if part == "@" { None } else { Some(parse_text(ty, &part.replace("\\:", ":").replace("\\@", "@"))?) };
        fields.push(field);
    }
    Ok(collection::build_tuple(&fields))
}

/// The parts of a text between colons without a backslash before them; an empty text has no part.
fn split_colons(text: &str) -> Vec<String> {
    if text.is_empty() {
        return Vec::new();
    }
    let mut parts = vec![String::new()];
    let mut escaped = false;
    for c in text.chars() {
        match c {
            ':' if !escaped => parts.push(String::new()),
            _ => parts.last_mut().expect("never empty").push(c),
        }
        escaped = c == '\\';
    }
    parts
}

fn parse_custom(custom: &CustomType, text: &str) -> Result<Vec<u8>, TypeError> {
    match custom {
        CustomType::LexicalUuid if text.is_empty() => Ok(Vec::new()),
        CustomType::LexicalUuid => {
            let uuid = parse_uuid(text).ok_or_else(|| TypeError::Text(format!("unable to make UUID from '{text}'")))?;
            Ok(uuid.to_vec())
        }
        CustomType::LegacyDate => parse_text(&CqlType::Timestamp, text),
        CustomType::Reversed(ty) => parse_text(ty, text),
        CustomType::Composite(types) => composite(types, text),
        CustomType::DynamicComposite(aliases) => dynamic_composite(aliases, text),
        CustomType::PartitionerDefinedOrder(_) | CustomType::Unknown(_) => blob(text),
    }
}

/// Reads components with `:` between them; a lone `!` at the end raises the end-of-component byte.
fn composite(types: &[CqlType], text: &str) -> Result<Vec<u8>, TypeError> {
    let mut out = Vec::new();
    let mut parts = split_colons(text);
    let after = parts.last().is_some_and(|part| part == "!");
    if after {
        parts.pop();
    }
    for (index, part) in parts.iter().enumerate() {
        let ty = types.get(index).ok_or_else(|| TypeError::Text(format!("Too many components in '{text}'")))?;
        put_component(&mut out, &parse_text(ty, &part.replace("\\:", ":"))?, after && index + 1 == parts.len())?;
    }
    Ok(out)
}

/// Like [`composite`], with each component as `alias@value`.
fn dynamic_composite(aliases: &[(u8, CqlType)], text: &str) -> Result<Vec<u8>, TypeError> {
    const ALIAS: u16 = 0x8000;
    let refuse = || TypeError::Text(format!("Invalid component for the dynamic composite type in '{text}'"));
    let mut out = Vec::new();
    let mut parts = split_colons(text);
    let after = parts.last().is_some_and(|part| part == "!");
    if after {
        parts.pop();
    }
    for (index, part) in parts.iter().enumerate() {
        let (alias, value) = part.split_once('@').ok_or_else(refuse)?;
        let &[alias] = alias.as_bytes() else { return Err(refuse()) };
        let (_, ty) = aliases.iter().find(|(known, _)| *known == alias).ok_or_else(refuse)?;
        stdx::put_u16(&mut out, ALIAS | u16::from(alias));
        put_component(&mut out, &parse_text(ty, &value.replace("\\:", ":"))?, after && index + 1 == parts.len())?;
    }
    Ok(out)
}

fn put_component(out: &mut Vec<u8>, component: &[u8], after: bool) -> Result<(), TypeError> {
    if component.len() > crate::composite::KEY_BYTES_MAX {
        return Err(TypeError::Text(format!("A component of {} bytes is too long", component.len())));
    }
    stdx::put_short_bytes(out, component);
    out.push(u8::from(after));
    Ok(())
}

/// The value as CQL literal: in quotes where CQL requires them; `null` for an empty value of a type
/// that has none.
pub fn to_text(ty: &CqlType, bytes: &[u8]) -> String {
    let mut out = String::new();
    put_text(&mut out, ty, Some(bytes));
    out
}

/// The value as CQL literal, scalars without quotes. Casts to text give this form.
pub fn to_text_unquoted(ty: &CqlType, bytes: &[u8]) -> String {
    match ty {
        CqlType::Text | CqlType::Ascii => lossy(bytes).replace('\'', "''"),
        _ if is_quoted(ty) && !bytes.is_empty() => to_plain_text(ty, bytes),
        _ => to_text(ty, bytes),
    }
}

/// The value as Cassandra's tools print it: no quotes, blobs and collections as hex digits, an
/// empty value as nothing.
pub fn to_plain_text(ty: &CqlType, bytes: &[u8]) -> String {
    match ty {
        CqlType::Tuple(types) => plain_fields(&types.iter().collect::<Vec<_>>(), bytes),
        CqlType::Udt(udt, _) => plain_fields(&udt.fields.iter().map(|(_, ty)| ty).collect::<Vec<_>>(), bytes),
        CqlType::Custom(custom) => match custom.as_ref() {
            CustomType::Reversed(ty) => to_plain_text(ty, bytes),
            CustomType::LexicalUuid => to_plain_text(&CqlType::Uuid, bytes),
            CustomType::LegacyDate => to_plain_text(&CqlType::Timestamp, bytes),
            CustomType::Composite(types) => plain_components(types, bytes),
            CustomType::DynamicComposite(aliases) => plain_dynamic_components(aliases, bytes),
            _ => hex(bytes),
        },
        _ => scalar(ty, bytes).unwrap_or_else(|| hex(bytes)),
    }
}

fn plain_fields(types: &[&CqlType], bytes: &[u8]) -> String {
    let fields = collection::Fields::new(bytes).map_while(Result::ok).zip(types);
    let fields = fields.map(|(field, ty)| match field {
        Some(field) => to_plain_text(ty, field).replace(':', "\\:").replace('@', "\\@"),
        None => "@".to_owned(),
    });
    fields.collect::<Vec<_>>().join(":")
}

fn plain_components(types: &[CqlType], bytes: &[u8]) -> String {
    let parts = components(bytes).map_while(|component| component).zip(types);
    let mut parts: Vec<_> = parts.map(|(value, ty)| escape(&to_plain_text(ty, value))).collect();
    if bytes.last().is_some_and(|end| *end != 0) {
        parts.push("!".to_owned());
    }
    parts.join(":")
}

fn plain_dynamic_components(aliases: &[(u8, CqlType)], bytes: &[u8]) -> String {
    let mut cursor = Cursor::new(bytes);
    let mut parts = Vec::new();
    while let Ok(header) = cursor.u16() {
        let alias = aliases.iter().find(|(alias, _)| header & 0x8000 != 0 && *alias == header as u8);
        let class = if header & 0x8000 == 0 { cursor.take(usize::from(header)) } else { Ok(&[][..]) };
        let (Ok(class), Ok(value), Ok(end)) = (class, cursor.short_bytes(), cursor.u8()) else { break };
        let (name, value) = match alias {
            Some((alias, ty)) => (char::from(*alias).to_string(), to_plain_text(ty, value)),
            None => (lossy(class).into_owned(), hex(value)),
        };
        parts.push(format!("{name}@{}", value.replace(':', "\\:")));
        if end != 0 {
            parts.push("!".to_owned());
        }
    }
    parts.join(":")
}

/// The bytes as text; what is not UTF-8 is replaced.
fn lossy(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// Whether literals of the type stand in quotes.
fn is_quoted(ty: &CqlType) -> bool {
    use CqlType::{Ascii, Date, Inet, Text, Time, Timestamp};
    matches!(ty, Ascii | Text | Inet | Date | Time | Timestamp)
}

fn put_text(out: &mut String, ty: &CqlType, value: Option<&[u8]>) {
    let Some(bytes) = value else { return out.push_str("null") };
    match ty {
        CqlType::Text | CqlType::Ascii => {
            out.push('\'');
            out.push_str(&lossy(bytes).replace('\'', "''"));
            out.push('\'');
        }
        CqlType::Blob | CqlType::Custom(_) => {
            out.push_str("0x");
            out.push_str(&hex(bytes));
        }
        CqlType::List { element, .. } => put_sequence(out, ['[', ']'], collection::elements(bytes), element),
        CqlType::Set { element, .. } => put_sequence(out, ['{', '}'], collection::elements(bytes), element),
        CqlType::Vector { element, dimension } => {
            let elements = VectorElements::new(element, *dimension, bytes).map_while(Result::ok);
            put_sequence(out, ['[', ']'], elements, element);
        }
        CqlType::Map { key, value, .. } => put_list(out, ['{', '}'], collection::entries(bytes), |out, (k, v)| {
            put_text(out, key, Some(k));
            out.push_str(": ");
            put_text(out, value, Some(v));
        }),
        CqlType::Tuple(types) => {
            let fields = collection::Fields::new(bytes).map_while(Result::ok).zip(types.iter());
            put_list(out, ['(', ')'], fields, |out, (field, ty)| put_text(out, ty, field));
        }
        CqlType::Udt(udt, _) => {
            let fields = collection::Fields::new(bytes).map_while(Result::ok).zip(&udt.fields);
            put_list(out, ['{', '}'], fields, |out, (field, (name, ty))| {
                out.push_str(&maybe_quote(name));
                out.push_str(": ");
                put_text(out, ty, field);
            });
        }
        _ if bytes.is_empty() => out.push_str("null"),
        _ => {
            let text = scalar(ty, bytes).unwrap_or_else(|| format!("0x{}", hex(bytes)));
            let quote = if is_quoted(ty) { "'" } else { "" };
            out.push_str(quote);
            out.push_str(&text);
            out.push_str(quote);
        }
    }
}

fn put_sequence<'a>(out: &mut String, around: [char; 2], items: impl Iterator<Item = &'a [u8]>, ty: &CqlType) {
    put_list(out, around, items, |out, item| put_text(out, ty, Some(item)));
}

/// Appends items between two characters, with commas in between.
pub(crate) fn put_list<T>(
    out: &mut String,
    [open, close]: [char; 2],
    items: impl Iterator<Item = T>,
    mut put: impl FnMut(&mut String, T),
) {
    out.push(open);
    for (index, item) in items.enumerate() {
        if index > 0 {
            out.push_str(", ");
        }
        put(out, item);
    }
    out.push(close);
}

/// A scalar without quotes; empty if the value is. None: the bytes are not a value of the type, or
/// the type is no scalar.
pub(crate) fn scalar(ty: &CqlType, bytes: &[u8]) -> Option<String> {
    match ty {
        CqlType::Text | CqlType::Ascii => return Some(lossy(bytes).into_owned()),
        CqlType::Blob => return Some(hex(bytes)),
        _ if bytes.is_empty() => return Some(String::new()),
        _ => {}
    }
    Some(match ty {
        CqlType::Boolean => (bytes[0] != 0).to_string(),
        CqlType::TinyInt => i8::from_be_bytes(array(bytes)?).to_string(),
        CqlType::SmallInt => i16::from_be_bytes(array(bytes)?).to_string(),
        CqlType::Int => i32::from_be_bytes(array(bytes)?).to_string(),
        CqlType::BigInt | CqlType::Counter => i64::from_be_bytes(array(bytes)?).to_string(),
        CqlType::Varint => radix::print_signed(&BigInt::from_signed_bytes_be(bytes)),
        CqlType::Decimal => {
            let (unscaled, scale) = decode_decimal(bytes)?;
            java_number::print_decimal(&unscaled, scale)
        }
        CqlType::Float => java_number::print_float(f32::from_be_bytes(array(bytes)?)),
        CqlType::Double => java_number::print_double(f64::from_be_bytes(array(bytes)?)),
        CqlType::Timestamp => temporal::print_timestamp(i64::from_be_bytes(array(bytes)?), 'T'),
        CqlType::Date => temporal::print_date(u32::from_be_bytes(array(bytes)?)),
        CqlType::Time => temporal::print_time(i64::from_be_bytes(array(bytes)?)),
        CqlType::Duration => Duration::decode(bytes)?.to_string(),
        CqlType::Inet => inet::print(bytes)?,
        CqlType::Uuid | CqlType::TimeUuid => print_uuid(&array(bytes)?),
        _ => return None,
    })
}

fn array<const N: usize>(bytes: &[u8]) -> Option<[u8; N]> {
    bytes.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn scalars_go_there_and_back() {
        let cases = [
            (CqlType::Int, "-5", "-5"),
            (CqlType::TinyInt, "127", "127"),
            (CqlType::BigInt, "+9", "9"),
            (CqlType::Varint, "-123456789012345678901234567890", "-123456789012345678901234567890"),
            (CqlType::Decimal, "1.50", "1.50"),
            (CqlType::Float, "1e10", "1.0E10"),
            (CqlType::Double, "NaN", "NaN"),
            (CqlType::Boolean, "TRUE", "true"),
            (CqlType::Text, "it's", "'it''s'"),
            (CqlType::Text, "", "''"),
            (CqlType::Blob, "0xCAFE", "0xcafe"),
            (CqlType::Blob, "", "0x"),
            (CqlType::Uuid, "50554d6e-29bb-11e5-b345-FEFF819CDC9F", "50554d6e-29bb-11e5-b345-feff819cdc9f"),
            (CqlType::Inet, "::1", "'0:0:0:0:0:0:0:1'"),
            (CqlType::Date, "2024-02-29", "'2024-02-29'"),
            (CqlType::Time, "10:11:12", "'10:11:12.000000000'"),
            (CqlType::Timestamp, "2024-02-29 10:11+0000", "'2024-02-29T10:11:00.000Z'"),
            (CqlType::Duration, "1h30m", "1h30m"),
            (CqlType::Int, "", "null"),
            (CqlType::Timestamp, "", "null"),
        ];
        for (ty, text, printed) in cases {
            let value = parse_text(&ty, text).expect(text);
            crate::validate(&ty, &value).expect(text);
            assert_eq!(to_text(&ty, &value), printed);
        }
    }

    #[test]
    fn what_is_refused_says_what_cassandra_says() {
        let cases = [
            (CqlType::Int, "x", "Unable to make int from 'x'"),
            (CqlType::TinyInt, "128", "Unable to make byte from '128'"),
            (CqlType::Varint, "1.0", "unable to make int from '1.0'"),
            (CqlType::Decimal, "x", "unable to make BigDecimal from 'x'"),
            (CqlType::Boolean, "yes", "Unable to make boolean from 'yes'"),
            (CqlType::Blob, "0xabc", "cannot parse '0xabc' as hex bytes"),
            (CqlType::Uuid, "x", "Unable to make UUID from 'x'"),
            (CqlType::TimeUuid, "50554d6e-29bb-41e5-b345-feff819cdc9f", "TimeUUID supports only version 1 UUIDs"),
            (CqlType::Inet, "nohost", "Unable to make inet address from 'nohost'"),
        ];
        for (ty, text, message) in cases {
            assert_eq!(parse_text(&ty, text).expect_err(text).to_string(), message);
        }
        let long = "1".repeat(4_000_000);
        for (ty, name) in [(CqlType::Varint, "int"), (CqlType::Decimal, "BigDecimal")] {
            let error = parse_text(&ty, &long).expect_err("too long").to_string();
            assert_eq!(error, format!("unable to make {name} from a text of 4000000 digits; 1000000 are read at most"));
        }
    }

    #[test]
    fn nested_values_are_literals() {
        let list = CqlType::List { element: Arc::new(CqlType::Text), frozen: true };
        assert_eq!(to_text(&list, &collection::build_list(&["a", "b'c"])), "['a', 'b''c']");
        let tuple = CqlType::Tuple(Arc::new([CqlType::Int, CqlType::Text, CqlType::Int]));
        let value = parse_text(&tuple, "1:a\\:b\\@c:@").expect("a tuple");
        assert_eq!(to_text(&tuple, &value), "(1, 'a:b@c', null)");
        assert_eq!(to_plain_text(&tuple, &value), "1:a\\:b\\@c:@");
        let vector = CqlType::Vector { element: Arc::new(CqlType::Float), dimension: 2 };
        let value = collection::build_vector(&CqlType::Float, &[1f32.to_be_bytes(), 2.5f32.to_be_bytes()]);
        assert_eq!(to_text(&vector, &value), "[1.0, 2.5]");
        let map = CqlType::Map { key: Arc::new(CqlType::Int), value: Arc::new(vector), frozen: false };
        let value = collection::build_map(&CqlType::Int, vec![(1i32.to_be_bytes(), value)]);
        assert_eq!(to_text(&map, &value), "{1: [1.0, 2.5]}");
    }
}
