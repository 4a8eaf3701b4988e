//! Building an attached index in the background: the components of every SSTable that lacks them,
//! or, for a rebuild, of all.
//!
//! 1. Memtables are flushed first: those from before the index have no entries of it, and the
//!    SSTable that a flush writes has its components.
//! 2. SSTables of the view are taken one after the other, some rows at a time, until none lacks the
//!    index. One that a compaction replaces meanwhile is passed over: what replaces it has its own.
//! 3. The index is complete, and `system."IndexInfo"` says so. A build that a crash or a stop ends
//!    goes on at the next start with the SSTables that are not done.
//!
//! Agrees with `org.apache.cassandra.index.sai.StorageAttachedIndexBuilder`.

use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use sstable::{Descriptor, SSTable};

use super::components_builder::ComponentsBuilder;
use crate::engine::{self, Engine};
use crate::error::StorageError;
use crate::index::built;
use crate::requests::index_builds::Request;
use crate::requests::progress::Running;
use crate::strategy::kind::Kind;
use crate::table::indexes::IndexStore;

/// Most rows of a slice of work.
const SLICE_ROWS: usize = 4096;

type Flush = Pin<Box<dyn Future<Output = Result<(), StorageError>> + Send>>;

/// A build under way.
pub struct AttachedBuild {
    pub request: Request,
    index: Arc<IndexStore>,
    pub progress: Arc<Running>,
    /// The flush with which the build begins; None: it has ended, or was not begun.
    flush: Option<Flush>,
    is_flushed: bool,
    /// SSTables whose components are made again although they have some.
    again: BTreeSet<Descriptor>,
    builder: Option<ComponentsBuilder>,
}

/// The outcome of a slice of work.
pub enum StepOutcome {
    /// There is more to do.
    Again,
    /// A flush is waited for.
    Waits,
    /// The index is built.
    Done,
}

impl AttachedBuild {
    /// Begins a build.
    pub fn open(engine: &Engine, request: Request, index: Arc<IndexStore>) -> Self {
        let (view, table) = (request.base.view(), request.base.table());
        // who asks and waits wants all of it made again
        let is_rebuild = request.done.is_some();
        let is_there = |sstable: &&Arc<SSTable>| sstable.attached().has(index.name());
        let again = view.sstables.iter().filter(|sstable| is_rebuild && is_there(sstable));
        let again = again.map(|sstable| sstable.descriptor().clone()).collect();
        tracing::info!(index = request.index, table = request.base.name(), "an index is being built");
        // what was written since the index is there has its entries in memory
        let is_built = index.state.is_built();
        let progress = engine.compactions.begin(Running {
            id: types::timeuuid::from_micros(engine.env.clock.now_micros(), engine.env.random.next_u64()),
            table_id: request.base.id,
            keyspace: table.keyspace.clone(),
            table: table.name.clone(),
            kind: Kind::IndexBuild,
            automatic: false,
            sstables: view.sstables.len(),
            total: view.sstables.iter().map(|sstable| sstable.data_length()).sum(),
            done: Default::default(),
            stop: Default::default(),
        });
        Self { request, index, progress, flush: None, is_flushed: is_built, again, builder: None }
    }

    /// Does a slice of work.
    pub fn step(&mut self, engine: &Arc<Engine>) -> Result<StepOutcome, StorageError> {
        let base = &self.request.base;
        if self.progress.stop.load(Ordering::Relaxed) {
            let why = format!("Compaction interrupted: {}@{}", Kind::IndexBuild.name(), base.name());
            return Err(StorageError::Refused { why });
        }
        if let Some(waits) = self.flush(engine)? {
            return Ok(waits);
        }
        let Some(mut builder) = self.builder.take() else { return self.begin_next(engine) };
        if builder.advance(SLICE_ROWS)? {
            self.builder = Some(builder);
            return Ok(StepOutcome::Again);
        }
        self.end(engine, builder)?;
        Ok(StepOutcome::Again)
    }

    /// Whether the index, or its table, was dropped.
    pub fn is_dropped(&self) -> bool {
        self.index.store.dropped.load(Ordering::Acquire) || self.request.base.dropped.load(Ordering::Acquire)
    }

    /// Flushes what is in memory, once; Some: the flush is under way.
    fn flush(&mut self, engine: &Arc<Engine>) -> Result<Option<StepOutcome>, StorageError> {
        if self.is_flushed {
            return Ok(None);
        }
        let base = &self.request.base;
        let flush = self.flush.get_or_insert_with(|| Box::pin(engine.flush(base)));
        let waker = engine::waker(engine, |engine| engine.index_builder.wake());
        match flush.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Pending => Ok(Some(StepOutcome::Waits)),
            Poll::Ready(flushed) => {
                self.flush = None;
                flushed?;
                self.is_flushed = true;
                Ok(None)
            }
        }
    }

    /// Begins with the next SSTable. If there is none the index is complete.
    fn begin_next(&mut self, engine: &Engine) -> Result<StepOutcome, StorageError> {
        let view = self.request.base.view();
        let name = self.index.name();
        let wants =
            |sstable: &&Arc<SSTable>| self.again.contains(sstable.descriptor()) || !sstable.attached().has(name);
        match view.sstables.iter().find(wants) {
            Some(sstable) => {
                self.builder = Some(ComponentsBuilder::begin(&engine.env, sstable, std::slice::from_ref(&self.index))?);
                Ok(StepOutcome::Again)
            }
            None => {
                let _schema_lock = built::lock_schema_changes(engine);
                if self.is_dropped() {
                    return Ok(StepOutcome::Done);
                }
                built::store(engine, &self.request.base.table().keyspace, name, true)?;
                self.index.state.set_built(true);
                Ok(StepOutcome::Done)
            }
        }
    }

    /// Called when all rows of an SSTable are passed: its components get their names. Meanwhile
    /// the SSTable may not be removed. Components of a dropped index get no names: the drop
    /// removes the existing ones, and a later index of the same name would take such files for its
    /// own.
    fn end(&mut self, engine: &Engine, builder: ComponentsBuilder) -> Result<(), StorageError> {
        let base = &self.request.base;
        let _alone = base.replacing.lock().expect("a panic while SSTables are replaced ends the process");
        if self.is_dropped() {
            return Ok(());
        }
        let (descriptor, length) = (builder.sstable().descriptor().clone(), builder.sstable().data_length());
        // an SSTable that was opened anew meanwhile is made again
        let is_there = |sstable: &Arc<SSTable>| std::ptr::eq(sstable.attached(), builder.sstable().attached());
        if !base.view().sstables.iter().any(is_there) {
            return Ok(());
        }
        self.again.remove(&descriptor);
        builder.finish(&engine.caches)?;
        self.progress.done.fetch_add(length, Ordering::Relaxed);
        Ok(())
    }
}
