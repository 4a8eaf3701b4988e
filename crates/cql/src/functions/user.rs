//! User-defined functions and aggregates as functions of CQL.
//!
//! A call runs the compiled body of the schema under a budget that follows from
//! `user_defined_functions_fail_timeout`: the steps that a slow machine makes in that time. A call
//! that takes the steps of `user_defined_functions_warn_timeout` is noted ([`super::slow_calls`]).
//!
//! Agrees with `org.apache.cassandra.cql3.functions.{UDFunction,UDAggregate}`, messages included.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use functions::{Budget, CallError};
use schema::{AggregateMetadata, FunctionMetadata, Schema};
use smallvec::SmallVec;
use types::CqlType;

use super::{AggregateKind, Body, Function, Monotonic, NameStyle, Outcome, slow_calls};
use crate::error::CqlError;

/// The refusal of a call or of CREATE FUNCTION while functions are off.
pub(crate) const USER_FUNCTIONS_DISABLED: &str =
    "User-defined functions are disabled in cassandra.yaml - set user_defined_functions_enabled=true to enable";

/// Steps of a body in a millisecond on a slow machine.
const STEPS_EACH_MS: u64 = 20_000;

/// Bytes of objects that one call may make.
const CALL_BYTES_MAX: u64 = 32 << 20;

/// Largest state of an aggregate in bytes; a larger one fails the request.
const STATE_SIZE_MAX: usize = 8 << 20;

/// The limit of calls in milliseconds; 0: functions are off.
///
/// One number for the process, because functions are called where no request is at hand. A process
/// with several nodes, as in tests, has the limit that was set last.
static FAIL_TIMEOUT_MS: AtomicU64 = AtomicU64::new(0);

/// The time in milliseconds from which on a call is warned of; 0: never. One number for the
/// process, as the limit.
static WARN_TIMEOUT_MS: AtomicU64 = AtomicU64::new(0);

/// The node's configuration of user-defined functions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UserFunctionLimits {
    /// user_defined_functions_enabled
    pub enabled: bool,
    /// user_defined_functions_fail_timeout, in milliseconds
    pub fail_timeout_ms: u64,
    /// user_defined_functions_warn_timeout, in milliseconds; 0: never
    pub warn_timeout_ms: u64,
}

impl UserFunctionLimits {
    /// Puts the limits in force for all calls of the process.
    pub fn put_in_force(self) {
        let limit = if self.enabled { self.fail_timeout_ms.max(1) } else { 0 };
        FAIL_TIMEOUT_MS.store(limit, Ordering::Relaxed);
        WARN_TIMEOUT_MS.store(self.warn_timeout_ms, Ordering::Relaxed);
    }
}

/// A user-defined function or aggregate.
#[derive(Clone, Debug)]
pub(crate) enum UserFunction {
    /// A function of values.
    Scalar(Arc<FunctionMetadata>),
    /// An aggregate.
    Aggregate(Arc<UserAggregate>),
}

/// A user-defined aggregate.
#[derive(Debug)]
pub(crate) struct UserAggregate(Arc<AggregateMetadata>);

/// The user-defined functions and aggregates of a name.
pub(super) fn candidates(schema: &Schema, keyspace: &str, name: &str) -> Vec<Arc<Function>> {
    let Some(keyspace) = schema.keyspace(keyspace) else { return Vec::new() };
    if keyspace.function_rows.is_empty() {
        return Vec::new();
    }
    let make = |name: &str, arguments: Vec<CqlType>, returns: &CqlType, body: Body, user: UserFunction| {
        Arc::new(Function {
            name: name.into(),
            arguments,
            returns: returns.clone(),
            body,
            name_style: NameStyle::Call,
            monotonic: Monotonic::No,
            user: Some(user),
        })
    };
    let functions = keyspace.functions.values().filter(|function| function.name == name).map(|function| {
        let arguments = function.arguments.iter().map(|(_, ty)| ty.clone()).collect();
        make(name, arguments, &function.returns, Body::User, UserFunction::Scalar(Arc::clone(function)))
    });
    let aggregates = keyspace.aggregates.values().filter(|aggregate| aggregate.name == name).map(|aggregate| {
        let user = UserFunction::Aggregate(Arc::new(UserAggregate(Arc::clone(aggregate))));
        let body = Body::Aggregate(AggregateKind::User);
        make(name, aggregate.arguments.clone(), &aggregate.returns, body, user)
    });
    functions.chain(aggregates).collect()
}

impl UserFunction {
    pub fn keyspace(&self) -> &str {
        match self {
            Self::Scalar(function) => &function.keyspace,
            Self::Aggregate(aggregate) => &aggregate.0.keyspace,
        }
    }

    /// Whether the schema has it unchanged.
    pub fn is_current(&self, schema: &Schema) -> bool {
        let Some(keyspace) = schema.keyspace(self.keyspace()) else { return false };
        match self {
            Self::Scalar(function) => keyspace.functions.get(&function.key()) == Some(function),
            Self::Aggregate(aggregate) => keyspace.aggregates.get(&aggregate.0.key()) == Some(&aggregate.0),
        }
    }

