//! File descriptors: how many this process may have.
//!
//! Sockets, SSTables and segments of the commit log share one number (`ulimit -n`). A shell gives a
//! process a soft limit of 1024 as a rule, and allows it far more.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the soft limit of open files to the hard one. Gives how many the process may have;
/// `None`: any number. If the system refuses, the limit stays as it was.
pub fn raise_descriptor_limit() -> (Option<u64>, io::Result<()>) {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current == maximum {
        return (current, Ok(()));
    }
    match setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        Ok(()) => (maximum, Ok(())),
        Err(error) => (current, Err(error.into())),
    }
}
