//! The treatment of a table's records in a replay, which is decided once for each table.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use schema::{Schema, TableId, TableMetadata};

use super::Recovery;
use crate::commitlog::LogPosition;
use crate::log_intervals::{self, Interval};
use crate::table::TableStore;
use crate::truncation_records::is_replayed_first;

/// The ids of the first tables ([`is_replayed_first`]).
pub(super) fn first_tables(built_in: &Schema) -> BTreeSet<TableId> {
    let tables = built_in.keyspaces.values().flat_map(|keyspace| keyspace.tables.values());
    tables.filter(|table| is_replayed_first(table)).map(|table| table.id).collect()
}

/// The part that one table of the schema has in a replay.
pub(super) struct TableReplay {
    pub table: Arc<TableMetadata>,
    /// The table; None: its records are not replayed, or not now.
    pub store: Option<Arc<TableStore>>,
    /// The table is one of the first tables ([`is_replayed_first`]).
    pub is_replayed_first: bool,
    /// Whether changes of the table are captured.
    pub is_captured: bool,
    /// The intervals of the log whose records the table's SSTables have.
    held: Vec<Interval>,
    /// Position up to which the log has nothing for the table.
    truncated: LogPosition,
}

impl TableReplay {
    /// Whether a record's rows of the table are in SSTables, or were truncated since.
    pub(super) fn is_persisted(&self, position: LogPosition) -> bool {
        position <= self.truncated || log_intervals::contains(&self.held, position)
    }
}

/// Every stored table of a schema; those whose records are `wanted` with their stores.
pub(super) fn all(
    recovery: &Recovery<'_>,
    schema: &Schema,
    wanted: &dyn Fn(&TableMetadata) -> bool,
) -> BTreeMap<TableId, TableReplay> {
    let tables = schema.keyspaces.values().flat_map(|keyspace| keyspace.tables.values());
    let table_replay = |table: &Arc<TableMetadata>| TableReplay {
        table: Arc::clone(table),
        store: recovery.tables.get(&table.id).filter(|_| wanted(table)).cloned(),
        is_replayed_first: is_replayed_first(table),
        is_captured: table.params.cdc == Some(true),
        held: recovery.persisted.get(&table.id).cloned().unwrap_or_default(),
        truncated: recovery.truncated.get(&table.id).map_or(LogPosition::NONE, |truncated| truncated.position),
    };
    tables.map(|table| (table.id, table_replay(table))).collect()
}
