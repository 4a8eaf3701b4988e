//! Partitions of an answer as bytes: the data of READ_RSP and RANGE_RSP.
//!
//! ```text
//! u8 0, then for each partition u8 1 and the partition, then u8 0
//!
//! partition: vbytes key
//!   u8    01 empty: nothing follows; 02 rows are in reversed order; 04 has a deletion;
//!         08 has a static row; 10 has an estimate
//!         base values (`rows::codec::put_stats`)
//!   [08]  static columns   columns: which of those that the request fetches, as in a row
//!         regular columns
//!   [04]  deletion
//!   [08]  static row
//!   [10]  uvint32 number of rows, estimated
//!         rows and markers, u8 01
//! ```
//!
//! Agrees with `org.apache.cassandra.db.rows.UnfilteredRowIteratorSerializer` and
//! `db.partitions.UnfilteredPartitionIterators.Serializer`. Cassandra counts timestamps from the
//! smallest of a partition; we stream, and count from the first that we write.

use std::sync::Arc;

use bytes::Bytes;
use rows::codec::{
    CodecColumn, CodecError, Decoded, EncodingStats, EncodingStatsCollector, Framing, Header, decode_static_row,
    decode_unfiltered, encode_marker, encode_row, get_deletion_delta, get_stats, get_subset, put_deletion_delta,
    put_end_of_partition, put_stats,
};
use rows::{
    ClusteringValues, ColumnSelection, DeletionTime, PartitionHead, PartitionStream, ReadError, Row, Unfiltered,
};
use schema::{ColumnId, TableMetadata};
use stdx::{Cursor, put_vbytes};

use super::read_request::ReadRequest;

const NO_PARTITION: u8 = 0;
const PARTITION: u8 = 1;

const IS_EMPTY: u8 = 0x01;
const IS_REVERSED: u8 = 0x02;
const HAS_DELETION: u8 = 0x04;
const HAS_STATIC_ROW: u8 = 0x08;
const HAS_ESTIMATE: u8 = 0x10;

/// The header of an answer: the columns that a request fetches, in file order.
pub fn header_of(table: &TableMetadata, selection: &ColumnSelection) -> Header {
    let columns = |ids: &[ColumnId]| ids.iter().filter_map(|id| codec_column(table, *id)).collect();
    let clustering = table.clustering.iter().map(|column| column.ty.clone()).collect();
    let fetched = &selection.fetched;
    Header::new(EncodingStats::default(), clustering, columns(&fetched.statics), columns(&fetched.regulars))
}

fn codec_column(table: &TableMetadata, id: ColumnId) -> Option<CodecColumn> {
    if let Some(column) = table.column(id) {
        return Some(CodecColumn::of(column));
    }
    let (id, column) = table.dropped_columns().find(|(dropped, _)| *dropped == id)?;
    Some(CodecColumn::of_dropped(Some(id), column))
}

/// The part of a partition's form that its content does not say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PartitionForm {
    /// The base values.
    pub stats: EncodingStats,
    /// Whether there is a static row, which may be empty. A digest names the static columns if so.
    pub has_static_row: bool,
}

impl PartitionForm {
    /// The form that we write.
    pub fn of(head: &PartitionHead, first: Option<&Unfiltered>) -> Self {
        let mut stats = EncodingStatsCollector::default();
        stats.deletion(&head.deletion);
        head.static_row.iter().for_each(|row| stats.row(row));
        match first {
            Some(Unfiltered::Row(row)) => stats.row(row),
            Some(Unfiltered::Marker(marker)) => {
                [marker.close, marker.open].iter().flatten().for_each(|deletion| stats.deletion(deletion));
            }
            None => {}
        }
        Self { stats: stats.finish(), has_static_row: head.static_row.is_some() || head.names_statics }
    }
}

/// Writes partitions as the data of an answer.
pub struct PartitionsWriter {
    out: Vec<u8>,
    header: Header,
    reversed: bool,
    is_open: bool,
}

impl PartitionsWriter {
    /// A writer of the answer to a request.
    pub fn new(request: &ReadRequest) -> Self {
        let header = header_of(&request.table, &request.columns);
        Self { out: vec![0], header, reversed: request.is_reversed(), is_open: false }
    }

