//! A table's directories: made once, and never in the place of one that is gone.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use crate::engine::Engine;
use crate::error::StorageError;
use crate::table::TableStore;

/// Makes a table's directories and those between them and the data directory, durably. A directory
/// that was there and is gone is an error: files in a new one would be hidden when the old one,
/// perhaps a mount, comes back. The same is true of the keyspace's directory if it had tables, and
/// of the table's directory when that of an index is made.
pub(crate) fn make_directories(engine: &Engine, store: &TableStore) -> Result<(), StorageError> {
    let (env, options) = (&engine.env, &engine.options);
    let roots = || options.data_directories.iter().chain(&options.system_directory);
    let others = engine.tables.load();
    let was_there = |above: &Path| {
        let is_it = |directory: &PathBuf| directory == above || directory.parent() == Some(above);
        let placed = |other: &TableStore| {
            let mut places = other.directories.iter().zip(&other.placed);
            places.any(|(directory, placed)| is_it(directory) && placed.load(Ordering::Relaxed))
        };
        others.in_order().values().any(|other| placed(other))
    };
    for (directory, placed) in store.directories.iter().zip(&store.placed) {
        if env.disk.exists(directory) {
            placed.store(true, Ordering::Relaxed);
            continue;
        }
        if placed.load(Ordering::Relaxed) {
            return Err(missing_directory(directory));
        }
        let above = directory.parent().filter(|above| was_there(above));
        let root = above.or_else(|| roots().find(|root| directory.starts_with(root)).map(PathBuf::as_path));
        let made = match root {
            Some(root) => env.disk.create_dir_below(root, directory),
            None => env.disk.create_dir_durable(directory),
        };
        made.map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => missing_directory(root.unwrap_or(directory)),
            _ => StorageError::io(directory, &error),
        })?;
        placed.store(true, Ordering::Relaxed);
    }
    Ok(())
}

fn missing_directory(directory: &Path) -> StorageError {
    let message = "the directory is gone (is its disk mounted?)".to_owned();
    StorageError::Io { path: directory.to_owned(), message }
}
