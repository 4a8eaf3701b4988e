//! The answer of a statement, in a form that is one copy away from the wire.
//!
//! Native protocol specification §4.2.5; `org.apache.cassandra.cql3.ResultSet`.

use std::sync::Arc;

use bytes::Bytes;
use types::CqlType;

/// A column of a result, or a bind variable.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ColumnSpec {
    /// Keyspace of the table.
    pub keyspace: Arc<str>,
    /// Table.
    pub table: Arc<str>,
    /// Name of the column, alias or bind variable.
    pub name: Arc<str>,
    /// Its type.
    pub ty: CqlType,
}

/// The columns of a result.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ResultMetadata {
    /// In the order of the values of a row.
    pub columns: Vec<ColumnSpec>,
}

/// Rows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ResultSet {
    /// Their columns.
    pub metadata: Arc<ResultMetadata>,
    /// The rows as they stand on the wire: for each value an `[int]` length (-1: null) and its
    /// bytes.
    pub rows: Bytes,
    /// How many rows.
    pub row_count: u32,
    /// Where the next page starts; None: there is none.
    pub paging_state: Option<Vec<u8>>,
}

/// The kind of change of a schema object; the words of the protocol's SCHEMA_CHANGE.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SchemaChangeKind {
    /// CREATED
    Created,
    /// UPDATED
    Updated,
    /// DROPPED
    Dropped,
}

/// Which sort of schema object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SchemaTarget {
    /// KEYSPACE
    Keyspace,
    /// TABLE, also for views
    Table,
    /// TYPE
    Type,
    /// FUNCTION
    Function,
    /// AGGREGATE
    Aggregate,
}

/// A schema change as clients are told of it, in the answer and by an event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SchemaEvent {
    /// Created, updated or dropped.
    pub change: SchemaChangeKind,
    /// To what sort of object.
    pub target: SchemaTarget,
    /// Its keyspace.
    pub keyspace: String,
    /// Its name; empty for keyspaces.
    pub name: String,
    /// Argument types of functions and aggregates.
    pub argument_types: Vec<String>,
}

/// The result that a statement answers with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CqlResult {
    /// Nothing.
    Void,
    /// Rows.
    Rows(ResultSet),
    /// The current keyspace of the connection is now this.
    SetKeyspace(String),
    /// The schema has changed.
    SchemaChange(SchemaEvent),
}

/// A result with the warnings that go along.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answer {
    /// The result.
    pub result: CqlResult,
    /// Warnings for the client.
    pub warnings: Vec<String>,
}

impl From<CqlResult> for Answer {
    fn from(result: CqlResult) -> Self {
        Self { result, warnings: Vec::new() }
    }
}
