//! Changing the schema: rows into the schema tables, tables made, altered and dropped, the new snapshot published.
//!
//! One change at a time. The new schema is in force when [`change`] returns; it may be told to a client once its position in
//! the commit log is durable, and only then may the files of dropped tables go ([`crate::drops`]).

use std::sync::Arc;
use std::sync::atomic::Ordering;

use schema::rows_form;
use schema::{KeyspaceMetadata, Schema, TableKind, TableMetadata};

use crate::commitlog::LogPosition;
use crate::engine::Engine;
use crate::error::StorageError;
use crate::table::TableStore;
use crate::table::indexes::IndexStore;
use crate::table::view::View;
use crate::{directories, index, opening, schema_tables, write};

/// Microseconds between two changes at least: a row that replaces another deletes it one microsecond before.
const CHANGE_STEP: i64 = 2;

/// What a change did.
pub struct Changed {
    /// The schema in force.
    pub schema: Arc<Schema>,
    /// Where the log must be durable up to.
    pub position: Option<LogPosition>,
    /// Tables whose files may go once it is.
    pub dropped: Vec<Arc<TableStore>>,
}

/// Changes the schema by a function of what it is. Ok(Err): the function refuses or has nothing to change.
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
    // all that can fail comes before the rows are in the log: a change that was answered with an error must not be in force after a restart
    let prepared = prepare(engine, &before, &after)?;
    index::built::forget_dropped(engine, &before, &after)?;
    let position = store_difference(engine, &before, &after)?;
    let dropped = apply_to_tables(engine, &after, prepared);
    let mut after = after;
    after.version = after.digest();
    engine.schema.store(Arc::new(after));
    index::built::begin_new(engine, &before);
    Ok(Ok(Changed { schema: engine.schema(), position, dropped }))
}

/// What a change needs of the disk, opened before the change is stored. Directories of new tables stay where the change then fails.
struct Prepared {
    /// Tables that are new.
    new: Vec<Arc<TableStore>>,
    /// Tables that are altered.
    altered: Vec<Altered>,
}

/// A table that is altered, what it becomes, and its indexes then.
struct Altered {
    store: Arc<TableStore>,
    table: Arc<TableMetadata>,
    indexes: Vec<Arc<IndexStore>>,
}

fn prepare(engine: &Engine, before: &Schema, after: &Schema) -> Result<Prepared, StorageError> {
    let tables = engine.tables.load();
    let mut prepared = Prepared { new: Vec::new(), altered: Vec::new() };
    let (env, options, caches) = (&engine.env, &engine.options, &engine.caches);
    let stored = after.keyspaces.values().filter(|keyspace| !keyspace.is_virtual);
    for table in stored.flat_map(|keyspace| keyspace.tables.values()) {
        match (before.table_by_id(table.id), tables.get(&table.id)) {
            (Some(old), Some(_)) if Arc::ptr_eq(old, table) || old == table => {}
            (_, Some(store)) => {
                let open = &store.view().indexes;
                let indexes = opening::open_indexes(env, options, caches, &store.directories, table, open)?;
                let (store, table) = (Arc::clone(store), Arc::clone(table));
                prepared.altered.push(Altered { store, table, indexes });
            }
            (_, None) => {
                let store = opening::open_table(env, options, caches, table)?;
                directories::make_directories(engine, &store)?;
                prepared.new.push(store);
            }
        }
    }
    Ok(prepared)
}

fn store_difference(engine: &Engine, before: &Schema, after: &Schema) -> Result<Option<LogPosition>, StorageError> {
    let mut writes = Vec::new();
    for (name, old) in &before.keyspaces {
        if !after.keyspaces.contains_key(name) {
            writes.extend(rows_form::diff(Some(old), None));
        }
    }
    for (name, new) in after.keyspaces.iter().filter(|(_, keyspace)| !keyspace.is_virtual) {
        writes.extend(rows_form::diff(before.keyspace(name).map(Arc::as_ref), Some(new)));
    }
    write_rows(engine, &writes)
}

fn write_rows(engine: &Engine, writes: &[rows_form::SchemaWrite]) -> Result<Option<LogPosition>, StorageError> {
    if writes.is_empty() {
        return Ok(None);
    }
    // two changes at one reading of the clock, or over a clock that was set back: the later one wins
    let now = engine.next_timestamp(CHANGE_STEP);
    let mutations = schema_tables::mutations(&schema::system::schema(), writes, now, engine.env.clock.now_seconds())?;
    // a node that only reads has the rows in memory: clients find the schema there
    let logged = !engine.options.read_only;
    let applied = write::apply(&mutations, &engine.log, logged, |update| {
        engine.table(update.table.id).ok_or_else(|| StorageError::UnknownTable { table: update.table.name.clone() })
    })?;
    engine.memory.take(applied.added);
    Ok(applied.position)
}

/// Puts a change in force that is stored; gives what is dropped by it.
fn apply_to_tables(engine: &Engine, after: &Schema, prepared: Prepared) -> Vec<Arc<TableStore>> {
    let mut tables = engine.tables.load().as_ref().clone();
    let mut dropped = Vec::new();
    for Altered { store, table, indexes } in prepared.altered {
        let (view, old_size) = (store.view(), store.view().active_size());
        match store.switch_memtables(table, Some(indexes), || engine.log.position()) {
            Some(set) => engine.flusher.request_set(&store, set, None),
            None => engine.memory.release(old_size),
        }
        dropped.extend(dropped_indexes(&view, &store.view()));
    }
    tables.extend(prepared.new.into_iter().map(|store| (store.id, store)));
    tables.retain(|id, store| {
        let stays = after.table_by_id(*id).is_some();
        if !stays {
            dropped.push(Arc::clone(store));
        }
        stays
    });
    engine.tables.store(Arc::new(tables));
    // who has looked one of them up before may not write to it any more; of an index the memtables went with its base's
    let of_tables = dropped.iter().filter(|store| store.table().kind != TableKind::Index);
    of_tables.for_each(|store| store.close(|| engine.log.position()));
    dropped
}

/// Indexes that are no more: nothing is written for them.
fn dropped_indexes(before: &View, after: &View) -> Vec<Arc<TableStore>> {
    let stays = |index: &IndexStore| after.indexes.iter().any(|other| Arc::ptr_eq(&other.store, &index.store));
    let gone: Vec<_> =
        before.indexes.iter().filter(|index| !stays(index)).map(|index| Arc::clone(&index.store)).collect();
    gone.iter().for_each(|store| store.dropped.store(true, Ordering::Release));
    gone
}

/// Writes the rows of the keyspaces that are not in the schema tables yet: the built-in ones, as Cassandra has them there, and those
/// that were read from `schema.cql` files.
pub(crate) fn store_missing(engine: &Engine) -> Result<(), StorageError> {
    let built_in = schema::system::schema();
    let schema = engine.schema();
    let stored = schema
        .keyspaces
        .values()
        .filter(|keyspace| !keyspace.is_virtual)
        .map(Arc::as_ref)
        .collect::<Vec<&KeyspaceMetadata>>();
    let now = engine.env.clock.now_seconds();
    let present = schema_tables::stored_keyspaces(&built_in, &|table| engine.table(table.id), now)?;
    let mut writes = Vec::new();
    for keyspace in stored {
        if !present.contains(&keyspace.name) {
            writes.extend(rows_form::diff(None, Some(keyspace)));
        }
    }
    write_rows(engine, &writes).map(|_| ())
}
