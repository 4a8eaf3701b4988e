//! Finding the function that a call means, by name and arguments.
//!
//! Agrees with `org.apache.cassandra.cql3.functions.FunctionResolver`, its messages included.

use types::CqlType;

use super::{Function, TimeKind};
use crate::ast::{self, NativeType};
use crate::context::{Preparing, Receiver};
use crate::error::CqlError;
use crate::scalar::type_name;
use crate::terms::{self, Term};

/// A function with its signature.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    /// The function.
    pub function: Function,
    /// Types of its arguments.
    pub arguments: Vec<CqlType>,
    /// Type of its value.
    pub returns: CqlType,
}

fn candidate(function: Function, arguments: &[CqlType], returns: CqlType) -> Candidate {
    Candidate { function, arguments: arguments.to_vec(), returns }
}

/// Types that `x_as_blob` and `blob_as_x` exist for.
const BLOB_CONVERSIONS: [NativeType; 19] = [
    NativeType::Ascii,
    NativeType::Bigint,
    NativeType::Boolean,
    NativeType::Counter,
    NativeType::Date,
    NativeType::Decimal,
    NativeType::Double,
    NativeType::Duration,
    NativeType::Float,
    NativeType::Inet,
    NativeType::Int,
    NativeType::Smallint,
    NativeType::Text,
    NativeType::Time,
    NativeType::Timestamp,
    NativeType::Timeuuid,
    NativeType::Tinyint,
    NativeType::Uuid,
    NativeType::Varint,
];

/// The functions of a name. Names of old, like `toDate`, are known too.
pub(crate) fn candidates(preparing: &Preparing<'_>, name: &ast::QualifiedName<'_>) -> Vec<Candidate> {
    if name.keyspace().is_some_and(|keyspace| keyspace != "system") {
        return Vec::new();
    }
    let from_times = |function: fn(TimeKind) -> Function, kinds: &[TimeKind], returns: CqlType| {
        let type_of = |kind: &TimeKind| match kind {
            TimeKind::Timestamp => CqlType::Timestamp,
            TimeKind::Date => CqlType::Date,
            TimeKind::TimeUuid => CqlType::TimeUuid,
        };
        kinds.iter().map(|kind| candidate(function(*kind), &[type_of(kind)], returns.clone())).collect()
    };
    let all_times = [TimeKind::TimeUuid, TimeKind::Timestamp, TimeKind::Date];
    let timeuuid = [TimeKind::TimeUuid];
    match name.name.as_str() {
        "uuid" => vec![candidate(Function::Uuid, &[], CqlType::Uuid)],
        "now" | "current_timeuuid" | "currenttimeuuid" => vec![candidate(Function::Now, &[], CqlType::TimeUuid)],
        "current_timestamp" | "currenttimestamp" => {
            vec![candidate(Function::CurrentTimestamp, &[], CqlType::Timestamp)]
        }
        "current_date" | "currentdate" => vec![candidate(Function::CurrentDate, &[], CqlType::Date)],
        "current_time" | "currenttime" => vec![candidate(Function::CurrentTime, &[], CqlType::Time)],
        "to_date" | "todate" => from_times(Function::ToDate, &[TimeKind::TimeUuid, TimeKind::Timestamp], CqlType::Date),
        "to_timestamp" | "totimestamp" => {
            from_times(Function::ToTimestamp, &[TimeKind::TimeUuid, TimeKind::Date], CqlType::Timestamp)
        }
        "dateof" => from_times(Function::ToTimestamp, &timeuuid, CqlType::Timestamp),
        "to_unix_timestamp" | "tounixtimestamp" => from_times(Function::ToUnixTimestamp, &all_times, CqlType::BigInt),
        "unixtimestampof" => from_times(Function::ToUnixTimestamp, &timeuuid, CqlType::BigInt),
        "min_timeuuid" | "mintimeuuid" => {
            vec![candidate(Function::MinTimeuuid, &[CqlType::Timestamp], CqlType::TimeUuid)]
        }
        "max_timeuuid" | "maxtimeuuid" => {
            vec![candidate(Function::MaxTimeuuid, &[CqlType::Timestamp], CqlType::TimeUuid)]
        }
        "token" => token_candidate(preparing),
        other => blob_conversion(other),
    }
}

