//! A bound collection as it is stored.
//!
//! A client may send the elements of sets and maps in any order, and numbers in more bytes than
//! they need. As in Cassandra, which makes objects of the elements and bytes of these again:
//!
//! 1. Elements of a bound collection, also inside of other collections and of vectors there, are
//!    written in the fewest bytes. A value that is bound as it is, a vector that is no element, and
//!    the fields of tuples and user types keep their bytes.
//! 2. Sets and maps are sorted. Of equal elements the first stays, of equal keys the first with the
//!    last value.
//! 3. Decimals of different scales (1 and 1.00) are equal in the collection that is bound, and
//!    different in a collection inside of it, where both stay.
//!
//! Agrees with `fromSerialized` of `org.apache.cassandra.cql3.{Lists,Sets,Maps}` and the
//! serializers that they use.

use std::cmp::Ordering;
use std::collections::HashMap;

use bytes::Bytes;
use types::{CqlType, collection};

use super::{malformed, pack_list, pack_map, pack_vector, share, sort_map, sort_set, split_list, split_map};
use crate::error::CqlError;

/// The entries of a map.
type Entries = Vec<(Bytes, Bytes)>;

/// A bound value as it is stored. A value that needs no change is returned without a copy.
pub(crate) fn as_stored(ty: &CqlType, value: &Bytes) -> Result<Bytes, CqlError> {
    match ty {
        CqlType::Set { element, .. } => {
            let mut elements = split_list(value)?;
            let is_same = rewrite_all(element, &mut elements)?;
            if is_same && elements.is_sorted_by(|a, b| types::compare(element, a, b) == Ordering::Less) {
                return Ok(value.clone());
            }
            sort_set(element, &mut elements);
            Ok(pack_list(&elements))
        }
        CqlType::Map { key, value: of_value, .. } => {
            let (is_same, entries) = rewrite_entries(key, of_value, value)?;
            if is_same && entries.is_sorted_by(|a, b| types::compare(key, &a.0, &b.0) == Ordering::Less) {
                return Ok(value.clone());
            }
            // the value of an entry that comes later takes the place of the earlier one's
            let mut entries = merge_equal_keys(key, entries);
            sort_map(key, &mut entries);
            Ok(pack_map(&entries))
        }
        CqlType::List { .. } => rewrite(ty, value),
        _ => Ok(value.clone()),
    }
}

/// Whether [`rewrite`] may change a value of the type.
fn may_change(ty: &CqlType) -> bool {
    match ty {
        CqlType::Varint | CqlType::Decimal | CqlType::Boolean | CqlType::Inet | CqlType::Duration => true,
        CqlType::Set { .. } | CqlType::Map { .. } => true,
        CqlType::List { element, .. } | CqlType::Vector { element, .. } => may_change(element),
        _ => false,
    }
}

