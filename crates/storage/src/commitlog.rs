//! Commit log: a write is acknowledged when the log has it.
//!
//! Stands below memtables and flush. A record (a serialised mutation; this module does not look
//! into it) is copied into the pending buffer under a short mutex and gets its position at once.
//! One background task, the *writer*, swaps the buffer, writes it as one section of the current
//! segment, syncs, and wakes all writes that wait for a position up to there: many writes share
//! one sync. A second task, the *allocator*, keeps the next segment ready, removes segments whose
//! content is flushed, and asks for flushes when the log outgrows its limit.
//!
//! Invariants:
//! - positions grow in the order of appends; a group is contiguous within one section;
//! - a section is written only after the one before it was synced (in `periodic` mode the unsynced
//!   section grows instead), and a segment only after the one before it: only the last section of
//!   the last segment can be torn, and replay tells tearing from corruption;
//! - a segment's file holds zeros wherever nothing was written. Recycled files are zeroed before
//!   they get their new id: a section's marker covers its segment's id, but entries do not, and a
//!   torn section over old entries would give them a second life;
//! - a failed sync is final: what it covered is never reported as durable;
//! - a segment is removed only when every record in it was flushed, or belongs to no table, and
//!   the same is true of all segments before it.
//!
//! Files are byte for byte Cassandra 5.0's version 8 (`CommitLogSegment`, `CommitLogReader`; see
//! `format`), plain or compressed (see `form`). Those of Cassandra are replayed too, versions 7 and
//! 8 (see `compressed`); encrypted segments are refused by name. Not here: the content of
//! mutations, the positions that an SSTable covers, truncation records.

mod archive;
mod buffer;
mod cdc;
mod compressed;
mod durable;
mod entries;
mod error;
mod form;
mod format;
#[doc(hidden)]
pub mod fuzzing;
mod ledger;
mod load;
mod options;
mod pending;
mod position;
pub(crate) mod progress;
mod reader;
mod replay;
mod segments;
mod torn;
mod writer;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use env::rare::{Rare, happens};
use env::sync::atomic::AtomicBool;
use env::sync::{Mutex, MutexGuard};
use env::{Env, Next, Wake};
use schema::TableId;

pub use archive::{ArchiveOptions, COMMAND_TIME_MAX};
pub use cdc::CaptureOptions;
pub use durable::WaitDurable;
pub use entries::Entries;
pub use error::LogError;
pub use form::Compression;
pub use options::{
    FailurePolicy, OnFailure, OnPressure, OnReplay, Options, ReplayBudget, ReplayPolicy, RestorePoint, SyncMode, Undone,
};
pub use position::{Appended, DirtyKey, LogPosition};
pub use progress::ReplayProgress;
pub use replay::Replay;

use cdc::Capture;
use durable::Durability;
use form::Form;
use ledger::Ledger;
use load::Load;
use pending::Pending;
use segments::{Allocator, Segment};

/// Most bytes that are appended and not yet written. At the limit [`CommitLog::append`] answers
/// [`LogError::Busy`]; [`CommitLog::wait_for_room`] tells when to try again. While no more than
/// half of them wait, a group of records of any size is taken.
pub const COMMITLOG_PENDING_BYTES_MAX: usize = 64 << 20;

/// Smallest size of a segment; `open` raises a smaller option to this. Offsets are positive 32-bit
/// integers.
pub const COMMITLOG_SEGMENT_SIZE_MIN: u32 = 4 << 10;
/// Largest size of a segment; `open` lowers a larger option to this.
pub const COMMITLOG_SEGMENT_SIZE_MAX: u32 = 1 << 30;

const _: () = assert!(COMMITLOG_SEGMENT_SIZE_MAX <= i32::MAX as u32);
const _: () = assert!(COMMITLOG_SEGMENT_SIZE_MIN <= COMMITLOG_SEGMENT_SIZE_MAX);
// a writer that waits for its time is woken before appends wait for room
const _: () = assert!(pending::WAKE_BYTES < COMMITLOG_PENDING_BYTES_MAX / 2);

/// Bytes, at most a quarter, of the last segment that fits on a full device which records of
/// clients leave free: only [`CommitLog::append_reserved`] may use them, for records that take
/// part in making room.
pub const COMMITLOG_RESERVE_BYTES: u32 = 64 << 10;

