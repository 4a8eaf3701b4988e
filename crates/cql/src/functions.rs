//! Native functions: what a function is, and calling it. Each family of them is a file below; together they are the [`table`], in
//! which [`resolve`] finds the function that a call means, when a statement is prepared.
//!
//! A function takes its arguments as bytes and appends the bytes of its value: calling allocates nothing but what the function
//! itself needs. No function panics, whatever bytes it is given.
//!
//! Agrees with `org.apache.cassandra.cql3.functions.{NativeFunctions,NativeScalarFunction,FunctionCall}`.

mod aggregates;
mod arguments;
mod blobs;
mod casts;
mod collections;
mod factory;
mod json;
mod masking;
mod math;
mod operations;
mod resolve;
mod table;
#[cfg(test)]
mod tests;
mod time;
mod token;
mod uuids;
mod vectors;

use std::sync::Arc;

use bytes::Bytes;
use smallvec::SmallVec;
use types::CqlType;

pub(crate) use aggregates::{AggregateKind, wins};
pub(crate) use arguments::{Argument, TypeArgument};
pub(crate) use casts::function_name as cast_name;
pub(crate) use masking::{is_masking, null_of};
pub(crate) use operations::{NEGATION, function_name as operation_name};
pub(crate) use resolve::{Scope, is_made, resolve};
pub(crate) use table::user_functions_are_refused;

use crate::error::CqlError;
use crate::scalar::type_name;
use crate::sources::Sources;

/// Arguments of a call, nearly always that few.
pub(crate) type Values = SmallVec<[Option<Bytes>; 4]>;

/// What a body says: true when it has appended a value, false for null.
type Outcome = Result<bool, CqlError>;

/// Appends the value for arguments that are all there.
type Strict = fn(&Function, &[&[u8]], &mut Vec<u8>) -> Outcome;

/// Appends the value for arguments of which some may be null.
type Raw = fn(&Function, &[Option<&[u8]>], &mut Vec<u8>) -> Outcome;

/// What a function does.
#[derive(Clone, Copy, Debug)]
enum Body {
    /// Null of any null, and of any argument that is empty where that says nothing.
    Strict(Strict),
    /// Sees its arguments as they are.
    Raw(Raw),
    /// Asks the clock or for a new id: another value each time.
    Source(fn(&dyn Sources, &mut Vec<u8>)),
    /// Of many rows: see [`crate::selection`].
    Aggregate(AggregateKind),
}

/// How the name of a result column is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Shown {
    /// `system.f(a, b)`
    Call,
    /// `a + b`
    Operator(char),
    /// `-a`
    Negation,
    /// `cast(a as t)`
    Cast,
    /// `count`
    Count,
}

/// Whether rows in the order of a clustering column are in the order of the function's value: what GROUP BY asks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Monotonic {
    No,
    Yes,
    /// In its first argument, once the others are known.
    InFirst,
}

/// A native function with the types of its arguments and of its value.
#[derive(Clone, Debug)]
pub(crate) struct Function {
    /// Its name in the keyspace `system`.
    name: Arc<str>,
    /// Types of its arguments.
    pub arguments: Vec<CqlType>,
    /// Type of its value.
    pub returns: CqlType,
    body: Body,
    shown: Shown,
    monotonic: Monotonic,
}

impl Function {
    fn new(name: &str, arguments: &[CqlType], returns: CqlType, body: Body) -> Self {
        let arguments = arguments.to_vec();
        Self { name: name.into(), arguments, returns, body, shown: Shown::Call, monotonic: Monotonic::No }
    }

    fn shown(self, shown: Shown) -> Self {
        Self { shown, ..self }
    }

    fn monotonic(self, monotonic: Monotonic) -> Self {
        Self { monotonic, ..self }
    }

    /// The same under another name.
    fn renamed(&self, name: &str) -> Self {
        Self { name: name.into(), ..self.clone() }
    }

