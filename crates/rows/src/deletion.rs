//! Deletion time: "everything written up to this timestamp is gone". Agrees with
//! `org.apache.cassandra.db.DeletionTime`.

use crate::cell::{NO_DELETION_TIME, NO_TIMESTAMP};

/// A deletion of a partition, range, row or collection.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct DeletionTime {
    /// Write timestamp, microseconds. The deletion shadows data with timestamps up to and including
    /// this one.
    pub marked_for_delete_at: i64,
    /// The server's clock at the deletion, seconds. Decides when the deletion may be purged.
    pub local_deletion_time: u32,
}

impl DeletionTime {
    /// The value that means "not deleted".
    pub const LIVE: Self = Self { marked_for_delete_at: NO_TIMESTAMP, local_deletion_time: NO_DELETION_TIME };

    /// A deletion with a timestamp, made at a time of the server's clock.
    pub fn new(marked_for_delete_at: i64, local_deletion_time: u32) -> Self {
        Self { marked_for_delete_at, local_deletion_time }
    }

    /// Whether nothing is deleted.
    #[inline]
    pub fn is_live(&self) -> bool {
        self.marked_for_delete_at == NO_TIMESTAMP
    }

    /// Whether it shadows data of this timestamp. With equal timestamps the deletion wins.
    #[inline]
    pub fn deletes(&self, timestamp: i64) -> bool {
        timestamp <= self.marked_for_delete_at
    }

    /// Whether it is the stronger of two deletions: the greater timestamp, then the greater local
    /// deletion time.
    #[inline]
    pub fn supersedes(&self, other: &Self) -> bool {
        (self.marked_for_delete_at, self.local_deletion_time) > (other.marked_for_delete_at, other.local_deletion_time)
            && !self.is_live()
            || (other.is_live() && !self.is_live())
    }

    /// The stronger of the two.
    #[inline]
    pub fn merge(self, other: Self) -> Self {
        if other.supersedes(&self) { other } else { self }
    }
}
