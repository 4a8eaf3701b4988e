//! The positions up to which the log has nothing more for a table: `system.local.truncated_at`.
//!
//! A truncated table's writes may still be in the log: their segment is kept for the sake of other
//! tables, or is the present one. Replay leaves out records up to the recorded position. The same
//! is recorded for a table when a compaction leaves nothing of SSTables: their statistics said
//! that their part of the log needs no replay, and after the compaction no file says so any more.
//! Agrees with `SystemKeyspace.saveTruncationRecord`: for each table the position (i64 segment,
//! i32 offset) and the time (i64, milliseconds).

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use rows::live::{LiveRows, TombstoneLimits};
use rows::{Cell, ClusteringValues, ColumnData, Mutation, PartitionUpdate, Row};
use schema::{TableId, TableMetadata};
use stdx::Cursor;
use types::DecoratedKey;

use crate::commitlog::LogPosition;
use crate::error::StorageError;
use crate::schema_tables;
use crate::table::TableStore;
pub(crate) use crate::table::{NEVER, Truncation};

const COLUMN: &str = "truncated_at";

/// Whether the records of a table are replayed before all others: the tables that say which tables
/// there are, and which records they need.
pub(crate) fn is_replayed_first(table: &TableMetadata) -> bool {
    table.keyspace == schema_tables::KEYSPACE || is_system_local(table)
}

/// Whether the table is `system.local`.
pub(crate) fn is_system_local(table: &TableMetadata) -> bool {
    table.keyspace == "system" && table.name == "local"
}

/// The mutation of `system.local` that records a truncation.
pub(crate) fn mutation(
    local: &Arc<TableMetadata>,
    id: TableId,
    truncation: Truncation,
    micros: i64,
) -> Option<Mutation> {
    let column = local.column_by_name(COLUMN)?.id;
    let mut value = Vec::with_capacity(20);
    value.extend_from_slice(&truncation.position.segment.to_be_bytes());
    value.extend_from_slice(&truncation.position.offset.to_be_bytes());
    value.extend_from_slice(&truncation.at_millis.to_be_bytes());
    let mut row = Row::new(ClusteringValues::new());
    let cell = Cell::live(column, micros, Bytes::from(value)).at(Bytes::copy_from_slice(&id.0));
    row.add_complex_cell(local, cell);
    let mut update = PartitionUpdate::new(Arc::clone(local), DecoratedKey::new(Bytes::from_static(b"local")));
    update.add_row(row);
    Some(Mutation::of(update))
}

/// The host id of the node whose directory this is; None: it has none yet.
pub(crate) fn host_id(local: &Arc<TableStore>, now: u32) -> Result<Option<[u8; 16]>, StorageError> {
    let table = local.table();
    let Some(column) = table.column_by_name("host_id") else { return Ok(None) };
    let mut stream = crate::read::read_all(local, now)?;
    let mut live = LiveRows::new(stream.as_mut(), Arc::clone(&table), now, TombstoneLimits::NONE);
    while live.next_partition()?.is_some() {
        while let Some(row) = live.next_row()? {
            if let Some(ColumnData::Simple(cell)) = row.column(column.id) {
                return Ok(cell.value.as_ref().try_into().ok());
            }
        }
    }
    Ok(None)
}

/// The records of all tables.
pub(crate) fn read(local: &Arc<TableStore>, now: u32) -> Result<BTreeMap<TableId, Truncation>, StorageError> {
    let table = local.table();
    let mut truncations = BTreeMap::new();
    let Some(column) = table.column_by_name(COLUMN) else { return Ok(truncations) };
    let mut stream = crate::read::read_all(local, now)?;
    let mut live = LiveRows::new(stream.as_mut(), Arc::clone(&table), now, TombstoneLimits::NONE);
    while live.next_partition()?.is_some() {
        while let Some(row) = live.next_row()? {
            let Some(ColumnData::Complex(complex)) = row.column(column.id) else { continue };
            truncations.extend(complex.cells.iter().filter_map(decode));
        }
    }
    Ok(truncations)
}

fn decode(cell: &Cell) -> Option<(TableId, Truncation)> {
    let id = TableId(cell.path.as_deref()?.try_into().ok()?);
    let mut cursor = Cursor::new(&cell.value);
    let (segment, offset) = (cursor.u64().ok()?, cursor.u32().ok()?);
    let at_millis = cursor.i64().unwrap_or(NEVER);
    Some((id, Truncation { position: LogPosition { segment, offset }, at_millis }))
}