    /// Its name without the keyspace.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its name with the keyspace `system`, as messages have it.
    pub fn full_name(&self) -> String {
        format!("system.{}", self.name)
    }

    /// `system.f : (int) -> text`, as messages have it.
    pub fn signature(&self) -> String {
        let arguments: Vec<_> = self.arguments.iter().map(type_name).collect();
        let name = types::ident::maybe_quote(&self.name);
        format!("system.{name} : ({}) -> {}", arguments.join(", "), type_name(&self.returns))
    }

    /// The name of a result column.
    pub fn column_name(&self, arguments: &[String]) -> String {
        match (self.shown, arguments) {
            (Shown::Operator(symbol), [left, right]) => format!("{left} {symbol} {right}"),
            (Shown::Negation, [of]) => format!("-{of}"),
            (Shown::Cast, [of]) => format!("cast({of} as {})", type_name(&self.returns)),
            (Shown::Count, _) => "count".to_owned(),
            _ => format!("system.{}({})", self.name, arguments.join(", ")),
        }
    }

    /// The same arguments always give the same value.
    pub fn is_pure(&self) -> bool {
        !matches!(self.body, Body::Source(_))
    }

    /// Every call gives a new id.
    pub fn gives_ids(&self) -> bool {
        !self.is_pure() && matches!(self.returns, CqlType::Uuid | CqlType::TimeUuid)
    }

    /// Which aggregate it is, if it is one.
    pub fn aggregate(&self) -> Option<AggregateKind> {
        match self.body {
            Body::Aggregate(kind) => Some(kind),
            _ => None,
        }
    }

    /// Whether groups can be made of its values. `known`: which of its arguments are the same for all rows.
    pub fn makes_groups(&self, known: &[bool]) -> bool {
        match self.monotonic {
            Monotonic::No => false,
            Monotonic::Yes => true,
            Monotonic::InFirst => {
                known.split_first().is_some_and(|(first, others)| !first && others.iter().all(|known| *known))
            }
        }
    }

    /// Calls it: appends its value, or says that it is null.
    ///
    /// Errors: what the function refuses. An aggregate has no value of its own and is an error of the server.
    pub fn call(&self, arguments: &[Option<Bytes>], sources: &dyn Sources, out: &mut Vec<u8>) -> Outcome {
        match self.body {
            Body::Source(body) => {
                body(sources, out);
                Ok(true)
            }
            Body::Raw(body) => {
                let arguments: SmallVec<[Option<&[u8]>; 4]> = arguments.iter().map(Option::as_deref).collect();
                body(self, &arguments, out)
            }
            Body::Strict(body) => {
                let mut known: SmallVec<[&[u8]; 4]> = SmallVec::new();
                for (argument, ty) in arguments.iter().zip(&self.arguments) {
                    match argument.as_deref() {
                        Some(value) if !value.is_empty() || ty.empty_is_meaningful() => known.push(value),
                        _ => return Ok(false),
                    }
                }
                body(self, &known, out)
            }
            Body::Aggregate(_) => Err(CqlError::Server(format!("the aggregate {} was called", self.name))),
        }
    }

    /// Its value as bytes of their own.
    pub fn evaluate(&self, arguments: &[Option<Bytes>], sources: &dyn Sources) -> Result<Option<Bytes>, CqlError> {
        let mut out = Vec::new();
        Ok(self.call(arguments, sources, &mut out)?.then(|| out.into()))
    }

    /// What a function says that failed while it was computed.
    fn failed(&self, message: String) -> CqlError {
        CqlError::FunctionFailure {
            keyspace: "system".into(),
            function: self.name.to_string(),
            argument_types: self.arguments.iter().map(type_name).collect(),
            message,
        }
    }
}

/// Appends what a calculation of crate `types` gave.
fn put(out: &mut Vec<u8>, value: Option<Vec<u8>>) -> Outcome {
    Ok(match value {
        Some(value) => {
            out.extend_from_slice(&value);
            true
        }
        None => false,
    })
}
