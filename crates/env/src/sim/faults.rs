//! Faults of the simulated disk: errors on chosen operations, and operations that take long.

use std::time::Duration;

/// "Input/output error".
pub const EIO: i32 = 5;

/// "No space left on device".
pub const ENOSPC: i32 = 28;

/// "Too many open files".
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
    /// Asking whether a name is there; the answer is no where it fails. Not counted.
    Exists,
}

/// An error to return.
#[derive(Clone, Debug)]
pub struct Fault {
    /// Operations it strikes.
    pub op: Op,
    /// Strikes paths that contain this (empty: all).
    pub path: String,
    /// Matching operations that still succeed before.
    pub skip: u64,
    /// How often it strikes then.
    pub times: u64,
    /// The error number returned, such as [`EIO`].
    pub errno: i32,
}

impl Fault {
    /// The next `op` on a path that contains `path` fails with [`EIO`].
    pub fn next(op: Op, path: &str) -> Self {
        Fault { op, path: path.to_owned(), skip: 0, times: 1, errno: EIO }
    }

    /// Counts a matching operation; the error number if it fails.
    pub(super) fn strike(&mut self, op: Op, path: &str) -> Option<i32> {
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
    /// Operations it slows down.
    pub op: Op,
    /// Slows down paths that contain this (empty: all).
    pub path: String,
    /// Matching operations that are still quick before.
    pub skip: u64,
    /// How often it strikes then.
    pub times: u64,
    /// The virtual time that each takes.
    pub duration: Duration,
}

impl Stall {
    /// Counts a matching operation; how long it takes if it is slow.
    pub(super) fn strike(&mut self, op: Op, path: &str) -> Option<Duration> {
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
