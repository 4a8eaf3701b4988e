//! The pending buffer: where records wait for the writer, already laid out as they will be on disk.
//!
//! Positions are given here, so the buffer knows how full the segment is: a record that does not
//! fit closes the segment and opens the next id, whose file the writer will find or make. A
//! section's marker is 8 bytes of zeros here until the writer knows its end.

use std::borrow::Cow;
use std::collections::VecDeque;

use bytes::Bytes;

use super::format::MARKER_LEN;
use super::{Appended, Entries, LogPosition};

/// Bytes at which a writer that waits for its time is woken early.
pub(super) const WAKE_BYTES: usize = 4 << 20;

/// Bytes above which a buffer is not kept for reuse.
pub(super) const REUSE_BYTES_MAX: usize = 4 << 20;

/// Bytes from which on an entry becomes a piece of its section by itself, instead of being copied
/// into the buffer.
pub(super) const MOVED_BYTES_MIN: usize = if cfg!(test) { 500 } else { 128 << 10 };

/// A piece of a section.
#[derive(Debug)]
pub(super) enum Piece {
    /// Bytes that have no other holder.
    Own(Vec<u8>),
    /// A large record, which is on its way to other nodes as well, or came from one.
    Shared(Bytes),
}

impl std::ops::Deref for Piece {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Own(bytes) => bytes,
            Self::Shared(bytes) => bytes,
        }
    }
}

/// Bytes for one place in one segment: a section, or more of the section that is still open.
#[derive(Debug)]
pub(super) struct Section {
    pub segment: u64,
    /// Offset of the section's marker.
    pub marker: u32,
    /// Offset at which the bytes are written; that of the marker, unless they continue the
    /// section.
    pub start: u32,
    /// The bytes, one piece behind the other. A section that begins here has its marker's place at
    /// the front of the first, which is its own then.
    pub pieces: Vec<Piece>,
    /// Bytes of all pieces.
    pub len: u32,
}

impl Section {
    pub(super) fn end(&self) -> u32 {
        self.start + self.len
    }

    /// The bytes as one piece.
    pub(super) fn joined(&self) -> Cow<'_, [u8]> {
        match self.pieces.as_slice() {
            [one] => Cow::Borrowed(one),
            pieces => {
                let mut joined = Vec::with_capacity(self.len as usize);
                pieces.iter().for_each(|piece| joined.extend_from_slice(piece));
                Cow::Owned(joined)
            }
        }
    }
}

fn assert_in_order(sections: &VecDeque<Section>) {
    let places = sections.iter().map(|section| (section.segment, section.start));
    assert!(places.is_sorted_by(|a, b| a < b), "sections of the log are written in order");
}

pub(super) struct Pending {
    segment_size: u32,
    header_len: u32,
    /// Sections of segments that are full.
    closed: VecDeque<Section>,
    /// The segment being filled, and how far it is allocated.
    segment: u64,
    offset: u32,
    last: LogPosition,
    /// The offset of the open section's marker; None: no section is open.
    open: Option<u32>,
    start: u32,
    /// Bytes for the segment being filled that wait for the disk: pieces, and the buffer behind
    /// them.
    pieces: Vec<Piece>,
    buffer: Vec<u8>,
    /// A buffer kept for the next swap.
    spare: Vec<u8>,
    bytes: usize,
    /// True: the writer will come by itself, and a wake is not needed.
    pub armed: bool,
    forced: bool,
    first_at: u64,
    /// When the oldest record that is not synced came, nanoseconds of the monotonic clock. It is
    /// the first since the writer last synced. None: there is none.
    oldest_unsynced: Option<u64>,
}

impl Pending {
    pub(super) fn new(segment: u64, segment_size: u32, header_len: u32) -> Self {
        Pending {
            segment_size,
            header_len,
            closed: VecDeque::new(),
            segment,
            offset: header_len,
            last: LogPosition { segment, offset: 0 },
            open: None,
            start: header_len,
            pieces: Vec::new(),
            buffer: Vec::new(),
            spare: Vec::new(),
            bytes: 0,
            armed: false,
            forced: false,
            first_at: 0,
            oldest_unsynced: None,
        }
    }

