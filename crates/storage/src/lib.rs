//! The local storage engine: commit log, memtables, flush, compaction, reads.

pub mod commitlog;
