//! Stored tables by name, flushes, and the tables' switches: automatic compaction and compaction
//! thresholds.

use std::sync::Arc;

use schema::{TableId, TableMetadata};
use storage::TableStore;

use super::{OperationError, Result, failed, invalid};
use crate::node::Node;

/// Which tables a verb is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Selection<'a> {
    /// Names of keyspaces; empty: all keyspaces.
    pub keyspaces: &'a [String],
    /// Names of tables, each of which every one of the keyspaces must have; empty: all tables of
    /// the keyspaces.
    pub tables: &'a [String],
}

/// All stored tables, hidden ones of indexes left out.
pub fn all(node: &Node) -> Vec<Arc<TableStore>> {
    node.engine.tables()
}

/// The stored table of an id; None once it was dropped.
pub fn of_id(node: &Node, id: TableId) -> Option<Arc<TableStore>> {
    node.engine.table(id)
}

/// The metadata of a stored table by its names.
pub fn metadata(node: &Node, keyspace: &str, table: &str) -> Result<Arc<TableMetadata>> {
    match node.schema().table(keyspace, table).filter(|table| !table.is_virtual()) {
        Some(table) => Ok(Arc::clone(table)),
        None => invalid(format!("Unknown keyspace/table {keyspace}.{table}")),
    }
}

/// A stored table by its names, where the refusal is that of
/// `StorageService.getValidColumnFamilies`.
pub fn named(node: &Node, keyspace: &str, table: &str) -> Result<Arc<TableStore>> {
    match node.engine.table_by_name(keyspace, table) {
        Some(store) => Ok(store),
        None => invalid(format!("Unknown keyspace/cf pair ({keyspace}.{table})")),
    }
}

/// The tables of a selection. Refused if a keyspace or table of it does not exist.
pub fn selected(node: &Node, selection: Selection<'_>) -> Result<Vec<Arc<TableStore>>> {
    let schema = node.schema();
    for keyspace in selection.keyspaces {
        let Some(known) = schema.keyspace(keyspace).filter(|known| !known.is_virtual) else {
            return invalid(format!("Keyspace [{keyspace}] does not exist."));
        };
        if let Some(table) = selection.tables.iter().find(|table| !known.tables.contains_key(*table)) {
            return invalid(format!("Unknown keyspace/cf pair ({keyspace}.{table})"));
        }
    }
    let is_wanted = |store: &Arc<TableStore>| {
        let table = store.table();
        (selection.keyspaces.is_empty() || selection.keyspaces.contains(&table.keyspace))
            && (selection.tables.is_empty() || selection.tables.contains(&table.name))
    };
    Ok(node.engine.tables().into_iter().filter(is_wanted).collect())
}

/// Writes the memtables of a selection to SSTables.
pub async fn flush(node: &Node, selection: Selection<'_>) -> Result<()> {
    flush_all(node, &selected(node, selection)?).await
}

/// Flushes tables. Every flush is asked for before the first is waited for, so that they run
/// beside each other.
pub(super) async fn flush_all(node: &Node, stores: &[Arc<TableStore>]) -> Result<()> {
    let flushes: Vec<_> = stores.iter().map(|store| node.engine.flush(store)).collect();
    for flush in flushes {
        flush.await.map_err(failed)?;
    }
    Ok(())
}

/// Keyspace and name of each table of a selection, in order, and whether its strategy may choose
/// compactions by itself.
pub fn auto_compaction(node: &Node, selection: Selection<'_>) -> Result<Vec<(String, String, bool)>> {
    let one = |store: &Arc<TableStore>| {
        let table = store.table();
        (table.keyspace.clone(), table.name.clone(), store.auto_compaction.is_on(&table))
    };
    let mut all: Vec<_> = selected(node, selection)?.iter().map(one).collect();
    all.sort();
    Ok(all)
}

/// Lets the strategies of tables choose compactions by themselves, or not, until the node restarts.
pub fn set_auto_compaction(node: &Node, selection: Selection<'_>, on: bool) -> Result<()> {
    selected(node, selection)?.iter().for_each(|store| store.auto_compaction.set(on));
    node.engine.compactor.wake();
    Ok(())
}

/// The smallest and the largest number of SSTables that the strategy of a table compacts at once.
pub fn compaction_thresholds(node: &Node, keyspace: &str, table: &str) -> Result<(u32, u32)> {
    let store = known(node, keyspace, table)?;
    Ok(store.thresholds.get(&store.table().params.compaction))
}

/// Sets the smallest and the largest number of SSTables that are compacted at once, until the node
/// restarts.
pub fn set_compaction_thresholds(node: &Node, keyspace: &str, table: &str, (min, max): (u32, u32)) -> Result<()> {
    if min < 2 || max < min {
        return invalid(format!("thresholds from {min} to {max}: they begin at 2, and max is not below min"));
    }
    known(node, keyspace, table)?.thresholds.set(min, max);
    node.engine.compactor.wake();
    Ok(())
}

fn known(node: &Node, keyspace: &str, table: &str) -> Result<Arc<TableStore>> {
    let id = metadata(node, keyspace, table)?.id;
    of_id(node, id).ok_or_else(|| OperationError::Failed(format!("{keyspace}.{table} was dropped")))
}
