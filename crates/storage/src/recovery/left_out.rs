//! Tables that are left out because their rows of `system_schema` cannot be read: the records of
//! the log that their SSTables have. Nobody opens these SSTables; they stay for the day on which
//! the schema can be read again, or the table is dropped.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use env::Env;
use schema::TableId;
use sstable::{Component, Descriptor, STATISTICS_SIZE_MAX, Statistics, txn_log};

use crate::error::StorageError;
use crate::layout;
use crate::log_intervals::{self, Interval};
use crate::options::EngineOptions;

/// The intervals of the log whose records the SSTables of these tables have. Those in a directory
/// without the table's id do not count, nor do those whose statistics cannot be read: their
/// records are taken for ones that no SSTable has.
pub(super) fn persisted(
    env: &Env,
    options: &EngineOptions,
    ids: &BTreeSet<TableId>,
    host: Option<[u8; 16]>,
) -> Result<BTreeMap<TableId, Vec<Interval>>, StorageError> {
    let places = layout::directories_with_ids(env, options, ids)?;
    places.into_iter().map(|(id, directories)| Ok((id, intervals_in(env, &directories, host)?))).collect()
}

/// The intervals of the SSTables in the directories of one table.
fn intervals_in(env: &Env, directories: &[PathBuf], host: Option<[u8; 16]>) -> Result<Vec<Interval>, StorageError> {
    let hidden = txn_log::obsolete_files(env, directories)?;
    let mut found = Vec::new();
    for directory in directories {
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
