//! Rows in their encoded form on disk, inspected without being decoded. A compaction copies the
//! rows that only one source has and that nothing deletes, which are most of them.
//!
//! Only rows that neither time nor a deletion can change are given in this form: rows without
//! deletions and without expiring cells, whose columns are the same in the header that they are
//! read with and the one that they are written with ([`Header::holds_rows_of`]). Under another
//! header only the bases of their timestamps differ; all other bytes are copied.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use stdx::{Cursor, put_uvint};

use super::encode::framed;
use super::{
    CELL_EMPTY_VALUE, CELL_ROW_TIMESTAMP, CodecColumn, CodecError, Decoded, END_OF_PARTITION, Framing, HAS_ALL_COLUMNS,
    HAS_TIMESTAMP, Header, LARGE_SUBSET, decode_unfiltered, get_clustering_values,
};
use crate::cell::NO_TIMESTAMP;
use crate::{ClusteringValues, Corruption, Liveness, ReadError, Row};

/// A row on disk without deletions and without anything that expires.
#[derive(Clone, Debug)]
pub struct EncodedRow {
    /// The clustering values.
    pub clustering: ClusteringValues,
    /// The facts for the statistics of the new file.
    pub facts: RowFacts,
    /// The row's bytes, from its flags to its end.
    bytes: Bytes,
    /// Offset in `bytes` at which the sizes begin.
    framing: usize,
    /// Offset in `bytes` at which the content begins, behind the sizes.
    body: usize,
    /// The header that the row was written against.
    header: Arc<Header>,
}

/// The facts about an [`EncodedRow`] that statistics need.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RowFacts {
    /// Smallest timestamp of the row and its cells.
    pub min_timestamp: i64,
    /// Greatest timestamp of the row and its cells.
    pub max_timestamp: i64,
    /// Number of cells, those of collections included.
    pub cells: u64,
    /// Number of columns that have cells.
    pub columns: u64,
    /// Whether cells have other timestamps than the row.
    own_timestamps: bool,
}

impl Header {
    /// Whether rows written against `from` can be copied into rows written against this header.
    pub fn holds_rows_of(&self, from: &Self) -> bool {
        let is_same = |(to, from): (&CodecColumn, &CodecColumn)| {
            let known = from.id.is_some() && from.dropped_time == NO_TIMESTAMP && !from.ty.is_counter();
            known && (to.id, to.complex, to.fixed_length) == (from.id, from.complex, from.fixed_length)
        };
        self.clustering == from.clustering
            && self.regulars.len() == from.regulars.len()
            && self.regulars.len() < LARGE_SUBSET
            && self.regulars.iter().zip(&from.regulars).all(is_same)
    }
}

/// Reads the row at `offset` on disk; returns it and the offset behind it, or None and `offset` if
/// the bytes there have to be decoded. `Truncated` means that the buffer ends too early and a
/// longer one may do.
pub fn get_encoded_row(
    buffer: &Bytes,
    offset: usize,
    header: &Arc<Header>,
) -> Result<(Option<EncodedRow>, usize), CodecError> {
    let Some(framed) = framed_row(buffer, offset, header)? else { return Ok((None, offset)) };
    let FramedRow { flags, clustering, framing, body, end, content } = framed;
    let Some(facts) = facts(content, flags, header) else { return Ok((None, offset)) };
    let (bytes, framing, body) = (buffer.slice(offset..end), framing - offset, body - offset);
    Ok((Some(EncodedRow { clustering, facts, bytes, framing, body, header: Arc::clone(header) }), end))
}

/// The thing that [`show_encoded_row`] met.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ShowOutcome {
    /// A row, which was shown.
    ShownRow,
    /// The end of the partition.
    EndOfPartition,
    /// Something that has to be decoded.
    NotShown,
}

/// Shows the row at `offset` on disk to `visitor`, as [`EncodedRow::visit`] would; returns what
/// stands there, and the offset behind it unless it has to be decoded: then `offset`. `Truncated`
/// as with [`get_encoded_row`], before anything is shown.
pub fn show_encoded_row(
    buffer: &Bytes,
    offset: usize,
    header: &Header,
    visitor: &mut dyn RowVisitor,
) -> Result<(ShowOutcome, usize), CodecError> {
    if buffer.get(offset).is_some_and(|flags| flags & END_OF_PARTITION != 0) {
        return Ok((ShowOutcome::EndOfPartition, offset + 1));
    }
    let Some(framed) = framed_row(buffer, offset, header)? else { return Ok((ShowOutcome::NotShown, offset)) };
    let FramedRow { flags, clustering, end, content, .. } = framed;
    if inspected(content, flags, header, |_| {}).is_none() {
        return Ok((ShowOutcome::NotShown, offset));
    }
    show(Walk { cursor: Cursor::new(content), flags, header }, &clustering, visitor)?;
    Ok((ShowOutcome::ShownRow, end))
}

/// A row on disk without deletions and expiry of its own, whose content is still to be inspected.
/// Offsets are those in the buffer.
struct FramedRow<'a> {
    flags: u8,
    clustering: ClusteringValues,
    /// Where the sizes begin.
    framing: usize,
    /// Where the content begins.
    body: usize,
    /// Where the row ends.
    end: usize,
    content: &'a [u8],
}

