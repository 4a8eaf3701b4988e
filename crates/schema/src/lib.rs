//! Keyspaces, tables, columns and user types: the immutable snapshot that every request reads.
//!
//! A [`Schema`] is never changed in place: a schema change builds a new one and publishes it. This
//! crate does not know where a schema is stored; [`system_schema`] turns it into rows of the
//! system_schema tables and back.

pub mod column;
pub mod comparator;
pub mod describe;
pub mod error;
pub mod function;
pub mod id;
pub mod index;
pub mod keyspace;
pub mod mask;
pub mod options;
pub mod params;
pub mod replication;
mod schema_row;
pub mod system;
pub mod system_schema;
pub mod table;

pub use column::{ColumnId, ColumnKind, ColumnMetadata, DroppedColumn};
pub use comparator::ClusteringComparator;
pub use error::SchemaError;
pub use function::{AggregateMetadata, FunctionKey, FunctionMetadata};
pub use id::TableId;
pub use index::{IndexKind, IndexMetadata};
pub use keyspace::{KeyspaceMetadata, LeftOutTable, Replication, Schema};
pub use mask::ColumnMask;
pub use options::{OptionValue, Options};
pub use params::TableParams;
pub use table::{TableFlags, TableKind, TableMetadata, ViewDefinition, column_precedes};
pub use types::{cql_name as type_text, ident};
