//! SSTables that cannot be read or written while the node runs, and what `disk_failure_policy` says
//! about that.
//!
//! - **A failure of the disk** is an error of the system. A shortage is not one: if a device is
//!   full, or no file descriptor is left, the same call succeeds when there is room again.
//! - **Damage** is bytes that cannot be right.
//!
//! `stop` is about failures of the disk, `stop_paranoid` and `die` are about damage too, `ignore`
//! is about neither. Whatever the policy is, the request, the flush or the compaction fails. The
//! program does the rest ([`crate::options::OnDiskFailure`]): the engine knows neither clients nor
//! other nodes.
//!
//! Not here: SSTables that cannot be opened at a start (`opening`), and the commit log, which has a
//! policy of its own. `org.apache.cassandra.service.DefaultFSErrorHandler`,
//! `utils.JVMStabilityInspector`.

use std::sync::atomic::Ordering;

use rows::ReadError;

use crate::engine::Engine;
use crate::error::StorageError;
use crate::options::DiskFailurePolicy;
use crate::table::TableStore;

impl Engine {
    /// Follows the policy after work on the SSTables of a table has failed. Errors other than
    /// those of the disk and of damage are ignored, and so are those of a dropped table, whose
    /// directories are removed.
    pub fn inspect(&self, store: &TableStore, error: &StorageError) {
        if !store.is_closed() && !store.dropped.load(Ordering::Acquire) {
            self.follow_policy(error);
        }
    }

    /// Does the work of [`Self::inspect`] for a failed read.
    pub fn inspect_read(&self, error: &ReadError) {
        if matches!(error, ReadError::Io { .. } | ReadError::Corrupt(_)) {
            self.follow_policy(&error.clone().into());
        }
    }

    fn follow_policy(&self, error: &StorageError) {
        let is_damage = match error {
            StorageError::Io { path, .. } if path.starts_with(&self.options.commitlog_directory) => return,
            StorageError::Io { .. } => false,
            StorageError::Corrupt(_) => true,
            _ => return,
        };
        let policy = self.options.disk_failure_policy;
        let concerns = match policy {
            DiskFailurePolicy::Ignore => false,
            DiskFailurePolicy::Stop => !is_damage,
            DiskFailurePolicy::StopParanoid | DiskFailurePolicy::Die => true,
        };
        if concerns {
            (self.options.on_disk_failure)(policy, error);
        }
    }
}
