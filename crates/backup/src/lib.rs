//! Backups: snapshots of nodes, kept in a directory or an object store.
//!
//! ```text
//! manifests/TAG/HOST-ID.json                            written last: the node's part is whole
//! nodes/HOST-ID/sstables/KEYSPACE/TABLE-ID/FILE@STAMP   a file of an SSTable
//! nodes/HOST-ID/commitlog/SEGMENT                       an archived segment of the commit log
//! nodes/HOST-ID/commitlog-restores/POINT-SEGMENT        a restore, after which the node ran on
//! nodes/HOST-ID/commitlog-runs/RUN                      the segment with which the node began
//! ```
//!
//! - [`create`]: uploads the files of a snapshot that the store does not hold, then the manifest
//! - [`verify`]: reads every file of a backup and compares its digest
//! - [`restore`]: makes the data directory of the same node again
//! - [`load`]: loads a backup into a ring of any topology
//! - [`log`]: uploads segments of the commit log; [`runs`]: whether some of them are lacking
//! - [`store`]: where it all lies; [`manifest`]: what a backup consists of
//!
//! SSTables never change, so a backup uploads only what is new: a file that the store holds under
//! its name and stamp is not sent again. Every step may be killed and repeated. Files are streamed,
//! so memory does not grow with them. Bytes of a store are not trusted.

#![forbid(unsafe_code)]

pub mod copy;
pub mod create;
pub mod listing;
pub mod load;
pub mod log;
pub mod manifest;
pub mod restore;
pub mod runs;
mod source;
pub mod store;
pub mod verify;

pub use manifest::{Manifest, NodeIdentity};
pub use source::{NodeTable, check_directories};
pub use store::{Store, open};

#[cfg(test)]
mod tests;

/// A failure, as a sentence for people.
pub type Result<T> = std::result::Result<T, String>;
