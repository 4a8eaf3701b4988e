//! Reads rows and markers. Values are shared slices of the buffer that they are read from.

use bytes::Bytes;
use smallvec::SmallVec;
use stdx::Cursor;
use types::CqlType;

use super::{
    CELL_EMPTY_VALUE, CELL_EXPIRING, CELL_ROW_TIMESTAMP, CELL_ROW_TTL, CELL_TOMBSTONE, CodecColumn, CodecError,
    DeletionTimeForm, END_OF_PARTITION, EXTENSION, EncodingStats, HAS_ALL_COLUMNS, HAS_COMPLEX_DELETION, HAS_DELETION,
    HAS_TIMESTAMP, HAS_TTL, Header, IS_MARKER, IS_STATIC, LARGE_SUBSET, invalid,
};
use crate::cell::{INVALID_DELETION_TIME, NO_DELETION_TIME, NO_TIMESTAMP, NO_TTL};
use crate::{
    Cell, ClusteringPrefix, ClusteringValues, ColumnData, ComplexColumn, DeletionTime, Liveness, PrefixKind,
    RangeTombstoneMarker, Row,
};

/// Most cells of a column for which memory is taken before they are decoded.
const CELLS_AHEAD: usize = 256;

/// An element of a partition's bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Decoded {
    /// A row. It is empty if it only holds cells of dropped columns.
    Row(Row),
    /// A marker.
    Marker(RangeTombstoneMarker),
    /// The end of the partition.
    EndOfPartition,
}

/// Decodes the unfiltered at `offset`; returns it and the offset behind it. `Truncated` means that
/// the buffer ends too early and a longer one may do.
pub fn decode_unfiltered(
    buffer: &Bytes,
    offset: usize,
    header: &Header,
    on_disk: bool,
) -> Result<(Decoded, usize), CodecError> {
    let mut reader = Reader::new(buffer, offset)?;
    let flags = reader.cursor.u8()?;
    let decoded = if flags & END_OF_PARTITION != 0 {
        Decoded::EndOfPartition
    } else if flags & IS_MARKER != 0 {
        Decoded::Marker(reader.marker(header, on_disk)?)
    } else {
        if flags & EXTENSION != 0 && reader.cursor.u8()? & IS_STATIC != 0 {
            return invalid("a static row among the rows of a partition");
        }
        Decoded::Row(reader.row(flags, false, header, on_disk)?)
    };
    Ok((decoded, reader.offset()))
}

/// Decodes the static row at `offset`; returns it and the offset behind it.
pub fn decode_static_row(
    buffer: &Bytes,
    offset: usize,
    header: &Header,
    on_disk: bool,
) -> Result<(Row, usize), CodecError> {
    let mut reader = Reader::new(buffer, offset)?;
    let flags = reader.cursor.u8()?;
    if flags & EXTENSION == 0 || reader.cursor.u8()? & IS_STATIC == 0 {
        return invalid("a static row was expected");
    }
    let row = reader.row(flags, true, header, on_disk)?;
    Ok((row, reader.offset()))
}

/// Reads clustering values of the given types from `cursor`, whose bytes start at `base` in
/// `buffer`.
pub fn get_clustering_values(
    buffer: &Bytes,
    offset: usize,
    types: &[CqlType],
) -> Result<(ClusteringValues, usize), CodecError> {
    get_clustering_of_lengths(buffer, offset, types.iter().map(CqlType::fixed_length))
}

/// Reads clustering values of types with these lengths ([`CqlType::fixed_length`]) at `offset`;
/// returns them and the offset behind them.
pub fn get_clustering_of_lengths(
    buffer: &Bytes,
    offset: usize,
    lengths: impl Iterator<Item = Option<usize>>,
) -> Result<(ClusteringValues, usize), CodecError> {
    let mut reader = Reader::new(buffer, offset)?;
    let values = reader.clustering_values(lengths)?;
    Ok((values, reader.offset()))
}

