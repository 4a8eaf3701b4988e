//! The mask of a column: a function that is shown in place of its values, with all its arguments but the first.
//!
//! What the schema remembers of it; `cql` finds the function and applies it. Agrees with
//! `org.apache.cassandra.cql3.functions.masking.ColumnMask` and the rows of `system_schema.column_masks`.

use bytes::Bytes;
use types::{CqlType, literal};

/// The mask of a column.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ColumnMask {
    /// The keyspace of the function.
    pub keyspace: String,
    /// The function's name.
    pub function: String,
    /// Types of its arguments after the first.
    pub argument_types: Vec<CqlType>,
    /// Values of its arguments after the first, one for each type; None: null.
    pub arguments: Vec<Option<Bytes>>,
}

impl ColumnMask {
    /// `system.mask_inner(1, null)`: as CREATE TABLE has it behind MASKED WITH.
    pub fn text(&self) -> String {
        let values = self.argument_types.iter().zip(&self.arguments).map(|(ty, value)| match value {
            Some(value) => literal::to_text(ty, value),
            None => "null".to_owned(),
        });
        format!("{}.{}({})", self.keyspace, self.function, values.collect::<Vec<_>>().join(", "))
    }

    /// The same function with the same values: nothing changes if one takes the other's place.
    pub fn is_same(&self, other: &Self) -> bool {
        (&self.keyspace, &self.function, &self.arguments) == (&other.keyspace, &other.function, &other.arguments)
    }
}
