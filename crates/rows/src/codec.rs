//! The one serial form of rows and markers: in Data.db, in the commit log, and in messages between
//! nodes.
//!
//! A row or marker is written against a [`Header`]: the columns that may occur, in file order, and
//! base values ([`EncodingStats`]) from which timestamps, deletion times and TTLs are counted,
//! modulo 2^64 or 2^32. On disk each unfiltered also carries its own size and that of the one
//! before it ([`Framing::Disk`]).
//!
//! The grammar and the flags are in docs/formats/sstable-data.md. Agrees with
//! `org.apache.cassandra.db.rows.UnfilteredSerializer`, `Cell.Serializer`, `Columns.Serializer`,
//! `ClusteringPrefix.Serializer`.
//!
//! Bytes are not trusted: decoding goes through a checked cursor, and never allocates by a length
//! that was read before the bytes are known to be there.

mod decode;
mod encode;
mod encoded;
mod mutation;
mod peek;
#[cfg(test)]
mod tests;
mod tombstone;

use std::fmt;

use schema::{ColumnId, ColumnKind, ColumnMetadata, DroppedColumn, TableMetadata};
use stdx::CursorError;
use types::CqlType;

use crate::cell::{NO_DELETION_TIME, NO_TIMESTAMP, NO_TTL};
use crate::{Cell, DeletionTime, Liveness, Row};

pub use decode::{
    Decoded, decode_static_row, decode_unfiltered, get_clustering_of_lengths, get_clustering_values,
    get_deletion_delta, get_deletion_time, get_subset,
};
pub use encode::{
    Present, encode_marker, encode_row, present_columns, put_clustering_values, put_deletion_delta, put_deletion_time,
    put_end_of_partition, signed_seconds,
};
pub use encoded::{EncodedCell, EncodedRow, RowFacts, RowVisitor, ShowOutcome, get_encoded_row, show_encoded_row};
pub use mutation::{
    MutationDecoder, MutationHead, decode_mutation, decode_update, encode_mutation, encode_update, get_stats,
    peek_mutation, put_stats,
};
pub use peek::{FoundStarts, Peeked, find_starts, pass_rows_before, peek_previous_size, peek_unfiltered};
pub use tombstone::{Deleted, PeekedTombstone, deletion_of_row, peek_tombstone};

/// 2015-09-22T00:00:00Z in microseconds: the base of timestamps in a header without data.
pub const TIMESTAMP_EPOCH: i64 = 1_442_880_000_000_000;
/// The same moment in seconds: the base of local deletion times in a header without data.
pub const DELETION_TIME_EPOCH: u32 = 1_442_880_000;

const END_OF_PARTITION: u8 = 0x01;
const IS_MARKER: u8 = 0x02;
const HAS_TIMESTAMP: u8 = 0x04;
const HAS_TTL: u8 = 0x08;
const HAS_DELETION: u8 = 0x10;
const HAS_ALL_COLUMNS: u8 = 0x20;
const HAS_COMPLEX_DELETION: u8 = 0x40;
const EXTENSION: u8 = 0x80;
const IS_STATIC: u8 = 0x01;

const CELL_TOMBSTONE: u8 = 0x01;
const CELL_EXPIRING: u8 = 0x02;
const CELL_EMPTY_VALUE: u8 = 0x04;
const CELL_ROW_TIMESTAMP: u8 = 0x08;
const CELL_ROW_TTL: u8 = 0x10;

/// A subset of this many columns or more is written as indexes instead of a bitmap.
const LARGE_SUBSET: usize = 64;

// each flag is a bit of its own: of a row they fill the byte
const _: () = {
    let of_rows = HAS_TIMESTAMP ^ HAS_TTL ^ HAS_DELETION ^ HAS_ALL_COLUMNS ^ HAS_COMPLEX_DELETION ^ EXTENSION;
    assert!(of_rows ^ END_OF_PARTITION ^ IS_MARKER == u8::MAX);
    let of_cells = CELL_TOMBSTONE ^ CELL_EXPIRING ^ CELL_EMPTY_VALUE ^ CELL_ROW_TIMESTAMP ^ CELL_ROW_TTL;
    assert!(of_cells == (1 << 5) - 1);
};
// a subset that is not large has a bit for each column
const _: () = assert!(LARGE_SUBSET <= u64::BITS as usize);
const _: () = assert!(TIMESTAMP_EPOCH == DELETION_TIME_EPOCH as i64 * 1_000_000);

