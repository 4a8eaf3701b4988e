//! The mask of a column: a function whose result is shown in place of the column's values.
//!
//! This is the stored form; `cql` finds the function and applies it. Agrees with
//! `org.apache.cassandra.cql3.functions.masking.ColumnMask` and the rows of
//! `system_schema.column_masks`.

use bytes::Bytes;
use types::{CqlType, literal};

/// The mask of a column.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ColumnMask {
    /// The keyspace of the function.
    pub keyspace: String,
    /// The name of the function.
    pub function: String,
    /// The types of all arguments but the first, which is the column.
    pub argument_types: Vec<CqlType>,
    /// The values of all arguments but the first, one for each type; None: null.
    pub arguments: Vec<Option<Bytes>>,
}

impl ColumnMask {
    /// The mask as CREATE TABLE has it behind MASKED WITH: `system.mask_inner(1, null)`.
    pub fn text(&self) -> String {
        let values = self.argument_types.iter().zip(&self.arguments).map(|(ty, value)| match value {
            Some(value) => literal::to_text(ty, value),
            None => "null".to_owned(),
        });
        format!("{}.{}({})", self.keyspace, self.function, values.collect::<Vec<_>>().join(", "))
    }

    /// Whether both masks are the same function with the same values.
    pub fn is_same(&self, other: &Self) -> bool {
        (&self.keyspace, &self.function, &self.arguments) == (&other.keyspace, &other.function, &other.arguments)
    }
}
