//! Compaction: several SSTables of a table become few, and data that nothing needs any more is
//! left out.
//!
//! A [`strategy`] is a function from the table's state to a choice, which [`choice`] asks for and
//! marks; an operator asks for an [`operation`]. `crate::compactor` carries both out, [`task`] by
//! task: [`run`] writes SSTables, `crate::verify` reads them. The set of files changes in one
//! step: the new SSTables are complete and synced before the old ones go, and a transaction log on
//! disk finishes or undoes what a crash interrupts.

pub mod choice;
pub(crate) mod disk_space;
mod meter;
mod owned_ranges;
pub mod purge;
pub(crate) mod rewrite_statistics;
pub(crate) mod run;
pub(crate) mod shadow_sources;
pub(crate) mod task;

pub use crate::requests::{operations as operation, progress};
pub use crate::strategy::{self, kind};
