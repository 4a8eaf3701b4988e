//! Segment files: which tables they hold, making them ahead of need, removing and recycling them.
//!
//! A file becomes a segment in steps that a crash may cut anywhere: under a temporary name it is
//! filled with zeros and synced (syncs of files that were written once are 2 to 4 times as fast as
//! those of growing or merely reserved ones), gets its header, is synced again, then gets its final
//! name, and the directory is synced. Recycling begins with a durable rename to a temporary name:
//! were the name not durable, a half-zeroed segment could come back. Temporary files found at start
//! are removed.
//!
//! The first segment of a process is reserved, not zeroed, so that a start does not wait for the
//! disk. So are all segments of a log whose syncs are few beside its bytes: zeros would be written
//! for nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use env::rare::{Rare, happens};
use env::sync::MutexGuard;
use env::sync::atomic::Ordering;
use env::{Disk, Next, Wake, WriteFile};
use schema::TableId;

use super::archive::ArchiveState;
use super::cdc::CdcState;
use super::load::{HELD, Load};
use super::{DirtyKey, FillRate, Form, LogError, Shared, State, SyncMode, format};

/// Suffix of files that are not segments yet, or not any more.
pub(super) const TEMPORARY: &str = ".tmp";

/// Bytes of zeros written by one step; a step ends with a sync, so that the log's own syncs do not
/// queue behind a large one.
const ZERO_STEP: u32 = 1 << 20;

/// Bytes a second; segments that fill faster than this are not zeroed first. Zeros would take as
/// much of the disk's throughput as the records, and with so many bytes the longer time of a sync
/// of reserved space counts little.
const FAST: f64 = (64 << 20) as f64;

/// Bytes; segments of which each sync covers at least so many are not zeroed first, because a few
/// syncs of reserved space cost less than the zeros.
const BYTES_A_SYNC: u64 = 256 << 10;

/// How long the allocator waits after an error before it tries again; the writer meanwhile makes
/// its segments itself, or fails.
const RETRY: Duration = Duration::from_secs(1);

/// Assumed bytes of a record in a segment of an earlier process, whose records were not counted: a
/// small row.
const REPLAYED_RECORD_BYTES: u64 = 256;

/// A segment that holds something.
pub(super) struct Segment {
    path: PathBuf,
    /// Bytes of its file.
    pub(super) size: u64,
    /// Records in it, as far as this process knows.
    pub(super) records: u64,
    pub(super) cdc: CdcState,
    pub(super) archive: ArchiveState,
    /// Whether the segment has, or had, a record.
    pub(super) is_used: bool,
    /// The position up to which the segment is durable; kept only if changes are captured.
    pub(super) durable_end: u32,
    /// The last record of each memtable in this segment, as long as it is not flushed.
    dirty: BTreeMap<DirtyKey, u32>,
}

impl Segment {
    pub(super) fn new(path: PathBuf, size: u64) -> Self {
        let (cdc, archive) = (CdcState::default(), ArchiveState::default());
        Segment { path, size, records: 0, cdc, archive, is_used: false, durable_end: 0, dirty: BTreeMap::new() }
    }

