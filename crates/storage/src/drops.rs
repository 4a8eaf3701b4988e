//! The removal of dropped tables from the disk: one background task, one table after the other. A
//! table whose files cannot be removed now is tried again; the others do not wait for it.
//!
//! The table is out of the schema and takes no more writes ([`TableStore::close`]) when it comes
//! here. Its steps:
//!
//! 1. Where a snapshot is taken (`auto_snapshot`, `allow_auto_snapshot`), its memtables are
//!    flushed, as Cassandra does, so that the snapshot has all rows. If the flush fails, the
//!    snapshot goes without them and a warning says so. To keep them instead would pin memory and
//!    commit log for as long as the disk refuses, and a DROP could not free the very device that is
//!    full.
//! 2. Memtables are given back, and the commit log forgets the table: its segments become free
//!    whatever the next steps do.
//! 3. The snapshot is taken. If the disk refuses it, the files stay and it is tried again: the
//!    operator has asked for the snapshot as the way back from a DROP that was a mistake. Hard
//!    links need next to no room, and the segments that step 2 has freed are room.
//! 4. The files are removed, once the compactions of the table that are under way have ended, and
//!    the streams, imports and refreshes that bring it SSTables: each of these removes files by
//!    their names when it ends or is given up, and what is made again in this place may have files
//!    of the same names by then. What snapshots hold stays on the disk, and with it its space,
//!    until `nodetool clearsnapshot`.
//!
//! Of a table that is left out of the schema, because its stored rows cannot be read, nothing is
//! open: its files are linked into the snapshot, and removed.
//!
//! An index has step 4 only: its memtables are given back with its base's. Retries end with the
//! process; files that are left then lie in a directory that no table of the schema has. The next
//! start names the directories of tables in the log and leaves them to the operator, who may have
//! asked for a snapshot.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use env::{Instant, Next};
use schema::TableId;
use schema::system::is_system_keyspace;

use crate::engine::{self, Engine};
use crate::error::StorageError;
use crate::requests::drops::{Dropped, Dropper, LeftOutFiles, Stage};
use crate::table::TableStore;
use crate::{files, flush, layout, snapshot, truncate};

/// Pause before a table that could not be removed is tried again.
const RETRY: Duration = Duration::from_secs(5);
/// Compactions, streams and imports of a dropped table that have ended are noticed after so long at
/// most, where nobody tells of them.
const LOOK: Duration = Duration::from_millis(100);
/// Longest time that a change which waits for the first try waits for compactions to end. Changes
/// of the schema wait for the files of dropped indexes; after this time an index is refused whose
/// place is still taken.
const HELD_UP_MAX: Duration = Duration::from_secs(5);

impl Dropper {
    /// Registers the task.
    pub fn start(engine: &Arc<Engine>) {
        let weak: Weak<Engine> = Arc::downgrade(engine);
        let step = move || match weak.upgrade() {
            None => Next::Done,
            Some(engine) => engine.dropper.step(&engine),
        };
        *engine.dropper.wake.lock().expect("no panic inside") =
            Some(engine.env.tasks.background("drop", Box::new(step)));
    }

    /// Does for each table what can be done now.
    fn step(&self, engine: &Arc<Engine>) -> Next {
        let now = engine.env.now();
        let waker = engine::waker(engine, |engine| engine.dropper.wake());
        let mut context = Context::from_waker(&waker);
        let again_at = self.remove_left_out(engine, now);
        let waiting = self.queue.lock().expect("no panic inside").len();
        for _ in 0..waiting {
            if engine.is_stopped() {
                return Next::Idle;
            }
            let Some(mut dropped) = self.queue.lock().expect("no panic inside").pop_front() else { break };
            if dropped.again_at.is_none_or(|at| at <= now) && dropped.advance(engine, &mut context) {
                continue;
            }
            self.queue.lock().expect("no panic inside").push_back(dropped);
        }
        let queue = self.queue.lock().expect("no panic inside");
        let earliest = queue.iter().filter_map(|dropped| dropped.next_look(now)).chain(again_at).min();
        earliest.map_or(Next::Idle, |at| Next::After(at.since(now)))
    }

    /// Removes the files of tables that were left out of the schema, where that can be tried now.
    /// Gives the time of the next try; None: nothing waits for one.
    fn remove_left_out(&self, engine: &Engine, now: Instant) -> Option<Instant> {
        let mut waiting = std::mem::take(&mut *self.left_out.lock().expect("no panic inside"));
        waiting.retain_mut(|files| {
            let is_due = files.again_at.is_none_or(|at| at <= now) && !engine.is_stopped();
            !(is_due && is_removed(engine, files))
        });
        let mut left_out = self.left_out.lock().expect("no panic inside");
        left_out.append(&mut waiting);
        left_out.iter().filter_map(|files| files.again_at).min()
    }
}

