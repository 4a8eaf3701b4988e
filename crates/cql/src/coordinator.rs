//! What the execution of statements needs from the node: the schema, clocks, writes, reads. The border between CQL and
//! everything that stores: a node of one, later a ring.
//!
//! Must hold: no statement assumes that data is local; a mutation and a read command are plain values.

mod cas;

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;

use rows::report::ReadReport;
use rows::{Mutation, PartitionStream, PartitionUpdate, ReadCommand};
use schema::{Schema, TableMetadata};
use stdx::Share;
use types::{BatchKind, Consistency, DecoratedKey};

use crate::auth::Roles;
use crate::error::CqlError;
use crate::result::SchemaEvent;
use crate::sources::Sources;

pub use cas::CasPartition;

/// `default_secondary_index` of Cassandra 5.0: an index without USING is of this kind.
pub const LEGACY_INDEX: &str = "legacy_local_table";

/// What goes along with a write.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WriteOptions {
    /// How many replicas must have it.
    pub consistency: Consistency,
    /// The mutations belong to a logged batch of more than one partition: all of them happen, or none.
    pub logged_batch: bool,
    /// They are what a batch makes of its statements.
    pub batch: Option<BatchKind>,
    /// The mutations are of counters: what they hold are increments, to be added to what is there (`rows::counter`).
    pub counters: bool,
}

/// What goes along with a read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ReadOptions {
    /// How many replicas must answer.
    pub consistency: Consistency,
}

/// A conditional write of one partition.
#[derive(Clone, PartialEq, Debug)]
pub struct CasRequest {
    /// What must be known to decide. Of one key.
    pub command: ReadCommand,
    /// The first live row says enough.
    pub first_row_only: bool,
    /// tombstone_failure_threshold
    pub tombstone_failure: u64,
    /// SERIAL or LOCAL_SERIAL: how many replicas must agree.
    pub serial: Consistency,
    /// How many replicas must have what is written.
    pub commit: Consistency,
}

/// A change of the schema: a function of the schema as it is when the change has its turn.
/// Gives the new schema and what is told to clients; None when there is nothing to change (`IF NOT EXISTS`).
pub struct SchemaChange {
    /// The function. May be called more than once.
    #[allow(clippy::type_complexity)]
    pub apply: Box<dyn Fn(&Schema) -> Result<Option<(Schema, SchemaEvent)>, CqlError> + Send + Sync>,
}

/// The cluster, as far as schema statements and DESCRIBE CLUSTER know it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClusterInfo {
    /// cluster_name
    pub name: String,
    /// The partitioner's class, without its package.
    pub partitioner: String,
    /// The snitch's class, without its package.
    pub snitch: String,
    /// The datacenters that have nodes.
    pub data_centers: Vec<String>,
    /// `default_secondary_index`; None where `default_secondary_index_enabled` is off.
    pub default_index: Option<String>,
    /// `default_compaction`: what a table gets that is created without, as it is stored.
    pub default_compaction: Arc<BTreeMap<String, String>>,
    /// Tokens, each with the node it belongs to as `/address:port`.
    pub ring: Vec<(i64, String)>,
}

impl Default for ClusterInfo {
    /// What a node without configuration is in.
    fn default() -> Self {
        Self {
            name: "Test Cluster".to_owned(),
            partitioner: "Murmur3Partitioner".to_owned(),
            snitch: "DynamicEndpointSnitch".to_owned(),
            data_centers: vec!["datacenter1".to_owned()],
            default_index: Some(LEGACY_INDEX.to_owned()),
            default_compaction: Arc::new(schema::TableParams::default().compaction),
            ring: Vec::new(),
        }
    }
}

/// The node, as statements see it.
pub trait Coordinator {
    /// The schema of this moment.
    fn schema(&self) -> Arc<Schema>;

    /// Clock for write timestamps, microseconds since 1970. Never the same twice in a row, never going back.
    fn now_micros(&self) -> i64;

    /// Clock for expiry and deletion times, seconds since 1970.
    fn now_seconds(&self) -> u32 {
        u32::try_from(self.now_micros() / 1_000_000).unwrap_or(0)
    }

    /// A time UUID never given before, at the present time.
    fn next_timeuuid(&self) -> [u8; 16];

    /// A random (version 4) UUID.
    fn random_uuid(&self) -> [u8; 16];