    /// One that was there at the start, and was archived then, unless it is marked as failed.
    pub(super) fn replayed(path: PathBuf, size: u64) -> Self {
        let records = size / REPLAYED_RECORD_BYTES;
        Segment { archive: ArchiveState::Settled, records, ..Self::new(path, size) }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn dirty(&self) -> Vec<DirtyKey> {
        self.dirty.keys().copied().collect()
    }

    /// Whether a memtable has records of this segment.
    pub(super) fn is_needed(&self) -> bool {
        !self.dirty.is_empty()
    }

    /// Whether a memtable of the table has records of this segment.
    pub(super) fn is_needed_by(&self, table: TableId) -> bool {
        self.dirty.range((table, 0)..=(table, u16::MAX)).next().is_some()
    }

    pub(super) fn mark_dirty(&mut self, offset: u32, keys: &[DirtyKey]) {
        self.is_used = true;
        for key in keys {
            let last = self.dirty.entry(*key).or_insert(offset);
            *last = offset.max(*last);
        }
    }

    pub(super) fn mark_clean(&mut self, matches: &impl Fn(&DirtyKey) -> bool, up_to: u32) {
        self.dirty.retain(|key, last| !(matches(key) && *last <= up_to));
    }
}

impl State {
    /// The oldest segment, if it is not needed any more. Never one behind a needed segment:
    /// otherwise a deletion could be forgotten and the data that it deletes replayed, perhaps
    /// after the deletion was purged from the SSTables.
    fn removable(&self) -> Option<u64> {
        let (id, segment) = self.segments.range(..self.written).next()?;
        let read = *id >= self.first_new_segment || !self.replaying;
        (segment.dirty.is_empty() && segment.archive != ArchiveState::Waits && read).then_some(*id)
    }
}

/// Makes segment files.
pub(super) struct Allocator {
    directory: PathBuf,
    form: Arc<Form>,
    /// Length of new files, bytes.
    file_len: u32,
    /// The last segment whose file was made.
    made: u64,
    /// A file on its way to become a segment.
    raw: Option<Raw>,
    /// The open file of segment `made`, until the writer enters it. So a change of segments needs
    /// no new descriptor; others might have used up all of them meanwhile.
    ready: Option<Box<dyn WriteFile>>,
    /// The segment at whose beginning flushes were last asked for.
    asked_at: u64,
    /// True: the last step failed, and that was logged.
    is_failing: bool,
}

struct Raw {
    path: PathBuf,
    file: Box<dyn WriteFile>,
    zeroed: u32,
    /// True: the file has only zeros, written or reserved.
    is_blank: bool,
}

impl Allocator {
    pub(super) fn new(directory: &Path, form: Arc<Form>, file_len: u32, first: u64) -> Self {
        Allocator {
            directory: directory.to_owned(),
            form,
            file_len,
            made: first - 1,
            raw: None,
            ready: None,
            asked_at: first,
            is_failing: false,
        }
    }

    /// Makes the file of the first segment of this process.
    pub(super) fn begin(&mut self, disk: &dyn Disk, first: u64) -> Result<(), LogError> {
        (self.made, self.asked_at) = (first - 1, first);
        self.make_at_once(disk, first)
    }

    /// Makes sure that the file of segment `id` is there, without zeroing. For the writer, when it
    /// needs the file now.
    pub(super) fn make_at_once(&mut self, disk: &dyn Disk, id: u64) -> Result<(), LogError> {
        while self.made < id {
            let path = self.directory.join(format!("{}{TEMPORARY}", format::file_name(self.made + 1)));
            let mut file = disk.create(&path).map_err(LogError::io(&path))?;
            file.preallocate(u64::from(self.file_len)).map_err(LogError::io(&path))?;
            self.complete(disk, &path, file)?;
        }
        Ok(())
    }

    /// One step towards the file of segment `id`; `true` when it is there. `is_reserved`: reserved
    /// space is enough, and zeros are not written.
    fn make_ahead(&mut self, disk: &dyn Disk, id: u64, is_reserved: bool) -> Result<bool, LogError> {
        if self.made >= id {
            return Ok(true);
        }
        let mut raw = match self.raw.take() {
            Some(raw) => raw,
            None => self.new_raw(disk)?,
        };
        if is_reserved && raw.is_blank {
            self.complete(disk, &raw.path, raw.file)?;
            return Ok(self.made >= id);
        }
        let step = ZERO_STEP.min(self.file_len - raw.zeroed);
        let written = raw.file.write_at(&vec![0; step as usize], u64::from(raw.zeroed));
        written.and_then(|()| raw.file.sync_data()).map_err(LogError::io(&raw.path))?;
        raw.zeroed += step;
        if raw.zeroed < self.file_len {
            self.raw = Some(raw);
            return Ok(false);
        }
        self.complete(disk, &raw.path, raw.file)?;
        Ok(self.made >= id)
    }

