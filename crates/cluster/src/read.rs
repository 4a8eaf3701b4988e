//! Reads on this node: first on the worker, then, when that would wait, from scratch on the blocking pool.
//!
//! Several commands are read one after the other as one stream. The stream counts what passes through, and ends with an error when
//! the request's time is over or nobody waits for it any more: a read in the background can be stopped in no other way.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use env::{Env, Instant};
use rows::command::{ReadStats, TraceSink};
use rows::{
    ColumnData, PartitionHead, PartitionRange, PartitionStream, ReadCommand, ReadContext, ReadError, ReadMode, Row,
    Unfiltered,
};
use storage::TableStore;

use crate::node::Node;
use crate::write::within;

/// Unfiltereds between two looks at the clock.
const LOOK_EVERY: u64 = 256;

/// Opens the stream of a command: the engine's, or that of rows made up.
pub type Open = dyn Fn(&ReadCommand, &ReadContext) -> Result<Box<dyn PartitionStream>, ReadError> + Send + Sync;

/// What to read and how.
pub struct ReadRequest {
    /// Of one table.
    pub commands: Vec<ReadCommand>,
    /// Where trace lines go.
    pub trace: Option<Arc<dyn TraceSink>>,
    /// None: from the engine.
    pub open: Option<Arc<Open>>,
}

/// Why a read gave nothing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ReadOutcome<E> {
    /// What builds the answer failed; its error may hold a [`ReadError`].
    Failed(E),
    /// The pool's queue is full.
    Overloaded,
    /// Took longer than its timeout.
    TimedOut,
}

struct Job {
    env: Env,
    node: Arc<storage::Engine>,
    commands: Vec<ReadCommand>,
    trace: Option<Arc<dyn TraceSink>>,
    open: Option<Arc<Open>>,
    deadline: Instant,
    abandoned: AtomicBool,
    store: Option<Arc<TableStore>>,
}

/// Tells the background when nobody waits any more.
struct Waits(Arc<Job>);

impl Drop for Waits {
    fn drop(&mut self) {
        self.0.abandoned.store(true, Ordering::Relaxed);
    }
}

impl Node {
    /// Builds something from the stream of a read. `is_blocked`: the error says [`ReadError::WouldBlock`].
    pub async fn read<T, E, F>(
        &self,
        request: ReadRequest,
        is_blocked: fn(&E) -> bool,
        build: F,
    ) -> Result<T, ReadOutcome<E>>
    where
        T: Send + 'static,
        E: From<ReadError> + Send + 'static,
        F: Fn(&mut dyn PartitionStream) -> Result<T, E> + Send + Sync + 'static,
    {
        let begun = self.env.now();
        let limit = self.read_limit(&request.commands);
        let job = Arc::new(Job {
            env: self.env.clone(),
            node: Arc::clone(&self.engine),
            store: request.commands.first().and_then(|command| self.engine.table(command.table.id)),
            commands: request.commands,
            trace: request.trace,
            open: request.open,
            deadline: begun.plus(limit),
            abandoned: AtomicBool::new(false),
        });
        let result = match job.run(ReadMode::Inline, &build) {
            Err(error) if is_blocked(&error) => self.read_in_background(&job, limit, build).await,
            result => result.map_err(ReadOutcome::Failed),
        };
        if let Some(store) = &job.store {
            store.metrics.reads.add(1);
            let micros = u64::try_from(self.env.elapsed(begun).as_micros()).unwrap_or(u64::MAX);
            let of_range = is_of_range(&job.commands);
            let latency = if of_range { &store.metrics.range_latency } else { &store.metrics.read_latency };
            latency.record(micros);
        }
        result
    }

    async fn read_in_background<T, E, F>(&self, job: &Arc<Job>, limit: Duration, build: F) -> Result<T, ReadOutcome<E>>
    where
        T: Send + 'static,
        E: From<ReadError> + Send + 'static,
        F: Fn(&mut dyn PartitionStream) -> Result<T, E> + Send + Sync + 'static,
    {
        let _waits = Waits(Arc::clone(job));
        if let Some(trace) = &job.trace {
            trace.event("Going on in the background: the read would wait for the disk or passes many rows".to_owned());
        }
        let in_background = Arc::clone(job);
        let blocking = self.env.blocking("read", move || in_background.run(ReadMode::Background, &build));
        match within(&self.env, limit, blocking).await {
            None => Err(ReadOutcome::TimedOut),
            Some(Err(_)) => Err(ReadOutcome::Overloaded),
            Some(Ok(result)) => result.map_err(ReadOutcome::Failed),
        }
    }