/// Figures of a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Records appended since the start.
    pub appended: u64,
    /// Bytes waiting to be written.
    pub pending_bytes: u64,
    /// Writes waiting for a sync.
    pub waiting: u64,
    /// Syncs since the start.
    pub syncs: u64,
    /// Segments that hold a record or are being written.
    pub segments: u64,
    /// Bytes of these segments' files.
    pub size: u64,
}

/// The commit log of a node. Dropping it ends its tasks, without a last sync: see
/// [`CommitLog::sync`].
pub struct CommitLog {
    shared: Arc<Shared>,
    writer: Wake,
    allocator: Wake,
    /// None: nothing is archived.
    archiver: Option<Wake>,
}

/// The state that the handle, the futures and the tasks share.
struct Shared {
    env: Env,
    directory: PathBuf,
    options: Options,
    form: Arc<Form>,
    capture: Option<Capture>,
    /// Guards the pending buffer and the table of segments: a copy or a look-up, never I/O.
    state: Mutex<State>,
    durability: Durability,
    load: Load,
    /// Guards the making and removing of segment files, one at a time. Held during I/O, and only by
    /// the writer, the allocator and the archiver.
    allocator: Mutex<Allocator>,
    /// Held while a segment is archived, as long as its command runs: by the archiver's task, and
    /// by the end, which waits for it.
    archiver: Mutex<()>,
    /// The file that says which segments were archived. Held while the file is written, and not
    /// while a command runs. Taken behind `allocator`, and never behind `state`.
    ledger: Mutex<Ledger>,
    /// True while the end waits for `archiver`: the archiver begins with no further segment.
    is_ending: AtomicBool,
}

/// How fast a segment was filled.
#[derive(Clone, Copy)]
struct FillRate {
    /// The time from the segment's begin to its end.
    duration: Duration,
    /// How often the segment's file was synced in that time.
    syncs: u64,
}

struct State {
    pending: Pending,
    /// Segments that hold a record, by id. The last one is being filled.
    segments: BTreeMap<u64, Segment>,
    /// Id of the first segment that was made by this process.
    first_new_segment: u64,
    /// Segments with a smaller id are completely written.
    written: u64,
    /// True: replayed segments are kept, until [`CommitLog::finish_replay`].
    replaying: bool,
    waiting_for_room: Vec<Waker>,
    /// How fast the last full segment was filled; None: none was.
    filled: Option<FillRate>,
    /// The id from which on segments cannot be made now, and the error that says what is lacking.
    /// None: they can.
    no_room_from: Option<(u64, LogError)>,
    appended: u64,
    syncs: u64,
}

impl State {
    /// The state before anything is appended and while a replay goes on. `first_new_segment` is
    /// set again by [`Self::begin`].
    fn new(first_new_segment: u64, segments: BTreeMap<u64, Segment>, options: &Options, form: &Form) -> Self {
        Self {
            pending: Pending::new(first_new_segment, options.segment_size, form.header_len()),
            segments,
            first_new_segment,
            written: first_new_segment,
            replaying: true,
            waiting_for_room: Vec::new(),
            filled: None,
            no_room_from: None,
            appended: 0,
            syncs: 0,
        }
    }

    /// Called when the id of the first segment of this process is known.
    fn begin(&mut self, first_new_segment: u64, options: &Options, form: &Form) {
        self.pending = Pending::new(first_new_segment, options.segment_size, form.header_len());
        (self.first_new_segment, self.written) = (first_new_segment, first_new_segment);
    }
}