#[inline]
fn framed_row<'a>(buffer: &'a Bytes, offset: usize, header: &Header) -> Result<Option<FramedRow<'a>>, CodecError> {
    let flags = *buffer.get(offset).ok_or(CodecError::Truncated)?;
    if flags & !(HAS_TIMESTAMP | HAS_ALL_COLUMNS) != 0 {
        return Ok(None);
    }
    let (clustering, framing) = get_clustering_values(buffer, offset + 1, &header.clustering)?;
    let mut cursor = Cursor::new(buffer.get(framing..).ok_or(CodecError::Truncated)?);
    let size = cursor.uvint()?;
    if size > cursor.remaining() as u64 {
        return Err(CodecError::Truncated);
    }
    let end = framing + cursor.position() + size as usize;
    cursor.uvint()?;
    let body = framing + cursor.position();
    let content = buffer.get(body..end);
    Ok(content.map(|content| FramedRow { flags, clustering, framing, body, end, content }))
}

/// The facts of a row by its content. None: the row may not be copied.
fn facts(content: &[u8], flags: u8, header: &Header) -> Option<RowFacts> {
    let mut facts =
        RowFacts { min_timestamp: i64::MAX, max_timestamp: i64::MIN, cells: 0, columns: 0, own_timestamps: false };
    let inspected = inspected(content, flags, header, |timestamp| {
        facts.min_timestamp = facts.min_timestamp.min(timestamp);
        facts.max_timestamp = facts.max_timestamp.max(timestamp);
    })?;
    (facts.cells, facts.columns) = (inspected.cells, inspected.columns);
    facts.own_timestamps = inspected.timestamps > u64::from(flags & HAS_TIMESTAMP != 0);
    Some(facts)
}

/// Numbers of what a row has.
struct Inspected {
    cells: u64,
    columns: u64,
    /// Timestamps of the row and of cells that have their own.
    timestamps: u64,
}

/// Inspects a row's content and shows its timestamps. None: the row may not be copied, or is
/// malformed; decoding it will report that.
#[inline]
fn inspected(content: &[u8], flags: u8, header: &Header, mut see: impl FnMut(i64)) -> Option<Inspected> {
    let mut timestamps = 0;
    let mut walk = Walk { cursor: Cursor::new(content), flags, header };
    let mut of_stamp = |stamp: Stamp| {
        see(stamp.timestamp(header));
        timestamps += 1;
    };
    walk.liveness().ok()?.map(&mut of_stamp);
    let (cells, columns) = walk.columns(|cell| cell.stamp.map_or((), &mut of_stamp)).ok()??;
    (timestamps > 0 && walk.cursor.is_empty()).then_some(Inspected { cells, columns, timestamps })
}

/// Shows a row that was inspected.
#[inline]
fn show(
    mut walk: Walk<'_>,
    clustering: &ClusteringValues,
    visitor: &mut (impl RowVisitor + ?Sized),
) -> Result<(), CodecError> {
    let header = walk.header;
    let liveness = walk.liveness()?.map_or(Liveness::EMPTY, |stamp| Liveness::new(stamp.timestamp(header)));
    visitor.begin(clustering, &liveness);
    let walked = walk.columns(|WalkedCell { stamp, path, value }| {
        let timestamp = stamp.map_or(liveness.timestamp, |stamp| stamp.timestamp(header));
        visitor.cell(EncodedCell { timestamp, path, value });
    });
    walked.map(|_| ())
}

/// Goes through the content of a row and shows its timestamps and cells.
struct Walk<'a> {
    cursor: Cursor<'a>,
    flags: u8,
    header: &'a Header,
}

/// A timestamp in the content of a row.
struct Stamp {
    place: Range<usize>,
    /// The distance from the smallest timestamp of the file.
    delta: u64,
}

impl Stamp {
    fn timestamp(&self, header: &Header) -> i64 {
        header.stats.min_timestamp.wrapping_add(self.delta.cast_signed())
    }
}

/// A cell in the content of a row.
struct WalkedCell<'a> {
    /// None: the timestamp is the row's.
    stamp: Option<Stamp>,
    path: Option<&'a [u8]>,
    value: &'a [u8],
}

impl<'a> Walk<'a> {
    fn has_timestamp(&self) -> bool {
        self.flags & HAS_TIMESTAMP != 0
    }

    #[inline]
    fn stamp(&mut self) -> Result<Stamp, CodecError> {
        let start = self.cursor.position();
        let delta = self.cursor.uvint()?;
        Ok(Stamp { place: start..self.cursor.position(), delta })
    }

    /// The timestamp of the row; None: it has none.
    #[inline]
    fn liveness(&mut self) -> Result<Option<Stamp>, CodecError> {
        if self.has_timestamp() { self.stamp().map(Some) } else { Ok(None) }
    }

