//! Where partitions are in big SSTables, by key: what a search through Summary.db and Index.db came to.
//!
//! The tries of BTI lead to a partition by themselves: nothing of them is kept. Agrees in role with
//! `org.apache.cassandra.cache.KeyCacheKey` and `io.sstable.keycache.KeyCache`.

use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};

use quick_cache::sync::Cache;
use quick_cache::{Equivalent, Weighter};
use sstable::PartitionPosition;

use super::Usage;

/// Bytes counted for an entry besides its key.
const OVERHEAD: u64 = 112;
/// An entry takes about so much: for the first size of the tables.
const ENTRY_ESTIMATE: u64 = 160;

/// A partition: the file's number in this process, and the partition's key.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Key {
    file: u64,
    key: Box<[u8]>,
}

#[derive(Clone, Copy)]
struct KeyRef<'a> {
    file: u64,
    key: &'a [u8],
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        KeyRef { file: self.file, key: &self.key }.hash(state);
    }
}

impl Hash for KeyRef<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.file);
        state.write(self.key);
    }
}

impl Equivalent<Key> for KeyRef<'_> {
    fn equivalent(&self, key: &Key) -> bool {
        self.file == key.file && *self.key == *key.key
    }
}

#[derive(Clone)]
struct KeyWeight;

impl Weighter<Key, PartitionPosition> for KeyWeight {
    fn weight(&self, key: &Key, _: &PartitionPosition) -> u64 {
        key.key.len() as u64 + OVERHEAD
    }
}

/// The key cache. Shared by all workers.
pub struct KeyCache {
    positions: Cache<Key, PartitionPosition, KeyWeight>,
    capacity: AtomicU64,
    hits: AtomicU64,
    misses: AtomicU64,
}

impl KeyCache {
    /// Keeps at most `capacity` bytes.
    pub fn new(capacity: u64) -> Self {
        let estimate = usize::try_from(capacity / ENTRY_ESTIMATE).unwrap_or(usize::MAX).max(16);
        Self {
            positions: Cache::with_weighter(estimate, capacity, KeyWeight),
            capacity: AtomicU64::new(capacity),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
        }
    }

    /// What it holds and did.
    pub fn usage(&self) -> Usage {
        Usage {
            capacity: self.capacity.load(Ordering::Relaxed),
            size: self.positions.weight(),
            entries: self.positions.len() as u64,
            hits: self.hits.load(Ordering::Relaxed),
            misses: self.misses.load(Ordering::Relaxed),
        }
    }

    pub(super) fn set_capacity(&self, capacity: u64) {
        self.capacity.store(capacity, Ordering::Relaxed);
        self.positions.set_capacity(capacity);
    }

    /// Nothing is kept.
    pub fn is_empty(&self) -> bool {
        self.positions.is_empty()
    }

    /// Forgets everything.
    pub fn clear(&self) {
        self.positions.clear();
    }

    /// File and key of every entry, in no order.
    pub fn keys(&self) -> impl Iterator<Item = (u64, Box<[u8]>)> + '_ {
        self.positions.iter().map(|(key, _)| (key.file, key.key))
    }

    pub(super) fn get(&self, file: u64, key: &[u8]) -> Option<PartitionPosition> {
        if self.capacity.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let found = self.positions.get(&KeyRef { file, key });
        let counter = if found.is_some() { &self.hits } else { &self.misses };
        counter.fetch_add(1, Ordering::Relaxed);
        found
    }

    pub(super) fn insert(&self, file: u64, key: &[u8], position: PartitionPosition) {
        if self.capacity.load(Ordering::Relaxed) > 0 {
            self.positions.insert(Key { file, key: key.into() }, position);
        }
    }

    pub(super) fn forget_files(&self, files: &[u64]) {
        self.positions.retain(|key, _| !files.contains(&key.file));
    }
}
