//! Reads one partition after another: its head, then its rows and markers within slices, forwards
//! or backwards.
//!
//! Forwards: at each slice the row index, where there is one, gives the block to begin in, unless
//! the slice is a few rows away; rows before the slice are passed over by their sizes alone.
//! Backwards: block after block from the last; of a block the starts of its unfiltereds are found
//! first, then, among them, where the slice begins; from there it is decoded. At most one block is
//! in memory.

mod backwards;

use std::cmp::Ordering;
use std::sync::Arc;
use std::sync::atomic;

use rows::codec::{
    CodecError, Decoded, Header, Peeked, RowVisitor, ShowOutcome, decode_static_row, decode_unfiltered,
    get_deletion_time, get_encoded_row, pass_rows_before, peek_tombstone, peek_unfiltered, show_encoded_row,
};
use rows::{MaybeEncoded, PartitionHead, ReadContext, ReadError, ReadMode, ReadStats, Shown, Slices, Unfiltered};
use stdx::Cursor;
use types::DecoratedKey;

use super::SSTable;
use super::clip::{Clip, Step};
use super::cursor::DataCursor;
use super::explain::Visits;
use super::walk::Walk;
use crate::error::{IndexError, Malformed};
use crate::index::{Blocks, PartitionPosition, RowIndex};

/// Unfiltereds that an inline read may pass over before it gives the matter to the background: a
/// few tenths of a millisecond.
const INLINE_PASSED_MAX: u32 = 32 << 10;

/// The next slice is first looked for in so many rows behind the one before, as far as they are at
/// hand.
const NEAR_ROWS: u32 = 7;

pub(super) struct PartitionReader {
    sstable: SSTable,
    cursor: DataCursor,
    clip: Clip,
    pub(super) reversed: bool,
    /// The position of the partition in the data.
    pub(super) start: u64,
    /// The position of the partition's first unfiltered.
    body: u64,
    pub(super) index: Option<RowIndex>,
    /// The slice, by number, that the row index was asked for last.
    sought: Option<usize>,
    held: Option<Unfiltered>,
    /// Rows may be given as they are encoded, against this.
    pub(super) encoded: Option<Arc<Header>>,
    /// Rows are given, too, of which nothing is left because their columns were dropped; forwards
    /// only.
    pub(super) keeps_empty: bool,
    /// Nothing more is to be read of the partition.
    ended: bool,
    passed: u32,
    /// Reversed: where in the row index the block is, and what of the block is still to be given.
    blocks: Option<Blocks>,
    block_start: Option<u64>,
    starts: Vec<u64>,
    /// Some of the starts are those of markers.
    has_markers: bool,
    /// The blocks that were read, for EXPLAIN; else None.
    pub(super) visits: Option<Box<Visits>>,
}

impl PartitionReader {
    pub fn sstable(&self) -> &SSTable {
        &self.sstable
    }

    pub fn new(sstable: SSTable, context: &ReadContext, slices: Slices, reversed: bool, walk: Walk) -> Self {
        let comparator = sstable.schema.table.comparator.clone();
        Self {
            cursor: DataCursor::new(context.clone(), walk),
            clip: Clip::new(comparator, slices, reversed),
            sstable,
            reversed,
            start: 0,
            body: 0,
            index: None,
            sought: None,
            held: None,
            encoded: None,
            keeps_empty: false,
            ended: true,
            passed: 0,
            blocks: None,
            block_start: None,
            starts: Vec::new(),
            has_markers: false,
            visits: None,
        }
    }

    /// Goes to a partition. None: what stands there has another key than the one wanted.
    pub fn open(
        &mut self,
        position: PartitionPosition,
        wanted: Option<&DecoratedKey>,
    ) -> Result<Option<PartitionHead>, ReadError> {
        self.clip.restart();
        self.cursor.unpin();
        (self.sought, self.held, self.blocks, self.block_start) = (None, None, None, None);
        self.starts.clear();
        self.ended = self.clip.is_done();
        self.index = None;
        let left = self.cursor.position();
        let head = self.open_head(position, wanted);
        self.ended |= !matches!(head, Ok(Some(_)));
        if self.visits.is_some() && matches!(head, Ok(Some(_))) {
            self.visit_partition(left);
        }
        head
    }

