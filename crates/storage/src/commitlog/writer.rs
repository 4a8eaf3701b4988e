//! The writer: one background task that brings the pending buffer to the disk.
//!
//! A step: swap the buffer; write its sections, syncing a segment before the next is touched; sync;
//! release the waiters. In `periodic` mode a step may write without syncing; then the section stays
//! open and its marker is written again with each extension. Compressed sections cannot be
//! extended: a log that compresses syncs whatever it writes, in `periodic` mode as often as a plain
//! one writes.
//!
//! A device without room has not failed, and neither has a process without file descriptors: the
//! unwritten bytes are kept, their writers are told, no more records are taken, and the step is
//! tried again until it succeeds. A sync that fails is final, whatever the reason. With policy
//! `Die` a full device and a failed sync end the process.

use std::collections::VecDeque;
use std::io;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use env::defects::{Defect, is_on};
use env::rare::{Rare, happens};
use env::{Next, Wake, WriteFile};

use super::cdc::CdcState;
use super::pending::{Pending, Piece, REUSE_BYTES_MAX, Section, WAKE_BYTES};
use super::{DirtyKey, FailurePolicy, FillRate, Form, LogError, LogPosition, Shared, SyncMode, format};

/// Time after which data reaches the kernel in `periodic` mode (Cassandra's marker interval).
const WRITE_INTERVAL: Duration = Duration::from_millis(100);

/// Time between two looks of the writer whether there is room, or a descriptor, again.
const SPACE_INTERVAL: Duration = Duration::from_millis(250);

struct Writer {
    shared: Arc<Shared>,
    allocator: Wake,
    archiver: Option<Wake>,
    current: Option<Current>,
    /// The end of the last written section.
    end: LogPosition,
    last_sync: u64,
    /// A buffer for the compressed form of a section.
    compressed: Vec<u8>,
}

/// The segment being written.
struct Current {
    id: u64,
    file: Box<dyn WriteFile>,
    entered_at: u64,
    /// How often the file was synced since the segment was entered.
    syncs: u64,
    unsynced: bool,
    /// Offset in the file at which the next section is stored, and up to which the stored bytes
    /// are durable.
    stored_end: u32,
    synced_end: u32,
    /// Whether the segment is linked into `cdc_raw`, where changes are captured.
    is_linked: bool,
}

/// Starts the writer.
pub(super) fn start(shared: Arc<Shared>, allocator: Wake, archiver: Option<Wake>) -> Wake {
    let tasks = shared.env.tasks.clone();
    let last_sync = shared.env.clock.monotonic_nanos();
    let mut writer = Writer {
        shared,
        allocator,
        archiver,
        current: None,
        end: LogPosition::NONE,
        last_sync,
        compressed: Vec::new(),
    };
    tasks.background("commitlog-writer", Box::new(move || writer.step()))
}

/// The next thing to do with the pending buffer.
enum Plan {
    Wait(Duration),
    Write { sync: bool },
}

fn wait_for_company(pending: &Pending, window: Duration, now: u64) -> Plan {
    let waited = Duration::from_nanos(now.saturating_sub(pending.first_at()));
    match window.checked_sub(waited) {
        Some(rest) if !rest.is_zero() && !pending.is_forced() && !pending.is_empty() => Plan::Wait(rest),
        _ => Plan::Write { sync: true },
    }
}

impl Writer {
    fn step(&mut self) -> Next {
        if self.shared.durability.is_stopped() {
            return Next::Done;
        }
        let now = self.shared.env.clock.monotonic_nanos();
        let (sync, sections) = {
            let mut state = self.shared.lock();
            match self.plan(&state.pending, now) {
                Plan::Wait(duration) => {
                    state.pending.armed = true;
                    return Next::After(duration);
                }
                Plan::Write { sync } => (sync, state.pending.take(sync)),
            }
        };
        match self.write(sections, sync) {
            Ok(()) => {}
            Err((error, rest)) if error.is_shortage() && !self.is_fatal(&error) => {
                return self.pause_for_shortage(error, rest);
            }
            Err((error, _)) => return self.fail(error),
        }
        if self.shared.durability.is_short() {
            self.shared.durability.end_shortage();
            tracing::info!("the commit log takes writes again");
        }
        if sync {
            self.last_sync = now;
        }
        self.next(now)
    }