/// Reads the deletion time of a partition or of an open range.
pub fn get_deletion_time(cursor: &mut Cursor<'_>, form: DeletionTimeForm) -> Result<DeletionTime, CodecError> {
    if form == DeletionTimeForm::Signed {
        let (seconds, timestamp) = (cursor.i32()?, cursor.i64()?);
        if timestamp == NO_TIMESTAMP && seconds == i32::MAX {
            return Ok(DeletionTime::LIVE);
        }
        // a negative time is one that overflowed
        return Ok(DeletionTime::new(timestamp, u32::try_from(seconds).unwrap_or(INVALID_DELETION_TIME)));
    }
    let first = cursor.u8()?;
    if first & 0x80 != 0 {
        if first != 0x80 {
            return invalid("a deletion time with a negative timestamp");
        }
        return Ok(DeletionTime::LIVE);
    }
    let mut timestamp = [first, 0, 0, 0, 0, 0, 0, 0];
    timestamp[1..].copy_from_slice(cursor.take(7)?);
    Ok(DeletionTime::new(i64::from_be_bytes(timestamp), cursor.u32()?))
}

#[inline]
fn get_timestamp(cursor: &mut Cursor<'_>, stats: &EncodingStats) -> Result<i64, CodecError> {
    Ok(stats.min_timestamp.wrapping_add(cursor.uvint()? as i64))
}

#[inline]
fn get_local_deletion_time(cursor: &mut Cursor<'_>, header: &Header) -> Result<u32, CodecError> {
    let base = header.stats.min_local_deletion_time;
    let delta = cursor.uvint()? as u32;
    if header.deletion_times == DeletionTimeForm::Signed {
        let seconds = i64::from(base) + i64::from(delta as i32);
        return Ok(u32::try_from(seconds).unwrap_or(INVALID_DELETION_TIME));
    }
    Ok(base.wrapping_add(delta))
}

/// Reads a deletion of a row, a range, a complex column, or of a partition in a message.
#[inline]
pub fn get_deletion_delta(cursor: &mut Cursor<'_>, header: &Header) -> Result<DeletionTime, CodecError> {
    let marked_for_delete_at = get_timestamp(cursor, &header.stats)?;
    let local_deletion_time = get_local_deletion_time(cursor, header)?;
    if marked_for_delete_at == NO_TIMESTAMP {
        return Ok(DeletionTime::LIVE);
    }
    Ok(DeletionTime { marked_for_delete_at, local_deletion_time })
}

/// Reads which of `total` columns are present: their indexes, ascending.
pub fn get_subset(cursor: &mut Cursor<'_>, total: usize) -> Result<SmallVec<[usize; 64]>, CodecError> {
    let encoded = cursor.uvint()?;
    if total < LARGE_SUBSET {
        if encoded >> total != 0 {
            return invalid(format!("a subset of {total} columns that names others"));
        }
        return Ok((0..total).filter(|index| encoded & (1 << index) == 0).collect());
    }
    let missing = usize::try_from(encoded).unwrap_or(usize::MAX);
    if missing > total {
        return invalid(format!("{missing} of {total} columns are missing"));
    }
    let count = total - missing;
    if count < total / 2 {
        let mut present = SmallVec::new();
        for _ in 0..count {
            present.push(column_index(cursor, total)?);
        }
        return Ok(present);
    }
    let mut is_missing = vec![false; total];
    for _ in 0..missing {
        let index = column_index(cursor, total)?;
        is_missing[index] = true;
    }
    Ok((0..total).filter(|index| !is_missing[*index]).collect())
}

fn column_index(cursor: &mut Cursor<'_>, total: usize) -> Result<usize, CodecError> {
    let index = cursor.uvint()?;
    match usize::try_from(index) {
        Ok(index) if index < total => Ok(index),
        _ => invalid(format!("column {index} of {total} columns")),
    }
}

struct Reader<'a> {
    buffer: &'a Bytes,
    base: usize,
    cursor: Cursor<'a>,
}

impl<'a> Reader<'a> {
    fn new(buffer: &'a Bytes, base: usize) -> Result<Self, CodecError> {
        let rest = buffer.get(base..).ok_or(CodecError::Truncated)?;
        Ok(Self { buffer, base, cursor: Cursor::new(rest) })
    }

    fn offset(&self) -> usize {
        self.base + self.cursor.position()
    }

