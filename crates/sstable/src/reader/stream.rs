//! The streams of an SSTable: one key, a range of partitions, or everything.

use std::sync::Arc;

use rows::codec::{Header, RowVisitor};
use rows::command::RingBound;
use rows::{
    MaybeEncoded, PartitionHead, PartitionRange, PartitionStream, ReadCommand, ReadContext, ReadError, ReadMode,
    ReadStats, Shown, Slices, Unfiltered,
};
use types::{DecoratedKey, Token};

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
    /// A partition that was read to its end leads to the next one.
    follows_data: bool,
    /// Partitions up to this key were given already.
    behind: Option<DecoratedKey>,
}

enum Source {
    /// One place, or none.
    One(Option<PartitionPosition>),
    /// One of two places.
    Two(Box<[PartitionPosition; 2]>),
    /// From a place in the partition index on.
    Scan(Box<IndexCursor>),
    /// Through the data from the end of each partition to the next one, without the index.
    Data,
}

impl Source {
    /// The places of a key in a table without tokens: by the form of Helenus, and by Cassandra's.
    #[cold]
    fn of_local(found: Option<PartitionPosition>, other: Option<PartitionPosition>) -> Self {
        match (found, other) {
            (Some(found), Some(other)) if found != other => Self::Two(Box::new([found, other])),
            (found, other) => Self::One(found.or(other)),
        }
    }
}

