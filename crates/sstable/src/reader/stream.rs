//! The streams of an SSTable: one key, a range of partitions, or everything.

use std::sync::Arc;

use rows::codec::Header;
use rows::command::RingBound;
use rows::{
    MaybeEncoded, PartitionHead, PartitionRange, PartitionStream, ReadCommand, ReadContext, ReadError, ReadStats,
    Slices, Unfiltered,
};
use types::DecoratedKey;

use super::SSTable;
use super::partition::PartitionReader;
use super::walk::Walk;
use crate::error::Malformed;
use crate::filter::KeyHash;
use crate::index::{IndexCursor, PartitionPosition};
use crate::index_file::Access;

/// Partitions of one SSTable.
pub struct SSTableStream {
    pub(super) reader: PartitionReader,
    /// The key before, in a scan.
    last: Option<DecoratedKey>,
    range: PartitionRange,
    source: Source,
}

enum Source {
    /// One place, or none.
    One(Option<PartitionPosition>),
    /// From a place in the partition index on.
    Scan(Box<IndexCursor>),
}

impl SSTableStream {
    pub(super) fn new(sstable: SSTable, command: &ReadCommand, context: &ReadContext) -> Result<Self, ReadError> {
        let source = match &command.range {
            PartitionRange::Key(key) => Source::One(sstable.find(key, KeyHash::of(&key.key), context.mode)?),
            PartitionRange::Range { start, .. } => {
                Source::Scan(Box::new(scan_from(&sstable, start, Access { mode: context.mode, keeps: true })?))
            }
        };
        let data = &sstable.shared.data;
        let walk = match command.range {
            PartitionRange::Key(_) => Walk::in_partition(data),
            PartitionRange::Range { .. } => Walk::over_partitions(data),
        };
        let reader = PartitionReader::new(sstable, context, command.slices.clone(), command.reversed, walk);
        ReadStats::add(&context.stats.sstables_considered, 1);
        let counter = match source {
            Source::One(None) => &context.stats.bloom_false_positives,
            _ => &context.stats.sstables_read,
        };
        ReadStats::add(counter, 1);
        Ok(Self { reader, last: None, range: command.range.clone(), source })
    }

    pub(super) fn all(sstable: SSTable, context: &ReadContext) -> Result<Self, ReadError> {
        let source =
            Source::Scan(Box::new(scan_from(&sstable, &RingBound::Open, Access { mode: context.mode, keeps: false })?));
        let reader = PartitionReader::new(sstable, context, Slices::all(), false, Walk::around());
        Ok(Self { reader, last: None, range: PartitionRange::all(), source })
    }

    /// The partitions of a range, read around the cache.
    pub(super) fn over(sstable: SSTable, range: PartitionRange, context: &ReadContext) -> Result<Self, ReadError> {
        let start = match &range {
            PartitionRange::Range { start, .. } => start,
            PartitionRange::Key(_) => &RingBound::Open,
        };
        let cursor = scan_from(&sstable, start, Access { mode: context.mode, keeps: false })?;
        let reader = PartitionReader::new(sstable, context, Slices::all(), false, Walk::around());
        Ok(Self { reader, last: None, range, source: Source::Scan(Box::new(cursor)) })
    }

    pub(super) fn encoded_for(mut self, target: &Header) -> Self {
        let header = &self.reader.sstable().schema.header;
        self.reader.encoded = target.holds_rows_of(header).then(|| Arc::new(header.clone()));
        self
    }
}

impl SSTableStream {
    /// Where in the uncompressed data the next unfiltered begins; behind the head of a partition,
    /// its first. For tools that name places: meaningful in a scan of everything.
    pub fn position(&self) -> u64 {
        self.reader.position()
    }
}

fn scan_from(sstable: &SSTable, start: &RingBound, access: Access) -> Result<IndexCursor, ReadError> {
    let index = &sstable.shared.index;
    index.scan_from(start, access).map_err(|error| sstable.partitions_error(error))
}

impl PartitionStream for SSTableStream {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        let cursor = match &mut self.source {
            Source::One(position) => {
                let (Some(position), PartitionRange::Key(key)) = (position.take(), &self.range) else {
                    return Ok(None);
                };
                return self.reader.open(position, Some(key));
            }
            Source::Scan(cursor) => cursor,
        };
        loop {
            let entry = cursor.position();
            let next = cursor.next();
            let next = next.map_err(|error| self.reader.sstable().partitions_error(error))?;
            let Some(position) = next else { return Ok(None) };
            let Some(head) = self.reader.open(position, None)? else { return Ok(None) };
            // nodes of a damaged trie may share children: few bytes of it would give partitions
            // without end
            let sstable = self.reader.sstable();
            if sstable.has_tokens() && self.last.as_ref().is_some_and(|last| *last >= head.key) {
                let what = format!("the partition of key {:02x?} is out of order", &head.key.key[..]);
                return Err(sstable.partitions_error(Malformed::at(entry, what)));
            }
            self.last = Some(head.key.clone());
            if self.range.contains(&head.key) {
                return Ok(Some(head));
            }
            if self.range.is_past(&head.key) {
                self.source = Source::One(None);
                return Ok(None);
            }
        }
    }

    #[inline]
    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        self.reader.next()
    }

    fn next_maybe_encoded(&mut self) -> Result<Option<MaybeEncoded>, ReadError> {
        self.reader.next_maybe_encoded()
    }

    fn pass_tombstones(&mut self, most: u64) -> Result<u64, ReadError> {
        self.reader.pass_tombstones(most)
    }
}

/// So that streams can be kept beside what they read.
const _: fn() = || {
    fn is_send<T: Send>() {}
    is_send::<SSTableStream>();
    is_send::<Arc<SSTable>>();
};