/// How deletion times of partitions and open ranges are written, and which local deletion times
/// exist.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum DeletionTimeForm {
    /// The form since `oa`: one byte 80 if live, otherwise timestamp and unsigned seconds. A
    /// negative timestamp has no form.
    #[default]
    Unsigned,
    /// The form before `oa`: `i32` seconds, then the timestamp; live is the greatest value of the
    /// first and the least of the second. Seconds that are negative when read are invalid.
    Signed,
}

impl DeletionTimeForm {
    /// Whether a deletion can be written in this form.
    pub fn can_hold(self, deletion: &DeletionTime) -> bool {
        self == Self::Signed || deletion.is_live() || deletion.marked_for_delete_at >= 0
    }
}

/// Smallest values of a set of rows, from which deltas are counted. They may be smaller than
/// needed; deltas then are longer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EncodingStats {
    /// Base of timestamps, microseconds.
    pub min_timestamp: i64,
    /// Base of local deletion times, seconds.
    pub min_local_deletion_time: u32,
    /// Base of TTLs, seconds.
    pub min_ttl: u32,
}

impl Default for EncodingStats {
    fn default() -> Self {
        Self { min_timestamp: TIMESTAMP_EPOCH, min_local_deletion_time: DELETION_TIME_EPOCH, min_ttl: 0 }
    }
}

/// Finds the [`EncodingStats`] of the rows that it is shown.
#[derive(Clone, Copy, Debug)]
pub struct EncodingStatsCollector {
    min_timestamp: i64,
    min_local_deletion_time: u32,
    min_ttl: u32,
}

impl Default for EncodingStatsCollector {
    fn default() -> Self {
        Self { min_timestamp: i64::MAX, min_local_deletion_time: NO_DELETION_TIME, min_ttl: u32::MAX }
    }
}

impl EncodingStatsCollector {
    /// Takes in a deletion of a partition, range, row or collection.
    pub fn deletion(&mut self, deletion: &DeletionTime) {
        if !deletion.is_live() {
            self.min_timestamp = self.min_timestamp.min(deletion.marked_for_delete_at);
            self.min_local_deletion_time = self.min_local_deletion_time.min(deletion.local_deletion_time);
        }
    }

    /// Takes in the liveness of a row.
    pub fn liveness(&mut self, liveness: &Liveness) {
        if !liveness.is_empty() {
            self.timed(liveness.timestamp, liveness.local_expiration_time, liveness.ttl);
        }
    }

    /// Takes in a cell.
    pub fn cell(&mut self, cell: &Cell) {
        self.timed(cell.timestamp, cell.local_deletion_time, cell.ttl);
    }

    /// Takes in a whole row.
    pub fn row(&mut self, row: &Row) {
        self.liveness(&row.liveness);
        self.deletion(&row.deletion);
        for data in &row.columns {
            match data {
                crate::ColumnData::Simple(cell) => self.cell(cell),
                crate::ColumnData::Complex(complex) => {
                    self.deletion(&complex.deletion);
                    complex.cells.iter().for_each(|cell| self.cell(cell));
                }
            }
        }
    }

    fn timed(&mut self, timestamp: i64, local_deletion_time: u32, ttl: u32) {
        self.min_timestamp = self.min_timestamp.min(timestamp);
        self.min_local_deletion_time = self.min_local_deletion_time.min(local_deletion_time);
        if ttl != NO_TTL {
            self.min_ttl = self.min_ttl.min(ttl);
        }
    }

    /// Takes in everything that another collector has seen.
    pub fn merge(&mut self, other: &Self) {
        self.min_timestamp = self.min_timestamp.min(other.min_timestamp);
        self.min_local_deletion_time = self.min_local_deletion_time.min(other.min_local_deletion_time);
        self.min_ttl = self.min_ttl.min(other.min_ttl);
    }

    /// The smallest timestamp so far; i64::MAX if there was none.
    pub fn min_timestamp(&self) -> i64 {
        self.min_timestamp
    }

    /// The smallest values; the epochs if nothing was seen.
    pub fn finish(&self) -> EncodingStats {
        let none = EncodingStats::default();
        EncodingStats {
            min_timestamp: if self.min_timestamp == i64::MAX { none.min_timestamp } else { self.min_timestamp },
            min_local_deletion_time: if self.min_local_deletion_time == NO_DELETION_TIME {
                none.min_local_deletion_time
            } else {
                self.min_local_deletion_time
            },
            min_ttl: if self.min_ttl == u32::MAX { 0 } else { self.min_ttl },
        }
    }
}

