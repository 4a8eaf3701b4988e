//! Reads of a replica: first on the worker; if that would wait for the disk, from the beginning on
//! the blocking pool; if it passes more rows than a worker has time for, from the beginning on the
//! threads for long jobs, which give way to workers. A read that is like an earlier long one goes
//! there at once ([`crate::replica::forecast`]).
//!
//! Several commands are read one after the other as one stream. The stream counts what passes
//! through, and ends with an error when the request's time is over or nobody waits for it any more:
//! there is no other way to stop a read in the background.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use env::rare::{Rare, happens};
use env::{Env, Instant};
use rows::command::{Interrupt, ReadStats, TraceSink};
use rows::live::counted;
use rows::report::AnswerFigures;
use rows::{
    Build, BuildError, BuildResult, PartitionHead, PartitionRange, PartitionStream, ReadCommand, ReadContext,
    ReadError, ReadMode, Row, Unfiltered, WantedRows, heap_size,
};
use storage::TableStore;

use super::Replica;
use super::apply::within;
use super::forecast::{Fingerprint, Forecast};
use crate::answer_times::AnswerTimes;
use crate::result_room::ResultRoom;
use crate::sampling::{ReadSamples, Sampling};
use crate::thresholds::{Findings, ReadSizes};

/// Unfiltereds between two looks at the clock.
const LOOK_EVERY: u64 = 256;

/// Most rows and markers that a read may pass on a worker: half a millisecond.
pub const INLINE_MAX: u64 = 1_000;

/// Most rows and markers that a read may pass on a thread of the blocking pool. Such a read is
/// there because of the disk, and its waits take longer than its rows.
pub const BLOCKING_MAX: u64 = 2_000;

/// Number of tombstones whose passing is as much work as passing a row, where they are not
/// decoded.
const TOMBSTONES_A_ROW: u64 = 8;

/// Number of rows whose passing is as much work as opening a command.
const COMMAND_COST: u64 = 4;

/// Commands of a request that are not counted in the memory for results.
const COMMANDS_UNCOUNTED: usize = 64;

/// Bytes of rows that a read may pass without waiting for memory while that for results is used up.
const SCARCE_MAX: usize = 64 << 10;

/// Most bytes of rows that a read may pass on a worker: they are copied into the result, a
/// mebibyte in a tenth of a millisecond or more.
const INLINE_BYTES_MAX: usize = 1 << 20;

/// Most sentences that a client is told of one read.
const WARNINGS_MAX: usize = 16;

/// Opens the stream of a command: the engine's, or that of rows made up.
pub type Open = dyn Fn(&ReadCommand, &ReadContext) -> Result<Box<dyn PartitionStream>, ReadError> + Send + Sync;

/// Counts of the rows, tombstones and bytes that the reads of a request passed, for metrics,
/// warnings and the slow log.
#[derive(Default, Debug)]
pub struct ReadFigures {
    /// Live rows.
    pub rows: AtomicU64,
    /// Tombstones of every kind.
    pub tombstones: AtomicU64,
    /// Bytes of SSTables read from disk.
    pub bytes: AtomicU64,
    /// SSTables read from.
    pub sstables: AtomicU64,
    /// Bytes of rows that the largest command loaded, if they are measured ([`rows::heap_size`]).
    pub local_size: AtomicU64,
    /// Bytes of the largest row index, if they are measured.
    pub row_index_size: AtomicU64,
    /// The largest number of SSTables whose index a search looked into, if it exceeded the
    /// threshold of a warning or of a failure; 0: it did not.
    pub indexes: AtomicU64,
    /// Sentences that the client is to be warned with.
    pub warnings: Warnings,
}

/// The facts that a client is told besides its answer.
#[derive(Default, Debug)]
pub struct Warnings {
    /// Sentences, each once.
    sentences: Mutex<Vec<String>>,
    /// Thresholds that replicas found exceeded.
    pub findings: Findings,
    /// The answers of replicas; None: nobody wants to know them.
    pub(crate) answers: Option<AnswerTimes>,
}

impl Warnings {
    /// Adds a sentence, if there is room.
    pub fn add(&self, warning: String) {
        let mut warnings = self.sentences.lock().expect("nothing panics inside");
        if warnings.len() < WARNINGS_MAX && !warnings.contains(&warning) {
            warnings.push(warning);
        }
    }

    /// Takes the sentences.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.sentences.lock().expect("nothing panics inside"))
    }
}

impl ReadFigures {
    /// Makes room for the answers of replicas in these figures.
    pub(crate) fn with_answers(mut self) -> Self {
        self.warnings.answers = Some(AnswerTimes::default());
        self
    }

