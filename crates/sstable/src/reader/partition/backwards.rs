//! Backwards through a partition: block after block, each by the starts of its unfiltereds.

use std::cmp::Ordering;

use rows::codec::{Decoded, decode_unfiltered, find_starts, peek_unfiltered};
use rows::{Bound, DeletionTime, PrefixKind, ReadError, ReadStats, Unfiltered};

use super::PartitionReader;
use crate::error::Malformed;
use crate::index::{Block, Blocks};
use crate::reader::Resolved;

impl PartitionReader {
    /// Something of what is left of the block that is read backwards stands before the awaited bound.
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
            // the deletion that is open at the slice hangs on the markers behind it: they are walked through
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

    /// What begins at one of the starts is a row behind the awaited bound.
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

    /// Goes back to the block before; false: there is none.
    fn load_previous_block(&mut self) -> Result<bool, ReadError> {
        match (&mut self.blocks, self.block_start) {
            (None, None) if self.index.is_some() => self.jump_backwards(false).map(|()| !self.starts.is_empty()),
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

    /// Goes to the last block that can hold something of the awaited slice (or to the last block), unless the walk is there already.
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