    /// Bytes written so far.
    pub fn size(&self) -> usize {
        self.out.len()
    }

    /// Begins a partition. `is_empty`: no row or marker follows.
    pub fn partition(&mut self, head: &PartitionHead, form: &PartitionForm, is_empty: bool) {
        self.end_partition();
        let out = &mut self.out;
        out.push(PARTITION);
        put_vbytes(out, &head.key.key);
        let mut flags = if self.reversed { IS_REVERSED } else { 0 };
        if is_empty && head.deletion.is_live() && head.static_row.is_none() {
            out.push(flags | IS_EMPTY);
            return;
        }
        if !head.deletion.is_live() {
            flags |= HAS_DELETION;
        }
        if form.has_static_row {
            flags |= HAS_STATIC_ROW;
        }
        out.push(flags);
        self.header.stats = form.stats;
        put_stats(out, &form.stats);
        // all columns of each list
        out.extend_from_slice(if form.has_static_row { &[0, 0] } else { &[0] });
        if !head.deletion.is_live() {
            put_deletion_delta(out, &head.deletion, &form.stats);
        }
        if form.has_static_row {
            let empty = Row::new(ClusteringValues::new());
            encode_row(out, head.static_row.as_deref().unwrap_or(&empty), true, &self.header, Framing::Message);
        }
        self.is_open = true;
    }

    /// Adds a row or marker to the partition.
    pub fn unfiltered(&mut self, unfiltered: &Unfiltered) {
        assert!(self.is_open, "rows belong to a partition that is not empty");
        match unfiltered {
            Unfiltered::Row(row) => encode_row(&mut self.out, row, false, &self.header, Framing::Message),
            Unfiltered::Marker(marker) => encode_marker(&mut self.out, marker, &self.header, Framing::Message),
        }
    }

    fn end_partition(&mut self) {
        if std::mem::take(&mut self.is_open) {
            put_end_of_partition(&mut self.out);
        }
    }

    /// The data.
    pub fn finish(mut self) -> Bytes {
        self.end_partition();
        self.out.push(NO_PARTITION);
        self.out.into()
    }
}

/// The partitions in the data of an answer. Nothing is decoded ahead; values are slices of the
/// data.
pub struct DataStream {
    table: Arc<TableMetadata>,
    data: Bytes,
    offset: usize,
    reversed: bool,
    /// The header of all columns that the request fetches.
    header: Header,
    /// The header of the current partition, if the partition has fewer columns.
    fewer: Option<Header>,
    form: PartitionForm,
    is_begun: bool,
    in_partition: bool,
    is_over: bool,
}

impl DataStream {
    /// The partitions in `data`, which answers `request`.
    pub fn new(data: Bytes, request: &ReadRequest) -> Self {
        Self {
            table: Arc::clone(&request.table),
            data,
            offset: 0,
            reversed: request.is_reversed(),
            header: header_of(&request.table, &request.columns),
            fewer: None,
            form: PartitionForm { stats: EncodingStats::default(), has_static_row: false },
            is_begun: false,
            in_partition: false,
            is_over: false,
        }
    }

    /// The form of the current partition.
    pub fn form(&self) -> PartitionForm {
        self.form
    }

    fn wrong(&self, error: CodecError) -> ReadError {
        ReadError::Malformed { offset: self.offset, what: error.to_string() }
    }