    /// Bytes appended and not yet written.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn is_empty(&self) -> bool {
        self.closed.is_empty() && self.has_nothing_open()
    }

    /// Whether no bytes wait for the segment being filled.
    fn has_nothing_open(&self) -> bool {
        self.buffer.is_empty() && self.pieces.is_empty()
    }

    /// The end of the last record. Before the first one it is the begin of this process's first
    /// segment, behind everything that is replayed.
    pub(super) fn position(&self) -> LogPosition {
        self.last
    }

    /// Whether the writer must be told of records of this size: when it sleeps, or when it should
    /// not wait for its time.
    pub(super) fn needs_wake(&self, added: usize) -> bool {
        let passes = self.bytes < WAKE_BYTES && self.bytes + added >= WAKE_BYTES;
        if self.armed { passes } else { self.is_empty() }
    }

    /// Notes the time of a record, if it is the first since the writer came, or since it synced.
    pub(super) fn note_time(&mut self, now: impl FnOnce() -> u64) {
        if !self.is_empty() && self.oldest_unsynced.is_some() {
            return;
        }
        let now = now();
        if self.is_empty() {
            self.first_at = now;
        }
        self.oldest_unsynced.get_or_insert(now);
    }

    pub(super) fn first_at(&self) -> u64 {
        self.first_at
    }

    pub(super) fn oldest_unsynced(&self) -> Option<u64> {
        self.oldest_unsynced
    }

    /// Has the next swap sync.
    pub(super) fn force_sync(&mut self) {
        self.forced = true;
    }

    pub(super) fn is_forced(&self) -> bool {
        self.forced
    }

    /// The segment that records of this size would go to.
    pub(super) fn segment_for(&self, total: usize) -> u64 {
        self.segment + u64::from(!self.fits(u32::try_from(total).unwrap_or(u32::MAX)))
    }

    fn fits(&self, added: u32) -> bool {
        self.offset.saturating_add(added).saturating_add(self.marker_needed()) <= self.segment_size
    }

    /// Lays out entries, which the caller has checked to fit a segment.
    pub(super) fn append(&mut self, entries: &mut Entries) -> Appended {
        let total = entries.len();
        let added = u32::try_from(total).expect("fits a segment");
        if !self.fits(added) {
            self.next_segment();
        }
        if self.open.is_none() {
            self.open = Some(self.offset);
            self.start = self.offset;
            self.buffer.extend_from_slice(&[0; MARKER_LEN as usize]);
            self.offset += MARKER_LEN;
        } else if self.has_nothing_open() {
            self.start = self.offset;
        }
        let first = LogPosition { segment: self.segment, offset: self.offset + 1 };
        let entries = std::mem::take(entries);
        if total < MOVED_BYTES_MIN {
            self.buffer.extend_from_slice(&entries.bytes);
        } else {
            if !self.buffer.is_empty() {
                self.pieces.push(Piece::Own(std::mem::take(&mut self.buffer)));
            }
            self.pieces.extend(entries.pieces);
            self.pieces.push(Piece::Own(entries.bytes));
        }
        self.offset += added;
        self.bytes += total;
        let last = LogPosition { segment: self.segment, offset: self.offset };
        assert!(
            self.last < first && first <= last,
            "positions of the commit log only grow: {last:?} behind {:?}",
            self.last
        );
        assert!(self.offset <= self.segment_size, "a record does not reach beyond its segment");
        self.last = last;
        Appended { first, last: self.last }
    }

    fn marker_needed(&self) -> u32 {
        if self.open.is_none() { MARKER_LEN } else { 0 }
    }

    /// Closes the segment and begins the next one.
    fn next_segment(&mut self) {
        let full = self.cut();
        self.closed.extend(full);
        self.open = None;
        self.segment += 1;
        self.offset = self.header_len;
    }

    /// Ends the segment, unless it is empty.
    pub(super) fn end_segment(&mut self) {
        if self.offset > self.header_len {
            self.next_segment();
        }
    }

    fn cut(&mut self) -> Option<Section> {
        if self.has_nothing_open() {
            return None;
        }
        let marker = self.open.expect("bytes belong to a section");
        let mut pieces = std::mem::take(&mut self.pieces);
        if !self.buffer.is_empty() {
            pieces.push(Piece::Own(std::mem::replace(&mut self.buffer, std::mem::take(&mut self.spare))));
        }
        let len = self.offset - self.start;
        let held: usize = pieces.iter().map(|piece| piece.len()).sum();
        assert_eq!(held, len as usize, "a section of the log is as long as its pieces");
        Some(Section { segment: self.segment, marker, start: self.start, pieces, len })
    }

    /// Takes everything to be written. With `sync` the open section ends: the next record begins
    /// another.
    pub(super) fn take(&mut self, sync: bool) -> VecDeque<Section> {
        let mut sections = std::mem::take(&mut self.closed);
        sections.extend(self.cut());
        assert_in_order(&sections);
        if sync {
            self.open = None;
            self.forced = false;
            self.oldest_unsynced = None;
        }
        sections
    }

    /// Called when `sections` are written: their bytes do not count any more, and one of their
    /// buffers is used again.
    pub(super) fn written(&mut self, sections: VecDeque<Section>) {
        for Section { pieces, len, start, marker, .. } in sections {
            let overhead = if start == marker { MARKER_LEN } else { 0 };
            let written = (len - overhead) as usize;
            assert!(self.bytes >= written, "bytes of the log that are written were appended: {written}");
            self.bytes -= written;
            // the last one is the buffer, most often
            if let Some(Piece::Own(mut bytes)) = pieces.into_iter().next_back()
                && bytes.capacity() <= REUSE_BYTES_MAX
            {
                bytes.clear();
                self.spare = bytes;
            }
        }
    }

    /// Called when `sections` could not be written: they come first the next time, and are synced
    /// then, because the section that was open may have ended.
    pub(super) fn put_back(&mut self, mut sections: VecDeque<Section>) {
        sections.extend(self.closed.drain(..));
        assert_in_order(&sections);
        self.closed = sections;
        self.forced = true;
    }

    /// Called after a failure: forgets the bytes that wait, and goes on in a new segment.
    pub(super) fn abandon(&mut self) {
        self.closed.clear();
        self.pieces.clear();
        self.buffer.clear();
        self.bytes = 0;
        self.oldest_unsynced = None;
        self.next_segment();
    }
}
