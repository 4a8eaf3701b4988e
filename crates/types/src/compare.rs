//! The order of a type's values. Comparing scalars allocates nothing. Values that are not valid
//! have some order and never cause a panic.
//!
//! In every order an empty value sorts before any other. Agrees with the `compareCustom` of each
//! class of `org.apache.cassandra.db.marshal`; the rules are in docs/formats/types.md.

use std::cmp::Ordering;

use stdx::Cursor;

use crate::{CqlType, CustomType};

/// Compares two serialized values of one type.
#[inline]
pub fn compare(ty: &CqlType, a: &[u8], b: &[u8]) -> Ordering {
    match ty {
        CqlType::Text | CqlType::Ascii | CqlType::Blob | CqlType::Inet => a.cmp(b),
        CqlType::Date | CqlType::Time => a.cmp(b),
        CqlType::Int | CqlType::BigInt | CqlType::Timestamp | CqlType::TinyInt | CqlType::SmallInt => signed(a, b),
        _ => compare_rare(ty, a, b),
    }
}

fn compare_rare(ty: &CqlType, a: &[u8], b: &[u8]) -> Ordering {
    if a.is_empty() || b.is_empty() {
        return a.len().cmp(&b.len());
    }
    match ty {
        CqlType::Boolean => (a[0] != 0).cmp(&(b[0] != 0)),
        CqlType::Counter => signed(a, b),
        CqlType::Float => float_key(a).cmp(&float_key(b)),
        CqlType::Double => double_key(a).cmp(&double_key(b)),
        CqlType::Varint => varint(a, b),
        CqlType::Decimal => crate::decimal::compare(a, b),
        CqlType::Uuid => uuid(a, b),
        CqlType::TimeUuid => timeuuid(a, b),
        CqlType::List { element, .. } | CqlType::Set { element, .. } => sequence(a, b, &[element]),
        CqlType::Map { key, value, .. } => sequence(a, b, &[key, value]),
        CqlType::Tuple(types) => fields(a, b, types.iter()),
        CqlType::Udt(udt, _) => fields(a, b, udt.fields.iter().map(|(_, ty)| ty)),
        CqlType::Vector { element, dimension } => vector(a, b, element, *dimension),
        CqlType::Custom(custom) => compare_custom(custom, a, b),
        _ => a.cmp(b),
    }
}

/// Compares two's complement numbers of equal width; an empty value sorts first.
#[inline]
fn signed(a: &[u8], b: &[u8]) -> Ordering {
    if let (Ok(x), Ok(y)) = (<[u8; 8]>::try_from(a), <[u8; 8]>::try_from(b)) {
        return i64::from_be_bytes(x).cmp(&i64::from_be_bytes(y));
    }
    if let (Ok(x), Ok(y)) = (<[u8; 4]>::try_from(a), <[u8; 4]>::try_from(b)) {
        return i32::from_be_bytes(x).cmp(&i32::from_be_bytes(y));
    }
    match (a.split_first(), b.split_first()) {
        (Some((x, a)), Some((y, b))) => (*x as i8).cmp(&(*y as i8)).then_with(|| a.cmp(b)),
        _ => a.len().cmp(&b.len()),
    }
}

fn float_key(bytes: &[u8]) -> i32 {
    let bits = bytes.first_chunk::<4>().map_or(0, |bytes| i32::from_be_bytes(*bytes));
    // all NaNs are equal and greater than every number
    let bits = if f32::from_bits(bits as u32).is_nan() { f32::NAN.to_bits() as i32 & i32::MAX } else { bits };
    bits ^ (((bits >> 31) as u32) >> 1) as i32
}

fn double_key(bytes: &[u8]) -> i64 {
    let bits = bytes.first_chunk::<8>().map_or(0, |bytes| i64::from_be_bytes(*bytes));
    let bits = if f64::from_bits(bits as u64).is_nan() { f64::NAN.to_bits() as i64 & i64::MAX } else { bits };
    bits ^ (((bits >> 63) as u64) >> 1) as i64
}

/// Compares big-endian two's complement numbers of any width; redundant sign bytes are allowed.
fn varint(a: &[u8], b: &[u8]) -> Ordering {
    let negative = |bytes: &[u8]| bytes.first().is_some_and(|byte| *byte >= 0x80);
    match (negative(a), negative(b)) {
        (true, false) => Ordering::Less,
        (false, true) => Ordering::Greater,
        (sign, _) => {
            let (a, b) = (trim_sign(a), trim_sign(b));
            let by_length = a.len().cmp(&b.len());
            let by_length = if sign { by_length.reverse() } else { by_length };
            by_length.then_with(|| a.cmp(b))
        }
    }
}