/// A value inside of a bound collection, or a bound list, as it is stored.
fn rewrite(ty: &CqlType, value: &Bytes) -> Result<Bytes, CqlError> {
    if value.is_empty() || !may_change(ty) {
        return Ok(value.clone());
    }
    let changed: Vec<u8> = match ty {
        CqlType::Varint => return Ok(value.slice(extra_bytes(value)..)),
        CqlType::Decimal => {
            let Some((scale, unscaled)) = value.split_first_chunk::<4>() else { return Ok(value.clone()) };
            match extra_bytes(unscaled) {
                0 => return Ok(value.clone()),
                extra => [scale.as_slice(), &unscaled[extra..]].concat(),
            }
        }
        CqlType::Boolean => vec![u8::from(value[0] != 0)],
        // an IPv4 address in the form of IPv6
        CqlType::Inet if value.len() == 16 && value[..10] == [0; 10] && value[10..12] == [0xff; 2] => {
            return Ok(value.slice(12..));
        }
        CqlType::Duration => types::Duration::decode(value).ok_or_else(|| malformed("duration"))?.encode(),
        CqlType::List { element, .. } => {
            let mut elements = split_list(value)?;
            if rewrite_all(element, &mut elements)? {
                return Ok(value.clone());
            }
            return Ok(pack_list(&elements));
        }
        CqlType::Vector { element, dimension } => {
            let elements: Result<Vec<_>, _> = collection::VectorElements::new(element, *dimension, value)
                .map(|one| one.map(|one| share(value, one)))
                .collect();
            let mut elements = elements.map_err(|_| malformed("vector"))?;
            rewrite_all(element, &mut elements)?;
            return Ok(pack_vector(element, &elements));
        }
        CqlType::Set { element, .. } => {
            let mut elements = split_list(value)?;
            rewrite_all(element, &mut elements)?;
            let entries =
                merge_equal_keys(element, elements.into_iter().map(|element| (element, Bytes::new())).collect());
            let elements: Vec<Bytes> = entries.into_iter().map(|(element, _)| element).collect();
            return Ok(pack_list(&elements));
        }
        CqlType::Map { key, value: of_value, .. } => {
            let (_, entries) = rewrite_entries(key, of_value, value)?;
            return Ok(pack_map(&merge_equal_keys(key, entries)));
        }
        _ => return Ok(value.clone()),
    };
    Ok(changed.into())
}

/// Rewrites the elements. True: none of them was changed.
fn rewrite_all(ty: &CqlType, elements: &mut [Bytes]) -> Result<bool, CqlError> {
    if !may_change(ty) {
        return Ok(true);
    }
    let mut is_same = true;
    for element in elements {
        let new = rewrite(ty, element)?;
        is_same &= new == *element;
        *element = new;
    }
    Ok(is_same)
}

/// The entries of a serialized map, rewritten, and whether none of them was changed.
fn rewrite_entries(key: &CqlType, of_value: &CqlType, value: &Bytes) -> Result<(bool, Entries), CqlError> {
    let (mut keys, mut values): (Vec<_>, Vec<_>) = split_map(value)?.into_iter().unzip();
    let is_same = rewrite_all(key, &mut keys)? & rewrite_all(of_value, &mut values)?;
    Ok((is_same, keys.into_iter().zip(values).collect()))
}

/// Sorts entries by their keys. Of entries whose keys are equal as Java objects the first stays,
/// with the value of the last; keys that are equal but differ, such as the decimals 1 and 1.00,
/// stay in the order in which they were sent.
fn merge_equal_keys(key: &CqlType, mut entries: Entries) -> Entries {
    entries.sort_by(|a, b| types::compare(key, &a.0, &b.0));
    let mut kept: Entries = Vec::with_capacity(entries.len());
    for group in entries.chunk_by(|a, b| types::compare(key, &a.0, &b.0) == Ordering::Equal) {
        let [first, rest @ ..] = group else { continue };
        let from = kept.len();
        kept.push(first.clone());
        if rest.is_empty() {
            continue;
        }
        let mut known = HashMap::from([(identity(key, &first.0), from)]);
        for (other, value) in rest {
            let place = *known.entry(identity(key, other)).or_insert(kept.len());
            match kept.get_mut(place) {
                Some(earlier) => earlier.1 = value.clone(),
                None => kept.push((other.clone(), value.clone())),
            }
        }
    }
    kept
}

/// Bytes that two rewritten values have in common if and only if Java's objects of them are equal.
fn identity(ty: &CqlType, value: &Bytes) -> Bytes {
    let all = |ty: &CqlType, values: Vec<Bytes>| values.iter().map(|value| identity(ty, value)).collect::<Vec<_>>();
    match ty {
        CqlType::Float if is_nan::<4>(value, |bytes| f32::from_be_bytes(bytes).is_nan()) => Bytes::from_static(b"NaN"),
        CqlType::Double if is_nan::<8>(value, |bytes| f64::from_be_bytes(bytes).is_nan()) => Bytes::from_static(b"NaN"),
        CqlType::List { element, .. } | CqlType::Set { element, .. } => {
            pack_list(&all(element, split_list(value).unwrap_or_default()))
        }
        CqlType::Map { key, value: of_value, .. } => {
            let (keys, values): (Vec<_>, Vec<_>) = split_map(value).unwrap_or_default().into_iter().unzip();
            pack_list(&[all(key, keys), all(of_value, values)].concat())
        }
        _ => value.clone(),
    }
}

