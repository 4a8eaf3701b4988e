//! The places of files on disk: `<data>/<keyspace>/<table>-<id>/` in each data directory, as in
//! Cassandra.
//!
//! Before 2.1 Cassandra has put a table in `<data>/<keyspace>/<table>/`. Every later version leaves
//! such a directory where it is and goes on writing there.
//!
//! The local system keyspaces lie in one directory, but for the few tables that grow. Agrees with
//! `org.apache.cassandra.db.Directories` and `SystemKeyspace.TABLES_SPLIT_ACROSS_MULTIPLE_DISKS`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use env::Env;
use schema::system::is_local_keyspace;
use schema::{TableId, TableMetadata};

use crate::error::StorageError;
use crate::options::EngineOptions;

/// Name of the directory with the snapshots of a table.
pub const SNAPSHOTS: &str = "snapshots";
/// Name of the directory with the incremental backups of a table.
pub const BACKUPS: &str = "backups";

/// Tables of `system` that lie in all data directories, as those of users.
pub const SPLIT_SYSTEM_TABLES: [&str; 5] = ["batches", "paxos", "compaction_history", "prepared_statements", "repairs"];

/// The directory of a table beneath a data directory.
fn table_directory(data: &Path, table: &TableMetadata) -> PathBuf {
    data.join(&table.keyspace).join(format!("{}-{}", table.name, table.id.to_hex()))
}

/// The directory in which Cassandra has put a table before 2.1.
fn directory_without_id(data: &Path, table: &TableMetadata) -> PathBuf {
    data.join(&table.keyspace).join(&table.name)
}

/// The directories of a table, at least one; they need not exist. Where one without an id is there,
/// all are without: Cassandra looks in no other then, and would not find what was written there.
pub fn table_directories(env: &Env, options: &EngineOptions, table: &TableMetadata) -> Vec<PathBuf> {
    if let Some(places) = options.places.get(&table.id).filter(|places| !places.is_empty()) {
        return places.clone();
    }
    let beneath = data_directories(options, table);
    let without_id: Vec<PathBuf> = beneath.iter().map(|data| directory_without_id(data, table)).collect();
    let mut directories = match without_id.iter().any(|directory| env.disk.exists(directory)) {
        true => without_id,
        false => beneath.iter().map(|data| table_directory(data, table)).collect(),
    };
    if options.read_only {
        // nothing can be moved: what lies elsewhere is read there
        directories.extend(former_directories(options, table));
    }
    directories
}

/// The directories with the id of a table that lies in `directories`, which are without it: nothing
/// is read there. Empty for a table that lies in directories with its id.
pub fn ignored_directories(options: &EngineOptions, table: &TableMetadata, directories: &[PathBuf]) -> Vec<PathBuf> {
    if options.places.contains_key(&table.id) {
        return Vec::new();
    }
    let with_id = data_directories(options, table).into_iter().map(|data| table_directory(data, table));
    with_id.filter(|directory| !directories.contains(directory)).collect()
}

/// The data directories that a table lies in.
fn data_directories<'o>(options: &'o EngineOptions, table: &TableMetadata) -> Vec<&'o Path> {
    match lies_in_one_directory(table) {
        true => vec![system_directory(options)],
        false => options.data_directories.iter().map(PathBuf::as_path).collect(),
    }
}

/// Other directories that may have files of a table of the local system keyspaces: data
/// directories that were the first one under an earlier configuration, or any one if Cassandra 3
/// wrote them. Empty for tables that lie in all data directories.
pub fn former_directories(options: &EngineOptions, table: &TableMetadata) -> Vec<PathBuf> {
    if !lies_in_one_directory(table) || options.places.contains_key(&table.id) {
        return Vec::new();
    }
    let own = system_directory(options);
    let others = options.data_directories.iter().filter(|data| data.as_path() != own);
    others.flat_map(|data| [table_directory(data, table), directory_without_id(data, table)]).collect()
}

/// The directory of the local system keyspaces.
pub fn system_directory(options: &EngineOptions) -> &Path {
    options.system_directory.as_deref().unwrap_or_else(|| options.data_directory())
}

fn lies_in_one_directory(table: &TableMetadata) -> bool {
    let is_split = table.keyspace == "system" && SPLIT_SYSTEM_TABLES.contains(&table.name.as_str());
    is_local_keyspace(&table.keyspace) && !is_split
}

