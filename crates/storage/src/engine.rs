//! The engine: tables, commit log, budgets and background tasks of this node, and the schema that
//! says which tables there are.
//!
//! The engine does not know the operations on these parts: they are in modules above it (write,
//! query, flush, compactor, recovery, schema_change, lifecycle, …), which take the engine. Their
//! background tasks keep their state in [`crate::requests`].

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, OnceLock, Weak};
use std::task::Waker;

use arc_swap::ArcSwap;
use env::sync::Mutex;
use env::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use env::{Env, Lock};
use rows::old_cells::OldestKeptTimestamp;
use schema::{Schema, TableId};
use tokio::sync::oneshot;

use crate::base_views::{BaseViews, FilterMaker};
use crate::caches::Caches;
use crate::commitlog::CommitLog;
use crate::error::StorageError;
use crate::memory::MemtableMemory;
use crate::options::EngineOptions;
use crate::requests::cache_saver::CacheSaver;
use crate::requests::drops::Dropper;
use crate::requests::flushes::Flusher;
use crate::requests::index_builds::IndexBuilder;
use crate::requests::operations::{Compactor, Ended, Operation, Work};
use crate::requests::progress::Compactions;
use crate::shards::Shards;
use crate::strategy::kind::Kind;
use crate::table::view::FlushSet;
use crate::table::{TableStore, TruncationEpoch};
use crate::tables::Tables;

/// The storage of a node.
pub struct Engine {
    /// Clock, disk, threads and random numbers.
    pub env: Env,
    /// Settings.
    pub options: EngineOptions,
    /// How the tokens of tables are divided into shards.
    pub shards: Shards,
    /// The commit log.
    pub log: CommitLog,
    /// The caches of SSTables.
    pub caches: Arc<Caches>,
    /// Saves the content of the caches, and reads it again at a start.
    pub cache_saver: CacheSaver,
    /// The memory that memtables hold, in bytes.
    pub memory: Arc<MemtableMemory>,
    /// Writes memtables to SSTables.
    pub flusher: Flusher,
    /// Removes dropped tables from the disk.
    pub dropper: Dropper,
    /// Merges SSTables.
    pub compactor: Compactor,
    /// Builds indexes of the rows that tables already have.
    pub index_builder: IndexBuilder,
    /// Compactions that run, and the history of those that ended.
    pub compactions: Compactions,
    /// How long writes have waited until the log was durable, microseconds.
    pub waiting_on_commit: metrics::Histogram,
    pub(crate) schema: ArcSwap<Schema>,
    /// The materialized views of the schema in force.
    pub(crate) views: ArcSwap<BaseViews>,
    /// Reads the WHERE of views; empty: not given yet.
    pub(crate) view_filters: OnceLock<FilterMaker>,
    pub(crate) tables: ArcSwap<Tables>,
    /// Held while the schema is changed.
    pub(crate) schema_changes: Mutex<()>,
    /// The last timestamp of rows that the engine writes itself: schema, truncations, built
    /// indexes.
    last_timestamp: AtomicI64,
    /// The number of the last cut that a truncation of any table has begun to make.
    last_truncation: AtomicU64,
    /// The time in the name of the last snapshot that was taken before a table was truncated or
    /// dropped, milliseconds since 1970; 0: none was taken since the start.
    last_automatic_snapshot: AtomicI64,
    pub(crate) draining: AtomicBool,
    pub(crate) stopped: AtomicBool,
    compaction_rate: AtomicU64,
    host_id: OnceLock<[u8; 16]>,
    /// The age from which on compactions may leave out cells of `system.paxos`; not set: only
    /// expired cells.
    pub paxos_oldest: OnceLock<Arc<OldestKeptTimestamp>>,
    /// The locks of the directories, held while the process lives. Empty: the engine is read-only.
    pub(crate) _locks: Vec<Box<dyn Lock>>,
}

/// The parts that recovery hands over.
pub(crate) struct Parts {
    pub env: Env,
    pub options: EngineOptions,
    pub log: CommitLog,
    pub caches: Arc<Caches>,
    pub memory: Arc<MemtableMemory>,
    pub schema: Schema,
    pub tables: BTreeMap<TableId, Arc<TableStore>>,
    pub locks: Vec<Box<dyn Lock>>,
}

