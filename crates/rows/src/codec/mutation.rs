//! Mutations as bytes: the record of the commit log, and the body of messages between nodes.
//!
//! Agrees with `org.apache.cassandra.db.Mutation.MutationSerializer` and
//! `PartitionUpdate.PartitionUpdateSerializer` (messaging version 5.0); the layout is in
//! docs/formats/commitlog.md, "Mutation and partition update".

use std::sync::Arc;

use bytes::Bytes;
use schema::{ColumnKind, TableId, TableMetadata};
use stdx::{Cursor, put_uvint, put_vbytes};
use types::composite::KEY_BYTES_MAX;

use super::decode::get_deletion_delta;
use super::encode::put_deletion_delta;
use super::{
    CodecColumn, CodecError, DELETION_TIME_EPOCH, Decoded, EncodingStats, EncodingStatsCollector, Framing, Header,
    TIMESTAMP_EPOCH, decode_static_row, decode_unfiltered, encode_marker, encode_row, invalid, put_end_of_partition,
};
use crate::range_tombstones::{RangeTombstone, RangeTombstoneList, markers};
use crate::{DeletionTime, Mutation, PartitionUpdate, Row, Slice};

const IS_EMPTY: u8 = 0x01;
const HAS_PARTITION_DELETION: u8 = 0x04;
const HAS_STATIC_ROW: u8 = 0x08;
const HAS_ROW_ESTIMATE: u8 = 0x10;

/// Most updates of a mutation; a larger number is corruption.
const UPDATES_MAX: u64 = 65_535;

/// Appends a mutation.
pub fn encode_mutation(out: &mut Vec<u8>, mutation: &Mutation) {
    let count = mutation.updates.len() as u64;
    assert!((1..=UPDATES_MAX).contains(&count), "a mutation has {count} updates");
    put_uvint(out, count);
    for update in &mutation.updates {
        encode_update(out, update);
    }
}

/// Appends an update of one partition of one table.
pub fn encode_update(out: &mut Vec<u8>, update: &PartitionUpdate) {
    out.extend_from_slice(&update.table.id.0);
    put_vbytes(out, &update.key.key);
    if update.is_empty() {
        out.push(IS_EMPTY);
        return;
    }
    let mut flags = HAS_ROW_ESTIMATE;
    if !update.deletion.is_live() {
        flags |= HAS_PARTITION_DELETION;
    }
    if update.static_row.is_some() {
        flags |= HAS_STATIC_ROW;
    }
    out.push(flags);
    let header = header_of(update);
    put_stats(out, &header.stats);
    if update.static_row.is_some() {
        put_columns(out, &header.statics);
    }
    put_columns(out, &header.regulars);
    if !update.deletion.is_live() {
        put_deletion_delta(out, &update.deletion, &header.stats);
    }
    if let Some(row) = &update.static_row {
        encode_row(out, row, true, &header, Framing::Message);
    }
    put_uvint(out, update.rows.len() as u64);
    encode_unfiltereds(out, update, &header);
    put_end_of_partition(out);
}

/// The header of an update: its own base values and the columns that occur in it.
fn header_of(update: &PartitionUpdate) -> Header {
    let table = &update.table;
    let mut stats = EncodingStatsCollector::default();
    stats.deletion(&update.deletion);
    update.static_row.iter().chain(&update.rows).for_each(|row| stats.row(row));
    update.range_deletions.iter().for_each(|(_, deletion)| stats.deletion(deletion));
    let occurs = |row: &Row, column: &schema::ColumnMetadata| row.column(column.id).is_some();
    let statics = table
        .statics
        .iter()
        .filter(|column| update.static_row.as_ref().is_some_and(|row| occurs(row, column)))
        .map(CodecColumn::of)
        .collect();
    let regulars = table
        .regulars
        .iter()
        .filter(|column| update.rows.iter().any(|row| occurs(row, column)))
        .map(CodecColumn::of)
        .collect();
    let clustering = table.clustering.iter().map(|column| column.ty.clone()).collect();
    Header::new(stats.finish(), clustering, statics, regulars)
}

