//! Decompressed chunks of data files, kept by how often they are wanted, within a budget of bytes.
//!
//! A chunk that is read once waits in a small part of the cache and is given up first
//! (`quick_cache` is a Clock-PRO): reads that are never repeated do not push out chunks that many
//! reads want. Scans do not even put in the chunks that they read
//! (`sstable::FileCache::caches_scans_of`). Agrees in role with
//! `org.apache.cassandra.cache.ChunkCache`.

use bytes::Bytes;
use env::rare::{Rare, happens};
use quick_cache::Weighter;

use super::Usage;
use super::counted::Counted;

/// A chunk: the file's number in this process, and the chunk's index in it.
type Key = (u64, u64);

/// Bytes counted for a chunk besides its content.
const OVERHEAD: u64 = 120;
/// Estimated bytes of a chunk, from which the first size of the cache's tables follows.
const ENTRY_ESTIMATE: u64 = 16 << 10;

#[derive(Clone)]
struct ChunkWeight;

impl Weighter<Key, Bytes> for ChunkWeight {
    fn weight(&self, _: &Key, chunk: &Bytes) -> u64 {
        chunk.len() as u64 + OVERHEAD
    }
}

/// The chunk cache. Shared by all workers.
pub struct ChunkCache(Counted<Key, Bytes, ChunkWeight>);

impl ChunkCache {
    /// A cache of at most `capacity` bytes.
    pub fn new(capacity: u64) -> Self {
        Self(Counted::new(capacity, ENTRY_ESTIMATE, ChunkWeight))
    }

    /// Entries and bytes that the cache holds, and its hits and misses.
    pub fn usage(&self) -> Usage {
        self.0.usage()
    }

    /// The most bytes that the cache keeps; cheap enough for every read.
    #[inline]
    pub(super) fn capacity(&self) -> u64 {
        self.0.capacity()
    }

    pub(super) fn set_capacity(&self, capacity: u64) {
        self.0.set_capacity(capacity);
    }

    /// Whether no chunk is kept.
    pub fn is_empty(&self) -> bool {
        self.0.entries.is_empty()
    }

    /// Forgets everything.
    pub fn clear(&self) {
        self.0.entries.clear();
    }

    /// File and index of every chunk, in no order.
    pub fn places(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.0.entries.iter().map(|(place, _)| place)
    }

    #[inline]
    pub(super) fn get(&self, file: u64, chunk: u64) -> Option<Bytes> {
        if happens(Rare::ChunkIsForgotten) {
            self.remove(file, chunk);
        }
        self.0.get(&(file, chunk))
    }

    /// The chunk, without counting the look-up as a use.
    pub(super) fn peek(&self, file: u64, chunk: u64) -> Option<Bytes> {
        self.0.entries.peek(&(file, chunk))
    }

    pub(super) fn insert(&self, file: u64, chunk: u64, content: &Bytes) {
        self.0.entries.insert((file, chunk), content.clone());
    }

    pub(super) fn remove(&self, file: u64, chunk: u64) {
        self.0.entries.remove(&(file, chunk));
    }

    pub(super) fn forget_files(&self, files: &[u64]) {
        self.0.entries.retain(|(file, _), _| !files.contains(file));
    }
}
