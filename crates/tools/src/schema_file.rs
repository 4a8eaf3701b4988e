//! The schema that files are read by: `--schema FILE`, else a `schema.cql` beside the files
//! (snapshots have one), else the header of each file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cql::ddl::restore::{RestoreOptions, restore};
use env::Env;
use schema::{Schema, TableId, TableMetadata};
use sstable::{Descriptor, Statistics};

use crate::failure::Failure;
use crate::open;

/// The name of the schema file in a snapshot.
const BESIDE: &str = "schema.cql";

/// Where a table's schema comes from.
pub enum Source {
    /// The text of a schema file.
    File(Arc<TableMetadata>),
    /// The header of the SSTable.
    Header(Arc<TableMetadata>),
}

impl Source {
    /// The table.
    pub fn table(&self) -> &Arc<TableMetadata> {
        match self {
            Self::File(table) | Self::Header(table) => table,
        }
    }
}

/// The table of an SSTable.
pub fn find(
    env: &Env,
    descriptor: &Descriptor,
    statistics: &Statistics,
    given: Option<&PathBuf>,
) -> Result<Source, Failure> {
    match from_text(env, descriptor, given)? {
        Some(table) => Ok(Source::File(table)),
        None => Ok(Source::Header(open::table_of_header(descriptor, statistics)?)),
    }
}

/// The table that the text of a schema file describes; None: there is no schema file.
pub fn from_text(
    env: &Env,
    descriptor: &Descriptor,
    given: Option<&PathBuf>,
) -> Result<Option<Arc<TableMetadata>>, Failure> {
    let beside = descriptor.directory.join(BESIDE);
    match given {
        Some(path) => read(env, path, descriptor).map(Some),
        None if env.disk.exists(&beside) => read(env, &beside, descriptor).map(Some),
        None => Ok(None),
    }
}

fn read(env: &Env, path: &Path, descriptor: &Descriptor) -> Result<Arc<TableMetadata>, Failure> {
    let wrong = |what: String| Failure::new(format!("{}: {what}", path.display()));
    let bytes = env.disk.read_all(path, open::SMALL_FILE_MAX).map_err(|error| wrong(error.to_string()))?;
    let text = String::from_utf8(bytes).map_err(|error| wrong(error.to_string()))?;
    let (keyspace, name) = open::names_of(&descriptor.directory);
    let options = RestoreOptions {
        keyspace: Some(keyspace.clone()),
        now_micros: env.clock.now_micros(),
        id_of: &TableId::of_system_table,
    };
    let restored = restore(&text, &options, Schema::default()).map_err(|error| wrong(error.to_string()))?;
    if let Some(table) = restored.schema.table(&keyspace, &name) {
        return Ok(Arc::clone(table));
    }
    let mut tables = restored.schema.keyspaces.values().flat_map(|keyspace| keyspace.tables.values());
    match (tables.next(), tables.next()) {
        (Some(only), None) => Ok(Arc::clone(only)),
        (None, _) => Err(wrong("no table is created there".to_owned())),
        _ => Err(wrong(format!("several tables are created there, and none is {keyspace}.{name}"))),
    }
}
