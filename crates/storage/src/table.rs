//! A table's state on this node: its directory, its view, its locks and counters. Operations on a
//! table are elsewhere: write, read, flush, compaction, snapshot and truncate each have a module
//! that takes a [`TableStore`].

pub(crate) mod attached;
pub mod entries;
pub(crate) mod incoming;
pub mod indexes;
pub mod memtable;
pub(crate) mod prefills;
mod truncations;
pub(crate) mod unsettled;
pub mod view;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use arc_swap::ArcSwap;
use env::Env;
use env::defects::{Defect, is_on};
use env::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use env::sync::{Mutex, MutexGuard};
use schema::system::is_local_keyspace;
use schema::{TableId, TableMetadata};
use sstable::{Descriptor, OpenFiles, SSTable};
use tokio::sync::RwLock;

use crate::caches::Caches;
use crate::commitlog::LogPosition;
use crate::inherited::RepairState;
use crate::metrics::TableMetrics;
use crate::shards::Shards;
use crate::strategy::Memory;
use crate::strategy::auto::{AutoCompaction, FlushSize, Thresholds};
use indexes::IndexStore;
use memtable::Memtable;
use prefills::PrefillCounts;
use truncations::Truncations;
use unsettled::Unsettled;
use view::{FlushSet, View};

pub use truncations::{TruncationEffect, TruncationEpoch};

/// A table's state on this node.
pub struct TableStore {
    /// Clock, disk and threads.
    pub env: Env,
    /// Its id.
    pub id: TableId,
    /// The first of the table's directories.
    pub directory: PathBuf,
    /// All directories with files of the table, at least one.
    pub directories: Vec<PathBuf>,
    /// For each directory whether it has existed. If such a directory is gone its disk is gone,
    /// and it must not be made anew.
    pub(crate) placed: Vec<AtomicBool>,
    /// How the table's partitions are divided.
    pub shards: Shards,
    /// The caches of SSTables.
    pub caches: Arc<Caches>,
    /// Counters.
    pub metrics: TableMetrics,
    view: ArcSwap<View>,
    /// When the memtables that take writes were made, or the flusher was asked for a flush of them
    /// because of their age: monotonic time, nanoseconds.
    pub(crate) active_since: AtomicU64,
    /// Held while the view is replaced; guards the state that only changes then.
    changes: Mutex<Changes>,
    /// The greatest sequence number an SSTable has had.
    last_sequence: AtomicU64,
    /// Changes of the set of SSTables whose transaction logs are still on disk.
    pub(crate) unsettled: Mutex<Unsettled>,
    /// Held while SSTables are removed: no other removal may go on meanwhile.
    pub(crate) replacing: Mutex<()>,
    /// Held while SSTables of directories are imported, which may take hours
    /// (`--extended-verify`): what comes in a stream does not wait for it.
    pub(crate) importing: Mutex<()>,
    /// SSTables that are about to be added, whose entries in indexes come before them.
    pub(crate) prefills: PrefillCounts,
    /// Passed by each write of a row of another node that comes in a stream, from the look whether
    /// a truncation has removed the row ([`TableStore::truncation_effect`]) to the end of the
    /// write. The caller of a truncation closes the gate and hands it over until the cut is made;
    /// otherwise such a row could look wanted and be written behind the cut. Passed, and closed,
    /// before the gate of writes to tables with views.
    pub streamed_writes: Arc<RwLock<()>>,
    /// Held while memtables are flushed, because the order of flushes is that of the commit log.
    pub(crate) flushing: Mutex<()>,
    /// The position up to which the commit log has nothing for the table; it only grows. Held
    /// while it is recorded. None: there is no record.
    pub(crate) truncation: Mutex<Option<Truncation>>,
    /// SSTables that could not be opened.
    left_out: Mutex<Vec<UnreadableSSTable>>,
    /// SSTables that were replaced, and that somebody still read when the view changed last. Locked
    /// apart from `changes`, which strategies hold while they look at files: workers, too, ask how
    /// many bytes these SSTables have, and must not wait for the disk.
    replaced: Mutex<Vec<OpenFiles>>,
    /// True: the table is dropped and takes no writes any more. Its memtables are frozen and none
    /// come after them. Never reset.
    closed: AtomicBool,
    /// Set once a dropped table has given up its memtables: flushes write nothing of it, and its
    /// compactions end. Never reset.
    pub dropped: AtomicBool,
    /// Whether the table's strategy may choose compactions by itself.
    pub auto_compaction: AutoCompaction,
    /// The least and the greatest number of SSTables that are compacted at once.
    pub thresholds: Thresholds,
    /// Mean bytes of the table's flushes.
    pub flush_size: FlushSize,
}

