//! Tables that are left out because their rows of `system_schema` cannot be read: the records of
//! the log that their SSTables have. Nobody opens these SSTables; they stay for the day on which
//! the schema can be read again.

use std::path::{Path, PathBuf};

use env::Env;
use schema::TableId;
use sstable::{Component, Descriptor, STATISTICS_SIZE_MAX, Statistics, txn_log};

use crate::error::StorageError;
use crate::log_intervals::{self, Interval};
use crate::options::EngineOptions;

/// The intervals of the log whose records the SSTables of a table have. Those in a directory
/// without the table's id do not count, nor do those whose statistics cannot be read: their
/// records are taken for ones that no SSTable has.
pub(super) fn persisted(
    env: &Env,
    options: &EngineOptions,
    id: TableId,
    host: Option<[u8; 16]>,
) -> Result<Vec<Interval>, StorageError> {
    let directories = directories(env, options, id)?;
    let hidden = txn_log::obsolete_files(env, &directories)?;
    let mut found = Vec::new();
    for directory in &directories {
        let files = env.disk.list_dir(directory).map_err(|error| StorageError::io(directory, &error))?;
        for file in files.into_iter().filter(|file| !file.is_dir && !hidden.contains(&directory.join(&file.name))) {
            let Some((descriptor, Some(Component::Data))) = Descriptor::parse(directory, &file.name) else { continue };
            let bytes = env.disk.read_all(&descriptor.path(Component::Statistics), STATISTICS_SIZE_MAX);
            let read = bytes.ok().and_then(|bytes| Statistics::read(&bytes.into(), descriptor.version).ok());
            found.extend(read.map(|statistics| statistics.stats));
        }
    }
    Ok(log_intervals::of(found.iter(), host))
}

/// The directories with the id of a table in the data directories.
fn directories(env: &Env, options: &EngineOptions, id: TableId) -> Result<Vec<PathBuf>, StorageError> {
    let end = format!("-{}", id.to_hex());
    let mut found = Vec::new();
    for data in &options.data_directories {
        // `lost+found` and the like are nobody's, and may not be readable
        let is_keyspace = |name: &str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        for keyspace in below(env, data, is_keyspace)? {
            found.extend(below(env, &keyspace, |name| name.ends_with(&end))?);
        }
    }
    Ok(found)
}

/// The directories in a directory whose names meet a condition; none where it is not there.
fn below(env: &Env, above: &Path, is_meant: impl Fn(&str) -> bool) -> Result<Vec<PathBuf>, StorageError> {
    let entries = env.disk.list_dir_if_exists(above).map_err(|error| StorageError::io(above, &error))?;
    let meant = entries.into_iter().flatten().filter(|entry| entry.is_dir && is_meant(&entry.name));
    Ok(meant.map(|entry| above.join(entry.name)).collect())
}
