//! Whether the chunks that a reader takes go to the cache.
//!
//! Those of short reads do. A scan of a file that is large against the cache, and a read that has
//! come along a run of [`CACHED_RUN_MAX`] chunks, want each chunk once: they read around the cache,
//! ahead of where they are.

use bytes::Bytes;
use rows::{ReadContext, ReadError};

use crate::chunk_reader::DataFile;
use crate::read_ahead::ReadAhead;

/// Chunks side by side that a read offers to the cache; the following ones it does not. A page of a
/// result is shorter.
const CACHED_RUN_MAX: u32 = 32;

/// A chunk that is not further than this from the one before belongs to the same run: readers go a
/// little back and forth.
const NEAR: u64 = 4;

/// The way of a reader from chunk to chunk.
#[derive(Debug)]
pub(super) struct Walk {
    /// Chunks are offered to the cache as long as the run is not longer.
    cached_run_max: u32,
    last: Option<u64>,
    run: u32,
    ahead: ReadAhead,
}

impl Walk {
    /// The walk of a read of one partition.
    pub fn in_partition(data: &DataFile) -> Self {
        Self::new(if data.cache().caches_scans_of(data.length()) { u32::MAX } else { CACHED_RUN_MAX })
    }

    /// The walk of a scan.
    pub fn over_partitions(data: &DataFile) -> Self {
        Self::new(if data.cache().caches_scans_of(data.length()) { u32::MAX } else { 0 })
    }

    /// Nothing is offered to the cache.
    pub fn around() -> Self {
        Self::new(0)
    }

    fn new(cached_run_max: u32) -> Self {
        Self { cached_run_max, last: None, run: 0, ahead: ReadAhead::default() }
    }

    /// Chunk number `index`.
    pub fn chunk(&mut self, data: &DataFile, index: u64, context: &ReadContext) -> Result<Bytes, ReadError> {
        match self.last.replace(index) {
            Some(last) if index == last => {}
            Some(last) if index.abs_diff(last) <= NEAR => {
                self.run = self.run.saturating_add(1);
                if index < last {
                    self.ahead.restart();
                }
            }
            _ => {
                self.run = 0;
                self.ahead.restart();
            }
        }
        if self.run < self.cached_run_max {
            return data.chunk(index, context);
        }
        data.chunk_for_scan(index, context, &mut self.ahead)
    }
}