/// The SSTables of a table that a start found on disk.
#[derive(Default)]
pub struct OpenedSSTables {
    /// Its SSTables.
    pub sstables: Vec<Arc<SSTable>>,
    /// The greatest sequence number seen.
    pub last_sequence: u64,
    /// SSTables that cannot be opened.
    pub left_out: Vec<UnreadableSSTable>,
}

/// The record of a truncation of a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Truncation {
    /// Records of the table up to here are not replayed.
    pub(crate) position: LogPosition,
    /// When the table was truncated, milliseconds since 1970; [`NEVER`], as in Cassandra: it never
    /// was.
    pub(crate) at_millis: i64,
}

/// The time of truncation of a table that was never truncated.
pub(crate) const NEVER: i64 = i64::MIN;

/// An SSTable that could not be opened: its rows are not seen, and its deletions do not hide
/// anything.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnreadableSSTable {
    /// Name of the SSTable.
    pub descriptor: Descriptor,
    /// The defect.
    pub why: String,
}

/// The memory of a table's strategy, by repair state.
#[derive(Default)]
pub struct StrategyMemories {
    /// The options of the strategy. With other options the memory is empty.
    pub options: BTreeMap<String, String>,
    /// By repair state.
    pub memories: BTreeMap<RepairState, Memory>,
}

/// The failures of compactions of an SSTable, except those for which it cannot be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Failures {
    /// Number of failures in a row.
    pub times: u32,
    /// No strategy chooses the SSTable before this time, nanoseconds of the monotonic clock.
    pub until: u64,
}

/// State that only changes together with the view.
#[derive(Default)]
pub struct Changes {
    /// SSTables that a compaction has: no other may take them.
    pub compacting: BTreeSet<Descriptor>,
    /// SSTables that a compaction found damaged: strategies leave them alone.
    pub suspect: BTreeSet<Descriptor>,
    /// SSTables in the view of which compactions failed that a strategy had chosen.
    pub failed: BTreeMap<Descriptor, Failures>,
    /// The time at which this process wrote each SSTable in the view, milliseconds since 1970.
    pub written: BTreeMap<Descriptor, u64>,
    /// The memory of the table's strategy.
    pub remembered: StrategyMemories,
    /// The position of the log when memtables were frozen last: the records of the present ones
    /// come after it. None: they were not frozen yet.
    pub log_frozen_at: Option<LogPosition>,
    /// Truncations that are under way.
    pub truncations: Truncations,
    /// How many changes that bring SSTables from outside are under way: streams, imports.
    pub incoming: usize,
}

impl TableStore {
    /// A table with the SSTables that were found in its directories, of which there must be one at
    /// least.
    pub fn new(
        env: Env,
        directories: Vec<PathBuf>,
        shards: Shards,
        table: Arc<TableMetadata>,
        opened: OpenedSSTables,
        indexes: Vec<Arc<IndexStore>>,
        caches: Arc<Caches>,
    ) -> Self {
        let OpenedSSTables { sstables, last_sequence, left_out } = opened;
        let directory = directories.first().cloned().unwrap_or_default();
        let active = new_memtables(&env, shards, &table, &indexes);
        let entered: Vec<_> = indexes.iter().map(|index| (index, index.store.changes())).collect();
        attach(&entered, &active, &[]);
        drop(entered);
        let id = table.id;
        let placed = directories.iter().map(|directory| AtomicBool::new(env.disk.exists(directory))).collect();
        let sstables = newest_first(sstables);
        let active_since = AtomicU64::new(env.clock.monotonic_nanos());
        let view = View { table, active, flushing: Vec::new(), sstables, indexes: indexes.into() };
        Self {
            env,
            id,
            directory,
            directories,
            placed,
            shards,
            caches,
            metrics: TableMetrics::default(),
            view: ArcSwap::from_pointee(view),
            active_since,
            changes: Mutex::new(Changes::default()),
            last_sequence: AtomicU64::new(last_sequence),
            unsettled: Mutex::new(Unsettled::default()),
            replacing: Mutex::new(()),
            prefills: PrefillCounts::default(),
            streamed_writes: Arc::default(),
            importing: Mutex::new(()),
            flushing: Mutex::new(()),
            truncation: Mutex::new(None),
            left_out: Mutex::new(left_out),
            replaced: Mutex::new(Vec::new()),
            closed: AtomicBool::new(false),
            dropped: AtomicBool::new(false),
            auto_compaction: AutoCompaction::default(),
            thresholds: Thresholds::default(),
            flush_size: FlushSize::default(),
        }
    }

