//! Tests with random values: byte-comparable forms sort as the values do, orders agree with naive
//! ones, text forms and JSON are read back as the same value, and invalid bytes cause no panic.

use std::cmp::Ordering;
use std::sync::Arc;

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

use crate::byte_comparable::{TERMINATOR_CLUSTERING, encode_clustering};
use crate::decimal::Decimal;
use crate::{CqlType, UserType, collection, compare, json, literal, timeuuid, validate};

fn scalar_type() -> impl Strategy<Value = CqlType> {
    use CqlType::{
        Ascii, BigInt, Blob, Boolean, Date, Decimal, Double, Float, Inet, Int, SmallInt, Text, Time, TimeUuid,
        Timestamp, TinyInt, Uuid, Varint,
    };
    prop::sample::select(vec![
        Ascii, BigInt, Blob, Boolean, Date, Decimal, Double, Float, Inet, Int, SmallInt, Text, Time, TimeUuid,
        Timestamp, TinyInt, Uuid, Varint,
    ])
}

fn any_type() -> impl Strategy<Value = CqlType> {
    scalar_type().prop_recursive(3, 12, 3, |inner| {
        let one = || inner.clone().prop_map(Arc::new);
        prop_oneof![
            one().prop_map(|element| CqlType::List { element, frozen: true }),
            one().prop_map(|element| CqlType::Set { element, frozen: true }),
            (one(), one()).prop_map(|(key, value)| CqlType::Map { key, value, frozen: true }),
            vec(inner.clone(), 1..4).prop_map(|types| CqlType::Tuple(types.into())),
            (one(), 1u32..4).prop_map(|(element, dimension)| CqlType::Vector { element, dimension }),
            vec(inner.clone(), 1..4).prop_map(|types| {
                let fields = types.into_iter().enumerate().map(|(index, ty)| (format!("f{index}"), ty)).collect();
                CqlType::Udt(Arc::new(UserType { keyspace: "ks".to_owned(), name: "t".to_owned(), fields }), true)
            }),
        ]
    })
}

/// Integers of all sizes, many of them near powers of two.
fn integer() -> impl Strategy<Value = i64> {
    prop_oneof![
        any::<i64>(),
        -3i64..3,
        (0u32..63, -2i64..3).prop_map(|(bit, more)| (1i64 << bit).wrapping_add(more)),
        (0u32..63).prop_map(|bit| -(1i64 << bit))
    ]
}

fn varint() -> impl Strategy<Value = num_bigint::BigInt> {
    prop_oneof![
        integer().prop_map(num_bigint::BigInt::from),
        vec(any::<u8>(), 1..30).prop_map(|bytes| num_bigint::BigInt::from_signed_bytes_be(&bytes))
    ]
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[ab\\x00]{0,5}", ".{0,6}"]
}

