//! Similarity of vectors of floats: `similarity_cosine`, `similarity_euclidean`,
//! `similarity_dot_product`.
//!
//! Agrees with `org.apache.cassandra.cql3.functions.VectorFcts`; the formulas are those of
//! jvector's `VectorSimilarityFunction`.

use types::CqlType;

use super::factory::{Factory, Parameter};
use super::registry::FunctionRegistry;
use super::{Body, Function, Outcome};
use crate::error::CqlError;

static VECTOR: Parameter = Parameter::Vector;
static PARAMETERS: [Parameter; 2] = [
    Parameter::SameAs { index: 1, prefer_other: false, parameter: &VECTOR },
    Parameter::SameAs { index: 0, prefer_other: false, parameter: &VECTOR },
];

/// Declares them.
pub(super) fn declare(registry: &mut FunctionRegistry) {
    for name in ["similarity_cosine", "similarity_euclidean", "similarity_dot_product"] {
        registry.add_factory(Factory::new(name, &PARAMETERS, |factory, types, _| {
            if dimension(types.first()) != dimension(types.get(1)) {
                return Err(CqlError::invalid("All arguments must have the same vector dimensions"));
            }
            let body = match factory.name {
                "similarity_cosine" => cosine,
                "similarity_euclidean" => |_: &Function, arguments: &[&[u8]], out: &mut Vec<u8>| {
                    put(arguments, out, |pairs| 1.0 / (1.0 + pairs.map(|(a, b)| (a - b) * (a - b)).sum::<f32>()))
                },
                _ => |_: &Function, arguments: &[&[u8]], out: &mut Vec<u8>| {
                    put(arguments, out, |pairs| (1.0 + pairs.map(|(a, b)| a * b).sum::<f32>()) / 2.0)
                },
            };
            let Some(first) = types.first() else { return Err(factory.wrong_number_of_arguments()) };
            Ok(Function::new(factory.name, &[first.clone(), first.clone()], CqlType::Float, Body::Strict(body)))
        }));
    }
}

fn dimension(ty: Option<&CqlType>) -> Option<u32> {
    match ty {
        Some(CqlType::Vector { dimension, .. }) => Some(*dimension),
        _ => None,
    }
}

fn floats(vector: &[u8]) -> impl Iterator<Item = f32> + Clone {
    vector.as_chunks::<4>().0.iter().map(|bytes| f32::from_be_bytes(*bytes))
}

fn put(arguments: &[&[u8]], out: &mut Vec<u8>, of: impl Fn(&mut dyn Iterator<Item = (f32, f32)>) -> f32) -> Outcome {
    let [a, b] = arguments else { return Ok(false) };
    out.extend_from_slice(&of(&mut floats(a).zip(floats(b))).to_be_bytes());
    Ok(true)
}

fn cosine(function: &Function, arguments: &[&[u8]], out: &mut Vec<u8>) -> Outcome {
    if arguments.iter().any(|vector| floats(vector).all(|value| value == 0.0)) {
        let name = function.full_name();
        return Err(CqlError::invalid(format!("Function {name} doesn't support all-zero vectors.")));
    }
    put(arguments, out, |pairs| {
        let (mut sum, mut norm_a, mut norm_b) = (0f32, 0f32, 0f32);
        for (a, b) in pairs {
            sum += a * b;
            norm_a += a * a;
            norm_b += b * b;
        }
        let cosine = (f64::from(sum) / (f64::from(norm_a) * f64::from(norm_b)).sqrt()) as f32;
        (1.0 + cosine) / 2.0
    })
}
