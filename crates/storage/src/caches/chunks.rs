//! Decompressed chunks of data files, kept by how often they are wanted, within a budget of bytes.
//!
//! What comes once waits in a small part of the cache and is given up first (`quick_cache` is a Clock-PRO): reads that never come back do
//! not push out what many want. Scans do not even put in what they read (`sstable::FileCache::takes_walks_over`).
//! Agrees in role with `org.apache.cassandra.cache.ChunkCache`.

use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use quick_cache::Weighter;
use quick_cache::sync::Cache;

use super::Usage;

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
    capacity: AtomicU64,
    hits: AtomicU64,
    misses: AtomicU64,
}

impl ChunkCache {
    /// Keeps at most `capacity` bytes.
    pub fn new(capacity: u64) -> Self {
        let estimate = usize::try_from(capacity / (16 << 10)).unwrap_or(usize::MAX).max(16);
        Self {
            chunks: Cache::with_weighter(estimate, capacity, ChunkWeight),
            capacity: AtomicU64::new(capacity),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
        }
    }

    /// What it holds and did.
    pub fn usage(&self) -> Usage {
        Usage {
            capacity: self.capacity.load(Ordering::Relaxed),
            size: self.chunks.weight(),
            entries: self.chunks.len() as u64,
            hits: self.hits.load(Ordering::Relaxed),
            misses: self.misses.load(Ordering::Relaxed),
        }
    }

    pub(super) fn set_capacity(&self, capacity: u64) {
        self.capacity.store(capacity, Ordering::Relaxed);
        self.chunks.set_capacity(capacity);
    }

    /// Nothing is kept.
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// Forgets everything.
    pub fn clear(&self) {
        self.chunks.clear();
    }

    /// File and index of every chunk, in no order.
    pub fn places(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.chunks.iter().map(|(place, _)| place)
    }

    #[inline]
    pub(super) fn get(&self, file: u64, chunk: u64) -> Option<Bytes> {
        let found = self.chunks.get(&(file, chunk));
        let counter = if found.is_some() { &self.hits } else { &self.misses };
        counter.fetch_add(1, Ordering::Relaxed);
        found
    }

    /// The chunk, without a word on how much it is wanted.
    pub(super) fn peek(&self, file: u64, chunk: u64) -> Option<Bytes> {
        self.chunks.peek(&(file, chunk))
    }

    pub(super) fn insert(&self, file: u64, chunk: u64, content: &Bytes) {
        self.chunks.insert((file, chunk), content.clone());
    }

    pub(super) fn remove(&self, file: u64, chunk: u64) {
        self.chunks.remove(&(file, chunk));
    }

    pub(super) fn forget_files(&self, files: &[u64]) {
        self.chunks.retain(|(file, _), _| !files.contains(file));
    }
}
