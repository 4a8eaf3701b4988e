//! Building an index from the rows that its table already has: one background task, one index
//! after the other, a slice of rows at a time.
//!
//! 1. The table is read from the state it has when the build begins: later writes go to the index
//!    by itself.
//! 2. Each row's entries go into the index's memtables; where those fill up, they are flushed with
//!    the base's.
//! 3. At the end both are flushed; then the index is complete, and `system."IndexInfo"` says so. A
//!    build that a crash or a stop ends begins anew at the next start.
//!
//! An index that is made again (`nodetool rebuild_index`) answers queries meanwhile.
//! Agrees with `CassandraIndex.buildBlocking` and `CollatedViewIndexBuilder`.

use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use env::Next;
use rows::{PartitionHead, PartitionStream, Unfiltered};
use tokio::sync::oneshot;

use super::attached::build::{AttachedBuild, StepOutcome};
use super::built;
use crate::engine::{self, Engine};
use crate::error::StorageError;
use crate::requests::index_builds::{self, Held, IndexBuilder, Request};
use crate::requests::progress::Running;
use crate::strategy::kind::Kind;
use crate::table::TableStore;
use crate::table::entries::{self, Change, Entry};
use crate::table::indexes::IndexStore;

/// Most rows of a slice of work.
const SLICE_ROWS: usize = 1024;
/// Pause while memtables are full.
const PAUSE: Duration = Duration::from_millis(10);
/// Pause before a build that failed is tried again.
const RETRY: Duration = Duration::from_secs(5);

/// A build under way, by the kind of its index.
enum Work {
    Hidden(Box<Build>),
    Attached(Box<AttachedBuild>),
}

impl Work {
    /// Whether the index, or its table, was dropped.
    fn is_dropped(&self) -> bool {
        match self {
            Self::Hidden(build) => build.is_dropped(),
            Self::Attached(build) => build.is_dropped(),
        }
    }

    /// Gives up the build. What it has made does not count.
    fn abandon(self, engine: &Engine) -> Request {
        let (request, progress) = match self {
            Self::Hidden(build) => {
                let Build { request, progress, .. } = *build;
                (request, progress)
            }
            Self::Attached(build) => {
                let AttachedBuild { request, progress, .. } = *build;
                (request, progress)
            }
        };
        engine.compactions.aborted(&progress);
        request
    }
}

/// A build of a legacy index under way.
struct Build {
    request: Request,
    index: Arc<IndexStore>,
    stream: Box<dyn PartitionStream>,
    head: Option<PartitionHead>,
    progress: Arc<Running>,
    /// Rows that were passed so far.
    rows: u64,
    /// Bytes of the table on disk for which a passed row counts in the progress.
    bytes_per_row: u64,
    /// The flush of base and index, once all rows were passed.
    flush: Option<Flush>,
}

type Flush = Pin<Box<dyn Future<Output = Result<(), StorageError>> + Send>>;

impl IndexBuilder {
    /// Registers the task.
    pub fn start(engine: &Arc<Engine>) {
        let weak: Weak<Engine> = Arc::downgrade(engine);
        let mut current: Option<Work> = None;
        let step = move || match weak.upgrade() {
            None => Next::Done,
            Some(engine) => step(&engine, &mut current),
        };
        let wake = engine.env.tasks.background("index-build", Box::new(step));
        wake.wake();
        *engine.index_builder.wake.lock().expect("no panic inside") = Some(wake);
    }

    /// Asks for an index to be made again; completes when it has been.
    pub fn rebuild(
        &self,
        engine: &Engine,
        base: &Arc<TableStore>,
        index: &str,
    ) -> Result<impl Future<Output = Result<(), StorageError>> + use<>, StorageError> {
        let (sender, receiver) = oneshot::channel();
        built::store(engine, &base.table().keyspace, index, false)?;
        self.push(Request { base: Arc::clone(base), index: index.to_owned(), done: Some(sender) });
        Ok(async move {
            receiver.await.unwrap_or_else(|_| Err(StorageError::Refused { why: "the node is shutting down".into() }))
        })
    }
}

