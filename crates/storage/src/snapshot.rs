//! Snapshots: hard links to the files of a table at one moment, with a manifest and its schema, as
//! Cassandra makes them.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use env::Disk;
use schema::{TableId, TableMetadata, describe};
use sstable::attached::is_component as is_attached_component;
use sstable::{Component, Descriptor, SSTable};

use crate::engine::Engine;
use crate::error::StorageError;
use crate::files::FileRetention;
use crate::table::TableStore;
use crate::{files, layout};

/// A snapshot of a table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Snapshot {
    /// Its name.
    pub tag: String,
    /// Keyspace.
    pub keyspace: String,
    /// Table; it may have been dropped since.
    pub table: String,
    /// The table's id, as in the directory's name: 32 hexadecimal digits.
    pub table_id: String,
    /// The directory of the snapshot.
    pub directory: PathBuf,
    /// Bytes of its files.
    pub size: u64,
    /// Bytes of files that only the snapshot has, because the table does not have them any more.
    pub true_size: u64,
    /// When it was taken, milliseconds since 1970, if its manifest says so.
    pub created_at: Option<i64>,
}

/// Whether a snapshot is taken before a table is dropped or truncated: `auto_snapshot`, and
/// `allow_auto_snapshot` of the table.
pub fn is_automatic(engine: &Engine, store: &TableStore) -> bool {
    engine.options.auto_snapshot && store.table().params.allow_auto_snapshot != Some(false)
}

/// Takes the snapshot before a table is dropped or truncated. One that cannot be completed leaves
/// nothing behind. The name is of this snapshot alone: two truncations of a table at one moment
/// would link the same files into one directory, which is refused.
pub(crate) fn take_automatic(engine: &Engine, store: &Arc<TableStore>, why: &str) -> Result<(), StorageError> {
    let tag = format!("{why}-{}-{}", engine.next_automatic_snapshot(), store.table().name);
    let taken = take(engine, store, &tag);
    if taken.is_err()
        && let Err(error) = clear(engine, store, Some(&tag))
    {
        tracing::warn!(tag, %error, "a snapshot that could not be completed cannot be removed");
    }
    taken.map(drop)
}

/// Links the files of a table into a snapshot, in each of its directories. Rows in memtables are
/// not part of it, so the caller flushes first. The manifest is written last: a snapshot without
/// one is not complete.
///
/// Flushes and compactions of the table go on meanwhile. Files that a compaction replaces stay
/// until the links are made.
pub fn take(engine: &Engine, store: &Arc<TableStore>, tag: &str) -> Result<PathBuf, StorageError> {
    take_of_many(engine, store, tag, engine.log.first_needed())
}

/// Does the work of [`take`] for one of several tables. `from`: [`CommitLog::first_needed`] before
/// any of them was flushed for their snapshots, so that no table, new ones among them, has records
/// in earlier segments that are in no snapshot.
///
/// [`CommitLog::first_needed`]: crate::commitlog::CommitLog::first_needed
pub fn take_of_many(engine: &Engine, store: &Arc<TableStore>, tag: &str, from: u64) -> Result<PathBuf, StorageError> {
    let disk = &engine.env.disk;
    if tag.is_empty() || tag.contains(['/', '\\']) || tag == "." || tag == ".." {
        return Err(StorageError::Refused { why: format!("'{tag}' is no name for a snapshot") });
    }
    crate::directories::make_directories(engine, store)?;
    let target = make_directory(engine, &store.directory, tag)?;
    let io = |error: std::io::Error| StorageError::io(&target, &error);
    // before the SSTables are known, so that no record behind them is in an earlier segment: rows
    // that came since the flush, and all of the memtables where nothing was flushed
    let segment = engine.log.first_needed_by(store.id);
    let _kept = FileRetention::of(store);
    let view = store.view();
    let mut links = SnapshotLinks { engine, tag, places: BTreeMap::new() };
    let mut data_files = Vec::new();
    for sstable in &view.sstables {
        links.link(sstable)?;
        data_files.push(sstable.descriptor().file_name(Component::Data));
    }
    for index in view.indexes.iter() {
        let _kept = FileRetention::of(&index.store);
        for sstable in &index.store.view().sstables {
            links.link(sstable)?;
            data_files.push(name_in_table(&index.store.directory, sstable));
        }
    }
    // what the manifest names is there after a power cut
    links.sync()?;
    let text = create_statements(engine, &view.table);
    disk.replace_file(&target.join("schema.cql"), text.as_bytes()).map_err(io)?;
    let created = engine.env.clock.now_micros();
    let manifest = serde_json::json!({
        "files": data_files,
        "created_at": format_iso8601(created),
        "expires_at": null,
        "ephemeral": false,
        // Cassandra passes this over; a restore to a point in time needs the segments from this on
        "commitlog_segment": segment,
        // earlier segments have nothing for any table that is not in the snapshots of this moment
        "commitlog_from": from,
    });
    disk.replace_file(&target.join("manifest.json"), manifest.to_string().as_bytes()).map_err(io)?;
    Ok(target)
}

