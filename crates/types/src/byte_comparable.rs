//! Byte-comparable forms ("OSS50"): byte strings whose unsigned order is the order of the values.
//! They are the keys of BTI tries and of memtables.
//!
//! Agrees with `asComparableBytes` of each class of `org.apache.cassandra.db.marshal` and with
//! `org.apache.cassandra.utils.bytecomparable.ByteSource`; the rules are in docs/formats/types.md.

use bytes::Bytes;
use stdx::Cursor;

use crate::compare::{class_names, time_of, trim_sign};
use crate::decimal::Decimal;
use crate::{CqlType, CustomType, Token};

/// Last byte of the clustering of a row.
pub const TERMINATOR_CLUSTERING: u8 = 0x38;
/// Last byte of a bound that sorts before every clustering that extends it: INCL_START, EXCL_END
/// and the boundary of both.
pub const TERMINATOR_BEFORE: u8 = 0x20;
/// Last byte of a bound that sorts after every clustering that extends it: EXCL_START, INCL_END and
/// the boundary of both.
pub const TERMINATOR_AFTER: u8 = 0x60;
/// Last byte of the static clustering.
pub const TERMINATOR_STATIC: u8 = 0x18;

const NEXT_COMPONENT: u8 = 0x40;
const NEXT_COMPONENT_NULL: u8 = 0x3e;
const NEXT_COMPONENT_EMPTY: u8 = 0x3f;
const NEXT_COMPONENT_EMPTY_REVERSED: u8 = 0x41;
const TERMINATOR: u8 = 0x38;

/// The bits of the float that stands for all NaNs: [`crate::compare`] takes them for equal, and for
/// greater than every number.
const FLOAT_NAN: &[u8] = &[0x7f, 0xc0, 0x00, 0x00];
/// The bits of the double that stands for all NaNs.
const DOUBLE_NAN: &[u8] = &[0x7f, 0xf8, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00];

/// Which form a value gets where the order of Cassandra's forms is not that of its values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ByteForm {
    /// The form whose order is that of [`crate::compare`]. Whatever is kept in the order of forms
    /// needs it, because SSTables are written in the order of `compare`: memtables, the tries that
    /// are written.
    Ordered,
    /// The form that Cassandra gives the value: the bits of a NaN are kept, and an empty field of a
    /// tuple is as a null. Row indexes that Cassandra wrote have separators of this form, and its
    /// partition indexes of legacy indexes have keys of this form.
    Cassandra,
}

/// Whether the two forms of some value of the type differ.
pub fn has_two_forms(ty: &CqlType) -> bool {
    ty.any(&mut |ty| matches!(ty, CqlType::Float | CqlType::Double | CqlType::Tuple(_) | CqlType::Udt(..)))
}

/// Appends the form of clustering values and `terminator`. `types` gives for each clustering column
/// its type and whether its order is reversed.
pub fn encode_clustering(types: &[(CqlType, bool)], values: &[Option<Bytes>], terminator: u8, out: &mut Vec<u8>) {
    encode_clustering_in(ByteForm::Ordered, types, values, terminator, out);
}

/// As [`encode_clustering`], in one of both forms.
pub fn encode_clustering_in(
    form: ByteForm,
    types: &[(CqlType, bool)],
    values: &[Option<Bytes>],
    terminator: u8,
    out: &mut Vec<u8>,
) {
    for ((ty, reversed), value) in types.iter().zip(values) {
        match value {
            None => out.push(NEXT_COMPONENT_NULL),
            Some(value) if value.is_empty() && !empty_has_form(ty) => {
                out.push(if *reversed { NEXT_COMPONENT_EMPTY_REVERSED } else { NEXT_COMPONENT_EMPTY });
            }
            Some(value) => {
                out.push(NEXT_COMPONENT);
                let start = out.len();
                encode_value(form, ty, value, out);
                if *reversed {
                    out[start..].iter_mut().for_each(|byte| *byte = !*byte);
                }
            }
        }
    }
    out.push(terminator);
}

/// Appends the form of a partition key with its token.
pub fn encode_decorated_key(token: Token, key: &[u8], out: &mut Vec<u8>) {
    out.push(NEXT_COMPONENT);
    out.extend_from_slice(&((token.0 as u64) ^ (1 << 63)).to_be_bytes());
    out.push(NEXT_COMPONENT);
    escape(key, out);
    out.push(TERMINATOR);
}