    /// Reads the next `length` bytes as a shared slice.
    fn bytes(&mut self, length: usize) -> Result<Bytes, CodecError> {
        let start = self.offset();
        self.cursor.take(length)?;
        Ok(self.buffer.slice(start..start + length))
    }

    fn vbytes(&mut self) -> Result<Bytes, CodecError> {
        let length = self.cursor.uvint()?;
        let length = usize::try_from(length).map_err(|_| CodecError::Invalid(format!("a length of {length}")))?;
        self.bytes(length)
    }

    fn value(&mut self, fixed_length: Option<usize>) -> Result<Bytes, CodecError> {
        match fixed_length {
            Some(length) => self.bytes(length),
            None => self.vbytes(),
        }
    }

    /// Reads clustering values of types with these lengths.
    fn clustering_values(
        &mut self,
        lengths: impl Iterator<Item = Option<usize>>,
    ) -> Result<ClusteringValues, CodecError> {
        let mut values = ClusteringValues::new();
        let mut bits = 0;
        for (index, length) in lengths.enumerate() {
            if index.is_multiple_of(32) {
                bits = self.cursor.uvint()?;
            }
            values.push(match bits & 3 {
                0 => Some(self.value(length)?),
                1 => Some(Bytes::new()),
                _ => None,
            });
            bits >>= 2;
        }
        Ok(values)
    }

    /// Skips the size and the previous size.
    fn framing(&mut self, on_disk: bool) -> Result<(), CodecError> {
        if on_disk {
            let size = self.cursor.uvint()?;
            if size > self.cursor.remaining() as u64 {
                return Err(CodecError::Truncated);
            }
            self.cursor.uvint()?;
        }
        Ok(())
    }

    fn timestamp(&mut self, stats: &EncodingStats) -> Result<i64, CodecError> {
        get_timestamp(&mut self.cursor, stats)
    }

    fn local_deletion_time(&mut self, header: &Header) -> Result<u32, CodecError> {
        get_local_deletion_time(&mut self.cursor, header)
    }

    fn ttl(&mut self, stats: &EncodingStats) -> Result<u32, CodecError> {
        Ok(stats.min_ttl.wrapping_add(self.cursor.uvint()? as u32))
    }

    fn deletion_delta(&mut self, header: &Header) -> Result<DeletionTime, CodecError> {
        get_deletion_delta(&mut self.cursor, header)
    }

    fn marker(&mut self, header: &Header, on_disk: bool) -> Result<RangeTombstoneMarker, CodecError> {
        let ordinal = self.cursor.u8()?;
        let kind = match PrefixKind::from_ordinal(ordinal) {
            Some(kind) if kind.is_boundary() || kind.is_start() || kind.is_end() => kind,
            _ => return invalid(format!("a range tombstone marker of kind {ordinal}")),
        };
        let count = usize::from(self.cursor.u16()?);
        let Some(lengths) = header.clustering_lengths.get(..count) else {
            return invalid(format!("a bound of {count} values in a table of {}", header.clustering.len()));
        };
        let values = self.clustering_values(lengths.iter().copied())?;
        self.framing(on_disk)?;
        let close = if kind.is_start() { None } else { Some(self.deletion_delta(header)?) };
        let open = if kind.is_end() { None } else { Some(self.deletion_delta(header)?) };
        Ok(RangeTombstoneMarker { position: ClusteringPrefix { kind, values }, close, open })
    }

    fn row(&mut self, flags: u8, is_static: bool, header: &Header, on_disk: bool) -> Result<Row, CodecError> {
        let lengths: &[_] = if is_static { &[] } else { &header.clustering_lengths };
        let clustering = self.clustering_values(lengths.iter().copied())?;
        self.framing(on_disk)?;
        let mut row = Row::new(clustering);
        row.liveness = self.liveness(flags, header)?;
        if flags & HAS_DELETION != 0 {
            row.deletion = self.deletion_delta(header)?;
        }
        let columns = header.columns(is_static);
        let has_complex_deletion = flags & HAS_COMPLEX_DELETION != 0;
        if flags & HAS_ALL_COLUMNS != 0 {
            row.columns.reserve_exact(columns.len());
            for column in columns {
                self.column(&mut row, column, header, has_complex_deletion)?;
            }
        } else {
            for index in get_subset(&mut self.cursor, columns.len())? {
                let Some(column) = columns.get(index) else {
                    return invalid(format!("column {index} of {} columns", columns.len()));
                };
                self.column(&mut row, column, header, has_complex_deletion)?;
            }
        }
        let ascends = |a: &ColumnData, b: &ColumnData| a.column() < b.column();
        if !row.columns.is_sorted_by(ascends) {
            row.columns.sort_by_key(ColumnData::column);
            // a header may name a column twice
            if !row.columns.is_sorted_by(ascends) {
                return invalid("a row has a column twice");
            }
        }
        Ok(row)
    }

