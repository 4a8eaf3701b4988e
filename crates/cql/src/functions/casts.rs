//! `CAST(x AS type)`: functions `cast_as_type`, one for each type that can be cast.
//!
//! Agrees with `org.apache.cassandra.cql3.functions.CastFcts`.

use types::{CqlType, number};

use super::registry::FunctionRegistry;
use super::{Body, Function, NameStyle, Outcome, put};
use crate::ast::NativeType;
use crate::fit::native_type;

/// The name of the function that casts to a type; None for `varchar` and for types that nothing can
/// be cast to.
pub(crate) fn function_name(to: NativeType) -> String {
    format!("cast_as_{}", to.name())
}

/// Declares them.
pub(super) fn declare(registry: &mut FunctionRegistry) {
    let types: Vec<_> = NativeType::ALL.iter().filter(|native| **native != NativeType::Varchar).collect();
    for to in &types {
        let name = function_name(**to);
        let (first, rest) = to.name().split_at(1);
        let old = format!("castAs{}{rest}", first.to_uppercase());
        let to = native_type(**to);
        for from in types.iter().map(|native| native_type(**native)) {
            if from != to && number::can_cast(&from, &to) {
                let function =
                    Function::new(&name, &[from], to.clone(), Body::Strict(cast)).name_style(NameStyle::Cast);
                registry.add_with_old_name(function, &old);
            }
        }
    }
}

fn cast(function: &Function, arguments: &[&[u8]], out: &mut Vec<u8>) -> Outcome {
    let ([from], [value]) = (function.arguments.as_slice(), arguments) else { return Ok(false) };
    // casting an ascii to text changes nothing
    if *from == CqlType::Ascii {
        out.extend_from_slice(value);
        return Ok(true);
    }
    put(out, number::cast(from, &function.returns, value)?)
}