    fn plan(&self, pending: &Pending, now: u64) -> Plan {
        if happens(Rare::LogSyncsNow) {
            return Plan::Write { sync: true };
        }
        match self.shared.options.sync {
            SyncMode::Batch => Plan::Write { sync: true },
            SyncMode::Group(window) => wait_for_company(pending, window, now),
            SyncMode::Periodic(_) if pending.bytes() >= WAKE_BYTES && self.shared.form.is_compressed() => {
                Plan::Write { sync: true }
            }
            SyncMode::Periodic(period) if self.shared.form.is_compressed() => {
                wait_for_company(pending, period.min(WRITE_INTERVAL), now)
            }
            SyncMode::Periodic(period) => {
                let since = u128::from(now.saturating_sub(self.last_sync));
                Plan::Write { sync: pending.is_forced() || since >= period.as_nanos() }
            }
        }
    }

    /// Writes sections. Err: the error, and the sections that are not written.
    fn write(&mut self, mut sections: VecDeque<Section>, sync: bool) -> Result<(), (LogError, VecDeque<Section>)> {
        let mut written = VecDeque::new();
        let mut outcome = Ok(());
        while let Some(mut section) = sections.pop_front() {
            outcome = self.write_next(&mut section);
            if outcome.is_err() {
                sections.push_front(section);
                break;
            }
            written.push_back(section);
        }
        if sync && outcome.is_ok() {
            outcome = self.sync();
        }
        self.release_room(written);
        outcome.map_err(|error| (error, sections))
    }

    fn write_next(&mut self, section: &mut Section) -> Result<(), LogError> {
        self.enter_segment(section.segment)?;
        self.link_captured()?;
        self.write_section(section)?;
        self.end = LogPosition { segment: section.segment, offset: section.end() };
        Ok(())
    }

    /// Opens a segment's file. The segment before is synced and complete.
    fn enter_segment(&mut self, id: u64) -> Result<(), LogError> {
        if self.current.as_ref().is_some_and(|current| current.id == id) {
            return Ok(());
        }
        self.sync()?;
        let now = self.shared.env.clock.monotonic_nanos();
        let filled = self.current.as_ref().map(|current| FillRate {
            duration: Duration::from_nanos(now.saturating_sub(current.entered_at)),
            syncs: current.syncs,
        });
        self.leave_segment();
        let disk = &*self.shared.env.disk;
        let file = {
            let mut allocator = self.shared.allocator();
            allocator.make_at_once(disk, id)?;
            allocator.open(disk, id)?
        };
        let end = self.shared.form.header_len();
        let (entered_at, syncs, unsynced, is_linked) = (now, 0, false, false);
        self.current =
            Some(Current { id, file, entered_at, syncs, unsynced, stored_end: end, synced_end: end, is_linked });
        {
            let mut state = self.shared.lock();
            state.written = id;
            state.filled = filled.or(state.filled);
        }
        self.allocator.wake();
        Ok(())
    }

    /// Called when the segment is full and synced. The file of a compressed one is cut to the
    /// length that it needs. If that fails the zeros stay, which does no harm.
    fn leave_segment(&mut self) {
        self.tell_captured(true);
        let Some(mut current) = self.current.take() else { return };
        if self.shared.form.is_compressed() {
            self.cut(&mut current);
        }
        self.hand_to_archiver(current);
    }

    /// Called when nothing is written to the segment any more.
    fn hand_to_archiver(&self, current: Current) {
        let Some(archiver) = &self.archiver else { return };
        self.shared.note_full(current.id);
        archiver.wake();
    }

    fn cut(&self, current: &mut Current) {
        let length = u64::from(current.stored_end);
        match current.file.set_len(length).and_then(|()| current.file.sync_data()) {
            Ok(()) => {
                if let Some(segment) = self.shared.lock().segments.get_mut(&current.id) {
                    segment.size = length;
                }
            }
            Err(error) => {
                tracing::warn!(%error, segment = current.id, "cannot cut a compressed segment of the commit log")
            }
        }
    }

