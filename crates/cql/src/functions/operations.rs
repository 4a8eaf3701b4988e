//! The operators `+ - * / %` and the sign, as functions with the names `_add` etc.
//!
//! Agrees with `org.apache.cassandra.cql3.functions.OperationFcts`.

use types::CqlType;
use types::number::{self, Operator};

use super::registry::FunctionRegistry;
use super::{Body, Function, NameStyle, Outcome, put};
use crate::ast::Arithmetic;

/// The numeric types, in the order in which Cassandra declares operators for them.
pub(super) static NUMBERS: [CqlType; 9] = [
    CqlType::TinyInt,
    CqlType::SmallInt,
    CqlType::Int,
    CqlType::BigInt,
    CqlType::Float,
    CqlType::Double,
    CqlType::Decimal,
    CqlType::Varint,
    CqlType::Counter,
];

/// The name of the function behind `-x`.
pub(crate) const NEGATION: &str = "_negate";

const OPERATIONS: [(Operator, &str); 5] = [
    (Operator::Add, "_add"),
    (Operator::Subtract, "_substract"),
    (Operator::Multiply, "_multiply"),
    (Operator::Divide, "_divide"),
    (Operator::Modulo, "_modulo"),
];

/// The name of the function behind an operator. Cassandra spells one of them `_substract`.
pub(crate) fn function_name(operator: Arithmetic) -> &'static str {
    match operator {
        Arithmetic::Add => "_add",
        Arithmetic::Subtract => "_substract",
        Arithmetic::Multiply => "_multiply",
        Arithmetic::Divide => "_divide",
        Arithmetic::Modulo => "_modulo",
    }
}

/// The operator of a function's name; None: the function is no operator.
pub(super) fn operator(name: &str) -> Option<Operator> {
    OPERATIONS.iter().find(|(_, function)| *function == name).map(|(operator, _)| *operator)
}

/// Declares them.
pub(super) fn declare(registry: &mut FunctionRegistry) {
    let temporals = [CqlType::Timestamp, CqlType::Date];
    let texts = [CqlType::Text, CqlType::Ascii];
    for (operator, name) in OPERATIONS {
        let mut add = |left: &CqlType, right: &CqlType| {
            let Some(returns) = number::result_type(operator, left, right) else { return };
            let function = Function::new(name, &[left.clone(), right.clone()], returns, Body::Strict(calculate));
            registry.add(function.name_style(NameStyle::Operator(operator.symbol())));
        };
        for left in &NUMBERS {
            for right in &NUMBERS {
                add(left, right);
            }
        }
        for temporal in &temporals {
            add(temporal, &CqlType::Duration);
        }
        for left in &texts {
            for right in &texts {
                add(left, right);
            }
        }
    }
    for ty in &NUMBERS {
        let function = Function::new(NEGATION, std::slice::from_ref(ty), ty.clone(), Body::Strict(negate));
        registry.add(function.name_style(NameStyle::Negation));
    }
}

fn calculate(function: &Function, arguments: &[&[u8]], out: &mut Vec<u8>) -> Outcome {
    let (Some(operator), [left_type, right_type], [left, right]) =
        (operator(&function.name), function.arguments.as_slice(), arguments)
    else {
        return Ok(false);
    };
    let value = number::calculate(operator, (left_type, left), (right_type, right));
    put(out, value.map_err(|error| function.failed(error.message().to_owned()))?)
}

fn negate(function: &Function, arguments: &[&[u8]], out: &mut Vec<u8>) -> Outcome {
    let [value] = arguments else { return Ok(false) };
    put(out, number::negate(&function.returns, value)?)
}
