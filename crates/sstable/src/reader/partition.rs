//! Reads one partition after another: its head, then its rows and markers within slices, forwards or backwards.
//!
//! Forwards: at each slice the row index, where there is one, gives the block to begin in; rows before the slice are passed
//! over by their sizes alone. Backwards: block after block from the last; of a block the starts of its unfiltereds
//! are found first, then it is decoded from its end. At most one block is in memory.

use std::cmp::Ordering;
use std::sync::Arc;

use rows::codec::{
    Decoded, Header, decode_static_row, decode_unfiltered, get_deletion_time, get_encoded_row, pass_rows_before,
    peek_unfiltered,
};
use rows::{
    Bound, DeletionTime, MaybeEncoded, PartitionHead, PrefixKind, ReadContext, ReadError, ReadMode, ReadStats, Slices,
    Unfiltered,
};
use stdx::Cursor;
use types::DecoratedKey;

use super::clip::{Clip, Step};
use super::cursor::DataCursor;
use super::explain::Visits;
use super::walk::Walk;
use super::{Resolved, SSTable};
use crate::error::Malformed;
use crate::index::{Block, Blocks, PartitionPosition, RowIndex};

/// Unfiltereds that an inline read may pass over before it gives the matter to the background.
const INLINE_PASSED_MAX: u32 = 4096;

