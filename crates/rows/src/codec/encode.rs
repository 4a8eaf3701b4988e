//! Writes rows and markers. The only allocation is the growth of the output.

use bytes::Bytes;
use smallvec::SmallVec;
use stdx::{put_u16, put_uvint, put_vbytes, uvint_bytes, uvint_len};
use types::CqlType;

use super::{
    CELL_EMPTY_VALUE, CELL_EXPIRING, CELL_ROW_TIMESTAMP, CELL_ROW_TTL, CELL_TOMBSTONE, CodecColumn, DeletionTimeForm,
    END_OF_PARTITION, EXTENSION, EncodingStats, Framing, HAS_ALL_COLUMNS, HAS_COMPLEX_DELETION, HAS_DELETION,
    HAS_TIMESTAMP, HAS_TTL, Header, IS_MARKER, IS_STATIC, LARGE_SUBSET,
};
use crate::cell::NO_DELETION_TIME;
use crate::{Cell, ColumnData, DeletionTime, Liveness, RangeTombstoneMarker, Row};

/// The data of a row that a header has columns for, each with the column's index, ascending.
pub type Present<'a> = SmallVec<[(usize, &'a ColumnData); 16]>;

/// Writes a row. Columns that the header lacks are left out.
pub fn encode_row(out: &mut Vec<u8>, row: &Row, is_static: bool, header: &Header, framing: Framing) {
    let columns = header.columns(is_static);
    let present = present_columns(row, header);
    let has_complex_deletion =
        present.iter().any(|(_, data)| matches!(data, ColumnData::Complex(complex) if !complex.deletion.is_live()));
    let mut flags = 0;
    if is_static {
        flags |= EXTENSION;
    }
    if !row.liveness.is_empty() {
        flags |= HAS_TIMESTAMP;
        if row.liveness.is_expiring() {
            flags |= HAS_TTL;
        }
    }
    if !row.deletion.is_live() {
        flags |= HAS_DELETION;
    }
    if present.len() == columns.len() {
        flags |= HAS_ALL_COLUMNS;
    }
    if has_complex_deletion {
        flags |= HAS_COMPLEX_DELETION;
    }
    out.push(flags);
    if is_static {
        out.push(IS_STATIC);
    } else {
        // a reader takes as many values as there are types
        assert_eq!(row.clustering.len(), header.clustering.len(), "a row has a value for each clustering column");
        put_clustering_values(out, &row.clustering, &header.clustering);
    }
    framed(out, framing, |out| {
        put_liveness(out, &row.liveness, &header.stats);
        if !row.deletion.is_live() {
            put_deletion_delta(out, &row.deletion, &header.stats);
        }
        if present.len() != columns.len() {
            put_subset(out, &present, columns.len());
        }
        for (index, data) in &present {
            let Some(column) = columns.get(*index) else { continue };
            put_column(out, data, column, row, header, has_complex_deletion);
        }
    });
}

/// The data of a row in the order of the header's columns.
pub fn present_columns<'a>(row: &'a Row, header: &Header) -> Present<'a> {
    let mut present: Present<'a> = SmallVec::new();
    let mut in_order = true;
    for data in &row.columns {
        let Some(index) = header.index(data.column()) else { continue };
        in_order &= present.last().is_none_or(|(last, _)| *last < index);
        present.push((index, data));
    }
    if !in_order {
        present.sort_by_key(|(index, _)| *index);
    }
    debug_assert!(present.is_sorted_by(|(a, _), (b, _)| a < b), "a row has each column once");
    present
}

fn put_column(
    out: &mut Vec<u8>,
    data: &ColumnData,
    column: &CodecColumn,
    row: &Row,
    header: &Header,
    has_complex_deletion: bool,
) {
    match data {
        ColumnData::Simple(cell) => put_cell(out, cell, column, &row.liveness, &header.stats),
        ColumnData::Complex(complex) => {
            if has_complex_deletion {
                put_deletion_delta(out, &complex.deletion, &header.stats);
            }
            put_uvint(out, complex.cells.len() as u64);
            for cell in &complex.cells {
                put_cell(out, cell, column, &row.liveness, &header.stats);
            }
        }
    }
}