    fn open_head(
        &mut self,
        position: PartitionPosition,
        wanted: Option<&DecoratedKey>,
    ) -> Result<Option<PartitionHead>, ReadError> {
        match position {
            PartitionPosition::Data(start) => {
                self.start = start;
                self.read_head(wanted)
            }
            PartitionPosition::Rows(position) => {
                let (key, entry) = self.sstable.row_index(position, self.cursor.context().mode)?;
                if wanted.is_some_and(|wanted| wanted.key != key) {
                    return Ok(None);
                }
                self.start = entry.data_position;
                self.cursor.context().stats.row_index_size.fetch_max(entry.heap_size, atomic::Ordering::Relaxed);
                let head = match wanted {
                    Some(wanted) if self.sstable.schema.header.statics.is_empty() => {
                        self.head_from_index(wanted, &entry)?
                    }
                    _ => self.read_head(wanted)?,
                };
                self.index = Some(entry);
                Ok(head)
            }
        }
    }

    /// The row index repeats what the head of a partition without static row says.
    fn head_from_index(&mut self, wanted: &DecoratedKey, entry: &RowIndex) -> Result<Option<PartitionHead>, ReadError> {
        self.body = self.start;
        if self.clip.is_all() && !self.reversed {
            let first = entry.blocks.clone().first().map_err(|error| self.index_error(error))?;
            self.body = self.place(first.map_or(0, |block| block.offset))?;
        }
        // else the row index leads on from here, at the first slice or to the last block
        self.cursor.seek(self.body);
        Ok(Some(PartitionHead::new(wanted.clone(), entry.deletion, None)))
    }

    fn read_head(&mut self, wanted: Option<&DecoratedKey>) -> Result<Option<PartitionHead>, ReadError> {
        self.cursor.seek(self.start);
        let form = self.sstable.schema.header.deletion_times;
        let (key, deletion) = self.cursor.decode(&self.sstable.shared.data, |window, offset| {
            let rest = window.get(offset..).unwrap_or_default();
            let mut cursor = Cursor::new(rest);
            let key = window.slice_ref(cursor.short_bytes()?);
            let deletion = get_deletion_time(&mut cursor, form)?;
            Ok(((key, deletion), offset + cursor.position()))
        })?;
        if wanted.is_some_and(|wanted| wanted.key != key) {
            return Ok(None);
        }
        let header = &self.sstable.schema.header;
        let static_row = if header.statics.is_empty() {
            None
        } else {
            let row = self
                .cursor
                .decode(&self.sstable.shared.data, |window, offset| decode_static_row(window, offset, header, true))?;
            (!row.is_empty()).then_some(row)
        };
        self.body = self.cursor.position();
        let key = wanted.cloned().unwrap_or_else(|| self.sstable.shared.order.decorate(key));
        Ok(Some(PartitionHead::new(key, deletion, static_row)))
    }

    /// A place in the data by its distance from the partition's start, which the row index says.
    fn place(&self, offset: u64) -> Result<u64, ReadError> {
        let length = self.sstable.shared.data.length();
        self.start.checked_add(offset).filter(|place| *place <= length).ok_or_else(|| {
            let what = format!("a block {offset} bytes behind {} in data of {length} bytes", self.start);
            self.index_error(Malformed::at(0, what))
        })
    }

    fn index_error(&self, error: impl Into<IndexError>) -> ReadError {
        self.sstable.index_error(error, self.sstable.shared.index.rows_component())
    }

    /// Where in the data the next unfiltered begins (walking forwards); behind the head of a
    /// partition, its first.
    pub fn position(&self) -> u64 {
        self.cursor.position()
    }

    /// Whether the partition was read to its end (walking forwards), where the next one begins.
    pub fn is_at_end_of_partition(&self) -> bool {
        self.ended
    }