/// Appends the form of a key's position in the order of its type, with the separator before it.
/// Cassandra's tokens of such keys compare by the type, and so does this form.
pub fn encode_local_token(ty: &CqlType, key: &[u8], out: &mut Vec<u8>) {
    encode_local_token_in(ByteForm::Ordered, ty, key, out);
}

/// As [`encode_local_token`], in one of both forms. The one of Cassandra agrees with
/// `LocalPartitioner.LocalToken.asComparableBytes`, as `DecoratedKey.asComparableBytes` embeds it.
pub fn encode_local_token_in(form: ByteForm, ty: &CqlType, key: &[u8], out: &mut Vec<u8>) {
    if key.is_empty() && !empty_has_form(ty) {
        out.push(NEXT_COMPONENT_NULL);
        return;
    }
    out.push(NEXT_COMPONENT);
    encode_value(form, ty, key, out);
}

/// The order of two positions that [`encode_local_token`] gave: that of the whole keys' forms. One
/// may be the beginning of the other (text without its last zero byte): the separator behind the
/// shorter one decides then, which stands behind what a descending order goes on with.
pub fn compare_local(a: &[u8], b: &[u8]) -> std::cmp::Ordering {
    let common = a.len().min(b.len());
    let next = |form: &[u8]| form.get(common).copied().unwrap_or(NEXT_COMPONENT);
    a[..common].cmp(&b[..common]).then_with(|| next(a).cmp(&next(b))).then_with(|| a.len().cmp(&b.len()))
}

/// Appends the form of a key whose position [`encode_local_token`] gave.
pub fn encode_local_key(local: &[u8], key: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(local);
    out.push(NEXT_COMPONENT);
    escape(key, out);
    out.push(TERMINATOR);
}

/// The form that Cassandra gives a key whose position [`encode_local_token`] gave; `None`: it is
/// the one of [`encode_local_key`].
pub fn local_key_of_cassandra(ty: &CqlType, local: &[u8], key: &[u8]) -> Option<Vec<u8>> {
    if !has_two_forms(ty) {
        return None;
    }
    let mut form = Vec::with_capacity(local.len() + key.len() + 8);
    encode_local_token_in(ByteForm::Cassandra, ty, key, &mut form);
    if form == local {
        return None;
    }
    encode_local_key(&[], key, &mut form);
    Some(form)
}

/// Whether an empty value of the type has a form of its own. Other types encode an empty value like
/// null.
fn empty_has_form(ty: &CqlType) -> bool {
    match ty {
        CqlType::Text | CqlType::Ascii | CqlType::Blob | CqlType::Inet => true,
        CqlType::Custom(custom) => match custom.as_ref() {
            CustomType::Unknown(_) => true,
            CustomType::Reversed(ty) => empty_has_form(ty),
            _ => false,
        },
        _ => false,
    }
}

/// Appends the form of a value that is not empty, or whose type gives the empty value a form.
fn encode_value(form: ByteForm, ty: &CqlType, value: &[u8], out: &mut Vec<u8>) {
    match ty {
        CqlType::Text | CqlType::Ascii | CqlType::Blob | CqlType::Inet => escape(value, out),
        CqlType::TinyInt | CqlType::SmallInt | CqlType::Int | CqlType::Timestamp => flipped(value, out),
        CqlType::BigInt | CqlType::Counter => match value.first_chunk::<8>() {
            Some(bytes) => variable_signed(i64::from_be_bytes(*bytes), out),
            None => escape(value, out),
        },
        CqlType::Varint => varint(value, out),
        CqlType::Float => {
            let is_nan = value.first_chunk::<4>().is_some_and(|bytes| f32::from_be_bytes(*bytes).is_nan());
            floating(if is_nan && form == ByteForm::Ordered { FLOAT_NAN } else { value }, out);
        }
        CqlType::Double => {
            let is_nan = value.first_chunk::<8>().is_some_and(|bytes| f64::from_be_bytes(*bytes).is_nan());
            floating(if is_nan && form == ByteForm::Ordered { DOUBLE_NAN } else { value }, out);
        }
        CqlType::Boolean => out.push(u8::from(value.first().is_some_and(|byte| *byte != 0))),
        CqlType::Date | CqlType::Time => out.extend_from_slice(value),
        CqlType::Uuid => uuid(value, out),
        CqlType::TimeUuid => timeuuid(value, out),
        CqlType::Decimal => decimal(value, out),
        CqlType::List { element, .. } | CqlType::Set { element, .. } => collection(form, value, &[element], out),
        CqlType::Map { key, value: val, .. } => collection(form, value, &[key, val], out),
        CqlType::Tuple(types) => fields(form, value, &types.iter().collect::<Vec<_>>(), out),
        CqlType::Udt(udt, _) => {
            fields(form, value, &udt.fields.iter().map(|(_, ty)| ty).collect::<Vec<_>>(), out);
        }
        CqlType::Vector { element, dimension } => vector(form, value, element, *dimension, out),
        CqlType::Custom(custom) => custom_value(form, custom, value, out),
        CqlType::Empty => {}
        CqlType::Duration => escape(value, out),
    }
}