    /// Takes the answers of replicas.
    pub(crate) fn answers(&self) -> BTreeMap<SocketAddr, AnswerFigures> {
        self.warnings.answers.as_ref().map(AnswerTimes::take).unwrap_or_default()
    }

    /// Adds the live rows and tombstones that a read among several nodes has given.
    pub(crate) fn add_rows(&self, [rows, tombstones]: [u64; 2]) {
        ReadStats::add(&self.rows, rows);
        ReadStats::add(&self.tombstones, tombstones);
    }

    fn take_over(&self, of_job: &Self) {
        let of = |figures: &Self| {
            [&figures.rows, &figures.tombstones, &figures.bytes, &figures.sstables].map(ReadStats::get)
        };
        let sums = of(self).into_iter().zip(of(of_job)).map(|(before, more)| before + more);
        let own = [&self.rows, &self.tombstones, &self.bytes, &self.sstables];
        own.into_iter().zip(sums).for_each(|(figure, sum)| figure.store(sum, Ordering::Relaxed));
        self.local_size.fetch_max(ReadStats::get(&of_job.local_size), Ordering::Relaxed);
        self.row_index_size.fetch_max(ReadStats::get(&of_job.row_index_size), Ordering::Relaxed);
        self.indexes.fetch_max(ReadStats::get(&of_job.indexes), Ordering::Relaxed);
    }
}

/// The commands of a read, and the way in which they are read.
#[derive(Clone)]
pub struct ReadRequest {
    /// The commands, all of one table.
    pub commands: Vec<ReadCommand>,
    /// The sink of trace lines; None: the request is not traced.
    pub trace: Option<Arc<dyn TraceSink>>,
    /// The rows that are looked for among those of the commands; None: all are wanted.
    pub wanted_rows: Option<Arc<WantedRows>>,
    /// Opens the streams of the commands; None: the engine does.
    pub open: Option<Arc<Open>>,
    /// The memory for results: while it is used up only small ones are built at once. None: the
    /// result is small.
    pub results: Option<Arc<ResultRoom>>,
    /// Sizes are measured, and compared with the thresholds on them.
    pub measures: bool,
}

impl ReadRequest {
    /// A small read of this node's own, which is neither traced nor observed.
    pub fn of(commands: Vec<ReadCommand>) -> Self {
        Self { commands, trace: None, wanted_rows: None, open: None, results: None, measures: false }
    }
}

/// Why a read gave nothing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ReadOutcome<E> {
    /// The function that builds the answer failed. Its error may hold a [`ReadError`].
    Failed(E),
    /// The queue of the threads that would run the read is full.
    Overloaded,
    /// The read took longer than its timeout.
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
    results: Option<Arc<ResultRoom>>,
    /// True: the last attempt ended because it had to pass too many rows.
    is_long: AtomicBool,
    /// The thresholds on sizes; None: sizes are not measured.
    sizes: Option<ReadSizes>,
    store: Option<Arc<TableStore>>,
    sampling: Arc<Sampling>,
    figures: ReadFigures,
}

/// The place where an attempt runs, which limits the number of rows that it may pass.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Attempt {
    /// On the worker.
    Inline,
    /// On the blocking pool.
    Blocking,
    /// On the threads for long jobs.
    Long,
}

impl Attempt {
    fn mode(self) -> ReadMode {
        match self {
            Self::Inline => ReadMode::Inline,
            Self::Blocking | Self::Long => ReadMode::Background,
        }
    }

    /// The number of rows and markers that the attempt may pass.
    fn budget(self) -> u64 {
        match self {
            Self::Inline if happens(Rare::BudgetIsSpent) => 0,
            Self::Inline => INLINE_MAX,
            Self::Blocking => BLOCKING_MAX,
            Self::Long => u64::MAX,
        }
    }
}

/// Tells the job in the background, when this is dropped, that its caller does not wait any more.
struct CallerGuard(Arc<Job>);

impl Drop for CallerGuard {
    fn drop(&mut self) {
        self.0.abandoned.store(true, Ordering::Relaxed);
    }
}

