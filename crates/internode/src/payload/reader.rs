//! Reads a payload whose values become slices of the payload's bytes.

use std::sync::Arc;

use bytes::Bytes;
use rows::PartitionUpdate;
use schema::{TableId, TableMetadata};
use stdx::Cursor;

use crate::error::InternodeError;

/// Finds a table by its id.
pub type Tables<'a> = dyn Fn(TableId) -> Option<Arc<TableMetadata>> + 'a;

/// Reads a payload whose values become slices of it.
pub(crate) struct Reader<'a> {
    payload: &'a Bytes,
    /// Stands behind what has been read.
    pub cursor: Cursor<'a>,
}

impl<'a> Reader<'a> {
    /// Reads a payload to its last byte.
    pub fn whole<T>(
        payload: &'a Bytes,
        read: impl FnOnce(&mut Self) -> Result<T, InternodeError>,
    ) -> Result<T, InternodeError> {
        let mut reader = Self { payload, cursor: Cursor::new(payload) };
        let value = read(&mut reader)?;
        match reader.cursor.remaining() {
            0 => Ok(value),
            left => Err(InternodeError::Trailing { left }),
        }
    }

    /// Reads `N` bytes.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], InternodeError> {
        let bytes = self.cursor.take(N)?;
        Ok(*bytes.first_chunk().expect("as many bytes were taken"))
    }

    /// Reads `length` bytes.
    pub fn take(&mut self, length: usize) -> Result<Bytes, InternodeError> {
        Ok(self.payload.slice_ref(self.cursor.take(length)?))
    }

    /// Reads bytes behind their length as an unsigned variable-length integer.
    pub fn vbytes(&mut self) -> Result<Bytes, InternodeError> {
        Ok(self.payload.slice_ref(self.cursor.vbytes()?))
    }

    /// Reads bytes behind their length as two bytes.
    pub fn short_bytes(&mut self) -> Result<Bytes, InternodeError> {
        Ok(self.payload.slice_ref(self.cursor.short_bytes()?))
    }

    /// Reads the first `count` clustering values of a table's rows.
    pub fn clustering(
        &mut self,
        table: &TableMetadata,
        count: usize,
    ) -> Result<rows::ClusteringValues, InternodeError> {
        let lengths = table.clustering.iter().take(count).map(|column| column.ty.fixed_length());
        let start = self.cursor.position();
        let (values, end) = rows::codec::get_clustering_of_lengths(self.payload, start, lengths)?;
        self.cursor.skip(end - start)?;
        Ok(values)
    }

    /// Reads an update of one partition of one table. `tables` finds the table.
    pub fn update(&mut self, tables: &Tables<'_>) -> Result<PartitionUpdate, InternodeError> {
        let start = self.cursor.position();
        let id = Cursor::new(self.cursor.rest()).take(16)?;
        let id = TableId(*id.first_chunk().expect("sixteen bytes were taken"));
        let (update, end) = rows::codec::decode_update(self.payload, start, tables)?;
        self.cursor.skip(end - start)?;
        update.ok_or(InternodeError::UnknownTable(id))
    }
}
