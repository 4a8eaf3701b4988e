//! Compaction: several SSTables of a table become one, and what nothing needs any more is left out.
//!
//! A strategy is a function from the table's state to a choice ([`size_tiered`], applied in [`choice`]); an operator asks for an
//! [`operation`]. [`worker`] has both carried out, [`task`] by task: [`run`] writes SSTables, `crate::verify` reads them. The set of files changes in one step: the new SSTable is complete and synced
//! before the old ones go, and a transaction log on disk finishes or undoes what a crash interrupts.

pub mod choice;
pub mod kind;
pub mod operation;
pub mod progress;
pub(crate) mod run;
pub mod size_tiered;
pub(crate) mod task;
pub mod worker;

/// What a strategy sees of an SSTable.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Candidate {
    /// Its place in the caller's list.
    pub index: usize,
    /// Bytes of its data file.
    pub size: u64,
    /// Smallest timestamp in it.
    pub min_timestamp: i64,
    /// Estimated share of its cells that are droppable tombstones, 0 to 1.
    pub droppable_tombstones: f64,
    /// Seconds since it was written.
    pub age: u32,
}
