//! Cells: one value with its timestamp, its time to live and the time of its end. Agrees with
//! `org.apache.cassandra.db.rows.Cell` and, for reconciliation, `Cells.reconcile`.

use std::cmp::Ordering;

use bytes::Bytes;
use schema::ColumnId;

/// The timestamp that means "there is none".
pub const NO_TIMESTAMP: i64 = i64::MIN;
/// The time to live that means "does not expire".
pub const NO_TTL: u32 = 0;
/// The local deletion time that means "neither deleted nor expiring". Local deletion times are
/// seconds since 1970 as u32, valid until 2106.
pub const NO_DELETION_TIME: u32 = u32::MAX;
/// Takes the place of a local deletion time that cannot be right: one that overflowed in a format
/// before `oa`. Never written by us; it lies in the far future.
pub const INVALID_DELETION_TIME: u32 = u32::MAX - 1;

/// Names an element of a complex column: the time-UUID of a list element, the set element, the map
/// key, or the u16 number of a field.
pub type CellPath = Bytes;

/// The cell of a simple column, or one element of a complex column.
///
/// A live cell has neither a TTL nor a local deletion time. An expiring cell has both. A tombstone
/// has a local deletion time only, and its value is empty.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cell {
    /// The column that it belongs to.
    pub column: ColumnId,
    /// Time of the write, microseconds.
    pub timestamp: i64,
    /// Seconds to live, as written; NO_TTL if the cell does not expire.
    pub ttl: u32,
    /// Time at which it expires or was deleted, seconds; NO_DELETION_TIME for a live cell that does
    /// not expire.
    pub local_deletion_time: u32,
    /// The element of a complex column; None for a simple column.
    pub path: Option<CellPath>,
    /// The serialized value; empty for tombstones.
    pub value: Bytes,
}

impl Cell {
    /// A live cell that does not expire.
    pub fn live(column: ColumnId, timestamp: i64, value: Bytes) -> Self {
        Self { column, timestamp, ttl: NO_TTL, local_deletion_time: NO_DELETION_TIME, path: None, value }
    }

    /// A cell tombstone.
    pub fn tombstone(column: ColumnId, timestamp: i64, local_deletion_time: u32) -> Self {
        Self { column, timestamp, ttl: NO_TTL, local_deletion_time, path: None, value: Bytes::new() }
    }

    /// The same cell with a path.
    pub fn at(mut self, path: CellPath) -> Self {
        self.path = Some(path);
        self
    }

    /// Whether the cell was written as a deletion.
    #[inline]
    pub fn is_tombstone(&self) -> bool {
        self.local_deletion_time != NO_DELETION_TIME && self.ttl == NO_TTL
    }

    /// Whether the cell was written with a TTL.
    #[inline]
    pub fn is_expiring(&self) -> bool {
        self.ttl != NO_TTL
    }

    /// Whether a read at `now` (seconds) sees the cell.
    #[inline]
    pub fn is_live(&self, now: u32) -> bool {
        self.local_deletion_time == NO_DELETION_TIME || (self.ttl != NO_TTL && now < self.local_deletion_time)
    }

    /// Which of two cells of one column and path stays: `Greater` if `self` does, `Equal` if they
    /// are the same.
    pub fn reconcile(&self, other: &Self) -> Ordering {
        let by_timestamp = self.timestamp.cmp(&other.timestamp);
        if by_timestamp != Ordering::Equal {
            return by_timestamp;
        }
        let ends = |cell: &Self| cell.local_deletion_time != NO_DELETION_TIME;
        if ends(self) != ends(other) {
            return ends(self).cmp(&ends(other));
        }
        if ends(self) {
            if self.is_tombstone() != other.is_tombstone() {
                return self.is_tombstone().cmp(&other.is_tombstone());
            }
            let by_end = self.local_deletion_time.cmp(&other.local_deletion_time);
            if by_end != Ordering::Equal {
                return by_end;
            }
            let by_ttl = other.ttl.cmp(&self.ttl);
            if by_ttl != Ordering::Equal {
                return by_ttl;
            }
        }
        self.value.cmp(&other.value)
    }
}
