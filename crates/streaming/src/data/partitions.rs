//! The partitions in received sections, as a stream that a writer of SSTables reads.
//!
//! Sections hold whole partitions, each as in Data.db: key, deletion, static row if the header has
//! static columns, rows and markers, the end. The stream keeps one row and the bytes around it.
//! Keys must ascend: a sender's file has them in order, and a writer relies on it. Local shards of
//! counters, which only files from before 2.1 have, become remote ones.
//! `org.apache.cassandra.db.streaming.CassandraStreamReader.StreamDeserializer`.

use std::sync::Arc;

use bytes::Bytes;
use rows::codec::{CodecError, Decoded, Header, decode_static_row, decode_unfiltered, get_deletion_time};
use rows::{ColumnData, PartitionHead, PartitionStream, ReadError, Row, Unfiltered, counter};
use schema::TableMetadata;
use stdx::Cursor;
use types::DecoratedKey;

/// Most bytes of a row and of the bytes that were read behind it. More is a damaged length: a
/// sender in Java could not hold the row either.
const WINDOW_LENGTH_MAX: usize = 1 << 31;

/// Gives the bytes of the sections in order, however they are cut.
pub trait Source: Send {
    /// The next bytes, waiting for them if need be; None: the sections have ended. A source that
    /// does not wait gives [`ReadError::WouldBlock`]; the call of the stream can then be repeated.
    fn next(&mut self) -> Result<Option<Bytes>, ReadError>;
}

/// Partitions of received sections.
pub struct ReceivedPartitions<S> {
    source: S,
    table: Arc<TableMetadata>,
    header: Header,
    /// Bytes that were not decoded yet. They begin with the item that is decoded next.
    window: Bytes,
    /// Bytes before the window.
    passed: u64,
    last: Option<DecoratedKey>,
    is_in_partition: bool,
}

impl<S: Source> ReceivedPartitions<S> {
    /// A stream of the partitions in the bytes of `source`. `header` is the sender's, resolved for
    /// the table.
    pub fn new(source: S, table: Arc<TableMetadata>, header: Header) -> Self {
        Self { source, table, header, window: Bytes::new(), passed: 0, last: None, is_in_partition: false }
    }

    /// The source of the bytes.
    pub fn source(&mut self) -> &mut S {
        &mut self.source
    }

    /// Bytes that were decoded.
    pub fn position(&self) -> u64 {
        self.passed
    }

    fn malformed(&self, what: impl Into<String>) -> ReadError {
        ReadError::Malformed { offset: usize::try_from(self.passed).unwrap_or(usize::MAX), what: what.into() }
    }

    /// Adds bytes to the window until it is about twice as long, at least one piece. False: there
    /// are none left.
    fn extend(&mut self) -> Result<bool, ReadError> {
        if self.window.len() > WINDOW_LENGTH_MAX {
            return Err(self.malformed(format!("something longer than {WINDOW_LENGTH_MAX} bytes")));
        }
        let Some(first) = self.source.next()? else { return Ok(false) };
        if self.window.is_empty() {
            self.window = first;
            return Ok(true);
        }
        let target = self.window.len() * 2;
        let mut joined = Vec::with_capacity(target.max(self.window.len() + first.len()));
        joined.extend_from_slice(&self.window);
        joined.extend_from_slice(&first);
        let ended = loop {
            match self.source.next() {
                Ok(Some(more)) => joined.extend_from_slice(&more),
                Ok(None) | Err(ReadError::WouldBlock) => break Ok(true),
                Err(error) => break Err(error),
            }
            if joined.len() >= target {
                break Ok(true);
            }
        };
        self.window = joined.into();
        ended
    }

    /// Decodes the next item, and moves behind it.
    fn decode<T>(
        &mut self,
        decode: impl Fn(&Bytes, &Header) -> Result<(T, usize), CodecError>,
    ) -> Result<T, ReadError> {
        loop {
            match decode(&self.window, &self.header) {
                Ok((value, size)) if size <= self.window.len() => {
                    let _ = self.window.split_to(size);
                    self.passed += size as u64;
                    return Ok(value);
                }
                Ok((_, size)) => return Err(self.malformed(format!("a size of {size} bytes"))),
                Err(CodecError::Truncated) => {
                    if !self.extend()? {
                        return Err(self.malformed("the sections end in the middle of a partition"));
                    }
                }
                Err(CodecError::Invalid(what) | CodecError::UnknownColumn(what)) => return Err(self.malformed(what)),
            }
        }
    }

    fn head(&mut self) -> Result<PartitionHead, ReadError> {
        // all at once: behind a source that does not wait the head is decoded again from its start
        let (key, deletion, static_row) = self.decode(|window, header| {
            let mut cursor = Cursor::new(window);
            let key = window.slice_ref(cursor.short_bytes()?);
            let deletion = get_deletion_time(&mut cursor, header.deletion_times)?;
            let start = cursor.position();
            if header.statics.is_empty() {
                return Ok(((key, deletion, None), start));
            }
            let (row, end) = decode_static_row(window, start, header, true)?;
            Ok(((key, deletion, Some(row)), end))
        })?;
        let static_row = static_row.map(|row| self.received(row)).filter(|row| !row.is_empty());
        let key = self.table.decorate(key);
        if self.last.as_ref().is_some_and(|last| *last >= key) {
            return Err(self.malformed(format!("the partition of key {:02x?} is out of order", &key.key[..])));
        }
        self.last = Some(key.clone());
        Ok(PartitionHead::new(key, deletion, static_row))
    }

    /// A row in the form in which this node keeps it.
    fn received(&self, mut row: Row) -> Row {
        if self.table.is_counter() {
            for column in &mut row.columns {
                if let ColumnData::Simple(cell) = column {
                    cell.value = counter::forget_local(std::mem::take(&mut cell.value));
                }
            }
        }
        row
    }
}

impl<S: Source> PartitionStream for ReceivedPartitions<S> {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        while self.is_in_partition {
            self.next_unfiltered()?;
        }
        if self.window.is_empty() && !self.extend()? {
            return Ok(None);
        }
        let head = self.head()?;
        self.is_in_partition = true;
        Ok(Some(head))
    }

    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        while self.is_in_partition {
            match self.decode(|window, header| decode_unfiltered(window, 0, header, true))? {
                // the row held cells of dropped columns only
                Decoded::Row(row) if row.is_empty() => {}
                Decoded::Row(row) => return Ok(Some(Unfiltered::Row(self.received(row)))),
                Decoded::Marker(marker) => return Ok(Some(Unfiltered::Marker(marker))),
                Decoded::EndOfPartition => self.is_in_partition = false,
            }
        }
        Ok(None)
    }
}
