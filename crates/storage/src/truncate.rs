//! Truncating: a table loses everything that it holds. Also: taking the files of a dropped table off the disk.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use crate::commitlog::LogPosition;
use crate::engine::Engine;
use crate::error::StorageError;
use crate::table::TableStore;
use crate::{layout, truncation_records};

/// Records that a table is being truncated: what the log has of it up to `position` is not replayed. The caller took the position
/// before it flushed the table, and waits until the returned one is durable before it truncates.
pub fn record(engine: &Engine, store: &TableStore, position: LogPosition) -> Result<Option<LogPosition>, StorageError> {
    let schema = engine.schema();
    let Some(local) = schema.table("system", "local") else { return Ok(None) };
    let now = engine.env.clock.now_micros();
    match truncation_records::mutation(local, store.id, position, now) {
        Some(mutation) => Ok(engine.apply(&[mutation])?.position),
        None => Ok(None),
    }
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
