//! Cassandra's data model: partitions, rows, cells, deletions, their reconciliation and their one
//! serial form.
//!
//! A read is a [`PartitionStream`]: partitions in token order, each a head (key, deletion, static
//! row) and behind it its unfiltereds (rows and range tombstone markers) in clustering order.
//! Memtables, SSTables and merges of them all have this one shape. A write is a [`Mutation`]: a
//! [`PartitionUpdate`] of one partition for each table. This crate does no I/O and does not know
//! where bytes come from.

pub mod build;
pub mod cell;
pub mod clustering;
pub mod codec;
pub mod command;
pub mod counter;
pub mod dead;
pub mod deletion;
pub mod error;
pub mod filter;
pub mod garbage_skipping;
pub mod heap_size;
pub mod limits;
pub mod live;
pub mod merge;
pub mod old_cells;
pub mod purge;
pub mod range_tombstones;
pub mod replicas;
pub mod report;
pub mod row;
mod scanned_counts;
pub mod selection;
pub mod stream;
pub mod tombstone_map;
pub mod unfiltered;
pub mod update;
pub mod views;

pub use build::{Build, BuildError, BuildResult};
pub use cell::{Cell, CellPath, INVALID_DELETION_TIME, NO_DELETION_TIME, NO_TIMESTAMP, NO_TTL};
pub use clustering::{Bound, ClusteringPrefix, ClusteringValues, PrefixKind, Slice, Slices};
pub use command::{
    ColumnFilter, DataLimits, IndexSearch, PartitionRange, ReadCommand, ReadContext, ReadMode, ReadStats,
    SearchOperator,
};
pub use deletion::DeletionTime;
pub use error::{Corruption, ReadError};
pub use filter::{Expression, RowFilter, WantedRows};
pub use limits::ReadLimits;
pub use live::{LivePartition, LiveRow, LiveRows};
pub use merge::MergeStream;
pub use range_tombstones::RangeTombstoneList;
pub use row::{ColumnData, ComplexColumn, Liveness, Row};
pub use selection::{ColumnSelection, Columns};
pub use stream::{PartitionHead, PartitionStream, Shown};
pub use unfiltered::{MaybeEncoded, RangeTombstoneMarker, Unfiltered};
pub use update::{Mutation, PartitionUpdate, Updates};