fn encode_unfiltereds(out: &mut Vec<u8>, update: &PartitionUpdate, header: &Header) {
    if update.range_deletions.is_empty() {
        update.rows.iter().for_each(|row| encode_row(out, row, false, header, Framing::Message));
        return;
    }
    let comparator = &update.table.comparator;
    let mut list = RangeTombstoneList::new();
    for (slice, deletion) in &update.range_deletions {
        list.insert(comparator, slice.clone(), *deletion);
    }
    let tombstones: Vec<RangeTombstone> = list.intervals().collect();
    let markers = markers(&tombstones);
    let mut markers = markers.iter().peekable();
    for row in &update.rows {
        let position = crate::ClusteringPrefix::row(row.clustering.clone());
        while let Some(marker) =
            markers.next_if(|marker| marker.position.compare(&position, comparator) == std::cmp::Ordering::Less)
        {
            encode_marker(out, marker, header, Framing::Message);
        }
        encode_row(out, row, false, header, Framing::Message);
    }
    markers.for_each(|marker| encode_marker(out, marker, header, Framing::Message));
}

/// Writes base values: in messages and in the commit log they are differences to the epochs. That
/// of the local deletion time is a signed 32-bit number, extended to 64 bits: Cassandra refuses a
/// larger positive one.
pub fn put_stats(out: &mut Vec<u8>, stats: &EncodingStats) {
    put_uvint(out, stats.min_timestamp.wrapping_sub(TIMESTAMP_EPOCH) as u64);
    let difference = stats.min_local_deletion_time.wrapping_sub(DELETION_TIME_EPOCH).cast_signed();
    put_uvint(out, i64::from(difference).cast_unsigned());
    put_uvint(out, u64::from(stats.min_ttl));
}

fn put_columns(out: &mut Vec<u8>, columns: &[CodecColumn]) {
    put_uvint(out, columns.len() as u64);
    for column in columns {
        put_vbytes(out, column.name.as_bytes());
    }
}

/// The first fields of a mutation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MutationHead<'a> {
    /// Number of updates.
    pub updates: u64,
    /// The table of the first update.
    pub table: TableId,
    /// The partition key of the first update, which is that of all others.
    pub key: &'a [u8],
}

/// Reads the first fields of a mutation without decoding the rest.
pub fn peek_mutation(buffer: &[u8]) -> Result<MutationHead<'_>, CodecError> {
    let mut cursor = Cursor::new(buffer);
    let updates = cursor.uvint()?;
    let id: [u8; 16] = cursor.take(16)?.try_into().map_err(|_| CodecError::Truncated)?;
    Ok(MutationHead { updates, table: TableId(id), key: cursor.vbytes()? })
}

/// Decodes a mutation. `table_of` finds tables by id. An update of a table that is gone is skipped,
/// which is possible only if it is the last. None: no update is left.
pub fn decode_mutation(
    buffer: &Bytes,
    table_of: &dyn Fn(TableId) -> Option<Arc<TableMetadata>>,
) -> Result<Option<Mutation>, CodecError> {
    MutationDecoder::new(table_of).decode(buffer)
}

/// Decodes the update at `offset` of `buffer`. Gives the update and the offset behind it. None: the
/// table is gone; nothing that follows can be found, so the offset is that of the buffer's end.
pub fn decode_update(
    buffer: &Bytes,
    offset: usize,
    table_of: &dyn Fn(TableId) -> Option<Arc<TableMetadata>>,
) -> Result<(Option<PartitionUpdate>, usize), CodecError> {
    MutationDecoder::new(table_of).update(buffer, offset)
}

/// Decodes many mutations as [`decode_mutation`] does. If an update has the table and the columns
/// of the one before, the header is reused.
pub struct MutationDecoder<'a> {
    table_of: &'a dyn Fn(TableId) -> Option<Arc<TableMetadata>>,
    last: Option<UpdateForm>,
}

/// A header against which updates are decoded, and the bytes that it was made from.
struct UpdateForm {
    table: Arc<TableMetadata>,
    has_static_row: bool,
    /// The columns as they are written in the update.
    columns: Vec<u8>,
    header: Header,
}