/// A column of a header.
#[derive(Clone, PartialEq, Debug)]
pub struct CodecColumn {
    /// The column's handle in rows. None: the cells are decoded and passed over, because the schema
    /// does not have the column, or because a read does not see it.
    pub id: Option<ColumnId>,
    /// The name.
    pub name: String,
    /// The type, as in the header.
    pub ty: CqlType,
    /// Whether it is stored cell by cell.
    pub complex: bool,
    /// The length of its values if they are written without one; None: lengths are written.
    pub fixed_length: Option<usize>,
    /// Cells with timestamps up to this one are ignored; NO_TIMESTAMP: none.
    pub dropped_time: i64,
}

impl CodecColumn {
    /// A column as the schema has it.
    pub fn of(column: &ColumnMetadata) -> Self {
        Self {
            id: Some(column.id),
            name: column.name.clone(),
            ty: column.ty.clone(),
            complex: column.is_complex(),
            fixed_length: column.ty.fixed_length(),
            dropped_time: NO_TIMESTAMP,
        }
    }

    /// A dropped column, whose cells are kept where they are newer than the drop: under `id`, if
    /// there is one.
    pub fn of_dropped(id: Option<ColumnId>, column: &DroppedColumn) -> Self {
        Self {
            id,
            name: column.name.clone(),
            ty: column.ty.clone(),
            complex: column.ty.is_multi_cell(),
            fixed_length: column.ty.fixed_length(),
            dropped_time: column.dropped_time,
        }
    }
}

/// The columns and base values against which a set of rows is written.
#[derive(Clone, PartialEq, Debug)]
pub struct Header {
    /// The values from which deltas are counted.
    pub stats: EncodingStats,
    /// The types of the clustering columns. Fixed when the header is made, because lengths are
    /// derived from them.
    pub clustering: Vec<CqlType>,
    /// The static columns that may occur: simple ones by name, then complex ones by name.
    pub statics: Vec<CodecColumn>,
    /// The regular columns that may occur, in the same order.
    pub regulars: Vec<CodecColumn>,
    /// How local deletion times are interpreted when they are read.
    pub deletion_times: DeletionTimeForm,
    /// For each column id one more than its index in `statics` or `regulars`; 0: the column is not
    /// in the header.
    index_of: Vec<u16>,
    /// For each clustering column the length of its values, if they are written without one.
    clustering_lengths: Vec<Option<usize>>,
    /// Bytes of the clustering of a row whose values are all present and not empty; None: the
    /// number differs from row to row, or there are several runs of values.
    clustering_width: Option<usize>,
}

impl Header {
    /// A header with these columns, which must be in file order.
    pub fn new(
        stats: EncodingStats,
        clustering: Vec<CqlType>,
        statics: Vec<CodecColumn>,
        regulars: Vec<CodecColumn>,
    ) -> Self {
        let mut index_of = Vec::new();
        for list in [&statics, &regulars] {
            for (index, column) in list.iter().enumerate() {
                let Some(ColumnId(id)) = column.id else { continue };
                let id = usize::from(id);
                if index_of.len() <= id {
                    index_of.resize(id + 1, 0);
                }
                index_of[id] = u16::try_from(index + 1).unwrap_or(0);
            }
        }
        let clustering_lengths: Vec<_> = clustering.iter().map(CqlType::fixed_length).collect();
        let has_one_run = (1..=32).contains(&clustering.len());
        let width = || clustering_lengths.iter().try_fold(0usize, |sum, length| sum.checked_add((*length)?));
        Self {
            clustering_width: if has_one_run { width() } else { None },
            stats,
            clustering,
            statics,
            regulars,
            deletion_times: DeletionTimeForm::default(),
            index_of,
            clustering_lengths,
        }
    }

    /// A header with all columns of a table.
    pub fn for_table(table: &TableMetadata, stats: EncodingStats) -> Self {
        Self::new(
            stats,
            table.clustering.iter().map(|column| column.ty.clone()).collect(),
            table.statics.iter().map(CodecColumn::of).collect(),
            table.regulars.iter().map(CodecColumn::of).collect(),
        )
    }

    /// A header with all columns of a table, also with those that were dropped and not added again.
    /// For rows in memory that may be written after the drop: by a request that began before it, or
    /// from the commit log.
    pub fn with_dropped(table: &TableMetadata, stats: EncodingStats) -> Self {
        let of = |is_static: bool| {
            let dropped = table.dropped_columns();
            let dropped = dropped.filter(move |(_, column)| (column.kind == ColumnKind::Static) == is_static);
            dropped.map(|(id, column)| CodecColumn::of_dropped(Some(id), column)).collect()
        };
        Self::for_table(table, stats).widened(of(true), of(false))
    }

