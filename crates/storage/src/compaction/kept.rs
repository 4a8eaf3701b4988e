//! A stream without the partitions that lie outside of some ranges of tokens: what `nodetool
//! cleanup` writes again. `org.apache.cassandra.db.compaction.CompactionManager.CleanupStrategy`.

use std::sync::Arc;

use rows::{MaybeEncoded, PartitionHead, PartitionStream, ReadError, Unfiltered};

use crate::token_ranges::TokenRanges;

/// The partitions of a stream that are in some ranges.
pub(crate) struct KeptStream<S> {
    stream: S,
    ranges: Arc<TokenRanges>,
}

impl<S> KeptStream<S> {
    pub fn new(stream: S, ranges: Arc<TokenRanges>) -> Self {
        Self { stream, ranges }
    }
}

impl<S: PartitionStream> PartitionStream for KeptStream<S> {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        while let Some(head) = self.stream.next_partition()? {
            if self.ranges.contain(head.key.token) {
                return Ok(Some(head));
            }
        }
        Ok(None)
    }

    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        self.stream.next_unfiltered()
    }

    fn next_maybe_encoded(&mut self) -> Result<Option<MaybeEncoded>, ReadError> {
        self.stream.next_maybe_encoded()
    }
}
