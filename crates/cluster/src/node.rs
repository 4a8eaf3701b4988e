//! The node: what its requests share. State only: [`crate::start`] makes it, and each verb is a
//! module beside it.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use arc_swap::ArcSwap;
use env::{Env, Wake};
use ring::Ring;
use rows::limits::{GroupSelector, GroupValues};
use rows::{Mutation, ReadError, Row};
use schema::{Schema, TableId, TableMetadata};
use stdx::ByteBudget;
use storage::{Engine, StorageError};
use tokio::sync::Semaphore;
use types::{DecoratedKey, Token};

use crate::batch_replay::BatchReplay;
use crate::cas_metrics::CasMetrics;
use crate::clock::{TimeUuids, WriteClock};
use crate::handoff::Handoff;
use crate::identity::{Identity, local_table};
use crate::in_flight_requests::InFlightRequests;
use crate::log_limiter::LogLimiter;
use crate::membership_state::{MembershipState, UNANSWERED_MAX};
use crate::out_of_range_state::OutOfRangeRequests;
use crate::paxos::PaxosOptions;
use crate::range_movement_state::BootstrapState;
use crate::read_repair_metrics::ReadRepairMetrics;
use crate::repair_state::Repairs;
use crate::replica::Replica;
use crate::sampling::Sampling;
use crate::spans::SpanExporter;
use crate::streaming_state::StreamingState;
use crate::stripes::Stripes;
use crate::system_rows::{self, SystemRow};
use crate::thresholds::ReadSizes;
use crate::view_tasks::ViewTasks;

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
    /// The timeouts in the cassandra.yaml that 5.0 is shipped with.
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

/// `cached_rows_warn_threshold` and `cached_rows_fail_threshold` of `replica_filtering_protection`:
/// rows that the protection of one read holds, counted once for each replica.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProtectionLimits {
    /// A read that holds more rows warns its client.
    pub warn: u32,
    /// A read that holds more rows is refused as OVERLOADED.
    pub fail: u32,
}

impl Default for ProtectionLimits {
    fn default() -> Self {
        Self { warn: 2_000, fail: 32_000 }
    }
}

/// Told of a change that came from another node: the schema before and after it.
pub type SchemaListener = Box<dyn Fn(&Schema, &Schema) + Send + Sync>;

/// Looks up the function of a GROUP BY that is applied to the last of so many clustering columns
/// of a table. Err: a sentence that there is no such function.
pub type LookUpGroups =
    dyn Fn(&Schema, &TableMetadata, u32, &GroupSelector) -> Result<Arc<dyn GroupValues>, String> + Send + Sync;

