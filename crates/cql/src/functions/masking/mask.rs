//! The mask of a column: a masking function with all its arguments but the first, which is the column's value.
//!
//! Agrees with `org.apache.cassandra.cql3.functions.masking.ColumnMask`, messages included.

use std::sync::Arc;

use bytes::Bytes;
use types::{CqlType, literal};

use super::super::{Argument, Function, Scope, TypeArgument, Values, resolve};
use super::is_masking;
use crate::ast;
use crate::context::{NoSources, Preparing, Receiver};
use crate::error::CqlError;
use crate::scalar::type_name;
use crate::terms::{self, TermArgument};

/// The mask of a column.
#[allow(dead_code, reason = "for columns MASKED WITH a function")]
#[derive(Clone, Debug)]
pub(crate) struct Mask {
    /// The function, for the type of the column.
    function: Arc<Function>,
    /// Values of its arguments after the first.
    arguments: Vec<Option<Bytes>>,
}

#[allow(dead_code, reason = "for columns MASKED WITH a function")]
impl Mask {
    /// From `MASKED WITH name(arguments)` of a column of a type in a table that `preparing` has entered.
    ///
    /// Errors: there is no such function, it is not one that masks, or it does not give values of the column's type.
    pub fn prepare(
        preparing: &mut Preparing<'_>,
        name: &ast::QualifiedName<'_>,
        arguments: &[ast::Term<'_>],
        column: &str,
        ty: &CqlType,
    ) -> Result<Self, CqlError> {
        let text = || {
            let arguments: Vec<_> = arguments.iter().map(ToString::to_string).collect();
            format!("{name}({})", arguments.join(", "))
        };
        let function = {
            let first = TypeArgument(ty);
            let rest: Vec<_> = arguments.iter().map(|term| TermArgument { preparing, term }).collect();
            let rest = rest.iter().map(|argument| argument as &dyn Argument);
            let all: Vec<_> = std::iter::once(&first as &dyn Argument).chain(rest).collect();
            resolve(preparing.scope(), name.keyspace(), name.name.as_str(), &all, Some(ty))?
        };
        let Some(function) = function else {
            return Err(CqlError::invalid(format!(
                "Unable to find masking function for {column}, no declared function matches the signature {}",
                text()
            )));
        };
        if function.aggregate().is_some() {
            return Err(CqlError::invalid(format!(
                "Aggregate function {} cannot be used for masking table columns",
                text()
            )));
        }
        if !is_masking(&function) {
            return Err(CqlError::invalid(format!(
                "Not-masking function {} cannot be used for masking table columns",
                text()
            )));
        }
        let (returns, expected) = (type_name(&function.returns), type_name(ty));
        if returns != expected {
            return Err(CqlError::invalid(format!(
                "Masking function {} return type is {returns}. This is different to the type of the masked column {column} of \
                 type {expected}. Masking functions can only be attached to table columns if they return the same data type \
                 as the masked column.",
                text()
            )));
        }
        let mut values = Vec::with_capacity(arguments.len());
        for (at, (term, ty)) in arguments.iter().zip(function.arguments.iter().skip(1)).enumerate() {
            let receiver = Receiver::new(format!("arg{}({})", at + 1, function.full_name()), ty.clone());
            match terms::prepare(preparing, term, &receiver)? {
                terms::Term::Constant(value) => values.push(value),
                _ => {
                    return Err(CqlError::invalid(format!(
                        "The arguments of the masking function {} must be constants",
                        text()
                    )));
                }
            }
        }
        Ok(Self { function, arguments: values })
    }

    /// From a row of `system_schema.column_masks`: the function's name in the keyspace `system`, types and values of its arguments
    /// after the first. None: there is no such function.
    pub fn restore(
        name: &str,
        ty: &CqlType,
        argument_types: &[CqlType],
        arguments: Vec<Option<Bytes>>,
    ) -> Option<Self> {
        let schema = schema::Schema::default();
        let types: Vec<_> = std::iter::once(ty).chain(argument_types).map(TypeArgument).collect();
        let types: Vec<_> = types.iter().map(|argument| argument as &dyn Argument).collect();
        let scope = Scope { schema: &schema, keyspace: "", table: "" };
        let function = resolve(scope, Some("system"), name, &types, Some(ty)).ok().flatten()?;
        (is_masking(&function) && arguments.len() + 1 == function.arguments.len())
            .then_some(Self { function, arguments })
    }

    /// The function's name in the keyspace `system`.
    pub fn name(&self) -> &str {
        self.function.name()
    }

    /// Types of the arguments after the first.
    pub fn argument_types(&self) -> &[CqlType] {
        self.function.arguments.get(1..).unwrap_or_default()
    }

    /// Values of the arguments after the first.
    pub fn arguments(&self) -> &[Option<Bytes>] {
        &self.arguments
    }

    /// What is shown in place of a value.
    pub fn apply(&self, value: Option<Bytes>) -> Result<Option<Bytes>, CqlError> {
        let arguments: Values = std::iter::once(value).chain(self.arguments.iter().cloned()).collect();
        self.function.evaluate(&arguments, &NoSources)
    }

    /// Appends what is shown in place of a value; false: it is null.
    pub fn put(&self, value: Option<Bytes>, out: &mut Vec<u8>) -> Result<bool, CqlError> {
        let arguments: Values = std::iter::once(value).chain(self.arguments.iter().cloned()).collect();
        self.function.call(&arguments, &NoSources, out)
    }

    /// `system.mask_inner(1, null)`: as CREATE TABLE has it behind MASKED WITH.
    pub fn text(&self) -> String {
        let arguments: Vec<_> = self
            .argument_types()
            .iter()
            .zip(&self.arguments)
            .map(|(ty, value)| match value {
                Some(value) => literal::to_text(ty, value),
                None => "null".to_owned(),
            })
            .collect();
        format!("{}({})", self.function.full_name(), arguments.join(", "))
    }
}