    fn new_raw(&self, disk: &dyn Disk) -> Result<Raw, LogError> {
        let path = self.directory.join(format!("spare{TEMPORARY}"));
        if disk.exists(&path) {
            // Left by an error. Never written over: a rename to this name that was not synced may
            // be undone by a crash.
            disk.remove_file(&path).map_err(LogError::io(&path))?;
        }
        let mut file = disk.create(&path).map_err(LogError::io(&path))?;
        file.preallocate(u64::from(self.file_len)).map_err(LogError::io(&path))?;
        Ok(Raw { path, file, zeroed: 0, is_blank: true })
    }

    /// Gives a file of zeros the header and the name of the next segment.
    fn complete(&mut self, disk: &dyn Disk, path: &Path, mut file: Box<dyn WriteFile>) -> Result<(), LogError> {
        let id = self.made + 1;
        let name = self.directory.join(format::file_name(id));
        let written = file.write_at(&self.form.header(id), 0);
        written.and_then(|()| file.sync_data()).map_err(LogError::io(path))?;
        disk.rename(path, &name).map_err(LogError::io(path))?;
        disk.sync_dir(&self.directory).map_err(LogError::io(&self.directory))?;
        self.made = id;
        self.ready = Some(file);
        Ok(())
    }

    /// The file of segment `id`, which is made.
    pub(super) fn open(&mut self, disk: &dyn Disk, id: u64) -> Result<Box<dyn WriteFile>, LogError> {
        assert!(id <= self.made, "segment {id} is entered before it is made; the last made is {}", self.made);
        if id == self.made
            && let Some(file) = self.ready.take()
        {
            return Ok(file);
        }
        let path = self.directory.join(format::file_name(id));
        disk.open_write(&path).map_err(LogError::io(&path))
    }

    /// Removes a segment's file, or keeps it to become the next one. After an error it has to be
    /// called again.
    fn retire(&mut self, disk: &dyn Disk, path: &Path, recycles: bool) -> Result<(), LogError> {
        if !disk.exists(path) && disk.exists(&self.directory) {
            // it went the last time, perhaps not durably
            return disk.sync_dir(&self.directory).map_err(LogError::io(&self.directory));
        }
        let same_size = recycles && disk.file_len(path).is_ok_and(|length| length == u64::from(self.file_len));
        if self.raw.is_none() && same_size {
            let raw_path = self.directory.join(format!("spare{TEMPORARY}"));
            disk.rename(path, &raw_path).map_err(LogError::io(path))?;
            disk.sync_dir(&self.directory).map_err(LogError::io(&self.directory))?;
            let file = disk.open_write(&raw_path).map_err(LogError::io(&raw_path))?;
            self.raw = Some(Raw { path: raw_path, file, zeroed: 0, is_blank: false });
            return Ok(());
        }
        disk.remove_file(path).map_err(LogError::io(path))?;
        // An old segment that came back would replay writes over what was since compacted away.
        disk.sync_dir(&self.directory).map_err(LogError::io(&self.directory))
    }
}

/// Whether the next segment is reserved only. Syncs of reserved space take longer, so zeros pay
/// where each request waits for one; not where a sync comes every some seconds, whatever is
/// written, and not where each covers many bytes.
fn is_reserved(sync: SyncMode, filled: Option<FillRate>, file_len: u32) -> bool {
    let is_fast = |filled: FillRate| f64::from(file_len) > FAST * filled.duration.as_secs_f64();
    let is_seldom_synced = |filled: FillRate| u64::from(file_len) >= BYTES_A_SYNC * filled.syncs;
    matches!(sync, SyncMode::Periodic(_)) || filled.is_some_and(|filled| is_fast(filled) || is_seldom_synced(filled))
}

impl Shared {
    /// Ends the log and removes its segments, oldest first, if no memtable needs any: the next
    /// start has nothing to replay, whatever another node has made of the SSTables meanwhile.
    /// Otherwise these records could bring back data whose deletion that node has purged.
    pub(super) fn remove_all(&self) -> Result<(), LogError> {
        // A command that runs ends first. The lock is not fair: the archiver, which takes it again
        // at once, could otherwise archive all segments of days in which the archive was not there
        // before the node ends.
        self.is_ending.store(true, Ordering::Relaxed);
        let _turn = self.archiver.lock().expect("no step of the archiver panics");
        self.is_ending.store(false, Ordering::Relaxed);
        let allocator = self.allocator();
        let segments = {
            let mut state = self.lock();
            let is_needed = state.segments.values().any(|segment| !segment.dirty.is_empty());
            if is_needed || state.replaying || !state.pending.is_empty() {
                return Ok(());
            }
            self.durability.stop();
            std::mem::take(&mut state.segments)
        };
        let disk = &*self.env.disk;
        let ahead = segments.last_key_value().map_or(allocator.made, |(last, _)| *last) + 1..=allocator.made;
        let ahead = ahead.map(|id| self.directory.join(format::file_name(id)));
        if let Some(capture) = &self.capture {
            segments.iter().try_for_each(|(id, segment)| capture.release(disk, segment, *id))?;
        }
        for path in self.archive_rest(segments).into_values().map(|segment| segment.path).chain(ahead) {
            if disk.exists(&path) {
                disk.remove_file(&path).map_err(LogError::io(&path))?;
            }
        }
        disk.sync_dir(&self.directory).map_err(LogError::io(&self.directory))
    }
}

/// Starts the allocator.
pub(super) fn start(shared: Arc<Shared>) -> Wake {
    let tasks = shared.env.tasks.clone();
    tasks.background("commitlog-allocator", Box::new(move || shared.allocate()))
}

impl Shared {
    pub(super) fn allocator(&self) -> MutexGuard<'_, Allocator> {
        self.allocator.lock().expect("no step of the allocator panics")
    }