fn floating(value: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(value);
    match out.get(start) {
        Some(first) if *first >= 0x80 => out[start..].iter_mut().for_each(|byte| *byte = !*byte),
        Some(_) => out[start] ^= 0x80,
        None => {}
    }
}

fn flipped(value: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(value);
    if let Some(first) = out.get_mut(start) {
        *first ^= 0x80;
    }
}

/// Escapes zero bytes so that no form is a prefix of another (rules of `E` in
/// docs/formats/types.md).
fn escape(bytes: &[u8], out: &mut Vec<u8>) {
    out.reserve(bytes.len() + 1);
    let mut rest = bytes;
    while let Some(zero) = rest.iter().position(|byte| *byte == 0) {
        out.extend_from_slice(&rest[..=zero]);
        rest = &rest[zero + 1..];
        let zeros = rest.iter().take_while(|byte| **byte == 0).count();
        out.resize(out.len() + zeros, 0xfe);
        rest = &rest[zeros..];
        if rest.is_empty() {
            out.push(0xfe);
            return;
        }
        out.push(0xff);
    }
    out.extend_from_slice(rest);
    out.push(0x00);
}

/// Appends an unsigned integer whose leading one bits count the bytes that follow.
fn variable_unsigned(value: u64, out: &mut Vec<u8>) {
    let bits = 64 - (value | 1).leading_zeros() as usize;
    let extra = (bits - 1) / 7;
    if extra >= 8 {
        out.push(0xff);
        out.extend_from_slice(&value.to_be_bytes());
        return;
    }
    let mut bytes = value.to_be_bytes();
    let start = 7 - extra;
    bytes[start] |= !(0xffu16 >> extra) as u8;
    out.extend_from_slice(&bytes[start..]);
}

fn variable_signed(value: i64, out: &mut Vec<u8>) {
    let start = out.len();
    let magnitude = if value < 0 { !value } else { value } as u64;
    let bits = 64 - (magnitude | 1).leading_zeros() as usize;
    let length = bits / 7 + 1;
    if length >= 9 {
        out.push(0xff);
        out.extend_from_slice(&(magnitude | 1 << 63).to_be_bytes());
    } else {
        let mut bytes = magnitude.to_be_bytes();
        let first = 8 - length;
        // a mask of `length` leading ones over the bytes that are written
        let mask = (!0u64 << (64 - length)) >> (8 * first);
        let masked = (magnitude | mask).to_be_bytes();
        bytes.copy_from_slice(&masked);
        out.extend_from_slice(&bytes[first..]);
    }
    if value < 0 {
        out[start..].iter_mut().for_each(|byte| *byte = !*byte);
    }
}

fn varint(value: &[u8], out: &mut Vec<u8>) {
    const FULL_FORM: usize = 7;
    let Some(sign) = value.first().map(|byte| if *byte >= 0x80 { 0xffu8 } else { 0x00 }) else { return };
    // drop redundant sign bytes while the next byte repeats them, and keep the first byte that
    // differs
    let mut rest = value;
    while let [first, next, ..] = rest {
        if *first != sign || next != first {
            break;
        }
        rest = &rest[1..];
    }
    if let [first, _, ..] = rest
        && *first == sign
    {
        rest = &rest[1..];
    }
    if rest.len() < FULL_FORM {
        let trimmed = trim_sign(value);
        let mut wide = [sign; 8];
        if let Some(tail) = wide.len().checked_sub(trimmed.len()) {
            wide[tail..].copy_from_slice(trimmed);
            return variable_signed(i64::from_be_bytes(wide), out);
        }
    }
    out.push(if sign == 0 { 0xff } else { 0x00 });
    let start = out.len();
    variable_unsigned((rest.len() - FULL_FORM) as u64, out);
    if sign != 0 {
        out[start..].iter_mut().for_each(|byte| *byte = !*byte);
    }
    out.extend_from_slice(rest);
}

