//! `to_json(x)` of a value of any type, and `from_json(text)` for the type that its value is for.
//!
//! Agrees with `org.apache.cassandra.cql3.functions.{ToJsonFct,FromJsonFct}`.

use types::{CqlType, json};

use super::factory::{Factory, Parameter};
use super::registry::FunctionRegistry;
use super::{Body, Function, Outcome, put};
use crate::error::CqlError;

/// Declares them.
pub(super) fn declare(registry: &mut FunctionRegistry) {
    for name in ["to_json", "tojson"] {
        let parameters = &[Parameter::Any { from_receiver: false }];
        registry.add_factory(Factory::new(name, parameters, |factory, types, _| {
            Ok(Function::new(factory.name, types, CqlType::Text, Body::Raw(to_json)))
        }));
    }
    for name in ["from_json", "fromjson"] {
        registry.add_factory(Factory::new(name, &[Parameter::Text], |factory, _, receiver| match receiver {
            Some(receiver) => {
                Ok(Function::new(factory.name, &[CqlType::Text], receiver.clone(), Body::Strict(from_json)))
            }
            None => Err(CqlError::invalid(format!(
                "{}() cannot be used in the selection clause of a SELECT statement",
                factory.name
            ))),
        }));
    }
}

fn to_json(function: &Function, arguments: &[Option<&[u8]>], out: &mut Vec<u8>) -> Outcome {
    match (function.arguments.first(), arguments) {
        (Some(ty), [Some(value)]) if !value.is_empty() || ty.empty_is_meaningful() => {
            out.extend_from_slice(json::to_json(ty, value).as_bytes());
        }
        _ => out.extend_from_slice(b"null"),
    }
    Ok(true)
}

fn from_json(function: &Function, arguments: &[&[u8]], out: &mut Vec<u8>) -> Outcome {
    let [text] = arguments else { return Ok(false) };
    let text = String::from_utf8_lossy(text);
    let parsed = json::parse(&text).map_err(|error| {
        let message = error.message();
        function.failed(format!(
            "execution of '{}[text]' failed: Could not decode JSON string '{text}': {message}",
            function.full_name()
        ))
    })?;
    if parsed == json::Json::Null {
        return Ok(false);
    }
    let value = json::from_json(&function.returns, &parsed).map_err(|error| match error.message() {
        // as in Cassandra, a malformed duration anywhere inside of the value is an invalid request
        message if message.ends_with(" to a duration") => CqlError::invalid(message),
        message => function.failed(message.to_owned()),
    })?;
    put(out, Some(value))
}
