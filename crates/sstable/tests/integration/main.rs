//! SSTables against files of Cassandra, and against a naive twin.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::unwrap_used)]

mod damage;
mod dump;
mod fixtures;
mod golden;
mod invariants;
mod legacy;
mod missing;
mod model;
mod reads;
mod rewrite;
mod salvage;
mod sectors;