    /// When the table was truncated last, milliseconds since 1970; None: never.
    pub fn truncated_at_millis(&self) -> Option<i64> {
        let truncation = *self.truncation.lock().expect("no panic inside");
        truncation.map(|truncation| truncation.at_millis).filter(|millis| *millis != NEVER)
    }

    /// The effect of truncations on rows from before a moment of the engine.
    pub fn truncation_effect(&self, moment: TruncationEpoch) -> TruncationEffect {
        self.changes().truncations.truncation_effect(moment)
    }

    /// The table's view at this moment. None: a truncation is under way, which removes a part of
    /// it or fails.
    pub fn view_beside_no_truncation(&self) -> Option<Arc<View>> {
        let changes = self.changes();
        changes.truncations.is_empty().then(|| self.view())
    }

    /// The log position of the last record that the memtables of a shard hold; None: nothing of it
    /// was logged. Everything that a read of the shard has seen is durable once the log is durable
    /// up to here, because rows in SSTables were durable when they were flushed.
    pub fn last_logged(&self, shard: usize) -> Option<LogPosition> {
        let view = self.view();
        let sets = view.flushing.iter().map(|set| set.memtables.as_slice()).chain([view.active.as_slice()]);
        let memtables = sets.filter_map(|memtables| memtables.get(shard));
        memtables.filter_map(|memtable| memtable.log_range()).map(|range| range.last).max()
    }

    /// The view of the table at this moment.
    pub fn view(&self) -> Arc<View> {
        self.view.load_full()
    }

    /// The schema of the table at this moment.
    pub fn table(&self) -> Arc<TableMetadata> {
        Arc::clone(&self.view.load().table)
    }

    /// `keyspace.table`.
    pub fn name(&self) -> String {
        let view = self.view.load();
        format!("{}.{}", view.table.keyspace, view.table.name)
    }

    /// The age in nanoseconds at which memtables are flushed (`memtable_flush_period_in_ms`);
    /// None: there is no such age. Tables of the node itself have none whatever their schema says:
    /// the log has their rows, and a small SSTable of each of them in each hour would be of no
    /// use.
    pub(crate) fn flush_period_nanos(&self) -> Option<u64> {
        let view = self.view.load();
        let millis = u64::try_from(view.table.params.memtable_flush_period_in_ms).ok().filter(|millis| *millis > 0)?;
        (!is_local_keyspace(&view.table.keyspace)).then(|| millis * 1_000_000)
    }

    /// A number for a new SSTable.
    pub fn next_sequence(&self) -> u64 {
        self.last_sequence.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// SSTables that could not be opened.
    pub fn left_out(&self) -> Vec<UnreadableSSTable> {
        self.left_out.lock().expect("no panic inside").clone()
    }

    /// Removes one of these SSTables from the list: it is in the view now, or its files are
    /// removed.
    pub(crate) fn forget_left_out(&self, descriptor: &Descriptor) {
        self.left_out.lock().expect("no panic inside").retain(|left_out| left_out.descriptor != *descriptor);
    }

    /// Locks the state that changes together with the view.
    pub fn changes(&self) -> MutexGuard<'_, Changes> {
        self.changes.lock().expect("a panic while the view changes ends the process")
    }

    /// Replaces the view; `_changes` shows that the caller is the only one.
    pub fn publish(&self, _changes: &Changes, view: View) {
        assert_eq!(view.active.len(), self.shards.count(), "a table has one memtable a shard that takes writes");
        let ends = view.flushing.iter().map(|set| set.up_to);
        assert!(ends.is_sorted(), "memtables wait for their flush in the order of the log");
        let mut sets = view.flushing.iter().map(|set| set.memtables.len());
        assert!(sets.all(|count| count == self.shards.count()), "memtables of all shards are flushed together");
        let mut attached = view.active.iter().map(|memtable| memtable.indexes().len());
        assert!(attached.all(|count| count == view.indexes.len()), "each index has its memtable beside the table's");
        let newest = view.sstables.iter().map(|sstable| sstable.statistics().stats.max_timestamp);
        assert!(newest.is_sorted_by(|a, b| a >= b), "a view has the newest SSTables first");
        self.view.store(Arc::new(view));
    }

