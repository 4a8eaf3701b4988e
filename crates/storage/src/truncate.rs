//! Truncating: a table loses everything that it holds at a moment, the cut; rows that are written
//! later stay. [`truncate`] has the steps and what a crash between them leaves,
//! `table::truncations` the state of a table meanwhile. It also removes the files of a dropped
//! table from the disk.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use env::DirEntry;
use rows::Mutation;
use sstable::{Component, Descriptor};

use crate::commitlog::LogPosition;
use crate::engine::Engine;
use crate::error::StorageError;
use crate::table::TableStore;
use crate::table::indexes::IndexStore;
use crate::table::memtable::Memtable;
use crate::table::view::FlushSet;
use crate::truncation_records::Truncation;
use crate::{layout, snapshot, truncation_records};

/// Records that tables are being truncated: what the log has of each up to its cut is not replayed.
/// The caller waits until the returned position is durable before anything of the tables goes.
///
/// A truncation that was begun later may have been recorded already, since snapshots take their
/// time. Its position stays then: otherwise a start would replay what it has removed.
fn record(
    engine: &Engine,
    cuts: &[(Arc<OngoingTruncation>, Arc<TableStore>)],
) -> Result<Option<LogPosition>, StorageError> {
    let at_millis = engine.env.clock.now_micros() / 1000;
    let schema = engine.schema();
    let Some(local) = schema.table("system", "local") else { return Ok(None) };
    let mut recorded: Vec<_> =
        cuts.iter().map(|(_, store)| store.truncation.lock().expect("no panic inside")).collect();
    let mut truncations = Vec::with_capacity(cuts.len());
    for ((cut, _), former) in cuts.iter().zip(&recorded) {
        let former: Option<Truncation> = **former;
        let position = former.map_or(cut.position, |former| former.position.max(cut.position));
        truncations.push(Truncation { position, at_millis });
    }
    let now = engine.next_timestamp(1);
    let of_cut = |((_, store), truncation): (&(Arc<OngoingTruncation>, Arc<TableStore>), &Truncation)| {
        truncation_records::mutation(local, store.id, *truncation, now)
    };
    let mutations: Option<Vec<Mutation>> = cuts.iter().zip(&truncations).map(of_cut).collect();
    let Some(mut updates) = mutations.map(|all| all.into_iter().flat_map(|mutation| mutation.updates)) else {
        return Ok(None);
    };
    let Some(mut update) = updates.next() else { return Ok(None) };
    update.merge(updates);
    let applied = engine.apply(&[Mutation::of(update)])?;
    for (recorded, truncation) in recorded.iter_mut().zip(truncations) {
        **recorded = Some(truncation);
    }
    Ok(applied.position)
}

/// Whether memtables have records of the log up to `position`. Flushes are in the order of the
/// log, so they do not, unless another program wrote SSTables into the directory.
pub(crate) fn is_in_memtables(store: &TableStore, position: LogPosition) -> bool {
    let is_before = |memtable: &Arc<Memtable>| memtable.log_range().is_some_and(|range| range.first <= position);
    let view = store.view();
    view.flushing.iter().flat_map(|set| &set.memtables).chain(&view.active).any(is_before)
}

/// Records that the log has nothing for a table up to `position`, although it was not truncated:
/// all of these records were in SSTables, and a compaction left nothing of them. If memtables had
/// some of them the caller has flushed them. The caller waits until the returned position is
/// durable before the SSTables are removed.
pub(crate) fn record_purged(
    engine: &Engine,
    store: &TableStore,
    position: LogPosition,
) -> Result<Option<LogPosition>, StorageError> {
    advance(engine, store, |former| Truncation {
        position: former.map_or(position, |former| former.position.max(position)),
        at_millis: former.map_or(truncation_records::NEVER, |former| former.at_millis),
    })
}

/// Writes a record that follows from the last one of each table; gives its position in the log.
fn advance(
    engine: &Engine,
    store: &TableStore,
    next: impl FnOnce(Option<Truncation>) -> Truncation,
) -> Result<Option<LogPosition>, StorageError> {
    let schema = engine.schema();
    let Some(local) = schema.table("system", "local") else { return Ok(None) };
    let mut recorded = store.truncation.lock().expect("no panic inside");
    let truncation = next(*recorded);
    let now = engine.next_timestamp(1);
    let Some(mutation) = truncation_records::mutation(local, store.id, truncation, now) else { return Ok(None) };
    let applied = engine.apply(&[mutation])?;
    *recorded = Some(truncation);
    Ok(applied.position)
}