/// The links of a snapshot. Each directory is listed, made and synced once, whatever the number of
/// SSTables: a sync of a directory makes all names in it durable.
struct SnapshotLinks<'a> {
    engine: &'a Engine,
    tag: &'a str,
    /// The parts of the snapshot by the directory of their SSTables.
    places: BTreeMap<PathBuf, SnapshotDirectory>,
}

/// A directory of SSTables, and its part of a snapshot.
struct SnapshotDirectory {
    /// Names of the files in the directory.
    files: BTreeSet<String>,
    /// The directory of the links.
    target: PathBuf,
}

impl SnapshotLinks<'_> {
    /// Links the files of an SSTable, which the caller keeps from being removed.
    fn link(&mut self, sstable: &SSTable) -> Result<(), StorageError> {
        let directory = &sstable.descriptor().directory;
        let place = match self.places.entry(directory.clone()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(SnapshotDirectory::open(self.engine, directory, self.tag)?),
        };
        for name in files::file_names(&place.files, sstable) {
            match self.engine.env.disk.hard_link(&directory.join(name), &place.target.join(name)) {
                // the index of this component has been dropped meanwhile
                Err(error) if error.kind() == ErrorKind::NotFound && is_attached_component(name) => {}
                linked => linked.map_err(|error| StorageError::io(&place.target, &error))?,
            }
        }
        Ok(())
    }

    fn sync(&self) -> Result<(), StorageError> {
        self.places.values().try_for_each(|SnapshotDirectory { target, .. }| {
            self.engine.env.disk.sync_dir(target).map_err(|error| StorageError::io(target, &error))
        })
    }
}

impl SnapshotDirectory {
    fn open(engine: &Engine, directory: &Path, tag: &str) -> Result<Self, StorageError> {
        let target = make_directory(engine, directory, tag)?;
        let entries = engine.env.disk.list_dir(directory).map_err(|error| StorageError::io(directory, &error))?;
        let files = entries.into_iter().filter(|entry| !entry.is_dir).map(|entry| entry.name).collect();
        Ok(Self { files, target })
    }
}

/// Links the SSTables of a dropped table that was left out of the schema into a snapshot, in each
/// of its directories. The table's schema is not in the snapshot, because it cannot be read. One
/// that cannot be completed leaves nothing behind.
pub(crate) fn take_of_left_out(engine: &Engine, directories: &[PathBuf], table: &str) -> Result<(), StorageError> {
    let disk = &engine.env.disk;
    let present: Vec<PathBuf> = directories.iter().filter(|directory| disk.exists(directory)).cloned().collect();
    let tag = format!("dropped-{}-{table}", engine.env.clock.now_micros() / 1000);
    let taken = link_left_out(engine, &present, &tag);
    if taken.is_err() {
        for target in present.iter().map(|directory| layout::snapshot_directory(directory, &tag)) {
            if disk.exists(&target)
                && let Err(error) = disk.remove_dir_all(&target)
            {
                tracing::warn!(tag, %error, "a snapshot that could not be completed cannot be removed");
            }
        }
    }
    taken
}