/// This node.
pub struct Node {
    /// Its storage: for the replica, for what operators ask and for what the node keeps about
    /// itself.
    pub(crate) engine: Arc<Engine>,
    /// Clock, disk, network and threads.
    pub env: Env,
    /// Names, host id, tokens and addresses of this node.
    pub identity: Identity,
    /// Gives write timestamps.
    pub clock: Arc<WriteClock>,
    /// Writes to disk how far `clock` has come; None: nothing may be written.
    pub(crate) _clock_mark: Option<Wake>,
    /// Keeps `system.size_estimates`.
    pub(crate) size_estimates: OnceLock<Wake>,
    /// Makes ids.
    pub uuids: TimeUuids,
    pub(crate) timeouts: ArcSwap<Timeouts>,
    /// `trace_type_query_ttl`, in seconds: the lifetime of rows of traced requests.
    pub trace_ttl: AtomicU32,
    /// Takes the spans of requests; not set: no spans are made.
    pub(crate) spans: OnceLock<Arc<dyn SpanExporter>>,
    /// How functions of GROUP BY that other coordinators name are looked up; not set: they are
    /// refused.
    pub(crate) group_functions: OnceLock<Box<LookUpGroups>>,
    /// Limits of the protection of answers that replicas have filtered.
    pub(crate) protection: ArcSwap<ProtectionLimits>,
    /// How this node coordinates conditional statements among several nodes.
    pub(crate) paxos: ArcSwap<PaxosOptions>,
    /// `read_thresholds_enabled`: as a coordinator this node asks replicas which thresholds its
    /// reads exceed.
    pub(crate) tracks_thresholds: AtomicBool,
    /// The state behind the verbs that coordinators ask of this node.
    pub(crate) replica: Replica,
    /// The ring as it is known now.
    pub(crate) ring: ArcSwap<Ring>,
    /// One permit for each scan among nodes that may have a thread for long jobs.
    pub(crate) scans: Arc<Semaphore>,
    /// One permit for each truncation that may be under way.
    pub(crate) truncations: Arc<Semaphore>,
    /// Samples of reads and writes, while somebody asks for them.
    pub sampling: Arc<Sampling>,
    /// Locks of rows in which counters are being incremented.
    pub(crate) counter_locks: Stripes,
    /// Locks of partitions on which a conditional statement is under way.
    pub(crate) partition_locks: Stripes,
    /// Figures of conditional statements.
    pub cas: CasMetrics,
    /// Figures of read repairs.
    pub read_repairs: ReadRepairMetrics,
    /// Counts of requests for tokens of which this node has no copy.
    pub(crate) out_of_range: OutOfRangeRequests,
    /// Limits the log to a line now and then about messages that do not fit the schema.
    pub(crate) incompatible: LogLimiter,
    /// Limits the log to a line now and then about hints for tables that are left out.
    pub(crate) left_out_hints: LogLimiter,
    /// The state of the replay of logged batches.
    pub(crate) batch_replay: BatchReplay,
    /// Hinted handoff: which mutations are kept for others, and how fast they are sent.
    pub(crate) handoff: Handoff,
    /// Streams of SSTables from and to others.
    pub(crate) streaming_state: StreamingState,
    /// Repairs that this node coordinates or takes part in.
    pub(crate) repairs: Repairs,
    /// The place of this node among the others; empty while it is alone.
    pub(crate) membership_state: MembershipState,
    /// This node, for work that outlives a request. Set when it joins a ring.
    pub(crate) this: OnceLock<Weak<Self>>,
    /// Requests of the others that are not answered yet.
    pub(crate) in_flight_requests: InFlightRequests,
    /// Held while the schema changes, and until the files of dropped indexes are gone.
    pub(crate) schema_changes: Arc<tokio::sync::Mutex<()>>,
    /// The builds of materialized views.
    pub(crate) view_tasks: ViewTasks,
    /// Told of schema changes that other nodes have made.
    pub(crate) schema_listener: OnceLock<SchemaListener>,
}

impl Node {
    /// Writes the version of the schema in force to `system.local.schema_version`.
    pub(crate) fn write_schema_version(&self) {
        let table = local_table(&self.engine);
        let version = self.engine.schema().version.to_vec();
        let row = SystemRow::new(&table, &[b"local"], &[], self.clock.next_micros(), None);
        if let Err(error) = self.engine.apply(&[row.set("schema_version", version).finish()]) {
            tracing::error!(%error, "the schema version cannot be written to system.local");
        }
        self.tell_schema_version();
    }

    /// Writes to `system.local.bootstrapped` that the node is a complete member of its ring, so
    /// that it does not fetch data at its next start.
    pub(crate) fn write_bootstrapped(&self) {
        let table = local_table(&self.engine);
        let row = SystemRow::new(&table, &[b"local"], &[], self.clock.next_micros(), None);
        if let Err(error) =
            self.engine.apply(&[row.set("bootstrapped", BootstrapState::Completed.text().as_bytes()).finish()])
        {
            tracing::error!(%error, "it cannot be written to system.local that the node has joined");
        }
    }

