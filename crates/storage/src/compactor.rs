//! The compactor: background tasks, each of which carries out one
//! [`Task`](crate::compaction::task::Task) after the other, a slice of work at a time, so that
//! throttling is a pause between slices.
//!
//! Operations of operators come before compactions that a strategy would choose. An operation
//! begins when it has marked its SSTables; it stops compactions of the table that a strategy
//! chose, waits for them, and is refused while another operation has SSTables of the table. Agrees
//! with `CompactionManager.parallelAllSSTableOperation` and
//! `ColumnFamilyStore.runWithCompactionsDisabled`.

mod active;

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use env::{Next, Wake};

use crate::compaction::choice::{TakenInputs, choose_and_mark, take_inputs, unmark};
use crate::compaction::task::Start;
use crate::engine::Engine;
use crate::error::StorageError;
use crate::requests::operations::{Compactor, Ended, QueuedOperation, Status};
use crate::table::TableStore;
use active::{Active, Advanced};

/// Pause after a compaction that failed, before the next is chosen.
const AFTER_FAILURE: Duration = Duration::from_secs(5);
/// Most compactions that run at a time.
const CONCURRENCY_MAX: usize = 64;
/// Shortest pause. A shorter one is added to the next.
const PAUSE_MIN: Duration = Duration::from_millis(1);
/// Longest pause that one slice of work adds. Otherwise a slice that passes over a huge deleted
/// partition at once would keep all compactions waiting for long after it.
const PAUSE_OF_SLICE_MAX: Duration = Duration::from_secs(60);

impl QueuedOperation {
    fn has_room(&self) -> bool {
        self.operation.jobs == 0 || self.running < self.operation.jobs
    }

    fn is_over(&self) -> bool {
        self.running == 0 && self.items.as_ref().is_some_and(VecDeque::is_empty)
    }

    /// Notes a failure of a part of the operation.
    fn note(&mut self, error: StorageError) {
        self.failure = Some(match self.failure.take() {
            None => error,
            Some(other) => StorageError::Refused { why: format!("{other}\n{error}") },
        });
    }

    /// Notes a failure, and begins no further part.
    fn give_up(&mut self, error: StorageError) {
        for item in self.items.iter_mut().flat_map(|items| items.drain(..)) {
            unmark(&self.store, &item.sstables);
        }
        self.failure.get_or_insert(error);
    }

    fn end(self, status: Status) {
        assert_eq!(self.running, 0, "an operation ends when its last part has");
        assert!(self.items.as_ref().is_none_or(VecDeque::is_empty), "an operation that ends leaves nothing marked");
        let result = match self.failure {
            Some(error) => Err(error),
            None => Ok(Ended { status, lines: self.lines }),
        };
        // who asked may have gone
        let _ = self.done.send(result);
    }
}

impl Compactor {
    /// Registers the tasks.
    pub fn start(engine: &Arc<Engine>) {
        let started = engine.compactor.set_concurrency(engine, engine.options.concurrent_compactors);
        if let Err(error) = started {
            tracing::error!(%error, "fewer compactions run at a time than concurrent_compactors asks for");
        }
    }

    /// Makes the compactor look for work now and then, also when nothing is flushed.
    pub fn start_periodic_checks(&self, engine: &Arc<Engine>, pause: Duration) {
        let weak: Weak<Engine> = Arc::downgrade(engine);
        let step = move || match weak.upgrade().filter(|engine| !engine.is_stopped()) {
            None => Next::Done,
            Some(engine) => {
                engine.compactor.wake();
                Next::After(pause)
            }
        };
        let wake = engine.env.tasks.background("compaction-check", Box::new(step));
        wake.wake();
        *self.looking.lock().expect("no panic inside") = Some(wake);
    }

    /// Changes how many compactions may run at a time. Compactions beyond the new number come to
    /// their end. Where the system has no thread for all of them, as many run as there are threads
    /// for, and the error says so.
    pub fn set_concurrency(&self, engine: &Arc<Engine>, concurrency: usize) -> Result<(), StorageError> {
        let wanted = concurrency.clamp(1, CONCURRENCY_MAX);
        let mut wakes = self.wakes.lock().expect("no panic inside");
        let started = Self::start_threads(engine, &mut wakes, wanted);
        self.concurrency.store(wanted.min(wakes.len()), Ordering::Relaxed);
        wakes.iter().for_each(Wake::wake);
        started.map_err(|error| {
            let why = format!("{} compactions run at a time, there is no thread for more: {error}", wakes.len());
            StorageError::Refused { why }
        })
    }