/// The directory of a snapshot of a table. The snapshot of an index lies in that of its base.
pub fn snapshot_directory(table_directory: &Path, tag: &str) -> PathBuf {
    let name = table_directory.file_name().and_then(|name| name.to_str()).filter(|name| name.starts_with('.'));
    match (name, table_directory.parent()) {
        (Some(index), Some(base)) => base.join(SNAPSHOTS).join(tag).join(index),
        _ => table_directory.join(SNAPSHOTS).join(tag),
    }
}

/// The directories in the data directories whose names end in one of these ids, by id. All ids are
/// looked for in one pass, because a node may have thousands of tables.
pub(crate) fn directories_with_ids(
    env: &Env,
    options: &EngineOptions,
    ids: &BTreeSet<TableId>,
) -> Result<BTreeMap<TableId, Vec<PathBuf>>, StorageError> {
    let mut found: BTreeMap<TableId, Vec<PathBuf>> = BTreeMap::new();
    if ids.is_empty() {
        return Ok(found);
    }
    for data in &options.data_directories {
        for keyspace in directories_in(env, data)?.iter().filter(|name| is_keyspace(name)) {
            let above = data.join(keyspace);
            for name in directories_in(env, &above)? {
                let id = name.rsplit_once('-').and_then(|(_, id)| TableId::from_hex(id));
                if let Some(id) = id.filter(|id| ids.contains(id)) {
                    found.entry(id).or_default().push(above.join(&name));
                }
            }
        }
    }
    Ok(found)
}

/// The directories that a table which is left out may have; they need not exist. Those without its
/// id are among them where one is there. Empty where a name is no word: another node has sent the
/// name, which could be a path.
pub(crate) fn directories_of_left_out(
    env: &Env,
    options: &EngineOptions,
    (keyspace, table): (&str, &str),
    id: TableId,
) -> Vec<PathBuf> {
    if let Some(places) = options.places.get(&id) {
        return places.clone();
    }
    if [keyspace, table].into_iter().any(|name| name.is_empty() || !is_keyspace(name)) {
        return Vec::new();
    }
    let beneath = |name: &str| -> Vec<PathBuf> {
        options.data_directories.iter().map(|data| data.join(keyspace).join(name)).collect()
    };
    let mut directories = beneath(table);
    if !directories.iter().any(|directory| env.disk.exists(directory)) {
        directories.clear();
    }
    directories.extend(beneath(&format!("{table}-{}", id.to_hex())));
    directories
}

/// Whether the name of a directory can be that of a keyspace. `lost+found` and the like are
/// nobody's, and may not be readable.
pub(crate) fn is_keyspace(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Names of the directories in a directory; none where it is not there.
pub(crate) fn directories_in(env: &Env, above: &Path) -> Result<Vec<String>, StorageError> {
    let entries = env.disk.list_dir_if_exists(above).map_err(|error| StorageError::io(above, &error))?;
    Ok(entries.into_iter().flatten().filter(|entry| entry.is_dir).map(|entry| entry.name).collect())
}

#[cfg(test)]
mod tests {
    use env::sim::{DATA, Op, Sim};

    use super::*;

    /// A pass for each table would be a thousand times a thousand names at a start with a thousand
    /// tables that are left out.
    #[test]
    fn directories_of_many_tables_are_found_in_one_pass() {
        let sim = Sim::new(1);
        let options = EngineOptions::with_small_budgets(Path::new(DATA));
        let ids: BTreeSet<TableId> = (0..9).map(|id| TableId([id; 16])).collect();
        let keyspace = options.data_directory().join("ks");
        let places = ids.iter().map(|id| (*id, vec![keyspace.join(format!("t-{}", id.to_hex()))]));
        let places: BTreeMap<TableId, Vec<PathBuf>> = places.collect();
        for place in places.values().flatten() {
            sim.env().disk.create_dir_durable(place).expect("a sound disk");
        }
        let lists = sim.disk().count(Op::List);
        let found = directories_with_ids(&sim.env(), &options, &ids).expect("a sound disk");
        assert_eq!(found, places);
        assert_eq!(sim.disk().count(Op::List) - lists, 2, "the data directory, and that of the keyspace");
    }
}