    /// Puts new memtables in place (of the table's schema `table`) and freezes the old; None when
    /// they are empty. `log_position` gives the end of the log. It is asked while nothing can be
    /// written to the table: records that the table appended up to there are in the old memtables,
    /// later ones in the new.
    pub fn switch_memtables(
        &self,
        table: Arc<TableMetadata>,
        indexes: Option<Vec<Arc<IndexStore>>>,
        log_position: impl FnOnce() -> LogPosition,
    ) -> Option<Arc<FlushSet>> {
        self.switch(table, indexes, log_position, false)
    }

    /// Ends all writing to the table and its indexes, for good. A writer that has looked the table
    /// up before gets an error, so the table appends nothing behind the position that the log has
    /// then.
    pub fn close(&self, log_position: impl FnOnce() -> LogPosition) {
        self.switch(self.table(), None, log_position, true);
    }

    /// Whether the table takes no writes any more.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    fn switch(
        &self,
        table: Arc<TableMetadata>,
        indexes: Option<Vec<Arc<IndexStore>>>,
        log_position: impl FnOnce() -> LogPosition,
        closes: bool,
    ) -> Option<Arc<FlushSet>> {
        let mut changes = self.changes();
        if self.is_closed() {
            return None;
        }
        let old = self.view();
        let indexes: Arc<[_]> = indexes.map_or_else(|| Arc::clone(&old.indexes), Arc::from);
        let active = new_memtables(&self.env, self.shards, &table, &indexes);
        let sstables = self.with_new_schema(&old, &table);
        let empty = old.active.iter().all(|memtable| memtable.total_size() == 0);
        if closes {
            Memtable::freeze(&active, || ());
            let of_indexes = indexes.iter().map(|index| &index.store.closed);
            // before a writer can find that the memtables are frozen
            of_indexes.chain([&self.closed]).for_each(|closed| closed.store(true, Ordering::Release));
        }
        // inside the memtables' doors no lock is waited for but the log's
        let of_indexes: Vec<_> = indexes.iter().map(|index| (index, index.store.changes())).collect();
        let after = changes.log_frozen_at;
        let mut log_position = Some(log_position);
        let mut position = || log_position.take().map(|log_position| log_position());
        let outside = if is_on(Defect::CutBeforeDoors) { position() } else { None };
        let set = Memtable::freeze(&old.active, || {
            let up_to = outside.or_else(position).expect("asked once");
            let attached = sets_of_indexes(&old, up_to);
            let set = Arc::new(FlushSet { memtables: old.active.clone(), after, up_to, indexes: attached });
            let mut flushing = old.flushing.clone();
            flushing.push(Arc::clone(&set));
            attach(&of_indexes, &active, &set.indexes);
            self.publish(&changes, View { table, active, flushing, sstables, indexes: Arc::clone(&indexes) });
            set
        });
        drop(of_indexes);
        self.active_since.store(self.env.clock.monotonic_nanos(), Ordering::Relaxed);
        assert!(after.is_none_or(|after| after <= set.up_to), "memtables are frozen in the order of the log");
        changes.log_frozen_at = Some(set.up_to);
        drop(changes);
        let is_empty = |memtable: &Arc<Memtable>| {
            memtable.is_empty() && memtable.indexes().iter().all(|(_, memtable)| memtable.is_empty())
        };
        if empty && set.memtables.iter().all(is_empty) {
            for (index, set) in &set.indexes {
                index.store.finish_flush(set, Vec::new());
            }
            self.finish_flush(&set, Vec::new());
            return None;
        }
        Some(set)
    }

    /// For an index: puts the memtables into the view that belong to the base's new ones; `set`
    /// are those that belong to the old.
    fn switch_with_base(
        &self,
        changes: &Changes,
        table: Arc<TableMetadata>,
        active: Vec<Arc<Memtable>>,
        set: Option<Arc<FlushSet>>,
    ) {
        let old = self.view();
        let mut flushing = old.flushing.clone();
        flushing.extend(set);
        let (sstables, indexes) = (self.with_new_schema(&old, &table), Arc::clone(&old.indexes));
        self.publish(changes, View { table, active, flushing, sstables, indexes });
    }

    /// The SSTables under the schema `table`, so that reads through them follow an ALTER.
    fn with_new_schema(&self, old: &View, table: &Arc<TableMetadata>) -> Vec<Arc<SSTable>> {
        if Arc::ptr_eq(&old.table, table) {
            return old.sstables.clone();
        }
        let rebind = |sstable: &Arc<SSTable>| match sstable.with_schema(table) {
            Ok(rebound) => Arc::new(rebound),
            Err(error) => {
                tracing::error!(%error, "an SSTable does not fit the table's new schema and is read by the old one");
                Arc::clone(sstable)
            }
        };
        old.sstables.iter().map(rebind).collect()
    }

    /// Puts flushed SSTables in the place of their memtables. No SSTables: nothing was worth
    /// writing.
    pub fn finish_flush(&self, set: &Arc<FlushSet>, flushed: Vec<Arc<SSTable>>) {
        let mut changes = self.changes();
        let old = self.view();
        let is_oldest = old.flushing.first().is_some_and(|oldest| Arc::ptr_eq(oldest, set));
        assert!(is_oldest || flushed.is_empty(), "memtables become SSTables in the order of the log");
        let flushing = old.flushing.iter().filter(|other| !Arc::ptr_eq(other, set)).map(Arc::clone).collect();
        let mut sstables = old.sstables.clone();
        attached::leave_present(&old, &flushed);
        changes.truncations.note_flushed(&old.flushing, &flushed);
        self.note_written(&mut changes, &flushed);
        sstables.extend(flushed.into_iter().map(|sstable| bound_to(&old.table, sstable)));
        let (table, active) = (Arc::clone(&old.table), old.active.clone());
        let (sstables, indexes) = (newest_first(sstables), Arc::clone(&old.indexes));
        self.publish(&changes, View { table, active, flushing, sstables, indexes });
    }

    fn note_written(&self, changes: &mut Changes, sstables: &[Arc<SSTable>]) {
        let now = u64::try_from(self.env.clock.now_micros() / 1000).unwrap_or(0);
        changes.written.extend(sstables.iter().map(|sstable| (sstable.descriptor().clone(), now)));
    }

    /// Puts new SSTables in the place of old ones. If all old ones have the components of a
    /// complete attached index, all new ones must have them: otherwise queries by that index are
    /// refused.
    pub fn replace_sstables(&self, old_ones: &[Arc<SSTable>], new_ones: Vec<Arc<SSTable>>) {
        let mut changes = self.changes();
        changes.truncations.note_replaced(old_ones, &new_ones);
        self.replace(&mut changes, old_ones, new_ones);
    }

    /// Adds SSTables of another node, which told of them at a moment. The caller holds
    /// [`TableStore::replacing`] and has looked what truncations have done since that moment.
    pub(crate) fn add_received(&self, new_ones: Vec<Arc<SSTable>>, announced: TruncationEpoch) {
        let mut changes = self.changes();
        changes.truncations.note_received(&new_ones, announced);
        self.replace(&mut changes, &[], new_ones);
    }

    /// Adds what could be read of an SSTable that could not be opened. It was in the directory all
    /// the time: the truncations that are under way remove its rows too.
    pub(crate) fn add_salvaged(&self, new_ones: Vec<Arc<SSTable>>) {
        let mut changes = self.changes();
        self.replace(&mut changes, &[], new_ones);
    }

    /// Bytes of SSTables that were replaced and are still read: the disk has their room again when
    /// the last read of them ends.
    pub fn obsolete_bytes(&self) -> u64 {
        self.replaced.lock().expect("no panic inside").iter().map(OpenFiles::disk_size).sum()
    }

    fn note_replaced(&self, old_ones: &[Arc<SSTable>], new_ones: &[Arc<SSTable>]) {
        let present: BTreeSet<_> = new_ones.iter().map(|sstable| sstable.descriptor()).collect();
        // the same files may have other statistics now
        let gone = old_ones.iter().filter(|sstable| !present.contains(sstable.descriptor()));
        let mut replaced = self.replaced.lock().expect("no panic inside");
        replaced.retain(|files| files.disk_size() > 0);
        replaced.extend(gone.map(|sstable| sstable.open_files()));
    }

    fn replace(&self, changes: &mut Changes, old_ones: &[Arc<SSTable>], new_ones: Vec<Arc<SSTable>>) {
        let old = self.view();
        let gone = |sstable: &Arc<SSTable>| old_ones.iter().any(|other| other.descriptor() == sstable.descriptor());
        let mut sstables: Vec<_> = old.sstables.iter().filter(|sstable| !gone(sstable)).map(Arc::clone).collect();
        assert_eq!(sstables.len() + old_ones.len(), old.sstables.len(), "SSTables that are replaced were in the view");
        for old in old_ones {
            changes.written.remove(old.descriptor());
            changes.suspect.remove(old.descriptor());
            changes.failed.remove(old.descriptor());
        }
        self.note_replaced(old_ones, &new_ones);
        attached::leave_present(&old, &new_ones);
        debug_assert!(keeps_components(&old, old_ones, &new_ones), "queries by an attached index go on");
        self.note_written(changes, &new_ones);
        sstables.extend(new_ones.into_iter().map(|sstable| bound_to(&old.table, sstable)));
        let (table, active) = (Arc::clone(&old.table), old.active.clone());
        let (sstables, indexes) = (newest_first(sstables), Arc::clone(&old.indexes));
        let view = View { table, active, flushing: old.flushing.clone(), sstables, indexes };
        self.publish(changes, view);
    }
}

