//! Snapshots of tables: listed, taken, cleared. Agrees with `StorageService.takeSnapshot`,
//! `clearSnapshot` and `getSnapshotDetails`.

use std::sync::Arc;

use storage::{Engine, TableStore, layout, snapshot};

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
///
/// The files are listed and linked by a job in the background: another node's request comes on the
/// thread of the links, and a table may have thousands of files.
pub async fn take(node: &Node, name: &str, stores: &[Arc<TableStore>], skip_flush: bool) -> Result<()> {
    let from = node.engine.log.first_needed();
    let (of_tables, wanted) = (stores.to_vec(), name.to_owned());
    in_background(node, move |engine| of_tables.iter().try_for_each(|store| refuse_taken(engine, store, &wanted)))
        .await?;
    if !skip_flush {
        tables::flush_all(node, stores).await?;
    }
    let (stores, name) = (stores.to_vec(), name.to_owned());
    in_background(node, move |engine| take_flushed(engine, &name, &stores, from)).await
}

/// Runs a job on a thread that may wait for the disk. The job goes on to its end even if the
/// caller goes away.
async fn in_background(node: &Node, job: impl FnOnce(&Engine) -> Result<()> + Send + 'static) -> Result<()> {
    let engine = Arc::clone(&node.engine);
    node.env.blocking_long("snapshot", move || job(&engine)).await.unwrap_or_else(|full| Err(failed(full)))
}

/// Links the SSTables that the tables have. `from`: as for [`snapshot::take_of_many`].
fn take_flushed(engine: &Engine, name: &str, stores: &[Arc<TableStore>], from: u64) -> Result<()> {
    for (place, store) in stores.iter().enumerate() {
        // another request may have taken this name while tables were flushed: its snapshot stays
        let (made, taken) = match refuse_taken(engine, store, name) {
            Ok(()) => (place + 1, snapshot::take_of_many(engine, store, name, from).map(drop).map_err(failed)),
            Err(error) => (place, Err(error)),
        };
        if taken.is_err() {
            // half a snapshot would be taken for a whole one
            for made in &stores[..made] {
                if let Err(error) = snapshot::clear(engine, made, Some(name)) {
                    tracing::warn!(name, %error, "a snapshot that could not be completed cannot be removed");
                }
            }
            return taken;
        }
    }
    Ok(())
}

/// Refuses the name of a snapshot that a table has. Looks at no files of snapshots, of which there
/// may be many.
fn refuse_taken(engine: &Engine, store: &TableStore, name: &str) -> Result<()> {
    for directory in &store.directories {
        let above = directory.join(layout::SNAPSHOTS);
        let entries = engine.env.disk.list_dir_if_exists(&above);
        let entries = entries.map_err(|error| failed(format!("{}: {error}", above.display())))?;
        if entries.into_iter().flatten().any(|entry| entry.is_dir && entry.name == name) {
            return Err(failed(format!("Snapshot {name} already exists.")));
        }
    }
    Ok(())
}

/// Removes a table's snapshot of this name, if there is one; in the background, as [`take`].
pub async fn clear_of(node: &Node, store: &Arc<TableStore>, name: &str) -> Result<()> {
    let (store, name) = (Arc::clone(store), name.to_owned());
    in_background(node, move |engine| snapshot::clear(engine, &store, Some(&name)).map(drop).map_err(failed)).await
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

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::time::Duration;

    use super::*;
    use crate::testing::{SimNode, poll};

    /// The caller that takes or clears a snapshot is not held up by the disk.
    #[test]
    fn the_disk_has_its_work_in_the_background() {
        let machine = SimNode::new(Duration::from_secs(2));
        let node = &machine.node;
        let stores = [tables::named(node, "system_auth", "roles").expect("a built-in table")];
        let count = || of_table(node, &stores[0]).expect("the disk is sound").len();
        let mut taking = pin!(take(node, "monday", &stores, true));
        assert!(poll(taking.as_mut()).is_pending(), "it looks for the name");
        machine.sim.run_until_idle();
        assert!(poll(taking.as_mut()).is_pending() && count() == 0, "it takes the snapshot");
        machine.sim.block_on(taking).expect("taken");
        assert_eq!(count(), 1);
        machine.sim.block_on(take(node, "monday", &stores, true)).expect_err("the table has this name");
        let mut clearing = pin!(clear_of(node, &stores[0], "monday"));
        assert!(poll(clearing.as_mut()).is_pending() && count() == 1);
        machine.sim.block_on(clearing).expect("cleared");
        assert_eq!(count(), 0);
    }
}