impl<'a> MutationDecoder<'a> {
    /// A decoder. `table_of` finds tables by id and must always give the same answer.
    pub fn new(table_of: &'a dyn Fn(TableId) -> Option<Arc<TableMetadata>>) -> Self {
        Self { table_of, last: None }
    }

    /// Decodes one mutation. See [`decode_mutation`].
    pub fn decode(&mut self, buffer: &Bytes) -> Result<Option<Mutation>, CodecError> {
        self.decode_next(buffer).map(|(mutation, _)| mutation)
    }

    /// Decodes the first of several mutations that follow one another, and gives the bytes that it
    /// took. After an update of a table that is gone nothing that follows can be found: all bytes
    /// are taken.
    pub fn decode_next(&mut self, buffer: &Bytes) -> Result<(Option<Mutation>, usize), CodecError> {
        let mut cursor = Cursor::new(buffer);
        let count = cursor.uvint()?;
        if count == 0 || count > UPDATES_MAX {
            return invalid(format!("a mutation of {count} updates"));
        }
        let mut updates: Vec<PartitionUpdate> = Vec::new();
        let mut offset = cursor.position();
        for _ in 0..count {
            let (update, next) = self.update(buffer, offset)?;
            offset = next;
            match update {
                Some(update) => updates.push(update),
                None => break,
            }
        }
        let Some(first) = updates.first() else { return Ok((None, offset)) };
        Ok((Some(Mutation { key: first.key.clone(), updates }), offset))
    }

    fn table(&self, id: TableId) -> Option<Arc<TableMetadata>> {
        match &self.last {
            Some(last) if last.table.id == id => Some(Arc::clone(&last.table)),
            _ => (self.table_of)(id),
        }
    }

    fn update(&mut self, buffer: &Bytes, offset: usize) -> Result<(Option<PartitionUpdate>, usize), CodecError> {
        let rest = buffer.get(offset..).ok_or(CodecError::Truncated)?;
        let mut cursor = Cursor::new(rest);
        let id: [u8; 16] = cursor.take(16)?.try_into().map_err(|_| CodecError::Truncated)?;
        let Some(table) = self.table(TableId(id)) else { return Ok((None, buffer.len())) };
        let key = cursor.vbytes()?;
        // a longer key fits no file: it could be logged, but never flushed
        if key.len() > KEY_BYTES_MAX {
            return invalid(format!("a partition key of {} bytes", key.len()));
        }
        let key = table.decorate(Bytes::copy_from_slice(key));
        let flags = cursor.u8()?;
        let mut update = PartitionUpdate::new(table, key);
        if flags & IS_EMPTY != 0 {
            return Ok((Some(update), offset + cursor.position()));
        }
        let stats = get_stats(&mut cursor)?;
        let header = self.header(&mut cursor, &update.table, flags & HAS_STATIC_ROW != 0, stats)?;
        if flags & HAS_PARTITION_DELETION != 0 {
            update.deletion = get_deletion_delta(&mut cursor, header)?;
        }
        let mut offset = offset + cursor.position();
        if flags & HAS_STATIC_ROW != 0 {
            let (row, next) = decode_static_row(buffer, offset, header, false)?;
            update.static_row = (!row.is_empty()).then_some(row);
            offset = next;
        }
        if flags & HAS_ROW_ESTIMATE != 0 {
            let mut cursor = Cursor::new(buffer.get(offset..).ok_or(CodecError::Truncated)?);
            cursor.uvint()?;
            offset += cursor.position();
        }
        let offset = decode_unfiltereds(buffer, offset, header, &mut update)?;
        Ok((Some(update), offset))
    }

