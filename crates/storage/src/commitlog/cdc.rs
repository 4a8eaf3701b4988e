//! Change data capture: segments that hold writes to tables with `cdc = true` stay readable in
//! `cdc_raw` after the log is done with them.
//!
//! A segment that may hold such writes is linked there before its first byte is written. Beside it
//! `<name>_cdc.idx` says how far it is durable, in positions as if nothing were compressed, and
//! ends with `COMPLETED` once nothing more comes. A segment that came to its end without such a
//! write takes its link along; one that has some leaves link and index to their consumer, who
//! removes both.
//!
//! What lies in the directory counts against `cdc_total_space`. When a segment begins without room
//! for it, it is *forbidden*: writes to such tables are refused, until there is room again, or
//! with `cdc_block_writes: false` the oldest segments are removed. Space is counted by the
//! allocator, at most once in `cdc_free_space_check_interval`; in between a segment counts with
//! its full size. Recycling is off, because a linked file must not be written over.
//!
//! Agrees with `CommitLogSegmentManagerCDC` and `CommitLogSegment.writeCDCIndexFile`. The index is
//! not synced, there as here: what a crash leaves of it is written again when the segment is
//! replayed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use env::Disk;
use env::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::segments::Segment;
use super::{LogError, Shared, State, format};

/// Shortest time between two lines of the log about refusals.
const REFUSAL_LOGGED_EVERY: Duration = Duration::from_secs(10);

/// Settings of change data capture.
#[derive(Clone, Debug)]
pub struct CaptureOptions {
    /// `cdc_raw_directory`, on the file system of the log.
    pub directory: PathBuf,
    /// `cdc_total_space`.
    pub total_space: u64,
    /// `cdc_free_space_check_interval`.
    pub check_interval: Duration,
    /// `cdc_block_writes`.
    pub block_writes: bool,
}

/// The meaning of a segment for change data capture.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum CdcState {
    /// There was no room for captured writes when the segment began: they are refused.
    #[default]
    Forbidden,
    /// The segment may take a captured write and has none yet.
    Permitted,
    /// The segment has captured writes.
    Contains,
}

pub(super) struct Capture {
    options: CaptureOptions,
    segment_size: u64,
    /// Bytes in the directory when they were counted last, plus the full size of segments
    /// permitted since.
    size: AtomicU64,
    wants_count: AtomicBool,
    counted_at: AtomicU64,
    refusal_logged_at: AtomicU64,
}

impl Capture {
    /// Makes the directory, and counts what is in it.
    pub(super) fn open(disk: &dyn Disk, options: CaptureOptions, segment_size: u32) -> Result<Self, LogError> {
        disk.create_dir_durable(&options.directory).map_err(LogError::io(&options.directory))?;
        let zero = || AtomicU64::new(0);
        let (size, counted_at, refusal_logged_at) = (zero(), zero(), zero());
        let wants_count = AtomicBool::new(false);
        let segment_size = segment_size.into();
        let capture = Capture { options, segment_size, size, wants_count, counted_at, refusal_logged_at };
        capture.count(disk)?;
        Ok(capture)
    }

    fn count(&self, disk: &dyn Disk) -> Result<(), LogError> {
        let directory = &self.options.directory;
        let mut size = 0;
        for entry in disk.list_dir(directory).map_err(LogError::io(directory))? {
            // what its consumer removes meanwhile counts no more
            size += disk.file_len(&directory.join(&entry.name)).unwrap_or(0);
        }
        self.size.store(size, Ordering::Relaxed);
        Ok(())
    }

    /// The state of a segment that begins now.
    pub(super) fn of_new_segment(&self) -> CdcState {
        self.wants_count.store(true, Ordering::Relaxed);
        let size = self.size.load(Ordering::Relaxed);
        if self.options.block_writes && size + self.segment_size > self.options.total_space {
            return CdcState::Forbidden;
        }
        self.size.fetch_add(self.segment_size, Ordering::Relaxed);
        CdcState::Permitted
    }

