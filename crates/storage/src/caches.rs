//! The caches of SSTables, under one budget: uncompressed chunks, places of partitions (of big
//! SSTables), heads of partitions.
//!
//! The budget is what the options give the three together. What keys and rows may take is set
//! apart, by the configuration and while the node runs ([`Caches::set_capacities`]); the chunks
//! have the rest.
//!
//! Chunks and places are found by the number that a file has in this process. Entries of a removed
//! SSTable cannot be found any more; they are removed with its last handle, at once if that is
//! little work, else in a background task (`crate::cache_saver`). Counters have no cache: an
//! increment reads the present value from memtables and chunks.

pub mod chunks;
mod counted;
pub mod keys;
mod partition_key;
pub mod rows;
pub mod saved;

use std::sync::OnceLock;

use bytes::Bytes;
use env::Wake;
use env::sync::Mutex;
use sstable::PartitionPosition;

use crate::error::StorageError;
use crate::options::EngineOptions;
use chunks::ChunkCache;
use keys::KeyCache;
use rows::RowCache;

/// One part in so many of the budget, which the chunks keep whatever capacities keys and rows are
/// given.
const CHUNKS_SHARE_MIN: u64 = 8;

/// Most chunks of a removed file that are taken out at once, which takes a fraction of a
/// millisecond. More are left to the background task.
const FORGET_AT_ONCE_MAX: u64 = 4096;

/// One part in so many of the capacity for chunks, up to which a file counts as small: a walk over
/// it may put the chunks that it reads into the cache.
const SMALL_FILE_SHARE: u64 = 16;

/// A cache at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Usage {
    /// Most bytes that the cache may keep.
    pub capacity: u64,
    /// Bytes that the cache keeps, bookkeeping included.
    pub size: u64,
    /// Number of entries in the cache.
    pub entries: u64,
    /// Look-ups that found an entry.
    pub hits: u64,
    /// Look-ups that found none.
    pub misses: u64,
}

impl Usage {
    /// All look-ups.
    pub fn requests(&self) -> u64 {
        self.hits + self.misses
    }
}

/// The caches of a node. Shared by all workers.
pub struct Caches {
    /// Decompressed chunks of data files.
    pub chunks: ChunkCache,
    /// Positions of partitions in big SSTables.
    pub keys: KeyCache,
    /// The row cache: heads of partitions of the tables that want it.
    pub rows: RowCache,
    budget: u64,
    /// Held while capacities are changed.
    changes: Mutex<()>,
    /// Numbers of removed files whose entries are still to be taken out.
    removed_files: Mutex<Vec<u64>>,
    pub(crate) saver: OnceLock<Wake>,
}

impl Caches {
    /// Empty caches with the capacities of the options.
    pub fn new(options: &EngineOptions) -> Self {
        let bytes = |size: usize| size as u64;
        let (chunks, keys) = (bytes(options.chunk_cache_bytes), bytes(options.key_cache_bytes));
        let rows = bytes(options.row_cache_bytes);
        Self {
            chunks: ChunkCache::new(chunks),
            keys: KeyCache::new(keys),
            rows: RowCache::new(rows),
            budget: chunks + keys + rows,
            changes: Mutex::new(()),
            removed_files: Mutex::default(),
            saver: OnceLock::new(),
        }
    }

    /// Most bytes that all caches together may keep.
    pub fn budget(&self) -> u64 {
        self.budget
    }

    /// Changes the capacities of keys and rows, in bytes (None: the same as before). The chunks
    /// get the rest of the budget.
    pub fn set_capacities(&self, keys: Option<u64>, rows: Option<u64>) -> Result<(), StorageError> {
        let _changes = self.changes.lock().expect("nothing panics inside");
        let keys = keys.unwrap_or_else(|| self.keys.usage().capacity);
        let rows = rows.unwrap_or_else(|| self.rows.usage().capacity);
        let most = self.budget - self.budget / CHUNKS_SHARE_MIN;
        let wanted = keys.checked_add(rows).filter(|wanted| *wanted <= most);
        let Some(wanted) = wanted else {
            let why = format!(
                "{keys} bytes for keys and {rows} for rows do not fit: the caches have {} together, of which the chunks keep an eighth",
                self.budget
            );
            return Err(StorageError::Refused { why });
        };
        // those that shrink first: the sum never passes the budget
        self.chunks.set_capacity((self.budget - wanted).min(self.chunks.usage().capacity));
        self.keys.set_capacity(keys);
        self.rows.set_capacity(rows);
        self.chunks.set_capacity(self.budget - wanted);
        Ok(())
    }

    /// Takes out the entries of removed files. The work is bounded by the size of the caches.
    pub(crate) fn sweep(&self) {
        let gone = std::mem::take(&mut *self.removed_files.lock().expect("nothing panics inside"));
        if !gone.is_empty() {
            self.chunks.forget_files(&gone);
            self.keys.forget_files(&gone);
        }
    }

    pub(crate) fn wake_saver(&self) {
        if let Some(wake) = self.saver.get() {
            wake.wake();
        }
    }
}

impl sstable::FileCache for Caches {
    #[inline]
    fn chunk(&self, file: u64, chunk: u64) -> Option<Bytes> {
        self.chunks.get(file, chunk)
    }

    fn chunk_for_scan(&self, file: u64, chunk: u64) -> Option<Bytes> {
        self.chunks.peek(file, chunk)
    }

    fn insert_chunk(&self, file: u64, chunk: u64, bytes: &Bytes) {
        self.chunks.insert(file, chunk, bytes);
    }

    fn caches_scans_of(&self, length: u64) -> bool {
        length <= self.chunks.capacity() / SMALL_FILE_SHARE
    }

    fn position(&self, file: u64, key: &[u8]) -> Option<PartitionPosition> {
        self.keys.get(file, key)
    }

    fn insert_position(&self, file: u64, key: &[u8], position: PartitionPosition) {
        self.keys.insert(file, key, position);
    }

    fn forget(&self, file: u64, chunks: u64) {
        let at_once = chunks <= FORGET_AT_ONCE_MAX;
        if at_once && !self.chunks.is_empty() {
            (0..chunks).for_each(|chunk| self.chunks.remove(file, chunk));
        }
        if !at_once || !self.keys.is_empty() {
            self.removed_files.lock().expect("nothing panics inside").push(file);
            self.wake_saver();
        }
    }
}
