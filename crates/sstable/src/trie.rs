//! On-disk tries: the index structure of BTI SSTables.
//!
//! A file of tries is uncompressed and made of pages of [`PAGE_SIZE`] bytes; no node crosses a
//! page. Nodes are written children first, so every pointer goes backwards, as a positive distance.
//! Keys are byte-comparable forms; a payload is a four-bit flag and bytes whose meaning is the
//! owner's (`partition_index`, `row_index`). Agrees with `org.apache.cassandra.io.tries`;
//! docs/formats, "Trie nodes" and "Page packing".

mod node;
mod reader;
mod writer;

pub(crate) use crate::index_file::PAGE_SIZE;
pub use node::Node;
pub use reader::{Trie, TrieCursor};
pub(crate) use writer::common_prefix;
pub use writer::{PagedBuffer, Payload, TrieWriter};
