//! The caches of storage: what they hold, and what operators change of them.

pub use storage::caches::Usage;

use super::{Result, failed};
use crate::node::Node;

/// The contents of each cache in figures, and its use since the start.
#[derive(Clone, Debug)]
pub struct CacheUsages {
    /// Uncompressed chunks of data files.
    pub chunks: Usage,
    /// Places of partitions in data files.
    pub keys: Usage,
    /// Heads of partitions.
    pub rows: Usage,
}

/// Reads the figures of all caches.
pub fn usages(node: &Node) -> CacheUsages {
    let caches = &node.engine.caches;
    CacheUsages { chunks: caches.chunks.usage(), keys: caches.keys.usage(), rows: caches.rows.usage() }
}

/// Reads back the entries that the node saved when it was stopped, in the background.
pub fn load_saved(node: &Node) {
    node.engine.load_caches();
}

/// Empties the key cache.
pub fn invalidate_keys(node: &Node) {
    node.engine.caches.keys.clear();
}

/// Empties the row cache.
pub fn invalidate_rows(node: &Node) {
    node.engine.caches.rows.clear();
}

/// Sets what the key cache and the row cache may hold, in bytes; the chunk cache has the rest of
/// the budget.
pub fn set_capacities(node: &Node, keys: u64, rows: u64) -> Result<()> {
    node.engine.caches.set_capacities(Some(keys), Some(rows)).map_err(failed)
}

/// Sets how many entries of the key cache and of the row cache are saved.
pub fn set_keys_to_save(node: &Node, keys: u64, rows: u64) {
    node.engine.cache_saver.set_keys_to_save(keys, rows);
}