    /// Shows the cells. Gives their number and that of columns. None: a cell is deleted or expires.
    #[inline]
    fn columns(&mut self, mut see: impl FnMut(WalkedCell<'a>)) -> Result<Option<(u64, u64)>, CodecError> {
        let missing = if self.flags & HAS_ALL_COLUMNS != 0 { 0 } else { self.cursor.uvint()? };
        let (mut cells, mut columns) = (0, 0);
        for (index, column) in self.header.regulars.iter().enumerate() {
            if missing & (1 << index) != 0 {
                continue;
            }
            let count = if column.complex { self.cursor.uvint()? } else { 1 };
            for _ in 0..count {
                match self.cell(column)? {
                    Some(cell) => see(cell),
                    None => return Ok(None),
                }
            }
            cells += count;
            columns += u64::from(count > 0);
        }
        Ok(Some((cells, columns)))
    }

    /// The next cell. None: it is deleted, or expires.
    #[inline(always)]
    fn cell(&mut self, column: &CodecColumn) -> Result<Option<WalkedCell<'a>>, CodecError> {
        let flags = self.cursor.u8()?;
        if flags & !(CELL_EMPTY_VALUE | CELL_ROW_TIMESTAMP) != 0 {
            return Ok(None);
        }
        let stamp = match flags & CELL_ROW_TIMESTAMP {
            0 => Some(self.stamp()?),
            _ if self.has_timestamp() => None,
            _ => return Ok(None),
        };
        let path = if column.complex { Some(self.cursor.vbytes()?) } else { None };
        let value = match column.fixed_length {
            _ if flags & CELL_EMPTY_VALUE != 0 => &[],
            Some(length) if !column.complex => self.cursor.take(length)?,
            _ => self.cursor.vbytes()?,
        };
        Ok(Some(WalkedCell { stamp, path, value }))
    }
}

/// A cell of an [`EncodedRow`], which is neither deleted nor expires.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EncodedCell<'a> {
    /// Write timestamp, microseconds.
    pub timestamp: i64,
    /// The path within a complex column.
    pub path: Option<&'a [u8]>,
    /// The value.
    pub value: &'a [u8],
}

impl EncodedRow {
    /// Appends the row in the form of another header, which holds rows of this one's.
    /// `previous_size` is the distance to the unfiltered before.
    pub fn encode(&self, out: &mut Vec<u8>, to: &Header, previous_size: u64) {
        debug_assert!(to.holds_rows_of(&self.header), "asked for with the header that is written against");
        out.extend_from_slice(self.bytes.get(..self.framing).unwrap_or_default());
        framed(out, Framing::Disk { previous_size }, |out| self.put_content(out, to));
    }

    fn put_content(&self, out: &mut Vec<u8>, to: &Header) {
        let content = self.bytes.get(self.body..).unwrap_or_default();
        let shift = self.header.stats.min_timestamp.wrapping_sub(to.stats.min_timestamp).cast_unsigned();
        let mut copied = 0;
        if shift != 0 {
            let flags = self.bytes.first().copied().unwrap_or_default();
            let mut walk = Walk { cursor: Cursor::new(content), flags, header: &self.header };
            let mut put = |Stamp { place, delta }| {
                out.extend_from_slice(content.get(copied..place.start).unwrap_or_default());
                put_uvint(out, delta.wrapping_add(shift));
                copied = place.end;
            };
            let walked = walk.liveness().map(|stamp| stamp.map_or((), &mut put));
            debug_assert!(walked.is_ok(), "walked before");
            if self.facts.own_timestamps {
                let walked = walk.columns(|cell| cell.stamp.map_or((), &mut put));
                debug_assert!(walked.is_ok(), "walked before");
            }
        }
        out.extend_from_slice(content.get(copied..).unwrap_or_default());
    }

    /// Shows the row to `visitor`, as it would be decoded, without decoding it.
    pub fn visit(&self, visitor: &mut (impl RowVisitor + ?Sized)) -> Result<(), ReadError> {
        let content = self.bytes.get(self.body..).unwrap_or_default();
        let flags = self.bytes.first().copied().unwrap_or_default();
        let walk = Walk { cursor: Cursor::new(content), flags, header: &self.header };
        show(walk, &self.clustering, visitor).map_err(|error| inspected_row_error(&error))
    }

    /// Decodes the row.
    pub fn decode(&self) -> Result<Row, ReadError> {
        match decode_unfiltered(&self.bytes, 0, &self.header, true) {
            Ok((Decoded::Row(row), _)) => Ok(row),
            other => Err(inspected_row_error(&other)),
        }
    }
}

/// Is shown a row that stays as it is encoded.
pub trait RowVisitor {
    /// The row begins. Nothing of it is deleted or expires.
    fn begin(&mut self, clustering: &ClusteringValues, liveness: &Liveness);

    /// A cell, in the order of the header's columns; those of a complex column ascend by path.
    fn cell(&mut self, cell: EncodedCell<'_>);
}

/// The bytes of a row were inspected when it was read, so that bytes of a file cannot lead here.
fn inspected_row_error(what: &dyn std::fmt::Debug) -> ReadError {
    let what = format!("a row that was read is none: {what:?}");
    Corruption { path: Default::default(), offset: 0, what }.into()
}