fn new_memtables(
    env: &Env,
    shards: Shards,
    table: &Arc<TableMetadata>,
    indexes: &[Arc<IndexStore>],
) -> Vec<Arc<Memtable>> {
    (0..shards.count()).map(|_| Arc::new(Memtable::with_indexes(Arc::clone(table), env, indexes))).collect()
}

/// The memtables of indexes that belong to those that take writes now, a set for each index.
fn sets_of_indexes(view: &View, up_to: LogPosition) -> Vec<(Arc<IndexStore>, Arc<FlushSet>)> {
    let sets = view.indexes.iter().enumerate().map(|(at, index)| {
        let own = |memtable: &Arc<Memtable>| memtable.indexes().get(at).map(|(_, own)| Arc::clone(own));
        let memtables = view.active.iter().filter_map(own).collect();
        (Arc::clone(index), Arc::new(FlushSet { memtables, after: None, up_to, indexes: Vec::new() }))
    });
    sets.collect()
}

/// An index, with its state locked for a change of its view.
type LockedIndex<'a> = (&'a Arc<IndexStore>, MutexGuard<'a, Changes>);

/// Puts the memtables that belong to the base's new ones into the views of indexes.
fn attach(indexes: &[LockedIndex<'_>], base: &[Arc<Memtable>], old: &[(Arc<IndexStore>, Arc<FlushSet>)]) {
    for (at, (index, changes)) in indexes.iter().enumerate() {
        let own = |memtable: &Arc<Memtable>| memtable.indexes().get(at).map(|(_, own)| Arc::clone(own));
        let active = base.iter().filter_map(own).collect();
        let set = old.iter().find(|(other, _)| Arc::ptr_eq(&other.store, &index.store));
        let set = set.map(|(_, set)| Arc::clone(set));
        index.store.switch_with_base(changes, Arc::clone(&index.definition.table), active, set);
    }
}

/// Whether the new SSTables have the components of each complete attached index of which all old
/// ones had them.
fn keeps_components(view: &View, old_ones: &[Arc<SSTable>], new_ones: &[Arc<SSTable>]) -> bool {
    let complete = view.indexes.iter().filter(|index| index.definition.is_attached() && index.state.is_built());
    let have = |sstables: &[Arc<SSTable>], name| sstables.iter().all(|sstable| sstable.attached().has(name));
    let mut names = complete.map(|index| index.name());
    old_ones.is_empty() || names.all(|name| !have(old_ones, name) || have(new_ones, name))
}

/// A new SSTable under the table's present schema: an ALTER may have come since it was begun.
fn bound_to(table: &Arc<TableMetadata>, sstable: Arc<SSTable>) -> Arc<SSTable> {
    assert_eq!(sstable.table().id, table.id, "a view has SSTables of its own table");
    if Arc::ptr_eq(sstable.table(), table) {
        return sstable;
    }
    sstable.with_schema(table).map_or(sstable, Arc::new)
}

/// Sorts SSTables, newest data first. Each must be there once: an SSTable that is in the view
/// twice would be read, compacted and removed twice, so this panics.
fn newest_first(mut sstables: Vec<Arc<SSTable>>) -> Vec<Arc<SSTable>> {
    let names: BTreeSet<_> = sstables.iter().map(|sstable| sstable.descriptor()).collect();
    assert_eq!(names.len(), sstables.len(), "an SSTable is in the view once");
    sstables.sort_by_key(|sstable| std::cmp::Reverse(sstable.statistics().stats.max_timestamp));
    sstables
}
