//! Places in the log, and the parts of tables whose records lie there.

use schema::TableId;

/// The part of a table that is flushed as one: a shard's memtable.
pub type DirtyKey = (TableId, u16);

/// A place in the log: the end of an entry (Cassandra's `CommitLogPosition`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogPosition {
    /// The segment's id.
    pub segment: u64,
    /// Offset in the segment's file.
    pub offset: u32,
}

impl LogPosition {
    /// The position before all records.
    pub const NONE: LogPosition = LogPosition { segment: 0, offset: 0 };
}

/// The positions of records that were appended together: each lies between these two, both
/// included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// A position behind all earlier records and before these.
    pub first: LogPosition,
    /// The position of the last record.
    pub last: LogPosition,
}

impl Appended {
    /// The place of one record.
    pub fn one(position: LogPosition) -> Self {
        Self { first: position, last: position }
    }
}
