//! Resolving a call: finding the function by its name, its arguments and the type that its value is
//! for.
//!
//! Agrees with `org.apache.cassandra.cql3.functions.FunctionResolver`, messages included.

use std::sync::Arc;

use schema::Schema;
use types::CqlType;

use super::registry::REGISTRY;
use super::{Argument, Function, NEGATION, operations, token};
use crate::error::CqlError;
use crate::fit::{Fit, fit_all, fit_type};
use crate::scalar::type_name;

/// The place in which the name of a function is resolved.
#[derive(Clone, Copy)]
pub(crate) struct Scope<'a> {
    /// The schema.
    pub schema: &'a Schema,
    /// The keyspace of the table.
    pub keyspace: &'a str,
    /// The table; `token()` takes the columns of its partition key.
    pub table: &'a str,
}

/// Resolves a call. None: there is no function of the name.
///
/// `keyspace` is the one that the call names; `receiver` is the type that the value is for, if it
/// is known.
pub(crate) fn resolve(
    scope: Scope<'_>,
    keyspace: Option<&str>,
    name: &str,
    arguments: &[&dyn Argument],
    receiver: Option<&CqlType>,
) -> Result<Option<Arc<Function>>, CqlError> {
    let mut candidates = super::user::candidates(scope.schema, keyspace.unwrap_or(scope.keyspace), name);
    let has_native = keyspace.is_none_or(|keyspace| keyspace == "system");
    if has_native && let Some(function) = make_from_factory(scope, name, arguments, receiver)? {
        if candidates.is_empty() {
            check(&function, arguments)?;
            return Ok(Some(Arc::new(function)));
        }
        candidates.push(Arc::new(function));
    }
    let native = if has_native { REGISTRY.functions(name) } else { &[] };
    // native functions are by far the most common: their list is used as it is
    let all = match candidates.is_empty() {
        true => native,
        false => {
            candidates.extend_from_slice(native);
            &candidates
        }
    };
    match all {
        [] => Ok(None),
        [only] => {
            check(only, arguments)?;
            Ok(Some(Arc::clone(only)))
        }
        candidates => {
            let shown = match keyspace {
                Some(keyspace) => format!("{keyspace}.{name}"),
                None => name.to_owned(),
            };
            best(&shown, name, candidates, arguments, receiver).map(Some)
        }
    }
}

/// Whether functions of this name are made by a factory.
pub(crate) fn has_factory(name: &str) -> bool {
    name == token::NAME || REGISTRY.factory(name).is_some()
}

fn make_from_factory(
    scope: Scope<'_>,
    name: &str,
    arguments: &[&dyn Argument],
    receiver: Option<&CqlType>,
) -> Result<Option<Function>, CqlError> {
    if name == token::NAME {
        let Some(table) = scope.schema.table(scope.keyspace, scope.table) else {
            return Err(CqlError::invalid("No receiver table has been specified for function system.token"));
        };
        return Ok(Some(token::function(table)));
    }
    REGISTRY.factory(name).map(|factory| factory.function(arguments, receiver)).transpose()
}

/// The error for an argument of the only function of its name.
fn check(function: &Function, arguments: &[&dyn Argument]) -> Result<(), CqlError> {
    let name = || function.full_name();
    if function.arguments.len() != arguments.len() {
        return Err(CqlError::invalid(format!(
            "Invalid number of arguments in call to function {}: {} required but {} provided",
            name(),
            function.arguments.len(),
            arguments.len()
        )));
    }
    for (at, (argument, ty)) in arguments.iter().zip(&function.arguments).enumerate() {
        if argument.fit(ty) == Fit::No {
            return Err(CqlError::invalid(format!(
                "Type error: {} cannot be passed as argument {at} of function {} of type {}",
                argument.text(),
                name(),
                type_name(ty)
            )));
        }
    }
    Ok(())
}

/// Remembers how well each argument fits each type, because operators have a signature for every
/// pair of numeric types.
struct Fits<'a> {
    arguments: &'a [&'a dyn Argument],
    known: Vec<Vec<(&'a CqlType, Fit)>>,
}

impl<'a> Fits<'a> {
    fn new(arguments: &'a [&'a dyn Argument]) -> Self {
        Self { arguments, known: arguments.iter().map(|_| Vec::new()).collect() }
    }

    /// How well the arguments fit a function.
    fn of(&mut self, function: &'a Function) -> Fit {
        if function.arguments.len() != self.arguments.len() {
            return Fit::No;
        }
        let each = self.arguments.iter().zip(&mut self.known).zip(&function.arguments);
        fit_all(each.map(|((argument, known), ty)| match known.iter().find(|(asked, _)| *asked == ty) {
            Some((_, fit)) => *fit,
            None => {
                let fit = argument.fit(ty);
                known.push((ty, fit));
                fit
            }
        }))
    }
}

fn best(
    shown: &str,
    name: &str,
    candidates: &[Arc<Function>],
    arguments: &[&dyn Argument],
    receiver: Option<&CqlType>,
) -> Result<Arc<Function>, CqlError> {
    let mut weak = Vec::new();
    let mut fits = Fits::new(arguments);
    for candidate in candidates {
        if receiver.is_some_and(|receiver| fit_type(receiver, &candidate.returns) == Fit::No) {
            continue;
        }
        match fits.of(candidate) {
            Fit::Exact => return Ok(Arc::clone(candidate)),
            Fit::Weak => weak.push(candidate),
            Fit::No => {}
        }
    }
    match (weak.as_slice(), operations::operator(name), arguments) {
        ([only], ..) => Ok(Arc::clone(only)),
        ([], Some(operator), [left, right]) => Err(CqlError::invalid(format!(
            "the '{}' operation is not supported between {} and {}",
            operator.symbol(),
            left.text(),
            right.text()
        ))),
        ([], ..) => Err(CqlError::invalid(format!(
            "Invalid call to function {shown}, none of its type signatures match (known type signatures: {})",
            signatures(candidates)
        ))),
        (several, Some(operator), [left, right]) => {
            let same = |candidate: &&&Arc<Function>| {
                receiver.is_some_and(|receiver| candidate.arguments.iter().all(|ty| ty == receiver))
            };
            let has_markers = left.is_marker() || right.is_marker();
            if let Some(found) = several.iter().find(same).filter(|_| !has_markers) {
                return Ok(Arc::clone(found));
            }
            Err(CqlError::invalid(format!(
                "Ambiguous '{}' operation with args {} and {}: use type hint to disambiguate, example '(int) ?'",
                operator.symbol(),
                left.text(),
                right.text()
            )))
        }
        _ if name == NEGATION => Err(CqlError::invalid("Ambiguous negation: use type casts to disambiguate")),
        (several, ..) => Err(CqlError::invalid(format!(
            "Ambiguous call to function {shown} (can be matched by following signatures: {}): use type casts to disambiguate",
            signatures(several.iter().copied())
        ))),
    }
}

fn signatures<'a>(functions: impl IntoIterator<Item = &'a Arc<Function>>) -> String {
    let signatures: Vec<_> = functions.into_iter().map(|function| function.signature()).collect();
    signatures.join(", ")
}