    /// The header with more columns; those that it has, by name, are left out of the additional.
    pub fn widened(self, statics: Vec<CodecColumn>, regulars: Vec<CodecColumn>) -> Self {
        if statics.is_empty() && regulars.is_empty() {
            return self;
        }
        let joined = |mut columns: Vec<CodecColumn>, more: Vec<CodecColumn>| {
            for column in more {
                if columns.iter().any(|known| known.name == column.name) {
                    continue;
                }
                let place = (column.complex, column.name.as_str());
                let before = |known: &CodecColumn| schema::column_precedes((known.complex, &known.name), place);
                let index = columns.partition_point(before);
                columns.insert(index, column);
            }
            debug_assert!(
                columns.is_sorted_by(|a, b| schema::column_precedes((a.complex, &a.name), (b.complex, &b.name))),
                "columns of a header stand in file order"
            );
            columns
        };
        let (statics, regulars) = (joined(self.statics, statics), joined(self.regulars, regulars));
        Self { deletion_times: self.deletion_times, ..Self::new(self.stats, self.clustering, statics, regulars) }
    }

    /// The header with only those columns for which `keeps` is true known by their ids: cells of
    /// the others are decoded and passed over. None: that is all of them.
    pub fn passing_over(&self, keeps: impl Fn(&CodecColumn, ColumnId) -> bool) -> Option<Self> {
        let passes = |column: &CodecColumn| column.id.is_some_and(|id| !keeps(column, id));
        if !self.statics.iter().chain(&self.regulars).any(passes) {
            return None;
        }
        let known = |columns: &[CodecColumn]| {
            let column =
                |column: &CodecColumn| CodecColumn { id: column.id.filter(|id| keeps(column, *id)), ..column.clone() };
            columns.iter().map(column).collect()
        };
        let (statics, regulars) = (known(&self.statics), known(&self.regulars));
        let header = Self::new(self.stats, self.clustering.clone(), statics, regulars);
        Some(Self { deletion_times: self.deletion_times, ..header })
    }

    /// Whether every cell that was written is given: the schema has all columns, and none of them
    /// was dropped before it was added again. Otherwise rows that were written may come out empty.
    pub fn gives_all(&self) -> bool {
        let gives = |column: &CodecColumn| column.id.is_some() && column.dropped_time == NO_TIMESTAMP;
        self.statics.iter().chain(&self.regulars).all(gives)
    }

    /// A column that the table has not and never had: its cells are decoded and passed over.
    pub fn unknown_column(&self) -> Option<&CodecColumn> {
        let is_unknown = |column: &&CodecColumn| column.id.is_none() && column.dropped_time == NO_TIMESTAMP;
        self.statics.iter().chain(&self.regulars).find(is_unknown)
    }

    /// The columns that may occur in static rows, or in the others.
    pub fn columns(&self, is_static: bool) -> &[CodecColumn] {
        if is_static { &self.statics } else { &self.regulars }
    }

    fn index(&self, id: ColumnId) -> Option<usize> {
        match self.index_of.get(usize::from(id.0)) {
            None | Some(0) => None,
            Some(index) => Some(usize::from(*index) - 1),
        }
    }
}

/// The bytes around a row or marker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Framing {
    /// In Data.db: the size of the unfiltered and of the one before it.
    Disk {
        /// Distance to the first byte of the previous unfiltered; for the first one, to the
        /// partition's start.
        previous_size: u64,
    },
    /// In a mutation: nothing.
    Message,
}

/// Why bytes could not be decoded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CodecError {
    /// More bytes are needed.
    Truncated,
    /// The bytes cannot be right.
    Invalid(String),
    /// The bytes name a column that the table does not have: they are of a newer schema, or wrong.
    UnknownColumn(String),
}

impl From<CursorError> for CodecError {
    fn from(error: CursorError) -> Self {
        match error {
            CursorError::Truncated { .. } => Self::Truncated,
            other => Self::Invalid(other.to_string()),
        }
    }
}

impl fmt::Display for CodecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated => write!(f, "the bytes end in the middle"),
            Self::Invalid(what) | Self::UnknownColumn(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for CodecError {}

fn invalid<T>(what: impl Into<String>) -> Result<T, CodecError> {
    Err(CodecError::Invalid(what.into()))
}