/// Notes where files of dropped tables lie whose removal an earlier process did not get to, and
/// says so in the log. Without that nobody would know why a DROP has freed no room.
pub(crate) fn note_left_behind(engine: &Engine) {
    match left_behind(engine) {
        Ok(directories) => {
            if let Some(first) = directories.first() {
                tracing::warn!(
                    count = directories.len(), first = %first.display(),
                    "directories have SSTables of tables that the schema does not have: the process may have ended before the \
                     files of a dropped table were removed, or its snapshot taken. They stay until they are removed by hand"
                );
            }
            *engine.dropper.left_behind.lock().expect("no panic inside") = directories;
        }
        Err(error) => tracing::warn!(%error, "files of dropped tables cannot be looked for"),
    }
}

/// The directories with SSTables of tables that the schema does not have, not even as tables that
/// are left out. Directories that have nothing but snapshots do not count, nor do those of the
/// system keyspaces, in which other programs have tables that this one does not know.
pub(crate) fn left_behind(engine: &Engine) -> Result<BTreeSet<PathBuf>, StorageError> {
    let (env, schema) = (&engine.env, engine.schema());
    let left_out: BTreeSet<TableId> = schema.left_out.values().map(|table| table.id).collect();
    let has_id = |id: TableId| engine.table(id).is_some() || left_out.contains(&id);
    let mut found = BTreeSet::new();
    for data in &engine.options.data_directories {
        let keyspaces = layout::directories_in(env, data)?.into_iter().filter(|name| layout::is_keyspace(name));
        for keyspace in keyspaces.filter(|name| !is_system_keyspace(name)) {
            let above = data.join(&keyspace);
            for name in layout::directories_in(env, &above)? {
                let is_known = match name.rsplit_once('-') {
                    // a name that ends in no id is nobody's
                    Some((_, id)) => TableId::from_hex(id).is_none_or(has_id),
                    None => {
                        schema.table(&keyspace, &name).is_some() || schema.left_out_table(&keyspace, &name).is_some()
                    }
                };
                let directory = above.join(&name);
                if !is_known && files::has_sstables(env, &directory)? {
                    found.insert(directory);
                }
            }
        }
    }
    Ok(found)
}

/// Tries to remove the files of a table that was left out. False: they are tried again.
fn is_removed(engine: &Engine, files: &mut LeftOutFiles) -> bool {
    let Err(error) = remove_files_of_left_out(engine, files) else {
        tracing::info!(files.keyspace, files.table, "a dropped table that was left out is removed from the disk");
        return true;
    };
    // said once, and not at every try
    if files.again_at.is_none() {
        tracing::error!(
            files.keyspace, files.table, %error,
            "a dropped table that was left out cannot be removed from the disk and will be tried again"
        );
    }
    files.again_at = Some(engine.env.now().plus(RETRY));
    false
}

fn remove_files_of_left_out(engine: &Engine, files: &mut LeftOutFiles) -> Result<(), StorageError> {
    // snapshots of dropped tables are cleared under this lock, and their directories go with them
    let _no_change = engine.schema_changes.lock().expect("a panic while the schema changes ends the process");
    if files.takes_snapshot {
        snapshot::take_of_left_out(engine, &files.directories, &files.table)?;
        files.takes_snapshot = false;
    }
    files.directories.iter().try_for_each(|directory| truncate::remove_files_in(engine, directory))?;
    engine.dropper.end_left_out(files);
    Ok(())
}

impl Dropped {
    /// When to look at the table again; None: something else wakes the task.
    fn next_look(&self, now: Instant) -> Option<Instant> {
        if self.waits_since.is_some() { Some(now.plus(LOOK)) } else { self.again_at }
    }

