//! The questions of EXPLAIN to an SSTable: how many blocks of a partition can hold what is asked
//! for and, when it is read, how many were read.
//!
//! Both are counted by walking the row index from block to block; nothing of it runs on the usual
//! path. A partition without row index is one block. Blocks that are read backwards are counted by
//! the reader itself, as each is loaded whole.

use rows::report::BlockCount;
use rows::{ReadCommand, ReadContext, ReadError, ReadMode, Slices};
use types::DecoratedKey;

use super::partition::PartitionReader;
use super::{SSTable, SSTableStream};
use crate::error::IndexError;
use crate::filter::KeyHash;
use crate::index::{Block, Blocks, PartitionPosition, RowIndex};
use crate::read_schema::ReadSchema;

impl SSTable {
    /// The blocks of a partition, and how many of them can hold something of the slices. None: the
    /// partition is not here. Where there is no row index the data is not looked at, so it may turn
    /// out not to be.
    pub fn blocks_of(&self, key: &DecoratedKey, slices: &Slices) -> Result<Option<BlockCount>, ReadError> {
        match self.find(key, KeyHash::of(&key.key), ReadMode::Background)? {
            None => Ok(None),
            Some(PartitionPosition::Data(_)) => Ok(Some(BlockCount { total: 1, wanted: 1 })),
            Some(PartitionPosition::Rows(position)) => {
                let (found, index) = self.row_index(position, ReadMode::Background)?;
                if found != key.key {
                    return Ok(None);
                }
                let component = self.shared.index.rows_component();
                let wanted =
                    wanted(&index, slices, &self.schema).map_err(|error| self.index_error(error, component))?;
                Ok(Some(BlockCount { total: index.count, wanted }))
            }
        }
    }

    /// As [`SSTable::read`]; the stream counts the blocks that it reads.
    pub fn read_counted(&self, command: &ReadCommand, context: &ReadContext) -> Result<SSTableStream, ReadError> {
        let mut stream = self.read(command, context)?;
        stream.reader.visits = Some(Box::default());
        Ok(stream)
    }
}

fn wanted(index: &RowIndex, slices: &Slices, schema: &ReadSchema) -> Result<u64, IndexError> {
    if slices.is_all() {
        return Ok(index.count);
    }
    let end = index.blocks.clone().end()?;
    let mut counted_to = None;
    let mut count = 0;
    for slice in slices.0.iter() {
        let mut cursor = index.blocks.clone();
        let first = cursor.first_behind(&slice.start, schema)?;
        let last = index.blocks.clone().last_before(&slice.end, schema)?;
        let Some(last) = last else { continue };
        let mut next = first;
        while let Some(block) = next.filter(|block| block.offset <= last.offset && Some(*block) != end) {
            if counted_to.is_none_or(|offset| block.offset > offset) {
                counted_to = Some(block.offset);
                count += 1;
            }
            next = cursor.next()?;
        }
    }
    Ok(count)
}

impl SSTableStream {
    /// Blocks read so far, of those of the partitions read so far.
    pub fn blocks_visited(&self) -> BlockCount {
        self.reader.visits.as_ref().map_or(BlockCount::default(), |visits| visits.with(self.reader.position()))
    }
}

/// Blocks that a reader was in.
#[derive(Default)]
pub(super) struct Visits {
    count: BlockCount,
    /// The run of blocks that is being read: a cursor at its first, where the partition starts.
    run: Option<(Blocks, Block, u64)>,
    /// The offset behind which blocks of this partition have not been counted.
    counted_to: Option<u64>,
}

impl Visits {
    fn with(&self, position: u64) -> BlockCount {
        let mut count = self.count;
        if let Some((cursor, first, start)) = &self.run {
            count.wanted += self.run_length(cursor.clone(), *first, position.saturating_sub(*start)).0;
        }
        count
    }

    /// Blocks from `first` on that begin before `end` and have not been counted, and the offset of
    /// the last. What is wrong with the index the reader says itself. Nothing, when none of the
    /// first was read.
    fn run_length(&self, mut cursor: Blocks, first: Block, end: u64) -> (u64, u64) {
        if end <= first.offset {
            return (0, first.offset);
        }
        let mut count = u64::from(self.counted_to.is_none_or(|offset| first.offset > offset));
        let mut last = first.offset;
        let mut next = cursor.next().ok().flatten();
        while let Some(block) = next.filter(|block| block.offset < end && block.offset > last) {
            next = cursor.next().ok().flatten();
            if next.is_none() {
                // that was the end of the partition, not a block
                break;
            }
            count += u64::from(self.counted_to.is_none_or(|offset| block.offset > offset));
            last = block.offset;
        }
        (count, last)
    }

    /// Leaves the run that is being read, at an absolute position.
    fn leave(&mut self, position: u64) {
        if let Some((cursor, first, start)) = self.run.take() {
            let (count, last) = self.run_length(cursor, first, position.saturating_sub(start));
            if count > 0 {
                self.count.wanted += count;
                self.counted_to = Some(last);
            }
        }
    }
}

impl PartitionReader {
    /// A partition was entered; `position`: where the one before was left.
    #[cold]
    pub(super) fn visit_partition(&mut self, position: u64) {
        let Some(visits) = &mut self.visits else { return };
        visits.leave(position);
        visits.counted_to = None;
        match &self.index {
            None if self.reversed => visits.count.total += 1,
            None => {
                visits.count.total += 1;
                visits.count.wanted += 1;
            }
            Some(index) => {
                visits.count.total += index.count;
                if !self.reversed {
                    let mut cursor = index.blocks.clone().waiting();
                    visits.run = cursor.first().ok().flatten().map(|first| (cursor, first, self.start));
                }
            }
        }
    }

    /// The walk goes on at a block that `cursor` is at.
    #[cold]
    pub(super) fn visit_block(&mut self, cursor: Blocks, block: Block, position: u64) {
        let (start, cursor) = (self.start, cursor.waiting());
        if let Some(visits) = &mut self.visits {
            visits.leave(position);
            // behind the last block there is the end of the partition, which is none
            let is_end = matches!(cursor.clone().next(), Ok(None));
            visits.run = (!is_end).then_some((cursor, block, start));
        }
    }

    /// A block was loaded to be read backwards.
    #[cold]
    pub(super) fn visit_backwards(&mut self) {
        if let Some(visits) = &mut self.visits {
            visits.count.wanted += 1;
        }
    }
}
