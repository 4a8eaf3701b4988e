//! Which indexes are complete: `system."IndexInfo"`, a row for each, by keyspace and name.
//!
//! At a start an index that has a row is trusted; one without is made again, unless its table is
//! empty, and rows of indexes that the schema does not have are taken away. A change of the schema
//! brings new indexes in and takes rows of dropped ones away. While SSTables are imported or come
//! from another node, no index of their table gets a row (`crate::requests::index_builds`). Agrees
//! with `SystemKeyspace.{isIndexBuilt,setIndexBuilt,setIndexRemoved}`.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use env::sync::MutexGuard;
use rows::live::{LiveRows, TombstoneLimits};
use rows::{DeletionTime, Liveness, Mutation, PartitionUpdate, Row};
use schema::{IndexMetadata, Schema, TableMetadata};
use sstable::SSTable;
use types::DecoratedKey;

use crate::commitlog::LogPosition;
use crate::engine::Engine;
use crate::error::StorageError;
use crate::materialized;
use crate::table::TableStore;
use crate::table::indexes::IndexStore;

const TABLE: &str = "IndexInfo";

/// The table of the rows.
pub(crate) fn table(engine: &Engine) -> Option<Arc<TableStore>> {
    engine.table_by_name("system", TABLE)
}

/// Keyspaces and names of the indexes that have a row.
pub fn stored(engine: &Engine) -> Result<BTreeSet<(String, String)>, StorageError> {
    let mut found = BTreeSet::new();
    let Some(store) = table(engine) else { return Ok(found) };
    let now = engine.env.clock.now_seconds();
    let mut stream = crate::read::read_all(&store, now)?;
    let mut live = LiveRows::new(stream.as_mut(), store.table(), now, TombstoneLimits::NONE);
    while let Some(partition) = live.next_partition()? {
        let keyspace = String::from_utf8_lossy(&partition.key.key).into_owned();
        while let Some(row) = live.next_row()? {
            let name = row.clustering.first().cloned().flatten().unwrap_or_default();
            found.insert((keyspace.clone(), String::from_utf8_lossy(&name).into_owned()));
        }
    }
    Ok(found)
}

/// Writes or removes the row of an index.
pub fn store(engine: &Engine, keyspace: &str, index: &str, built: bool) -> Result<(), StorageError> {
    write(engine, keyspace, index, built).map(drop)
}

/// Writes the row; gives its position in the commit log.
fn write(engine: &Engine, keyspace: &str, index: &str, built: bool) -> Result<Option<LogPosition>, StorageError> {
    let Some(table) = engine.schema().table("system", TABLE).cloned() else { return Ok(None) };
    let micros = engine.next_timestamp(1);
    let name = Bytes::copy_from_slice(index.as_bytes());
    let mut row = Row::new(std::iter::once(Some(name)).collect());
    match built {
        true => row.liveness = Liveness::new(micros),
        false => row.deletion = DeletionTime::new(micros, engine.env.clock.now_seconds()),
    }
    let key = DecoratedKey::new(Bytes::copy_from_slice(keyspace.as_bytes()));
    let mut update = PartitionUpdate::new(table, key);
    update.add_row(row);
    engine.apply(&[Mutation::of(update)]).map(|applied| applied.position)
}

/// Keeps the schema from changing. A build that ends looks under this lock whether its index was
/// dropped, and notes the index as complete. If that were noted after the drop, a later index of
/// the same name would count as complete after a crash in the middle of its own build.
pub(super) fn lock_schema_changes(engine: &Engine) -> MutexGuard<'_, ()> {
    engine.schema_changes.lock().expect("a panic while the schema changes ends the process")
}

/// Notes that indexes of a table lack the rows of SSTables that are about to come. Until they are
/// made again ([`super::build::request_rebuild`]) they are not complete, also after a crash, once
/// the note is durable. Queries go on.
pub(crate) fn mark_incomplete(
    engine: &Engine,
    base: &TableStore,
    indexes: &[Arc<IndexStore>],
) -> Result<(), StorageError> {
    let keyspace = &base.table().keyspace;
    indexes.iter().try_for_each(|index| store(engine, keyspace, index.name(), false))
}

/// Notes that an index is complete, unless another build of it waits or SSTables come whose rows
/// it may lack: another build follows then, and after a crash before its end the index must not
/// count as complete.
pub(super) fn note_complete(engine: &Engine, base: &Arc<TableStore>, index: &str) -> Result<(), StorageError> {
    // no build is asked for, and no table is held, between the look and the note
    let queue = engine.index_builder.queue.lock().expect("no panic inside");
    if queue.iter().any(|it| it.is_of(base, index)) || engine.index_builder.holds_back(base, index) {
        return Ok(());
    }
    store(engine, &base.table().keyspace, index, true)
}

/// Decides at a start which indexes can be used, and which have to be made.
pub(crate) fn note(engine: &Engine) -> Result<(), StorageError> {
    let stored = stored(engine)?;
    forget_unknown(engine, &stored)?;
    let indexed: Vec<_> = engine.tables().into_iter().filter(|store| !store.view().indexes.is_empty()).collect();
    for store in indexed {
        for index in store.view().indexes.iter() {
            let has_row = stored.contains(&(store.table().keyspace.clone(), index.name().to_owned()));
            let is_attached = index.definition.is_attached();
            let lacks = |sstable: &Arc<SSTable>| !sstable.attached().has(index.name());
            if has_row && !(is_attached && store.view().sstables.iter().any(lacks)) {
                index.state.set_built(true);
            } else {
                begin(engine, &store, index)?;
            }
        }
    }
    Ok(())
}