fn value(ty: &CqlType) -> BoxedStrategy<Vec<u8>> {
    let one = |ty: &CqlType| value(ty);
    match ty {
        CqlType::Ascii => "[a-c\\x00\\x01]{0,6}".prop_map(String::into_bytes).boxed(),
        CqlType::Text => text().prop_map(String::into_bytes).boxed(),
        CqlType::Blob => vec(prop_oneof![Just(0u8), Just(255), any::<u8>()], 0..6).boxed(),
        CqlType::Boolean => any::<bool>().prop_map(|value| vec![u8::from(value)]).boxed(),
        CqlType::TinyInt => any::<i8>().prop_map(|value| value.to_be_bytes().to_vec()).boxed(),
        CqlType::SmallInt => any::<i16>().prop_map(|value| value.to_be_bytes().to_vec()).boxed(),
        CqlType::Int => integer().prop_map(|value| (value as i32).to_be_bytes().to_vec()).boxed(),
        CqlType::BigInt | CqlType::Timestamp => integer().prop_map(|value| value.to_be_bytes().to_vec()).boxed(),
        CqlType::Date => any::<u32>().prop_map(|value| value.to_be_bytes().to_vec()).boxed(),
        CqlType::Time => (0..86_400_000_000_000i64).prop_map(|value| value.to_be_bytes().to_vec()).boxed(),
        CqlType::Float => {
            let nans = prop::sample::select(vec![0x7fc0_0000u32, 0x7fc0_0001, 0xffc0_0000]);
            prop_oneof![3 => any::<f32>().prop_map(f32::to_bits), 1 => nans, 1 => any::<u32>()]
                .prop_map(|bits| bits.to_be_bytes().to_vec())
                .boxed()
        }
        CqlType::Double => {
            let nans =
                prop::sample::select(vec![0x7ff8_0000_0000_0000u64, 0x7ff8_0000_0000_0001, 0xfff8_0000_0000_0000]);
            prop_oneof![3 => any::<f64>().prop_map(f64::to_bits), 1 => nans, 1 => any::<u64>()]
                .prop_map(|bits| bits.to_be_bytes().to_vec())
                .boxed()
        }
        CqlType::Varint => varint().prop_map(|value| value.to_signed_bytes_be()).boxed(),
        CqlType::Decimal => (varint(), prop_oneof![-4i32..4, -400i32..400, any::<i32>()])
            .prop_map(|(unscaled, scale)| Decimal { unscaled, scale }.encode())
            .boxed(),
        CqlType::Inet => prop_oneof![vec(any::<u8>(), 4), vec(any::<u8>(), 16)].boxed(),
        CqlType::Uuid => vec(prop_oneof![Just(0x10u8), Just(0x40), any::<u8>()], 16).boxed(),
        CqlType::TimeUuid => {
            (any::<i64>(), any::<u64>()).prop_map(|(time, low)| timeuuid::from_parts(time, low).to_vec()).boxed()
        }
        CqlType::List { element, .. } => {
            vec(one(element), 0..4).prop_map(|items| collection::build_list(&items)).boxed()
        }
        CqlType::Set { element, .. } => {
            let ty = Arc::clone(element);
            vec(one(element), 0..4).prop_map(move |items| collection::build_set(&ty, items)).boxed()
        }
        CqlType::Map { key, value, .. } => {
            let ty = Arc::clone(key);
            let entries = btree_map(one(key), one(value), 0..4);
            entries.prop_map(move |entries| collection::build_map(&ty, entries.into_iter().collect())).boxed()
        }
        CqlType::Tuple(types) => fields(types.iter()),
        CqlType::Udt(udt, _) => fields(udt.fields.iter().map(|(_, ty)| ty)),
        CqlType::Vector { element, dimension } => {
            let ty = Arc::clone(element);
            let items = vec(one(element), *dimension as usize);
            items.prop_map(move |items| collection::build_vector(&ty, &items)).boxed()
        }
        _ => unreachable!("not among the types above"),
    }
}

fn fields<'a>(types: impl Iterator<Item = &'a CqlType>) -> BoxedStrategy<Vec<u8>> {
    // some types have an empty value, which is not null
    let field = |ty: &CqlType| match validate(ty, &[]) {
        Ok(()) => prop_oneof![4 => value(ty), 1 => Just(Vec::new())].boxed(),
        Err(_) => value(ty),
    };
    let fields: Vec<_> = types.map(|ty| prop::option::of(field(ty))).collect();
    // at least one field is written: a tuple without bytes is not a value like the others
    (fields, 1usize..4).prop_map(|(fields, kept)| collection::build_tuple(&fields[..kept.min(fields.len())])).boxed()
}

fn typed_pair() -> impl Strategy<Value = (CqlType, Vec<u8>, Vec<u8>)> {
    any_type().prop_flat_map(|ty| {
        let values = (value(&ty), value(&ty));
        (Just(ty), values).prop_map(|(ty, (a, b))| (ty, a, b))
    })
}

fn form(ty: &CqlType, reversed: bool, bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let value = Some(bytes::Bytes::copy_from_slice(bytes));
    encode_clustering(&[(ty.clone(), reversed)], &[value], TERMINATOR_CLUSTERING, &mut out);
    out
}

