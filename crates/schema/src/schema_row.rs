//! Rows of the `system_schema` tables and writes to them, as plain values.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::ColumnKind;

/// One row of a `system_schema` table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SchemaRow {
    /// The table that the row belongs to.
    pub table: SchemaTable,
    /// The partition key: the name of the keyspace.
    pub keyspace: String,
    /// The values of the clustering columns.
    pub clustering: Vec<Bytes>,
    /// The regular columns by name; a column that is not in the list is null.
    pub cells: Vec<(String, Bytes)>,
}

impl SchemaRow {
    /// Whether it is the row of a column of a partition key.
    pub fn names_partition_key(&self) -> bool {
        let kind = ColumnKind::PartitionKey.name().as_bytes();
        self.table == SchemaTable::Columns
            && self.cells.iter().any(|(name, value)| name == "kind" && value.as_ref() == kind)
    }

    /// The cells by name, whatever their order.
    pub fn content(&self) -> BTreeMap<&str, &Bytes> {
        self.cells.iter().map(|(name, value)| (name.as_str(), value)).collect()
    }
}

/// A write to a `system_schema` table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SchemaWrite {
    /// Writes a row. With `replaces` the previous content of the row is deleted first, at the
    /// timestamp before.
    Put {
        /// The row.
        row: SchemaRow,
        /// Whether a row deletion goes with it.
        replaces: bool,
    },
    /// Deletes a row.
    DeleteRow {
        /// The table of the row.
        table: SchemaTable,
        /// The partition key.
        keyspace: String,
        /// The clustering of the row.
        clustering: Vec<Bytes>,
    },
    /// Deletes a whole partition.
    DeletePartition {
        /// The table of the partition.
        table: SchemaTable,
        /// The partition key.
        keyspace: String,
    },
}

/// The tables of `system_schema`, in the order in which Cassandra digests them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum SchemaTable {
    /// column_masks
    ColumnMasks,
    /// columns
    Columns,
    /// dropped_columns
    DroppedColumns,
    /// triggers
    Triggers,
    /// types
    Types,
    /// functions
    Functions,
    /// aggregates
    Aggregates,
    /// indexes
    Indexes,
    /// tables
    Tables,
    /// views
    Views,
    /// keyspaces
    Keyspaces,
}

impl SchemaTable {
    /// All tables, in the order of the digest.
    pub const ALL: [Self; 11] = [
        Self::ColumnMasks,
        Self::Columns,
        Self::DroppedColumns,
        Self::Triggers,
        Self::Types,
        Self::Functions,
        Self::Aggregates,
        Self::Indexes,
        Self::Tables,
        Self::Views,
        Self::Keyspaces,
    ];

    /// The name in `system_schema`.
    pub fn name(self) -> &'static str {
        match self {
            Self::ColumnMasks => "column_masks",
            Self::Columns => "columns",
            Self::DroppedColumns => "dropped_columns",
            Self::Triggers => "triggers",
            Self::Types => "types",
            Self::Functions => "functions",
            Self::Aggregates => "aggregates",
            Self::Indexes => "indexes",
            Self::Tables => "tables",
            Self::Views => "views",
            Self::Keyspaces => "keyspaces",
        }
    }

    /// Reads the name in `system_schema`.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|table| table.name() == name)
    }
}
