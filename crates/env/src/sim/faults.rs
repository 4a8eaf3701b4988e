//! Faults of the simulated disk: errors on chosen operations, and operations that take long.

use std::time::Duration;

/// The error number for "Input/output error".
pub const EIO: i32 = 5;

/// The error number for "No space left on device".
pub const ENOSPC: i32 = 28;

/// The error number for "Too many open files".
pub const EMFILE: i32 = 24;

/// A disk operation, as counted and as chosen by faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Op {
    /// Opening an existing file.
    Open,
    /// Creating or truncating a file.
    Create,
    /// Reading from a file, whole files included.
    Read,
    /// Writing to a file; a failing write may have written a part.
    Write,
    /// Syncing a file; a failing sync forgets the dirty sectors, as Linux does.
    Sync,
    /// Changing a file's length, reserving space.
    SetLen,
    /// Renaming.
    Rename,
    /// Hard-linking.
    Link,
    /// Removing a file or a directory.
    Remove,
    /// Creating directories.
    CreateDir,
    /// Syncing a directory.
    SyncDir,
    /// Listing a directory.
    List,
    /// Asking whether a name exists. If it fails the answer is no. Not counted.
    Exists,
}

/// An error to return.
#[derive(Clone, Debug)]
pub struct Fault {
    /// The operations that fail.
    pub op: Op,
    /// A part of the paths at which they fail; empty: all paths.
    pub path: String,
    /// Number of matching operations that still succeed before.
    pub skip: u64,
    /// Number of matching operations that fail then.
    pub times: u64,
    /// The error number returned, such as [`EIO`].
    pub errno: i32,
}

impl Fault {
    /// The next `op` on a path that contains `path` fails with [`EIO`].
    pub fn next(op: Op, path: &str) -> Self {
        Fault { op, path: path.to_owned(), skip: 0, times: 1, errno: EIO }
    }

    /// Counts a matching operation; gives the error number if it fails.
    pub(super) fn count_operation(&mut self, op: Op, path: &str) -> Option<i32> {
        if op != self.op || !path.contains(&self.path) {
            return None;
        }
        if self.skip > 0 {
            self.skip -= 1;
            return None;
        }
        self.times = self.times.checked_sub(1)?;
        Some(self.errno)
    }
}

/// Operations that take long.
#[derive(Clone, Debug)]
pub struct Stall {
    /// The operations that are slow.
    pub op: Op,
    /// A part of the paths at which they are slow; empty: all paths.
    pub path: String,
    /// Number of matching operations that are still quick before.
    pub skip: u64,
    /// Number of matching operations that are slow then.
    pub times: u64,
    /// The virtual time that each slow operation takes.
    pub duration: Duration,
}

impl Stall {
    /// Counts a matching operation; gives its time if it is slow.
    pub(super) fn count_operation(&mut self, op: Op, path: &str) -> Option<Duration> {
        if op != self.op || !path.contains(&self.path) {
            return None;
        }
        if self.skip > 0 {
            self.skip -= 1;
            return None;
        }
        self.times = self.times.checked_sub(1)?;
        Some(self.duration)
    }
}
