//! `helenus sstable VERB …`: what Cassandra's `sstable*` programs do, on SSTable files at rest.
//!
//! One verb a file. Verbs that read work beside a running node; verbs that write refuse a data
//! directory that a running node holds. New files appear and old files vanish through the
//! transaction log of the table's directory, so that a crash leaves either the old files or the new
//! ones. Memory does not grow with a partition. Exit codes: 0 done, 1 refused, failed, or damage
//! found, 2 wrong usage. Errors name file, component and offset.

#![forbid(unsafe_code)]

mod access;
mod context;
mod dump;
mod failure;
mod guard;
mod list;
mod load;
mod metadata;
mod open;
mod program;
mod progress;
mod rewrite;
mod salvage;
mod schema_file;
mod split;
mod target;
mod tombstones;
mod upgrade;
mod verify;

pub use access::RingAccess;
pub use context::Context;
pub use program::run;
