//! Changing the schema: rows into the schema tables, tables made, altered and dropped, the new
//! snapshot published.
//!
//! A change is made here ([`change`]), or it comes from another node as rows ([`merge`]). One at a
//! time. The new schema is in force when they return; it may be told to anybody once its position
//! in the commit log is durable, and only then may the files of dropped tables go
//! ([`crate::drops`]), also of those that were left out because their rows cannot be read.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rows::Mutation;
use schema::system::is_local_keyspace;
use schema::system_schema::{self, SchemaRow, SchemaTable, SchemaWrite};
use schema::{KeyspaceMetadata, LeftOutTable, Schema, TableId, TableKind, TableMetadata};

use crate::commitlog::LogPosition;
use crate::engine::Engine;
use crate::error::StorageError;
use crate::requests::drops::LeftOutFiles;
use crate::schema_tables::StoredSchema;
use crate::table::TableStore;
use crate::table::indexes::IndexStore;
use crate::table::view::View;
use crate::tables::Tables;
use crate::{directories, files, index, layout, opening, schema_tables, truncate, write};

/// Least microseconds between two changes: a row that replaces another deletes it one microsecond
/// before.
const CHANGE_STEP: i64 = 2;

/// The result of a change of the schema.
pub struct Changed {
    /// The schema before.
    pub before: Arc<Schema>,
    /// The schema in force.
    pub schema: Arc<Schema>,
    /// The rows that were written, as other nodes need them.
    pub written: Vec<Mutation>,
    /// The position up to which the log must be durable before the change is told to anybody;
    /// None: nothing was logged, and nothing is waited for.
    pub position: Option<LogPosition>,
    /// Tables whose files may be removed once the change is durable.
    pub dropped: Vec<Arc<TableStore>>,
    /// The files of tables that were left out and are dropped, which may be removed then, too.
    pub dropped_left_out: Vec<LeftOutFiles>,
    /// The change is the first of two steps of [`merge`], which is to be called again with the same
    /// rows once the files of what is dropped are gone.
    pub continues: bool,
}

/// Changes the schema by a function of the present schema. Ok(Err): the function refuses or has
/// nothing to change.
pub fn change<R>(
    engine: &Engine,
    decide: impl FnOnce(&Schema) -> Result<Schema, R>,
) -> Result<Result<Changed, R>, StorageError> {
    if engine.options.read_only {
        return Err(StorageError::ReadOnly);
    }
    let _one_at_a_time = engine.schema_changes.lock().expect("a panic while the schema changes ends the process");
    let before = engine.schema();
    let after = match decide(&before) {
        Ok(after) => after,
        Err(refused) => return Ok(Err(refused)),
    };
    let mut stored = stored(engine)?;
    check_names(engine, &before, &after, &stored)?;
    // two changes at one reading of the clock, over a clock that was set back, or after rows of a
    // node whose clock is ahead: the later change wins
    let timestamp = engine.next_timestamp(CHANGE_STEP).max(stored.newest().saturating_add(CHANGE_STEP));
    let mut writes = difference(&before, &after);
    writes.extend(deletions_of_left_out(&before, &after, &stored, engine.env.clock.now_seconds()));
    let written = mutations(engine, &writes, timestamp)?;
    stored.merge(&written);
    let after = Schema { version: stored.version(engine.env.clock.now_seconds()), ..after };
    store_and_apply(engine, before, after, written).map(Ok)
}

/// Refuses a table that is new where the stored schema has one of its name that is left out,
/// because it cannot be read: the rows of the two would be one table, which cannot be read either,
/// and the files of the former would be no table's. Rows without a partition key are those of a
/// table that was dropped.
fn check_names(engine: &Engine, before: &Schema, after: &Schema, stored: &StoredSchema) -> Result<(), StorageError> {
    let now = engine.env.clock.now_seconds();
    let tables = after.keyspaces.values().flat_map(|keyspace| keyspace.tables.values());
    for new in tables.filter(|table| before.table(&table.keyspace, &table.name).is_none()) {
        let rows = stored.rows(Some(&BTreeSet::from([new.keyspace.clone()])), now);
        let is_of_name = |row: &&SchemaRow| row.clustering.first().is_some_and(|name| *name == new.name);
        let has_key = rows.iter().filter(is_of_name).any(|row| row.names_partition_key());
        let has_own = |row: &SchemaRow| matches!(row.table, SchemaTable::Tables | SchemaTable::Views);
        if has_key && rows.iter().filter(is_of_name).any(has_own) {
            let why = format!(
                "{}.{} is there, but cannot be read, and is left out: the log of the start says why. It can be dropped",
                new.keyspace, new.name
            );
            return Err(StorageError::Refused { why });
        }
    }
    Ok(())
}