/// Asks for indexes of a table to be made again, because SSTables came whose rows they do not
/// have. `held`: kept indexes from being noted as complete while the SSTables came; None: as far
/// as was known, the SSTables came with their entries.
pub(crate) fn request_rebuild(
    engine: &Engine,
    base: &Arc<TableStore>,
    indexes: &[Arc<IndexStore>],
    held: Option<Held<'_>>,
) {
    // No build notes an index to be complete while another build of it waits. No build begins
    // before the note is taken away: it could have ended before that, and its own note would be
    // taken away. The index would be made once more at the next start, and answer no query until
    // then.
    let mut queue = engine.index_builder.queue.lock().expect("no panic inside");
    indexes.iter().for_each(|index| index_builds::add(&mut queue, base, index.name()));
    let doubted = built::mark_incomplete(engine, base, indexes);
    if let Some(held) = held {
        held.end(&mut queue);
    }
    drop(queue);
    engine.index_builder.wake();
    if let Err(error) = doubted {
        tracing::warn!(table = base.name(), %error, "an index that is made again may be noted to be complete");
    }
}

fn step(engine: &Arc<Engine>, current: &mut Option<Work>) -> Next {
    if engine.is_stopped() || engine.is_draining() {
        *current = None;
        return Next::Idle;
    }
    match current.take() {
        None => {
            let Some(request) = engine.index_builder.queue.lock().expect("no panic inside").pop_front() else {
                return Next::Idle;
            };
            begin(engine, request, current)
        }
        // nobody needs its rest, and other builds wait
        Some(work) if work.is_dropped() => report_dropped(work.abandon(engine)),
        Some(Work::Hidden(build)) => {
            let mut build = Some(*build);
            let next = step_hidden(engine, &mut build);
            *current = build.map(|build| Work::Hidden(Box::new(build)));
            next
        }
        Some(Work::Attached(build)) => step_attached(engine, build, current),
    }
}

/// A slice of the build of an attached index.
fn step_attached(engine: &Arc<Engine>, mut build: Box<AttachedBuild>, current: &mut Option<Work>) -> Next {
    match build.step(engine) {
        Ok(came @ (StepOutcome::Again | StepOutcome::Waits)) => {
            *current = Some(Work::Attached(build));
            if matches!(came, StepOutcome::Again) { Next::Again } else { Next::Idle }
        }
        Ok(StepOutcome::Done) => {
            let AttachedBuild { request, progress, .. } = *build;
            ended(engine, request, &progress)
        }
        Err(error) => {
            let AttachedBuild { request, progress, .. } = *build;
            engine.compactions.aborted(&progress);
            failed(engine, request, error)
        }
    }
}

fn ended(engine: &Engine, request: Request, progress: &Arc<Running>) -> Next {
    engine.compactions.ended(progress, None);
    tracing::info!(index = request.index, table = request.base.name(), "an index is built");
    if let Some(done) = request.done {
        // who asked may have gone
        let _ = done.send(Ok(()));
    }
    Next::Again
}

fn step_hidden(engine: &Arc<Engine>, current: &mut Option<Build>) -> Next {
    let Some(build) = current else { return Next::Again };
    if !engine.memory.admits_at_once() {
        engine.flush_largest();
        return Next::After(PAUSE);
    }
    let ended = match build.advance(engine) {
        Ok(true) => None,
        Ok(false) => match build.flushed(engine) {
            Poll::Pending => return Next::Idle,
            Poll::Ready(flushed) => Some(flushed.and_then(|()| build.complete(engine))),
        },
        Err(error) => Some(Err(error)),
    };
    match (ended, current.take()) {
        (Some(result), Some(build)) => build.end(engine, result),
        (None, build) => {
            *current = build;
            Next::Again
        }
        (Some(_), None) => Next::Again,
    }
}

fn begin(engine: &Arc<Engine>, request: Request, current: &mut Option<Work>) -> Next {
    let is_dropped = request.base.dropped.load(Ordering::Acquire);
    let index = request.base.view().index(&request.index).filter(|_| !is_dropped).cloned();
    let Some(index) = index else { return report_dropped(request) };
    if index.definition.is_attached() {
        *current = Some(Work::Attached(Box::new(AttachedBuild::open(engine, request, index))));
        return Next::Again;
    }
    match Build::open(engine, request, index) {
        Ok(build) => *current = Some(Work::Hidden(Box::new(build))),
        Err((request, error)) => return failed(engine, request, error),
    }
    Next::Again
}

/// Tells those who wait for a build that its index does not exist any more.
fn report_dropped(request: Request) -> Next {
    let Request { base, index, done } = request;
    if let Some(done) = done {
        let why = format!("the index {index} of {} was dropped meanwhile", base.name());
        // who asked may have gone
        let _ = done.send(Err(StorageError::Refused { why }));
    }
    Next::Again
}

fn failed(engine: &Engine, mut request: Request, error: StorageError) -> Next {
    tracing::error!(index = request.index, table = request.base.name(), %error, "an index cannot be built");
    match request.done.take() {
        // who asked may ask again, or have gone
        Some(done) => {
            let _ = done.send(Err(error));
            Next::Again
        }
        None => {
            engine.index_builder.queue.lock().expect("no panic inside").push_back(request);
            Next::After(RETRY)
        }
    }
}