    fn write_section(&mut self, section: &mut Section) -> Result<(), LogError> {
        let current = self.current.as_mut().expect("entered before");
        let written = if self.shared.form.is_compressed() {
            write_compressed(current, &self.shared.form, section, &mut self.compressed)
        } else {
            write_plain(current, section)
        };
        current.unsynced = true;
        written.map_err(LogError::io(&self.shared.directory.join(format::file_name(section.segment))))
    }

    /// Links the segment into `cdc_raw`, before bytes are written to it that may have to be
    /// captured.
    fn link_captured(&mut self) -> Result<(), LogError> {
        let Some(capture) = &self.shared.capture else { return Ok(()) };
        let Some(current) = self.current.as_mut().filter(|current| !current.is_linked) else { return Ok(()) };
        let cdc = self.shared.lock().segments.get(&current.id).map_or(CdcState::Forbidden, |found| found.cdc);
        if cdc != CdcState::Forbidden {
            let path = self.shared.directory.join(format::file_name(current.id));
            capture.link(&*self.shared.env.disk, &path, current.id)?;
            current.is_linked = true;
        }
        Ok(())
    }

    /// Tells the consumer of captured changes how far they are durable.
    fn tell_captured(&self, is_complete: bool) {
        let (Some(capture), Some(current)) = (&self.shared.capture, &self.current) else { return };
        let cdc = self.shared.lock().segments.get_mut(&current.id).map(|segment| {
            segment.durable_end = self.end.offset;
            segment.cdc
        });
        if cdc == Some(CdcState::Contains) {
            capture.write_index(&*self.shared.env.disk, current.id, self.end.offset, is_complete);
        }
    }

    fn sync(&mut self) -> Result<(), LogError> {
        let Some(current) = self.current.as_mut().filter(|current| current.unsynced) else {
            return Ok(());
        };
        let synced = current.file.sync_data();
        synced.map_err(LogError::sync(&self.shared.directory.join(format::file_name(current.id))))?;
        assert_eq!(self.end.segment, current.id, "what is synced is the segment that was written last");
        assert!(current.synced_end <= current.stored_end, "what is durable of a segment stays so");
        current.unsynced = false;
        current.syncs += 1;
        current.synced_end = current.stored_end;
        let appended = {
            let mut state = self.shared.lock();
            state.syncs += 1;
            state.pending.position()
        };
        self.shared.durability.advance(if is_on(Defect::AdvanceTooFar) { appended } else { self.end });
        self.tell_captured(false);
        Ok(())
    }

    fn release_room(&self, sections: VecDeque<Section>) {
        let wakers = {
            let mut state = self.shared.lock();
            state.pending.written(sections);
            let has_room = state.pending.bytes() <= super::COMMITLOG_PENDING_BYTES_MAX / 2;
            if has_room { std::mem::take(&mut state.waiting_for_room) } else { Vec::new() }
        };
        wakers.into_iter().for_each(std::task::Waker::wake);
    }

    /// When the writer comes again. `armed` tells appends that it comes by itself.
    fn next(&self, now: u64) -> Next {
        let unsynced = self.current.as_ref().is_some_and(|current| current.unsynced);
        let mut state = self.shared.lock();
        let has_more = !state.pending.is_empty();
        let SyncMode::Periodic(period) = self.shared.options.sync else {
            state.pending.armed = false;
            return if has_more { Next::Again } else { Next::Idle };
        };
        state.pending.armed = unsynced || has_more;
        if !state.pending.armed {
            return Next::Idle;
        }
        let elapsed = Duration::from_nanos(now.saturating_sub(self.last_sync));
        Next::After(period.saturating_sub(elapsed).min(WRITE_INTERVAL))
    }

    /// Whether an error ends the process: with policy `die` when the log cannot be written. A lack
    /// of descriptors does not, because it says nothing of the disk.
    fn is_fatal(&self, error: &LogError) -> bool {
        self.shared.options.failure_policy == FailurePolicy::Die && !matches!(error, LogError::NoDescriptors { .. })
    }