impl Replica {
    /// Builds something from the stream of a read, within `limit`, and adds what it took to
    /// `figures`.
    pub async fn read<B: Build>(
        &self,
        request: ReadRequest,
        limit: Duration,
        figures: &ReadFigures,
        build: B,
    ) -> Result<B::Built, ReadOutcome<B::Error>> {
        let begun = self.env.now();
        let _commands = match &request.results {
            Some(room) if request.commands.len() > COMMANDS_UNCOUNTED => {
                let entered = within(&self.env, limit, room.enter(&self.env)).await.flatten();
                drop(entered.ok_or(ReadOutcome::TimedOut)?);
                Some(room.budget.take(request.commands.len() * size_of::<ReadCommand>()))
            }
            _ => None,
        };
        let job = Arc::new(Job {
            env: self.env.clone(),
            node: Arc::clone(&self.engine),
            store: request.commands.first().and_then(|command| self.engine.table(command.table.id)),
            sizes: self.sizes_for(&request),
            commands: request.commands,
            trace: request.trace,
            open: request.open,
            deadline: begun.plus(limit),
            abandoned: AtomicBool::new(false),
            results: request.results,
            is_long: AtomicBool::new(false),
            sampling: Arc::clone(&self.sampling),
            figures: ReadFigures::default(),
        });
        let fingerprint = Fingerprint::of(&job.commands, INLINE_MAX as u32);
        // what goes on in the background is boxed: by value it would make the future of every
        // request larger, which is moved several times
        let result = if self.forecast.is_long(fingerprint) || happens(Rare::ReadIsLong) {
            Box::pin(self.read_in_background(&job, fingerprint, Attempt::Long, limit, build)).await
        } else {
            match job.run(Attempt::Inline, &build) {
                Err(error) if error.is_blocked() => {
                    let next = job.next_attempt();
                    Box::pin(self.read_in_background(&job, fingerprint, next, limit, build)).await
                }
                result => result.map_err(ReadOutcome::Failed),
            }
        };
        figures.take_over(&job.figures);
        if let Some(store) = &job.store {
            store.metrics.reads.add(1);
            let micros = u64::try_from(self.env.elapsed(begun).as_micros()).unwrap_or(u64::MAX);
            let of_range = is_of_range(&job.commands);
            let latency = if of_range { &store.metrics.range_latency } else { &store.metrics.read_latency };
            latency.record(micros);
        }
        result
    }

    /// The thresholds on sizes that a read is measured for.
    fn sizes_for(&self, request: &ReadRequest) -> Option<ReadSizes> {
        let is_measured = |command: &ReadCommand| !schema::system::is_system_keyspace(&command.table.keyspace);
        let sizes = self.read_sizes.get().filter(|_| request.measures);
        sizes.filter(|_| request.commands.first().is_some_and(is_measured)).copied()
    }

    async fn read_in_background<B: Build>(
        &self,
        job: &Arc<Job>,
        fingerprint: Fingerprint,
        attempt: Attempt,
        limit: Duration,
        build: B,
    ) -> Result<B::Built, ReadOutcome<B::Error>> {
        let _caller = CallerGuard(Arc::clone(job));
        let build = Arc::new(build);
        let attempts = async {
            if attempt == Attempt::Blocking {
                if happens(Rare::PoolIsFull) {
                    return Err(ReadOutcome::Overloaded);
                }
                job.trace("Going on in the background: the read would wait for the disk");
                let (in_background, build) = (Arc::clone(job), Arc::clone(&build));
                let blocking = self.env.blocking("read", move || in_background.run(Attempt::Blocking, &*build));
                match blocking.await.map_err(|_| ReadOutcome::Overloaded)? {
                    Err(error) if error.is_blocked() => {}
                    result => return result.map_err(ReadOutcome::Failed),
                }
            }
            job.trace("Going on behind others: the read passes many rows");
            loop {
                let _turn = match &job.results {
                    Some(room) => Some(room.enter(&self.env).await.ok_or(ReadOutcome::Overloaded)?),
                    None => None,
                };
                let in_background = Arc::clone(job);
                let (build, forecast) = (Arc::clone(&build), Arc::clone(&self.forecast));
                let long =
                    self.env.blocking_long("scan", move || in_background.run_long(&forecast, fingerprint, &*build));
                if let Some(result) = long.await.map_err(|_| ReadOutcome::Overloaded)? {
                    return result.map_err(ReadOutcome::Failed);
                }
            }
        };
        within(&self.env, limit, attempts).await.unwrap_or(Err(ReadOutcome::TimedOut))
    }
}

/// Whether a read is about ranges, not about partitions by their keys.
pub fn is_of_range(commands: &[ReadCommand]) -> bool {
    commands.iter().any(|command| matches!(command.range, PartitionRange::Range { .. }))
}

