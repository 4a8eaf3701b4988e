//! Reads the schema from `schema.cql` files: one file a table, as snapshots have it, or one for
//! all.
//!
//! A statement may need a type or a table of a later file, so files are read twice: in the second
//! round each statement finds what it needs. Agrees with what
//! `org.apache.cassandra.db.SchemaCQLHelper` writes.

use std::path::{Path, PathBuf};

use cql::ddl::restore::{RestoreOptions, restore};
use env::Env;
use schema::{Schema, TableId, system};

use super::folders::Folder;

/// The most bytes that a schema file may have.
const SCHEMA_SIZE_MAX: u64 = 64 << 20;

/// The built-in schema with what the files add. `folders` give an id to a table whose statement has
/// none, and a keyspace to names that have none.
pub(super) fn read(env: &Env, files: &[PathBuf], folders: &[Folder]) -> Result<Schema, String> {
    let mut schema = system::schema();
    let mut texts = Vec::with_capacity(files.len());
    for file in files {
        let bytes = env.disk.read_all(file, SCHEMA_SIZE_MAX).map_err(|error| format!("{}: {error}", file.display()))?;
        let text = String::from_utf8(bytes).map_err(|_| format!("{}: not UTF-8", file.display()))?;
        texts.push((file, text));
    }
    // a view fails in the first round where a later file has its table
    for round in [false, true] {
        for (file, text) in &texts {
            let keyspace = keyspace_of(file, text, folders);
            let id_of = |keyspace: &str, table: &str| id_of(keyspace, table, folders);
            let restoring = RestoreOptions { keyspace, now_micros: env.clock.now_micros(), id_of: &id_of };
            let restored = restore(text, &restoring, schema).map_err(|error| format!("{}: {error}", file.display()))?;
            schema = restored.schema;
            if round {
                for statement in restored.skipped {
                    tracing::warn!(file = %file.display(), statement, "passed over in the schema");
                }
            }
        }
    }
    Ok(schema)
}

/// The keyspace of names that have none: the keyspace of the folder, or the one that the text
/// names elsewhere.
fn keyspace_of(file: &Path, text: &str, folders: &[Folder]) -> Option<String> {
    let named = ["CREATE TABLE IF NOT EXISTS ", "CREATE TABLE "].iter().find_map(|words| {
        let rest = &text[text.find(words)? + words.len()..];
        let name = rest.split_once('.')?.0;
        (!name.contains(char::is_whitespace)).then(|| name.trim_matches('"').to_owned())
    });
    let folder = folders.iter().find(|folder| Some(folder.path.as_path()) == file.parent());
    named.or_else(|| folder.and_then(|folder| folder.keyspace.clone()))
}

/// The table's id: that in the folder's name, else one made of the names, which is the same at each
/// start.
fn id_of(keyspace: &str, table: &str, folders: &[Folder]) -> TableId {
    let is_it =
        |folder: &&Folder| folder.keyspace.as_deref() == Some(keyspace) && folder.table.as_deref() == Some(table);
    let in_folder = folders.iter().filter(is_it).find_map(|folder| folder.id);
    in_folder.unwrap_or_else(|| TableId::of_system_table(keyspace, table))
}