/// Drops all data that a table has when this begins; durable when it completes. A snapshot is
/// taken before, if `auto_snapshot` says so.
///
/// 1. The cut ([`OngoingTruncation`]): memtables are frozen. Rows that are written later stay.
/// 2. The frozen memtables are flushed, so the snapshot has their rows. A full device may refuse
///    the flush; then the truncation goes on without it, since truncating is how an operator makes
///    room, and the snapshot lacks these rows (a warning says so).
/// 3. The snapshot is taken. If the snapshot is refused, so is the truncation, and nothing is
///    changed: the snapshot is the way back.
/// 4. The commit log records that it has nothing for the table up to the cut.
/// 5. The SSTables from before the cut are removed, and memtables that could not be flushed.
///
/// SSTables of other nodes whose rows are from before the cut (`crate::received`) may come at any
/// time: those that come before step 5 go with it, later ones are not added.
///
/// A truncation that fails or is cut off between two steps leaves all rows of the table, and a
/// start finds them: after step 4 the SSTables have every row from before the cut. Where the flush
/// was refused they do not: the log alone has the last rows and the last deletions, and step 4
/// would give up the deletions while the rows that they delete are still there. So the SSTables go
/// before step 4 then ([`OngoingTruncation::remove_flushed`]), and a truncation that is cut off
/// leaves all rows or those that were never flushed.
pub async fn truncate(engine: &Arc<Engine>, store: &Arc<TableStore>) -> Result<(), StorageError> {
    truncate_together(engine, &[Arc::clone(store)], ()).await
}

/// Does the work of [`truncate`] for a table and its views: each step is taken for all of them
/// side by side. Nothing is written to them while the cuts are made, because `held` keeps writers
/// off, and step 4 writes one record for all of them.
pub async fn truncate_together(
    engine: &Arc<Engine>,
    stores: &[Arc<TableStore>],
    held: impl Send + 'static,
) -> Result<(), StorageError> {
    let Some(first) = stores.first() else { return Ok(()) };
    if engine.options.read_only {
        return Err(StorageError::ReadOnly);
    }
    let all = stores.to_vec();
    let make = move |engine: &Arc<Engine>, _: &Arc<TableStore>| {
        let cuts: Vec<_> =
            all.into_iter().map(|store| (Arc::new(OngoingTruncation::make(engine, &store)), store)).collect();
        drop(held);
        Ok(cuts)
    };
    let cuts = in_background(engine, first, make).await?;
    let mut unflushed = Vec::new();
    for (cut, store) in &cuts {
        if !cut.flush(engine, store).await? {
            unflushed.push((cut, store));
        }
    }
    for (_, store) in cuts.iter().filter(|(_, store)| snapshot::is_automatic(engine, store)) {
        in_background(engine, store, |engine, store| snapshot::take_automatic(engine, store, "truncated")).await?;
    }
    for (cut, store) in unflushed {
        OngoingTruncation::remove_flushed(cut, engine, store).await?;
    }
    if let Some(recorded) = record(engine, &cuts)? {
        engine.log.wait_synced(recorded).await?;
    }
    for (cut, store) in cuts {
        in_background(engine, &store, move |engine, store| cut.remove(engine, store)).await?;
    }
    Ok(())
}

/// The moment that divides the rows that a truncation removes from those that stay. While it is
/// there no compaction of the table begins.
struct OngoingTruncation {
    engine: Arc<Engine>,
    number: u64,
    /// The tables of the indexes and then the table itself.
    stores: Vec<Arc<TableStore>>,
    /// The memtables that are to be flushed; None: all rows are in SSTables.
    frozen: Option<Arc<FlushSet>>,
    /// Position up to which all records of the table are from before the cut.
    position: LogPosition,
}

