//! `map_keys`, `map_values`, `collection_count`, `_min`, `_max`, `_sum`, `_avg`.
//!
//! Agrees with `org.apache.cassandra.cql3.functions.CollectionFcts`.

use std::sync::Arc;

use types::number::Total;
use types::{CqlType, collection};

use super::aggregates::{AggregateKind, wins};
use super::factory::{Factory, Parameter};
use super::registry::FunctionRegistry;
use super::{Body, Function, Outcome};

/// Declares them.
pub(super) fn declare(registry: &mut FunctionRegistry) {
    registry.add_factory(Factory::new("map_keys", &[Parameter::Map], |factory, types, _| {
        let [CqlType::Map { key, .. }] = types else { return Err(factory.wrong_number_of_arguments()) };
        let returns = CqlType::Set { element: Arc::clone(key), frozen: true };
        Ok(Function::new(factory.name, types, returns, Body::Strict(keys)))
    }));
    registry.add_factory(Factory::new("map_values", &[Parameter::Map], |factory, types, _| {
        let [CqlType::Map { value, .. }] = types else { return Err(factory.wrong_number_of_arguments()) };
        let returns = CqlType::List { element: Arc::clone(value), frozen: true };
        Ok(Function::new(factory.name, types, returns, Body::Strict(values)))
    }));
    registry.add_factory(Factory::new("collection_count", &[Parameter::Collection], |factory, types, _| {
        Ok(Function::new(factory.name, types, CqlType::Int, Body::Raw(count)))
    }));
    let aggregates: [(&str, &'static [Parameter]); 4] = [
        ("collection_min", &[Parameter::SetOrList]),
        ("collection_max", &[Parameter::SetOrList]),
        ("collection_sum", &[Parameter::NumericSetOrList]),
        ("collection_avg", &[Parameter::NumericSetOrList]),
    ];
    for (name, parameters) in aggregates {
        registry.add_factory(Factory::new(name, parameters, |factory, types, _| {
            let Some(element) = types.first().and_then(element_type) else {
                return Err(factory.wrong_number_of_arguments());
            };
            let body = match factory.name {
                "collection_min" => Body::Raw(|f, arguments, out| extreme(AggregateKind::Min, f, arguments, out)),
                "collection_max" => Body::Raw(|f, arguments, out| extreme(AggregateKind::Max, f, arguments, out)),
                "collection_sum" => Body::Raw(|f, arguments, out| total(Total::sum, f, arguments, out)),
                _ => Body::Raw(|f, arguments, out| total(Total::average, f, arguments, out)),
            };
            Ok(Function::new(factory.name, types, element.clone(), body))
        }));
    }
}

/// The type of the elements of a set or list.
pub(super) fn element_type(ty: &CqlType) -> Option<&CqlType> {
    match ty {
        CqlType::List { element, .. } | CqlType::Set { element, .. } => Some(element),
        _ => None,
    }
}

fn keys(_: &Function, arguments: &[&[u8]], out: &mut Vec<u8>) -> Outcome {
    put_half(arguments, out, |(key, _)| key)
}

fn values(_: &Function, arguments: &[&[u8]], out: &mut Vec<u8>) -> Outcome {
    put_half(arguments, out, |(_, value)| value)
}

fn put_half<'a>(arguments: &[&'a [u8]], out: &mut Vec<u8>, half: impl Fn((&'a [u8], &'a [u8])) -> &'a [u8]) -> Outcome {
    let [map] = arguments else { return Ok(false) };
    let at = out.len();
    let mut count = 0;
    collection::put_count(out, 0);
    for entry in collection::entries(map) {
        stdx::put_int_bytes(out, Some(half(entry)));
        count += 1;
    }
    let mut head = Vec::with_capacity(4);
    collection::put_count(&mut head, count);
    out[at..at + head.len()].copy_from_slice(&head);
    Ok(true)
}

fn count(_: &Function, arguments: &[Option<&[u8]>], out: &mut Vec<u8>) -> Outcome {
    let [Some(value)] = arguments else { return Ok(false) };
    out.extend_from_slice(&i32::try_from(collection::count(value)).unwrap_or(i32::MAX).to_be_bytes());
    Ok(true)
}

fn extreme(kind: AggregateKind, function: &Function, arguments: &[Option<&[u8]>], out: &mut Vec<u8>) -> Outcome {
    let [Some(value)] = arguments else { return Ok(false) };
    let mut found: Option<&[u8]> = None;
    for element in collection::elements(value) {
        if found.is_none_or(|old| wins(kind, &function.returns, element, old)) {
            found = Some(element);
        }
    }
    match found {
        Some(found) => {
            out.extend_from_slice(found);
            Ok(true)
        }
        None => Ok(false),
    }
}

fn total(
    of: fn(&CqlType) -> Option<Total>,
    function: &Function,
    arguments: &[Option<&[u8]>],
    out: &mut Vec<u8>,
) -> Outcome {
    let [Some(value)] = arguments else { return Ok(false) };
    let Some(mut total) = of(&function.returns) else { return Ok(false) };
    for element in collection::elements(value) {
        total.add(element).map_err(|error| function.failed(error.to_string()))?;
    }
    out.extend_from_slice(&total.finish().map_err(|error| function.failed(error.to_string()))?);
    Ok(true)
}