/// Takes rows away whose indexes the schema does not have. Rows are flushed before the log has
/// what came before them ([`crate::import`]), so that a power cut may have taken the making of the
/// index alone. A later index of the same name would count as complete with nothing in it.
fn forget_unknown(engine: &Engine, stored: &BTreeSet<(String, String)>) -> Result<(), StorageError> {
    if engine.options.read_only {
        return Ok(());
    }
    let schema = engine.schema();
    let tables = schema.keyspaces.values().flat_map(|keyspace| keyspace.tables.values());
    let known: BTreeSet<(&str, &str)> = tables
        .flat_map(|table| table.indexes.keys().map(move |name| (table.keyspace.as_str(), name.as_str())))
        .collect();
    let mut unknown = stored.iter().filter(|(keyspace, name)| !known.contains(&(keyspace.as_str(), name.as_str())));
    unknown.try_for_each(|(keyspace, name)| store(engine, keyspace, name, false))
}

/// Called before a change of the schema is stored: notes that the indexes and views that it drops
/// are not complete any more. If that were noted after the change, a crash in between would leave
/// the next index of the same name complete, with nothing in it. Gives the commit-log position of
/// the last note about an index; None: no index is dropped.
pub(crate) fn forget_dropped(
    engine: &Engine,
    before: &Schema,
    after: &Schema,
) -> Result<Option<LogPosition>, StorageError> {
    let mut last = None;
    // of the indexes of such a table there are no notes: a start takes them away
    let left_out_views = before.left_out.iter().filter(|(_, table)| table.is_view);
    for ((keyspace, name), view) in left_out_views.filter(|(place, _)| !after.left_out.contains_key(*place)) {
        if after.table_by_id(view.id).is_none() {
            materialized::built::forget(engine, keyspace, name)?;
        }
    }
    for old in before.keyspaces.values().flat_map(|keyspace| keyspace.tables.values()) {
        let new = after.table_by_id(old.id);
        if old.view.is_some() && new.is_none() {
            materialized::built::forget(engine, &old.keyspace, &old.name)?;
        }
        for index in old.indexes.values().filter(|index| !new.is_some_and(|new| has(new, index))) {
            last = last.max(write(engine, &old.keyspace, &index.name, false)?);
        }
    }
    Ok(last)
}

/// Whether a table has the very index: one of the same name with another definition has other
/// entries, and is another index.
fn has(table: &TableMetadata, index: &IndexMetadata) -> bool {
    table.indexes.get(&index.name) == Some(index)
}

/// The schema `before` without the indexes that are of another definition in `after` under the same
/// name; None: there are no such. The files of both have the same place, so the old one has to be
/// gone before the new one is opened.
pub(crate) fn without_redefined(before: &Schema, after: &Schema) -> Option<Schema> {
    let mut without = None;
    for old in before.keyspaces.values().flat_map(|keyspace| keyspace.tables.values()) {
        let Some(new) = after.table_by_id(old.id) else { continue };
        let is_redefined = |index: &&IndexMetadata| new.indexes.contains_key(&index.name) && !has(new, index);
        let redefined: Vec<_> = old.indexes.values().filter(is_redefined).collect();
        if redefined.is_empty() {
            continue;
        }
        let mut table = TableMetadata::clone(old);
        redefined.iter().for_each(|index| drop(table.indexes.remove(&index.name)));
        let schema = without.take().unwrap_or_else(|| before.clone());
        let mut keyspace = schema.keyspaces[&old.keyspace].as_ref().clone();
        keyspace.tables.insert(table.name.clone(), Arc::new(table));
        without = Some(schema.with_keyspace(keyspace));
    }
    without
}

/// Called after a change of the schema: begins to make new indexes. If the note of one cannot be
/// written, it is made again at the next start.
pub(crate) fn begin_new(engine: &Engine, before: &Schema) {
    let schema = engine.schema();
    for table in schema.keyspaces.values().flat_map(|keyspace| keyspace.tables.values()) {
        let old = before.table_by_id(table.id);
        let Some(store) = engine.table(table.id).filter(|_| !table.indexes.is_empty()) else { continue };
        for index in store.view().indexes.iter() {
            let is_new = old.is_none_or(|old| old.indexes.get(index.name()) != table.indexes.get(index.name()));
            if is_new && let Err(error) = begin(engine, &store, index) {
                tracing::warn!(index = index.name(), %error, "a new index is complete, and cannot be noted to be");
            }
        }
    }
}

/// Begins an index without a row: it is complete if its table is empty, otherwise it is made in
/// the background.
fn begin(engine: &Engine, base: &Arc<TableStore>, index: &Arc<IndexStore>) -> Result<(), StorageError> {
    let view = base.view();
    if view.sstables.is_empty() && view.memtable_size() == 0 {
        index.state.set_built(true);
        if !engine.options.read_only {
            note_complete(engine, base, index.name())?;
        }
        return Ok(());
    }
    if !engine.options.read_only {
        engine.index_builder.request(base, index.name());
    }
    Ok(())
}