    /// Starts threads until there are `concurrency`.
    fn start_threads(engine: &Arc<Engine>, wakes: &mut Vec<Wake>, concurrency: usize) -> io::Result<()> {
        for index in wakes.len()..concurrency {
            let weak: Weak<Engine> = Arc::downgrade(engine);
            let mut active: Option<Active> = None;
            let step = move || match weak.upgrade() {
                None => Next::Done,
                Some(engine) => step(&engine, index, &mut active),
            };
            wakes.push(engine.env.tasks.try_background(&format!("compact-{index}"), Box::new(step))?);
        }
        Ok(())
    }

    /// How long to wait after so many bytes, so that all tasks together stay within the rate.
    /// Zero: there is no rate.
    fn pace(&self, engine: &Engine, bytes: u64) -> Duration {
        let nanos = u128::from(bytes) * 1_000_000_000;
        let Some(nanos) = nanos.checked_div(u128::from(engine.compaction_rate())) else { return Duration::ZERO };
        let nanos = u64::try_from(nanos.min(PAUSE_OF_SLICE_MAX.as_nanos())).unwrap_or(u64::MAX);
        let now = engine.env.clock.monotonic_nanos();
        let until = |paced: u64| paced.max(now).saturating_add(nanos);
        let paced = self.paced_until.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |paced| Some(until(paced)));
        Duration::from_nanos(until(paced.unwrap_or(now)).saturating_sub(now))
    }

    /// Ends operations on tables that were dropped. Their SSTables that no task has yet are free
    /// again; tasks notice the drop at their next slice, which comes at once.
    pub(crate) fn end_dropped(&self) {
        let mut queue = self.queue.lock().expect("no panic inside");
        let mut index = 0;
        while index < queue.operations.len() {
            let under_way = &mut queue.operations[index];
            if under_way.store.dropped.load(Ordering::Acquire) {
                let why = format!("{} was dropped meanwhile", under_way.store.name());
                under_way.give_up(StorageError::Refused { why });
            }
            if under_way.is_over() {
                queue.operations.remove(index).end(Status::Successful);
            } else {
                index += 1;
            }
        }
        drop(queue);
        self.wake();
    }

    /// Called when SSTables become free: an operation may have waited for them, or the removal of
    /// a dropped table.
    fn wake_for_waiting(&self, engine: &Engine) {
        engine.dropper.wake();
        let queue = self.queue.lock().expect("no panic inside");
        let waits = queue.operations.iter().any(|under_way| under_way.items.is_none());
        drop(queue);
        if waits {
            self.wake();
        }
    }

    /// The next part of an operation; begins operations that can begin now.
    fn next(&self, engine: &Engine) -> Option<Start> {
        let mut queue = self.queue.lock().expect("no panic inside");
        let mut index = 0;
        while index < queue.operations.len() {
            if queue.operations[index].items.is_none() {
                begin(engine, &mut queue.operations, index);
            }
            let Some(under_way) = queue.operations.get_mut(index) else { break };
            let item = if under_way.has_room() { under_way.items.as_mut().and_then(VecDeque::pop_front) } else { None };
            if let Some(item) = item {
                under_way.running += 1;
                let (kind, work) = (under_way.operation.kind, under_way.operation.work);
                return Some(Start {
                    store: Arc::clone(&under_way.store),
                    operation: Some(under_way.id),
                    kind,
                    work,
                    item,
                });
            }
            if under_way.is_over() {
                queue.operations.remove(index).end(Status::Successful);
            } else {
                index += 1;
            }
        }
        None
    }

    /// Notes that a part of an operation has ended.
    fn ended(&self, id: Option<u64>, result: Result<Vec<String>, StorageError>) {
        let Some(id) = id else { return };
        let mut queue = self.queue.lock().expect("no panic inside");
        let Some(index) = queue.operations.iter().position(|under_way| under_way.id == id) else { return };
        let under_way = &mut queue.operations[index];
        assert!(under_way.running > 0, "a part of an operation ends once");
        under_way.running -= 1;
        match result {
            Ok(lines) => under_way.lines.extend(lines),
            // each is looked at for itself, and all are to be known
            Err(error) if under_way.operation.work.goes_on() => under_way.note(error),
            Err(error) => under_way.give_up(error),
        }
        if under_way.is_over() {
            queue.operations.remove(index).end(Status::Successful);
        }
    }

    /// Whether an operation waits for this table: then no strategy may choose for it.
    fn is_wanted(&self, store: &Arc<TableStore>) -> bool {
        let queue = self.queue.lock().expect("no panic inside");
        queue.operations.iter().any(|under_way| under_way.items.is_none() && Arc::ptr_eq(&under_way.store, store))
    }
}

