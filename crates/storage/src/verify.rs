//! Verifying: an SSTable is read, and compared with its checksums and its indexes; nothing is
//! written, unless its repair state has to be reset.
//!
//! 1. Its version, if that is asked for.
//! 2. All components are there; statistics and indexes were read when it was opened.
//! 3. If ranges are given: no partition is outside of them.
//! 4. The digest of the data file. Without a digest, or if that is asked for: every row.
//!
//! Agrees with `org.apache.cassandra.io.sstable.format.SortedTableVerifier`.

use std::sync::Arc;

use sstable::verify::{Depth, Verifier};
use sstable::{Component, Descriptor, SSTable};

use crate::compaction::rewrite_statistics::with_statistics;
use crate::compaction::task::{Outcome, Task};
use crate::engine::Engine;
use crate::error::StorageError;
use crate::files;
use crate::requests::operations::Item;
pub use crate::requests::operations::VerifyOptions as Options;
use crate::table::TableStore;
use crate::token_ranges::{OutsideRanges, TokenRanges};

/// An SSTable being verified.
pub struct Verification {
    engine: Arc<Engine>,
    store: Arc<TableStore>,
    sstable: Arc<SSTable>,
    verifier: Verifier,
    options: Options,
    /// Ranges that must have all partitions, until that was checked; None: there are no such
    /// ranges, or it was checked.
    held: Option<Arc<TokenRanges>>,
}

impl Verification {
    /// Begins a verification.
    pub fn open(
        engine: &Arc<Engine>,
        store: &Arc<TableStore>,
        item: &Item,
        options: Options,
    ) -> Result<Self, StorageError> {
        if let Some(left_out) = &item.left_out {
            return Err(invalid(&left_out.descriptor, options, &left_out.why));
        }
        let Some(sstable) = item.sstables.first() else {
            return Err(StorageError::Refused { why: format!("nothing to verify in {}", store.name()) });
        };
        let descriptor = sstable.descriptor();
        tracing::info!(sstable = descriptor.prefix(), table = store.name(), "verifying");
        if options.check_version && descriptor.version != files::version(engine) {
            let file = descriptor.path(Component::Data);
            let why = format!("{} is not the latest version, run upgradesstables", file.display());
            return Err(StorageError::Refused { why });
        }
        let depth = depth(engine, descriptor, options);
        let verifier = Verifier::new(&engine.env, sstable, depth);
        let (engine, store, sstable) = (Arc::clone(engine), Arc::clone(store), Arc::clone(sstable));
        Ok(Self { engine, store, sstable, verifier, options, held: item.kept.clone() })
    }

    /// Logs the defect; if that was asked for, the SSTable does not count as repaired any more.
    fn failed(&self, error: &dyn std::fmt::Display) -> StorageError {
        let descriptor = self.sstable.descriptor();
        let told = invalid(descriptor, self.options, error);
        tracing::error!(error = %told, "verify");
        if self.options.mutate_repair_status
            && let Err(error) = unrepair(&self.engine, &self.store, &self.sstable)
        {
            tracing::error!(%error, sstable = descriptor.prefix(), "its repair state cannot be taken back");
        }
        told
    }
}

/// Has an SSTable count as unrepaired from now on.
fn unrepair(engine: &Engine, store: &TableStore, sstable: &Arc<SSTable>) -> Result<(), StorageError> {
    let write = || crate::import::reset_statistics(&engine.env, sstable.descriptor());
    with_statistics(engine, store, sstable, write).map(drop)
}

fn depth(engine: &Engine, descriptor: &Descriptor, options: Options) -> Depth {
    let has_digest = engine.env.disk.exists(&descriptor.path(Component::Digest));
    match options {
        Options { quick: true, .. } => Depth::Components,
        Options { extended: true, .. } => Depth::Extended,
        _ if !has_digest => Depth::Extended,
        _ => Depth::Quick,
    }
}

/// The error for an SSTable that is corrupt.
pub fn invalid(descriptor: &Descriptor, options: Options, why: &dyn std::fmt::Display) -> StorageError {
    let file = descriptor.path(Component::Data);
    let full = if options.mutate_repair_status { "" } else { "a full " };
    StorageError::Refused { why: format!("Invalid SSTable {}, please force {full}repair: {why}", file.display()) }
}

impl Task for Verification {
    fn advance(&mut self) -> Result<Option<u64>, StorageError> {
        if let Some(held) = self.held.take() {
            return match held.first_outside(&self.sstable) {
                Ok(None) => Ok(Some(0)),
                Ok(Some(outside)) => Err(self.failed(&OutsideRanges(&outside))),
                Err(error) => Err(self.failed(&error)),
            };
        }
        self.verifier.step().map_err(|error| self.failed(&error))
    }

    fn finish(self: Box<Self>, _: &Arc<Engine>) -> Result<Outcome, StorageError> {
        let verified = self.verifier.verified();
        let file = self.sstable.descriptor().path(Component::Data);
        let line = match verified.partitions {
            0 => format!("Verify of {} succeeded", file.display()),
            count => format!("Verify of {} succeeded. All {count} partitions read successfully", file.display()),
        };
        tracing::info!("{line}");
        Ok(Outcome { written: None, lines: vec![line] })
    }

    fn abandon(self: Box<Self>) {}
}
