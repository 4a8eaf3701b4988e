//! Where the indexes of an SSTable say that a partition is.

/// Where a partition is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PartitionPosition {
    /// In Data.db.
    Data(u64),
    /// Its row index is at this position of Rows.db or Index.db, and says where the data is.
    Rows(u64),
}
