//! What choosing a function asks of an argument, be it a term, a selected thing or only a type.
//!
//! Agrees with `org.apache.cassandra.cql3.AssignmentTestable`.

use types::CqlType;

use crate::fit::{Fit, fit_type};
use crate::scalar::type_name;

/// An argument of a call that is not prepared yet.
pub(crate) trait Argument {
    /// How well it can be given to a parameter of the type.
    fn fit(&self, ty: &CqlType) -> Fit;

    /// A type it can be taken for where nothing else says which.
    fn compatible_type(&self) -> Option<CqlType>;

    /// As messages show it.
    fn text(&self) -> String;

    /// It is a bind marker.
    fn is_marker(&self) -> bool {
        false
    }

    /// How many elements it has, if it is written `[…]` in a select clause.
    fn array_size(&self) -> Option<u32> {
        None
    }
}

/// An argument of which the type is known and nothing else: a masked column.
pub(crate) struct TypeArgument<'a>(pub &'a CqlType);

impl Argument for TypeArgument<'_> {
    fn fit(&self, ty: &CqlType) -> Fit {
        fit_type(ty, self.0)
    }

    fn compatible_type(&self) -> Option<CqlType> {
        Some(self.0.clone())
    }

    fn text(&self) -> String {
        type_name(self.0)
    }
}