impl CommitLog {
    /// Opens the log in a directory, making it if needed, and gives what must be replayed. A torn
    /// tail is cut here. Nothing can be appended before [`CommitLog::begin`]; the replayed segments
    /// stay until [`CommitLog::finish_replay`].
    pub fn open(env: &Env, directory: &Path, mut options: Options) -> Result<(CommitLog, Replay), LogError> {
        options.segment_size = options.segment_size.clamp(COMMITLOG_SEGMENT_SIZE_MIN, COMMITLOG_SEGMENT_SIZE_MAX);
        options.mutation_size_max = options.mutation_size_max.min(options.segment_size / 2);
        env.disk.create_dir_durable(directory).map_err(LogError::io(directory))?;
        let archive = options.archive.clone().unwrap_or_default();
        let mut ledger = archive::before_replay(env, directory, &archive, options.replay_policy)?;
        let mut replay = Replay::open(env, directory, options.replay_policy)?;
        if archive.command.is_empty() && archive.restore_directories.is_empty() {
            ledger.leave_unarchived(replay.used().map(|(id, _)| id));
        }
        let first_new_segment = replay.last_id().map_or(1, |last| last + 1);
        let form = Arc::new(Form::new(options.compression.as_ref()));
        let allocator =
            Allocator::new(directory, Arc::clone(&form), form.file_len(options.segment_size), first_new_segment);
        let capture = options.capture.clone();
        let capture = capture.map(|capture| Capture::open(&*env.disk, capture, options.segment_size)).transpose()?;
        let mut segments = replay.segments();
        // a restore replays these too: it begins with SSTables that may be older
        let is_restore = !archive.restore_directories.is_empty() || options.restore_point.is_set();
        let flushed = ledger.flushed(|id| !is_restore && segments.contains_key(&id));
        if let Some(capture) = &capture {
            capture.mark_flushed(&*env.disk, &flushed, &mut segments);
        }
        replay.leave_out(flushed);
        archive::mark_failed(&ledger, &mut segments);
        let state = State::new(first_new_segment, segments, &options, &form);
        let shared = Arc::new(Shared {
            env: env.clone(),
            directory: directory.to_owned(),
            options,
            form,
            capture,
            state: Mutex::new(state),
            durability: Durability::new(first_new_segment),
            load: Load::default(),
            allocator: Mutex::new(allocator),
            archiver: Mutex::new(()),
            ledger: Mutex::new(ledger),
            is_ending: AtomicBool::new(false),
        });
        let allocator = segments::start(shared.clone());
        let archiver = archive::start(&shared, allocator.clone());
        let writer = writer::start(shared.clone(), allocator.clone(), archiver.clone());
        Ok((CommitLog { shared, writer, allocator, archiver }, replay))
    }

    /// Makes the first segment of this process: from now on records can be appended. Called once,
    /// before the first of them.
    ///
    /// The segment's id is greater than those of all segments that are there, and than `after`: the
    /// greatest that SSTables and truncation records name, 0 if there is none. The clock alone
    /// would not do. Where it was set back while no process ran, and no segment was left, the
    /// records of this process would stand where SSTables say that they hold everything, and a
    /// replay would leave them out.
    pub fn begin(&self, after: u64) -> Result<(), LogError> {
        let Shared { env, directory, options, form, capture, .. } = &*self.shared;
        let clock = u64::try_from(env.clock.now_micros() / 1000).unwrap_or(1);
        let mut allocator = self.shared.allocator();
        let mut ledger = self.shared.ledger();
        let mut state = self.shared.lock();
        let first = clock.max(state.first_new_segment).max(after.saturating_add(1));
        assert!(state.appended == 0, "the log begins before its first record");
        self.shared.note_run(&mut ledger, first)?;
        allocator.begin(&*env.disk, first)?;
        let mut segment =
            Segment::new(directory.join(format::file_name(first)), form.file_len(options.segment_size).into());
        if let Some(capture) = capture {
            // at once: a directory on another file system is found at start
            segment.cdc = capture.of_new_segment();
            capture.link_first(&*env.disk, &segment, first)?;
        }
        state.segments.insert(first, segment);
        state.begin(first, options, form);
        self.shared.durability.begin(first);
        drop((state, ledger, allocator));
        self.allocator.wake();
        // segments that the start could not archive do not wait for another one that is full
        self.archiver.iter().for_each(Wake::wake);
        Ok(())
    }

    /// Opens a log that takes no records, and gives the content of the segments in a directory,
    /// which stay as they are.
    pub fn open_read_only(env: &Env, directory: &Path, options: Options) -> Result<(CommitLog, Replay), LogError> {
        if let Some(path) = options.archive.as_ref().and_then(|archive| archive.restore_directories.first()) {
            let why = "nothing may be written (--read-only)".to_owned();
            return Err(LogError::NotRestored { path: path.clone(), why });
        }
        let mut replay = Replay::open_read_only(env, directory, options.replay_policy)?;
        let mut ledger = Ledger::read(&*env.disk, directory)?;
        replay.leave_out(ledger.flushed(|_| !options.restore_point.is_set()));
        let first_new_segment = replay.last_id().map_or(1, |last| last + 1);
        let form = Arc::new(Form::new(None));
        let state = State::new(first_new_segment, BTreeMap::new(), &options, &form);
        let allocator =
            Mutex::new(Allocator::new(directory, Arc::clone(&form), options.segment_size, first_new_segment));
        let durability = Durability::new(first_new_segment);
        durability.stop();
        let shared = Shared {
            env: env.clone(),
            directory: directory.to_owned(),
            options,
            form,
            capture: None,
            state: Mutex::new(state),
            durability,
            load: Load::default(),
            allocator,
            archiver: Mutex::new(()),
            ledger: Mutex::default(),
            is_ending: AtomicBool::new(false),
        };
        let nothing = || shared.env.tasks.background("commitlog", Box::new(|| Next::Done));
        let (writer, allocator) = (nothing(), nothing());
        Ok((CommitLog { shared: Arc::new(shared), writer, allocator, archiver: None }, replay))
    }

