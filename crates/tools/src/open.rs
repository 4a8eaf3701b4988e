//! Opens an SSTable with a schema: a given one, or the columns that its own Statistics.db names.

use std::path::Path;
use std::sync::Arc;

use env::Env;
use schema::TableMetadata;
use sstable::{Component, CompressionInfo, Descriptor, Error, NoCache, SSTable, Statistics};

use crate::failure::Failure;

/// Bytes of Statistics.db, of digests and of schema files at most; a longer file is refused.
pub const SMALL_FILE_MAX: u64 = 256 * 1024 * 1024;

/// Reads Statistics.db.
pub fn statistics(env: &Env, descriptor: &Descriptor) -> Result<Statistics, Failure> {
    let path = descriptor.path(Component::Statistics);
    let bytes = env.disk.read_all(&path, SMALL_FILE_MAX).map_err(|error| Error::io(&path, error))?;
    let read = Statistics::read(&bytes.into(), descriptor.version);
    Ok(read.map_err(|error| Error::from(error.of(&path, 0)))?)
}

/// Reads CompressionInfo.db.
pub fn compression_info(env: &Env, descriptor: &Descriptor) -> Result<CompressionInfo, Failure> {
    let path = &descriptor.path(Component::CompressionInfo);
    let bytes = env.disk.read_all(path, SMALL_FILE_MAX).map_err(|error| Error::io(path, error))?;
    Ok(CompressionInfo::open(&bytes.into(), descriptor.version).map_err(|error| Error::from(error.of(path, 0)))?)
}

/// Keyspace and table from the directory `<keyspace>/<table>-<id>`, or from the directories above a
/// snapshot. Where the path does not say, the names are those that sstabledump prints.
pub fn names_of(directory: &Path) -> (String, String) {
    let names = names_of_path(directory).filter(|_| name_beside_id(table_directory(directory)).is_some());
    names.unwrap_or_else(|| ("keyspace".to_owned(), "table".to_owned()))
}

/// As [`names_of`]; the directory's name may lack the id. None: the path has no two names.
pub fn names_of_path(directory: &Path) -> Option<(String, String)> {
    let table = table_directory(directory);
    let keyspace = table.parent()?.file_name()?.to_string_lossy().into_owned();
    let name = match name_beside_id(table) {
        Some(name) => name,
        None => table.file_name()?.to_string_lossy().into_owned(),
    };
    Some((keyspace, name))
}

/// The directory of the table to which a directory belongs: the one above snapshots and backups.
fn table_directory(directory: &Path) -> &Path {
    let mut table = directory;
    for ancestor in directory.ancestors() {
        let name = ancestor.file_name().unwrap_or_default().to_string_lossy();
        if name == "snapshots" || name == "backups" {
            table = ancestor.parent().unwrap_or(directory);
        }
    }
    table
}

/// The table's name, where a directory is called `<table>-<id>`.
fn name_beside_id(directory: &Path) -> Option<String> {
    let is_id = |id: &str| id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    let text = directory.file_name()?.to_string_lossy().into_owned();
    text.rsplit_once('-').filter(|(_, id)| is_id(id)).map(|(name, _)| name.to_owned())
}

/// The table with the columns that Statistics.db names.
pub fn table_of_header(descriptor: &Descriptor, statistics: &Statistics) -> Result<Arc<TableMetadata>, Failure> {
    let (keyspace, name) = names_of(&descriptor.directory);
    let path = descriptor.path(Component::Statistics);
    let table = statistics.header.table(&keyspace, &name).map_err(|error| Error::from(error.of(&path, 0)))?;
    Ok(Arc::new(table))
}

/// Opens the SSTable under a table's schema.
pub fn open(env: &Env, descriptor: &Descriptor, table: &Arc<TableMetadata>) -> Result<SSTable, Failure> {
    Ok(SSTable::open(env, descriptor.clone(), table, Arc::new(NoCache))?)
}