fn uuid(value: &[u8], out: &mut Vec<u8>) {
    let Some(bytes) = value.first_chunk::<16>() else { return escape(value, out) };
    let high = if bytes[6] >> 4 == 1 {
        time_of(bytes)
    } else {
        let mut first = [0u8; 8];
        first.copy_from_slice(&bytes[..8]);
        let first = u64::from_be_bytes(first);
        let version = u64::from(bytes[6] >> 4);
        version << 60 | (first >> 4 & 0x0fff_ffff_ffff_f000) | first & 0xfff
    };
    out.extend_from_slice(&high.to_be_bytes());
    out.extend_from_slice(&bytes[8..]);
}

fn timeuuid(value: &[u8], out: &mut Vec<u8>) {
    let Some(bytes) = value.first_chunk::<16>() else { return escape(value, out) };
    out.extend_from_slice(&time_of(bytes).to_be_bytes());
    out.extend(bytes[8..].iter().map(|byte| byte ^ 0x80));
}

fn decimal(value: &[u8], out: &mut Vec<u8>) {
    use num_traits::Zero;
    let Some(Decimal { unscaled, scale }) = Decimal::decode(value) else { return escape(value, out) };
    if unscaled.is_zero() {
        out.push(0x80);
        return;
    }
    let negative = unscaled.sign() == num_bigint::Sign::Minus;
    let digits = crate::radix::print(unscaled.magnitude()).into_bytes();
    // value = 0.d1d2d3… × 10^(digits - scale); the exponent of 100 rounds that up to even
    let exponent_of_ten = digits.len() as i64 - i64::from(scale);
    let exponent = exponent_of_ten.div_euclid(2) + exponent_of_ten.rem_euclid(2);
    let odd = exponent_of_ten.rem_euclid(2) == 1;
    let signed_exponent = if negative { -exponent } else { exponent };
    let width = (64 - signed_exponent.unsigned_abs().leading_zeros() as usize).div_ceil(8);
    let base: i16 = if negative { 0x40 } else { 0xc0 };
    let header = if signed_exponent < 0 { base - width as i16 } else { base + width as i16 };
    out.push(header as u8);
    out.extend_from_slice(&signed_exponent.to_be_bytes()[8 - width..]);
    put_mantissa(&digits, odd, negative, out);
}

/// Appends base-100 digits, each plus 80. Negative numbers round toward minus infinity, so every
/// digit but the last borrows.
fn put_mantissa(digits: &[u8], odd: bool, negative: bool, out: &mut Vec<u8>) {
    let mut padded = Vec::with_capacity(digits.len() + 2);
    if odd {
        padded.push(b'0');
    }
    padded.extend_from_slice(digits);
    if padded.len() % 2 == 1 {
        padded.push(b'0');
    }
    let mut pairs: Vec<i16> =
        padded.chunks_exact(2).map(|pair| i16::from(pair[0] - b'0') * 10 + i16::from(pair[1] - b'0')).collect();
    while pairs.last() == Some(&0) {
        pairs.pop();
    }
    let last = pairs.len().saturating_sub(1);
    for (index, pair) in pairs.iter().enumerate() {
        // floor(100·m) of a negative mantissa is one less, except where nothing remains; what
        // remains is then positive
        let digit = match (negative, index) {
            (false, _) => *pair,
            (true, 0) => {
                if index == last {
                    -pair
                } else {
                    -pair - 1
                }
            }
            (true, _) => {
                if index == last {
                    100 - pair
                } else {
                    99 - pair
                }
            }
        };
        out.push((digit + 0x80) as u8);
    }
    out.push(0x00);
}

fn source(form: ByteForm, ty: &CqlType, value: Option<&[u8]>, out: &mut Vec<u8>) {
    match value {
        Some(value) if !value.is_empty() || empty_has_form(ty) => {
            out.push(NEXT_COMPONENT);
            encode_value(form, ty, value, out);
        }
        _ => out.push(NEXT_COMPONENT_NULL),
    }
}

