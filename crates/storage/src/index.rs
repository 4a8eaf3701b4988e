//! Secondary indexes. Those of legacy kind: hidden tables that are kept up with their base table
//! and answer reads by value.
//!
//! - [`crate::table::entries`]: the entries of an index that follow from a write to the base;
//! - an [`crate::table::indexes::IndexStore`]: the hidden table's SSTables, a
//!   [`crate::table::TableStore`] like any other (compaction, snapshots, scrub know no difference);
//! - its memtables hang on those of the base: inside the base's door a write is applied to both,
//!   they are frozen together, flushed together (the index first), and the log's records of the
//!   base are the index's ([`crate::table::memtable`]);
//! - [`search`]: reading the base by an index;
//! - [`prefill`]: the entries of SSTables that are about to be added;
//! - [`build`]: making an index of the rows that a table already has;
//! - [`built`]: which indexes are complete, in `system."IndexInfo"`.
//!
//! Storage-attached indexes are in [`attached`].
//!
//! docs/notes/0006-indexes.md has the reasons. Agrees with
//! `org.apache.cassandra.index.internal.CassandraIndex`.

pub mod attached;
pub mod build;
pub mod built;
pub mod compacted;
pub(crate) mod prefill;
pub mod search;
