//! Changes of a table's SSTables that have ended and whose transaction logs are still on disk.
//!
//! Two kinds wait: changes that the disk refused to settle, and committed changes whose replaced
//! files a snapshot may be about to link. A crash loses neither, because the logs are on disk.

use sstable::txn_log::Transaction;

/// Most committed changes that wait for the end of snapshots; each holds a file or a few open.
/// Beyond this number the replaced files of a change are removed at once, and a snapshot that has
/// not linked them yet fails.
const KEPT_MAX: usize = 256;

/// The changes of one table that are not settled.
#[derive(Default)]
pub(crate) struct Unsettled {
    /// Changes that could not be settled. They are tried again before the table's next change.
    pub(crate) failed: Vec<Transaction>,
    /// Committed changes that are settled when no snapshot is being taken any more.
    kept: Vec<Transaction>,
    /// Number of snapshots that are linking files of the table.
    snapshots: usize,
}

impl Unsettled {
    /// Called when a snapshot begins: files that the table has from now on stay until the snapshot
    /// ends.
    pub(crate) fn begin_snapshot(&mut self) {
        self.snapshots += 1;
    }

    /// Called when a snapshot has ended; gives the changes that the caller has to settle.
    pub(crate) fn end_snapshot(&mut self) -> Vec<Transaction> {
        // where a panic drops the snapshot, another panic would abort the process
        assert!(self.snapshots > 0 || std::thread::panicking(), "a snapshot ends once");
        self.snapshots = self.snapshots.saturating_sub(1);
        if self.snapshots == 0 { std::mem::take(&mut self.kept) } else { Vec::new() }
    }

    /// Keeps a change that has ended if it has to wait for a snapshot; otherwise gives it back.
    /// The SSTables that the change replaces are not in the view any more, so a snapshot that
    /// begins later does not ask for their files.
    pub(crate) fn keep(&mut self, transaction: Transaction) -> Option<Transaction> {
        if self.snapshots == 0 || !transaction.takes_files() {
            return Some(transaction);
        }
        if self.kept.len() >= KEPT_MAX {
            tracing::warn!(
                "{KEPT_MAX} changes of SSTables wait for a snapshot: the next does not, and the snapshot may fail"
            );
            return Some(transaction);
        }
        self.kept.push(transaction);
        None
    }
}
