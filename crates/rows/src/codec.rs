//! The one serial form of rows and markers: in Data.db, in the commit log, between nodes.
//!
//! A row or marker is written against a [`Header`]: the columns that may occur, in file order, and base values
//! ([`EncodingStats`]) from which timestamps, deletion times and TTLs are counted, modulo 2^64 or 2^32.
//! On disk each unfiltered also carries its size and that of the one before it ([`Framing::Disk`]).
//! Grammar and flags: docs/formats, "Data.db"; agrees with `org.apache.cassandra.db.rows.UnfilteredSerializer`,
//! `Cell.Serializer`, `Columns.Serializer`, `ClusteringPrefix.Serializer`.
//!
//! Bytes are not trusted: decoding goes through a checked cursor and never allocates by a length that was read
//! before the bytes are known to be there.

mod decode;
mod encode;
mod encoded;
mod mutation;
mod peek;
#[cfg(test)]
mod tests;
mod tombstone;

use std::fmt;

use schema::{ColumnId, ColumnMetadata, TableMetadata};
use stdx::CursorError;
use types::CqlType;

use crate::cell::{NO_DELETION_TIME, NO_TIMESTAMP, NO_TTL};
use crate::{Cell, DeletionTime, Liveness, Row};

pub use decode::{Decoded, decode_static_row, decode_unfiltered, get_clustering_values, get_deletion_time};
pub use encode::{
    encode_marker, encode_row, put_clustering_values, put_deletion_time, put_end_of_partition, signed_seconds,
};
pub use encoded::{EncodedRow, RowFacts, get_encoded_row};
pub use mutation::{MutationDecoder, MutationHead, decode_mutation, encode_mutation, peek_mutation};
pub use peek::{FoundStarts, Peeked, find_starts, pass_rows_before, peek_previous_size, peek_unfiltered};
pub use tombstone::{Deleted, PeekedTombstone, deletion_of_row, peek_tombstone};

/// 2015-09-22T00:00:00Z in microseconds: base of timestamps in headers.
pub const TIMESTAMP_EPOCH: i64 = 1_442_880_000_000_000;
/// The same in seconds: base of local deletion times.
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

/// From so many columns on a subset is written as indexes instead of a bitmap.
const LARGE_SUBSET: usize = 64;

/// How deletion times of partitions and open ranges are written, and what local deletion times can be.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum DeletionTimeForm {
    /// From `oa` on: one byte 80 when live, else timestamp, then unsigned seconds. A negative timestamp has no form.
    #[default]
    Unsigned,
    /// Before: `i32` seconds, then timestamp; live is the greatest value of the one and the least of the other. Seconds that come
    /// out negative are invalid.
    Signed,
}

impl DeletionTimeForm {
    /// Whether a deletion can be written.
    pub fn can_hold(self, deletion: &DeletionTime) -> bool {
        self == Self::Signed || deletion.is_live() || deletion.marked_for_delete_at >= 0
    }
}

/// Smallest values of a set of rows: what deltas are counted from. Need not be exact.
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

/// Finds the [`EncodingStats`] of what it is shown.
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
    /// A deletion of any scope.
    pub fn deletion(&mut self, deletion: &DeletionTime) {
        if !deletion.is_live() {
            self.min_timestamp = self.min_timestamp.min(deletion.marked_for_delete_at);
            self.min_local_deletion_time = self.min_local_deletion_time.min(deletion.local_deletion_time);
        }
    }

    /// A row's liveness.
    pub fn liveness(&mut self, liveness: &Liveness) {
        if !liveness.is_empty() {
            self.timed(liveness.timestamp, liveness.local_expiration_time, liveness.ttl);
        }
    }

    /// A cell.
    pub fn cell(&mut self, cell: &Cell) {
        self.timed(cell.timestamp, cell.local_deletion_time, cell.ttl);
    }

    /// A whole row.
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

    /// Takes in what another collector saw.
    pub fn merge(&mut self, other: &Self) {
        self.min_timestamp = self.min_timestamp.min(other.min_timestamp);
        self.min_local_deletion_time = self.min_local_deletion_time.min(other.min_local_deletion_time);
        self.min_ttl = self.min_ttl.min(other.min_ttl);
    }

    /// Smallest timestamp seen; i64::MAX when none was.
    pub fn min_timestamp(&self) -> i64 {
        self.min_timestamp
    }

    /// What was found; the epochs where nothing was.
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
    /// Its handle in rows; None when the schema does not have it: its cells are decoded and dropped.
    pub id: Option<ColumnId>,
    /// Its name.
    pub name: String,
    /// Its type as in the header.
    pub ty: CqlType,
    /// Stored cell by cell.
    pub complex: bool,
    /// Length of values that are written bare.
    pub fixed_length: Option<usize>,
    /// Cells with a timestamp up to this are ignored; NO_TIMESTAMP: none.
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
}

/// What a set of rows was, or is to be, written against.
#[derive(Clone, PartialEq, Debug)]
pub struct Header {
    /// Bases of the deltas.
    pub stats: EncodingStats,
    /// Types of the clustering columns; given once, what is derived of them is kept.
    pub clustering: Vec<CqlType>,
    /// Static columns that may occur, simple by name, then complex by name.
    pub statics: Vec<CodecColumn>,
    /// Regular columns that may occur, in the same order.
    pub regulars: Vec<CodecColumn>,
    /// How local deletion times are understood when they are read.
    pub deletion_times: DeletionTimeForm,
    /// For each column id: 1 + its index in `statics` or `regulars`; 0: not in the header.
    index_of: Vec<u16>,
    /// For each clustering column the length of values that are written bare.
    clustering_lengths: Vec<Option<usize>>,
    /// Bytes of a clustering of which no value is null or empty, where they are as many for each row and stand in one run.
    clustering_width: Option<usize>,
}

impl Header {
    /// With these columns, which must be in file order.
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

    /// All columns of a table.
    pub fn for_table(table: &TableMetadata, stats: EncodingStats) -> Self {
        Self::new(
            stats,
            table.clustering.iter().map(|column| column.ty.clone()).collect(),
            table.statics.iter().map(CodecColumn::of).collect(),
            table.regulars.iter().map(CodecColumn::of).collect(),
        )
    }

    fn columns(&self, is_static: bool) -> &[CodecColumn] {
        if is_static { &self.statics } else { &self.regulars }
    }

    fn index(&self, id: ColumnId) -> Option<usize> {
        match self.index_of.get(usize::from(id.0)) {
            None | Some(0) => None,
            Some(index) => Some(usize::from(*index) - 1),
        }
    }
}

/// What surrounds a row or marker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Framing {
    /// In Data.db: with its size and that of the unfiltered before it.
    Disk {
        /// Distance to the first byte of the previous unfiltered, or from the partition's start for the first.
        previous_size: u64,
    },
    /// In a mutation: neither.
    Message,
}

/// Why bytes could not be decoded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CodecError {
    /// More bytes are needed.
    Truncated,
    /// They cannot be right.
    Invalid(String),
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
            Self::Invalid(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for CodecError {}

fn invalid<T>(what: impl Into<String>) -> Result<T, CodecError> {
    Err(CodecError::Invalid(what.into()))
}