impl Engine {
    pub(crate) fn assemble(parts: Parts) -> Arc<Self> {
        let Parts { env, options, log, caches, memory, schema, tables, locks } = parts;
        let engine = Arc::new(Self {
            shards: Shards::at_least(options.shards),
            memory,
            compaction_rate: AtomicU64::new(options.compaction_bytes_per_second),
            host_id: options.host_id.map(OnceLock::from).unwrap_or_default(),
            paxos_oldest: OnceLock::new(),
            env,
            options,
            log,
            caches,
            cache_saver: CacheSaver::default(),
            flusher: Flusher::default(),
            dropper: Dropper::default(),
            compactor: Compactor::default(),
            index_builder: IndexBuilder::default(),
            compactions: Compactions::default(),
            waiting_on_commit: metrics::Histogram::default(),
            schema: ArcSwap::from_pointee(schema),
            views: ArcSwap::default(),
            view_filters: OnceLock::new(),
            tables: ArcSwap::from_pointee(Tables::new(tables)),
            schema_changes: Mutex::new(()),
            last_timestamp: AtomicI64::new(0),
            last_truncation: AtomicU64::new(0),
            last_automatic_snapshot: AtomicI64::new(0),
            draining: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
            _locks: locks,
        });
        let replayed: usize = engine.tables().iter().map(|store| store.view().memtable_size()).sum();
        engine.memory.take(replayed);
        engine
    }

    /// The schema at this moment.
    pub fn schema(&self) -> Arc<Schema> {
        self.schema.load_full()
    }

    /// A table's state.
    pub fn table(&self, id: TableId) -> Option<Arc<TableStore>> {
        self.tables.load().get(id).cloned()
    }

    /// A table's state, by the names of its keyspace and itself.
    pub fn table_by_name(&self, keyspace: &str, table: &str) -> Option<Arc<TableStore>> {
        let schema = self.schema.load();
        self.table(schema.table(keyspace, table)?.id)
    }

    /// All tables, and the hidden tables of their indexes: everything that has SSTables to
    /// compact.
    pub fn stores(&self) -> Vec<Arc<TableStore>> {
        let mut stores = Vec::new();
        for store in self.tables.load().in_order().values() {
            stores.push(Arc::clone(store));
            stores.extend(store.view().indexes.iter().map(|index| Arc::clone(&index.store)));
        }
        stores
    }

    /// All tables, by id.
    pub fn tables(&self) -> Vec<Arc<TableStore>> {
        self.tables.load().in_order().values().cloned().collect()
    }

    /// The present moment, as the number of truncations that have begun before it
    /// ([`TableStore::truncation_effect`]).
    pub fn truncation_epoch(&self) -> TruncationEpoch {
        TruncationEpoch(self.last_truncation.load(Ordering::SeqCst))
    }

    /// The number of a cut that is about to be made.
    pub(crate) fn next_truncation_number(&self) -> u64 {
        self.last_truncation.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// The time for the name of a snapshot that is taken before a table is truncated or dropped,
    /// milliseconds since 1970: that of the wall clock, or a later one if the last snapshot has it.
    pub(crate) fn next_automatic_snapshot(&self) -> i64 {
        let wall = self.env.clock.now_micros() / 1000;
        let later = |last: i64| wall.max(last.saturating_add(1));
        let last = &self.last_automatic_snapshot;
        let last = last.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(later(last)));
        later(last.unwrap_or_else(|last| last))
    }