    /// Whether files of removed segments are used again. Files that have other names are not,
    /// because they must not be written over.
    fn recycles(&self) -> bool {
        self.capture.is_none() && !self.has_archive()
    }

    fn allocate(&self) -> Next {
        self.ask_for_flushes();
        let wait = self.tend_captured();
        match self.allocate_step() {
            Ok(next) => {
                self.note_step(None);
                if next == Next::Idle { wait.map_or(next, Next::After) } else { next }
            }
            Err(error) => {
                self.note_step(Some(&error));
                Next::After(RETRY)
            }
        }
    }

    /// Logs when failures begin and end. Without room for a segment no record is taken that would
    /// go there; flushes may make room.
    fn note_step(&self, error: Option<&LogError>) {
        let was_failing = std::mem::replace(&mut self.allocator().is_failing, error.is_some());
        let Some(error) = error else {
            if was_failing {
                self.lock().no_room_from = None;
                tracing::info!("segments of the commit log can be prepared again");
            }
            return;
        };
        let keys = {
            let mut state = self.lock();
            if error.is_shortage() {
                state.no_room_from = Some((state.written + 1, error.clone()));
            }
            state.segments.values().next().map(Segment::dirty).unwrap_or_default()
        };
        if !was_failing {
            tracing::warn!(%error, "cannot prepare commit log segments");
            if !keys.is_empty() {
                (self.options.on_pressure)(&keys);
            }
        }
    }

    fn allocate_step(&self) -> Result<Next, LogError> {
        if self.durability.is_stopped() {
            return Ok(Next::Done);
        }
        if happens(Rare::SegmentIsLate) {
            return Ok(Next::After(RETRY));
        }
        let disk = &*self.env.disk;
        let mut allocator = self.allocator();
        let (removable, wanted, is_reserved) = {
            let mut state = self.lock();
            let id = state.removable();
            let is_reserved = is_reserved(self.options.sync, state.filled, allocator.file_len);
            (id.and_then(|id| Some((id, state.segments.remove(&id)?))), state.written + 1, is_reserved)
        };
        if let Some((id, segment)) = removable {
            let recycles = self.recycles() && !is_reserved;
            if let Err(error) = self.remove_segment(&mut allocator, id, &segment, recycles) {
                // it is still the oldest: one behind it that went first could take the deletion of
                // what is in this one with it
                self.lock().segments.insert(id, segment);
                return Err(error);
            }
            return Ok(Next::Again);
        }
        let is_ready = allocator.make_ahead(disk, wanted, is_reserved)?;
        Ok(if is_ready { Next::Idle } else { Next::Again })
    }