    /// Does as many steps as it can. True: the table's files are gone.
    fn advance(&mut self, engine: &Arc<Engine>, context: &mut Context<'_>) -> bool {
        let Poll::Ready(removed) = self.poll(engine, context) else {
            let waits_long = self.waits_since.is_some_and(|since| engine.env.now().since(since) >= HELD_UP_MAX);
            if let Some(done) = self.done.take_if(|_| waits_long) {
                let why = format!("compactions or streams of {} have not ended yet", self.store.name());
                done(Err(StorageError::Refused { why }));
            }
            return false;
        };
        let has_failed_before = self.again_at.is_some();
        if let Err(error) = &removed {
            // said once, and not at every try
            if !has_failed_before {
                tracing::error!(
                    table = self.store.name(), %error,
                    "a dropped table cannot be removed from the disk and will be tried again"
                );
            }
            self.again_at = Some(engine.env.now().plus(RETRY));
        } else if has_failed_before {
            tracing::info!(table = self.store.name(), "the dropped table is removed from the disk");
        }
        let is_gone = removed.is_ok();
        if let Some(done) = self.done.take() {
            done(removed);
        }
        is_gone
    }

    fn poll(&mut self, engine: &Arc<Engine>, context: &mut Context<'_>) -> Poll<Result<(), StorageError>> {
        let store = Arc::clone(&self.store);
        let takes_snapshot = snapshot::is_automatic(engine, &store);
        loop {
            self.stage = match &mut self.stage {
                Stage::Flush(_) if !takes_snapshot => Stage::Release,
                Stage::Flush(flush) => {
                    let flush = flush.get_or_insert_with(|| Box::pin(engine.flush(&store)));
                    match flush.as_mut().poll(context) {
                        Poll::Pending => return Poll::Pending,
                        Poll::Ready(Ok(())) => {}
                        Poll::Ready(Err(error)) => tracing::warn!(
                            table = store.name(), %error,
                            bytes = store.view().memtable_size(),
                            "rows of a dropped table that are in memory only cannot be written: its snapshot is without them"
                        ),
                    }
                    Stage::Release
                }
                Stage::Release => {
                    release(engine, &store);
                    Stage::Snapshot
                }
                Stage::Snapshot => {
                    if takes_snapshot {
                        snapshot::take_automatic(engine, &store, "dropped")?;
                    }
                    Stage::Files
                }
                Stage::Files if is_written(&store) => {
                    if self.waits_since.is_none() {
                        self.waits_since = Some(engine.env.now());
                        engine.compactor.end_dropped();
                    }
                    return Poll::Pending;
                }
                Stage::Files => {
                    self.waits_since = None;
                    return Poll::Ready(remove_files(engine, &store));
                }
            }
        }
    }
}

/// Gives memtables back, and has the log forget the table.
fn release(engine: &Engine, store: &TableStore) {
    let in_order = flush::lock_flushes(store);
    store.dropped.store(true, Ordering::Release);
    store.view().indexes.iter().for_each(|index| index.store.dropped.store(true, Ordering::Release));
    flush::discard(engine, store, None, &in_order);
    engine.log.mark_discarded(store.id, engine.log.position());
}

/// Whether compactions have SSTables of a dropped table or of its indexes, or SSTables come from
/// outside. None of that begins any more.
fn is_written(store: &TableStore) -> bool {
    let view = store.view();
    let mut stores = view.indexes.iter().map(|index| &*index.store).chain([store]);
    stores.any(|store| {
        let changes = store.changes();
        changes.incoming > 0 || !changes.compacting.is_empty()
    })
}

/// Removes the files of a dropped table or index, except files that belong to one that was made
/// again since under the same name or id.
fn remove_files(engine: &Engine, store: &Arc<TableStore>) -> Result<(), StorageError> {
    let _no_change = engine.schema_changes.lock().expect("a panic while the schema changes ends the process");
    let tables = engine.stores();
    if tables.iter().any(|other| other.directories == store.directories) {
        tracing::warn!(table = store.name(), "the files of what was dropped stay: it was made again");
        engine.dropper.end(store);
        return Ok(());
    }
    // an index is flushed with its table: what is under way ends, what begins later finds that the
    // index is dropped
    let base = tables.iter().find(|base| is_inside(store, base));
    let _none_is_written = flush::lock_flushes(base.unwrap_or(store));
    // a truncation or the end of a snapshot that takes files away by their names ends; one that
    // comes later finds that the table is dropped
    let view = store.view();
    let stores = view.indexes.iter().map(|index| &index.store).chain([store]);
    let _none_is_removed: Vec<_> = stores
        .map(|store| store.replacing.lock().expect("a panic while SSTables are replaced ends the process"))
        .collect();
    truncate::remove_files(engine, store)?;
    engine.dropper.end(store);
    Ok(())
}

/// Whether an index lies in a directory of its table.
fn is_inside(index: &TableStore, base: &TableStore) -> bool {
    index.directories.first().and_then(|directory| directory.parent()) == base.directories.first().map(PathBuf::as_path)
}