fn is_nan<const N: usize>(value: &Bytes, is_nan: impl Fn([u8; N]) -> bool) -> bool {
    value.as_ref().try_into().is_ok_and(is_nan)
}

/// How many leading bytes of a big-endian two's complement say nothing.
fn extra_bytes(number: &[u8]) -> usize {
    let says_nothing = |pair: &&[u8]| matches!((pair[0], pair[1] >> 7), (0, 0) | (0xff, 1));
    number.windows(2).take_while(says_nothing).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A type, bytes that were bound, and the bytes that Cassandra 5.0.8 gave back.
    const BOUND: &[(&str, &str, &str)] = &[
        ("varint", "000001", "000001"),
        ("varint", "ffff", "ffff"),
        ("decimal", "000000000001", "000000000001"),
        ("decimal", "0000000264", "0000000264"),
        ("list<varint>", "000000020000000300000100000002ffff", "00000002000000010100000001ff"),
        ("frozen<list<varint>>", "000000020000000300000100000002ffff", "00000002000000010100000001ff"),
        ("set<varint>", "0000000300000003000001000000010100000002ffff", "0000000200000001ff0000000101"),
        ("set<varint>", "0000000400000001010000000300000100000002ffff00000001ff", "0000000200000001ff0000000101"),
        ("frozen<set<varint>>", "0000000300000003000001000000010100000002ffff", "0000000200000001ff0000000101"),
        ("set<decimal>", "00000002000000050000000001000000050000000264", "00000001000000050000000001"),
        ("set<decimal>", "00000002000000050000000264000000050000000001", "00000001000000050000000264"),
        ("set<decimal>", "000000020000000600000002006400000006000000000001", "00000001000000050000000264"),
        ("frozen<set<decimal>>", "00000002000000050000000264000000050000000001", "00000001000000050000000264"),
        ("frozen<set<decimal>>", "00000002000000050000000001000000050000000264", "00000001000000050000000001"),
        (
            "map<varint,varint>",
            "000000020000000300000100000003000001000000010100000002ffff",
            "00000001000000010100000001ff",
        ),
        (
            "frozen<map<varint,varint>>",
            "000000020000000300000100000003000001000000010100000002ffff",
            "00000001000000010100000001ff",
        ),
        (
            "map<decimal,int>",
            "0000000200000005000000000100000004000000010000000500000002640000000400000002",
            "000000010000000500000000010000000400000002",
        ),
        (
            "frozen<map<decimal,int>>",
            "0000000200000005000000026400000004000000010000000500000000010000000400000002",
            "000000010000000500000002640000000400000002",
        ),
        (
            "list<frozen<set<varint>>>",
            "00000001000000160000000300000003000001000000010100000002ffff",
            "000000010000000e0000000200000001ff0000000101",
        ),
        (
            "list<frozen<set<decimal>>>",
            "00000001000000320000000500000005000000000200000005000000000100000005000000026400000006000000000001000000050000000001",
            "000000010000001f00000003000000050000000001000000050000000264000000050000000002",
        ),
        (
            "list<frozen<map<decimal,varint>>>",
            "00000001000000410000000400000005000000000200000003000001000000050000000001000000030000010000000500000002640000000102000000060000000000010000000102",
            "000000010000002e00000003000000050000000001000000010200000005000000026400000001020000000500000000020000000101",
        ),
        (
            "set<frozen<set<decimal>>>",
            "00000004000000160000000200000005000000000100000005000000026400000016000000020000000500000002640000000500000000010000000d000000010000000500000000010000000d00000001000000050000000264",
            "000000020000000d000000010000000500000000010000001600000002000000050000000001000000050000000264",
        ),
        (
            "set<frozen<list<decimal>>>",
            "000000030000000d000000010000000500000000010000000d000000010000000500000002640000000d00000001000000050000000002",
            "000000020000000d000000010000000500000000010000000d00000001000000050000000002",
        ),
        (
            "frozen<map<frozen<set<decimal>>,int>>",
            "000000020000000d0000000100000005000000000100000004000000010000000d000000010000000500000002640000000400000002",
            "000000010000000d000000010000000500000000010000000400000002",
        ),
        ("tuple<varint,decimal>", "0000000300000100000006000000020064", "0000000300000100000006000000020064"),
        (
            "list<frozen<tuple<varint,decimal>>>",
            "00000001000000110000000300000100000006000000020064",
            "00000001000000110000000300000100000006000000020064",
        ),
        ("tuple<list<varint>>", "0000000b0000000100000003000001", "0000000b0000000100000003000001"),
        (
            "tuple<set<varint>>",
            "00000016000000030000000300000100000002ffff0000000101",
            "00000016000000030000000300000100000002ffff0000000101",
        ),
        (
            "tuple<set<int>>",
            "000000140000000200000004000000020000000400000001",
            "000000140000000200000004000000020000000400000001",
        ),
        ("vector<varint,2>", "0300000102ffff", "0300000102ffff"),
        ("list<frozen<vector<varint,2>>>", "00000001000000070300000102ffff", "0000000100000004010101ff"),
        (
            "vector<frozen<set<varint>>,1>",
            "16000000030000000300000100000002ffff0000000101",
            "16000000030000000300000100000002ffff0000000101",
        ),
        (
            "vector<frozen<list<varint>>,1>",
            "16000000030000000300000100000002ffff0000000101",
            "16000000030000000300000100000002ffff0000000101",
        ),
        ("list<boolean>", "000000030000000105000000010000000001ff", "00000003000000010100000001000000000101"),
        ("boolean", "05", "05"),
        ("set<boolean>", "00000003000000010500000001010000000100", "0000000200000001000000000101"),
        ("map<boolean,boolean>", "000000020000000105000000010500000001010000000100", "0000000100000001010000000100"),
        ("list<inet>", "000000010000001000000000000000000000ffff01020304", "000000010000000401020304"),
        ("inet", "00000000000000000000ffff01020304", "00000000000000000000ffff01020304"),
        ("set<inet>", "000000020000001000000000000000000000ffff010203040000000401020304", "000000010000000401020304"),
        (
            "list<float>",
            "00000003000000047fc0000100000004ffc00000000000047f800001",
            "00000003000000047fc0000100000004ffc00000000000047f800001",
        ),
        (
            "set<float>",
            "00000004000000047fc0000100000004ffc0000000000004800000000000000400000000",
            "0000000300000004800000000000000400000000000000047fc00001",
        ),
        (
            "list<double>",
            "00000002000000087ff800000000000100000008fff8000000000000",
            "00000002000000087ff800000000000100000008fff8000000000000",
        ),
        (
            "list<frozen<set<float>>>",
            "000000010000002400000004000000047fc0000100000004ffc0000000000004800000000000000400000000",
            "000000010000001c0000000300000004800000000000000400000000000000047fc00001",
        ),
        (
            "list<frozen<set<double>>>",
            "000000010000003400000004000000087ff800000000000100000008fff8000000000000000000088000000000000000000000080000000000000000",
            "000000010000002800000003000000088000000000000000000000080000000000000000000000087ff8000000000001",
        ),
        (
            "list<frozen<set<int>>>",
            "00000001000000140000000300000000000000040000000100000000",
            "000000010000001000000002000000000000000400000001",
        ),
        ("list<duration>", "0000000100000003020406", "0000000100000003020406"),
        ("list<duration>", "000000010000000480020406", "0000000100000003020406"),
        ("duration", "80020406", "80020406"),
        (
            "list<timeuuid>",
            "000000010000001050554d6e29bb11e5b345feff819cdc9f",
            "000000010000001050554d6e29bb11e5b345feff819cdc9f",
        ),
        ("list<date>", "000000010000000480000000", "000000010000000480000000"),
        ("list<time>", "00000001000000080000000000000000", "00000001000000080000000000000000"),
        ("list<text>", "0000000100000003610062", "0000000100000003610062"),
        ("list<ascii>", "0000000100000003610062", "0000000100000003610062"),
        (
            "set<frozen<tuple<decimal>>>",
            "0000000300000009000000050000000001000000090000000500000002640000000a00000006000000000001",
            "0000000100000009000000050000000001",
        ),
        (
            "list<frozen<set<frozen<tuple<decimal>>>>>",
            "00000001000000390000000400000009000000050000000264000000090000000500000000010000000a0000000600000000000100000009000000050000000001",
            "000000010000002c0000000300000009000000050000000264000000090000000500000000010000000a00000006000000000001",
        ),
        (
            "list<frozen<set<frozen<list<decimal>>>>>",
            "0000000100000049000000040000000d000000010000000500000002640000000d000000010000000500000000010000000e00000001000000060000000000010000000d00000001000000050000000001",
            "0000000100000026000000020000000d000000010000000500000002640000000d00000001000000050000000001",
        ),
        ("set<blob>", "00000003000000016200000001610000000162", "0000000200000001610000000162"),
        (
            "list<frozen<map<frozen<set<varint>>,int>>>",
            "00000001000000350000000200000010000000020000000300000100000001010000000400000000000000090000000100000001010000000400000000",
            "000000010000001900000001000000090000000100000001010000000400000000",
        ),
    ];

    #[test]
    fn bound_values_are_stored_as_in_cassandra() {
        for (ty, sent, stored) in BOUND {
            let parsed = types::cql_name::parse(ty, &|_| None).unwrap_or_else(|| panic!("{ty} is a type"));
            let found = as_stored(&parsed, &types::literal::unhex(sent).unwrap().into()).unwrap();
            assert_eq!(types::literal::hex(&found), *stored, "{ty} {sent}");
        }
    }

    #[test]
    fn bound_sets_and_maps_are_put_in_order() {
        let text = || std::sync::Arc::new(CqlType::Text);
        let part = Bytes::from_static;
        let set = CqlType::Set { element: text(), frozen: true };
        let sent = pack_list(&[part(b"b"), part(b"a"), part(b"b")]);
        assert_eq!(split_list(&as_stored(&set, &sent).unwrap()).unwrap(), [part(b"a"), part(b"b")]);
        let map = CqlType::Map { key: text(), value: text(), frozen: true };
        let sent = pack_map(&[(part(b"b"), part(b"1")), (part(b"a"), part(b"2"))]);
        let want = [(part(b"a"), part(b"2")), (part(b"b"), part(b"1"))];
        assert_eq!(split_map(&as_stored(&map, &sent).unwrap()).unwrap(), want);
    }

    #[test]
    fn many_equal_decimals_take_no_quadratic_time() {
        let zero = |scale: i32| [scale.to_be_bytes().as_slice(), &[0]].concat();
        let inner: Vec<_> = (0..100_000).chain(0..100_000).map(zero).collect();
        let sent = pack_list(&[pack_list(&inner)]);
        let ty = types::cql_name::parse("list<frozen<set<decimal>>>", &|_| None).unwrap();
        let stored = split_list(&as_stored(&ty, &sent).unwrap()).unwrap();
        assert_eq!(split_list(&stored[0]).unwrap().len(), 100_000);
    }
}