/// Stops a read in the background while it reads the disk, too: it may read many rows that it does
/// not give.
impl Interrupt for Job {
    fn is_over(&self) -> bool {
        self.abandoned.load(Ordering::Relaxed) || self.env.now() > self.deadline
    }
}

impl Job {
    fn trace(&self, line: &str) {
        if let Some(trace) = &self.trace {
            trace.event(line.to_owned());
        }
    }

    /// Whether the memory for results is used up.
    fn is_scarce(&self) -> bool {
        self.results.as_ref().is_some_and(|room| room.budget.is_used_up())
    }

    /// The kind of the next attempt, after one on the worker that would have blocked.
    fn next_attempt(&self) -> Attempt {
        if self.is_long.load(Ordering::Relaxed) { Attempt::Long } else { Attempt::Blocking }
    }

    /// Runs a read on a thread for long jobs; also tells how long it was. None: there is no memory
    /// for its result.
    fn run_long<B: Build>(
        self: &Arc<Self>,
        forecast: &Forecast,
        fingerprint: Fingerprint,
        build: &B,
    ) -> Option<BuildResult<B>> {
        let _expected = match &self.results {
            Some(room) => Some(room.expect_one()?),
            None => None,
        };
        let (result, passed) = self.attempt(Attempt::Long, build);
        match passed {
            // it ended before it began
            0 => {}
            1..=INLINE_MAX => forecast.mark_short(fingerprint),
            _ => forecast.mark_long(fingerprint),
        }
        Some(result)
    }

    fn run<B: Build>(self: &Arc<Self>, attempt: Attempt, build: &B) -> BuildResult<B> {
        self.attempt(attempt, build).0
    }

    /// Runs one attempt; also gives how much it passed.
    fn attempt<B: Build>(self: &Arc<Self>, attempt: Attempt, build: &B) -> (BuildResult<B>, u64) {
        let mut context = ReadContext::new(attempt.mode());
        context.index_limits = self.node.options.guards.values().searches;
        context.trace = self.trace.clone();
        if attempt != Attempt::Inline {
            if self.is_over() {
                return (Err(ReadError::TimedOut.into()), 0);
            }
            context.interrupt = Some(Arc::clone(self) as Arc<dyn Interrupt>);
        }
        let mut stream = CommandStreams {
            job: self,
            context,
            next: 0,
            current: None,
            seen: 0,
            budget: attempt.budget(),
            bytes: 0,
            bytes_max: match attempt {
                Attempt::Long => usize::MAX,
                _ if self.is_scarce() => SCARCE_MAX,
                Attempt::Inline => INLINE_BYTES_MAX,
                Attempt::Blocking => usize::MAX,
            },
            now: 0,
            rows: 0,
            tombstones: 0,
            samples: ReadSamples::of(&self.sampling),
            measured: 0,
        };
        let result = build.build(&mut stream);
        match &result {
            Ok(_) => stream.report(),
            Err(error) => {
                if let Some(error) = error.read_error() {
                    self.node.inspect_read(error);
                }
            }
        }
        (result, stream.seen)
    }
}

/// The streams of all commands, one after the other.
struct CommandStreams<'a> {
    job: &'a Job,
    context: ReadContext,
    next: usize,
    current: Option<Box<dyn PartitionStream>>,
    /// Rows, markers and partitions passed, and what opening commands and passing tombstones count
    /// for.
    seen: u64,
    /// Most that `seen` may reach in this attempt.
    budget: u64,
    /// Bytes of the rows so far, and the most that they may have.
    bytes: usize,
    bytes_max: usize,
    /// The clock of the present command, seconds.
    now: u32,
    /// Live rows that were passed.
    rows: u64,
    tombstones: u64,
    /// The samples of the read; None: no sampling session runs.
    samples: Option<Box<ReadSamples>>,
    /// Bytes that the present command has loaded, if they are measured.
    measured: u64,
}