    fn liveness(&mut self, flags: u8, header: &Header) -> Result<Liveness, CodecError> {
        if flags & HAS_TIMESTAMP == 0 {
            return Ok(Liveness::EMPTY);
        }
        let timestamp = self.timestamp(&header.stats)?;
        if flags & HAS_TTL == 0 {
            return Ok(Liveness::new(timestamp));
        }
        let ttl = self.ttl(&header.stats)?;
        Ok(Liveness::expiring(timestamp, ttl, self.local_deletion_time(header)?))
    }

    fn column(
        &mut self,
        row: &mut Row,
        column: &CodecColumn,
        header: &Header,
        has_complex_deletion: bool,
    ) -> Result<(), CodecError> {
        if !column.complex {
            let cell = self.cell(column, &row.liveness, header)?;
            if column.id.is_some() && keeps(column, cell.timestamp) {
                row.columns.push(ColumnData::Simple(cell));
            }
            return Ok(());
        }
        let mut deletion = if has_complex_deletion { self.deletion_delta(header)? } else { DeletionTime::LIVE };
        let count = self.cursor.uvint()?;
        // a cell takes at least two bytes: flags and path length
        if count > self.cursor.remaining() as u64 {
            return Err(CodecError::Truncated);
        }
        // cells take many times the memory of their bytes, so a false count must not reserve all of
        // it
        let mut cells = Vec::with_capacity((count as usize).min(CELLS_AHEAD));
        for _ in 0..count {
            let cell = self.cell(column, &row.liveness, header)?;
            if keeps(column, cell.timestamp) {
                cells.push(cell);
            }
        }
        if !keeps(column, deletion.marked_for_delete_at) {
            deletion = DeletionTime::LIVE;
        }
        if let Some(id) = column.id
            && (!deletion.is_live() || !cells.is_empty())
        {
            row.columns.push(ColumnData::Complex(Box::new(ComplexColumn { column: id, deletion, cells })));
        }
        Ok(())
    }

    fn cell(&mut self, column: &CodecColumn, liveness: &Liveness, header: &Header) -> Result<Cell, CodecError> {
        let stats = &header.stats;
        let flags = self.cursor.u8()?;
        let tombstone = flags & CELL_TOMBSTONE != 0;
        let expiring = flags & CELL_EXPIRING != 0;
        let row_ttl = flags & CELL_ROW_TTL != 0;
        let timestamp = if flags & CELL_ROW_TIMESTAMP != 0 { liveness.timestamp } else { self.timestamp(stats)? };
        let local_deletion_time = if row_ttl {
            liveness.local_expiration_time
        } else if tombstone || expiring {
            self.local_deletion_time(header)?
        } else {
            NO_DELETION_TIME
        };
        let ttl = if row_ttl {
            liveness.ttl
        } else if expiring {
            self.ttl(stats)?
        } else {
            NO_TTL
        };
        let path = if column.complex { Some(self.vbytes()?) } else { None };
        let value = if flags & CELL_EMPTY_VALUE != 0 {
            Bytes::new()
        } else {
            self.value(if column.complex { None } else { column.fixed_length })?
        };
        let value = if column.ty.is_counter() { crate::counter::clear_local(value) } else { value };
        let id = column.id.unwrap_or(schema::ColumnId(u16::MAX));
        Ok(Cell { column: id, timestamp, ttl, local_deletion_time, path, value })
    }
}

fn keeps(column: &CodecColumn, timestamp: i64) -> bool {
    column.dropped_time == NO_TIMESTAMP || timestamp > column.dropped_time
}
