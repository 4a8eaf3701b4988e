//! Snapshots of tables: listed, taken, cleared. Agrees with `StorageService.takeSnapshot`,
//! `clearSnapshot` and `getSnapshotDetails`.

use std::sync::Arc;

use storage::{TableStore, snapshot};

use super::tables::{self, Selection};
use super::{Result, failed};
use crate::node::Node;

/// A snapshot of one table.
pub use storage::snapshot::Snapshot;

/// All snapshots of all tables. Err: a directory could not be read.
pub fn list(node: &Node) -> Result<Vec<Snapshot>> {
    let mut all = Vec::new();
    for store in tables::all(node) {
        all.extend(of_table(node, &store)?);
    }
    Ok(all)
}

/// The snapshots of one table.
pub fn of_table(node: &Node, store: &TableStore) -> Result<Vec<Snapshot>> {
    snapshot::list(&node.engine, store).map_err(failed)
}

/// Takes a snapshot of tables, flushed before unless told otherwise. A name that one of the tables
/// has is refused before any is taken.
pub async fn take(node: &Node, name: &str, stores: &[Arc<TableStore>], skip_flush: bool) -> Result<()> {
    for store in stores {
        if of_table(node, store)?.iter().any(|snapshot| snapshot.tag == name) {
            return Err(failed(format!("Snapshot {name} already exists.")));
        }
    }
    if !skip_flush {
        tables::flush_all(node, stores).await?;
    }
    for store in stores {
        snapshot::take(&node.engine, store, name).map_err(failed)?;
    }
    Ok(())
}

/// Removes a table's snapshot of this name, if there is one.
pub fn clear_of(node: &Node, store: &TableStore, name: &str) -> Result<()> {
    snapshot::clear(&node.engine, store, Some(name)).map(drop).map_err(failed)
}

/// Removes the snapshot of this name, or with None all snapshots, from the tables of some
/// keyspaces; without keyspaces from all tables.
pub fn clear(node: &Node, name: Option<&str>, keyspaces: &[String]) -> Result<()> {
    for store in tables::selected(node, Selection { keyspaces, tables: &[] })? {
        snapshot::clear(&node.engine, &store, name).map_err(failed)?;
    }
    Ok(())
}
