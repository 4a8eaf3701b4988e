//! The cache of open files' content between reads: an interface that the caller who opens an
//! SSTable implements. How much is kept, and of which files, is decided there.
//!
//! Ids of files are never used twice in a process: what is kept of a file that is gone is never
//! found again, and is given back when its last handle goes ([`FileCache::forget`]).

use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;

use crate::position::PartitionPosition;

/// Keeps uncompressed chunks of data files, and where partitions are.
pub trait FileCache: Send + Sync {
    /// A chunk that was put in, if it is still there. It was wanted once more.
    fn chunk(&self, file: u64, chunk: u64) -> Option<Bytes>;

    /// A chunk that was put in, if it is still there, for a walk over the file, which wants each
    /// chunk once: the cache does not count it as wanted.
    fn chunk_for_scan(&self, file: u64, chunk: u64) -> Option<Bytes>;

    /// Offers a chunk.
    fn insert_chunk(&self, file: u64, chunk: u64, bytes: &Bytes);

    /// Whether chunks that a walk over partitions reads are offered, for a file of `length` bytes.
    fn caches_scans_of(&self, length: u64) -> bool;

    /// Where the partition of a key is, if it was put in and is still there.
    fn position(&self, _file: u64, _key: &[u8]) -> Option<PartitionPosition> {
        None
    }

    /// Offers the place of a partition.
    fn insert_position(&self, _file: u64, _key: &[u8], _position: PartitionPosition) {}

    /// The file, of so many chunks, is closed.
    fn forget(&self, _file: u64, _chunks: u64) {}
}

/// An id that no other open file of this process has or had.
pub(crate) fn next_file_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Keeps nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoCache;

impl FileCache for NoCache {
    fn chunk(&self, _file: u64, _chunk: u64) -> Option<Bytes> {
        None
    }

    fn chunk_for_scan(&self, _file: u64, _chunk: u64) -> Option<Bytes> {
        None
    }

    fn insert_chunk(&self, _file: u64, _chunk: u64, _bytes: &Bytes) {}

    fn caches_scans_of(&self, _length: u64) -> bool {
        false
    }
}
