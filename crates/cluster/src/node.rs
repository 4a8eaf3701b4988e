//! The node: the engine with an identity, clocks and ids, as requests use it.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use env::{Env, Wake};
use ring::Ring;
use schema::{Schema, TableId};
use storage::Engine;
use types::Token;

use crate::batchlog::BatchLog;
use crate::clock::{TimeUuids, WriteClock};
use crate::error::NodeError;
use crate::identity::{Identity, IdentityOptions, local_table};
use crate::replica::Replica;
use crate::sampling::Sampling;
use crate::stripes::Stripes;
use crate::system_rows::SystemRow;
use crate::{clock_mark, compaction_history, size_estimates, topology};

/// How long requests may take. Changed at run time by `nodetool settimeout`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timeouts {
    /// read_request_timeout
    pub read: Duration,
    /// range_request_timeout
    pub range: Duration,
    /// write_request_timeout
    pub write: Duration,
    /// truncate_request_timeout
    pub truncate: Duration,
    /// counter_write_request_timeout
    pub counter_write: Duration,
    /// cas_contention_timeout
    pub cas_contention: Duration,
    /// request_timeout: kept and shown
    pub misc: Duration,
}

impl Default for Timeouts {
    /// What cassandra.yaml of 5.0 says.
    fn default() -> Self {
        Self {
            read: Duration::from_secs(5),
            range: Duration::from_secs(10),
            write: Duration::from_secs(2),
            truncate: Duration::from_secs(60),
            counter_write: Duration::from_secs(5),
            cas_contention: Duration::from_millis(1800),
            misc: Duration::from_secs(10),
        }
    }
}

/// This node.
pub struct Node {
    /// Its storage.
    pub engine: Arc<Engine>,
    /// The outside.
    pub env: Env,
    /// Who it is.
    pub identity: Identity,
    /// Write timestamps.
    pub clock: Arc<WriteClock>,
    /// Marks how far it is.
    _clock_mark: Option<Wake>,
    /// Keeps `system.size_estimates`.
    _size_estimates: Option<Wake>,
    /// Ids.
    pub uuids: TimeUuids,
    timeouts: ArcSwap<Timeouts>,
    /// What it does for coordinators.
    pub(crate) replica: Replica,
    /// The ring as it is known now.
    pub(crate) ring: ArcSwap<Ring>,
    /// Samples of reads and writes, while somebody asks for them.
    pub sampling: Arc<Sampling>,
    /// Of rows in which counters are being incremented.
    pub(crate) counter_locks: Stripes,
    /// Of partitions on which a conditional statement is under way.
    pub(crate) partition_locks: Stripes,
    /// Of logged batches.
    pub(crate) batch_log: BatchLog,
    /// Held while the schema changes, and until the files of dropped indexes are gone.
    pub(crate) schema_changes: Arc<tokio::sync::Mutex<()>>,
}

impl Node {
    /// A node on an engine: finds or makes its identity, writes `system.local`, applies batches that a crash left.
    pub fn open(engine: Arc<Engine>, options: IdentityOptions, timeouts: Timeouts) -> Result<Arc<Self>, NodeError> {
        let env = engine.env.clone();
        let (clock, clock_mark) = clock_mark::open(&engine);
        let uuids = TimeUuids::new(&env);
        let identity = Identity::find(&engine, &env, &uuids, options)?;
        engine.set_host_id(identity.host_id);
        compaction_history::keep(&engine);
        let size_estimates = size_estimates::keep(&engine, &identity.tokens, &clock);
        let timeouts = ArcSwap::from_pointee(timeouts);
        let (counter_locks, partition_locks) = (Stripes::default(), Stripes::default());
        let schema_changes = Arc::default();
        let sampling = Arc::default();
        let replica = Replica::new(&engine, &sampling);
        let ring = ArcSwap::from_pointee(topology::ring_of_one(&identity, &engine.schema()));
        let node = Self {
            engine,
            env,
            identity,
            clock,
            _clock_mark: clock_mark,
            _size_estimates: size_estimates,
            uuids,
            timeouts,
            replica,
            ring,
            sampling,
            counter_locks,
            partition_locks,
            batch_log: BatchLog::default(),
            schema_changes,
        };
        match node.replay_batches() {
            Ok(0) => {}
            Ok(replayed) => tracing::info!(batches = replayed, "logged batches that were under way are applied"),
            Err(error) => tracing::error!(%error, "the batch log cannot be replayed; it is tried again"),
        }
        node.write_local()?;
        let node = Arc::new(node);
        node.keep_replaying_batches();
        Ok(node)
    }

    fn write_local(&self) -> Result<(), NodeError> {
        let table = local_table(&self.engine);
        let version = self.engine.schema().version;
        self.engine.apply(&[self.identity.row(&table, version, self.clock.next_micros())])?;
        Ok(())
    }

    /// `system.local.schema_version` becomes that of the schema in force.
    pub(crate) fn write_schema_version(&self) {
        let table = local_table(&self.engine);
        let version = self.engine.schema().version.to_vec();
        let row = SystemRow::new(&table, &[b"local"], &[], self.clock.next_micros(), None);
        if let Err(error) = self.engine.apply(&[row.set("schema_version", version).finish()]) {
            tracing::error!(%error, "the schema version cannot be written to system.local");
        }
    }

    /// The native transport has chosen its port.
    pub fn set_native_port(&self, port: u16) {
        let table = local_table(&self.engine);
        let row = SystemRow::new(&table, &[b"local"], &[], self.clock.next_micros(), None);
        let row = row.set("rpc_port", i32::from(port).to_be_bytes().to_vec());
        if let Err(error) = self.engine.apply(&[row.finish()]) {
            tracing::error!(%error, "the port cannot be written to system.local");
        }
    }

    /// The schema in force.
    pub fn schema(&self) -> Arc<Schema> {
        self.engine.schema()
    }

    /// The present timeouts.
    pub fn timeouts(&self) -> Timeouts {
        **self.timeouts.load()
    }

    /// Changes them.
    pub fn set_timeouts(&self, timeouts: Timeouts) {
        self.timeouts.store(Arc::new(timeouts));
    }

    /// The shard of a token on this node, and how many shards there are.
    pub fn shard_of(&self, token: Token) -> (usize, usize) {
        let shards = self.engine.shards;
        (shards.of(token), shards.count())
    }

    /// A read of a table was refused: it passed more tombstones than it may.
    pub fn count_tombstone_failure(&self, table: TableId) {
        if let Some(store) = self.engine.table(table) {
            store.metrics.tombstone_failures.add(1);
        }
    }

    /// A read of a table passed so many tombstones that its client is warned.
    pub fn count_tombstone_warning(&self, table: TableId) {
        if let Some(store) = self.engine.table(table) {
            store.metrics.tombstone_warnings.add(1);
        }
    }
}