fn link_left_out(engine: &Engine, directories: &[PathBuf], tag: &str) -> Result<(), StorageError> {
    let env = &engine.env;
    let Some(first) = directories.first() else { return Ok(()) };
    // the directories of each index lie beneath those of the table
    let mut places = BTreeMap::from([(String::new(), directories.to_vec())]);
    for directory in directories {
        for index in layout::directories_in(env, directory)?.into_iter().filter(|name| name.starts_with('.')) {
            let place = directory.join(&index);
            places.entry(format!("{index}/")).or_default().push(place);
        }
    }
    let mut data_files = Vec::new();
    for (index, directories) in &places {
        let hidden = sstable::txn_log::obsolete_files(env, directories)?;
        for directory in directories {
            let SnapshotDirectory { files, target } = SnapshotDirectory::open(engine, directory, tag)?;
            let io = |error: std::io::Error| StorageError::io(&target, &error);
            for name in files.iter().filter(|name| !hidden.contains(&directory.join(name))) {
                let Some((_, component)) = Descriptor::parse(directory, name) else { continue };
                env.disk.hard_link(&directory.join(name), &target.join(name)).map_err(io)?;
                if component == Some(Component::Data) {
                    data_files.push(format!("{index}{name}"));
                }
            }
            env.disk.sync_dir(&target).map_err(io)?;
        }
    }
    let target = layout::snapshot_directory(first, tag);
    let manifest = serde_json::json!({
        "files": data_files,
        "created_at": format_iso8601(env.clock.now_micros()),
        "expires_at": null,
        "ephemeral": false,
    });
    let written = env.disk.replace_file(&target.join("manifest.json"), manifest.to_string().as_bytes());
    written.map_err(|error| StorageError::io(&target, &error))
}

/// The Data.db of an index's SSTable, with the index's directory in front, as in Cassandra's
/// manifests.
fn name_in_table(index: &Path, sstable: &SSTable) -> String {
    let name = sstable.descriptor().file_name(Component::Data);
    match index.file_name().and_then(|directory| directory.to_str()) {
        Some(directory) => format!("{directory}/{name}"),
        None => name,
    }
}

/// Makes the directory for the links to files in a directory of a table or of its index. The
/// table's directory has to be there.
pub(crate) fn make_directory(engine: &Engine, directory: &Path, tag: &str) -> Result<PathBuf, StorageError> {
    let target = layout::snapshot_directory(directory, tag);
    // an index has its place in the snapshot of the table
    let of_table = if target.starts_with(directory) { Some(directory) } else { directory.parent() };
    let made = engine.env.disk.create_dir_below(of_table.unwrap_or(directory), &target);
    made.map(|()| target.clone()).map_err(|error| StorageError::io(&target, &error))
}

/// The CREATE statements for making the table again: the types of its keyspace, and those that the
/// table has from before it was dropped, the table or view, its indexes.
fn create_statements(engine: &Engine, table: &TableMetadata) -> String {
    let schema = engine.schema();
    let known = schema.keyspace(&table.keyspace).map(|keyspace| describe::types_by_dependency(keyspace));
    let mut types = known.unwrap_or_default();
    let names: BTreeSet<String> = types.iter().map(|udt| udt.name.clone()).collect();
    types.extend(describe::types_of_table(table).into_iter().filter(|udt| !names.contains(&udt.name)));
    let mut texts: Vec<String> = types.iter().map(|udt| describe::user_type(udt)).collect();
    texts.push(match &table.view {
        Some(view) => describe::view(table, view, true),
        None => describe::table(table, true),
    });
    texts.extend(table.indexes.values().map(|index| describe::index(table, index)));
    texts.join("\n\n")
}

