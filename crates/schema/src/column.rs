//! Columns of a table, and what is remembered of dropped ones.

use types::CqlType;

/// Names a column of one table inside this process: rows in memory carry it instead of the name.
///
/// Stable while the process lives, also over ALTER TABLE; a column that is dropped and added again gets a new one.
/// Never written to disk or network.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct ColumnId(pub u16);

/// What part a column plays. Same names as `system_schema.columns.kind`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum ColumnKind {
    /// Component of the partition key.
    PartitionKey,
    /// Clustering column.
    Clustering,
    /// One value a partition.
    Static,
    /// One value a row.
    Regular,
}

impl ColumnKind {
    /// The text in `system_schema.columns.kind`.
    pub fn name(self) -> &'static str {
        match self {
            Self::PartitionKey => "partition_key",
            Self::Clustering => "clustering",
            Self::Static => "static",
            Self::Regular => "regular",
        }
    }

    /// From the text in `system_schema.columns.kind`.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::PartitionKey, Self::Clustering, Self::Static, Self::Regular].into_iter().find(|kind| kind.name() == name)
    }
}

/// A column of a table.
#[derive(Clone, PartialEq, Debug)]
pub struct ColumnMetadata {
    /// Its handle inside rows in memory. Key columns have one too, but no cells.
    pub id: ColumnId,
    /// Its name, case kept.
    pub name: String,
    /// Its part.
    pub kind: ColumnKind,
    /// Index among the columns of its kind for keys; 0 for others (`-1` in system_schema).
    pub position: usize,
    /// Its type, without ReversedType.
    pub ty: CqlType,
    /// Clustering order DESC.
    pub reversed: bool,
}

impl ColumnMetadata {
    /// Partition key or clustering.
    pub fn is_primary_key(&self) -> bool {
        matches!(self.kind, ColumnKind::PartitionKey | ColumnKind::Clustering)
    }

    /// Static column.
    pub fn is_static(&self) -> bool {
        self.kind == ColumnKind::Static
    }

    /// Stored cell by cell: a non-frozen collection or UDT.
    pub fn is_complex(&self) -> bool {
        self.ty.is_multi_cell()
    }
}

/// A column that was dropped: its cells up to the drop are ignored.
#[derive(Clone, PartialEq, Debug)]
pub struct DroppedColumn {
    /// Its name.
    pub name: String,
    /// Its type when dropped, UDTs expanded to tuples.
    pub ty: CqlType,
    /// Regular or Static.
    pub kind: ColumnKind,
    /// Cells with a timestamp up to this (microseconds) are gone.
    pub dropped_time: i64,
}