    /// The next of the partition.
    #[inline]
    pub fn next(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        loop {
            if self.ended {
                return Ok(self.clip.finish().map(Unfiltered::Marker));
            }
            if !self.clip.is_all() && !self.approach()? {
                self.ended = true;
                continue;
            }
            let next = match self.held.take() {
                Some(held) => Some(held),
                None if self.reversed => self.previous_unfiltered()?,
                None => self.next_unfiltered()?,
            };
            let Some(unfiltered) = next else {
                self.ended = true;
                continue;
            };
            match self.clip.step(&unfiltered) {
                Step::Pass => self.pass(1)?,
                Step::Give => return Ok(Some(unfiltered)),
                Step::GiveMarker(marker) => return Ok(Some(Unfiltered::Marker(marker))),
                Step::GiveFirst(marker) => {
                    self.held = Some(unfiltered);
                    return Ok(Some(Unfiltered::Marker(marker)));
                }
                Step::NextSlice => self.held = Some(unfiltered),
            }
        }
    }

    /// The next of the partition, in a scan of everything.
    #[inline]
    pub fn next_maybe_encoded(&mut self) -> Result<Option<MaybeEncoded>, ReadError> {
        let Self { cursor, sstable, .. } = self;
        if let Some(header) = self.encoded.as_ref().filter(|_| !self.ended) {
            let row = cursor.decode(&sstable.shared.data, |window, offset| get_encoded_row(window, offset, header))?;
            if let Some(row) = row {
                return Ok(Some(MaybeEncoded::Encoded(row)));
            }
        }
        Ok(self.next()?.map(MaybeEncoded::Decoded))
    }

    /// Shows the next rows of the partition, at most `most`, in a scan of everything.
    pub fn show_encoded(&mut self, visitor: &mut dyn RowVisitor, most: usize) -> Result<Shown, ReadError> {
        let Self { cursor, sstable, .. } = self;
        let mut shown = Shown::default();
        let Some(header) = self.encoded.as_ref().filter(|_| !self.ended) else { return Ok(shown) };
        let mut show = |window: &_, offset| show_encoded_row(window, offset, header, visitor);
        while shown.rows < most {
            match cursor.decode(&sstable.shared.data, &mut show)? {
                ShowOutcome::ShownRow => shown.rows += 1,
                ShowOutcome::EndOfPartition => {
                    self.ended = true;
                    // a range that is open here is still to be closed
                    shown.has_ended = !self.clip.has_open();
                    break;
                }
                ShowOutcome::NotShown => break,
            }
        }
        Ok(shown)
    }

    /// Passes over tombstones in the slice that the walk is in, at most `most`, without taking them
    /// apart.
    pub fn pass_tombstones(&mut self, most: u64) -> Result<u64, ReadError> {
        if self.ended || self.held.is_some() || !self.clip.is_inside() {
            return Ok(0);
        }
        if self.reversed {
            return self.pass_tombstones_backwards(most);
        }
        let Self { cursor, sstable, clip, .. } = self;
        let header = &sstable.schema.header;
        cursor.decode(&sstable.shared.data, |window, offset| {
            let (mut passed, mut at) = (0, offset);
            while passed < most {
                match peek_tombstone(window, at, header) {
                    Ok(Some(tombstone)) if clip.passes(&tombstone) => at = tombstone.position.end,
                    Err(error) if passed == 0 => return Err(error),
                    _ => break,
                }
                passed += 1;
            }
            Ok((passed, at))
        })
    }

    fn pass(&mut self, count: u32) -> Result<(), ReadError> {
        self.passed = self.passed.saturating_add(count);
        if self.passed > INLINE_PASSED_MAX && self.cursor.context().mode == ReadMode::Inline {
            return Err(ReadError::WouldBlock);
        }
        Ok(())
    }