    /// Appends a record; `dirty` are the memtables it goes to, which [`CommitLog::mark_flushed`]
    /// will name.
    pub fn append(&self, record: &[u8], dirty: &[DirtyKey]) -> Result<LogPosition, LogError> {
        self.append_group(&[record], dirty)
    }

    /// Appends records as one contiguous run: no crash tears them apart between sections. Gives
    /// the position of the last.
    pub fn append_group(&self, records: &[&[u8]], dirty: &[DirtyKey]) -> Result<LogPosition, LogError> {
        let mut entries = Entries::default();
        records.iter().for_each(|record| entries.push(|out| out.extend_from_slice(record)));
        Ok(self.append_entries(&mut entries, dirty, false)?.last)
    }

    /// Does the work of [`CommitLog::append_group`] for entries that are encoded already.
    /// `is_captured`: a table with change data capture is among their tables. The entries are
    /// taken out, unless there is an error.
    pub fn append_entries(
        &self,
        entries: &mut Entries,
        dirty: &[DirtyKey],
        is_captured: bool,
    ) -> Result<Appended, LogError> {
        let reserve = COMMITLOG_RESERVE_BYTES.min(self.shared.options.segment_size / 4);
        self.append_with_reserve(reserve as usize, entries, dirty, is_captured)
    }

    /// Does the work of `CommitLog::append_entries` for few records of the node itself that take
    /// part in making room: where the device has no room for a further segment, they may fill the
    /// last one to its end.
    pub fn append_reserved(&self, entries: &mut Entries, dirty: &[DirtyKey]) -> Result<Appended, LogError> {
        self.append_with_reserve(0, entries, dirty, false)
    }

    /// Appends entries. A segment behind which there is no room for another one keeps `reserve`
    /// bytes free.
    fn append_with_reserve(
        &self,
        reserve: usize,
        entries: &mut Entries,
        dirty: &[DirtyKey],
        is_captured: bool,
    ) -> Result<Appended, LogError> {
        let (total, count) = (self.check_sizes(entries)?, entries.count);
        let mut state = self.shared.lock();
        self.shared.check_open()?;
        // `wait_for_room` completes at half of the limit. A group that is refused beside less,
        // because segments are larger than the other half, would be tried again at once, and
        // without end.
        let pending = state.pending.bytes();
        if pending > COMMITLOG_PENDING_BYTES_MAX / 2 && pending + total > COMMITLOG_PENDING_BYTES_MAX {
            return Err(LogError::Busy);
        }
        if state.no_room_from.is_none() && happens(Rare::SegmentEnds) {
            state.pending.end_segment();
        }
        let segment = state.pending.segment_for(total);
        let last = state.pending.segment_for(total + reserve);
        if let Some((_, error)) = state.no_room_from.as_ref().filter(|(from, _)| *from <= last) {
            return Err(error.clone());
        }
        if let Err(error) = state.capture(&self.shared, segment, is_captured) {
            drop(state);
            // it counts again what is there
            self.allocator.wake();
            return Err(error);
        }
        let wake = state.pending.needs_wake(total);
        state.pending.note_time(|| self.shared.env.clock.monotonic_nanos());
        let appended = state.pending.append(entries);
        state.appended += count;
        state.mark_dirty(appended.last, count, dirty, &self.shared);
        drop(state);
        if wake {
            self.writer.wake();
        }
        Ok(appended)
    }

    fn check_sizes(&self, entries: &Entries) -> Result<usize, LogError> {
        let size_max = self.shared.options.mutation_size_max as usize;
        let too_large = |size, size_max| LogError::MutationTooLarge { size, size_max };
        if entries.largest > size_max {
            return Err(too_large(entries.largest, size_max));
        }
        let total = entries.len();
        let room = (self.shared.options.segment_size - self.shared.form.header_len() - format::MARKER_LEN) as usize;
        if total > room { Err(too_large(total, room)) } else { Ok(total) }
    }