    /// Called when room or a descriptor is lacking: the waiting bytes stay, their writers are
    /// told, and no more records are taken until the step succeeds.
    fn pause_for_shortage(&mut self, error: LogError, rest: VecDeque<Section>) -> Next {
        let shared = &self.shared;
        let wakers = {
            let mut state = shared.lock();
            state.pending.put_back(rest);
            state.pending.armed = true;
            mem::take(&mut state.waiting_for_room)
        };
        if !shared.durability.is_short() {
            tracing::error!(%error, "the commit log cannot be written: writes are refused until it can");
            shared.durability.begin_shortage(error);
        }
        wakers.into_iter().for_each(std::task::Waker::wake);
        Next::After(SPACE_INTERVAL)
    }

    /// Called when a write or a sync has failed: nothing since the last sync is durable, and
    /// nothing will make it so.
    fn fail(&mut self, error: LogError) -> Next {
        let policy = self.shared.options.failure_policy;
        tracing::error!(%error, ?policy, "the commit log cannot be written");
        let lost = self.keys_lost();
        let next = if policy == FailurePolicy::Ignore {
            self.abandon();
            self.allocator.wake();
            Next::Again
        } else {
            self.shared.durability.stop();
            Next::Done
        };
        let wakers = std::mem::take(&mut self.shared.lock().waiting_for_room);
        wakers.into_iter().for_each(std::task::Waker::wake);
        (self.shared.options.on_failure)(policy, &error);
        if policy != FailurePolicy::Die && !lost.is_empty() {
            // memtables have it, and reads have shown it: in SSTables it outlives the process
            (self.shared.options.on_pressure)(&lost);
        }
        next
    }

    /// Memtables with records that may be lost.
    fn keys_lost(&self) -> Vec<DirtyKey> {
        let state = self.shared.lock();
        let mut keys: Vec<DirtyKey> = state.segments.range(self.end.segment..).flat_map(|(_, it)| it.dirty()).collect();
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    /// Gives up the segment and all waiting bytes, and goes on in the next segment.
    fn abandon(&mut self) {
        if let Some(mut current) = self.current.take() {
            // So that replay ends here quietly instead of finding a torn section that is not the
            // last. The disk just failed: if this fails too, replay reports the section.
            let erased = current.file.write_at(&[0; format::MARKER_LEN as usize], u64::from(current.synced_end));
            if let Err(error) = erased.and_then(|()| current.file.sync_data()) {
                tracing::warn!(%error, "cannot erase the lost section of the commit log");
            }
            self.hand_to_archiver(current);
        }
        let lost = {
            let mut state = self.shared.lock();
            state.pending.abandon();
            state.pending.position()
        };
        self.shared.durability.lose(lost);
    }
}

fn write_plain(current: &mut Current, section: &mut Section) -> io::Result<()> {
    // one that failed is written again where it was
    assert!(section.start <= current.stored_end, "sections of a segment leave no gap");
    let marker = format::marker(section.segment, section.marker, section.end());
    current.stored_end = section.end();
    let begins = section.start == section.marker;
    if begins {
        let place = match section.pieces.first_mut() {
            Some(Piece::Own(first)) => first.get_mut(..marker.len()),
            _ => None,
        };
        place.expect("a section begins with its marker's place").copy_from_slice(&marker);
    }
    let mut at = u64::from(section.start);
    for piece in &section.pieces {
        current.file.write_at(piece, at)?;
        at += piece.len() as u64;
    }
    if begins { Ok(()) } else { current.file.write_at(&marker, u64::from(section.marker)) }
}

fn write_compressed(current: &mut Current, form: &Form, section: &Section, stored: &mut Vec<u8>) -> io::Result<()> {
    assert_eq!(section.start, section.marker, "a compressed section is never extended");
    form.compress(section.segment, current.stored_end, &section.joined(), stored)?;
    current.file.write_at(stored, u64::from(current.stored_end))?;
    current.stored_end += u32::try_from(stored.len()).expect("checked when it was compressed");
    if stored.capacity() > REUSE_BYTES_MAX {
        *stored = Vec::new();
    }
    Ok(())
}