/// The tables and views of the stored schema that are left out because it cannot be read: keyspace
/// and name of each. Rows without a partition key, or of a keyspace without a row of its own, are
/// what is left of those that were dropped, and do not count. Waits for the disk.
pub fn left_out(engine: &Engine) -> Result<Vec<(String, String)>, StorageError> {
    let _no_change = engine.schema_changes.lock().expect("a panic while the schema changes ends the process");
    let schema = engine.schema();
    let rows = stored(engine)?.rows(None, engine.env.clock.now_seconds());
    let name_of = |row: &SchemaRow| {
        let name = row.clustering.first()?;
        Some((row.keyspace.clone(), String::from_utf8_lossy(name).into_owned()))
    };
    let with_key: BTreeSet<_> = rows.iter().filter(|row| row.names_partition_key()).filter_map(name_of).collect();
    let of_keyspaces = rows.iter().filter(|row| row.table == SchemaTable::Keyspaces);
    let keyspaces: BTreeSet<&str> =
        of_keyspaces.map(|row| row.keyspace.as_str()).filter(|keyspace| !is_local_keyspace(keyspace)).collect();
    let is_own = |row: &&SchemaRow| matches!(row.table, SchemaTable::Tables | SchemaTable::Views);
    let mut names: Vec<_> = rows.iter().filter(is_own).filter_map(name_of).collect();
    let is_there = |keyspace: &str| keyspaces.contains(keyspace);
    names.retain(|name| is_there(&name.0) && with_key.contains(name) && schema.table(&name.0, &name.1).is_none());
    Ok(names)
}

/// Takes in rows of schema tables that another node has written, with their timestamps: the schemas
/// of both nodes are the same afterwards. `None`: all of them are here already.
///
/// An index that the other node has dropped and made again in another way under the same name takes
/// two steps: the first puts the schema of before in force without the index, and stores nothing of
/// the rows ([`Changed::continues`]). A start in between finds the old index and makes it again.
/// So does a table in whose directory another one is made again.
pub fn merge(engine: &Engine, received: Vec<Mutation>) -> Result<Option<Changed>, StorageError> {
    if engine.options.read_only {
        return Err(StorageError::ReadOnly);
    }
    let received = schema_tables::only_of_ring(received);
    let _one_at_a_time = engine.schema_changes.lock().expect("a panic while the schema changes ends the process");
    let before = engine.schema();
    let now = engine.env.clock.now_seconds();
    let mut stored = stored(engine)?;
    let old = stored.clone();
    let touched = stored.merge(&received);
    if stored == old {
        return Ok(None);
    }
    let loaded = before.with_rows(&touched, &stored.rows(Some(&touched), now));
    schema_tables::log_ignored_parts(&loaded.ignored, &loaded.unreadable);
    let redefined = index::built::without_redefined(&before, &loaded.schema);
    if let Some(without) = redefined.or_else(|| without_replaced(engine, &before, &loaded.schema)) {
        let changed = store_and_apply(engine, before, without, Vec::new())?;
        return Ok(Some(Changed { continues: true, ..changed }));
    }
    let after = Schema { version: stored.version(now), ..loaded.schema };
    store_and_apply(engine, before, after, received).map(Some)
}

/// All rows of the schema tables, deletions included, as one mutation for each keyspace: the
/// answer to a node that asks for the schema.
pub fn all_rows(engine: &Engine) -> Result<Vec<Mutation>, StorageError> {
    let _no_change = engine.schema_changes.lock().expect("a panic while the schema changes ends the process");
    Ok(stored(engine)?.mutations())
}

fn stored(engine: &Engine) -> Result<StoredSchema, StorageError> {
    let built_in = engine.schema();
    schema_tables::read(&built_in, &|table| engine.table(table.id), engine.env.clock.now_seconds())
}