    /// Completes when the record at `position` is durable by the log's mode.
    pub fn wait_durable(&self, position: LogPosition) -> WaitDurable {
        let is_enough = match self.shared.options.sync {
            SyncMode::Periodic(period) => !self.shared.lags(period),
            SyncMode::Batch | SyncMode::Group(_) => false,
        };
        WaitDurable::new(self.shared.clone(), position, is_enough)
    }

    /// Completes when the record at `position` is synced, also with [`SyncMode::Periodic`]: for
    /// records of the node itself, on which something depends that a power cut does not undo.
    pub fn wait_synced(&self, position: LogPosition) -> WaitDurable {
        if let SyncMode::Periodic(_) = self.shared.options.sync {
            self.shared.lock().pending.force_sync();
            self.writer.wake();
        }
        WaitDurable::new(self.shared.clone(), position, false)
    }

    /// Whether a wait for this position would end at once: it is durable, or the log has told of a
    /// failure or of a full device since.
    pub fn is_settled(&self, position: LogPosition) -> bool {
        WaitDurable::new(self.shared.clone(), position, false).now().is_some()
    }

    /// Whether records up to this position are not durable, but will be once a shortage is over.
    pub fn is_held_up(&self, position: LogPosition) -> bool {
        self.shared.durability.is_held_up(position)
    }

    /// Syncs everything appended so far, whatever the mode; completes when done.
    pub fn sync(&self) -> WaitDurable {
        let position = {
            let mut state = self.shared.lock();
            state.pending.force_sync();
            state.pending.position()
        };
        self.writer.wake();
        WaitDurable::new(self.shared.clone(), position, false)
    }

