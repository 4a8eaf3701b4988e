//! A task that the compactor has under way, with its marks on SSTables and its place among the
//! running compactions.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};

use crate::commitlog::{LogPosition, WaitDurable};
use crate::compaction::choice::{note_failure, suspect, unmark};
use crate::compaction::rewrite_statistics::{StatisticsChange, StatisticsRewrite};
use crate::compaction::run::Merge;
use crate::compaction::task::{Start, Task};
use crate::engine::Engine;
use crate::error::StorageError;
use crate::requests::operations::{Item, Work};
use crate::requests::progress::{Finished, Running};
use crate::scrub::Scrub;
use crate::strategy::output::Output;
use crate::table::TableStore;
use crate::verify::Verification;

/// A task under way, and its marks.
pub struct Active {
    /// The table.
    pub store: Arc<TableStore>,
    /// The operation that it is part of; None: a strategy chose it.
    pub operation: Option<u64>,
    item: Item,
    progress: Arc<Running>,
    task: Box<dyn Task>,
    stage: Stage,
}

/// How far a task is.
enum Stage {
    /// There may be more slices of work.
    Working,
    /// Nothing is left of its SSTables. A flush writes the records of the table up to this
    /// position that memtables hold.
    Flushing(LogPosition, Pin<Box<dyn Future<Output = Result<(), StorageError>> + Send>>),
    /// Waits until the record is durable that the log has nothing of the table up to there.
    Recording(WaitDurable),
}

/// The result of a slice of work.
pub enum Advanced {
    /// Some work was done; the bytes count against the throughput.
    Worked(u64),
    /// Nothing can be done yet.
    Waits,
    /// Nothing is left to do.
    Ended,
}

impl Active {
    /// Begins the task. After an error the inputs are free again; those that a strategy chose are
    /// not chosen again for a while.
    pub fn start(engine: &Arc<Engine>, start: Start) -> Result<Self, StorageError> {
        let Start { store, operation, kind, work, mut item } = start;
        let opened: Result<Box<dyn Task>, StorageError> = match work {
            Work::Chosen
            | Work::Major { .. }
            | Work::Named
            | Work::Rewrite
            | Work::GarbageCollect { .. }
            | Work::Anticompact => match statistics_change(&item) {
                Some(change) => StatisticsRewrite::open(&store, &item, change).map(|task| Box::new(task) as _),
                None => Merge::open(engine, &store, &mut item, work).map(|task| Box::new(task) as _),
            },
            Work::Verify(options) => Verification::open(engine, &store, &item, options).map(|task| Box::new(task) as _),
            Work::Scrub(options) => Scrub::open(engine, &store, &item, options).map(|task| Box::new(task) as _),
        };
        let task = opened.inspect_err(|error| {
            if operation.is_none() {
                note(engine, &store, &item, error);
            } else {
                note_damage(&store, error);
            }
            unmark(&store, &item.sstables);
        })?;
        let id = types::timeuuid::from_micros(engine.env.clock.now_micros(), engine.env.random.next_u64());
        let table = store.table();
        let progress = engine.compactions.begin(Running {
            id,
            table_id: table.id,
            keyspace: table.keyspace.clone(),
            table: table.name.clone(),
            kind,
            automatic: operation.is_none(),
            sstables: item.sstables.len() + usize::from(item.left_out.is_some()),
            total: item.sstables.iter().map(|sstable| sstable.stored_length()).sum(),
            done: Default::default(),
            stop: Default::default(),
        });
        Ok(Self { store, operation, item, progress, task, stage: Stage::Working })
    }

    /// Whether the task has to end: an operator wants it to, or its table or index was dropped.
    pub fn is_stopped(&self) -> bool {
        self.progress.stop.load(Ordering::Relaxed) || self.store.dropped.load(Ordering::Acquire)
    }

    /// Does a slice of the work.
    pub fn advance(&mut self, engine: &Engine) -> Result<Advanced, StorageError> {
        if self.is_stopped() || engine.is_stopped() {
            let (running, store) = (&self.progress, self.store.name());
            let done = running.done.load(Ordering::Relaxed);
            let why =
                format!("Compaction interrupted: {}({done} / {} bytes)@{store}", running.kind.name(), running.total);
            return Err(StorageError::Refused { why });
        }
        if let Stage::Working = self.stage {
            if self.lacks_memory(engine) {
                return Ok(Advanced::Waits);
            }
            if let Some(bytes) = self.task.advance()? {
                match self.task.passed() {
                    Some(passed) => self.progress.done.store(passed, Ordering::Relaxed),
                    None => _ = self.progress.done.fetch_add(bytes, Ordering::Relaxed),
                }
                return Ok(Advanced::Worked(bytes));
            }
            // the hidden table of an index has nothing in the log
            let purged = self.task.purged_log().filter(|_| engine.table(self.store.id).is_some());
            match purged {
                None => return Ok(Advanced::Ended),
                Some(position) if crate::truncate::is_in_memtables(&self.store, position) => {
                    self.stage = Stage::Flushing(position, Box::pin(engine.flush(&self.store)));
                }
                Some(position) => self.record(engine, position)?,
            }
        }
        self.await_record(engine)
    }

