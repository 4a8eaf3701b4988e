//! Functions given any bytes, and masks.

use bytes::Bytes;
use schema::ColumnMask;
use types::CqlType;

use super::registry::REGISTRY;
use super::{Body, Function};
use crate::selection::Mask;
use crate::sources::NoSources;

/// Bytes that are no values of most types, and some that are.
fn arbitrary() -> Vec<Option<Bytes>> {
    let mut all = vec![None];
    for length in [0usize, 1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 33] {
        for fill in [0u8, 1, 0x2a, 0x7f, 0x80, 0xff] {
            all.push(Some(vec![fill; length].into()));
        }
    }
    for count in [-1i32, 1, 2, i32::MAX] {
        for length in [-1i32, 0, 1, 4, i32::MAX] {
            let head = [count.to_be_bytes(), length.to_be_bytes()].concat();
            all.push(Some(head.clone().into()));
            all.push(Some([head.as_slice(), &[7; 4], &[0; 8]].concat().into()));
        }
    }
    all
}

/// Calls it with every value in its first argument, each with some of them in its second; the
/// others take what comes next.
fn call_with_anything(function: &Function, values: &[Option<Bytes>]) {
    const STEP: usize = 9;
    if matches!(function.body, Body::Aggregate(_)) {
        return;
    }
    let mut out = Vec::new();
    for (at, first) in values.iter().enumerate() {
        let pairs = if function.arguments.len() > 1 { values.len() / STEP } else { 1 };
        for pair in 0..pairs {
            let second = at + pair * STEP;
            let value = |position: usize| match position {
                0 => first.clone(),
                other => values[(second + other - 1) % values.len()].clone(),
            };
            let arguments: Vec<_> = (0..function.arguments.len()).map(value).collect();
            out.clear();
            // an error is an answer; a panic is not
            if let Ok(false) = function.call(&arguments, &NoSources, &mut out) {
                assert!(out.is_empty(), "{} is null and wrote", function.signature());
            }
        }
    }
}

#[test]
fn no_function_panics() {
    let values = arbitrary();
    for function in REGISTRY.all() {
        call_with_anything(function, &values);
    }
    let int = || CqlType::Int.into();
    let text = || CqlType::Text.into();
    let types = [
        CqlType::Text,
        CqlType::Ascii,
        CqlType::Int,
        CqlType::Decimal,
        CqlType::Varint,
        CqlType::Double,
        CqlType::Duration,
        CqlType::Inet,
        CqlType::List { element: int(), frozen: false },
        CqlType::Set { element: CqlType::Decimal.into(), frozen: true },
        CqlType::Map { key: text(), value: int(), frozen: false },
        CqlType::Tuple(vec![CqlType::Int, CqlType::Text].into()),
        CqlType::Vector { element: CqlType::Float.into(), dimension: 3 },
        CqlType::Vector { element: text(), dimension: 2 },
    ];
    let mut made = 0;
    for factory in REGISTRY.factories() {
        for ty in &types {
            for rest in
                [&[][..], std::slice::from_ref(ty), &[CqlType::Text], &[CqlType::Int, CqlType::Int, CqlType::Text]]
            {
                let arguments: Vec<_> = std::iter::once(ty).chain(rest).cloned().collect();
                if let Ok(function) = factory.of_types(&arguments, Some(ty)) {
                    call_with_anything(&function, &values);
                    made += 1;
                }
            }
        }
    }
    assert!(made > 50, "{made} functions were made");
}

#[test]
fn counts_below_zero_mask_as_in_java() {
    let factory = REGISTRY.factory("mask_inner").expect("it is declared");
    let function = factory.of_types(&[CqlType::Text, CqlType::Int, CqlType::Int], None).expect("of these types");
    let int = |number: i32| Some(Bytes::copy_from_slice(&number.to_be_bytes()));
    for (begin, end, masked) in [(1, 0, "a**"), (0, -1, "***"), (0, i32::MIN, "abc"), (i32::MIN, 1, "**c")] {
        let arguments = vec![Some(Bytes::from_static(b"abc")), int(begin), int(end)];
        let mut out = Vec::new();
        assert!(matches!(function.call(&arguments, &NoSources, &mut out), Ok(true)));
        assert_eq!(out, masked.as_bytes(), "{begin} {end}");
    }
}

#[test]
fn masks_are_restored_and_unknown_ones_show_null() {
    let mask = |function: &str, argument_types: &[CqlType], arguments: &[Option<Bytes>]| ColumnMask {
        keyspace: "system".to_owned(),
        function: function.to_owned(),
        argument_types: argument_types.to_vec(),
        arguments: arguments.to_vec(),
    };
    let values = [Some(Bytes::from_static(&[0, 0, 0, 1])), None, Some(Bytes::from_static(b"#"))];
    let types = [CqlType::Int, CqlType::Int, CqlType::Text];
    let inner = mask("mask_inner", &types, &values);
    assert_eq!(inner.text(), "system.mask_inner(1, null, '#')");
    assert_eq!(Mask::restore(&inner, &CqlType::Text).definition(), inner);
    let null = |mask: &ColumnMask, ty| Mask::restore(mask, ty).definition().function == "mask_null";
    assert!(null(&mask("abs", &[], &[]), &CqlType::Int));
    assert!(null(&mask("mask_inner", &types, &values), &CqlType::Int));
    assert!(null(&ColumnMask { keyspace: "ks".to_owned(), ..mask("mask_default", &[], &[]) }, &CqlType::Int));
    assert!(!null(&mask("mask_default", &[], &[]), &CqlType::Int));
}