    /// A timestamp for rows that the engine writes itself: the time of the wall clock, or `step`
    /// microseconds after the last timestamp if the clock stands or was set back.
    pub(crate) fn next_timestamp(&self, step: i64) -> i64 {
        let wall = self.env.clock.now_micros();
        let later = |last: i64| wall.max(last.saturating_add(step));
        let last = self.last_timestamp.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(later(last)));
        later(last.unwrap_or_else(|last| last))
    }

    /// The last timestamp that the engine gave to its own rows.
    pub fn last_timestamp(&self) -> i64 {
        self.last_timestamp.load(Ordering::Relaxed)
    }

    /// Makes all later timestamps of the engine's own rows greater than this one, microseconds
    /// since 1970.
    pub fn keep_timestamps_after(&self, micros: i64) {
        self.last_timestamp.fetch_max(micros, Ordering::Relaxed);
    }

    /// Waits while memtables or the log are too full; a write calls it first.
    pub async fn admit(&self) {
        if !self.memory.admits_at_once() {
            // deletions of entries that searches find stale fill memory, too, without a write that
            // would ask for a flush
            self.flush_largest();
            self.memory.admit(&self.env).await;
        }
        if !self.log.admits_at_once() {
            self.log.admit().await;
        }
    }

    /// Whether [`Self::admit`] would not wait for a flush at this moment. For a write that has been
    /// admitted, and has waited for something else since.
    pub fn has_room(&self) -> bool {
        !self.memory.is_full()
    }

    /// Asks for the flush of the table with the most in memtables that take writes; of none while
    /// another flush is due. A table whose flush has failed is left out until a try succeeds; the
    /// directories of other tables may be on another disk.
    pub(crate) fn flush_largest(&self) {
        if self.options.read_only {
            return;
        }
        let Some(failed) = self.flusher.failed() else { return };
        let has_failed = |store: &Arc<TableStore>| failed.iter().any(|other| Arc::ptr_eq(store, other));
        let mut sizes = Vec::new();
        for store in self.tables().into_iter().filter(|store| !has_failed(store)) {
            sizes.push((store.view().active_size(), store));
        }
        let active: usize = sizes.iter().map(|(size, _)| *size).sum();
        if !failed.is_empty() && !self.memory.wants_flush_beside_failed(active) {
            return;
        }
        let largest = sizes.into_iter().max_by_key(|(size, _)| *size);
        if let Some((_, store)) = largest.filter(|(size, _)| *size > 0) {
            self.flusher.request(&store, None);
        }
    }

    /// Flushes a table; completes when it is done.
    pub fn flush(&self, store: &Arc<TableStore>) -> impl Future<Output = Result<(), StorageError>> + use<> {
        let (sender, receiver) = oneshot::channel();
        match self.options.read_only {
            true => drop(sender.send(Err(StorageError::ReadOnly))),
            false => self.flusher.request(store, Some(sender)),
        }
        await_result(receiver)
    }

    /// Flushes memtables of a table that are frozen, and those frozen before; completes when they
    /// are written, or with the error of the first try (the flusher goes on trying).
    pub(crate) fn flush_frozen(
        &self,
        store: &Arc<TableStore>,
        set: &Arc<FlushSet>,
    ) -> impl Future<Output = Result<(), StorageError>> + use<> {
        let (sender, receiver) = oneshot::channel();
        self.flusher.request_set(store, Arc::clone(set), Some(sender));
        await_result(receiver)
    }

    /// Tries of flushes, and compactions that a strategy chose, that have failed since the start.
    pub fn background_failures(&self) -> u64 {
        self.flusher.failures.get() + self.compactions.failed_unasked.load(Ordering::Relaxed)
    }

    /// Compacts all SSTables of a table as its strategy does it, each repair state for itself;
    /// completes when it is done.
    pub fn compact(&self, store: &Arc<TableStore>) -> impl Future<Output = Result<(), StorageError>> + use<> {
        let ended = self.operate(store, Operation::new(Kind::MajorCompaction, Work::Major { split: false }, 0));
        async move { ended.await.map(drop) }
    }

    /// Carries out an operation on the SSTables of a table; completes when it is done.
    pub fn operate(
        &self,
        store: &Arc<TableStore>,
        operation: Operation,
    ) -> impl Future<Output = Result<Ended, StorageError>> + use<> {
        let (sender, receiver) = oneshot::channel();
        match self.options.read_only {
            true => drop(sender.send(Err(StorageError::ReadOnly))),
            false => self.compactor.request(store, operation, sender),
        }
        await_result(receiver)
    }

    /// Whether the node is draining, or drained.
    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Acquire)
    }

    /// Whether background work has to end as soon as it can.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    /// Stops background work (the process is about to end).
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        self.compactor.wake();
    }

    /// Sets the host id, which the statistics of new SSTables name. It is stored in one of the
    /// tables, so it is known only after the start.
    pub fn set_host_id(&self, host_id: [u8; 16]) {
        let _ = self.host_id.set(host_id);
    }

    /// The host id of this node; None: it is not known yet.
    pub fn host_id(&self) -> Option<[u8; 16]> {
        self.host_id.get().copied()
    }

    /// Bytes a second that compaction may write; 0: no limit.
    pub fn compaction_rate(&self) -> u64 {
        self.compaction_rate.load(Ordering::Relaxed)
    }

    /// Changes the bytes a second that compaction may write; 0: no limit.
    pub fn set_compaction_rate(&self, bytes_per_second: u64) {
        self.compaction_rate.store(bytes_per_second, Ordering::Relaxed);
    }
}

async fn await_result<T>(receiver: oneshot::Receiver<Result<T, StorageError>>) -> Result<T, StorageError> {
    match receiver.await {
        Ok(result) => result,
        Err(_) => Err(StorageError::Refused { why: "the node is shutting down".into() }),
    }
}

/// A waker by which a future wakes one of the engine's background tasks.
struct Waking {
    engine: Weak<Engine>,
    wake: fn(&Engine),
}

impl std::task::Wake for Waking {
    fn wake(self: Arc<Self>) {
        if let Some(engine) = self.engine.upgrade() {
            (self.wake)(&engine);
        }
    }
}

/// The waker of a background task; `wake` has it make a step.
pub(crate) fn waker(engine: &Arc<Engine>, wake: fn(&Engine)) -> Waker {
    Waker::from(Arc::new(Waking { engine: Arc::downgrade(engine), wake }))
}