/// The number without redundant sign bytes.
pub(crate) fn trim_sign(bytes: &[u8]) -> &[u8] {
    let Some(sign) = bytes.first().map(|byte| if *byte >= 0x80 { 0xff } else { 0x00 }) else { return bytes };
    let mut rest = bytes;
    while let [first, next, ..] = rest {
        if *first != sign || (next ^ sign) >= 0x80 {
            break;
        }
        rest = &rest[1..];
    }
    rest
}

/// Both halves of sixteen bytes as numbers.
#[inline]
fn halves(uuid: &[u8; 16]) -> (u64, u64) {
    let both = u128::from_be_bytes(*uuid);
    ((both >> 64) as u64, both as u64)
}

fn uuid(a: &[u8], b: &[u8]) -> Ordering {
    let (Some(x), Some(y)) = (a.first_chunk::<16>(), b.first_chunk::<16>()) else { return a.cmp(b) };
    let ((x_high, x_low), (y_high, y_low)) = (halves(x), halves(y));
    let version = |high: u64| high >> 12 & 0xf;
    if version(x_high) != version(y_high) {
        return version(x_high).cmp(&version(y_high));
    }
    let by_high = if version(x_high) == 1 { reordered(x_high).cmp(&reordered(y_high)) } else { x_high.cmp(&y_high) };
    by_high.then_with(|| x_low.cmp(&y_low))
}

/// The fields of a version-1 UUID's time, most significant first, version included.
pub(crate) fn time_of(uuid: &[u8; 16]) -> u64 {
    reordered(halves(uuid).0)
}

#[inline]
fn reordered(high: u64) -> u64 {
    high << 48 | (high << 16 & 0xffff_0000_0000) | high >> 32
}

fn timeuuid(a: &[u8], b: &[u8]) -> Ordering {
    const SIGNS: u64 = 0x8080_8080_8080_8080;
    let (Some(x), Some(y)) = (a.first_chunk::<16>(), b.first_chunk::<16>()) else { return a.cmp(b) };
    let ((x_high, x_low), (y_high, y_low)) = (halves(x), halves(y));
    let by_time = (reordered(x_high) as i64).cmp(&(reordered(y_high) as i64));
    by_time.then_with(|| (x_low ^ SIGNS).cmp(&(y_low ^ SIGNS)))
}

/// Compares lists, sets and maps: the count, then elements with i32 lengths. `types` are repeated
/// as often as needed.
fn sequence(a: &[u8], b: &[u8], types: &[&CqlType]) -> Ordering {
    let (mut x, mut y) = (Cursor::new(a), Cursor::new(b));
    let (Ok(count_x), Ok(count_y)) = (x.i32(), y.i32()) else { return a.cmp(b) };
    for _ in 0..count_x.min(count_y) {
        for ty in types {
            let (Ok(p), Ok(q)) = (x.int_bytes(), y.int_bytes()) else { return a.cmp(b) };
            let order = nullable(ty, p, q);
            if order != Ordering::Equal {
                return order;
            }
        }
    }
    count_x.cmp(&count_y)
}

fn nullable(ty: &CqlType, a: Option<&[u8]>, b: Option<&[u8]>) -> Ordering {
    match (a, b) {
        (Some(a), Some(b)) => compare(ty, a, b),
        (a, b) => a.is_some().cmp(&b.is_some()),
    }
}

/// Compares tuples and user types: fields with i32 lengths; trailing fields that are missing are
/// null.
fn fields<'a>(a: &[u8], b: &[u8], types: impl Iterator<Item = &'a CqlType>) -> Ordering {
    let (mut x, mut y) = (Cursor::new(a), Cursor::new(b));
    for ty in types {
        if x.is_empty() && y.is_empty() {
            return Ordering::Equal;
        }
        let order = nullable(ty, next_field(&mut x), next_field(&mut y));
        if order != Ordering::Equal {
            return order;
        }
    }
    Ordering::Equal
}

fn next_field<'a>(cursor: &mut Cursor<'a>) -> Option<&'a [u8]> {
    if cursor.is_empty() { None } else { cursor.int_bytes().ok().flatten() }
}

