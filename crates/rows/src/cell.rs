//! Cells: one value with its timestamp, its TTL and its end. Agrees with `org.apache.cassandra.db.rows.Cell` and, for
//! reconciliation, `Cells.reconcile`.

use std::cmp::Ordering;

use bytes::Bytes;
use schema::ColumnId;

/// "There is no timestamp".
pub const NO_TIMESTAMP: i64 = i64::MIN;
/// "Does not expire".
pub const NO_TTL: u32 = 0;
/// "Neither deleted nor expiring". Local deletion times are seconds as u32, valid to 2106.
pub const NO_DELETION_TIME: u32 = u32::MAX;
/// What is read where a local deletion time cannot be right: one that overflowed before `oa`. Never written by us; far away.
pub const INVALID_DELETION_TIME: u32 = u32::MAX - 1;

/// Names an element of a complex column: list time-UUID, set element, map key, or u16 field index.
pub type CellPath = Bytes;

/// A cell of a simple column, or one element of a complex column.
///
/// Live: no TTL, no local deletion time. Expiring: both. Tombstone: local deletion time only, value empty.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cell {
    /// The column it belongs to.
    pub column: ColumnId,
    /// Write time, microseconds.
    pub timestamp: i64,
    /// Seconds to live as written; NO_TTL when it does not expire.
    pub ttl: u32,
    /// When it expires or was deleted, seconds; NO_DELETION_TIME for a plain live cell.
    pub local_deletion_time: u32,
    /// Element of a complex column.
    pub path: Option<CellPath>,
    /// Serialized value; empty for tombstones.
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

    /// The same with a path.
    pub fn at(mut self, path: CellPath) -> Self {
        self.path = Some(path);
        self
    }

    /// Written as a deletion.
    #[inline]
    pub fn is_tombstone(&self) -> bool {
        self.local_deletion_time != NO_DELETION_TIME && self.ttl == NO_TTL
    }

    /// Written with a TTL.
    #[inline]
    pub fn is_expiring(&self) -> bool {
        self.ttl != NO_TTL
    }

    /// Visible to a read at `now` (seconds).
    #[inline]
    pub fn is_live(&self, now: u32) -> bool {
        self.local_deletion_time == NO_DELETION_TIME || (self.ttl != NO_TTL && now < self.local_deletion_time)
    }

    /// Which of two cells of one column and path stays: `Greater` when `self` does, `Equal` when they are the same.
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