/// Writes a range tombstone marker.
pub fn encode_marker(out: &mut Vec<u8>, marker: &RangeTombstoneMarker, header: &Header, framing: Framing) {
    let kind = marker.position.kind;
    // the kind tells a reader how many deletions follow
    assert_ne!(marker.close.is_some(), kind.is_start(), "a marker closes a range unless it is a start");
    assert_ne!(marker.open.is_some(), kind.is_end(), "a marker opens a range unless it is an end");
    out.push(IS_MARKER);
    out.push(kind as u8);
    put_u16(out, marker.position.values.len() as u16);
    if !marker.position.values.is_empty() {
        put_clustering_values(out, &marker.position.values, &header.clustering);
    }
    framed(out, framing, |out| {
        for deletion in [marker.close, marker.open].into_iter().flatten() {
            put_deletion_delta(out, &deletion, &header.stats);
        }
    });
}

/// Writes the byte that ends a partition.
pub fn put_end_of_partition(out: &mut Vec<u8>) {
    out.push(END_OF_PARTITION);
}

/// Bytes reserved for a size. Most sizes take as many; otherwise the bytes behind are moved.
const SIZE_WIDTH: usize = 2;

/// Writes `body`; on disk, its size and the previous size before it. The size includes the bytes of
/// the previous size.
pub(super) fn framed(out: &mut Vec<u8>, framing: Framing, body: impl FnOnce(&mut Vec<u8>)) {
    let Framing::Disk { previous_size } = framing else { return body(out) };
    let place = out.len();
    let start = place + SIZE_WIDTH;
    out.resize(start, 0);
    put_uvint(out, previous_size);
    body(out);
    let end = out.len();
    let size = (end - start) as u64;
    let width = uvint_len(size);
    if width > SIZE_WIDTH {
        out.resize(end + width - SIZE_WIDTH, 0);
    }
    if width != SIZE_WIDTH {
        out.copy_within(start..end, place + width);
        out.truncate(place + width + size as usize);
    }
    uvint_bytes(size, |bytes| out[place..place + width].copy_from_slice(bytes));
}

/// Writes clustering values: for each run of up to 32 values a header of two bits each (empty,
/// null), then the values that are neither. `types` are those of the values, and of the clustering
/// columns behind them. Values without a type, as a damaged file may name them, are left out.
pub fn put_clustering_values(out: &mut Vec<u8>, values: &[Option<Bytes>], types: &[CqlType]) {
    for (run, types) in values.chunks(32).zip(types.chunks(32)) {
        let mut bits = 0u64;
        for (index, value) in run.iter().enumerate() {
            match value {
                None => bits |= 2 << (2 * index),
                Some(value) if value.is_empty() => bits |= 1 << (2 * index),
                Some(_) => {}
            }
        }
        put_uvint(out, bits);
        for (value, ty) in run.iter().zip(types) {
            let Some(value) = value else { continue };
            if value.is_empty() {
                continue;
            }
            put_value(out, value, ty.fixed_length());
        }
    }
}

fn put_value(out: &mut Vec<u8>, value: &[u8], fixed_length: Option<usize>) {
    match fixed_length {
        Some(length) => {
            assert_eq!(value.len(), length, "a value of a fixed-length type has its length: checked when it came in");
            out.extend_from_slice(value);
        }
        None => put_vbytes(out, value),
    }
}

fn put_timestamp(out: &mut Vec<u8>, timestamp: i64, stats: &EncodingStats) {
    put_uvint(out, timestamp.wrapping_sub(stats.min_timestamp) as u64);
}

/// Writes the difference to the base as a signed 32-bit number, extended to 64 bits. The difference
/// of "live" (a complex column without a deletion, in a row where another one has a deletion) is
/// negative and takes nine bytes. Cassandra refuses a larger positive one.
fn put_local_deletion_time(out: &mut Vec<u8>, time: u32, stats: &EncodingStats) {
    let difference = time.wrapping_sub(stats.min_local_deletion_time).cast_signed();
    put_uvint(out, i64::from(difference).cast_unsigned());
}

/// Writes the difference to the base as a signed 32-bit number, extended to 64 bits. The difference
/// is negative where the base is that of other rows than those written: in answers to reads.
fn put_ttl(out: &mut Vec<u8>, ttl: u32, stats: &EncodingStats) {
    let difference = ttl.wrapping_sub(stats.min_ttl).cast_signed();
    put_uvint(out, i64::from(difference).cast_unsigned());
}

fn put_liveness(out: &mut Vec<u8>, liveness: &Liveness, stats: &EncodingStats) {
    if liveness.is_empty() {
        return;
    }
    put_timestamp(out, liveness.timestamp, stats);
    if liveness.is_expiring() {
        put_ttl(out, liveness.ttl, stats);
        put_local_deletion_time(out, liveness.local_expiration_time, stats);
    }
}

