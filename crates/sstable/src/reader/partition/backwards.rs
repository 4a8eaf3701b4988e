//! Backwards through a partition: block after block, each by the starts of its unfiltereds.

use std::cmp::Ordering;

use rows::codec::{Decoded, Deleted, decode_unfiltered, find_starts, peek_tombstone, peek_unfiltered};
use rows::{Bound, DeletionTime, PrefixKind, ReadError, ReadStats, Unfiltered};

use super::PartitionReader;
use crate::error::{IndexError, Malformed};
use crate::index::{Block, Blocks};
use crate::read_schema::ReadSchema;

/// Room for the starts of a block, at first.
const STARTS: usize = 128;

impl PartitionReader {
    /// Something of what is left of the block that is read backwards stands before the awaited
    /// bound.
    pub(super) fn is_in_block(&mut self) -> Result<bool, ReadError> {
        let Self { cursor, clip, sstable, starts, .. } = self;
        let (Some(bound), Some(start)) = (clip.awaited(), starts.first()) else { return Ok(false) };
        let header = &sstable.schema.header;
        cursor.seek(*start);
        cursor.decode(&sstable.shared.data, |window, offset| {
            let peeked = peek_unfiltered(window, offset, header)?;
            Ok((peeked.is_some_and(|peeked| peeked.compare(bound, clip.comparator()) == Ordering::Less), offset))
        })
    }

    /// Passes over rows after the slice without decoding them.
    pub(super) fn pass_after(&mut self) -> Result<(), ReadError> {
        while (!self.starts.is_empty() || self.load_previous_block()?) && self.clip.awaited().is_some() {
            // the deletion that is open at the slice hangs on the markers behind it: they are
            // walked through
            let passed =
                if self.has_markers { u32::from(self.is_after(self.starts.len() - 1)?) } else { self.count_after()? };
            if passed == 0 {
                return Ok(());
            }
            self.starts.truncate(self.starts.len() - passed as usize);
            self.pass(passed)?;
        }
        Ok(())
    }

    /// How many of the rows that are left of the block stand behind the awaited bound.
    fn count_after(&mut self) -> Result<u32, ReadError> {
        let count = self.starts.len();
        let (mut low, mut high) = (0, count);
        // usually none does, behind the slice before
        let mut middle = count.saturating_sub(1);
        while low < high {
            if self.is_after(middle)? {
                high = middle;
            } else {
                low = middle + 1;
            }
            middle = low + (high - low) / 2;
        }
        Ok((count - low) as u32)
    }

    /// Whether a row that lies behind the awaited bound begins at one of the starts.
    fn is_after(&mut self, index: usize) -> Result<bool, ReadError> {
        let Self { cursor, clip, sstable, starts, .. } = self;
        let (Some(bound), Some(start)) = (clip.awaited(), starts.get(index)) else { return Ok(false) };
        let header = &sstable.schema.header;
        cursor.seek(*start);
        cursor.decode(&sstable.shared.data, |window, offset| {
            let peeked = peek_unfiltered(window, offset, header)?;
            let is_after = peeked.is_some_and(|peeked| {
                peeked.kind == PrefixKind::Clustering && peeked.compare(bound, clip.comparator()) == Ordering::Greater
            });
            Ok((is_after, offset))
        })
    }

    pub(super) fn previous_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
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

    /// Passes over tombstones, at most `most`: of what is left of the block, then of the blocks
    /// before.
    pub(super) fn pass_tombstones_backwards(&mut self, most: u64) -> Result<u64, ReadError> {
        let mut passed = self.pass_tombstones_of_block(most)?;
        while self.starts.is_empty() && passed < most && self.block_start.is_some() {
            let Some((start, end)) = self.previous_block()? else {
                self.ended = true;
                break;
            };
            match self.pass_whole_block(start, end, most - passed)? {
                Some(more) => passed += more,
                None => {
                    self.load_block(start, Some(end))?;
                    passed += self.pass_tombstones_of_block(most - passed)?;
                }
            }
        }
        Ok(passed)
    }

    fn pass_tombstones_of_block(&mut self, most: u64) -> Result<u64, ReadError> {
        let Self { cursor, clip, sstable, starts, .. } = self;
        let Some(last) = starts.last().copied() else { return Ok(0) };
        let header = &sstable.schema.header;
        cursor.seek(last);
        cursor.decode(&sstable.shared.data, |window, offset| {
            let mut passed = 0;
            while let Some(start) = starts.last().filter(|_| passed < most) {
                // all of the block is in the window
                let at = offset.saturating_sub((last - start) as usize);
                match peek_tombstone(window, at, header) {
                    Ok(Some(tombstone)) if clip.passes(&tombstone) => {}
                    Err(error) if passed == 0 => return Err(error),
                    _ => break,
                }
                starts.pop();
                passed += 1;
            }
            Ok((passed, offset))
        })
    }

