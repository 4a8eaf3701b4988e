//! The SSTables of a table as they are at one moment. A repair validates them.
//!
//! Memtables are flushed first, so that the validated rows can be streamed afterwards. The
//! SSTables stay readable until the value is dropped, also those that a compaction replaces
//! meanwhile: their files are removed after that. Agrees in role with
//! `org.apache.cassandra.db.repair.CassandraValidationIterator`.

use std::collections::VecDeque;
use std::sync::Arc;

use rows::codec::{EncodingStats, Header, RowVisitor};
use rows::command::RingBound;
use rows::{
    MaybeEncoded, MergeStream, PartitionHead, PartitionRange, PartitionStream, ReadContext, ReadError, Shown,
    Unfiltered,
};
use schema::TableMetadata;
use sstable::SSTable;
use types::Token;

use crate::engine::Engine;
use crate::error::StorageError;
use crate::table::TableStore;
use crate::token_ranges::share_within;

/// A range of tokens, from a token (excluded) to a token (included). If the start is not before
/// the end, the range goes over the end of the ring.
pub type TokenRange = (Token, Token);

/// The SSTables of a table at one moment.
#[derive(Clone)]
pub struct FlushedTable {
    /// The table's schema at that moment.
    pub table: Arc<TableMetadata>,
    /// The SSTables that the caller selected.
    pub sstables: Vec<Arc<SSTable>>,
}

/// Flushes the memtables of a table and takes the SSTables that `select` wants.
pub async fn take(
    engine: &Engine,
    store: &Arc<TableStore>,
    select: impl Fn(&SSTable) -> bool,
) -> Result<FlushedTable, StorageError> {
    engine.flush(store).await?;
    if let [left_out, ..] = store.left_out().as_slice() {
        let why = format!("an SSTable of {} cannot be read: {}", store.name(), left_out.why);
        return Err(StorageError::Refused { why });
    }
    let view = store.view();
    let sstables = view.sstables.iter().filter(|sstable| select(sstable)).cloned().collect();
    Ok(FlushedTable { table: Arc::clone(&view.table), sstables })
}

impl FlushedTable {
    /// Estimated number of partitions in a range.
    pub fn partitions_in(&self, range: TokenRange) -> u64 {
        let pieces = split_at_ring_end(range);
        let of_piece = |(start, end): &TokenRange| -> f64 {
            self.sstables.iter().map(|sstable| partitions_between(sstable, *start, *end)).sum()
        };
        pieces.iter().map(of_piece).sum::<f64>().round() as u64
    }

    /// The bytes of the SSTables on disk.
    pub fn bytes(&self) -> u64 {
        self.sstables.iter().map(|sstable| sstable.stored_length()).sum()
    }

    /// The partitions of ranges, merged; one range after the other. They are read around the cache,
    /// which keeps what clients read. For callers that take them, rows that have all columns of the
    /// table and that nothing changes are given as they are encoded.
    pub fn read(&self, ranges: &[TokenRange], context: ReadContext) -> FlushedTableStream {
        let waiting = ranges.iter().flat_map(|range| split_at_ring_end(*range)).collect();
        let header = Header::for_table(&self.table, EncodingStats::default());
        FlushedTableStream { flushed: self.clone(), header, waiting, context, current: None }
    }

    fn open(
        &self,
        (start, end): TokenRange,
        context: &ReadContext,
        header: &Header,
    ) -> Result<Box<dyn PartitionStream>, ReadError> {
        let start = RingBound::Token { token: start, inclusive: false };
        let end = match end {
            Token(i64::MIN) => RingBound::Open,
            token => RingBound::Token { token, inclusive: true },
        };
        let range = PartitionRange::Range { start, end };
        let mut streams: Vec<Box<dyn PartitionStream>> = Vec::new();
        for sstable in &self.sstables {
            if !range.is_past(sstable.first_key()) && !range.is_before(sstable.last_key()) {
                streams.push(Box::new(sstable.scan_range_encoded(range.clone(), context, header)?));
            }
        }
        if streams.len() < 2 {
            return Ok(MergeStream::boxed(&self.table, streams, false));
        }
        Ok(Box::new(MergeStream::new(Arc::clone(&self.table), streams, false).passing()))
    }
}

/// Partitions of an SSTable in the range `(start, end]`, as if they were spread evenly between its
/// first and its last token. The least token as an end is behind all tokens.
pub fn partitions_between(sstable: &SSTable, start: Token, end: Token) -> f64 {
    let span = (sstable.first_key().token, sstable.last_key().token);
    sstable.partition_count() as f64 * share_within(span, (start, end))
}

/// A range cut at the end of the ring, in the order of tokens. The least token as an end is behind
/// all tokens.
fn split_at_ring_end((start, end): TokenRange) -> Vec<TokenRange> {
    let least = Token(i64::MIN);
    if start < end {
        return vec![(start, end)];
    }
    // no partition has the least token
    let before = (end > least).then_some((least, end));
    before.into_iter().chain([(start, least)]).collect()
}

/// The partitions of ranges.
pub struct FlushedTableStream {
    flushed: FlushedTable,
    /// The table's columns.
    header: Header,
    waiting: VecDeque<TokenRange>,
    context: ReadContext,
    current: Option<Box<dyn PartitionStream>>,
}

impl PartitionStream for FlushedTableStream {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        loop {
            if let Some(current) = &mut self.current {
                let next = current.next_partition();
                if !matches!(next, Ok(None)) {
                    return next;
                }
                self.current = None;
            }
            match self.waiting.pop_front() {
                Some(range) => self.current = Some(self.flushed.open(range, &self.context, &self.header)?),
                None => return Ok(None),
            }
        }
    }

    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        match &mut self.current {
            Some(current) => current.next_unfiltered(),
            None => Ok(None),
        }
    }

    fn next_maybe_encoded(&mut self) -> Result<Option<MaybeEncoded>, ReadError> {
        match &mut self.current {
            Some(current) => current.next_maybe_encoded(),
            None => Ok(None),
        }
    }

    fn show_encoded(&mut self, visitor: &mut dyn RowVisitor, most: usize) -> Result<Shown, ReadError> {
        match &mut self.current {
            Some(current) => current.show_encoded(visitor, most),
            None => Ok(Shown::default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_over_the_end_are_cut_there() {
        let cut = |start: i64, end: i64| {
            split_at_ring_end((Token(start), Token(end)))
                .iter()
                .map(|(start, end)| (start.0, end.0))
                .collect::<Vec<_>>()
        };
        let least = i64::MIN;
        assert_eq!(cut(3, 9), [(3, 9)]);
        assert_eq!(cut(9, 3), [(least, 3), (9, least)]);
        assert_eq!(cut(9, least), [(9, least)]);
        assert_eq!(cut(5, 5), [(least, 5), (5, least)], "the whole ring");
        assert_eq!(cut(least, least), [(least, least)], "the whole ring too");
    }
}