/// The order of two scalars, found in another way. None: there is no other way at hand.
fn naive(ty: &CqlType, a: &[u8], b: &[u8]) -> Option<Ordering> {
    let long = |bytes: &[u8]| bytes.try_into().map(i64::from_be_bytes).ok();
    Some(match ty {
        CqlType::BigInt | CqlType::Timestamp => long(a)?.cmp(&long(b)?),
        CqlType::Text => String::from_utf8(a.to_vec()).ok()?.cmp(&String::from_utf8(b.to_vec()).ok()?),
        CqlType::Varint => {
            num_bigint::BigInt::from_signed_bytes_be(a).cmp(&num_bigint::BigInt::from_signed_bytes_be(b))
        }
        CqlType::Double => {
            let [a, b] = [a, b].map(|bytes| bytes.try_into().map(f64::from_be_bytes).expect("eight bytes"));
            match (a.is_nan(), b.is_nan()) {
                (false, false) => a.total_cmp(&b),
                (x, y) => x.cmp(&y),
            }
        }
        CqlType::Decimal => {
            let [a, b] = [a, b].map(|bytes| Decimal::decode(bytes).expect("a decimal"));
            if a.scale.abs() > 1000 || b.scale.abs() > 1000 {
                return None;
            }
            let [a, b] = [a, b].map(|d| bigdecimal::BigDecimal::new(d.unscaled, i64::from(d.scale)));
            a.cmp(&b)
        }
        _ => return None,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]

    #[test]
    fn forms_sort_as_the_values_do((ty, a, b) in typed_pair()) {
        prop_assert_eq!(validate(&ty, &a), Ok(()));
        let order = compare(&ty, &a, &b);
        prop_assert_eq!(order, compare(&ty, &b, &a).reverse());
        let (x, y) = (form(&ty, false, &a), form(&ty, false, &b));
        prop_assert_eq!(x.cmp(&y), order, "{:?} {:02x?} {:02x?}", &ty, &x, &y);
        prop_assert_eq!(form(&ty, true, &a).cmp(&form(&ty, true, &b)), order.reverse());
        prop_assert!(x == y || !x.starts_with(&y) && !y.starts_with(&x));
    }

    #[test]
    fn scalars_sort_as_naively((ty, a, b) in scalar_type().prop_flat_map(|ty| {
        let values = (value(&ty), value(&ty));
        (Just(ty), values).prop_map(|(ty, (a, b))| (ty, a, b))
    })) {
        if let Some(order) = naive(&ty, &a, &b) {
            prop_assert_eq!(compare(&ty, &a, &b), order);
            prop_assert_eq!(form(&ty, false, &a).cmp(&form(&ty, false, &b)), order);
        }
    }

    #[test]
    fn text_forms_come_back((ty, a, _) in scalar_type().prop_flat_map(|ty| {
        let values = (value(&ty), value(&ty));
        (Just(ty), values).prop_map(|(ty, (a, b))| (ty, a, b))
    })) {
        let old = matches!(ty, CqlType::Timestamp) && literal::to_plain_text(&ty, &a).parse::<u8>().is_ok();
        let mapped = matches!(ty, CqlType::Inet) && a.starts_with(&[0; 10]);
        let timestamp_of_era = matches!(ty, CqlType::Timestamp) && a.as_slice() < &[0xff, 0xff, 0xc7, 0, 0, 0, 0, 0][..] && a[0] >= 0x80;
        // a year in a timestamp has at most four digits without a sign
        let far = matches!(ty, CqlType::Timestamp) && literal::to_plain_text(&ty, &a).starts_with('+');
        if !old && !mapped && !timestamp_of_era && !far {
            let text = literal::to_plain_text(&ty, &a);
            let back = literal::parse_text(&ty, &text);
            let same = back.as_ref().is_ok_and(|back| compare(&ty, back, &a) == Ordering::Equal);
            prop_assert!(same, "{:?} {} {:?}", &ty, &text, &back);
        }
    }

    #[test]
    fn nothing_panics(ty in any_type(), a in vec(any::<u8>(), 0..40), b in vec(any::<u8>(), 0..40), text in ".{0,20}") {
        let valid = validate(&ty, &a).is_ok();
        let _ = (compare(&ty, &a, &b), form(&ty, true, &a), literal::parse_text(&ty, &text));
        let _ = (literal::to_text(&ty, &a), literal::to_plain_text(&ty, &a), json::to_json(&ty, &a));
        if let Ok(json) = json::parse(&text) {
            let _ = json::from_json(&ty, &json);
        }
        if valid {
            prop_assert_eq!(compare(&ty, &a, &a), Ordering::Equal);
        }
    }

    #[test]
    fn no_text_harms_the_readers_of_types(text in "([A-Za-z]{0,8}Type|list|frozen|map|[<>(),:=\"' é0-9a-f]){0,12}") {
        let _ = (crate::marshal::parse(&text), crate::cql_name::parse(&text, &|_| None));
    }

    #[test]
    fn type_names_come_back(ty in any_type()) {
        let udt = |name: &str| {
            let mut found = None;
            ty.any(&mut |ty| match ty {
                CqlType::Udt(udt, _) if udt.name == name => { found = Some(Arc::clone(udt)); true }
                _ => false,
            });
            found
        };
        let one_udt = { let mut udts = 0; ty.any(&mut |ty| { udts += usize::from(matches!(ty, CqlType::Udt(..))); false }); udts <= 1 };
        if one_udt {
            prop_assert_eq!(crate::cql_name::parse(&ty.cql_name(), &udt), Some(ty.clone()));
        }
        prop_assert_eq!(crate::marshal::parse(&crate::marshal::print(&ty, true)), Ok((ty.clone(), true)));
    }
}
