//! Caches: their figures and what is changed of them.

use serde::{Deserialize, Serialize};

/// Figures of a cache since the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct CacheInfo {
    /// Entries in the cache.
    pub entries: u64,
    /// Bytes in use.
    pub size: u64,
    /// Bytes at most.
    pub capacity: u64,
    /// Lookups that found an entry.
    pub hits: u64,
    /// All lookups.
    pub requests: u64,
}

/// A cache that can be told to forget.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum CacheKind {
    /// The key cache: places of partitions.
    Keys,
    /// The row cache: heads of partitions.
    Rows,
}

/// Changes the caches.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum CacheChange {
    /// The cache forgets everything.
    Invalidate(CacheKind),
    /// Sets what caches may hold; the chunk cache has the rest of the budget.
    Capacities {
        /// Bytes of the key cache.
        keys: u64,
        /// Bytes of the row cache.
        rows: u64,
    },
    /// Sets how many entries are saved.
    KeysToSave {
        /// Entries of the key cache.
        keys: u64,
        /// Entries of the row cache.
        rows: u64,
    },
}
