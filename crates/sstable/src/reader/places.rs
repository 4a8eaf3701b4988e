//! Where in the data the partitions of a part of the ring stand: for streams, which send parts of
//! the file as they are.

use rows::command::RingBound;
use rows::{PartitionRange, PartitionStream, ReadContext, ReadError};
use types::Token;

use super::SSTable;

impl SSTable {
    /// Where in the uncompressed data the first partition begins whose token is greater than
    /// `token`; the length of the data if there is none. Reads the index and one key.
    pub fn position_behind(&self, token: Token, context: &ReadContext) -> Result<u64, ReadError> {
        if token >= self.last_key().token {
            return Ok(self.data_length());
        }
        let start = RingBound::Token { token, inclusive: false };
        let range = PartitionRange::Range { start, end: RingBound::Open };
        let mut stream = self.scan_range(range, context)?;
        match stream.next_partition()? {
            Some(_) => Ok(stream.reader.start),
            None => Ok(self.data_length()),
        }
    }
}
