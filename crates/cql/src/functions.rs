//! Native functions: what a function is, and how it is called. Each family is a file in
//! `functions/` and declares its functions in the [`registry`]. When a statement is prepared,
//! [`resolve`] finds there the function that a call means.
//!
//! A function takes serialized arguments and appends its serialized value, so that a call allocates
//! nothing but what the function itself needs. No function panics, whatever bytes it is given.
//!
//! Agrees with
//! `org.apache.cassandra.cql3.functions.{NativeFunctions,NativeScalarFunction,FunctionCall}`.

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
mod registry;
mod resolve;
pub(crate) mod slow_calls;
#[cfg(test)]
mod tests;
mod time;
mod token;
mod user;
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
pub(crate) use resolve::{Scope, has_factory, resolve};
pub use user::UserFunctionLimits;
pub(crate) use user::{USER_FUNCTIONS_DISABLED, UserAggregate};

use crate::error::CqlError;
use crate::scalar::type_name;
use crate::sources::Sources;

/// The arguments of a call. Nearly all calls have at most four.
pub(crate) type Values = SmallVec<[Option<Bytes>; 4]>;

/// The outcome of a call: true if a value was appended, false for null.
type Outcome = Result<bool, CqlError>;

/// The most bytes of a value that a function or a selector makes; a larger one is refused. Calls in
/// each other could otherwise make a value of any size from a short one: each `to_json` of a text
/// doubles the quotes in it, and sixty of them in each other would need more memory than there is.
pub(crate) const VALUE_BYTES_MAX: usize = if cfg!(test) { 1 << 20 } else { 64 << 20 };

/// Appends the value; no argument is null.
type Strict = fn(&Function, &[&[u8]], &mut Vec<u8>) -> Outcome;

/// Appends the value; arguments may be null.
type Raw = fn(&Function, &[Option<&[u8]>], &mut Vec<u8>) -> Outcome;

/// The body of a function.
#[derive(Clone, Copy, Debug)]
enum Body {
    /// Not called, and the value is null, if an argument is null, or empty in a type for which
    /// empty means null.
    Strict(Strict),
    /// Called with every argument, null and empty too.
    Raw(Raw),
    /// Asks for the time or a new id, so that each call has another value.
    Source(fn(&dyn Sources, &mut Vec<u8>)),
    /// An aggregate, which [`crate::selection`] computes.
    Aggregate(AggregateKind),
    /// A user-defined function: [`Function::user`].
    User,
}

/// The form of the name of a result column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum NameStyle {
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

/// Whether the function is monotonic, so that rows in the order of a clustering column are in the
/// order of its value. GROUP BY needs that.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Monotonic {
    No,
    Yes,
    /// Monotonic in its first argument if the others are constants.
    InFirst,
}

/// A native function for certain types of arguments.
#[derive(Clone, Debug)]
pub(crate) struct Function {
    /// The name, in the keyspace `system`.
    name: Arc<str>,
    /// The types of the arguments.
    pub arguments: Vec<CqlType>,
    /// The type of the value.
    pub returns: CqlType,
    body: Body,
    name_style: NameStyle,
    monotonic: Monotonic,
    user: Option<user::UserFunction>,
}

impl Function {
    fn new(name: &str, arguments: &[CqlType], returns: CqlType, body: Body) -> Self {
        let arguments = arguments.to_vec();
        Self {
            name: name.into(),
            arguments,
            returns,
            body,
            name_style: NameStyle::Call,
            monotonic: Monotonic::No,
            user: None,
        }
    }

    fn name_style(self, name_style: NameStyle) -> Self {
        Self { name_style, ..self }
    }

    fn monotonic(self, monotonic: Monotonic) -> Self {
        Self { monotonic, ..self }
    }

    /// A copy with another name.
    fn renamed(&self, name: &str) -> Self {
        Self { name: name.into(), ..self.clone() }
    }

    /// The name without the keyspace.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name with the keyspace, as in messages.
    pub fn full_name(&self) -> String {
        format!("{}.{}", self.keyspace(), self.name)
    }

    /// The keyspace.
    pub fn keyspace(&self) -> &str {
        self.user.as_ref().map_or("system", user::UserFunction::keyspace)
    }

    /// Whether it is a user-defined function or aggregate.
    pub fn is_user_defined(&self) -> bool {
        self.user.is_some()
    }

    /// Whether the schema still has the user-defined function as it was resolved.
    pub fn is_current(&self, schema: &schema::Schema) -> bool {
        self.user.as_ref().is_none_or(|user| user.is_current(schema))
    }