    /// The state of a segment once a write comes; Err: the write is refused.
    fn of_write(&self, before: CdcState, is_captured: bool) -> Result<CdcState, LogError> {
        let state = if before == CdcState::Forbidden && self.has_room() { self.of_new_segment() } else { before };
        match (state, is_captured) {
            (CdcState::Forbidden, true) => {
                self.wants_count.store(true, Ordering::Relaxed);
                let directory = self.options.directory.clone();
                Err(LogError::CaptureFull { directory, size: self.size.load(Ordering::Relaxed) })
            }
            (CdcState::Permitted, true) => Ok(CdcState::Contains),
            (state, _) => Ok(state),
        }
    }

    fn has_room(&self) -> bool {
        self.size.load(Ordering::Relaxed) + self.segment_size < self.options.total_space
    }

    pub(super) fn link_path(&self, id: u64) -> PathBuf {
        self.options.directory.join(format::file_name(id))
    }

    fn index_path(&self, id: u64) -> PathBuf {
        self.options.directory.join(format::captured_index_name(id))
    }

    /// Links a segment, durably. A link that is there already is right: a start links again.
    pub(super) fn link(&self, disk: &dyn Disk, segment: &std::path::Path, id: u64) -> Result<(), LogError> {
        let link = self.link_path(id);
        if !disk.exists(&link) {
            disk.hard_link(segment, &link).map_err(LogError::io(&link))?;
        }
        disk.sync_dir(&self.options.directory).map_err(LogError::io(&self.options.directory))
    }

    /// Links the first segment, so that a directory in which nothing can be linked is found at the
    /// start. The link is removed again if there is no room, because nothing else would remove it.
    pub(super) fn link_first(&self, disk: &dyn Disk, segment: &Segment, id: u64) -> Result<(), LogError> {
        self.link(disk, segment.path(), id)?;
        if segment.cdc == CdcState::Forbidden { self.remove(disk, id) } else { Ok(()) }
    }

    /// Says how far a segment is durable. In place, so that a reader never sees it empty: the text
    /// only grows. An error is only logged: the next index says more, and so does a replay.
    pub(super) fn write_index(&self, disk: &dyn Disk, id: u64, offset: u32, is_complete: bool) {
        let path = self.index_path(id);
        let text = if is_complete { format!("{offset}\nCOMPLETED") } else { offset.to_string() };
        let file = if disk.exists(&path) { disk.open_write(&path) } else { disk.create(&path) };
        if let Err(error) = file.and_then(|mut file| file.write_at(text.as_bytes(), 0)) {
            tracing::warn!(path = %path.display(), %error, "cannot write the index of captured changes");
        }
    }

    /// Called when a segment is about to be removed. Without captured writes its link is removed
    /// too. The index of others is completed, unless their consumer has removed both files
    /// already: an index without its segment could not be used, and would never be removed.
    pub(super) fn release(&self, disk: &dyn Disk, segment: &Segment, id: u64) -> Result<(), LogError> {
        match segment.cdc {
            CdcState::Contains if disk.exists(&self.link_path(id)) => {
                self.write_index(disk, id, segment.durable_end, true);
            }
            CdcState::Permitted => self.remove(disk, id)?,
            CdcState::Contains | CdcState::Forbidden => {}
        }
        self.wants_count.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Marks the segments with captured writes among those of which nothing is replayed: the link
    /// of one without such writes has gone with the end of the segment, as has the link of one that
    /// its consumer has taken. The index may be gone after a power cut.
    pub(super) fn mark_flushed(&self, disk: &dyn Disk, flushed: &BTreeSet<u64>, segments: &mut BTreeMap<u64, Segment>) {
        for id in flushed.iter().filter(|id| disk.exists(&self.link_path(**id))) {
            if let Some(segment) = segments.get_mut(id) {
                segment.cdc = CdcState::Contains;
            }
        }
    }

    fn remove(&self, disk: &dyn Disk, id: u64) -> Result<(), LogError> {
        for path in [self.link_path(id), self.index_path(id)] {
            if disk.exists(&path) {
                disk.remove_file(&path).map_err(LogError::io(&path))?;
            }
        }
        Ok(())
    }

    /// Removes the oldest segments that are not in use until there is room.
    fn remove_oldest(&self, disk: &dyn Disk, in_use: u64) -> Result<(), LogError> {
        let directory = &self.options.directory;
        let excess = self.size.load(Ordering::Relaxed).saturating_sub(self.options.total_space);
        if self.options.block_writes || excess == 0 {
            return Ok(());
        }
        let names = disk.list_dir(directory).map_err(LogError::io(directory))?;
        let mut ids: Vec<u64> =
            names.iter().filter_map(|entry| format::parse_file_name(&entry.name)).map(|(_, id)| id).collect();
        ids.sort_unstable();
        let mut freed = 0;
        for id in ids.into_iter().take_while(|id| *id < in_use) {
            if freed >= excess {
                break;
            }
            freed += disk.file_len(&self.link_path(id)).unwrap_or(0);
            self.remove(disk, id)?;
            tracing::info!(
                segment = id,
                "removed the oldest captured changes (cdc_total_space, cdc_block_writes: false)"
            );
        }
        self.count(disk)
    }

    /// Writes a refusal to the log, now and then.
    fn log_refusal(&self, now: u64, error: &LogError) {
        let last = self.refusal_logged_at.load(Ordering::Relaxed);
        if last == 0 || u128::from(now.saturating_sub(last)) >= REFUSAL_LOGGED_EVERY.as_nanos() {
            self.refusal_logged_at.store(now.max(1), Ordering::Relaxed);
            tracing::warn!("{error}");
        }
    }
}

impl State {
    /// Notes that a write goes into a segment; Err: the write is refused, because it is captured
    /// and there is no room.
    pub(super) fn capture(&mut self, shared: &Shared, id: u64, is_captured: bool) -> Result<(), LogError> {
        let Some(capture) = &shared.capture else { return Ok(()) };
        let before = self.segments.get(&id).map(|segment| segment.cdc);
        let state = capture.of_write(before.unwrap_or_else(|| capture.of_new_segment()), is_captured);
        let state = state.inspect_err(|error| capture.log_refusal(shared.env.clock.monotonic_nanos(), error))?;
        if before != Some(state) {
            self.segments.entry(id).or_insert_with(|| shared.new_segment(id)).cdc = state;
        }
        Ok(())
    }