/// The directories of a table in the data directories, even if the node does not have the table
/// any more.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TableDirectories {
    /// The name of the keyspace's directory.
    pub keyspace: String,
    /// The table's name.
    pub table: String,
    /// The table's id: 32 hexadecimal digits. The node may not have a table with this id any more.
    pub table_id: String,
    /// For a table of the node its directory in each data directory, whether or not it is there;
    /// for others the directories that were found.
    pub directories: Vec<PathBuf>,
}

impl TableDirectories {
    fn of(store: &TableStore) -> Self {
        let table = store.table();
        Self {
            keyspace: table.keyspace.clone(),
            table: table.name.clone(),
            table_id: table.id.to_hex(),
            directories: store.directories.clone(),
        }
    }
}

/// All directories of tables in the data directories, by keyspace, table and id. Those of tables
/// that were dropped stay as long as they have snapshots.
pub fn places(engine: &Engine) -> Result<Vec<TableDirectories>, StorageError> {
    let mut found: BTreeMap<(String, String, String), Vec<PathBuf>> = BTreeMap::new();
    // tables that are opened in snapshots and copies lie elsewhere
    for store in engine.tables() {
        let TableDirectories { keyspace, table, table_id, directories } = TableDirectories::of(&store);
        found.insert((keyspace, table, table_id), directories);
    }
    for data in engine.options.data_directories.iter().chain(&engine.options.system_directory) {
        let keyspaces = layout::directories_in(&engine.env, data)?;
        for keyspace in keyspaces.into_iter().filter(|name| layout::is_keyspace(name)) {
            let above = data.join(&keyspace);
            for name in layout::directories_in(&engine.env, &above)? {
                let Some((table, id)) = name.rsplit_once('-') else { continue };
                if TableId::from_hex(id).is_none() {
                    continue;
                }
                let known = found.entry((keyspace.clone(), table.to_owned(), id.to_owned())).or_default();
                let directory = above.join(&name);
                if !known.contains(&directory) {
                    known.push(directory);
                }
            }
        }
    }
    let place =
        |((keyspace, table, table_id), directories)| TableDirectories { keyspace, table, table_id, directories };
    Ok(found.into_iter().map(place).collect())
}

/// The snapshots of a table.
pub fn list(engine: &Engine, store: &TableStore) -> Result<Vec<Snapshot>, StorageError> {
    list_at(engine, &TableDirectories::of(store))
}

/// The snapshots in the directories of a table.
pub fn list_at(engine: &Engine, place: &TableDirectories) -> Result<Vec<Snapshot>, StorageError> {
    let mut found: Vec<Snapshot> = Vec::new();
    for directory in &place.directories {
        for snapshot in list_in(engine, place, directory)? {
            match found.iter_mut().find(|known| known.tag == snapshot.tag) {
                Some(known) => {
                    known.size += snapshot.size;
                    known.true_size += snapshot.true_size;
                    known.created_at = known.created_at.or(snapshot.created_at);
                }
                None => found.push(snapshot),
            }
        }
    }
    Ok(found)
}

fn list_in(engine: &Engine, place: &TableDirectories, directory: &Path) -> Result<Vec<Snapshot>, StorageError> {
    let disk = &engine.env.disk;
    let above = directory.join(layout::SNAPSHOTS);
    let io = |error: std::io::Error| StorageError::io(&above, &error);
    let mut found = Vec::new();
    for tag in layout::directories_in(&engine.env, &above)? {
        let snapshot = above.join(&tag);
        let (mut size, mut true_size) = (0, 0);
        // another caller may clear it meanwhile
        let Some(files) = disk.list_dir_if_exists(&snapshot).map_err(io)? else { continue };
        for file in files.into_iter().filter(|file| !file.is_dir) {
            let length = match disk.file_len(&snapshot.join(&file.name)) {
                Ok(length) => length,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                Err(error) => return Err(io(error)),
            };
            size += length;
            if !disk.exists(&directory.join(&file.name)) {
                true_size += length;
            }
        }
        let TableDirectories { keyspace, table, table_id, .. } = place.clone();
        let created_at = created_at(engine, &snapshot);
        found.push(Snapshot { tag, keyspace, table, table_id, directory: snapshot, size, true_size, created_at });
    }
    Ok(found)
}

