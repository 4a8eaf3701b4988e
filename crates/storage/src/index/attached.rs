//! Storage-attached indexes (SAI): entries beside each SSTable, made from it, and entries of rows
//! in memory, which are in memtables that belong to those of the base as with a legacy index.
//!
//! - [`components`]: which components an SSTable has, opening and removing them;
//! - [`components_builder`]: makes them from the rows of an SSTable; [`build`]: for all SSTables,
//!   in the background;
//! - [`sources`], [`search`]: read the base by one or several indexes; [`scanned`]: first by a
//!   scan, where much of the base is wanted;
//! - [`guard`]: how many SSTables a search may look into;
//! - [`nearest`]: the rows whose vectors are nearest to a given one.
//!
//! What must hold: an SSTable has the components of every index of its table before it is in the
//! view; the memtable of an index is given up only behind that. So a read that loads the entries in
//! memory first and the base's view second misses nothing. No entry is removed, except that of a
//! replaced vector in memory: a stale entry names a row that the read of the base, and the
//! statement's conditions, leave out.
//!
//! docs/notes/0017-attached-indexes.md has the reasons. Its answers agree with
//! `org.apache.cassandra.index.sai.StorageAttachedIndex`.

pub(crate) mod build;
pub(crate) mod components;
pub(crate) mod components_builder;
pub(crate) mod guard;
pub(crate) mod nearest;
pub(crate) mod scanned;
pub(crate) mod search;
mod sources;