pub(super) struct PartitionReader {
    sstable: SSTable,
    cursor: DataCursor,
    clip: Clip,
    pub(super) reversed: bool,
    /// Of the partition in the data.
    pub(super) start: u64,
    /// Of its first unfiltered.
    body: u64,
    pub(super) index: Option<RowIndex>,
    /// The slice, by number, that the row index was asked for last.
    sought: Option<usize>,
    held: Option<Unfiltered>,
    /// Rows may be given as they are encoded, against this.
    pub(super) encoded: Option<Arc<Header>>,
    /// Nothing more is to be read of the partition.
    ended: bool,
    passed: u32,
    /// Reversed: where in the row index the block is, and what of the block is still to be given.
    blocks: Option<Blocks>,
    block_start: Option<u64>,
    starts: Vec<u64>,
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
            ended: true,
            passed: 0,
            blocks: None,
            block_start: None,
            starts: Vec::new(),
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
        let head = self.open_head(position, wanted)?;
        self.ended |= head.is_none();
        if self.visits.is_some() && head.is_some() {
            self.visit_partition(left);
        }
        Ok(head)
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
                let (key, entry) = self.sstable.row_index(position)?;
                if wanted.is_some_and(|wanted| wanted.key != key) {
                    return Ok(None);
                }
                self.start = entry.data_position;
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
        let first = entry.blocks.clone().first().map_err(|error| self.index_error(error))?;
        self.body = self.place(first.map_or(0, |block| block.offset))?;
        self.cursor.seek(self.body);
        Ok(Some(PartitionHead { key: wanted.clone(), deletion: entry.deletion, static_row: None }))
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
        Ok(Some(PartitionHead { key, deletion, static_row }))
    }

    /// A place in the data by its distance from the partition's start, which the row index says.
    fn place(&self, offset: u64) -> Result<u64, ReadError> {
        let length = self.sstable.shared.data.length();
        self.start.checked_add(offset).filter(|place| *place <= length).ok_or_else(|| {
            let what = format!("a block {offset} bytes behind {} in data of {length} bytes", self.start);
            self.index_error(Malformed::at(0, what))
        })
    }

    fn index_error(&self, error: Malformed) -> ReadError {
        self.sstable.index_error(error, self.sstable.shared.index.rows_component())
    }

    /// Where in the data the next unfiltered begins (walking forwards); behind the head of a partition, its first.
    pub fn position(&self) -> u64 {
        self.cursor.position()
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
            match self.clip.step(unfiltered) {
                Step::Pass => self.pass(1)?,
                Step::Give(unfiltered) | Step::GiveLast(unfiltered) => return Ok(Some(unfiltered)),
                Step::GiveFirst(marker, unfiltered) => {
                    self.held = Some(unfiltered);
                    return Ok(Some(Unfiltered::Marker(marker)));
                }
                Step::NextSlice(unfiltered) => self.held = Some(unfiltered),
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

    fn pass(&mut self, count: u32) -> Result<(), ReadError> {
        self.passed += count;
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
        let Some(bound) = self.clip.awaited() else { return Ok(true) };
        let number = self.clip.slices_done();
        if self.sought != Some(number) {
            self.sought = Some(number);
            if self.index.is_some() {
                let bound = bound.clone();
                if self.reversed { self.jump_backwards(Some(&bound))? } else { self.jump_forwards(&bound)? }
            }
        }
        if self.held.is_none() {
            if self.reversed { self.pass_after()? } else { self.pass_before()? }
        }
        Ok(true)
    }

    fn jump_forwards(&mut self, bound: &Bound) -> Result<(), ReadError> {
        let Some(entry) = &self.index else { return Ok(()) };
        let mut blocks = entry.blocks.clone();
        let found = blocks.first_behind(bound, &self.sstable.schema);
        let found = found.map_err(|error| self.index_error(error))?;
        let Some(block) = found else { return Ok(()) };
        let target = self.place(block.offset)?;
        let here = self.cursor.position();
        if target > here || (target == here && self.held.is_some()) {
            self.held = None;
            self.cursor.seek(target);
            self.clip.jump(block.open);
            ReadStats::add(&self.cursor.context().stats.blocks, 1);
            if self.visits.is_some() {
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
                pass_rows_before(window, offset, header, clip.comparator(), bound)
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
                Decoded::Row(row) if row.is_empty() => {}
                Decoded::Row(row) => return Ok(Some(Unfiltered::Row(row))),
                Decoded::Marker(marker) => return Ok(Some(Unfiltered::Marker(marker))),
                Decoded::EndOfPartition => return Ok(None),
            }
        }
    }

    /// Passes over rows after the slice without decoding them.
    fn pass_after(&mut self) -> Result<(), ReadError> {
        loop {
            if self.starts.is_empty() && !self.load_previous_block()? {
                return Ok(());
            }
            let Self { cursor, clip, sstable, starts, .. } = self;
            let (Some(bound), Some(start)) = (clip.awaited(), starts.last()) else { return Ok(()) };
            let header = &sstable.schema.header;
            cursor.seek(*start);
            let is_after = cursor.decode(&sstable.shared.data, |window, offset| {
                let peeked = peek_unfiltered(window, offset, header)?;
                let is_after = peeked.is_some_and(|peeked| {
                    peeked.kind == PrefixKind::Clustering
                        && peeked.compare(bound, clip.comparator()) == Ordering::Greater
                });
                Ok((is_after, offset))
            })?;
            if !is_after {
                return Ok(());
            }
            self.starts.pop();
            self.pass(1)?;
        }
    }

    fn previous_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        loop {
            if self.starts.is_empty() && !self.load_previous_block()? {
                return Ok(None);
            }
            let Some(start) = self.starts.pop() else { return Ok(None) };
            let Self { cursor, sstable, .. } = self;
            let header = &sstable.schema.header;
            cursor.seek(start);
            match cursor
                .decode(&sstable.shared.data, |window, offset| decode_unfiltered(window, offset, header, true))?
            {
                Decoded::Row(row) if row.is_empty() => {}
                Decoded::Row(row) => return Ok(Some(Unfiltered::Row(row))),
                Decoded::Marker(marker) => return Ok(Some(Unfiltered::Marker(marker))),
                Decoded::EndOfPartition => return Ok(None),
            }
        }
    }

    /// Goes back to the block before; false: there is none.
    fn load_previous_block(&mut self) -> Result<bool, ReadError> {
        match (&mut self.blocks, self.block_start) {
            (None, None) if self.index.is_some() => self.jump_backwards(None).map(|()| !self.starts.is_empty()),
            (None, None) => self.load_block(self.body, None).map(|()| !self.starts.is_empty()),
            (Some(blocks), Some(end)) => match blocks.previous() {
                Ok(None) => Ok(false),
                Ok(Some(block)) => {
                    let start = self.place(block.offset)?;
                    // nodes of a damaged trie may share children: a walk over them would go on and on
                    if start >= end {
                        let what = format!("a block at {start} before one at {end}");
                        return Err(self.index_error(Malformed::at(0, what)));
                    }
                    self.load_block(start, Some(end)).map(|()| true)
                }
                Err(error) => Err(self.index_error(error)),
            },
            _ => Ok(false),
        }
    }

    /// Goes to the last block that can hold something before `bound` (None: the last block), unless the walk is there already.
    fn jump_backwards(&mut self, bound: Option<&Bound>) -> Result<(), ReadError> {
        let Some(entry) = &self.index else { return Ok(()) };
        let mut blocks = entry.blocks.clone();
        let found = find_block(&mut blocks, bound, &self.sstable.schema).map_err(|error| self.index_error(error))?;
        let Some((block, end, open)) = found else { return Ok(()) };
        let (start, end) = (self.place(block.offset)?, self.place(end)?);
        if self.block_start.is_some_and(|here| start >= here) {
            return Ok(());
        }
        self.held = None;
        self.clip.jump(open);
        self.blocks = Some(blocks);
        self.load_block(start, Some(end))
    }

    /// Finds the starts of the unfiltereds from `start` to `end`, or to the end of the partition.
    fn load_block(&mut self, start: u64, end: Option<u64>) -> Result<(), ReadError> {
        let Self { cursor, sstable, starts, .. } = self;
        let header = &sstable.schema.header;
        cursor.pin(start);
        starts.clear();
        while end.is_none_or(|end| cursor.position() < end) {
            let position = cursor.position();
            let is_end = cursor.decode(&sstable.shared.data, |window, offset| {
                Ok(match peek_unfiltered(window, offset, header)? {
                    Some(peeked) => (false, peeked.end),
                    None => (true, offset + 1),
                })
            })?;
            if is_end {
                break;
            }
            starts.push(position);
        }
        self.block_start = Some(start);
        ReadStats::add(&self.cursor.context().stats.blocks, 1);
        if self.visits.is_some() {
            self.visit_backwards();
        }
        Ok(())
    }
}

/// The block of a position with its end and the range deletion open behind it; the cursor is left at the block.
fn find_block(
    blocks: &mut Blocks,
    bound: Option<&Bound>,
    schema: &Resolved,
) -> Result<Option<(Block, u64, DeletionTime)>, Malformed> {
    let found = match bound {
        Some(bound) => blocks.last_before(bound, schema)?,
        None => blocks.end()?,
    };
    let Some(block) = found else { return Ok(None) };
    if let Some(after) = blocks.next()? {
        blocks.previous()?;
        return Ok(Some((block, after.offset, after.open)));
    }
    // behind the last block: the entry found is the end of the partition
    blocks.end()?;
    let last = blocks.previous()?;
    Ok(last.map(|last| (last, block.offset, block.open)))
}