fn token_candidate(preparing: &Preparing<'_>) -> Vec<Candidate> {
    let Some(table) = preparing.schema.table(&preparing.keyspace, &preparing.table) else { return Vec::new() };
    let types: Vec<_> = table.partition_key.iter().map(|column| column.ty.clone()).collect();
    if table.is_virtual() {
        return vec![candidate(Function::LocalToken, &types, table.partition_key_type.clone())];
    }
    vec![candidate(Function::Token(types.len()), &types, CqlType::BigInt)]
}

fn blob_conversion(name: &str) -> Vec<Candidate> {
    for native in BLOB_CONVERSIONS.into_iter().chain([NativeType::Varchar]) {
        let ty = terms::native_type(native);
        let word = native.name();
        if name == format!("{word}_as_blob") || name == format!("{word}asblob") {
            return vec![candidate(Function::ToBlob(name.to_owned()), &[ty], CqlType::Blob)];
        }
        if name == format!("blob_as_{word}") || name == format!("blobas{word}") {
            return vec![candidate(Function::FromBlob(name.to_owned(), ty.clone()), &[CqlType::Blob], ty)];
        }
    }
    Vec::new()
}

fn signature(candidate: &Candidate, name: &str) -> String {
    let arguments: Vec<_> = candidate.arguments.iter().map(type_name).collect();
    format!("{name} : ({}) -> {}", arguments.join(", "), type_name(&candidate.returns))
}

/// The one candidate that fits. `fits(i, ty)`: argument i can be given to a parameter of the type;
/// `show(i)`: the argument as written.
pub(crate) fn pick(
    name: &str,
    mut found: Vec<Candidate>,
    count: usize,
    fits: impl Fn(usize, &CqlType) -> bool,
    show: impl Fn(usize) -> String,
) -> Result<Candidate, CqlError> {
    let full = |candidate: &Candidate| candidate.function.name();
    if let [only] = found.as_slice() {
        let shown = full(only);
        if only.arguments.len() != count {
            return Err(CqlError::invalid(format!(
                "Invalid number of arguments in call to function {shown}: {} required but {count} provided",
                only.arguments.len()
            )));
        }
        for (at, ty) in only.arguments.iter().enumerate() {
            if !fits(at, ty) {
                return Err(CqlError::invalid(format!(
                    "Type error: {} cannot be passed as argument {at} of function {shown} of type {}",
                    show(at),
                    type_name(ty)
                )));
            }
        }
        return Ok(found.remove(0));
    }
    let signatures = |list: &[Candidate]| {
        list.iter().map(|candidate| signature(candidate, &full(candidate))).collect::<Vec<_>>().join(", ")
    };
    let fitting: Vec<_> = found
        .iter()
        .filter(|candidate| {
            candidate.arguments.len() == count && candidate.arguments.iter().enumerate().all(|(at, ty)| fits(at, ty))
        })
        .cloned()
        .collect();
    match fitting.len() {
        0 => Err(CqlError::invalid(format!(
            "Invalid call to function {name}, none of its type signatures match (known type signatures: {})",
            signatures(&found)
        ))),
        1 => Ok(fitting.into_iter().next().expect("there is one")),
        _ => Err(CqlError::invalid(format!(
            "Ambiguous call to function {name} (can be matched by following signatures: {}): use type casts to disambiguate",
            signatures(&fitting)
        ))),
    }
}

/// Native functions of Cassandra that are not here yet.
const NOT_YET: [&str; 21] = [
    "abs",
    "exp",
    "log",
    "log10",
    "round",
    "map_keys",
    "map_values",
    "collection_count",
    "collection_min",
    "collection_max",
    "collection_sum",
    "collection_avg",
    "similarity_cosine",
    "similarity_euclidean",
    "similarity_dot_product",
    "mask_null",
    "mask_default",
    "mask_replace",
    "mask_inner",
    "mask_outer",
    "mask_hash",
];