/// Stores a change and puts it in force.
fn store_and_apply(
    engine: &Engine,
    before: Arc<Schema>,
    after: Schema,
    written: Vec<Mutation>,
) -> Result<Changed, StorageError> {
    // all that can fail comes before the rows are in the log: a change that was answered with an
    // error must not be in force after a restart
    let prepared = prepare(engine, &before, &after)?;
    // the log may still have rows of a dropped table of this id: they are not those of the new one
    for store in prepared.new.iter().filter(|store| engine.dropper.was_dropped(store.id)) {
        truncate::record_purged(engine, store, engine.log.position())?;
    }
    let dropped_left_out = dropped_left_out(engine, &before, &after);
    let forgotten = index::built::forget_dropped(engine, &before, &after)?;
    let position = write_rows(engine, &written)?.or(forgotten);
    let dropped = apply_to_tables(engine, &after, prepared);
    dropped_left_out.iter().for_each(|files| engine.dropper.begin_left_out(files));
    let schema = Arc::new(after);
    engine.schema.store(Arc::clone(&schema));
    engine.note_views(&schema);
    index::built::begin_new(engine, &before);
    if engine.tables().iter().any(|store| store.flush_period_nanos().is_some()) {
        // memtables may be too old by the new schema earlier than the flusher wakes up
        engine.flusher.wake();
    }
    Ok(Changed { before, schema, written, position, dropped, dropped_left_out, continues: false })
}

/// Tables that are opened before the change is stored, because opening them needs the disk and may
/// fail. Directories of new tables stay if the change then fails.
struct PreparedTables {
    /// Tables that are new.
    new: Vec<Arc<TableStore>>,
    /// Tables that are altered.
    altered: Vec<AlteredTable>,
}

/// A table that is altered, what it becomes, and its indexes then.
struct AlteredTable {
    store: Arc<TableStore>,
    table: Arc<TableMetadata>,
    indexes: Vec<Arc<IndexStore>>,
}

fn prepare(engine: &Engine, before: &Schema, after: &Schema) -> Result<PreparedTables, StorageError> {
    let tables = engine.tables.load();
    let mut prepared = PreparedTables { new: Vec::new(), altered: Vec::new() };
    let (env, options, caches, memory) = (&engine.env, &engine.options, &engine.caches, &engine.memory);
    let stored = after.keyspaces.values().filter(|keyspace| !keyspace.is_virtual);
    for table in stored.flat_map(|keyspace| keyspace.tables.values()) {
        match (before.table_by_id(table.id), tables.get(table.id)) {
            (Some(old), Some(_)) if Arc::ptr_eq(old, table) || old == table => {}
            (_, Some(store)) => {
                let open = &store.view().indexes;
                check_places(engine, table, &store.directories, open)?;
                let old = before.table_by_id(table.id);
                old.map_or(Ok(()), |old| clear_places(engine, old, table, &store.directories))?;
                let indexes = opening::open_indexes(env, options, caches, memory, &store.directories, table, open)?;
                opening::warn_of_unknown_classes(table);
                let (store, table) = (Arc::clone(store), Arc::clone(table));
                prepared.altered.push(AlteredTable { store, table, indexes });
            }
            (_, None) => {
                let places = layout::table_directories(env, options, table);
                check_place(engine, table, &places)?;
                check_places(engine, table, &places, &[])?;
                let store = opening::open_table(env, options, caches, memory, table)?;
                directories::make_directories(engine, &store)?;
                prepared.new.push(store);
            }
        }
    }
    Ok(prepared)
}

/// Refuses a table that is new, if the files of a dropped one are in its place: of one with its id,
/// or, where the directory has no id in its name, of one with its name. The new table would have
/// SSTables that are about to be removed.
fn check_place(engine: &Engine, table: &TableMetadata, directories: &[PathBuf]) -> Result<(), StorageError> {
    let is_taken = directories.first().is_some_and(|place| engine.dropper.has_table_in(place));
    if !is_taken && !engine.dropper.is_under_way(table.id) {
        return check_no_sstables(engine, table, directories);
    }
    let (table, id) = (format!("{}.{}", table.keyspace, table.name), table.id.to_hex());
    Err(StorageError::FilesOfDropped { what: format!("the table {table} with the id {id}") })
}

