//! Where in the data the partitions of a part of the ring stand: for streams, which send parts of
//! the file as they are.
//!
//! A repair asks for thousands of places of each SSTable, one behind the other and often in the
//! same chunk: [`PartitionOffsets`] keeps the chunk at which it stands, and pages of the index go
//! to the cache.

use rows::{PartitionStream, ReadContext, ReadError};
use types::{DecoratedKey, Token};

use super::SSTable;
use super::stream::SSTableStream;

/// Places in the data of one SSTable.
pub struct PartitionOffsets {
    stream: SSTableStream,
}

impl SSTable {
    /// Looks for places. Cheapest where they ascend.
    pub fn partition_offsets(&self, context: &ReadContext) -> PartitionOffsets {
        PartitionOffsets { stream: SSTableStream::unpositioned(self.clone(), context) }
    }
}

impl PartitionOffsets {
    /// Where in the uncompressed data the first partition begins whose token is greater than
    /// `token`; the length of the data if there is none. Reads the index and one key.
    pub fn offset_after(&mut self, token: Token) -> Result<u64, ReadError> {
        let sstable = self.stream.reader.sstable();
        let length = sstable.data_length();
        if token >= sstable.last_key().token {
            return Ok(length);
        }
        self.stream.seek_after(token)?;
        Ok(self.stream.next_partition()?.map_or(length, |_| self.stream.reader.start))
    }

    /// The key of the first partition whose token is greater than `token`; None: there is none.
    /// Reads the index and one key.
    pub fn key_after(&mut self, token: Token) -> Result<Option<DecoratedKey>, ReadError> {
        if token >= self.stream.reader.sstable().last_key().token {
            return Ok(None);
        }
        self.stream.seek_after(token)?;
        Ok(self.stream.next_partition()?.map(|head| head.key))
    }
}