impl OngoingTruncation {
    /// Makes the cut, after a flush of the table that is under way has ended.
    fn make(engine: &Arc<Engine>, store: &Arc<TableStore>) -> Self {
        let _in_order = crate::flush::lock_flushes(store);
        // before the memtables are frozen: rows that were read before the number is taken are
        // never taken for rows from behind the cut
        let number = engine.next_truncation_number();
        let before = engine.log.position();
        let frozen = crate::flush::freeze(engine, store);
        let position = frozen.as_ref().map_or(before, |set| set.up_to.max(before));
        let begin = |store: &Arc<TableStore>, last: Option<&Arc<FlushSet>>| {
            store.changes().truncations.begin(number, last.map(Arc::clone));
            Arc::clone(store)
        };
        let view = store.view();
        let of_index = |index: &Arc<IndexStore>| {
            let sets = frozen.iter().flat_map(|set| &set.indexes);
            let own = sets.filter(|(other, _)| Arc::ptr_eq(&other.store, &index.store)).map(|(_, set)| set).next();
            begin(&index.store, own)
        };
        let mut stores: Vec<_> = view.indexes.iter().map(of_index).collect();
        stores.push(begin(store, frozen.as_ref()));
        Self { engine: Arc::clone(engine), number, stores, frozen, position }
    }

    /// Flushes the frozen memtables; gives whether the SSTables have all rows from before the cut.
    /// False: the device is full.
    async fn flush(&self, engine: &Arc<Engine>, store: &Arc<TableStore>) -> Result<bool, StorageError> {
        let Some(set) = &self.frozen else { return Ok(true) };
        match engine.flush_frozen(store, set).await {
            Err(error @ StorageError::NoSpace { .. }) => {
                tracing::warn!(
                    table = store.name(), %error,
                    "a table is truncated whose rows in memory cannot be written: a snapshot is without them"
                );
                Ok(false)
            }
            flushed => flushed.map(|()| true),
        }
    }

    /// Removes the SSTables of a table whose last memtables cannot be flushed. Before that, the
    /// log records that it has nothing for the rows in SSTables. Otherwise a start could replay a
    /// row whose deletion was only in an SSTable.
    async fn remove_flushed(
        cut: &Arc<Self>,
        engine: &Arc<Engine>,
        store: &Arc<TableStore>,
    ) -> Result<(), StorageError> {
        if let Some(flushed) = Self::flushed(store)
            && let Some(recorded) = record_purged(engine, store, flushed)?
        {
            engine.log.wait_synced(recorded).await?;
        }
        let cut = Arc::clone(cut);
        in_background(engine, store, move |engine, _| cut.remove_sstables(engine)).await
    }

    /// Position up to which every record of the table is in SSTables. None: the memtables that
    /// wait for their flush have no records.
    fn flushed(store: &TableStore) -> Option<LogPosition> {
        let view = store.view();
        let waiting = view.flushing.iter().flat_map(|set| &set.memtables);
        let first = waiting.filter_map(|memtable| memtable.log_range()).map(|range| range.first).min()?;
        Some(LogPosition { offset: first.offset.saturating_sub(1), ..first })
    }

    /// Removes the SSTables from before the cut, and then the memtables that are not flushed: a
    /// reader never finds rows without their deletions.
    fn remove(&self, engine: &Engine, store: &Arc<TableStore>) -> Result<(), StorageError> {
        if self.frozen.as_ref().is_none_or(|frozen| !is_waiting(store, frozen)) {
            // flushes of later memtables go on meanwhile: their SSTables stay
            return self.remove_sstables(engine);
        }
        let in_order = crate::flush::lock_flushes(store);
        self.remove_sstables(engine)?;
        if let Some(frozen) = &self.frozen {
            crate::flush::discard(engine, store, Some(frozen), &in_order);
        }
        Ok(())
    }

    /// Removes the SSTables from before the cut. The entries of indexes are removed before the
    /// rows.
    fn remove_sstables(&self, engine: &Engine) -> Result<(), StorageError> {
        for store in &self.stores {
            // first, so that what comes of another node meanwhile is among the SSTables that are
            // removed below, or is not added
            store.changes().truncations.decide(self.number);
        }
        for store in &self.stores {
            crate::files::remove(engine, store, |changes, sstable| {
                changes.truncations.is_before(self.number, sstable)
            })?;
        }
        Ok(())
    }
}

