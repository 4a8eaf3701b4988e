//! The interface between CQL and the node: the schema, clocks, reads and writes that executing a
//! statement needs. The server implements it.
//!
//! Must hold: no statement assumes that data is on this node. Mutations and read commands are plain
//! values that could be sent to another node.

mod cas;

use std::collections::BTreeMap;
use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use rows::{Mutation, PartitionStream, PartitionUpdate, ReadCommand, WantedRows};
use schema::{Schema, TableMetadata};
use stdx::ByteBudget;
use types::{BatchKind, Consistency};

use crate::auth::{Roles, RolesOf};
use crate::error::CqlError;
use crate::result::SchemaEvent;
use crate::sources::Sources;

pub use crate::sources::{EXPIRATION_MAX, EXPIRATION_MAX_CASSANDRA_4};
pub use cas::CasPartition;

/// `default_secondary_index` of Cassandra 5.0: an index without USING is of this kind.
pub const LEGACY_INDEX: &str = "legacy_local_table";

/// Options of a write.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WriteOptions {
    /// How many replicas must acknowledge the write.
    pub consistency: Consistency,
    /// The mutations belong to a logged batch of more than one partition: after a crash either all
    /// of them are applied or none.
    pub logged_batch: bool,
    /// The kind of the batch that the mutations come from; None: they do not come from a batch.
    pub batch: Option<BatchKind>,
    /// The mutations are of counter tables: their cells are increments to be added to the stored
    /// counts (`rows::counter`).
    pub counters: bool,
}

/// Options of a read.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ReadOptions {
    /// How many replicas must answer.
    pub consistency: Consistency,
    /// The rows that are looked for among those of the commands; None: all of them are wanted.
    pub wanted_rows: Option<Arc<WantedRows>>,
}

/// A conditional write to one partition.
#[derive(Clone, PartialEq, Debug)]
pub struct CasRequest {
    /// The read that the decision is based on; its range is one key.
    pub command: ReadCommand,
    /// The decision needs no more than the first live row.
    pub first_row_only: bool,
    /// tombstone_failure_threshold
    pub tombstone_failure: u64,
    /// SERIAL or LOCAL_SERIAL: which replicas must agree on the decision.
    pub serial: Consistency,
    /// How many replicas must acknowledge the write that follows.
    pub commit: Consistency,
}

/// A change of the schema, as a function from the schema in force when the change is its turn to
/// the new schema and the event for clients. The function returns None if there is nothing to
/// change, as with `IF NOT EXISTS`.
pub struct SchemaChange {
    /// The function. It may be called more than once, if the schema changes in between.
    #[allow(clippy::type_complexity)]
    pub apply: Box<dyn Fn(&Schema) -> Result<Option<(Schema, SchemaEvent)>, CqlError> + Send + Sync>,
}

/// The facts about the cluster that schema statements and DESCRIBE CLUSTER need.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClusterInfo {
    /// cluster_name
    pub name: String,
    /// The partitioner's class, without its package.
    pub partitioner: String,
    /// The snitch's class, without its package.
    pub snitch: String,
    /// The datacenters that have nodes, with the number of their nodes.
    pub data_centers: BTreeMap<String, usize>,
    /// Other nodes that come, go or move, as `/address:port`.
    pub moving: Vec<String>,
    /// `default_secondary_index`; None where `default_secondary_index_enabled` is off.
    pub default_index: Option<String>,
    /// `default_compaction`: the compaction options of a table that is created without any, as they
    /// are stored in the schema.
    pub default_compaction: Arc<BTreeMap<String, String>>,
}

impl Default for ClusterInfo {
    /// The cluster of a node without configuration.
    fn default() -> Self {
        Self {
            name: "Test Cluster".to_owned(),
            partitioner: "Murmur3Partitioner".to_owned(),
            snitch: "DynamicEndpointSnitch".to_owned(),
            data_centers: BTreeMap::from([("datacenter1".to_owned(), 1)]),
            moving: Vec::new(),
            default_index: Some(LEGACY_INDEX.to_owned()),
            default_compaction: Arc::new(schema::TableParams::default().compaction),
        }
    }
}

/// Sentences about thresholds that replicas found exceeded.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct ReplicaFindings {
    /// Why replicas ended their reads, as the error says it.
    pub failures: Vec<String>,
    /// Sentences that warn the client: of reads that were ended, and of thresholds that were
    /// passed.
    pub warnings: Vec<String>,
    /// Tombstones are among the thresholds.
    pub of_tombstones: bool,
}

/// The node, as statements see it.
pub trait Coordinator {
    /// The schema in force.
    fn schema(&self) -> Arc<Schema>;

    /// The clock for write timestamps, in microseconds since 1970. Each call returns more than the
    /// one before.
    fn now_micros(&self) -> i64;

    /// The clock for expiry and deletion times, in seconds since 1970.
    fn now_seconds(&self) -> u32 {
        u32::try_from(self.now_micros() / 1_000_000).unwrap_or(0)
    }

    /// The latest second since 1970 at which data with a TTL may end, so that all nodes understand
    /// it.
    fn latest_expiration(&self) -> u32 {
        EXPIRATION_MAX
    }

    /// A new time UUID of the present time; no two calls return the same.
    fn next_timeuuid(&self) -> [u8; 16];

    /// A random (version 4) UUID.
    fn random_uuid(&self) -> [u8; 16];

    /// The cluster that this node belongs to.
    fn cluster(&self) -> ClusterInfo {
        ClusterInfo::default()
    }