    /// Passes over a block that holds nothing but tombstones of the slice, by a walk forwards:
    /// nobody asks where they begin. None: it holds other things, or more than `most`.
    fn pass_whole_block(&mut self, start: u64, end: u64, most: u64) -> Result<Option<u64>, ReadError> {
        let Self { cursor, clip, sstable, .. } = self;
        let header = &sstable.schema.header;
        cursor.unpin();
        cursor.seek(start);
        let (mut passed, mut is_inside, mut first) = (0, false, None);
        while cursor.position() < end {
            let position = cursor.position();
            let goes_on = cursor.decode(&sstable.shared.data, |window, offset| {
                let mut at = offset;
                while position + ((at - offset) as u64) < end {
                    match peek_tombstone(window, at, header) {
                        Ok(Some(tombstone)) if is_inside || clip.holds(&tombstone) => {
                            is_inside = true;
                            // the first marker is the last that the walk meets: a row changes
                            // nothing in the deletion that is open where the block begins
                            if matches!(tombstone.deleted, Deleted::Range { .. }) {
                                first.get_or_insert(tombstone.deleted);
                            }
                            at = tombstone.position.end;
                        }
                        Ok(_) => return Ok((false, at)),
                        Err(_) if at > offset => break,
                        Err(error) => return Err(error),
                    }
                    passed += 1;
                }
                Ok((passed <= most, at))
            })?;
            if !goes_on {
                return Ok(None);
            }
        }
        if let Some(deleted) = first {
            clip.follow_deleted(deleted);
        }
        self.has_markers = false;
        self.entered_block(start);
        Ok(Some(passed))
    }

    /// Goes back to the block before; false: there is none.
    fn load_previous_block(&mut self) -> Result<bool, ReadError> {
        match (&self.blocks, self.block_start) {
            (None, None) if self.index.is_some() => self.jump_backwards(false).map(|()| !self.starts.is_empty()),
            (None, None) => self.load_block(self.body, None).map(|()| !self.starts.is_empty()),
            _ => match self.previous_block()? {
                Some((start, end)) => self.load_block(start, Some(end)).map(|()| true),
                None => Ok(false),
            },
        }
    }

    /// Where the block before the present one begins, and where it ends.
    fn previous_block(&mut self) -> Result<Option<(u64, u64)>, ReadError> {
        let (Some(blocks), Some(end)) = (&mut self.blocks, self.block_start) else { return Ok(None) };
        let Some(block) = blocks.previous().map_err(|error| self.index_error(error))? else { return Ok(None) };
        let start = self.place(block.offset)?;
        // nodes of a damaged trie may share children: a walk over them would go on and on
        if start >= end {
            let what = format!("a block at {start} before one at {end}");
            return Err(self.index_error(Malformed::at(0, what)));
        }
        Ok(Some((start, end)))
    }

    /// Goes to the last block that can hold something of the awaited slice (or to the last block),
    /// unless the walk is there already.
    pub(super) fn jump_backwards(&mut self, to_slice: bool) -> Result<(), ReadError> {
        let Some(entry) = &self.index else { return Ok(()) };
        let mut blocks = entry.blocks.clone();
        let bound = if to_slice { self.clip.awaited() } else { None };
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
        let Self { cursor, sstable, starts, has_markers, .. } = self;
        let header = &sstable.schema.header;
        cursor.pin(start);
        starts.clear();
        starts.reserve(STARTS);
        *has_markers = false;
        while end.is_none_or(|end| cursor.position() < end) {
            let position = cursor.position();
            let length = end.map_or(usize::MAX, |end| usize::try_from(end - position).unwrap_or(usize::MAX));
            let found = cursor.decode(&sstable.shared.data, |window, offset| {
                let tell = |at: usize| starts.push(position + (at - offset) as u64);
                find_starts(window, offset, offset.saturating_add(length), header, tell)
            })?;
            *has_markers |= found.has_markers;
            if found.is_end {
                break;
            }
        }
        self.entered_block(start);
        Ok(())
    }

    fn entered_block(&mut self, start: u64) {
        self.block_start = Some(start);
        ReadStats::add(&self.cursor.context().stats.blocks, 1);
        if self.visits.is_some() {
            self.visit_backwards();
        }
    }
}

/// The block of a position with its end and the range deletion open behind it; the cursor is left
/// at the block.
fn find_block(
    blocks: &mut Blocks,
    bound: Option<&Bound>,
    schema: &ReadSchema,
) -> Result<Option<(Block, u64, DeletionTime)>, IndexError> {
    let found = match bound {
        Some(bound) => blocks.last_before(bound, schema)?,
        None => None,
    };
    if let Some(block) = found
        && let Some(after) = blocks.next()?
    {
        blocks.previous()?;
        return Ok(Some((block, after.offset, after.open)));
    }
    // the last: behind it is the end of the partition
    let Some(end) = blocks.end()? else { return Ok(None) };
    Ok(blocks.previous()?.map(|last| (last, end.offset, end.open)))
}
