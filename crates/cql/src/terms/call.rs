//! Calls: functions, operators, the sign and casts. All of them are resolved as functions with a
//! name and arguments.
//!
//! Agrees with `org.apache.cassandra.cql3.functions.FunctionCall.Raw`, messages included.

use std::borrow::Cow;
use std::sync::Arc;

use smallvec::{SmallVec, smallvec};
use types::CqlType;

use super::{Term, TermArgument};
use crate::ast;
use crate::compatible::takes;
use crate::context::{Bindings, CallResolution, MadeValues, PrepareContext, Receiver, take_made};
use crate::error::CqlError;
use crate::fit::{Fit, fit_type};
use crate::functions::{self, Argument, Function};
use crate::scalar::type_name;
use crate::sources::NoSources;
use crate::values::BoundValue;

/// A call as written.
struct Call<'t, 'a> {
    keyspace: Option<&'t str>,
    name: Cow<'t, str>,
    arguments: SmallVec<[&'t ast::Term<'a>; 4]>,
    /// The operator, if the call is written as one; it is part of error messages.
    symbol: Option<char>,
}

const SYSTEM: Option<&str> = Some("system");

impl<'t, 'a> Call<'t, 'a> {
    /// None: the term is no call.
    fn of(term: &'t ast::Term<'a>) -> Option<Self> {
        Some(match term {
            ast::Term::Function(call) => Self {
                keyspace: call.name.keyspace(),
                name: Cow::Borrowed(call.name.name.as_str()),
                arguments: call.arguments.iter().collect(),
                symbol: None,
            },
            ast::Term::Cast(inner, native) => Self {
                keyspace: SYSTEM,
                name: Cow::Owned(functions::cast_name(*native)),
                arguments: smallvec![&**inner],
                symbol: None,
            },
            ast::Term::Negation(inner) => Self {
                keyspace: SYSTEM,
                name: Cow::Borrowed(functions::NEGATION),
                arguments: smallvec![&**inner],
                symbol: None,
            },
            ast::Term::Operation(left, operator, right) => Self {
                keyspace: SYSTEM,
                name: Cow::Borrowed(functions::operation_name(*operator)),
                arguments: smallvec![&**left, &**right],
                symbol: Some(operator.symbol()),
            },
            _ => return None,
        })
    }

    fn shown(&self) -> String {
        self.keyspace.map_or_else(|| self.name.to_string(), |keyspace| format!("{keyspace}.{}", self.name))
    }
}

/// Resolves the function of a call. `receiver` is the type that the value is for, if it is known.
/// None: there is no function of the name.
fn function(context: &PrepareContext<'_>, term: &ast::Term<'_>, receiver: Option<&CqlType>) -> CallResolution {
    if let Some(found) = context.calls.get(term, receiver) {
        return found;
    }
    let Some(call) = Call::of(term) else { return Ok(None) };
    let arguments: SmallVec<[_; 4]> = call.arguments.iter().map(|term| TermArgument { context, term }).collect();
    let arguments: SmallVec<[&dyn Argument; 4]> = arguments.iter().map(|argument| argument as &dyn Argument).collect();
    context.calls.enter();
    let found = functions::resolve(context.scope(), call.keyspace, &call.name, &arguments, receiver);
    context.calls.put(term, receiver, &found);
    context.calls.leave();
    found
}

/// The type of the value of a call, if the function can be resolved without a receiver.
pub(super) fn return_type(context: &PrepareContext<'_>, term: &ast::Term<'_>) -> Option<CqlType> {
    function(context, term, None).ok().flatten().map(|function| function.returns.clone())
}

/// How well the value of a call can be given to a receiver of a type. Errors in the call itself are
/// not reported here, because preparing it gives the better message.
pub(super) fn fit(context: &PrepareContext<'_>, term: &ast::Term<'_>, ty: &CqlType) -> Fit {
    match function(context, term, Some(ty)) {
        Ok(Some(function)) if functions::has_factory(function.name()) => Fit::Weak,
        Ok(Some(function)) => fit_type(ty, &function.returns),
        Ok(None) | Err(_) => Fit::Weak,
    }
}

/// Prepares a call for a receiver.
pub(super) fn prepare(
    context: &mut PrepareContext<'_>,
    term: &ast::Term<'_>,
    receiver: &Receiver,
) -> Result<Term, CqlError> {
    context.calls.enter();
    let prepared = prepare_known(context, term, receiver);
    context.calls.leave();
    prepared
}

fn prepare_known(
    context: &mut PrepareContext<'_>,
    term: &ast::Term<'_>,
    receiver: &Receiver,
) -> Result<Term, CqlError> {
    let Some(call) = Call::of(term) else { return Err(CqlError::Server("a term is no call".into())) };
    let Some(chosen) = function(context, term, Some(&receiver.ty))? else {
        return Err(CqlError::invalid(format!("Unknown function {} called", call.shown())));
    };
    context.record_function(&chosen);
    if chosen.aggregate().is_some() {
        return Err(CqlError::invalid("Aggregation function are not supported in the where clause"));
    }
    // functions return frozen collections, which cannot be assigned to a column of many cells
    let is_frozen = receiver.ty.is_multi_cell() && !chosen.returns.is_multi_cell();
    if is_frozen || !takes(&receiver.ty, &chosen.returns) {
        let what = match call.symbol {
            Some(symbol) => format!("operation {symbol}"),
            None => format!("function {}", chosen.full_name()),
        };
        return Err(CqlError::invalid(format!(
            "Type error: cannot assign result of {what} (type {}) to {} (type {})",
            type_name(&chosen.returns),
            receiver.name,
            type_name(&receiver.ty)
        )));
    }
    let mut arguments = Vec::with_capacity(call.arguments.len());
    for (at, (argument, ty)) in call.arguments.iter().zip(&chosen.arguments).enumerate() {
        let name = format!("arg{at}({})", chosen.full_name().to_lowercase());
        arguments.push(super::prepare(context, argument, &Receiver::new(name, ty.clone()))?);
    }
    fold(context, chosen, arguments)
}

/// Evaluates a call of a pure function with constant arguments. If that fails the call is kept, so
/// that the error comes when the statement is executed; a statement whose values take too many
/// bytes together is refused at once.
fn fold(context: &mut PrepareContext<'_>, function: Arc<Function>, arguments: Vec<Term>) -> Result<Term, CqlError> {
    let constant = function.is_pure() && arguments.iter().all(Term::is_constant);
    let term = Term::Call { function, arguments };
    if !constant {
        return Ok(term);
    }
    Ok(match term.eval(&Bindings { values: &[], sources: &NoSources, made: &MadeValues::default() }) {
        Ok(BoundValue::Bytes(bytes)) => {
            take_made(&mut context.made_room, bytes.len())?;
            Term::Constant(Some(bytes))
        }
        Ok(BoundValue::Null | BoundValue::Unset) => Term::NULL,
        Err(_) => term,
    })
}
