//! Snapshots of tables: listed, taken, cleared. Agrees with `StorageService.takeSnapshot`,
//! `clearSnapshot` and `getSnapshotDetails`.

use std::sync::Arc;

use storage::{TableStore, snapshot};

use super::tables;
use super::{Result, failed};
use crate::node::Node;

/// A snapshot of one table.
pub use storage::snapshot::Snapshot;

/// All snapshots in the data directories, those of tables that were dropped too. Err: a directory
/// could not be read.
pub fn list(node: &Node) -> Result<Vec<Snapshot>> {
    let mut all = Vec::new();
    for place in snapshot::places(&node.engine).map_err(failed)? {
        all.extend(snapshot::list_at(&node.engine, &place).map_err(failed)?);
    }
    Ok(all)
}

/// As [`list`], without those of directories that cannot be read.
pub fn list_readable(node: &Node) -> Vec<Snapshot> {
    let places = snapshot::places(&node.engine).unwrap_or_default();
    places.iter().flat_map(|place| snapshot::list_at(&node.engine, place).unwrap_or_default()).collect()
}

/// The snapshots of one table.
pub fn of_table(node: &Node, store: &TableStore) -> Result<Vec<Snapshot>> {
    snapshot::list(&node.engine, store).map_err(failed)
}

/// Takes a snapshot of tables, flushed before unless told otherwise. A name that one of the tables
/// has is refused before any is taken; where the snapshot of one of them fails, those of the others
/// are removed again.
pub async fn take(node: &Node, name: &str, stores: &[Arc<TableStore>], skip_flush: bool) -> Result<()> {
    stores.iter().try_for_each(|store| refuse_taken(node, store, name))?;
    if !skip_flush {
        tables::flush_all(node, stores).await?;
    }
    for (place, store) in stores.iter().enumerate() {
        // another request may have taken this name while tables were flushed: its snapshot stays
        let (made, taken) = match refuse_taken(node, store, name) {
            Ok(()) => (place + 1, snapshot::take(&node.engine, store, name).map(drop).map_err(failed)),
            Err(error) => (place, Err(error)),
        };
        if taken.is_err() {
            // half a snapshot would be taken for a whole one
            for made in &stores[..made] {
                if let Err(error) = snapshot::clear(&node.engine, made, Some(name)) {
                    tracing::warn!(name, %error, "a snapshot that could not be completed cannot be removed");
                }
            }
            return taken;
        }
    }
    Ok(())
}

/// Refuses the name of a snapshot that a table has.
fn refuse_taken(node: &Node, store: &TableStore, name: &str) -> Result<()> {
    match of_table(node, store)?.iter().any(|snapshot| snapshot.tag == name) {
        true => Err(failed(format!("Snapshot {name} already exists."))),
        false => Ok(()),
    }
}

/// Removes a table's snapshot of this name, if there is one.
pub fn clear_of(node: &Node, store: &TableStore, name: &str) -> Result<()> {
    snapshot::clear(&node.engine, store, Some(name)).map(drop).map_err(failed)
}

/// Removes the snapshot of this name, or with None all snapshots, from the tables of some
/// keyspaces, dropped ones too; without keyspaces from all. As in Cassandra a keyspace is the name
/// of a directory, and one that is not there has no snapshots.
pub fn clear(node: &Node, name: Option<&str>, keyspaces: &[String]) -> Result<()> {
    for place in snapshot::places(&node.engine).map_err(failed)? {
        if keyspaces.is_empty() || keyspaces.contains(&place.keyspace) {
            snapshot::clear_at(&node.engine, &place, name).map_err(failed)?;
        }
    }
    Ok(())
}
