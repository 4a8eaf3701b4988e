//! The verbs of a node that serves a coordinator, itself included: it applies mutations and reads
//! the rows that it has.
//!
//! The engine is behind this: a coordinator asks a replica and never the engine. This node is asked
//! by a call, nothing is serialised. Files: [`apply`] for writes, [`read`] for reads, [`answer`]
//! for reads whose answer may leave this node, [`paxos`] for conditional statements. Requests of
//! other nodes come through [`crate::serve`].

mod answer;
pub mod apply;
mod forecast;
pub(crate) mod paxos;
pub mod read;
pub(crate) mod views;

use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use env::Env;
use rows::ReadError;
use schema::TableMetadata;
use storage::Engine;
use storage::commitlog::LogPosition;
use types::DecoratedKey;

use crate::paxos::PaxosPurging;
use crate::sampling::Sampling;
use crate::stripes::Stripes;
use crate::thresholds::ReadSizes;
use forecast::Forecast;

/// This node as a replica.
pub(crate) struct Replica {
    engine: Arc<Engine>,
    /// Clock, disk and threads.
    env: Env,
    /// Remembers which reads are long.
    forecast: Arc<Forecast>,
    /// Samples of reads and writes, while somebody asks for them.
    sampling: Arc<Sampling>,
    /// Locks of partitions whose state of Paxos is being changed.
    paxos_locks: Stripes,
    /// Thresholds on sizes of reads. Set once, before the node serves.
    pub(crate) read_sizes: OnceLock<ReadSizes>,
    /// The ballots up to which repairs of Paxos have completed everything.
    paxos_bounds: Arc<paxos::Bounds>,
    /// How long states of Paxos are kept.
    paxos_purging: Arc<ArcSwap<PaxosPurging>>,
    /// Writes to tables with materialized views.
    pub(crate) views: views::Views,
}

impl Replica {
    /// A replica over an engine.
    pub fn new(engine: &Arc<Engine>, sampling: &Arc<Sampling>) -> Result<Self, ReadError> {
        Ok(Self {
            engine: Arc::clone(engine),
            env: engine.env.clone(),
            forecast: Arc::default(),
            sampling: Arc::clone(sampling),
            paxos_locks: Stripes::default(),
            read_sizes: OnceLock::new(),
            paxos_bounds: Arc::new(paxos::Bounds::read(engine)?),
            paxos_purging: Arc::new(ArcSwap::from_pointee(PaxosPurging::Legacy)),
            views: views::Views::default(),
        })
    }

    /// The log position up to which everything is durable that a read of a partition can have seen;
    /// None: nothing of it is in memtables.
    pub fn position_of(&self, table: &TableMetadata, key: &DecoratedKey) -> Option<LogPosition> {
        let store = self.engine.table(table.id)?;
        store.last_logged(self.engine.shards.of(key.token))
    }
}