    pub fn aggregate(&self) -> Option<&Arc<UserAggregate>> {
        match self {
            Self::Scalar(_) => None,
            Self::Aggregate(aggregate) => Some(aggregate),
        }
    }

    pub fn call(&self, arguments: &[Option<Bytes>], out: &mut Vec<u8>) -> Outcome {
        let Self::Scalar(function) = self else {
            return Err(CqlError::Server("an aggregate is called as a function".into()));
        };
        let arguments: SmallVec<[Option<&[u8]>; 4]> = arguments.iter().map(Option::as_deref).collect();
        super::put(out, run(function, &arguments)?)
    }
}

/// Whether a null among the arguments makes the result null.
fn is_null(argument: Option<&[u8]>, ty: &CqlType) -> bool {
    argument.is_none_or(|bytes| bytes.is_empty() && !ty.empty_is_meaningful())
}

/// Calls a function.
fn run(function: &FunctionMetadata, arguments: &[Option<&[u8]>]) -> Result<Option<Vec<u8>>, CqlError> {
    let limit = FAIL_TIMEOUT_MS.load(Ordering::Relaxed);
    if limit == 0 {
        return Err(CqlError::invalid(USER_FUNCTIONS_DISABLED));
    }
    let types = || function.arguments.iter().map(|(_, ty)| ty);
    if !function.called_on_null && arguments.iter().zip(types()).any(|(argument, ty)| is_null(*argument, ty)) {
        return Ok(None);
    }
    let code = match &*function.compiled {
        Ok(code) => code,
        Err(reason) => {
            return Err(CqlError::invalid(format!(
                "Function '{}' exists but hasn't been loaded successfully for the following reason: {reason}. Please see \
                 the server log for details",
                shown(function)
            )));
        }
    };
    let budget = Budget { steps: limit.saturating_mul(STEPS_EACH_MS), bytes: CALL_BYTES_MAX };
    let (result, steps) = code.call_counted(arguments, &budget);
    let warn = WARN_TIMEOUT_MS.load(Ordering::Relaxed);
    if warn > 0 && steps >= warn.saturating_mul(STEPS_EACH_MS) {
        slow_calls::record(|| format!("User defined function {} ran longer than {warn}ms", shown(function)));
    }
    result.map_err(|error| {
        let detail = match error {
            CallError::Thrown(text) => text,
            CallError::Steps => format!("User defined function {} ran longer than {limit}ms", shown(function)),
            CallError::Bytes => {
                format!("User defined function {} took more than {CALL_BYTES_MAX} bytes", shown(function))
            }
        };
        failed(function, &detail)
    })
}

/// `ks.f : (int) -> text`
fn shown(function: &FunctionMetadata) -> String {
    let types = schema::function::type_texts(function.arguments.iter().map(|(_, ty)| ty));
    let name = types::ident::qualified(&function.keyspace, &function.name);
    format!("{name} : ({}) -> {}", types.join(", "), schema::type_text::print(&function.returns))
}

fn failed(function: &FunctionMetadata, detail: &str) -> CqlError {
    let argument_types = schema::function::type_texts(function.arguments.iter().map(|(_, ty)| ty));
    CqlError::FunctionFailure {
        keyspace: function.keyspace.clone(),
        function: function.name.clone(),
        message: detail.to_owned(),
        argument_types,
    }
}

impl UserAggregate {
    /// The functions that it is made of: the state function, and the final function if it has one.
    pub fn functions(&self) -> impl Iterator<Item = &FunctionMetadata> {
        [Some(&self.0.state_function), self.0.final_function.as_ref()].into_iter().flatten().map(AsRef::as_ref)
    }

    /// The first state.
    pub fn initial(&self) -> Option<Bytes> {
        self.0.initial.clone()
    }

    /// The state after a row with these arguments.
    pub fn add(&self, state: Option<&Bytes>, arguments: &[Option<Bytes>]) -> Result<Option<Bytes>, CqlError> {
        let function = &self.0.state_function;
        let rest = arguments.iter().zip(&self.0.arguments);
        // a row with a null leaves the state of such a function; a null state stays null
        if !function.called_on_null && rest.clone().any(|(argument, ty)| is_null(argument.as_deref(), ty)) {
            return Ok(state.cloned());
        }
        let mut given: SmallVec<[Option<&[u8]>; 4]> = SmallVec::new();
        given.push(state.map(AsRef::as_ref));
        given.extend(arguments.iter().map(Option::as_deref));
        let next = run(function, &given)?;
        if let Some(size) = next.as_ref().map(Vec::len).filter(|size| *size > STATE_SIZE_MAX) {
            let detail = format!("The state of an aggregate has {size} bytes, more than {STATE_SIZE_MAX}");
            return Err(failed(function, &detail));
        }
        Ok(next.map(Bytes::from))
    }

    /// The value for the last state.
    pub fn finish(&self, state: Option<&Bytes>) -> Result<Option<Bytes>, CqlError> {
        match &self.0.final_function {
            None => Ok(state.cloned()),
            Some(function) => Ok(run(function, &[state.map(AsRef::as_ref)])?.map(Bytes::from)),
        }
    }
}
