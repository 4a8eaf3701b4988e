//! The mask of a column: a masking function and its arguments after the first, which is the value
//! of the column.
//!
//! Agrees with `org.apache.cassandra.cql3.functions.masking.ColumnMask`, messages included.

use std::sync::Arc;

use bytes::Bytes;
use schema::ColumnMask;
use types::CqlType;

use super::{Column, Selector};
use crate::ast;
use crate::context::{PrepareContext, Receiver};
use crate::error::CqlError;
use crate::fit::Fit;
use crate::functions::{Argument, Function, Scope, TypeArgument, is_masking, null_of, resolve};
use crate::scalar::type_name;
use crate::terms::{self, TermArgument};

/// The column as an argument of the masking function. Error messages show it as the class of its
/// type.
struct MaskedColumn<'a>(&'a CqlType);

impl Argument for MaskedColumn<'_> {
    fn fit(&self, ty: &CqlType) -> Fit {
        TypeArgument(self.0).fit(ty)
    }

    fn compatible_type(&self) -> Option<CqlType> {
        TypeArgument(self.0).compatible_type()
    }

    fn text(&self) -> String {
        types::marshal::print(self.0, false)
    }
}

/// The mask of a column.
#[derive(Clone, Debug)]
pub(crate) struct Mask {
    /// The function, for the type of the column.
    function: Arc<Function>,
    /// Values of its arguments after the first.
    arguments: Vec<Option<Bytes>>,
}

impl Mask {
    /// Prepares `MASKED WITH name(arguments)` for a column. The context must be of the column's
    /// table.
    ///
    /// Errors: there is no such function, it is not one that masks, or it does not give values of
    /// the column's type.
    pub fn prepare(
        context: &mut PrepareContext<'_>,
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
            let first = MaskedColumn(ty);
            let rest: Vec<_> = arguments.iter().map(|term| TermArgument { context, term }).collect();
            let rest = rest.iter().map(|argument| argument as &dyn Argument);
            let all: Vec<_> = std::iter::once(&first as &dyn Argument).chain(rest).collect();
            resolve(context.scope(), name.keyspace(), name.name.as_str(), &all, Some(ty))?
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
            match terms::prepare(context, term, &receiver)? {
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

    /// From the mask in the schema. If its function does not exist here (in Cassandra it may be a
    /// function of the user), values are shown as null, which never shows more than the mask would.
    pub fn restore(mask: &ColumnMask, ty: &CqlType) -> Self {
        Self::find(mask, ty).unwrap_or_else(|| Self { function: Arc::new(null_of(ty)), arguments: Vec::new() })
    }

    fn find(mask: &ColumnMask, ty: &CqlType) -> Option<Self> {
        let schema = schema::Schema::default();
        let types: Vec<_> = std::iter::once(ty).chain(&mask.argument_types).map(TypeArgument).collect();
        let types: Vec<_> = types.iter().map(|argument| argument as &dyn Argument).collect();
        let scope = Scope { schema: &schema, keyspace: "", table: "" };
        let function = resolve(scope, Some(&mask.keyspace), &mask.function, &types, Some(ty)).ok().flatten()?;
        (is_masking(&function) && function.returns == *ty && mask.arguments.len() + 1 == function.arguments.len())
            .then(|| Self { function, arguments: mask.arguments.clone() })
    }

    /// The mask as the schema stores it.
    pub fn definition(&self) -> ColumnMask {
        ColumnMask {
            keyspace: "system".to_owned(),
            function: self.function.name().to_owned(),
            argument_types: self.function.arguments.get(1..).unwrap_or_default().to_vec(),
            arguments: self.arguments.clone(),
        }
    }

    /// The selector that stands for the column in a masked selection.
    pub fn of_column(&self, column: Column) -> Selector {
        let rest = self.arguments.iter().map(|value| Selector::Term(terms::Term::Constant(value.clone())));
        let arguments = std::iter::once(Selector::Column(column)).chain(rest).collect();
        Selector::Call(Arc::clone(&self.function), arguments)
    }
}