    /// Notes that a segment that was read at the start has captured writes.
    pub(super) fn mark_captured(&mut self, id: u64) {
        if let Some(segment) = self.segments.get_mut(&id) {
            segment.cdc = CdcState::Contains;
        }
    }
}

impl Shared {
    /// Settles the segments found at the start: those with captured writes are linked, with an
    /// index that covers all of them; links of others are removed.
    pub(super) fn settle_captured(&self) -> Result<(), LogError> {
        let Some(capture) = &self.capture else { return Ok(()) };
        let found: Vec<(u64, CdcState)> = {
            let state = self.lock();
            state.segments.range(..state.first_new_segment).map(|(id, segment)| (*id, segment.cdc)).collect()
        };
        let disk = &*self.env.disk;
        for (id, cdc) in found {
            // under the name it has: it may be of an earlier version
            let Some(path) = self.lock().segments.get(&id).map(|segment| segment.path().to_owned()) else { continue };
            if cdc == CdcState::Contains {
                capture.link(disk, &path, id)?;
                let end = disk.file_len(&path).map_err(LogError::io(&path))?;
                let end = u32::try_from(end).unwrap_or(u32::MAX);
                capture.write_index(disk, id, end, true);
                if let Some(segment) = self.lock().segments.get_mut(&id) {
                    segment.durable_end = end;
                }
            } else if !disk.exists(&capture.index_path(id)) {
                capture.remove(disk, id)?;
            }
        }
        Ok(())
    }

    /// Counts the captured bytes if a count is wanted. Some: it is too early, and the next count
    /// may be made after this time.
    pub(super) fn tend_captured(&self) -> Option<Duration> {
        let capture = self.capture.as_ref().filter(|capture| capture.wants_count.load(Ordering::Relaxed))?;
        let now = self.env.clock.monotonic_nanos();
        let since = Duration::from_nanos(now.saturating_sub(capture.counted_at.load(Ordering::Relaxed)));
        if let Some(rest) = capture.options.check_interval.checked_sub(since).filter(|rest| !rest.is_zero()) {
            return Some(rest);
        }
        capture.wants_count.store(false, Ordering::Relaxed);
        capture.counted_at.store(now, Ordering::Relaxed);
        let in_use = self.lock().pending.position().segment;
        let disk = &*self.env.disk;
        if let Err(error) = capture.count(disk).and_then(|()| capture.remove_oldest(disk, in_use)) {
            tracing::warn!(%error, "cannot count the captured changes");
        }
        None
    }
}