/// Refuses a table that is new, if its place has no id in its name and has SSTables that lay there
/// at the start: they may be of a table of that name, with another id, which was dropped before the
/// process ended and whose files were not removed any more. Its rows would be those of the new
/// table. SSTables that somebody has put there since are the new table's, as in Cassandra, and
/// those of a table that was left out at the start are its own when it can be read again.
fn check_no_sstables(engine: &Engine, table: &TableMetadata, directories: &[PathBuf]) -> Result<(), StorageError> {
    if layout::ignored_directories(&engine.options, table, directories).is_empty() {
        return Ok(());
    }
    for directory in directories.iter().filter(|directory| engine.dropper.was_left_behind(directory)) {
        if files::has_sstables(&engine.env, directory)? {
            let why = format!(
                "{} has SSTables since before the start, and would be the place of the new table {}.{}: they may be of a \
                 table of that name that was dropped. Take them to another place; if they are wanted, import them from there \
                 (nodetool import) when the table is made",
                directory.display(),
                table.keyspace,
                table.name
            );
            return Err(StorageError::Refused { why });
        }
    }
    Ok(())
}

/// The schema `before` without the tables, left out or not, in whose directories `after` has
/// others: tables of one name have one place where its directory has no id. None: there are no
/// such.
fn without_replaced(engine: &Engine, before: &Schema, after: &Schema) -> Option<Schema> {
    let mut without = None;
    for new in after.keyspaces.values().flat_map(|keyspace| keyspace.tables.values()) {
        let left_out = before.left_out_table(&new.keyspace, &new.name).filter(|old| old.id != new.id);
        if left_out.is_some() && lies_without_id(engine, new) {
            let schema = without.take().unwrap_or_else(|| before.clone());
            without = Some(schema.without_left_out(&new.keyspace, &new.name));
        }
        let Some(old) = before.table(&new.keyspace, &new.name).filter(|old| old.id != new.id) else { continue };
        let places = layout::table_directories(&engine.env, &engine.options, new);
        if engine.table(old.id).is_some_and(|store| store.directories == places) {
            let schema = without.take().unwrap_or_else(|| before.clone());
            let mut keyspace = schema.keyspaces[&old.keyspace].as_ref().clone();
            keyspace.tables.remove(&old.name);
            without = Some(schema.with_keyspace(keyspace));
        }
    }
    without
}

/// Refuses indexes of a table that are to be opened, if the files of a dropped one are in their
/// place: they would be removed with it, and compactions of the dropped index would remove files of
/// the same names.
fn check_places(
    engine: &Engine,
    table: &TableMetadata,
    directories: &[PathBuf],
    open: &[Arc<IndexStore>],
) -> Result<(), StorageError> {
    let is_new = |name: &&String| !open.iter().any(|index| index.name() == name.as_str());
    for name in table.indexes.keys().filter(is_new) {
        let places = opening::index_directories(directories, name);
        if places.first().is_some_and(|place| engine.dropper.has_index_in(place)) {
            let what = format!("the index {}.{name}", table.keyspace);
            return Err(StorageError::FilesOfDropped { what });
        }
    }
    Ok(())
}

/// Removes files in the place of a new index: the process may have ended before the files of a
/// dropped index of the name were gone, or after a part of them was. The new index is made of its
/// table, and an SSTable that is there in part could not be opened. A name that another node has
/// sent may have other signs than those of a word, and could be a path; nothing is removed for
/// such a name.
fn clear_places(
    engine: &Engine,
    old: &TableMetadata,
    table: &TableMetadata,
    directories: &[PathBuf],
) -> Result<(), StorageError> {
    let is_word = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') && !name.is_empty();
    for name in table.indexes.keys().filter(|name| is_word(name) && !old.indexes.contains_key(*name)) {
        let places = opening::index_directories(directories, name);
        places.iter().try_for_each(|place| truncate::remove_files_in(engine, place))?;
    }
    Ok(())
}

/// Whether the directories of a table have no id in their names.
fn lies_without_id(engine: &Engine, table: &TableMetadata) -> bool {
    let places = layout::table_directories(&engine.env, &engine.options, table);
    !layout::ignored_directories(&engine.options, table, &places).is_empty()
}

/// The files of the tables that are left out in `before` and are dropped by the change: `after` has
/// none of their ids.
fn dropped_left_out(engine: &Engine, before: &Schema, after: &Schema) -> Vec<LeftOutFiles> {
    let still: BTreeSet<TableId> = after.left_out.values().map(|table| table.id).collect();
    let is_gone = |id: TableId| !still.contains(&id) && after.table_by_id(id).is_none();
    let gone = before.left_out.iter().filter(|(_, table)| is_gone(table.id));
    let files = |((keyspace, name), table): (&(String, String), &LeftOutTable)| {
        let names = (keyspace.as_str(), name.as_str());
        LeftOutFiles {
            id: table.id,
            keyspace: keyspace.clone(),
            table: name.clone(),
            directories: places_of_left_out(engine, names, table.id),
            takes_snapshot: engine.options.auto_snapshot && table.allow_auto_snapshot != Some(false),
            again_at: None,
        }
    };
    gone.map(files).collect()
}