    /// Goes near the start of the next slice. False: there is none.
    fn approach(&mut self) -> Result<bool, ReadError> {
        if self.clip.is_done() {
            return Ok(false);
        }
        if self.clip.awaited().is_none() {
            return Ok(true);
        }
        let number = self.clip.slices_done();
        if self.sought != Some(number) {
            self.sought = Some(number);
            if self.index.is_some() && (number == 0 || !self.is_near()?) {
                if self.reversed { self.jump_backwards(true)? } else { self.jump_forwards()? }
            }
        }
        if self.held.is_none() {
            if self.reversed { self.pass_after()? } else { self.pass_before()? }
        }
        Ok(true)
    }

    /// Whether the awaited slice can be gone on to without the row index. Walking forwards, passes
    /// over the rows between where they are few.
    fn is_near(&mut self) -> Result<bool, ReadError> {
        if let Some(held) = &self.held {
            return Ok(self.clip.has_reached(held));
        }
        if self.reversed {
            return self.is_in_block();
        }
        let Self { cursor, clip, sstable, .. } = self;
        let Some(bound) = clip.awaited().filter(|_| cursor.is_in_window()) else { return Ok(false) };
        let (header, comparator) = (&sstable.schema.header, clip.comparator());
        let (passed, is_there) = cursor.decode(&sstable.shared.data, |window, offset| {
            let passed = pass_rows_before(window, offset, header, comparator, bound, NEAR_ROWS);
            let (passed, at) = unless_truncated(passed)?.unwrap_or((0, offset));
            let next = unless_truncated(peek_unfiltered(window, at, header))?;
            // the partition may end here
            let reaches = |peeked: Option<Peeked<'_>>| {
                peeked.is_none_or(|peeked| peeked.compare(bound, comparator) != Ordering::Less)
            };
            Ok(((passed, passed < NEAR_ROWS && next.is_some_and(reaches)), at))
        })?;
        self.pass(passed)?;
        Ok(is_there)
    }

    fn jump_forwards(&mut self) -> Result<(), ReadError> {
        let (Some(entry), Some(bound)) = (&mut self.index, self.clip.awaited()) else { return Ok(()) };
        let found = entry.blocks.first_behind(bound, &self.sstable.schema);
        let Some(block) = found.map_err(|error| self.index_error(error))? else {
            let error = Malformed::at(0, format!("no first block of the partition at {}", self.start));
            return Err(self.index_error(error));
        };
        let target = self.place(block.offset)?;
        let here = self.cursor.position();
        if target > here || (target == here && self.held.is_some()) {
            self.held = None;
            self.cursor.seek(target);
            self.clip.jump(block.open);
            ReadStats::add(&self.cursor.context().stats.blocks, 1);
            if self.visits.is_some()
                && let Some(entry) = &self.index
            {
                let blocks = entry.blocks.clone();
                self.visit_block(blocks, block, here);
            }
        }
        Ok(())
    }

    /// Passes over rows before the slice without decoding them.
    fn pass_before(&mut self) -> Result<(), ReadError> {
        loop {
            let Self { cursor, clip, sstable, .. } = self;
            let Some(bound) = clip.awaited() else { return Ok(()) };
            let header = &sstable.schema.header;
            let passed = cursor.decode(&sstable.shared.data, |window, offset| {
                pass_rows_before(window, offset, header, clip.comparator(), bound, u32::MAX)
            })?;
            if passed == 0 {
                return Ok(());
            }
            self.pass(passed)?;
        }
    }

    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        let Self { cursor, sstable, .. } = self;
        let header = &sstable.schema.header;
        loop {
            match cursor
                .decode(&sstable.shared.data, |window, offset| decode_unfiltered(window, offset, header, true))?
            {
                // all it held was of dropped columns
                Decoded::Row(row) if row.is_empty() && !self.keeps_empty => {}
                Decoded::Row(row) => return Ok(Some(Unfiltered::Row(row))),
                Decoded::Marker(marker) => return Ok(Some(Unfiltered::Marker(marker))),
                Decoded::EndOfPartition => return Ok(None),
            }
        }
    }
}

/// None where the bytes end too early.
fn unless_truncated<T>(result: Result<T, CodecError>) -> Result<Option<T>, CodecError> {
    match result {
        Err(CodecError::Truncated) => Ok(None),
        result => result.map(Some),
    }
}