    fn cursor(&self) -> Result<Cursor<'_>, CodecError> {
        self.data.get(self.offset..).map(Cursor::new).ok_or(CodecError::Truncated)
    }

    /// Reads the byte before each partition and behind the last.
    fn has_next(&mut self) -> Result<bool, CodecError> {
        if !std::mem::replace(&mut self.is_begun, true) {
            if self.cursor()?.u8()? != 0 {
                return Err(CodecError::Invalid("data of Thrift".to_owned()));
            }
            self.offset += 1;
        }
        let has_next = self.cursor()?.u8()?;
        self.offset += 1;
        match has_next {
            PARTITION => Ok(true),
            NO_PARTITION if self.offset == self.data.len() => Ok(false),
            NO_PARTITION => Err(CodecError::Invalid("bytes behind the last partition".to_owned())),
            other => Err(CodecError::Invalid(format!("{other} where a partition begins"))),
        }
    }

    fn read_head(&mut self) -> Result<PartitionHead, CodecError> {
        let data = self.data.clone();
        let mut cursor = data.get(self.offset..).map(Cursor::new).ok_or(CodecError::Truncated)?;
        let key = self.table.decorate(data.slice_ref(cursor.vbytes()?));
        let flags = cursor.u8()?;
        if (flags & IS_REVERSED != 0) != self.reversed {
            return Err(CodecError::Invalid("rows in the wrong order".to_owned()));
        }
        let mut head = PartitionHead::new(key, DeletionTime::LIVE, None);
        let has_static_row = flags & HAS_STATIC_ROW != 0;
        if flags & IS_EMPTY != 0 {
            self.offset += cursor.position();
            self.form = PartitionForm { stats: EncodingStats::default(), has_static_row: false };
            return Ok(head);
        }
        let stats = get_stats(&mut cursor)?;
        self.header.stats = stats;
        let statics = if has_static_row { Some(columns_in(&mut cursor, &self.header.statics)?) } else { None };
        let regulars = columns_in(&mut cursor, &self.header.regulars)?;
        let is_full = |columns: &Option<Vec<CodecColumn>>| columns.is_none();
        let fewer = match is_full(&regulars) && statics.as_ref().is_none_or(is_full) {
            true => None,
            false => {
                let statics = statics.flatten().unwrap_or_else(|| self.header.statics.clone());
                let regulars = regulars.unwrap_or_else(|| self.header.regulars.clone());
                Some(Header::new(stats, self.header.clustering.clone(), statics, regulars))
            }
        };
        if flags & HAS_DELETION != 0 {
            head.deletion = get_deletion_delta(&mut cursor, &self.header)?;
        }
        self.fewer = fewer;
        self.offset += cursor.position();
        if has_static_row {
            let (row, next) = decode_static_row(&self.data, self.offset, self.current(), false)?;
            self.offset = next;
            head.static_row = (!row.is_empty()).then(|| Box::new(row));
        }
        if flags & HAS_ESTIMATE != 0 {
            let mut cursor = self.cursor()?;
            cursor.uvint()?;
            let behind = cursor.position();
            self.offset += behind;
        }
        self.form = PartitionForm { stats, has_static_row };
        self.in_partition = true;
        Ok(head)
    }

    fn current(&self) -> &Header {
        self.fewer.as_ref().unwrap_or(&self.header)
    }

    fn read_unfiltered(&mut self) -> Result<Option<Unfiltered>, CodecError> {
        loop {
            let (decoded, next) = decode_unfiltered(&self.data, self.offset, self.current(), false)?;
            self.offset = next;
            match decoded {
                Decoded::Row(row) if row.is_empty() => {}
                Decoded::Row(row) => return Ok(Some(Unfiltered::Row(row))),
                Decoded::Marker(marker) => return Ok(Some(Unfiltered::Marker(marker))),
                Decoded::EndOfPartition => {
                    self.in_partition = false;
                    return Ok(None);
                }
            }
        }
    }
}

/// Reads which of `columns` a partition has; None: all.
fn columns_in(cursor: &mut Cursor<'_>, columns: &[CodecColumn]) -> Result<Option<Vec<CodecColumn>>, CodecError> {
    let present = get_subset(cursor, columns.len())?;
    if present.len() == columns.len() {
        return Ok(None);
    }
    Ok(Some(present.iter().filter_map(|index| columns.get(*index).cloned()).collect()))
}

impl PartitionStream for DataStream {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        while self.next_unfiltered()?.is_some() {}
        if self.is_over {
            return Ok(None);
        }
        if !self.has_next().map_err(|error| self.wrong(error))? {
            self.is_over = true;
            return Ok(None);
        }
        self.read_head().map(Some).map_err(|error| self.wrong(error))
    }

    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        if !self.in_partition {
            return Ok(None);
        }
        self.read_unfiltered().map_err(|error| self.wrong(error))
    }
}
