//! The one shape of every read: partitions in order, each a head and then its unfiltereds.

use types::DecoratedKey;

use crate::{DeletionTime, MaybeEncoded, ReadError, Row, Unfiltered};

/// What is known of a partition before its rows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PartitionHead {
    /// Token and key.
    pub key: DecoratedKey,
    /// Deletion of the whole partition.
    pub deletion: DeletionTime,
    /// The static row, if it holds anything.
    pub static_row: Option<Row>,
}

/// Partitions in the order of their decorated keys. Each yields its unfiltereds in clustering order or, where the
/// read command is reversed, in reversed clustering order (markers keep their `open`/`close` in clustering order).
///
/// Range tombstones of a stream are well formed inside what it yields of a partition: each open has its close, clipped to the slices.
pub trait PartitionStream: Send {
    /// Moves to the next partition, skipping what is left of the current one.
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError>;

    /// The next unfiltered of the current partition.
    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError>;

    /// The same for those who can copy rows as they are encoded. A partition is read by one of the two.
    fn next_maybe_encoded(&mut self) -> Result<Option<MaybeEncoded>, ReadError> {
        Ok(self.next_unfiltered()?.map(MaybeEncoded::Decoded))
    }

    /// Passes over tombstones that stand next, at most `most`, for those who only want their number: rows of which a deletion is all,
    /// and markers, each of which `next_unfiltered` would have given. None: what stands next is something else, or the stream cannot
    /// tell before it is asked for it.
    fn pass_tombstones(&mut self, most: u64) -> Result<u64, ReadError> {
        let _ = most;
        Ok(0)
    }
}

impl<S: PartitionStream + ?Sized> PartitionStream for Box<S> {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        (**self).next_partition()
    }

    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        (**self).next_unfiltered()
    }

    fn next_maybe_encoded(&mut self) -> Result<Option<MaybeEncoded>, ReadError> {
        (**self).next_maybe_encoded()
    }

    fn pass_tombstones(&mut self, most: u64) -> Result<u64, ReadError> {
        (**self).pass_tombstones(most)
    }
}

/// A stream that was moved to its first partition, from before that.
pub struct OpenedStream {
    head: Option<PartitionHead>,
    stream: Box<dyn PartitionStream>,
}

impl OpenedStream {
    /// `head`: of the partition that `stream` is in, at its start.
    pub fn new(stream: Box<dyn PartitionStream>, head: PartitionHead) -> Self {
        Self { head: Some(head), stream }
    }
}

impl PartitionStream for OpenedStream {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        match self.head.take() {
            Some(head) => Ok(Some(head)),
            None => self.stream.next_partition(),
        }
    }

    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        self.stream.next_unfiltered()
    }

    fn pass_tombstones(&mut self, most: u64) -> Result<u64, ReadError> {
        self.stream.pass_tombstones(most)
    }
}

/// No partitions.
pub struct EmptyStream;

impl PartitionStream for EmptyStream {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        Ok(None)
    }

    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        Ok(None)
    }
}
