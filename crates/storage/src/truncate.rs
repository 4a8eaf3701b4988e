//! Truncating: a table loses everything that it holds. Also: taking the files of a dropped table off the disk.

use std::sync::Arc;

use crate::engine::Engine;
use crate::error::StorageError;
use crate::layout;
use crate::table::TableStore;

/// Drops all data of a table, after a snapshot where the node is so configured.
///
/// The caller has flushed the table before: then the log may forget what it held, and a crash after the truncation does not
/// bring it back. What was written since that flush stays.
pub fn truncate(engine: &Engine, store: &Arc<TableStore>) -> Result<(), StorageError> {
    if engine.options.auto_snapshot {
        let tag = format!("truncated-{}-{}", engine.env.clock.now_micros() / 1000, store.table().name);
        crate::snapshot::take(engine, store, &tag)?;
    }
    let sstables = store.view().sstables.clone();
    crate::files::remove(engine, store, &sstables)
}

/// Takes the files of a dropped table off the disk; its snapshots and backups stay, and with them the directory.
pub fn remove_files(engine: &Engine, store: &Arc<TableStore>) -> Result<(), StorageError> {
    let disk = &engine.env.disk;
    let directory = &store.directory;
    if !disk.exists(directory) {
        return Ok(());
    }
    let io = |error: std::io::Error| StorageError::io(directory, &error);
    let mut kept = false;
    for entry in disk.list_dir(directory).map_err(io)? {
        let path = directory.join(&entry.name);
        match (entry.is_dir, entry.name.as_str()) {
            (true, layout::SNAPSHOTS | layout::BACKUPS) => kept = true,
            (true, _) => disk.remove_dir_all(&path).map_err(io)?,
            (false, _) => disk.remove_file(&path).map_err(io)?,
        }
    }
    if !kept {
        disk.remove_dir_all(directory).map_err(io)?;
    }
    Ok(())
}