/// The directories from which the files of a table that is left out go with its DROP. Where
/// SSTables lie in one with its id, one without the id is not among them: a table lies in the
/// latter alone where there is one, so that somebody has made it since, to load other files from
/// it.
fn places_of_left_out(engine: &Engine, names: (&str, &str), id: TableId) -> Vec<PathBuf> {
    let mut places = layout::directories_of_left_out(&engine.env, &engine.options, names, id);
    let end = format!("-{}", id.to_hex());
    let has_id = |place: &PathBuf| place.to_string_lossy().ends_with(&end);
    // where the disk cannot say it, nothing is removed from a directory without the id
    if places.iter().any(|place| has_id(place) && files::has_sstables(&engine.env, place).unwrap_or(true)) {
        places.retain(has_id);
    }
    places
}

/// The writes that delete the rows of tables that are left out in `before` and not in `after`. Of a
/// keyspace that cannot be read either everything is deleted. The masks of a table stay, as they do
/// where it can be read.
fn deletions_of_left_out(before: &Schema, after: &Schema, stored: &StoredSchema, now: u32) -> Vec<SchemaWrite> {
    const OF_TABLES: [SchemaTable; 6] = [
        SchemaTable::Columns,
        SchemaTable::DroppedColumns,
        SchemaTable::Triggers,
        SchemaTable::Indexes,
        SchemaTable::Tables,
        SchemaTable::Views,
    ];
    let mut writes = Vec::new();
    let mut keyspaces = BTreeSet::new();
    for (keyspace, name) in before.left_out.keys().filter(|key| !after.left_out.contains_key(*key)) {
        if !after.keyspaces.contains_key(keyspace) {
            keyspaces.insert(keyspace);
            continue;
        }
        let rows = stored.rows(Some(&BTreeSet::from([keyspace.clone()])), now).into_iter();
        let is_of_table = |row: &SchemaRow| {
            OF_TABLES.contains(&row.table) && row.clustering.first().is_some_and(|first| *first == *name)
        };
        writes.extend(rows.filter(is_of_table).map(|row| SchemaWrite::DeleteRow {
            table: row.table,
            keyspace: row.keyspace,
            clustering: row.clustering,
        }));
    }
    // those of a keyspace that could be read are among the differences
    for keyspace in keyspaces.into_iter().filter(|name| !before.keyspaces.contains_key(*name)) {
        let all = SchemaTable::ALL.into_iter();
        writes.extend(all.map(|table| SchemaWrite::DeletePartition { table, keyspace: keyspace.clone() }));
    }
    writes
}

fn difference(before: &Schema, after: &Schema) -> Vec<system_schema::SchemaWrite> {
    let mut writes = Vec::new();
    for (name, old) in &before.keyspaces {
        if !after.keyspaces.contains_key(name) {
            writes.extend(system_schema::diff(Some(old), None));
        }
    }
    for (name, new) in after.keyspaces.iter().filter(|(_, keyspace)| !keyspace.is_virtual) {
        writes.extend(system_schema::diff(before.keyspace(name).map(Arc::as_ref), Some(new)));
    }
    writes
}

fn mutations(
    engine: &Engine,
    writes: &[system_schema::SchemaWrite],
    timestamp: i64,
) -> Result<Vec<Mutation>, StorageError> {
    schema_tables::mutations(&engine.schema(), writes, timestamp, engine.env.clock.now_seconds())
}

fn write_rows(engine: &Engine, mutations: &[Mutation]) -> Result<Option<LogPosition>, StorageError> {
    if mutations.is_empty() {
        return Ok(None);
    }
    // a node that only reads has the rows in memory: clients find the schema there
    let logged = (!engine.options.read_only).then_some(write::LogAtomicity::EachRecord);
    let store_of = |update: &rows::PartitionUpdate| {
        engine.table(update.table.id).ok_or_else(|| StorageError::UnknownTable { table: update.table.name.clone() })
    };
    let applied = write::apply(mutations, &[], &engine.log, logged, store_of, || true)?;
    engine.memory.take(applied.added);
    Ok(applied.position)
}