/// Marks the SSTables of an operation, if no other operation has them. An operation that is
/// refused gets an error and is removed.
fn begin(engine: &Engine, operations: &mut Vec<QueuedOperation>, index: usize) {
    let under_way = &operations[index];
    let begun = |other: &QueuedOperation| other.items.is_some() && Arc::ptr_eq(&other.store, &under_way.store);
    let taken = if operations.iter().any(begun) {
        TakenInputs::Refused
    } else {
        take_inputs(&under_way.store, &under_way.operation, &engine.compactions)
    };
    match taken {
        TakenInputs::Items(items) => operations[index].items = Some(items.into()),
        TakenInputs::Wait => {}
        TakenInputs::Refused => {
            let under_way = operations.remove(index);
            tracing::info!(
                table = under_way.store.name(),
                kind = under_way.operation.kind.name(),
                "another operation has the SSTables of the table"
            );
            under_way.end(Status::UnableToCancel);
        }
    }
}

fn step(engine: &Arc<Engine>, index: usize, active: &mut Option<Active>) -> Next {
    let Some(current) = active else {
        if index >= engine.compactor.concurrency() {
            return Next::Idle;
        }
        *active = next_task(engine);
        return if active.is_some() { Next::Again } else { Next::Idle };
    };
    match current.advance(engine) {
        Ok(Advanced::Worked(bytes)) => match engine.compactor.pace(engine, bytes) {
            pause if pause >= PAUSE_MIN => Next::After(pause),
            _ => Next::Again,
        },
        Ok(Advanced::Waits) => Next::After(PAUSE_MIN),
        Ok(Advanced::Ended) => active.take().map_or(Next::Again, |active| finish(engine, active)),
        Err(error) => active.take().map_or(Next::Again, |active| abandon(engine, active, error)),
    }
}

fn finish(engine: &Arc<Engine>, active: Active) -> Next {
    let (operation, table, store) = (active.operation, active.store.name(), Arc::clone(&active.store));
    let result = active.finish(engine);
    let next = match &result {
        Ok(_) => Next::Again,
        Err(error) => {
            tracing::error!(table, %error, "a compaction failed at its end");
            inspect(engine, &store, operation, error);
            after_failure(operation)
        }
    };
    engine.compactor.ended(operation, result);
    engine.compactor.wake_for_waiting(engine);
    next
}

fn abandon(engine: &Arc<Engine>, active: Active, error: StorageError) -> Next {
    let (operation, table, stopped) = (active.operation, active.store.name(), active.is_stopped());
    let store = Arc::clone(&active.store);
    active.abandon(engine, &error);
    let next = if stopped {
        tracing::info!(table, %error, "a compaction was stopped");
        Next::Again
    } else {
        tracing::error!(table, %error, "a compaction ended early");
        inspect(engine, &store, operation, &error);
        after_failure(operation)
    };
    engine.compactor.ended(operation, Err(error));
    engine.compactor.wake_for_waiting(engine);
    next
}

/// Follows `disk_failure_policy`. Damage that an operation finds, a verification above all, is
/// only told to the operator who asked for it.
fn inspect(engine: &Engine, store: &TableStore, operation: Option<u64>, error: &StorageError) {
    if operation.is_none() || !matches!(error, StorageError::Corrupt(_)) {
        engine.inspect(store, error);
    }
}

/// The next step of a task after a failure. After a compaction that a strategy chose there is a
/// pause, because the strategy could choose the same again at once.
fn after_failure(operation: Option<u64>) -> Next {
    if operation.is_some() { Next::Again } else { Next::After(AFTER_FAILURE) }
}

/// The task that comes next: that of an operator, or else one that a table's strategy chooses.
fn next_task(engine: &Arc<Engine>) -> Option<Active> {
    while let Some(start) = engine.compactor.next(engine) {
        let (operation, table, store) = (start.operation, start.store.name(), Arc::clone(&start.store));
        match Active::start(engine, start) {
            Ok(active) => return Some(active),
            Err(error) => {
                tracing::error!(table, %error, "a compaction could not start");
                inspect(engine, &store, operation, &error);
                engine.compactor.ended(operation, Err(error));
            }
        }
    }
    if engine.is_draining() {
        return None;
    }
    let tables = engine.stores();
    let turn = engine.compactor.turn.load(Ordering::Relaxed) % tables.len().max(1);
    let in_turn = (turn..tables.len()).chain(0..turn);
    for index in in_turn {
        let Some(store) = tables.get(index) else { continue };
        let is_wanted = || store.auto_compaction.is_on(&store.table()) && !engine.compactor.is_wanted(store);
        // SSTables whose compaction cannot begin are left alone for a while: the next choice is of
        // others
        while is_wanted()
            && let Some(start) = choose_and_mark(store)
        {
            engine.compactor.turn.store(index + 1, Ordering::Relaxed);
            let table = store.name();
            match Active::start(engine, start) {
                Ok(active) => return Some(active),
                Err(error) => {
                    tracing::error!(table, %error, "a compaction could not start");
                    inspect(engine, store, None, &error);
                }
            }
        }
    }
    None
}