    fn read_limit(&self, commands: &[ReadCommand]) -> Duration {
        let timeouts = self.timeouts();
        if is_of_range(commands) { timeouts.range } else { timeouts.read }
    }
}

/// Not of partitions by their keys.
pub fn is_of_range(commands: &[ReadCommand]) -> bool {
    commands.iter().any(|command| matches!(command.range, PartitionRange::Range { .. }))
}

impl Job {
    fn run<T, E: From<ReadError>>(
        &self,
        mode: ReadMode,
        build: &impl Fn(&mut dyn PartitionStream) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut context = ReadContext::new(mode);
        context.trace = self.trace.clone();
        let mut stream =
            Commands { job: self, context, next: 0, current: None, seen: 0, now: 0, rows: 0, tombstones: 0 };
        let result = build(&mut stream);
        if result.is_ok() {
            stream.report();
        }
        result
    }
}

/// The streams of all commands, one after the other.
struct Commands<'a> {
    job: &'a Job,
    context: ReadContext,
    next: usize,
    current: Option<Box<dyn PartitionStream>>,
    seen: u64,
    /// The clock of the present command, seconds.
    now: u32,
    /// Live ones.
    rows: u64,
    tombstones: u64,
}

impl Commands<'_> {
    fn open_next(&mut self) -> Result<bool, ReadError> {
        let Some(command) = self.job.commands.get(self.next) else { return Ok(false) };
        self.next += 1;
        self.now = command.now;
        self.current = Some(match &self.job.open {
            Some(open) => open(command, &self.context)?,
            None => self.job.node.read(command, &self.context)?,
        });
        Ok(true)
    }

    fn look(&mut self) -> Result<(), ReadError> {
        self.seen += 1;
        if !self.seen.is_multiple_of(LOOK_EVERY) {
            return Ok(());
        }
        if self.job.abandoned.load(Ordering::Relaxed) || self.job.env.now() > self.job.deadline {
            return Err(ReadError::TimedOut);
        }
        Ok(())
    }

    fn count(&mut self, unfiltered: &Unfiltered) {
        match unfiltered {
            Unfiltered::Row(row) => {
                self.rows += u64::from(row.is_live(self.now));
                self.tombstones += tombstones(row);
            }
            Unfiltered::Marker(_) => self.tombstones += 1,
        }
    }

    /// Tells trace and metrics what the read did.
    fn report(&self) {
        let stats = &self.context.stats;
        let get = ReadStats::get;
        self.context.trace(|| {
            let cached = get(&stats.chunks_cached);
            format!(
                "Merged data from memtables and {} of {} sstables: {} row-index blocks, {} chunks ({cached} cached)",
                get(&stats.sstables_read),
                get(&stats.sstables_considered),
                get(&stats.blocks),
                get(&stats.chunks_read) + cached,
            )
        });
        self.context.trace(|| format!("Read {} live rows and {} tombstone cells", self.rows, self.tombstones));
        if let Some(store) = &self.job.store {
            store.metrics.sstables_per_read.record(get(&stats.sstables_read));
            store.metrics.tombstones_per_read.record(self.tombstones);
            store.metrics.live_rows_per_read.record(self.rows);
            store.metrics.bloom_false_positives.add(get(&stats.bloom_false_positives));
            if !is_of_range(&self.job.commands) {
                store.metrics.bloom_true_positives.add(get(&stats.sstables_read));
            }
        }
    }
}

fn tombstones(row: &Row) -> u64 {
    let cells = row.columns.iter().map(|data| match data {
        ColumnData::Simple(cell) => u64::from(cell.is_tombstone()),
        ColumnData::Complex(complex) => {
            let dead = complex.cells.iter().filter(|cell| cell.is_tombstone()).count() as u64;
            dead + u64::from(!complex.deletion.is_live())
        }
    });
    u64::from(!row.deletion.is_live()) + cells.sum::<u64>()
}

impl PartitionStream for Commands<'_> {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        loop {
            self.look()?;
            if let Some(current) = &mut self.current {
                if let Some(head) = current.next_partition()? {
                    self.tombstones += u64::from(!head.deletion.is_live());
                    return Ok(Some(head));
                }
                self.current = None;
            }
            if !self.open_next()? {
                return Ok(None);
            }
        }
    }

    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        self.look()?;
        let Some(current) = &mut self.current else { return Ok(None) };
        let next = current.next_unfiltered()?;
        if let Some(unfiltered) = &next {
            self.count(unfiltered);
        }
        Ok(next)
    }
}