    /// The cluster it is in.
    fn cluster(&self) -> ClusterInfo {
        ClusterInfo::default()
    }

    /// Roles and permissions as they are now. Where nobody has to log in they are not kept.
    fn roles(&self) -> Arc<Roles> {
        Arc::default()
    }

    /// The hash of a password, as `system_auth.roles` holds it. It takes a tenth of a second of CPU: not on this thread.
    fn hash_password(&self, _password: String) -> impl Future<Output = Result<String, CqlError>> {
        std::future::ready(Err(CqlError::unsupported("Passwords are")))
    }

    /// Applies mutations; durable as configured when it returns.
    fn mutate(&self, mutations: Vec<Mutation>, options: &WriteOptions) -> impl Future<Output = Result<(), CqlError>>;

    /// Reads, decides and writes as one step: of several on a partition each sees what the one before it wrote. `decide` is given what
    /// is there and the timestamp to write with, which is greater than all that was read; it may be called again with another.
    /// None: nothing is written. An ordinary write in between is not kept out.
    fn compare_and_set<F>(&self, request: CasRequest, decide: F) -> impl Future<Output = Result<(), CqlError>>
    where
        F: FnMut(CasPartition, i64) -> Result<Option<PartitionUpdate>, CqlError>;

    /// The memory that results may take until they are sent. None: it is not counted.
    fn results(&self) -> Option<&Arc<Share>> {
        None
    }

    /// Builds something from the stream of a read. Several commands (of one table) are read one after the other, as one stream.
    /// `build` may be run again from scratch: first it runs on the worker, and in the background when that would wait.
    fn read<T, F>(
        &self,
        commands: Vec<ReadCommand>,
        options: &ReadOptions,
        build: F,
    ) -> impl Future<Output = Result<T, CqlError>>
    where
        T: Send + 'static,
        F: Fn(&mut dyn PartitionStream) -> Result<T, CqlError> + Send + Sync + 'static;

    /// A read of the table passed many tombstones: `warning` says so to the client.
    fn tombstones_passed(&self, _table: &TableMetadata, _warning: &str) {}

    /// What [`Coordinator::read`] would take, for EXPLAIN: no data is read.
    fn explain_read(
        &self,
        _commands: Vec<ReadCommand>,
        _options: &ReadOptions,
    ) -> impl Future<Output = Result<ReadReport, CqlError>> {
        std::future::ready(Ok(ReadReport::default()))
    }

    /// [`Coordinator::read`], and what it took.
    fn analyze_read<T, F>(
        &self,
        commands: Vec<ReadCommand>,
        options: &ReadOptions,
        build: F,
    ) -> impl Future<Output = Result<(T, ReadReport), CqlError>>
    where
        T: Send + 'static,
        F: Fn(&mut dyn PartitionStream) -> Result<T, CqlError> + Send + Sync + 'static,
    {
        let read = self.read(commands, options, build);
        async { Ok((read.await?, ReadReport::default())) }
    }

    /// What adding increments would read, for EXPLAIN: no data is read.
    fn explain_increments(&self, _mutations: &[Mutation]) -> impl Future<Output = Result<ReadReport, CqlError>> {
        std::future::ready(Ok(ReadReport::default()))
    }

    /// From now on reads that conditions and increments do are watched.
    fn observe_reads(&self) {}

    /// What was seen of them.
    fn observed_reads(&self) -> ReadReport {
        ReadReport::default()
    }

    /// A clock that only grows, microseconds from anywhere: for telling how long something took.
    fn monotonic_micros(&self) -> u64 {
        0
    }

    /// The shard of a partition on this node, of how many. None: it has no shards.
    fn shard_of(&self, _key: &DecoratedKey) -> Option<(usize, usize)> {
        None
    }

    /// Changes the schema; stored, published and in force when it returns. None: there was nothing to change.
    fn change_schema(&self, change: SchemaChange) -> impl Future<Output = Result<Option<SchemaEvent>, CqlError>>;

    /// Drops all data of a table.
    fn truncate(&self, table: &Arc<TableMetadata>) -> impl Future<Output = Result<(), CqlError>>;
}

impl<C: Coordinator> Sources for C {
    fn micros(&self) -> i64 {
        self.now_micros()
    }
    fn timeuuid(&self) -> [u8; 16] {
        self.next_timeuuid()
    }
    fn uuid(&self) -> [u8; 16] {
        self.random_uuid()
    }
}