    /// The last token of each range of the ring, with the nodes that hold a keyspace's data of that
    /// range, as `/address:port`.
    fn ownership(&self, _keyspace: &str) -> Vec<(i64, Vec<String>)> {
        Vec::new()
    }

    /// The present roles and permissions; empty on a node where nobody has to log in.
    fn roles(&self, _of: RolesOf<'_>) -> impl Future<Output = Result<Arc<Roles>, CqlError>> {
        std::future::ready(Ok(Arc::default()))
    }

    /// Hashes a password as `system_auth.roles` holds it. Hashing takes a tenth of a second of CPU,
    /// so it must not run on the calling thread.
    fn hash_password(&self, _password: String) -> impl Future<Output = Result<String, CqlError>> {
        std::future::ready(Err(CqlError::unsupported("Passwords are")))
    }

    /// Applies mutations. When the future completes they are as durable as the commit log is
    /// configured to make them.
    fn mutate(&self, mutations: Vec<Mutation>, options: &WriteOptions) -> impl Future<Output = Result<(), CqlError>>;

    /// Reads a partition, calls `decide` and writes what it returns, as one step: of several
    /// conditional writes to a partition each sees what the one before it wrote. `decide` gets the
    /// rows and the timestamp to write with, which is greater than every timestamp that was read.
    /// `decide` may be called again with other values; if it returns None nothing is written.
    /// Ordinary writes may come in between.
    fn compare_and_set<F>(&self, request: CasRequest, decide: F) -> impl Future<Output = Result<(), CqlError>>
    where
        F: FnMut(CasPartition, i64) -> Result<Option<PartitionUpdate>, CqlError>;

    /// The memory that results may take until they are sent; None: results are not counted.
    fn results(&self) -> Option<&Arc<ByteBudget>> {
        None
    }

    /// Reads rows and hands them to `build` as one stream; several commands, which must be of one
    /// table, follow each other in it. `build` runs on the worker first. If that would wait for the
    /// disk it is abandoned and runs again from the beginning on another thread.
    fn read<T, F>(
        &self,
        commands: Vec<ReadCommand>,
        options: &ReadOptions,
        build: F,
    ) -> impl Future<Output = Result<T, CqlError>>
    where
        T: Send + 'static,
        F: Fn(&mut dyn PartitionStream) -> Result<T, CqlError> + Send + Sync + 'static;

    /// Keeps warnings for the error that the request ends with: a client is told both.
    fn add_error_warnings(&self, _warnings: Vec<String>) {}

    /// Warnings of the reads of this request, each once. They are taken out.
    fn read_warnings(&self) -> Vec<String> {
        Vec::new()
    }

    /// The sentences about thresholds that replicas of this request's reads found exceeded, which
    /// they ended their reads for (first) or warn of. They are taken out. `query`: the read as CQL;
    /// `tokens`: the tokens that it reads, as text.
    fn replica_findings(&self, _query: &str, _tokens: &str) -> ReplicaFindings {
        ReplicaFindings::default()
    }

    /// The address by which other nodes know this one.
    fn endpoint(&self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, 7000))
    }

    /// Whether there are such sentences.
    fn has_replica_findings(&self) -> bool {
        false
    }

    /// Tells the node that a read of the table passed many tombstones. `warning` is what the client
    /// is told.
    fn report_tombstones(&self, _table: &TableMetadata, _warning: &str) {}

    /// Tells the node of a batch that is larger than `batch_size_warn_threshold`, or that is
    /// refused by `batch_size_fail_threshold`. `line` is for the node's log.
    fn report_large_batch(&self, _line: &str, _is_refused: bool) {}

    /// Changes the schema. When the future completes the change is durable and in force. None:
    /// there was nothing to change.
    fn change_schema(&self, change: SchemaChange) -> impl Future<Output = Result<Option<SchemaEvent>, CqlError>>;

    /// As [`Coordinator::change_schema`]; permissions follow the change before the future
    /// completes, and a warning of that is given with the event. A node on which the change is
    /// carried out without its client must let permissions follow without the client, too:
    /// otherwise the next user who makes a table of a dropped table's name would grant what was
    /// granted on the dropped one.
    fn change_schema_and_permissions<F: UpdatePermissions>(
        &self,
        change: SchemaChange,
        update: F,
    ) -> impl Future<Output = Result<Option<(SchemaEvent, Option<String>)>, CqlError>>
    where
        Self: Sized,
    {
        async move {
            let Some(event) = self.change_schema(change).await? else { return Ok(None) };
            let followed = update.update_permissions(&event, self).await?;
            Ok(Some((event, followed)))
        }
    }

    /// Waits, for a limited time, until the nodes that are up have the schema of this node. What is
    /// given is told to the client as warnings: the nodes that do not have it.
    fn schema_agreement(&self) -> impl Future<Output = Vec<String>> {
        std::future::ready(Vec::new())
    }

    /// Drops all data of a table.
    fn truncate(&self, table: &Arc<TableMetadata>) -> impl Future<Output = Result<(), CqlError>>;
}

/// The changes of permissions that follow a change of the schema. They own what they need, because
/// they outlive the request of a client that goes away.
pub trait UpdatePermissions: Clone + Send + 'static {
    /// Follows the change that an event tells of; gives a warning for the client, if there is one.
    fn update_permissions<C: Coordinator>(
        &self,
        event: &SchemaEvent,
        coordinator: &C,
    ) -> impl Future<Output = Result<Option<String>, CqlError>>;
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
    fn expiration_max(&self) -> u32 {
        self.latest_expiration()
    }
}
