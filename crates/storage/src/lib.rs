//! The local storage engine: commit log, memtables, flush, compaction, reads. One node's data, with
//! no idea of a ring.
//!
//! [`Engine`] holds the parts; each verb (write, read, flush, compaction, snapshot, truncate,
//! schema change) is a module that takes them. [`open`] is the way from a directory to an engine.

pub mod base_views;
mod cache_saver;
pub mod caches;
pub mod commitlog;
pub mod compaction;
mod compactor;
mod directories;
mod disk_failures;
pub mod drops;
pub mod engine;
pub mod error;
pub mod files;
pub mod flush;
pub mod flushed_table;
mod flusher;
pub mod guardrails;
pub mod import;
pub mod index;
pub mod inherited;
pub mod layout;
mod lifecycle;
pub mod log_intervals;
pub mod materialized;
pub mod memory;
pub mod metrics;
mod opening;
pub mod options;
mod outputs;
mod query;
mod read;
pub mod received;
mod recovery;
pub mod repair_sessions;
pub mod requests;
mod restore_point;
pub mod schema_change;
mod schema_tables;
pub mod scrub;
pub mod shards;
pub mod snapshot;
pub mod strategy;
pub mod table;
mod tables;
pub mod token_ranges;
pub mod tombstones;
pub mod truncate;
mod truncation_records;
pub mod verify;
pub mod write;

pub use engine::Engine;
pub use error::StorageError;
pub use options::{DiskFailurePolicy, DiskRoom, EngineOptions, OnDiskFailure};
pub use read::explain::Observation;
pub use recovery::{Recovered, open};
pub use table::{TableStore, UnreadableSSTable, memtable, view};

#[cfg(test)]
mod tests;
