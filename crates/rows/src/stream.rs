//! The one shape of every read: partitions in order, each a head and behind it its unfiltereds.

use types::DecoratedKey;

use crate::codec::RowVisitor;
use crate::{DeletionTime, MaybeEncoded, ReadError, Row, Unfiltered};

/// The part of a partition before its rows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PartitionHead {
    /// The token and the key.
    pub key: DecoratedKey,
    /// The deletion of the whole partition.
    pub deletion: DeletionTime,
    /// The static row; None: it holds nothing. Apart from the head, because few partitions have
    /// one and every stream on the way hands the head on.
    pub static_row: Option<Box<Row>>,
    /// Whether answers to other nodes, and their digests, name the static columns though there is
    /// no static row: as Cassandra's do where a single SSTable has the partition, and static
    /// columns.
    pub names_statics: bool,
}

impl PartitionHead {
    /// A head that names static columns only with a static row.
    pub fn new(key: DecoratedKey, deletion: DeletionTime, static_row: Option<Row>) -> Self {
        Self { key, deletion, static_row: static_row.map(Box::new), names_statics: false }
    }
}

/// The answer of [`PartitionStream::show_encoded`].
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Shown {
    /// Rows that were shown.
    pub rows: usize,
    /// Whether the partition ends behind them. It may end where this is false.
    pub has_ended: bool,
}

/// Partitions in the order of their keys. Each gives its unfiltereds in clustering order, or in
/// reversed clustering order if the read command is reversed. Markers name `open` and `close` in
/// clustering order in both cases.
///
/// Range tombstones are well formed within what the stream gives of a partition: each that opens
/// also closes, clipped to the slices.
pub trait PartitionStream: Send {
    /// Moves to the next partition, skipping the rest of the current one.
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError>;

    /// The next unfiltered of the current partition. None: the partition ends.
    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError>;

    /// Like `next_unfiltered`, for callers that can copy rows in their encoded form. A partition is
    /// read by one of the two methods.
    fn next_maybe_encoded(&mut self) -> Result<Option<MaybeEncoded>, ReadError> {
        Ok(self.next_unfiltered()?.map(MaybeEncoded::Decoded))
    }

    /// Shows rows that come next to `visitor` as they are encoded, at most `most`, for callers of
    /// `next_maybe_encoded` that only look at rows: nobody has to hand them on. Without rows and
    /// without the end something else comes next, or the stream cannot tell.
    fn show_encoded(&mut self, visitor: &mut dyn RowVisitor, most: usize) -> Result<Shown, ReadError> {
        let _ = (visitor, most);
        Ok(Shown::default())
    }

    /// Passes over tombstones that come next, at most `most`, for callers that only want their
    /// number: rows with a deletion and nothing else, and markers that `next_unfiltered` would have
    /// given. Returns how many. 0: something else comes next, or the stream cannot tell without
    /// reading it.
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

    fn show_encoded(&mut self, visitor: &mut dyn RowVisitor, most: usize) -> Result<Shown, ReadError> {
        (**self).show_encoded(visitor, most)
    }

    fn pass_tombstones(&mut self, most: u64) -> Result<u64, ReadError> {
        (**self).pass_tombstones(most)
    }
}

impl<S: PartitionStream + ?Sized> PartitionStream for &mut S {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        (**self).next_partition()
    }

    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        (**self).next_unfiltered()
    }

    fn next_maybe_encoded(&mut self) -> Result<Option<MaybeEncoded>, ReadError> {
        (**self).next_maybe_encoded()
    }

    fn show_encoded(&mut self, visitor: &mut dyn RowVisitor, most: usize) -> Result<Shown, ReadError> {
        (**self).show_encoded(visitor, most)
    }

    fn pass_tombstones(&mut self, most: u64) -> Result<u64, ReadError> {
        (**self).pass_tombstones(most)
    }
}

/// A stream that was moved to its first partition, as if it stood before it.
pub struct OpenedStream {
    head: Option<PartitionHead>,
    stream: Box<dyn PartitionStream>,
}

impl OpenedStream {
    /// `head` is that of the partition at whose start `stream` stands.
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

/// Leaves out rows, or parts of them.
pub trait RowFilter: Send {
    /// The part of a row that stays; None: the row goes.
    fn keep(&self, row: Row) -> Option<Row>;
}

/// The rows of a stream, static rows too, as a filter leaves them. Deletions stay: so do the
/// tombstones that `pass_tombstones` counts, which have no cells.
pub struct FilteredRows<S, F> {
    stream: S,
    filter: F,
}

impl<S: PartitionStream, F: RowFilter> FilteredRows<S, F> {
    /// The rows of `stream` that `filter` keeps.
    pub fn of(stream: S, filter: F) -> Self {
        Self { stream, filter }
    }
}

impl<S: PartitionStream, F: RowFilter> PartitionStream for FilteredRows<S, F> {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        let Some(mut head) = self.stream.next_partition()? else { return Ok(None) };
        head.static_row = head.static_row.and_then(|row| self.filter.keep(*row)).map(Box::new);
        Ok(Some(head))
    }

    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        loop {
            match self.stream.next_unfiltered()? {
                Some(Unfiltered::Row(row)) => {
                    if let Some(row) = self.filter.keep(row) {
                        return Ok(Some(Unfiltered::Row(row)));
                    }
                }
                other => return Ok(other),
            }
        }
    }

    fn pass_tombstones(&mut self, most: u64) -> Result<u64, ReadError> {
        self.stream.pass_tombstones(most)
    }
}

/// A stream without partitions.
pub struct EmptyStream;

impl PartitionStream for EmptyStream {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        Ok(None)
    }

    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        Ok(None)
    }
}
