//! A row as selectors and filters see it: partition key, clustering, static row and cells.

use bytes::Bytes;
use rows::{ColumnData, Row};
use schema::{ColumnId, ColumnKind, ColumnMetadata, TableMetadata};
use types::CqlType;

use crate::values;

/// The place of a column's value in a row.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs)]
pub(crate) enum Column {
    PartitionKey { position: usize, ty: CqlType },
    Clustering { position: usize, ty: CqlType },
    Static { id: ColumnId, ty: CqlType },
    Regular { id: ColumnId, ty: CqlType },
}

impl Column {
    /// The place of a column of a table.
    pub fn of(column: &ColumnMetadata) -> Self {
        let (position, id, ty) = (column.position, column.id, column.ty.clone());
        match column.kind {
            ColumnKind::PartitionKey => Self::PartitionKey { position, ty },
            ColumnKind::Clustering => Self::Clustering { position, ty },
            ColumnKind::Static => Self::Static { id, ty },
            ColumnKind::Regular => Self::Regular { id, ty },
        }
    }

    /// Whether rows of the table have the place, with values of its type.
    pub fn is_of(&self, table: &TableMetadata) -> bool {
        let column = match self {
            Self::PartitionKey { position, .. } => table.partition_key.get(*position),
            Self::Clustering { position, .. } => table.clustering.get(*position),
            Self::Static { id, .. } => table.column(*id).filter(|column| column.is_static()),
            Self::Regular { id, .. } => table.column(*id).filter(|column| column.kind == ColumnKind::Regular),
        };
        column.is_some_and(|column| column.ty == *self.ty())
    }

    /// The type of the column.
    pub fn ty(&self) -> &CqlType {
        match self {
            Self::PartitionKey { ty, .. }
            | Self::Clustering { ty, .. }
            | Self::Static { ty, .. }
            | Self::Regular { ty, .. } => ty,
        }
    }

    /// The id of a static or regular column; None for key columns.
    pub fn id(&self) -> Option<ColumnId> {
        match self {
            Self::Static { id, .. } | Self::Regular { id, .. } => Some(*id),
            Self::PartitionKey { .. } | Self::Clustering { .. } => None,
        }
    }
}

/// A row that borrows from the stream it is read from.
#[derive(Clone, Copy)]
pub(crate) struct RowView<'a> {
    /// The components of the partition key.
    pub key: &'a [Bytes],
    /// The clustering; empty for a partition that has only its static row.
    pub clustering: &'a [Option<Bytes>],
    /// The static row of the partition.
    pub static_row: Option<&'a Row>,
    /// The row; None for a partition that has only its static row.
    pub row: Option<&'a Row>,
    /// The present time of the request, in seconds.
    pub now: u32,
    /// The values of aggregates, if the row stands for a group.
    pub aggregates: &'a [Option<Bytes>],
}

impl RowView<'_> {
    /// The cells of a static or regular column.
    pub(super) fn data(&self, column: &Column) -> Option<&ColumnData> {
        match column {
            Column::Static { id, .. } => self.static_row.and_then(|row| row.column(*id)),
            Column::Regular { id, .. } => self.row.and_then(|row| row.column(*id)),
            Column::PartitionKey { .. } | Column::Clustering { .. } => None,
        }
    }

    /// Appends the value of a column in wire form.
    #[inline]
    pub fn put(&self, out: &mut Vec<u8>, column: &Column) {
        match column {
            Column::PartitionKey { position, .. } => {
                stdx::put_int_bytes(out, self.key.get(*position).map(AsRef::as_ref));
            }
            Column::Clustering { position, .. } => {
                stdx::put_int_bytes(out, self.clustering.get(*position).and_then(Option::as_deref));
            }
            Column::Static { ty, .. } | Column::Regular { ty, .. } => values::put_column(out, ty, self.data(column)),
        }
    }

    /// The value of a column.
    pub fn value(&self, column: &Column) -> Option<Bytes> {
        match column {
            Column::PartitionKey { position, .. } => self.key.get(*position).cloned(),
            Column::Clustering { position, .. } => self.clustering.get(*position).cloned().flatten(),
            Column::Static { ty, .. } | Column::Regular { ty, .. } => values::column_value(ty, self.data(column)),
        }
    }

    /// A copy that borrows nothing.
    pub fn to_owned_row(self) -> OwnedRow {
        OwnedRow {
            key: self.key.to_vec(),
            clustering: self.clustering.to_vec(),
            static_row: self.static_row.cloned(),
            row: self.row.cloned(),
            now: self.now,
        }
    }
}

/// A row that borrows nothing: the first of a group.
#[derive(Clone, Debug)]
pub(crate) struct OwnedRow {
    key: Vec<Bytes>,
    clustering: Vec<Option<Bytes>>,
    static_row: Option<Row>,
    row: Option<Row>,
    now: u32,
}

impl OwnedRow {
    /// The row for selectors, with the values of aggregates.
    pub fn view<'a>(&'a self, aggregates: &'a [Option<Bytes>]) -> RowView<'a> {
        RowView {
            key: &self.key,
            clustering: &self.clustering,
            static_row: self.static_row.as_ref(),
            row: self.row.as_ref(),
            now: self.now,
            aggregates,
        }
    }
}
