//! Decompressed chunks of data files, kept by how often they are wanted, within a budget of bytes.

use bytes::Bytes;
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use std::sync::atomic::{AtomicU64, Ordering};

/// A chunk: the file's number in this process, and the chunk's index in it.
type Key = (u64, u64);

/// Bytes counted for a chunk besides its content.
const OVERHEAD: u64 = 120;

#[derive(Clone)]
struct ChunkWeight;

impl Weighter<Key, Bytes> for ChunkWeight {
    fn weight(&self, _: &Key, chunk: &Bytes) -> u64 {
        chunk.len() as u64 + OVERHEAD
    }
}

/// The chunk cache. Shared by all workers.
pub struct ChunkCache {
    chunks: Cache<Key, Bytes, ChunkWeight>,
    capacity: usize,
    hits: AtomicU64,
    misses: AtomicU64,
}

impl ChunkCache {
    /// Keeps at most `capacity` bytes.
    pub fn new(capacity: usize) -> Self {
        let estimate = (capacity / (16 << 10)).max(16);
        Self {
            chunks: Cache::with_weighter(estimate, capacity as u64, ChunkWeight),
            capacity,
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
        }
    }

    /// Bytes it may keep, keeps, and how many chunks those are.
    pub fn usage(&self) -> (usize, u64, usize) {
        (self.capacity, self.chunks.weight(), self.chunks.len())
    }

    /// Look-ups that found their chunk, and those that did not.
    pub fn hits_and_misses(&self) -> (u64, u64) {
        (self.hits.load(Ordering::Relaxed), self.misses.load(Ordering::Relaxed))
    }

    /// Forgets everything.
    pub fn clear(&self) {
        self.chunks.clear();
    }
}

impl sstable::ChunkCache for ChunkCache {
    fn get(&self, file: u64, chunk: u64) -> Option<Bytes> {
        let found = self.chunks.get(&(file, chunk));
        let counter = if found.is_some() { &self.hits } else { &self.misses };
        counter.fetch_add(1, Ordering::Relaxed);
        found
    }

    fn insert(&self, file: u64, chunk: u64, content: &Bytes) {
        self.chunks.insert((file, chunk), content.clone());
    }
}