    /// Completes when the pending buffer has room again, or when the log takes no more records.
    pub fn wait_for_room(&self) -> impl Future<Output = ()> + Send + use<> {
        let shared = self.shared.clone();
        std::future::poll_fn(move |context: &mut Context<'_>| {
            let mut state = shared.lock();
            let has_room = state.pending.bytes() <= COMMITLOG_PENDING_BYTES_MAX / 2;
            if has_room || shared.check_open().is_err() {
                return Poll::Ready(());
            }
            state.waiting_for_room.push(context.waker().clone());
            Poll::Pending
        })
    }

    /// Whether a write need not wait for flushes.
    #[inline]
    pub fn admits_at_once(&self) -> bool {
        self.shared.load.admits_at_once() || self.is_stopped()
    }

    /// Waits, for a limited time, while the log holds far more than it may.
    pub async fn admit(&self) {
        self.shared.load.admit(&self.shared.env).await;
    }

    /// The end of the log now: every record appended so far lies at or before it.
    pub fn position(&self) -> LogPosition {
        self.shared.lock().pending.position()
    }

    /// Notes that everything that a shard of a table has appended up to `up_to` is in SSTables.
    /// Flushes of one shard must be reported in their order: a later position covers the earlier
    /// ones.
    pub fn mark_flushed(&self, table: TableId, shard: u16, up_to: LogPosition) {
        let key = (table, shard);
        self.shared.lock().mark_clean(|dirty| *dirty == key, up_to);
        self.allocator.wake();
    }

    /// Notes that a table's records up to `up_to` are not needed any more, because the table was
    /// dropped or truncated.
    pub fn mark_discarded(&self, table: TableId, up_to: LogPosition) {
        self.shared.lock().mark_clean(|dirty| dirty.0 == table, up_to);
        self.allocator.wake();
    }

    /// Notes that a replayed record went into these memtables: its segment stays until they are
    /// flushed.
    pub fn mark_replayed(&self, position: LogPosition, dirty: &[DirtyKey]) {
        self.shared.lock().mark_dirty(position, 0, dirty, &self.shared);
    }

    /// Called when everything was replayed or is flushed. Replayed segments that no memtable needs
    /// are removed.
    pub fn finish_replay(&self) -> Result<(), LogError> {
        self.shared.settle_captured()?;
        self.shared.lock().replaying = false;
        self.allocator.wake();
        Ok(())
    }

    /// Notes that a replayed record at `position` is of a table whose changes are captured.
    pub fn mark_captured(&self, position: LogPosition) {
        self.shared.lock().mark_captured(position.segment);
    }

    /// Ends the log. If everything is flushed its segments are removed. Archive commands may run,
    /// so this is not for threads that others wait for.
    pub fn end(&self) -> Result<(), LogError> {
        self.end_job()()
    }

    /// `CommitLog::end` as a job for another thread.
    pub fn end_job(&self) -> impl FnOnce() -> Result<(), LogError> + Send + use<> {
        let shared = Arc::clone(&self.shared);
        move || shared.remove_all()
    }

    /// The first segment of this process.
    pub fn first_new_segment(&self) -> u64 {
        self.shared.lock().first_new_segment
    }

    /// The memtables whose flush frees the oldest segment; empty if only the current segment has
    /// records.
    #[cfg(test)]
    pub fn needs_flush(&self) -> Vec<DirtyKey> {
        let state = self.shared.lock();
        let oldest = state.segments.values().next().filter(|_| state.segments.len() > 1);
        oldest.map(Segment::dirty).unwrap_or_default()
    }

    /// The first segment that has records of a table which are not in its SSTables yet. Where there
    /// is none, that of the last record.
    pub fn first_needed_by(&self, table: TableId) -> u64 {
        self.first_where(|segment| segment.is_needed_by(table))
    }

    /// The first segment that has records which are not in SSTables yet, whatever their tables.
    /// Where there is none, that of the last record.
    pub fn first_needed(&self) -> u64 {
        self.first_where(Segment::is_needed)
    }

    fn first_where(&self, is_meant: impl Fn(&Segment) -> bool) -> u64 {
        let state = self.shared.lock();
        let found = state.segments.iter().find(|(_, segment)| is_meant(segment));
        found.map_or_else(|| state.pending.position().segment, |(id, _)| *id)
    }

    /// Whether a segment is kept because of records of this table.
    #[cfg(test)]
    pub(crate) fn is_needed_by(&self, table: TableId) -> bool {
        self.shared.lock().segments.values().any(|segment| segment.is_needed_by(table))
    }

    /// Whether the log takes no records any more, because of a failure or because nothing may be
    /// written.
    pub fn is_stopped(&self) -> bool {
        self.shared.durability.is_stopped()
    }

    /// The figures of the log now.
    pub fn stats(&self) -> Stats {
        let state = self.shared.lock();
        Stats {
            appended: state.appended,
            pending_bytes: state.pending.bytes() as u64,
            waiting: self.shared.durability.waiting(),
            syncs: state.syncs,
            segments: state.segments.len() as u64,
            size: state.segments.values().map(|segment| segment.size).sum(),
        }
    }
}

impl Shared {
    /// Locks the state. A panic while it is locked would leave positions without bytes, so the
    /// process must not go on.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no step under the log's mutex panics")
    }

    /// Whether records are taken.
    fn check_open(&self) -> Result<(), LogError> {
        if self.durability.is_stopped() {
            return Err(LogError::Stopped);
        }
        self.durability.shortage().map_or(Ok(()), Err)
    }

    fn new_segment(&self, id: u64) -> Segment {
        let size = self.form.file_len(self.options.segment_size);
        Segment::new(self.directory.join(format::file_name(id)), size.into())
    }

    /// Whether a record has not been synced for longer than writers may leave it.
    fn lags(&self, period: Duration) -> bool {
        let Some(oldest) = self.lock().pending.oldest_unsynced() else {
            return false;
        };
        let waited = self.env.clock.monotonic_nanos().saturating_sub(oldest);
        let block = self.options.sync_lag_block.unwrap_or_else(|| period.saturating_add(period / 2));
        u128::from(waited) > block.as_nanos()
    }
}

impl State {
    fn mark_dirty(&mut self, position: LogPosition, records: u64, dirty: &[DirtyKey], shared: &Shared) {
        let segment = self.segments.entry(position.segment).or_insert_with(|| shared.new_segment(position.segment));
        segment.records += records;
        segment.mark_dirty(position.offset, dirty);
    }

    fn mark_clean(&mut self, matches: impl Fn(&DirtyKey) -> bool, up_to: LogPosition) {
        for (id, segment) in self.segments.range_mut(..=up_to.segment) {
            let offset = if *id == up_to.segment { up_to.offset } else { u32::MAX };
            segment.mark_clean(&matches, offset);
        }
    }
}

#[cfg(test)]
mod tests;
