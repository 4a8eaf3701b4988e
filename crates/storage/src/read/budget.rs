//! What a read may pass while it runs on a worker. Behind that it is run again in the background, where it keeps nobody waiting.

use rows::{PartitionHead, PartitionStream, ReadError, Unfiltered};

/// Rows, markers and partitions that an inline read may pass: a millisecond or two of a worker.
pub const INLINE_UNFILTEREDS_MAX: u32 = 2_000;

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
