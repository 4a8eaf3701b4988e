//! The number of rows that may be passed on a worker to fill the row cache. Rows that a statement
//! reads are counted elsewhere, but not those that are read only for the cache. Behind this number
//! the read is run again in the background, where no other request waits for it.

use rows::{PartitionHead, PartitionStream, ReadError, Unfiltered};

/// Most rows, markers and partitions that may be passed inline: half a millisecond or so of a
/// worker.
const INLINE_UNFILTEREDS_MAX: u32 = 1_000;

/// Counts the items of a stream, and ends an inline read with `WouldBlock` beyond its budget.
pub struct InlineBudget {
    stream: Box<dyn PartitionStream>,
    left: u32,
}

impl InlineBudget {
    /// A stream with a full budget.
    pub fn new(stream: Box<dyn PartitionStream>) -> Self {
        Self { stream, left: INLINE_UNFILTEREDS_MAX }
    }

    fn spend(&mut self) -> Result<(), ReadError> {
        match self.left.checked_sub(1) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => Err(ReadError::WouldBlock),
        }
    }
}

impl PartitionStream for InlineBudget {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        self.spend()?;
        self.stream.next_partition()
    }

    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        self.spend()?;
        self.stream.next_unfiltered()
    }
}