    fn remove_segment(
        &self,
        allocator: &mut Allocator,
        id: u64,
        segment: &Segment,
        recycles: bool,
    ) -> Result<(), LogError> {
        let disk = &*self.env.disk;
        if let Some(capture) = &self.capture {
            capture.release(disk, segment, id)?;
        }
        if segment.archive == ArchiveState::Failed {
            // the file stays until it is archived, by the archiver or by the next start
            self.ledger().forget(disk, [segment.path()]);
            return Ok(());
        }
        allocator.retire(disk, &segment.path, recycles)
    }

    /// The load in percent of the log's limit, in whole segments of this process that memtables
    /// need.
    fn load_of(&self, state: &State, cost: &dyn Fn(&Segment) -> u64) -> u32 {
        let whole = state.segments.range(state.first_new_segment..state.written).map(|(_, segment)| segment);
        let needed = whole.skip_while(|segment| segment.dirty.is_empty());
        let (size, time) = needed.fold((0, 0), |(size, time), it| (size + it.size, time + cost(it)));
        let of_time = self.options.replay_budget.map_or(0, |budget| Load::percent_of(time, budget.nanos));
        Load::percent_of(size, self.options.total_space).max(of_time)
    }

    /// When the log is too large, or would take too long to replay, names the memtables that keep
    /// its oldest segments.
    fn ask_for_flushes(&self) {
        let keys = {
            let mut allocator = self.allocator();
            let state = self.lock();
            let budget = self.options.replay_budget;
            let cost = |segment: &Segment| budget.map_or(0, |budget| budget.cost(segment.records, segment.size));
            let load = self.load_of(&state, &cost);
            self.load.set(load);
            let is_held = load >= HELD;
            let size: u64 = state.segments.values().map(|segment| segment.size).sum();
            let mut space = size.saturating_sub(self.options.total_space);
            let all: u64 = state.segments.values().map(cost).sum();
            let mut time = all.saturating_sub(budget.map_or(u64::MAX, |budget| budget.nanos));
            if (space == 0 && time == 0)
                || state.segments.len() < 2
                || (allocator.asked_at == state.written && !is_held)
            {
                return;
            }
            allocator.asked_at = state.written;
            let but_the_last = state.segments.values().take(state.segments.len() - 1);
            let oldest = but_the_last.take_while(|segment| {
                let is_wanted = space > 0 || time > 0;
                space = space.saturating_sub(segment.size);
                time = time.saturating_sub(cost(segment));
                is_wanted
            });
            let mut keys: Vec<DirtyKey> = oldest.flat_map(Segment::dirty).collect();
            keys.sort_unstable();
            keys.dedup();
            keys
        };
        if !keys.is_empty() {
            (self.options.on_pressure)(&keys);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Zeros are written before the records where many small syncs are waited for, and nowhere
    /// else.
    #[test]
    fn zeros_pay_where_many_syncs_are_waited_for() {
        const LEN: u32 = 32 << 20;
        let is_zeroed = |sync, filled| !is_reserved(sync, filled, LEN);
        let filled = |seconds, syncs| Some(FillRate { duration: Duration::from_secs(seconds), syncs });
        let small_syncs = filled(10, 1000);
        for sync in [SyncMode::Batch, SyncMode::Group(Duration::from_millis(5))] {
            assert!(is_zeroed(sync, None) && is_zeroed(sync, small_syncs));
            assert!(!is_zeroed(sync, filled(0, 1000)), "zeros would take as much of the disk as the records");
            assert!(!is_zeroed(sync, filled(100, 128)), "each sync covers 256 KiB");
            assert!(is_zeroed(sync, filled(100, 129)));
        }
        let periodic = SyncMode::Periodic(Duration::from_secs(10));
        assert!(!is_zeroed(periodic, None) && !is_zeroed(periodic, small_syncs));
    }
}