fn collection(form: ByteForm, value: &[u8], types: &[&std::sync::Arc<CqlType>], out: &mut Vec<u8>) {
    let mut cursor = Cursor::new(value);
    let count = cursor.i32().unwrap_or(0);
    'elements: for _ in 0..count {
        for ty in types {
            let Ok(element) = cursor.int_bytes() else { break 'elements };
            source(form, ty.as_ref(), element, out);
        }
    }
    out.push(TERMINATOR);
}

fn fields(form: ByteForm, value: &[u8], types: &[&CqlType], out: &mut Vec<u8>) {
    let mut cursor = Cursor::new(value);
    let mut values: Vec<Option<&[u8]>> = Vec::with_capacity(types.len());
    while values.len() < types.len() && !cursor.is_empty() {
        let Ok(field) = cursor.int_bytes() else { break };
        values.push(field);
    }
    while values.last().is_some_and(Option::is_none) {
        values.pop();
    }
    for (ty, value) in types.iter().zip(&values) {
        let is_empty = value.is_some_and(<[u8]>::is_empty) && !empty_has_form(ty);
        match form {
            // null and empty are two values
            ByteForm::Ordered if is_empty => out.push(NEXT_COMPONENT_EMPTY),
            _ => source(form, ty, *value, out),
        }
    }
    out.push(TERMINATOR);
}

fn vector(form: ByteForm, value: &[u8], element: &CqlType, dimension: u32, out: &mut Vec<u8>) {
    let mut cursor = Cursor::new(value);
    for _ in 0..dimension {
        let item = match element.fixed_length() {
            Some(length) => cursor.take(length),
            None => cursor.vbytes(),
        };
        let Ok(item) = item else { break };
        source(form, element, Some(item), out);
    }
    out.push(TERMINATOR);
}

fn custom_value(form: ByteForm, custom: &CustomType, value: &[u8], out: &mut Vec<u8>) {
    match custom {
        CustomType::Composite(types) => composite(form, types, value, out),
        CustomType::DynamicComposite(aliases) => dynamic_composite(form, aliases, value, out),
        CustomType::LexicalUuid => {
            let start = out.len();
            out.extend_from_slice(value);
            for index in [start, start + 8] {
                if let Some(byte) = out.get_mut(index) {
                    *byte ^= 0x80;
                }
            }
        }
        CustomType::LegacyDate => out.extend_from_slice(value),
        CustomType::PartitionerDefinedOrder(_) => encode_decorated_key(Token::of_key(value), value, out),
        CustomType::Reversed(ty) => {
            let start = out.len();
            encode_value(form, ty, value, out);
            out[start..].iter_mut().for_each(|byte| *byte = !*byte);
        }
        CustomType::Unknown(_) => escape(value, out),
    }
}

fn composite(form: ByteForm, types: &[CqlType], value: &[u8], out: &mut Vec<u8>) {
    let mut cursor = Cursor::new(value);
    if value.starts_with(&[0xff, 0xff]) {
        let _ = cursor.skip(2);
        out.push(NEXT_COMPONENT_NULL);
    } else {
        // an empty source: nothing stands between this byte and the next
        out.push(NEXT_COMPONENT);
    }
    for ty in types {
        let (Ok(component), Ok(end)) = (cursor.short_bytes(), cursor.u8()) else { break };
        source(form, ty, Some(component), out);
        out.extend_from_slice(&[NEXT_COMPONENT, end ^ 0x80]);
    }
    out.push(TERMINATOR);
}

fn dynamic_composite(form: ByteForm, aliases: &[(u8, CqlType)], value: &[u8], out: &mut Vec<u8>) {
    let mut cursor = Cursor::new(value);
    out.push(NEXT_COMPONENT);
    while !cursor.is_empty() {
        let Ok(header) = cursor.u16() else { break };
        let alias = header as u8;
        let ty = aliases.iter().find(|(name, _)| header & 0x8000 != 0 && *name == alias).map(|(_, ty)| ty);
        let class = if header & 0x8000 == 0 { cursor.take(usize::from(header)).unwrap_or_default() } else { &[] };
        let (Ok(component), Ok(end)) = (cursor.short_bytes(), cursor.u8()) else { break };
        let (simple, full) = class_names(ty, class);
        for name in [simple, full] {
            out.push(NEXT_COMPONENT);
            escape(&name, out);
        }
        source(form, ty.unwrap_or(&CqlType::Blob), Some(component), out);
        out.extend_from_slice(&[NEXT_COMPONENT, end ^ 0x80]);
    }
    out.push(TERMINATOR);
}
