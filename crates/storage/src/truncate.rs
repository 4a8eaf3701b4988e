//! Truncating: a table loses everything that it holds. Also: taking the files of a dropped table off the disk.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use crate::commitlog::LogPosition;
use crate::engine::Engine;
use crate::error::StorageError;
use crate::memtable::Memtable;
use crate::table::TableStore;
use crate::truncation_records::Truncation;
use crate::{layout, truncation_records};

/// Records that a table is being truncated: what the log has of it up to `position` is not replayed. The caller took the position
/// before it flushed the table, and waits until the returned one is durable before it truncates.
pub fn record(engine: &Engine, store: &TableStore, position: LogPosition) -> Result<Option<LogPosition>, StorageError> {
    let at_millis = engine.env.clock.now_micros() / 1000;
    advance(engine, store, |_| Truncation { position, at_millis })
}

/// Whether memtables hold what the log has up to `position`. Flushes are in the order of the log, so they do not, unless another program wrote
/// SSTables of the directory.
pub(crate) fn is_in_memtables(store: &TableStore, position: LogPosition) -> bool {
    let is_before = |memtable: &Arc<Memtable>| memtable.log_range().is_some_and(|range| range.first <= position);
    let view = store.view();
    view.flushing.iter().flat_map(|set| &set.memtables).chain(&view.active).any(is_before)
}

/// Records that the log has nothing to say about a table up to `position`, though it was not truncated: all of it was in SSTables, and nothing
/// is left of it. Where memtables hold part of it the caller has flushed them. The caller waits until the returned position is durable before
/// the SSTables go.
pub(crate) fn record_purged(
    engine: &Engine,
    store: &TableStore,
    position: LogPosition,
) -> Result<Option<LogPosition>, StorageError> {
    advance(engine, store, |former| Truncation {
        position: former.map_or(position, |former| former.position.max(position)),
        at_millis: former.map_or(truncation_records::NEVER, |former| former.at_millis),
    })
}

/// Records what follows from what was recorded last; gives where in the log that stands.
fn advance(
    engine: &Engine,
    store: &TableStore,
    next: impl FnOnce(Option<Truncation>) -> Truncation,
) -> Result<Option<LogPosition>, StorageError> {
    let schema = engine.schema();
    let Some(local) = schema.table("system", "local") else { return Ok(None) };
    let mut recorded = store.truncation.lock().expect("no panic inside");
    let truncation = next(*recorded);
    let now = engine.next_timestamp(1);
    let Some(mutation) = truncation_records::mutation(local, store.id, truncation, now) else { return Ok(None) };
    let applied = engine.apply(&[mutation])?;
    *recorded = Some(truncation);
    Ok(applied.position)
}

/// Drops all data of a table, after a snapshot where the node is so configured.
///
/// The caller has flushed the table before, and recorded the truncation: then a crash does not bring back what the log holds.
/// What was written since that flush stays.
pub fn truncate(engine: &Engine, store: &Arc<TableStore>) -> Result<(), StorageError> {
    if engine.options.auto_snapshot {
        let tag = format!("truncated-{}-{}", engine.env.clock.now_micros() / 1000, store.table().name);
        crate::snapshot::take(engine, store, &tag)?;
    }
    for index in store.view().indexes.iter() {
        crate::files::remove_all(engine, &index.store)?;
    }
    crate::files::remove_all(engine, store)
}

/// Takes the files of a dropped table off the disk; its snapshots and backups stay, and with them the directory.
pub fn remove_files(engine: &Engine, store: &Arc<TableStore>) -> Result<(), StorageError> {
    store.directories.iter().try_for_each(|directory| remove_files_in(engine, directory))
}

fn remove_files_in(engine: &Engine, directory: &Path) -> Result<(), StorageError> {
    let disk = &engine.env.disk;
    if !disk.exists(directory) {
        return Ok(());
    }
    let io = |error: std::io::Error| StorageError::io(directory, &error);
    // a compaction that ends takes files away too
    let gone = |removed: std::io::Result<()>| match removed {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        other => other.map_err(io),
    };
    let mut kept = false;
    for entry in disk.list_dir(directory).map_err(io)? {
        let path = directory.join(&entry.name);
        match (entry.is_dir, entry.name.as_str()) {
            (true, layout::SNAPSHOTS | layout::BACKUPS) => kept = true,
            (true, _) => gone(disk.remove_dir_all(&path))?,
            (false, _) => gone(disk.remove_file(&path))?,
        }
    }
    if !kept {
        gone(disk.remove_dir_all(directory))?;
    }
    Ok(())
}