/// Most bytes of a manifest that is read.
const MANIFEST_SIZE_MAX: u64 = 16 << 20;

fn created_at(engine: &Engine, directory: &Path) -> Option<i64> {
    time_of_manifest(&engine.env.disk.read_all(&directory.join("manifest.json"), MANIFEST_SIZE_MAX).ok()?)
}

/// When the snapshot of a manifest was taken, milliseconds since 1970.
#[doc(hidden)]
pub fn time_of_manifest(text: &[u8]) -> Option<i64> {
    let manifest: serde_json::Value = serde_json::from_slice(text).ok()?;
    let time: jiff::Timestamp = manifest.get("created_at")?.as_str()?.parse().ok()?;
    Some(time.as_millisecond())
}

/// Removes a snapshot of a table, or all of them without a tag. Gives how many there were.
pub fn clear(engine: &Engine, store: &TableStore, tag: Option<&str>) -> Result<usize, StorageError> {
    clear_at(engine, &TableDirectories::of(store), tag)
}

/// Does the work of [`clear`] in the directories of a table. Those of a table that the node does
/// not have any more are removed when nothing is left in them.
pub fn clear_at(engine: &Engine, place: &TableDirectories, tag: Option<&str>) -> Result<usize, StorageError> {
    clear_where(engine, place, |snapshot| tag.is_none_or(|tag| tag == snapshot.tag))
}

/// Does the work of [`clear_at`] for the snapshots that meet a condition.
pub fn clear_where(
    engine: &Engine,
    place: &TableDirectories,
    is_meant: impl Fn(&Snapshot) -> bool,
) -> Result<usize, StorageError> {
    let disk = &engine.env.disk;
    let mut cleared = 0;
    for snapshot in list_at(engine, place)? {
        if is_meant(&snapshot) {
            for directory in place.directories.iter().map(|own| layout::snapshot_directory(own, &snapshot.tag)) {
                if disk.exists(&directory) {
                    disk.remove_dir_all(&directory).map_err(|error| StorageError::io(&directory, &error))?;
                }
            }
            cleared += 1;
        }
    }
    if cleared > 0 {
        // a table that is made again under this id has its directory before the schema has the
        // table
        let _no_change = engine.schema_changes.lock().expect("a panic while the schema changes ends the process");
        let is_needed = |id: TableId| engine.table(id).is_some() || engine.dropper.is_under_way(id);
        if !TableId::from_hex(&place.table_id).is_some_and(is_needed) {
            place.directories.iter().try_for_each(|directory| remove_empty(disk.as_ref(), directory))?;
        }
    }
    Ok(cleared)
}

/// Removes the directory of a dropped table if nothing is in it but an empty directory of
/// snapshots.
fn remove_empty(disk: &dyn Disk, directory: &Path) -> Result<(), StorageError> {
    for path in [&directory.join(layout::SNAPSHOTS), directory] {
        let io = |error: std::io::Error| StorageError::io(path, &error);
        if disk.list_dir_if_exists(path).map_err(io)?.is_some_and(|entries| entries.is_empty()) {
            disk.remove_dir_all(path).map_err(io)?;
        }
    }
    Ok(())
}

/// A time as `2026-11-21T08:11:02.123Z`; `micros`: microseconds since 1970.
fn format_iso8601(micros: i64) -> String {
    match jiff::Timestamp::from_millisecond(micros.div_euclid(1000)) {
        Ok(time) => format!("{time:.3}"),
        Err(_) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::format_iso8601;

    #[test]
    fn times_of_manifests() {
        assert_eq!(format_iso8601(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(format_iso8601(1_795_248_662_123_456), "2026-11-21T08:11:02.123Z");
        assert_eq!(format_iso8601(951_782_400_000_000), "2000-02-29T00:00:00.000Z");
    }
}
