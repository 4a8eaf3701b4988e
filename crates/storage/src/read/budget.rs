//! The rows that a filling of the row cache may pass while it runs on a worker: the rows that a
//! statement passes are counted further up, but not those of a partition that is only being kept.
//! Behind that it is run again in the background, where it keeps nobody waiting.

use rows::{PartitionHead, PartitionStream, ReadError, Unfiltered};

/// Rows, markers and partitions that may pass inline: half a millisecond or so of a worker.
const INLINE_UNFILTEREDS_MAX: u32 = 1_000;

/// Counts what passes and ends an inline read with `WouldBlock` beyond its budget.
pub struct InlineBudget {
    stream: Box<dyn PartitionStream>,
    left: u32,
}

impl InlineBudget {
    /// With a full budget.
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