    /// Sets the port that the native transport listens on.
    pub fn set_native_port(&self, port: u16) {
        let table = local_table(&self.engine);
        let row = SystemRow::new(&table, &[b"local"], &[], self.clock.next_micros(), None);
        let row = row.set("rpc_port", i32::from(port).to_be_bytes().to_vec());
        if let Err(error) = self.engine.apply(&[row.finish()]) {
            tracing::error!(%error, "the port cannot be written to system.local");
        }
    }

    /// The ring at this moment.
    pub fn ring(&self) -> Arc<Ring> {
        self.ring.load_full()
    }

    /// The schema in force.
    pub fn schema(&self) -> Arc<Schema> {
        self.engine.schema()
    }

    /// The present timeouts.
    pub fn timeouts(&self) -> Timeouts {
        **self.timeouts.load()
    }

    /// Changes the timeouts.
    pub fn set_timeouts(&self, timeouts: Timeouts) {
        self.timeouts.store(Arc::new(timeouts));
    }

    /// Sets the limits of the protection of answers that replicas have filtered.
    pub fn set_protection(&self, limits: ProtectionLimits) {
        self.protection.store(Arc::new(limits));
    }

    /// Whether replicas are asked which thresholds reads exceed.
    pub(crate) fn tracks_thresholds(&self) -> bool {
        self.tracks_thresholds.load(Ordering::Relaxed)
    }

    /// Sets whether replicas are asked which thresholds reads exceed.
    pub fn set_tracks_thresholds(&self, tracks: bool) {
        self.tracks_thresholds.store(tracks, Ordering::Relaxed);
    }

    /// Gives this node's thresholds on sizes of reads. They can be given once.
    pub fn set_read_sizes(&self, sizes: ReadSizes) {
        if !sizes.is_empty() {
            let _ = self.replica.read_sizes.set(sizes);
        }
    }

    /// Sets the bytes that writes may keep until all of their replicas have answered. Called once,
    /// before the node joins.
    pub fn set_unanswered_max(&self, bytes: usize) {
        let _ = self.membership_state.unanswered.set(ByteBudget::new(bytes));
    }

    /// The bytes that writes keep until all of their replicas have answered.
    pub(crate) fn unanswered(&self) -> &Arc<ByteBudget> {
        self.membership_state.unanswered.get_or_init(|| ByteBudget::new(UNANSWERED_MAX))
    }

    /// How this node coordinates conditional statements among several nodes.
    pub(crate) fn paxos(&self) -> Arc<PaxosOptions> {
        self.paxos.load_full()
    }

    /// Changes how this node coordinates conditional statements among several nodes.
    pub fn set_paxos(&self, options: PaxosOptions) {
        self.replica.set_paxos_purging(options.purging);
        self.paxos.store(Arc::new(options));
    }

    /// Whether nothing may be changed (`--read-only`).
    pub fn is_read_only(&self) -> bool {
        self.engine.options.read_only
    }

    /// The live rows of a small built-in table, with their keys: all at once, and not on a worker.
    pub fn read_system_rows(&self, table: &Arc<TableMetadata>) -> Result<Vec<(DecoratedKey, Row)>, ReadError> {
        system_rows::read(&self.engine, table, None)
    }

    /// Writes rows of built-in tables without waiting until the log is durable.
    pub fn write_system_rows(&self, rows: &[Mutation]) -> Result<(), StorageError> {
        self.engine.apply(rows).map(drop)
    }

    /// The shard of a token on this node, and how many shards there are.
    pub fn shard_of(&self, token: Token) -> (usize, usize) {
        let shards = self.engine.shards;
        (shards.of(token), shards.count())
    }

    /// Counts a read of a table that was refused because it passed too many tombstones.
    pub fn count_tombstone_failure(&self, table: TableId) {
        if let Some(store) = self.engine.table(table) {
            store.metrics.tombstone_failures.add(1);
        }
    }

    /// Counts a read of a table that passed so many tombstones that its client is warned.
    pub fn count_tombstone_warning(&self, table: TableId) {
        if let Some(store) = self.engine.table(table) {
            store.metrics.tombstone_warnings.add(1);
        }
    }
}
