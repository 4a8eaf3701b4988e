//! The tombstones and live rows that a read passed in one partition, for warnings and errors.

use types::DecoratedKey;

/// Counts of one partition, or of a range of partitions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScannedCounts {
    /// The last partition.
    pub key: DecoratedKey,
    /// Tombstones that were passed.
    pub tombstones: u64,
    /// Rows with live data, static rows included.
    pub live_rows: u64,
}