    /// Reads the columns of an update and makes the header that it was written against.
    fn header(
        &mut self,
        cursor: &mut Cursor<'_>,
        table: &Arc<TableMetadata>,
        has_static_row: bool,
        stats: EncodingStats,
    ) -> Result<&Header, CodecError> {
        let written = cursor.rest();
        // a list of columns delimits itself: an update that begins with the bytes of the last list
        // has the same columns
        let is_same = |last: &UpdateForm| {
            last.table.id == table.id && last.has_static_row == has_static_row && written.starts_with(&last.columns)
        };
        let form = match self.last.take().filter(is_same) {
            Some(mut last) => {
                cursor.skip(last.columns.len())?;
                last.header.stats = stats;
                last
            }
            None => {
                let before = cursor.position();
                let statics = if has_static_row { get_columns(cursor, table, true)? } else { Vec::new() };
                let regulars = get_columns(cursor, table, false)?;
                let columns = written.get(..cursor.position() - before).unwrap_or_default().to_vec();
                let clustering = table.clustering.iter().map(|column| column.ty.clone()).collect();
                let header = Header::new(stats, clustering, statics, regulars);
                UpdateForm { table: Arc::clone(table), has_static_row, columns, header }
            }
        };
        Ok(&self.last.insert(form).header)
    }
}

fn decode_unfiltereds(
    buffer: &Bytes,
    mut offset: usize,
    header: &Header,
    update: &mut PartitionUpdate,
) -> Result<usize, CodecError> {
    let mut open: Option<(crate::ClusteringPrefix, DeletionTime)> = None;
    loop {
        let (decoded, next) = decode_unfiltered(buffer, offset, header, false)?;
        offset = next;
        match decoded {
            Decoded::EndOfPartition => return Ok(offset),
            Decoded::Row(row) if row.is_empty() => {}
            Decoded::Row(row) => update.rows.push(row),
            Decoded::Marker(marker) => {
                if marker.close.is_some() {
                    let Some((start, deletion)) = open.take() else {
                        return invalid("a range tombstone ends that did not start");
                    };
                    let end = crate::range_tombstones::as_end(&marker.position);
                    update.range_deletions.push((Slice { start, end }, deletion));
                }
                if let Some(deletion) = marker.open {
                    open = Some((crate::range_tombstones::as_start(&marker.position), deletion));
                }
            }
        }
    }
}

/// Reads base values that [`put_stats`] wrote.
pub fn get_stats(cursor: &mut Cursor<'_>) -> Result<EncodingStats, CodecError> {
    Ok(EncodingStats {
        min_timestamp: TIMESTAMP_EPOCH.wrapping_add(cursor.uvint()? as i64),
        min_local_deletion_time: DELETION_TIME_EPOCH.wrapping_add(cursor.uvint()? as u32),
        min_ttl: cursor.uvint()? as u32,
    })
}

/// Reads columns by name. A column that the table has dropped is decoded with its former type; its
/// cells are kept where they are newer than the drop.
pub(super) fn get_columns(
    cursor: &mut Cursor<'_>,
    table: &TableMetadata,
    is_static: bool,
) -> Result<Vec<CodecColumn>, CodecError> {
    let count = cursor.uvint()?;
    let known = table.regulars.len() + table.statics.len() + table.dropped.len();
    if count > known as u64 {
        let name = format!("{}.{}", table.keyspace, table.name);
        return Err(CodecError::UnknownColumn(format!("{count} columns of {name}, which has {known}")));
    }
    let mut columns = Vec::with_capacity(count as usize);
    for _ in 0..count {
        let name = cursor.vbytes()?;
        let Ok(name) = std::str::from_utf8(name) else { return invalid("a column name that is not text") };
        let column = match (table.column_by_name(name), table.dropped.get(name)) {
            (Some(column), dropped) if column.is_static() == is_static => CodecColumn {
                dropped_time: dropped.map_or(crate::NO_TIMESTAMP, |dropped| dropped.dropped_time),
                ..CodecColumn::of(column)
            },
            (_, Some(dropped)) => {
                let is_of_kind = (dropped.kind == ColumnKind::Static) == is_static;
                CodecColumn::of_dropped(table.dropped_column_id(name).filter(|_| is_of_kind), dropped)
            }
            _ => {
                let what = format!("{}.{} has no column {name}", table.keyspace, table.name);
                return Err(CodecError::UnknownColumn(what));
            }
        };
        columns.push(column);
    }
    Ok(columns)
}
