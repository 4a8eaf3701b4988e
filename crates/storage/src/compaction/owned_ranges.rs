//! A stream without the partitions that lie outside of some ranges of tokens, which `nodetool
//! cleanup` writes again. `org.apache.cassandra.db.compaction.CompactionManager.CleanupStrategy`.
//!
//! From the hidden table of an index the entries are removed whose rows are outside: a partition
//! there is a value, and the first clustering value of an entry is the key of the base's
//! partition. Entries leave no deletion behind. A deletion would have the timestamp of its entry,
//! and would hide the entry when the range comes back to this node with the same rows.

use std::sync::Arc;

use rows::{MaybeEncoded, PartitionHead, PartitionStream, ReadError, Unfiltered};
use schema::{TableKind, TableMetadata};
use types::DecoratedKey;

use crate::token_ranges::TokenRanges;

/// The partitions of a stream that are in some ranges, or the entries of an index whose rows are.
pub(crate) struct OwnedRangesStream<S> {
    stream: S,
    ranges: Arc<TokenRanges>,
    is_of_index: bool,
}

impl<S> OwnedRangesStream<S> {
    pub fn new(stream: S, ranges: Arc<TokenRanges>, table: &TableMetadata) -> Self {
        Self { stream, ranges, is_of_index: table.kind == TableKind::Index }
    }

    /// Whether an unfiltered of a partition stays that was not left out as a whole.
    fn keeps(&self, unfiltered: &Unfiltered) -> bool {
        match unfiltered {
            Unfiltered::Row(row) if self.is_of_index => match row.clustering.first() {
                Some(Some(key)) => self.ranges.contains(DecoratedKey::new(key.clone()).token),
                _ => true,
            },
            Unfiltered::Row(_) | Unfiltered::Marker(_) => true,
        }
    }
}

impl<S: PartitionStream> PartitionStream for OwnedRangesStream<S> {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        while let Some(head) = self.stream.next_partition()? {
            if self.is_of_index || self.ranges.contains(head.key.token) {
                return Ok(Some(head));
            }
        }
        Ok(None)
    }

    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        while let Some(unfiltered) = self.stream.next_unfiltered()? {
            if self.keeps(&unfiltered) {
                return Ok(Some(unfiltered));
            }
        }
        Ok(None)
    }

    fn next_maybe_encoded(&mut self) -> Result<Option<MaybeEncoded>, ReadError> {
        if self.is_of_index {
            return Ok(self.next_unfiltered()?.map(MaybeEncoded::Decoded));
        }
        self.stream.next_maybe_encoded()
    }
}
