//! The verbs on files of the real Cassandra, and on damaged ones.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)] // tests read and write files as any program does

mod fixtures;
mod golden;
mod verifying;
mod writing;
