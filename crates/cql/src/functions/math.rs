//! `abs`, `exp`, `log`, `log10`, `round`. Agrees with
//! `org.apache.cassandra.cql3.functions.MathFcts`.

use types::number::{self, Function as Math};

use super::operations::NUMBERS;
use super::registry::FunctionRegistry;
use super::{Body, Function, Outcome, Strict, put};

/// Declares them.
pub(super) fn declare(registry: &mut FunctionRegistry) {
    let functions: [(&str, Strict); 5] = [
        ("abs", |function, arguments, out| apply(Math::Abs, function, arguments, out)),
        ("exp", |function, arguments, out| apply(Math::Exp, function, arguments, out)),
        ("log", |function, arguments, out| apply(Math::Log, function, arguments, out)),
        ("log10", |function, arguments, out| apply(Math::Log10, function, arguments, out)),
        ("round", |function, arguments, out| apply(Math::Round, function, arguments, out)),
    ];
    for (name, body) in functions {
        for ty in &NUMBERS {
            registry.add(Function::new(name, std::slice::from_ref(ty), ty.clone(), Body::Strict(body)));
        }
    }
}

/// A number without a logarithm is the error of a failed function here; Cassandra answers with a
/// server error.
fn apply(math: Math, function: &Function, arguments: &[&[u8]], out: &mut Vec<u8>) -> Outcome {
    let [value] = arguments else { return Ok(false) };
    put(out, number::apply(math, &function.returns, value).map_err(|error| function.failed(error.to_string()))?)
}