impl CommandStreams<'_> {
    fn open_next(&mut self) -> Result<bool, ReadError> {
        let Some(command) = self.job.commands.get(self.next) else { return Ok(false) };
        self.next += 1;
        self.seen += COMMAND_COST;
        self.now = command.now;
        self.measured = 0;
        if let Some(samples) = &mut self.samples {
            let key = match &command.range {
                PartitionRange::Key(key) => Some(&key.key),
                PartitionRange::Range { .. } => None,
            };
            samples.command(key, ReadStats::get(&self.context.stats.sstables_read));
        }
        let opened = match &self.job.open {
            Some(open) => open(command, &self.context),
            None => self.job.node.read(command, &self.context),
        };
        let indexes = match &opened {
            Err(ReadError::TooManyIndexes { number }) => *number,
            _ => ReadStats::get(&self.context.stats.indexes),
        };
        self.job.figures.indexes.fetch_max(indexes, Ordering::Relaxed);
        self.current = Some(opened?);
        Ok(true)
    }

    fn look(&mut self) -> Result<(), ReadError> {
        self.seen += 1;
        if self.seen > self.budget {
            self.job.is_long.store(true, Ordering::Relaxed);
            return Err(ReadError::WouldBlock);
        }
        if self.seen.is_multiple_of(LOOK_EVERY) && self.job.is_over() {
            return Err(ReadError::TimedOut);
        }
        Ok(())
    }

    /// A large result is not copied on a worker; while memory is scarce it waits in the background
    /// for its turn.
    fn weigh(&mut self, unfiltered: &Unfiltered) -> Result<(), ReadError> {
        if self.bytes_max < usize::MAX
            && let Unfiltered::Row(row) = unfiltered
        {
            self.bytes += row.data_size();
            if self.bytes > self.bytes_max {
                self.job.is_long.store(self.bytes_max == SCARCE_MAX, Ordering::Relaxed);
                return Err(ReadError::WouldBlock);
            }
        }
        Ok(())
    }

    /// Counts bytes that were loaded. Ends the read beyond a threshold.
    fn measure(&mut self, loaded: impl FnOnce() -> u64) -> Result<(), ReadError> {
        let Some(sizes) = &self.job.sizes else { return Ok(()) };
        self.measured = self.measured.saturating_add(loaded());
        let (local, row_index) = (self.measured, ReadStats::get(&self.context.stats.row_index_size));
        self.job.figures.local_size.fetch_max(local, Ordering::Relaxed);
        self.job.figures.row_index_size.fetch_max(row_index, Ordering::Relaxed);
        sizes.check(local, row_index)
    }

    fn count(&mut self, unfiltered: &Unfiltered) {
        match unfiltered {
            Unfiltered::Row(row) => self.count_row(row),
            Unfiltered::Marker(_) => self.tombstones += 1,
        }
    }

    fn count_row(&mut self, row: &Row) {
        let Some(command) = self.job.commands.get(self.next.wrapping_sub(1)) else { return };
        let (is_live, tombstones) = counted(row, &command.table, self.now);
        self.rows += u64::from(is_live);
        self.tombstones += tombstones;
    }

    /// Tells trace and metrics what the read did.
    fn report(&mut self) {
        let stats = &self.context.stats;
        let get = ReadStats::get;
        let figures = &self.job.figures;
        figures.rows.store(self.rows, Ordering::Relaxed);
        figures.tombstones.store(self.tombstones, Ordering::Relaxed);
        figures.bytes.store(get(&stats.bytes_read), Ordering::Relaxed);
        figures.sstables.store(get(&stats.sstables_read), Ordering::Relaxed);
        if let (Some(samples), Some(command)) = (self.samples.take(), self.job.commands.first()) {
            samples.tell(&self.job.sampling, &command.table, self.rows, self.tombstones, get(&stats.sstables_read));
        }
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

impl PartitionStream for CommandStreams<'_> {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        loop {
            self.look()?;
            if let Some(current) = &mut self.current {
                if let Some(head) = current.next_partition()? {
                    if let Some(samples) = &mut self.samples {
                        samples.partition(Some(&head.key.key), self.rows, self.tombstones);
                    }
                    if let Some(row) = &head.static_row {
                        self.count_row(row);
                    }
                    self.measure(|| heap_size::of_head(&head))?;
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
            self.measure(|| heap_size::of_unfiltered(unfiltered))?;
            self.weigh(unfiltered)?;
        }
        Ok(next)
    }

    fn pass_tombstones(&mut self, most: u64) -> Result<u64, ReadError> {
        // tombstones that are passed are not measured
        let Some(current) = self.current.as_mut().filter(|_| self.job.sizes.is_none()) else { return Ok(0) };
        let until_look = LOOK_EVERY - self.seen % LOOK_EVERY;
        let rows = until_look.min(self.budget.saturating_sub(self.seen));
        let passed = current.pass_tombstones(most.min(rows * TOMBSTONES_A_ROW))?;
        self.tombstones += passed;
        self.seen += passed.div_ceil(TOMBSTONES_A_ROW);
        if self.seen.is_multiple_of(LOOK_EVERY) && passed > 0 && self.job.is_over() {
            return Err(ReadError::TimedOut);
        }
        Ok(passed)
    }
}

#[cfg(test)]
mod tests;