impl Build {
    fn open(engine: &Engine, request: Request, index: Arc<IndexStore>) -> Result<Self, (Request, StorageError)> {
        let now = engine.env.clock.now_seconds();
        let stream = match crate::read::read_all(&request.base, now) {
            Ok(stream) => stream,
            Err(error) => return Err((request, error.into())),
        };
        let view = request.base.view();
        let total: u64 = view.sstables.iter().map(|sstable| sstable.data_length()).sum();
        let rows: u64 = view.sstables.iter().map(|sstable| sstable.statistics().stats.total_rows).sum();
        let table = request.base.table();
        tracing::info!(index = request.index, table = request.base.name(), "an index is being built");
        let progress = engine.compactions.begin(Running {
            id: types::timeuuid::from_micros(engine.env.clock.now_micros(), engine.env.random.next_u64()),
            table_id: index.store.id,
            keyspace: table.keyspace.clone(),
            table: table.name.clone(),
            kind: Kind::IndexBuild,
            automatic: false,
            sstables: view.sstables.len(),
            total,
            done: Default::default(),
            stop: Default::default(),
        });
        let bytes_per_row = total / rows.max(1);
        Ok(Self { request, index, stream, head: None, progress, rows: 0, bytes_per_row, flush: None })
    }

    /// Does a slice of work. False: all rows were passed.
    fn advance(&mut self, engine: &Engine) -> Result<bool, StorageError> {
        if self.flush.is_some() {
            return Ok(false);
        }
        if self.progress.stop.load(Ordering::Relaxed) {
            let why = format!("Compaction interrupted: {}@{}", Kind::IndexBuild.name(), self.request.base.name());
            return Err(StorageError::Refused { why });
        }
        let now = engine.env.clock.now_seconds();
        let mut found = Vec::new();
        for _ in 0..SLICE_ROWS {
            let Some(head) = &self.head else {
                let Some(head) = self.stream.next_partition()? else { return Ok(false) };
                if let Some(row) = &head.static_row {
                    let change = Change { key: &head.key.key, before: None, after: row, is_static: true };
                    entries::of_change(&self.index.definition, &change, now, &mut found);
                    self.apply(engine, &head, &mut found);
                }
                self.head = Some(head);
                continue;
            };
            match self.stream.next_unfiltered()? {
                None => self.head = None,
                Some(Unfiltered::Marker(_)) => {}
                Some(Unfiltered::Row(row)) => {
                    self.rows += 1;
                    let change = Change { key: &head.key.key, before: None, after: &row, is_static: false };
                    entries::of_change(&self.index.definition, &change, now, &mut found);
                    self.apply(engine, head, &mut found);
                }
            }
        }
        let done = (self.rows * self.bytes_per_row).min(self.progress.total);
        self.progress.done.store(done, Ordering::Relaxed);
        Ok(true)
    }

    fn apply(&self, engine: &Engine, head: &PartitionHead, found: &mut Vec<Entry>) {
        let added = self.index.apply(self.request.base.shards.of(head.key.token), found);
        found.clear();
        if added > 0 && engine.memory.wants_flush() {
            engine.flush_largest();
        }
    }

    fn is_dropped(&self) -> bool {
        self.index.store.dropped.load(Ordering::Acquire) || self.request.base.dropped.load(Ordering::Acquire)
    }

    /// Waits until the entries are on disk; only then is the index noted as built.
    fn flushed(&mut self, engine: &Arc<Engine>) -> Poll<Result<(), StorageError>> {
        if self.is_dropped() {
            return Poll::Ready(Ok(()));
        }
        let flush = self.flush.get_or_insert_with(|| Box::pin(engine.flush(&self.request.base)));
        let waker = engine::waker(engine, |engine| engine.index_builder.wake());
        flush.as_mut().poll(&mut Context::from_waker(&waker))
    }

    fn complete(&self, engine: &Engine) -> Result<(), StorageError> {
        let _schema_lock = built::lock_schema_changes(engine);
        if self.is_dropped() {
            return Ok(());
        }
        let Request { base, index, .. } = &self.request;
        built::note_complete(engine, base, index)?;
        self.index.state.set_built(true);
        Ok(())
    }

    fn end(self, engine: &Engine, result: Result<(), StorageError>) -> Next {
        match result {
            Ok(()) => ended(engine, self.request, &self.progress),
            Err(error) => {
                engine.compactions.aborted(&self.progress);
                failed(engine, self.request, error)
            }
        }
    }
}
