//! The columns of a table, and the record of dropped ones.

use types::CqlType;

/// Names a column of one table inside this process; rows in memory carry it instead of the column's
/// name.
///
/// A column id stays the same while the process lives, also over ALTER TABLE, also when the column
/// is dropped and added again: memtables may hold cells of it that are newer than the drop. It is
/// never written to disk or network.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct ColumnId(pub u16);

/// The part that a column plays. The names are those of `system_schema.columns.kind`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum ColumnKind {
    /// A component of the partition key.
    PartitionKey,
    /// A clustering column.
    Clustering,
    /// A column with one value for each partition.
    Static,
    /// A column with one value for each row.
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

    /// Reads the text of `system_schema.columns.kind`.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::PartitionKey, Self::Clustering, Self::Static, Self::Regular].into_iter().find(|kind| kind.name() == name)
    }
}

/// A column of a table.
#[derive(Clone, PartialEq, Debug)]
pub struct ColumnMetadata {
    /// The column's handle in rows in memory. Key columns have an id too, but no cells.
    pub id: ColumnId,
    /// The name, upper and lower case kept.
    pub name: String,
    /// The part that the column plays.
    pub kind: ColumnKind,
    /// For key columns, the index among the columns of the same kind; 0 for other columns, which
    /// have `-1` in system_schema.
    pub position: usize,
    /// The type, without ReversedType.
    pub ty: CqlType,
    /// Whether rows are in descending order of this column; false for all but clustering columns.
    pub reversed: bool,
}

impl ColumnMetadata {
    /// Whether the column is part of the partition key or of the clustering.
    pub fn is_primary_key(&self) -> bool {
        matches!(self.kind, ColumnKind::PartitionKey | ColumnKind::Clustering)
    }

    /// Whether the column is static.
    pub fn is_static(&self) -> bool {
        self.kind == ColumnKind::Static
    }

    /// Whether the column is stored cell by cell: a collection or user type that is not frozen.
    pub fn is_complex(&self) -> bool {
        self.ty.is_multi_cell()
    }
}

/// A column that was dropped. Its cells with timestamps up to the drop are ignored.
#[derive(Clone, PartialEq, Debug)]
pub struct DroppedColumn {
    /// The name.
    pub name: String,
    /// The type when it was dropped, with user types replaced by tuples.
    pub ty: CqlType,
    /// The kind: Regular or Static.
    pub kind: ColumnKind,
    /// Cells with a timestamp up to this one (microseconds) are gone.
    pub dropped_time: i64,
}
