//! The engine as a whole on a simulated machine: random histories with flushes, compactions, kills,
//! power cuts and disk faults, against a naive twin.

mod anticompaction;
mod beside;
mod caches;
mod clustering_orders;
mod common;
mod disk_policies;
mod dropped_columns;
mod dropping;
mod expiring;
mod failing;
mod filters;
mod flush_periods;
mod guarded;
mod index_cases;
mod indexes;
mod merging;
mod model;
mod obsolete;
mod outside;
mod pacing;
mod passing;
mod purged_log;
mod purging;
mod receiving;
mod restart;
mod seeds;
mod shortages;
mod skipping;
mod snapshots;
mod static_form;
mod tombstones;
mod truncating;
mod twin;
mod views;
mod wide;