/// Puts a stored change in force; gives the tables and indexes that are dropped by it.
fn apply_to_tables(engine: &Engine, after: &Schema, prepared: PreparedTables) -> Vec<Arc<TableStore>> {
    let mut tables = engine.tables.load().in_order().clone();
    let mut dropped = Vec::new();
    for AlteredTable { store, table, indexes } in prepared.altered {
        let (view, old_size) = (store.view(), store.view().active_size());
        match store.switch_memtables(table, Some(indexes), || engine.log.position()) {
            Some(set) => engine.flusher.request_set(&store, set, None),
            None => engine.memory.release(old_size),
        }
        let gone = dropped_indexes(&view, &store.view());
        gone.iter().for_each(|index| engine.dropper.begin(index));
        dropped.extend(gone);
        index::attached::components::remove_dropped(engine, &store, &view);
    }
    tables.extend(prepared.new.into_iter().map(|store| (store.id, store)));
    tables.retain(|id, store| {
        let stays = after.table_by_id(*id).is_some();
        if !stays {
            engine.dropper.begin(store);
            dropped.push(Arc::clone(store));
        }
        stays
    });
    engine.tables.store(Arc::new(Tables::new(tables)));
    // who has looked one of them up before may not write to it any more; of an index the memtables
    // went with its base's
    let of_tables = dropped.iter().filter(|store| store.table().kind != TableKind::Index);
    of_tables.for_each(|store| store.close(|| engine.log.position()));
    dropped
}

/// Indexes that do not exist any more: nothing is written to them.
fn dropped_indexes(before: &View, after: &View) -> Vec<Arc<TableStore>> {
    let stays = |index: &IndexStore| after.indexes.iter().any(|other| Arc::ptr_eq(&other.store, &index.store));
    let gone: Vec<_> =
        before.indexes.iter().filter(|index| !stays(index)).map(|index| Arc::clone(&index.store)).collect();
    gone.iter().for_each(|store| store.dropped.store(true, Ordering::Release));
    gone
}

/// Writes the rows that the schema tables lack: those of the built-in keyspaces, as Cassandra has
/// them there, and those of keyspaces that were read from `schema.cql` files. The schema in force
/// gets the version of the stored rows.
pub(crate) fn store_missing(engine: &Engine) -> Result<(), StorageError> {
    let schema = engine.schema();
    let now = engine.env.clock.now_seconds();
    let mut stored = stored(engine)?;
    let present = stored.keyspaces(now);
    let mut writes = Vec::new();
    for (name, keyspace) in schema.keyspaces.iter().filter(|(_, keyspace)| !keyspace.is_virtual) {
        match schema::system::generation(name) {
            Some(generation) => {
                let missing = missing_rows(&stored, keyspace, generation, now);
                let missing = mutations(engine, &missing, generation)?;
                write_rows(engine, &missing)?;
                stored.merge(&missing);
            }
            None if present.contains(name) => {}
            None => writes.extend(system_schema::diff(None, Some(keyspace))),
        }
    }
    let written = mutations(engine, &writes, engine.next_timestamp(CHANGE_STEP))?;
    write_rows(engine, &written)?;
    stored.merge(&written);
    engine.schema.store(Arc::new(Schema { version: stored.version(now), ..Schema::clone(&schema) }));
    Ok(())
}

/// The writes that complete a built-in keyspace which all nodes of a ring share: missing rows, and
/// rows of an earlier generation that have changed. They are written with the timestamp of the
/// generation, so that whichever node writes them, all have the same.
fn missing_rows(
    stored: &StoredSchema,
    keyspace: &KeyspaceMetadata,
    generation: i64,
    now: u32,
) -> Vec<system_schema::SchemaWrite> {
    let built_in = schema::system::keyspaces().into_iter().find(|built_in| built_in.name == keyspace.name);
    let mut writes = built_in.map_or_else(Vec::new, |built_in| system_schema::diff(None, Some(&built_in)));
    writes.retain(|write| match write {
        system_schema::SchemaWrite::Put { row, .. } => match stored.row(row, now) {
            // the replication that was chosen for the keyspace stays
            Some(_) if row.table == system_schema::SchemaTable::Keyspaces => false,
            Some((timestamp, found)) => timestamp < generation && found.content() != row.content(),
            None => true,
        },
        _ => false,
    });
    writes
}
