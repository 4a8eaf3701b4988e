//! Hint files: mutations that another node has not taken, kept in Cassandra's files until it does.
//!
//! The bytes (no I/O): [`descriptor`] is the head of a file and its name, [`entry`] a hint in it,
//! [`blocks`] the compressed form. The store: [`store`] keeps hints in memory until its writer has
//! put them into files, and knows the files of each host; [`reader`] gives them back page by page;
//! [`found_files`] looks at the files that an earlier life of the node has left.
//!
//! Knows neither nodes nor mutations: a host is its id, a mutation is bytes. Which hosts get
//! hints, and when hints are sent, is decided in `cluster::hints`. Must agree with
//! `org.apache.cassandra.hints` of Cassandra 5.0.8; the layout is in docs/formats/hints.md.

pub mod blocks;
pub mod descriptor;
pub mod entry;
pub mod error;
mod files;
pub mod found_files;
mod output;
pub mod reader;
pub mod shared;
pub mod store;
mod writer;

pub use blocks::Compression;
pub use descriptor::{Descriptor, HostId, Version};
pub use entry::{Entry, Hint};
pub use error::HintError;
pub use files::{HintFile, PendingHints};
pub use reader::{Page, Position, Reader};
pub use shared::Settings;
pub use store::{HintStore, HintsDurable, NotWritten, StoreOptions};

#[cfg(test)]
mod tests;
