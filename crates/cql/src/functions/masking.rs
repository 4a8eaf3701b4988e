//! The masking functions: `mask_null`, `mask_default`, `mask_replace`, `mask_inner`, `mask_outer`
//! and `mask_hash`. `selection::Mask` attaches one of them to a column.
//!
//! Agrees with the classes of `org.apache.cassandra.cql3.functions.masking`, messages included.

mod default;
mod hash;
mod partial;

use types::CqlType;

use super::factory::{Factory, Parameter};
use super::registry::FunctionRegistry;
use super::{Body, Function, Outcome, Raw};

static ANY: Parameter = Parameter::Any { from_receiver: true };
static TEXT: Parameter = Parameter::Text;
static ALONE: [Parameter; 1] = [Parameter::Any { from_receiver: false }];
static REPLACE: [Parameter; 2] =
    [Parameter::Any { from_receiver: true }, Parameter::SameAs { index: 0, prefer_other: true, parameter: &ANY }];
static PARTIAL: [Parameter; 4] = [Parameter::AnyText, Parameter::Int, Parameter::Int, Parameter::Optional(&TEXT)];
static HASH: [Parameter; 2] = [Parameter::Any { from_receiver: false }, Parameter::Optional(&TEXT)];

/// Declares them.
pub(super) fn declare(registry: &mut FunctionRegistry) {
    registry.add_factory(Factory::new("mask_null", &ALONE, |factory, types, _| of_its_type(factory, types, null)));
    registry.add_factory(Factory::new("mask_default", &ALONE, |factory, types, _| {
        of_its_type(factory, types, default::mask)
    }));
    registry
        .add_factory(Factory::new("mask_replace", &REPLACE, |factory, types, _| of_its_type(factory, types, replace)));
    registry.add_factory(Factory::new("mask_inner", &PARTIAL, |factory, types, _| {
        of_its_type(factory, &partial::types(types), partial::inner)
    }));
    registry.add_factory(Factory::new("mask_outer", &PARTIAL, |factory, types, _| {
        of_its_type(factory, &partial::types(types), partial::outer)
    }));
    registry.add_factory(Factory::new("mask_hash", &HASH, |factory, types, _| {
        let types: Vec<_> = types.iter().take(1).chain(types.get(1).map(|_| &CqlType::Text)).cloned().collect();
        Ok(Function::new(factory.name, &types, CqlType::Blob, Body::Raw(hash::mask)))
    }));
}

/// Whether a function masks. The names of all masking functions, and of no others, begin with
/// `mask_`.
pub(crate) fn is_masking(function: &Function) -> bool {
    function.name().starts_with("mask_")
}

fn of_its_type(factory: &Factory, types: &[CqlType], body: Raw) -> Result<Function, crate::error::CqlError> {
    let Some(ty) = types.first() else { return Err(factory.wrong_number_of_arguments()) };
    Ok(Function::new(factory.name, types, ty.clone(), Body::Raw(body)))
}

/// `mask_null` for a type.
pub(crate) fn null_of(ty: &CqlType) -> Function {
    Function::new("mask_null", std::slice::from_ref(ty), ty.clone(), Body::Raw(null))
}

fn null(_: &Function, _: &[Option<&[u8]>], _: &mut Vec<u8>) -> Outcome {
    Ok(false)
}

fn replace(_: &Function, arguments: &[Option<&[u8]>], out: &mut Vec<u8>) -> Outcome {
    let [_, Some(value)] = arguments else { return Ok(false) };
    out.extend_from_slice(value);
    Ok(true)
}
