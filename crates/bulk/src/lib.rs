//! Bulk loads: SSTables from outside of a ring, streamed into it by a program that is no member.
//!
//! 1. The ring, the keyspace and the table are asked of one node over the native protocol
//!    ([`native`], [`target`]).
//! 2. Each SSTable is opened with the ring's table; what does not fit it is refused before a byte
//!    flows ([`columns`]).
//! 3. Each replica is to get the part of each SSTable that lies in its ranges ([`plan`]).
//! 4. The parts go over sessions of streams ([`session`], [`sender`]), all replicas at once.
//!
//! Before step 1, [`schema_creation`] can make keyspaces, types, tables, indexes and views that
//! the ring lacks. Tables that are loaded in several parts forget no deletions meanwhile
//! ([`grace`]).
//!
//! Rows keep their timestamps, so that a load which failed half-way is repeated as it was. Memory
//! does not grow with the SSTables. Agrees with `org.apache.cassandra.tools.BulkLoader`,
//! `io.sstable.SSTableLoader` and `utils.NativeSSTableLoaderClient`.

#![forbid(unsafe_code)]

mod columns;
#[doc(hidden)]
pub mod fuzzing;
mod grace;
mod native;
mod options;
mod peer_connector;
mod plan;
mod run;
mod schema_creation;
mod sender;
mod session;
mod target;
mod watch;

pub use grace::{GraceChange, Graces, RAISE, TableName, change_graces, graces, learn_graces, set_graces};
pub use native::{Access, Answer, NativeConnection};
pub use options::{Options, Throttle};
pub use run::{LoadResult, PeerResult, load, run};
pub use schema_creation::{WantedKeyspace, WantedTable, complete_schema, creates_view, make_schema};
pub use watch::{Planned, Watch};