fn vector(a: &[u8], b: &[u8], element: &CqlType, dimension: u32) -> Ordering {
    let (mut x, mut y) = (Cursor::new(a), Cursor::new(b));
    for _ in 0..dimension {
        let pair = match element.fixed_length() {
            Some(length) => (x.take(length), y.take(length)),
            None => (x.vbytes(), y.vbytes()),
        };
        let (Ok(p), Ok(q)) = pair else { return a.cmp(b) };
        let order = compare(element, p, q);
        if order != Ordering::Equal {
            return order;
        }
    }
    Ordering::Equal
}

fn compare_custom(custom: &CustomType, a: &[u8], b: &[u8]) -> Ordering {
    match custom {
        CustomType::Composite(types) => composite(a, b, types),
        CustomType::DynamicComposite(aliases) => dynamic_composite(a, b, aliases),
        CustomType::LexicalUuid => signed(&a[..a.len().min(8)], &b[..b.len().min(8)])
            .then_with(|| signed(a.get(8..).unwrap_or_default(), b.get(8..).unwrap_or_default())),
        CustomType::Reversed(ty) => compare(ty, a, b).reverse(),
        CustomType::PartitionerDefinedOrder(_) => {
            let key = |bytes: &[u8]| (crate::Token::of_key(bytes), bytes.to_vec());
            key(a).cmp(&key(b))
        }
        CustomType::LegacyDate | CustomType::Unknown(_) => a.cmp(b),
    }
}

fn composite(a: &[u8], b: &[u8], types: &[CqlType]) -> Ordering {
    let (mut x, mut y) = (Cursor::new(a), Cursor::new(b));
    let is_static = |bytes: &[u8]| bytes.starts_with(&[0xff, 0xff]);
    if is_static(a) != is_static(b) {
        return is_static(b).cmp(&is_static(a));
    }
    if is_static(a) {
        let _ = (x.skip(2), y.skip(2));
    }
    for ty in types {
        if x.is_empty() || y.is_empty() {
            return x.remaining().cmp(&y.remaining());
        }
        let (Ok(p), Ok(q)) = (x.short_bytes(), y.short_bytes()) else { return a.cmp(b) };
        let order = compare(ty, p, q);
        if order != Ordering::Equal {
            return order;
        }
        let (Ok(p), Ok(q)) = (x.u8(), y.u8()) else { return a.cmp(b) };
        if p != q {
            return (p as i8).cmp(&(q as i8));
        }
    }
    x.remaining().cmp(&y.remaining())
}

fn dynamic_composite(a: &[u8], b: &[u8], aliases: &[(u8, CqlType)]) -> Ordering {
    let (mut x, mut y) = (Cursor::new(a), Cursor::new(b));
    loop {
        if x.is_empty() || y.is_empty() {
            return x.remaining().cmp(&y.remaining());
        }
        let (Ok(p), Ok(q)) = (component_class(&mut x, aliases), component_class(&mut y, aliases)) else {
            return a.cmp(b);
        };
        if p != q {
            return class_names(p.0, p.1).cmp(&class_names(q.0, q.1));
        }
        let (Ok(v), Ok(w)) = (x.short_bytes(), y.short_bytes()) else { return a.cmp(b) };
        let order = p.0.map_or_else(|| v.cmp(w), |ty| compare(ty, v, w));
        if order != Ordering::Equal {
            return order;
        }
        let (Ok(p), Ok(q)) = (x.u8(), y.u8()) else { return a.cmp(b) };
        if p != q {
            return (p as i8).cmp(&(q as i8));
        }
    }
}

/// Reads what stands before a component of a dynamic composite: an alias, given as the type that it
/// stands for, or a class name.
fn component_class<'a, 't>(
    cursor: &mut Cursor<'a>,
    aliases: &'t [(u8, CqlType)],
) -> Result<(Option<&'t CqlType>, &'a [u8]), stdx::CursorError> {
    let header = cursor.u16()?;
    if header & 0x8000 == 0 {
        return Ok((None, cursor.take(usize::from(header))?));
    }
    Ok((aliases.iter().find(|(alias, _)| *alias == header as u8).map(|(_, ty)| ty), &[]))
}

/// Simple and full class name of a dynamic component. Components of different classes are ordered
/// by these names.
pub(crate) fn class_names(ty: Option<&CqlType>, class: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let full = ty.map_or_else(|| class.to_vec(), |ty| crate::marshal::print(ty, false).into_bytes());
    let end = full.iter().position(|byte| *byte == b'(').unwrap_or(full.len());
    let start = full[..end].iter().rposition(|byte| *byte == b'.').map_or(0, |dot| dot + 1);
    (full[start..end].to_vec(), full)
}