/// Whether frozen memtables are not in SSTables yet.
fn is_waiting(store: &TableStore, frozen: &Arc<FlushSet>) -> bool {
    store.view().flushing.iter().any(|set| Arc::ptr_eq(set, frozen))
}

impl Drop for OngoingTruncation {
    fn drop(&mut self) {
        for store in &self.stores {
            store.changes().truncations.end(self.number);
        }
        self.engine.compactor.wake();
    }
}

async fn in_background<T: Send + 'static>(
    engine: &Arc<Engine>,
    store: &Arc<TableStore>,
    job: impl FnOnce(&Arc<Engine>, &Arc<TableStore>) -> Result<T, StorageError> + Send + 'static,
) -> Result<T, StorageError> {
    let (of_engine, store) = (Arc::clone(engine), Arc::clone(store));
    let done = engine.env.blocking("truncate", move || job(&of_engine, &store)).await;
    done.unwrap_or_else(|_| Err(StorageError::Refused { why: "too much background work waits".to_owned() }))
}

/// Removes the files of a dropped table from the disk. Its snapshots and backups stay, and with
/// them the directory.
pub fn remove_files(engine: &Engine, store: &Arc<TableStore>) -> Result<(), StorageError> {
    store.directories.iter().try_for_each(|directory| remove_files_in(engine, directory))
}

/// Does the work of [`remove_files`] in one directory. The data of SSTables goes first, durably: an
/// SSTable without it is none. Where another node's change takes two steps
/// (`schema_change::merge`), a start in between has the table or index in its schema, and
/// could not open an SSTable of which another component is gone.
pub(crate) fn remove_files_in(engine: &Engine, directory: &Path) -> Result<(), StorageError> {
    let disk = &engine.env.disk;
    if !disk.exists(directory) {
        return Ok(());
    }
    let gone = |removed| unless_gone(directory, removed);
    let entries = disk.list_dir(directory).map_err(|error| StorageError::io(directory, &error))?;
    let indexes = entries.iter().filter(|entry| entry.is_dir && entry.name.starts_with('.'));
    for index in indexes.map(|entry| directory.join(&entry.name)) {
        let of_index = disk.list_dir_if_exists(&index).map_err(|error| StorageError::io(&index, &error))?;
        remove_data(engine, &index, &of_index.unwrap_or_default())?;
    }
    remove_data(engine, directory, &entries)?;
    let mut kept = false;
    for entry in entries {
        let path = directory.join(&entry.name);
        match (entry.is_dir, entry.name.as_str()) {
            (true, layout::SNAPSHOTS | layout::BACKUPS) => kept = true,
            (true, _) => gone(disk.remove_dir_all(&path))?,
            (false, _) => gone(disk.remove_file(&path))?,
        }
    }
    // a table that is made again with this id has the same directory, where a part of an SSTable
    // that comes back after a power cut would be a damaged one
    gone(disk.sync_dir(directory))?;
    if kept {
        return Ok(());
    }
    gone(disk.remove_dir_all(directory))?;
    directory.parent().map_or(Ok(()), |above| gone(disk.sync_dir(above)))
}

/// Removes the data files among the files of a directory.
fn remove_data(engine: &Engine, directory: &Path, entries: &[DirEntry]) -> Result<(), StorageError> {
    let disk = &engine.env.disk;
    let is_data = |name: &str| matches!(Descriptor::parse(directory, name), Some((_, Some(Component::Data))));
    let mut data = entries.iter().filter(|entry| !entry.is_dir && is_data(&entry.name)).peekable();
    if data.peek().is_none() {
        return Ok(());
    }
    data.try_for_each(|entry| unless_gone(directory, disk.remove_file(&directory.join(&entry.name))))?;
    unless_gone(directory, disk.sync_dir(directory))
}

/// The result of a removal in a directory. Nothing is wrong with what is gone already: a compaction
/// that ends takes files away too.
fn unless_gone(directory: &Path, removed: std::io::Result<()>) -> Result<(), StorageError> {
    match removed {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        other => other.map_err(|error| StorageError::io(directory, &error)),
    }
}
