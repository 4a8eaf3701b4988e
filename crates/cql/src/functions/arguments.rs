//! The interface between resolving a function and its arguments, which may be terms, selected
//! expressions or only types.
//!
//! Agrees with `org.apache.cassandra.cql3.AssignmentTestable`.

use types::CqlType;

use crate::fit::{Fit, fit_type};
use crate::scalar::type_name;

/// An argument of a call whose function is not resolved yet.
pub(crate) trait Argument {
    /// How well the argument can be given to a parameter of the type.
    fn fit(&self, ty: &CqlType) -> Fit;

    /// The type of the argument where nothing else says which; None: it has none.
    fn compatible_type(&self) -> Option<CqlType>;

    /// The argument as error messages show it.
    fn text(&self) -> String;

    /// Whether the argument is a bind marker.
    fn is_marker(&self) -> bool {
        false
    }

    /// The number of elements, if the argument is written as `[…]` in a select clause.
    fn array_size(&self) -> Option<u32> {
        None
    }
}

/// An argument of which only the type is known, as of a masked column.
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