/// What is said of a function that is not found.
pub(crate) fn unknown(name: &ast::QualifiedName<'_>, otherwise: String) -> CqlError {
    if NOT_YET.contains(&name.name.as_str()) {
        return CqlError::unsupported(&format!("The function {name} is"));
    }
    CqlError::Invalid(otherwise)
}

fn is_from_json(name: &ast::QualifiedName<'_>) -> bool {
    matches!(name.name.as_str(), "from_json" | "fromjson")
        && name.keyspace().is_none_or(|keyspace| keyspace == "system")
}

fn resolve(preparing: &Preparing<'_>, call: &ast::FunctionCall<'_>) -> Result<Candidate, CqlError> {
    let found = candidates(preparing, &call.name);
    if found.is_empty() {
        return Err(unknown(&call.name, format!("Unknown function {} called", call.name)));
    }
    pick(
        &call.name.to_string(),
        found,
        call.arguments.len(),
        |at, ty| terms::is_assignable(preparing, &call.arguments[at], ty),
        |at| call.arguments[at].to_string(),
    )
}

/// Type of a call's value, if the function is known.
pub(crate) fn return_type(preparing: &Preparing<'_>, call: &ast::FunctionCall<'_>) -> Option<CqlType> {
    resolve(preparing, call).ok().map(|candidate| candidate.returns)
}

/// Prepares a call for a receiver.
pub(crate) fn prepare_call(
    preparing: &mut Preparing<'_>,
    call: &ast::FunctionCall<'_>,
    receiver: &Receiver,
) -> Result<Term, CqlError> {
    if is_from_json(&call.name) {
        let [text] = call.arguments.as_slice() else {
            return Err(CqlError::invalid("from_json() takes exactly one argument"));
        };
        let argument = Receiver::new("arg0(system.from_json)", CqlType::Text);
        let text = terms::prepare(preparing, text, &argument)?;
        return terms::fold_call(Function::FromJson(receiver.ty.clone()), vec![text]);
    }
    let chosen = resolve(preparing, call)?;
    if !terms::is_value_compatible(&receiver.ty, &chosen.returns) {
        return Err(CqlError::invalid(format!(
            "Type error: cannot assign result of function {} (type {}) to {} (type {})",
            chosen.function.name(),
            type_name(&chosen.returns),
            receiver.name,
            type_name(&receiver.ty)
        )));
    }
    let mut arguments = Vec::with_capacity(call.arguments.len());
    for (at, (term, ty)) in call.arguments.iter().zip(&chosen.arguments).enumerate() {
        let name = format!("arg{at}({})", chosen.function.name());
        arguments.push(terms::prepare(preparing, term, &Receiver::new(name, ty.clone()))?);
    }
    terms::fold_call(chosen.function, arguments)
}

/// Prepares `CAST(term AS type)` for a receiver.
pub(crate) fn prepare_cast(
    preparing: &mut Preparing<'_>,
    inner: &ast::Term<'_>,
    native: NativeType,
    receiver: &Receiver,
) -> Result<Term, CqlError> {
    let to = terms::native_type(native);
    let from = terms::exact_type(preparing, inner).unwrap_or_else(|| to.clone());
    if !terms::is_value_compatible(&receiver.ty, &to) {
        let (name, ty) = (&receiver.name, type_name(&receiver.ty));
        return Err(CqlError::invalid(format!(
            "Type error: cannot assign result of cast (type {}) to {name} (type {ty})",
            type_name(&to)
        )));
    }
    let term = terms::prepare(preparing, inner, &Receiver::new(receiver.name.clone(), from.clone()))?;
    terms::fold_call(Function::Cast(from, to), vec![term])
}

/// A function's name in the names of result columns.
pub(crate) fn shown_name(preparing: &Preparing<'_>, name: &ast::QualifiedName<'_>) -> String {
    match candidates(preparing, name).first() {
        Some(_) => format!("system.{}", name.name),
        None => match name.keyspace() {
            Some(keyspace) => format!("{keyspace}.{}", name.name),
            None => format!("system.{}", name.name),
        },
    }
}