impl SSTableStream {
    pub(super) fn new(sstable: SSTable, command: &ReadCommand, context: &ReadContext) -> Result<Self, ReadError> {
        let source = match &command.range {
            PartitionRange::Key(key) => {
                let found = sstable.find(key, KeyHash::of(&key.key), context.mode)?;
                match &key.local {
                    None => Source::One(found),
                    Some(_) => Source::of_local(found, sstable.find_as_cassandra(key, context.mode)?),
                }
            }
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
        Ok(Self { reader, last: None, range: command.range.clone(), source, follows_data: false, behind: None })
    }

    pub(super) fn all(sstable: SSTable, context: &ReadContext) -> Result<Self, ReadError> {
        let source =
            Source::Scan(Box::new(scan_from(&sstable, &RingBound::Open, Access { mode: context.mode, keeps: false })?));
        let reader = PartitionReader::new(sstable, context, Slices::all(), false, Walk::around());
        Ok(Self { reader, last: None, range: PartitionRange::all(), source, follows_data: false, behind: None })
    }

    /// The partitions of a range, read around the cache.
    pub(super) fn over(sstable: SSTable, range: PartitionRange, context: &ReadContext) -> Result<Self, ReadError> {
        let start = match &range {
            PartitionRange::Range { start, .. } => start,
            PartitionRange::Key(_) => &RingBound::Open,
        };
        let cursor = scan_from(&sstable, start, Access { mode: context.mode, keeps: false })?;
        let reader = PartitionReader::new(sstable, context, Slices::all(), false, Walk::around());
        let source = Source::Scan(Box::new(cursor));
        Ok(Self { reader, last: None, range, source, follows_data: false, behind: None })
    }

    /// A stream that first has to be told where to go. It reads around the cache.
    pub(super) fn unpositioned(sstable: SSTable, context: &ReadContext) -> Self {
        let reader = PartitionReader::new(sstable, context, Slices::all(), false, Walk::around());
        let (range, source) = (PartitionRange::all(), Source::One(None));
        Self { reader, last: None, range, source, follows_data: false, behind: None }
    }

    /// Goes on with the partitions behind a token. Keeps the chunk of the data at which it stands.
    pub(super) fn seek_after(&mut self, token: Token) -> Result<(), ReadError> {
        let start = RingBound::Token { token, inclusive: false };
        self.source = Source::Scan(Box::new(scan_from(self.reader.sstable(), &start, Access::WAITING)?));
        self.range = PartitionRange::Range { start, end: RingBound::Open };
        (self.last, self.behind) = (None, None);
        Ok(())
    }

    /// Gives rows as they are encoded where they have the columns of `target`. A stream over whole
    /// partitions from then on, which finds the first in the index and each other one where the
    /// one before ends. (Not in a legacy index table, whose partitions a key does not find again.)
    pub(super) fn encoded_for(mut self, target: &Header) -> Self {
        self.follows_data = self.reader.sstable().has_tokens();
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

impl SSTableStream {
    /// The head of the next partition in the source. Sets the place of its entry: in the partition
    /// index, or in the data.
    fn advance(&mut self, entry: &mut u64) -> Result<Option<PartitionHead>, ReadError> {
        if matches!(self.source, Source::Data) && !self.reader.is_at_end_of_partition() {
            // a partition was left in the middle: the index knows where the next one is
            self.return_to_index()?;
        }
        let (place, position) = match &mut self.source {
            Source::One(position) => {
                let (Some(position), PartitionRange::Key(key)) = (position.take(), &self.range) else {
                    return Ok(None);
                };
                return self.reader.open(position, Some(key));
            }
            Source::Two(places) => {
                let [first, other] = **places;
                self.source = Source::One(None);
                let PartitionRange::Key(key) = &self.range else { return Ok(None) };
                return match self.reader.open(first, Some(key))? {
                    None => self.reader.open(other, Some(key)),
                    found => Ok(found),
                };
            }
            Source::Scan(cursor) => {
                let place = cursor.position();
                let next = cursor.next();
                let next = next.map_err(|error| self.reader.sstable().partitions_error(error))?;
                let Some(position) = next else { return Ok(None) };
                (place, position)
            }
            Source::Data => {
                let place = self.reader.position();
                if place >= self.reader.sstable().data_length() {
                    return Ok(None);
                }
                (place, PartitionPosition::Data(place))
            }
        };
        *entry = place;
        self.reader.open(position, None)
    }

    /// Goes on behind the last partition by the index.
    fn return_to_index(&mut self) -> Result<(), ReadError> {
        let Some(last) = self.last.take() else { return Ok(()) };
        let start = RingBound::Token { token: last.token, inclusive: true };
        let cursor = scan_from(self.reader.sstable(), &start, Access { mode: ReadMode::Background, keeps: false })?;
        self.source = Source::Scan(Box::new(cursor));
        self.behind = Some(last);
        Ok(())
    }

    /// Keys ascend: nodes of a damaged trie may share children, and few bytes of it would give
    /// partitions without end.
    fn check_order(&self, place: u64, key: &DecoratedKey) -> Result<(), ReadError> {
        let sstable = self.reader.sstable();
        if !sstable.has_tokens() || self.last.as_ref().is_none_or(|last| last < key) {
            return Ok(());
        }
        let what = format!("the partition of key {:02x?} is out of order", &key.key[..]);
        if matches!(self.source, Source::Data) {
            return Err(sstable.shared.data.corruption(place, what).into());
        }
        Err(sstable.partitions_error(Malformed::at(place, what)))
    }
}

impl PartitionStream for SSTableStream {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        loop {
            let mut place = 0;
            // the head stays where it is
            let next = self.advance(&mut place);
            let Ok(Some(head)) = &next else { return next };
            if matches!(self.source, Source::One(_)) {
                return next;
            }
            self.check_order(place, &head.key)?;
            self.last = Some(head.key.clone());
            if self.behind.as_ref().is_some_and(|behind| head.key <= *behind) {
                continue;
            }
            self.behind = None;
            if self.range.contains(&head.key) {
                if self.follows_data {
                    self.source = Source::Data;
                }
                return next;
            }
            if self.range.is_past(&head.key) {
                (self.source, self.follows_data) = (Source::One(None), false);
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

    fn show_encoded(&mut self, visitor: &mut dyn RowVisitor, most: usize) -> Result<Shown, ReadError> {
        self.reader.show_encoded(visitor, most)
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