    /// Whether the compaction has to wait because memtables are full. A compaction of a table with
    /// legacy indexes writes deletions of entries to the indexes' memtables. Asks for a flush
    /// before memtables are full.
    fn lacks_memory(&self, engine: &Engine) -> bool {
        if self.store.view().indexes.iter().all(|index| index.definition.is_attached()) {
            return false;
        }
        if engine.memory.wants_flush() {
            engine.flush_largest();
        }
        engine.memory.is_full()
    }

    fn record(&mut self, engine: &Engine, purged: LogPosition) -> Result<(), StorageError> {
        crate::truncate::record_purged(engine, &self.store, purged)?;
        self.stage = Stage::Recording(engine.log.sync());
        Ok(())
    }

    /// Looks whether the record of the purge is durable. No task is woken when it becomes so: the
    /// worker asks again.
    fn await_record(&mut self, engine: &Engine) -> Result<Advanced, StorageError> {
        let mut context = Context::from_waker(Waker::noop());
        loop {
            match &mut self.stage {
                Stage::Working => return Ok(Advanced::Ended),
                Stage::Flushing(position, flush) => {
                    let position = *position;
                    match flush.as_mut().poll(&mut context) {
                        Poll::Pending => return Ok(Advanced::Waits),
                        Poll::Ready(flushed) => flushed?,
                    }
                    self.record(engine, position)?;
                }
                Stage::Recording(recorded) => {
                    return match Pin::new(recorded).poll(&mut context) {
                        Poll::Pending => Ok(Advanced::Waits),
                        Poll::Ready(durable) => durable.map(|()| Advanced::Ended).map_err(StorageError::from),
                    };
                }
            }
        }
    }

    /// Puts the result into the view; gives lines for the operator.
    pub fn finish(self, engine: &Arc<Engine>) -> Result<Vec<String>, StorageError> {
        let Self { store, operation, item, progress, task, .. } = self;
        let result = task.finish(engine);
        if let Err(error) = &result
            && operation.is_none()
        {
            note(engine, &store, &item, error);
        }
        unmark(&store, &item.sstables);
        match result {
            Ok(outcome) => {
                let finished = outcome.written.map(|written| Finished {
                    id: progress.id,
                    keyspace: progress.keyspace.clone(),
                    table: progress.table.clone(),
                    at_millis: engine.env.clock.now_micros() / 1000,
                    bytes_in: progress.total,
                    bytes_out: written.bytes,
                    kind: progress.kind,
                    merged: written.merged,
                });
                if let Some(finished) = &finished {
                    store.metrics.bytes_compacted.add(finished.bytes_out);
                }
                engine.compactions.ended(&progress, finished);
                Ok(outcome.lines)
            }
            Err(error) => {
                engine.compactions.aborted(&progress);
                Err(error)
            }
        }
    }

    /// Leaves everything as it was, after an error.
    pub fn abandon(self, engine: &Engine, error: &StorageError) {
        if self.operation.is_some() || self.is_stopped() || engine.is_stopped() {
            note_damage(&self.store, error);
        } else {
            note(engine, &self.store, &self.item, error);
        }
        self.task.abandon();
        unmark(&self.store, &self.item.sstables);
        engine.compactions.aborted(&self.progress);
    }
}

/// The change of an item's only SSTable that stays as it is but for its statistics: another level,
/// or a repair session that takes all of it. Statistics of old versions are not written: the
/// SSTable is written again instead.
fn statistics_change(item: &Item) -> Option<StatisticsChange> {
    let [single] = item.sstables.as_slice() else { return None };
    let change = match (item.output, &item.anticompacted) {
        (Some(Output::LevelOnly { level }), _) => StatisticsChange::Level(level),
        (_, Some(anticompacted)) => {
            let (first, last) = (single.first_key().token, single.last_key().token);
            let is_whole = single.has_tokens() && anticompacted.ranges.contains_all(first, last);
            is_whole.then_some(StatisticsChange::Pending(anticompacted.session))?
        }
        _ => return None,
    };
    single.descriptor().version.has_repair_sessions_and_checksums().then_some(change)
}

/// Notes why a compaction that a strategy chose has failed: otherwise the strategy would choose
/// the same SSTables again at once, and for ever. No operator has asked for the compaction and
/// could be told, so that the failure is counted as well.
fn note(engine: &Engine, store: &TableStore, item: &Item, error: &StorageError) {
    engine.compactions.failed_unasked.fetch_add(1, Ordering::Relaxed);
    if !note_damage(store, error) {
        note_failure(store, &item.sstables, error);
    }
}

/// Notes the SSTable that cannot be read, according to an error: its bytes are corrupt, or the
/// device fails. False: the error is of no SSTable of the table.
fn note_damage(store: &TableStore, error: &StorageError) -> bool {
    match error {
        StorageError::Corrupt(corruption) => suspect(store, &corruption.path),
        StorageError::Io { path, .. } => suspect(store, path),
        _ => false,
    }
}