/// Writes a deletion of a row, a range, a complex column, or of a partition in a message.
pub fn put_deletion_delta(out: &mut Vec<u8>, deletion: &DeletionTime, stats: &EncodingStats) {
    put_timestamp(out, deletion.marked_for_delete_at, stats);
    put_local_deletion_time(out, deletion.local_deletion_time, stats);
}

/// Writes the deletion time of a partition or of an open range.
pub fn put_deletion_time(out: &mut Vec<u8>, deletion: &DeletionTime, form: DeletionTimeForm) {
    match form {
        DeletionTimeForm::Unsigned if deletion.is_live() => out.push(0x80),
        DeletionTimeForm::Unsigned => {
            out.extend_from_slice(&deletion.marked_for_delete_at.to_be_bytes());
            out.extend_from_slice(&deletion.local_deletion_time.to_be_bytes());
        }
        DeletionTimeForm::Signed => {
            out.extend_from_slice(&signed_seconds(deletion.local_deletion_time).to_be_bytes());
            out.extend_from_slice(&deletion.marked_for_delete_at.to_be_bytes());
        }
    }
}

/// A local deletion time in the form before `oa`: the greatest value means "none", and later times
/// become the latest that the form can hold.
pub fn signed_seconds(local_deletion_time: u32) -> i32 {
    match local_deletion_time {
        NO_DELETION_TIME => i32::MAX,
        seconds => i32::try_from(seconds).unwrap_or(i32::MAX).min(i32::MAX - 1),
    }
}

fn put_subset(out: &mut Vec<u8>, present: &Present<'_>, total: usize) {
    if total < LARGE_SUBSET {
        let all = if total == 0 { 0 } else { u64::MAX >> (64 - total) };
        let bits = present.iter().fold(0u64, |bits, (index, _)| bits | 1 << index);
        put_uvint(out, all & !bits);
        return;
    }
    put_uvint(out, (total - present.len()) as u64);
    if present.len() < total / 2 {
        for (index, _) in present {
            put_uvint(out, *index as u64);
        }
        return;
    }
    let mut next = present.iter().map(|(index, _)| *index).peekable();
    for index in 0..total {
        if next.peek() == Some(&index) {
            next.next();
        } else {
            put_uvint(out, index as u64);
        }
    }
}

fn put_cell(out: &mut Vec<u8>, cell: &Cell, column: &CodecColumn, liveness: &Liveness, stats: &EncodingStats) {
    let tombstone = cell.is_tombstone();
    let expiring = cell.is_expiring();
    let row_timestamp = !liveness.is_empty() && cell.timestamp == liveness.timestamp;
    let row_ttl = expiring
        && liveness.is_expiring()
        && cell.ttl == liveness.ttl
        && cell.local_deletion_time == liveness.local_expiration_time;
    let mut flags = 0;
    if tombstone {
        flags |= CELL_TOMBSTONE;
    } else if expiring {
        flags |= CELL_EXPIRING;
    }
    if cell.value.is_empty() {
        flags |= CELL_EMPTY_VALUE;
    }
    if row_timestamp {
        flags |= CELL_ROW_TIMESTAMP;
    }
    if row_ttl {
        flags |= CELL_ROW_TTL;
    }
    out.push(flags);
    if !row_timestamp {
        put_timestamp(out, cell.timestamp, stats);
    }
    if (tombstone || expiring) && !row_ttl {
        put_local_deletion_time(out, cell.local_deletion_time, stats);
    }
    if expiring && !row_ttl {
        put_ttl(out, cell.ttl, stats);
    }
    if column.complex {
        put_vbytes(out, cell.path.as_deref().unwrap_or_default());
    }
    if !cell.value.is_empty() {
        put_value(out, &cell.value, if column.complex { None } else { column.fixed_length });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NO_DELETION_TIME;

    /// The bytes come from a row of two sets, one with a deletion and one without, that Cassandra
    /// 5.0.8 flushed.
    #[test]
    fn the_time_of_no_deletion_is_a_negative_difference() {
        let stats = EncodingStats { min_local_deletion_time: 1_795_289_963, ..EncodingStats::default() };
        let mut out = Vec::new();
        put_local_deletion_time(&mut out, NO_DELETION_TIME, &stats);
        assert_eq!(out, [0xff, 0xff, 0xff, 0xff, 0xff, 0x94, 0xfe, 0x0c, 0x94]);
    }
}
