//! The positions of partitions in big SSTables, by key: results of searches through Summary.db and
//! Index.db.
//!
//! The tries of BTI lead to a partition by themselves: nothing of them is kept. Agrees in role with
//! `org.apache.cassandra.cache.KeyCacheKey` and `io.sstable.keycache.KeyCache`.

use quick_cache::Weighter;
use sstable::PartitionPosition;

use super::Usage;
use super::counted::Counted;
use super::partition_key::{PartitionKey, PartitionKeyRef};

/// Bytes counted for an entry besides its key.
const OVERHEAD: u64 = 112;
/// Estimated bytes of an entry, from which the first size of the tables follows.
const ENTRY_ESTIMATE: u64 = 160;

/// A partition of a file, by the file's number in this process.
type Key = PartitionKey<u64>;

#[derive(Clone)]
struct KeyWeight;

impl Weighter<Key, PartitionPosition> for KeyWeight {
    fn weight(&self, key: &Key, _: &PartitionPosition) -> u64 {
        key.key.len() as u64 + OVERHEAD
    }
}

/// The key cache. Shared by all workers.
pub struct KeyCache(Counted<Key, PartitionPosition, KeyWeight>);

impl KeyCache {
    /// A cache of at most `capacity` bytes.
    pub fn new(capacity: u64) -> Self {
        Self(Counted::new(capacity, ENTRY_ESTIMATE, KeyWeight))
    }

    /// Entries and bytes that the cache holds, and its hits and misses.
    pub fn usage(&self) -> Usage {
        self.0.usage()
    }

    pub(super) fn set_capacity(&self, capacity: u64) {
        self.0.set_capacity(capacity);
    }

    /// Whether no position is kept.
    pub fn is_empty(&self) -> bool {
        self.0.entries.is_empty()
    }

    /// Forgets everything.
    pub fn clear(&self) {
        self.0.entries.clear();
    }

    /// File and key of every entry, in no order.
    pub fn keys(&self) -> impl Iterator<Item = (u64, Box<[u8]>)> + '_ {
        self.0.entries.iter().map(|(key, _)| (key.of, key.key))
    }

    pub(super) fn get(&self, file: u64, key: &[u8]) -> Option<PartitionPosition> {
        if self.0.is_off() { None } else { self.0.get(&PartitionKeyRef { of: file, key }) }
    }

    pub(super) fn insert(&self, file: u64, key: &[u8], position: PartitionPosition) {
        if !self.0.is_off() {
            self.0.entries.insert(Key { of: file, key: key.into() }, position);
        }
    }

    pub(super) fn forget_files(&self, files: &[u64]) {
        self.0.entries.retain(|key, _| !files.contains(&key.of));
    }
}
