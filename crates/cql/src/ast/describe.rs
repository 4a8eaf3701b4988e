//! DESCRIBE: what it describes, and whether with internals.
//!
//! Must agree with: Cassandra's rule `describeStatement` and `DescribeStatement`.

use super::{Ident, QualifiedName};

/// `DESCRIBE … [WITH INTERNALS]`.
#[derive(Debug, Clone)]
pub struct Describe<'a> {
    /// The object that is described.
    pub target: DescribeTarget<'a>,
    /// `WITH INTERNALS`.
    pub with_internals: bool,
}

/// The object of a `DESCRIBE`.
#[derive(Debug, Clone)]
pub enum DescribeTarget<'a> {
    /// `CLUSTER`.
    Cluster,
    /// `[FULL] SCHEMA`.
    Schema {
        /// Whether with the system's keyspaces.
        full: bool,
    },
    /// `KEYSPACES`.
    Keyspaces,
    /// `[ONLY] KEYSPACE [k]`.
    Keyspace {
        /// The keyspace; the current one if not given.
        name: Option<Ident<'a>>,
        /// Without what is in it.
        only: bool,
    },
    /// `TABLES`.
    Tables,
    /// `TABLE t`.
    Table(QualifiedName<'a>),
    /// `INDEX i`.
    Index(QualifiedName<'a>),
    /// `MATERIALIZED VIEW v`.
    View(QualifiedName<'a>),
    /// `TYPES`.
    Types,
    /// `TYPE t`.
    Type(QualifiedName<'a>),
    /// `FUNCTIONS`.
    Functions,
    /// `FUNCTION f`.
    Function(QualifiedName<'a>),
    /// `AGGREGATES`.
    Aggregates,
    /// `AGGREGATE a`.
    Aggregate(QualifiedName<'a>),
    /// Just a name: a keyspace, table, view or index, whichever is found first.
    Any(QualifiedName<'a>),
}