    /// The user-defined aggregate that this is.
    pub fn user_aggregate(&self) -> Option<&Arc<UserAggregate>> {
        self.user.as_ref().and_then(user::UserFunction::aggregate)
    }

    /// The signature, as in messages: `system.f : (int) -> text`.
    pub fn signature(&self) -> String {
        let arguments: Vec<_> = self.arguments.iter().map(type_name).collect();
        let name = types::ident::maybe_quote(&self.name);
        let keyspace = types::ident::maybe_quote(self.keyspace());
        format!("{keyspace}.{name} : ({}) -> {}", arguments.join(", "), type_name(&self.returns))
    }

    /// The name of a result column.
    pub fn column_name(&self, arguments: &[String]) -> String {
        match (self.name_style, arguments) {
            (NameStyle::Operator(symbol), [left, right]) => format!("{left} {symbol} {right}"),
            (NameStyle::Negation, [of]) => format!("-{of}"),
            (NameStyle::Cast, [of]) => format!("cast({of} as {})", type_name(&self.returns)),
            (NameStyle::Count, _) => "count".to_owned(),
            _ => format!("{}({})", self.full_name(), arguments.join(", ")),
        }
    }

    /// Whether the same arguments always give the same value.
    pub fn is_pure(&self) -> bool {
        !matches!(self.body, Body::Source(_) | Body::User)
    }

    /// Whether every call gives a new id.
    pub fn gives_ids(&self) -> bool {
        matches!(self.body, Body::Source(_)) && matches!(self.returns, CqlType::Uuid | CqlType::TimeUuid)
    }

    /// The kind of aggregate; None: the function is none.
    pub fn aggregate(&self) -> Option<AggregateKind> {
        match self.body {
            Body::Aggregate(kind) => Some(kind),
            _ => None,
        }
    }

    /// Whether GROUP BY may use the function. `known` says which of its arguments have the same
    /// value for all rows.
    pub fn makes_groups(&self, known: &[bool]) -> bool {
        match self.monotonic {
            Monotonic::No => false,
            Monotonic::Yes => true,
            Monotonic::InFirst => {
                known.split_first().is_some_and(|(first, others)| !first && others.iter().all(|known| *known))
            }
        }
    }

    /// Calls the function. It appends the value, or the result is false for null.
    ///
    /// Errors: arguments that the function refuses, and a value that is larger than
    /// [`VALUE_BYTES_MAX`]. Calling an aggregate is an error of the server.
    pub fn call(&self, arguments: &[Option<Bytes>], sources: &dyn Sources, out: &mut Vec<u8>) -> Outcome {
        assert_eq!(arguments.len(), self.arguments.len(), "{} is called as it was resolved", self.name);
        let start = out.len();
        let has_value = self.append(arguments, sources, out)?;
        if out.len() - start > VALUE_BYTES_MAX {
            let (name, most) = (self.full_name(), VALUE_BYTES_MAX >> 20);
            return Err(CqlError::invalid(format!("The value of function {name} is larger than {most} MiB")));
        }
        Ok(has_value)
    }

    /// As [`Self::call`], of values of any size.
    fn append(&self, arguments: &[Option<Bytes>], sources: &dyn Sources, out: &mut Vec<u8>) -> Outcome {
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
            Body::User => match &self.user {
                Some(user) => user.call(arguments, out),
                None => Err(CqlError::Server(format!("{} has no body", self.name))),
            },
            Body::Aggregate(_) => Err(CqlError::Server(format!("the aggregate {} was called", self.name))),
        }
    }

    /// Calls the function and returns the value; None: null.
    pub fn evaluate(&self, arguments: &[Option<Bytes>], sources: &dyn Sources) -> Result<Option<Bytes>, CqlError> {
        let mut out = Vec::new();
        Ok(self.call(arguments, sources, &mut out)?.then(|| out.into()))
    }

    /// The error for a function that failed while it was computed.
    fn failed(&self, message: String) -> CqlError {
        CqlError::FunctionFailure {
            keyspace: "system".into(),
            function: self.name.to_string(),
            argument_types: self.arguments.iter().map(type_name).collect(),
            message,
        }
    }
}

/// Appends the result of a calculation of the crate `types`.
fn put(out: &mut Vec<u8>, value: Option<Vec<u8>>) -> Outcome {
    Ok(match value {
        Some(value) => {
            out.extend_from_slice(&value);
            true
        }
        None => false,
    })
}
