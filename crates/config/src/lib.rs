//! The configuration: the keys of cassandra.yaml, their forms and limits, and how each is treated.
//!
//! [`Config::load`] takes the text of a file and `key=value` settings; the caller reads the file.
//! All keys of Cassandra 5.0.8 are known (`catalogue.txt`). Honoured keys become fields of
//! [`Config`]. Other keys are accepted if they ask for nothing else than what the program does, and
//! refused by name if they do. Agrees with `org.apache.cassandra.config.{Config,
//! DatabaseDescriptor}`.
//!
//! Defaults are Cassandra's, with these exceptions: acknowledged writes are on disk
//! (`commitlog_sync: batch`), `num_tokens` is 16, addresses are 127.0.0.1,
//! `sstable.selected_format` is bti (if the mode allows it) and `storage_compatibility_mode` is
//! NONE.

mod admin_port;
mod archiving;
mod auth;
mod auto_repair;
mod catalogue;
mod cloud;
mod commit_log;
mod encryption;
mod error;
mod fields;
mod guardrails;
mod hints;
mod links;
mod load;
mod properties;
mod reader;
mod repairs;
mod ring;
mod secrets;
mod settings;
mod snitch;
mod spans;
mod startup;
mod streams;
mod units;
mod value;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use value::ParsedValue;

pub use admin_port::AdminPort;
pub use archiving::{ARCHIVING_FILE, Archiving};
pub use auth::{Auth, AuthCache};
pub use auto_repair::AutoRepair;
pub use cloud::{CloudLocation, MetadataRequest, Service, locate};
pub use commit_log::{Cdc, ClassOptions, CommitFailurePolicy, CommitLog, CommitLogSync};
pub use encryption::{ClientEncryption, InternodeEncryption, Pem, ServerEncryption};
pub use error::ConfigError;
pub use guardrails::{CONSISTENCY_LEVELS, TABLE_PROPERTIES};
pub use hints::Hints;
pub use links::Links;
pub use repairs::{PoolFull, Repairs};
pub use ring::{Allocation, BatchHosts, Compatibility, DynamicSnitch, InternodeCompression, Paxos, Ring};
pub use settings::present_name;
pub use snitch::{Location, Place, RackDc, Snitch, inferred};
pub use spans::Spans;
pub use startup::DataResurrection;
pub use streams::Streams;

/// The checked configuration.
#[derive(Debug)]
pub struct Config {
    /// cluster_name
    pub cluster_name: String,
    /// num_tokens, 1 to 1536
    pub num_tokens: u32,
    /// initial_token; empty, or as many as num_tokens
    pub initial_tokens: Vec<i64>,
    /// data_file_directories; empty: not set
    pub data_file_directories: Vec<String>,
    /// local_system_data_file_directory: where `system` and `system_schema` lie; None: in the first
    /// data directory
    pub local_system_data_file_directory: Option<String>,
    /// saved_caches_directory; None: `saved_caches` beside the commit log
    pub saved_caches_directory: Option<String>,
    /// hints_directory; None: `hints` beside the commit log
    pub hints_directory: Option<String>,
    /// sstable.selected_format and storage_compatibility_mode
    pub sstable: SSTableFormat,
    /// uuid_sstable_identifiers_enabled
    pub uuid_sstable_identifiers: bool,
    /// commitlog_directory; None: `commitlog` in the data directory
    pub commitlog_directory: Option<String>,
    /// listen_address
    pub listen_address: IpAddr,
    /// broadcast_address, or the listen address
    pub broadcast_address: IpAddr,
    /// rpc_address: where clients connect; without it the listen address
    pub rpc_address: IpAddr,
    /// broadcast_rpc_address, or the rpc address
    pub broadcast_rpc_address: IpAddr,
    /// storage_port: where other nodes connect
    pub storage_port: u16,
    /// How the node takes part in a ring.
    pub ring: Ring,
    /// Writes that are kept for nodes that are down.
    pub hints: Hints,
    /// How SSTables are streamed to other nodes.
    pub streams: Streams,
    /// How repairs are run.
    pub repairs: Repairs,
    /// The schedule of repairs.
    pub auto_repair: AutoRepair,
    /// startup_checks: check_data_resurrection; None: not enabled
    pub data_resurrection: Option<DataResurrection>,
    /// Client connections.
    pub native_transport: NativeTransport,
    /// Whether users log in, and what is checked for them.
    pub auth: Auth,
    /// Where the operator's port is, and how it is encrypted
    pub admin_port: AdminPort,
    /// The keys otlp_…; None: spans of requests are not exported
    pub spans: Option<Spans>,
    /// client_encryption_options; None: connections are not encrypted
    pub client_encryption: Option<ClientEncryption>,
    /// The timeouts of requests.
    pub timeouts: Timeouts,
    /// The memory of memtables.
    pub memtable: Memtable,
    /// The commit log.
    pub commitlog: CommitLog,
    /// batchlog_replay_throttle in bytes a second; None: not throttled
    pub batchlog_replay_throttle: Option<u64>,
    /// Compaction.
    pub compaction: Compaction,
    /// column_index_size in bytes: the granularity of the row index; None: 4 KiB for bti, 64 KiB
    /// for big
    pub column_index_size: Option<u64>,
    /// The sizes of caches, and what is saved of them.
    pub caches: Caches,
    /// flush_compression
    pub flush_compression: FlushCompression,
    /// disk_failure_policy
    pub disk_failure_policy: DiskFailurePolicy,
    /// auto_snapshot: a snapshot before DROP and TRUNCATE
    pub auto_snapshot: bool,
    /// trace_type_query_ttl in seconds
    pub trace_type_query_ttl: u32,
    /// prepared_statements_cache_size in bytes; None: from the memory budget
    pub prepared_statements_cache_size: Option<u64>,
    /// max_value_size in bytes
    pub max_value_size: u64,
    /// The thresholds at which single requests are warned of or refused.
    pub thresholds: Thresholds,
    /// read_thresholds_enabled: replicas are asked which thresholds reads exceed
    pub read_thresholds: bool,
    /// The schema changes that are allowed.
    pub schema: SchemaSwitches,
    /// default_secondary_index: the kind or class of an index whose statement names none; None: a
    /// statement has to name one (`default_secondary_index_enabled: false`).
    pub default_index: Option<String>,
    values: load::Values,
}

/// Client connections: `native_transport_*`.
#[derive(Clone, PartialEq, Debug)]
pub struct NativeTransport {
    /// start_native_transport
    pub start: bool,
    /// native_transport_port
    pub port: u16,
    /// rpc_keepalive
    pub keepalive: bool,
    /// native_transport_max_frame_size in bytes
    pub max_frame_size: u64,
    /// native_transport_max_message_size in bytes; None: the smaller of the limits of a mutation
    /// and of requests in flight
    pub max_message_size: Option<u64>,
    /// native_transport_max_concurrent_connections; None: no limit
    pub max_concurrent_connections: Option<u64>,
    /// native_transport_max_concurrent_connections_per_ip; None: no limit
    pub max_concurrent_connections_per_ip: Option<u64>,
    /// native_transport_max_request_data_in_flight in bytes; None: from the memory budget
    pub max_request_data_in_flight: Option<u64>,
    /// native_transport_max_request_data_in_flight_per_ip in bytes; None: from the memory budget
    pub max_request_data_in_flight_per_ip: Option<u64>,
    /// native_transport_idle_timeout; None: connections may stay idle without limit
    pub idle_timeout: Option<Duration>,
    /// native_transport_allow_older_protocols
    pub allow_older_protocols: bool,
    /// native_transport_throw_on_overload
    pub throw_on_overload: bool,
}

/// The timeouts of requests. `nodetool settimeout` changes them while the node runs.
#[derive(Clone, PartialEq, Debug)]
pub struct Timeouts {
    /// request_timeout
    pub request: Duration,
    /// read_request_timeout
    pub read: Duration,
    /// range_request_timeout
    pub range: Duration,
    /// write_request_timeout
    pub write: Duration,
    /// counter_write_request_timeout
    pub counter_write: Duration,
    /// cas_contention_timeout
    pub cas_contention: Duration,
    /// truncate_request_timeout
    pub truncate: Duration,
    /// native_transport_timeout: a request is executed no later than this after it was read
    pub native_transport: Duration,
    /// slow_query_log_timeout; None: nothing is logged
    pub slow_query_log: Option<Duration>,
}

/// The sizes of caches, and what is saved of them.
#[derive(Clone, PartialEq, Debug)]
pub struct Caches {
    /// file_cache_size in bytes: the chunk cache; None: from the memory budget
    pub file_size: Option<u64>,
    /// key_cache_size in bytes; None: from the memory budget
    pub key_size: Option<u64>,
    /// row_cache_size in bytes; 0: there is no row cache
    pub row_size: u64,
    /// key_cache_save_period, also used for chunks; None: keys are not saved
    pub key_save_period: Option<Duration>,
    /// row_cache_save_period; None: it is not saved
    pub row_save_period: Option<Duration>,
    /// key_cache_keys_to_save
    pub key_keys_to_save: u64,
    /// row_cache_keys_to_save
    pub row_keys_to_save: u64,
    /// cache_load_timeout
    pub load_timeout: Duration,
}

/// The memory of memtables.
#[derive(Clone, PartialEq, Debug)]
pub struct Memtable {
    /// The sum of memtable_heap_space and memtable_offheap_space in bytes, because there is one
    /// pool; None: from the memory budget
    pub space: Option<u64>,
    /// memtable_cleanup_threshold: the used share of the space at which the largest memtable is
    /// flushed
    pub cleanup_threshold: Option<f64>,
}

/// The format and version of new SSTables, which two keys select.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SSTableFormat {
    /// big, for Cassandra 4.x: `nb`.
    Big4,
    /// big, of 5.0: `oa`.
    Big5,
    /// bti, of 5.0: `da`.
    Bti,
}

/// The reaction of the node to a failing disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DiskFailurePolicy {
    /// Answer from the data that is left.
    BestEffort,
    /// Stop clients, stay reachable for tools.
    Stop,
    /// As stop, also for errors of a single SSTable.
    StopParanoid,
    /// Let requests fail.
    Ignore,
    /// End the process.
    Die,
}

/// How flushed SSTables are compressed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FlushCompression {
    /// Not at all.
    None,
    /// With LZ4 when the table's compressor is slow.
    Fast,
    /// As the table says.
    Table,
}

/// Compaction.
#[derive(Clone, PartialEq, Debug)]
pub struct Compaction {
    /// concurrent_compactors; None: from the number of cores
    pub concurrent_compactors: Option<u32>,
    /// compaction_throughput in bytes a second; None: not throttled
    pub throughput: Option<u64>,
    /// autocompaction_on_startup_enabled
    pub on_startup: bool,
    /// min_free_space_per_drive in bytes: compactions and streams leave so much of a disk free
    pub min_free: u64,
    /// max_space_usable_for_compactions_in_percentage: the part, from 0 to 1, of what else is free
    /// that compactions and streams may take
    pub usable_part: f64,
    /// default_compaction: the strategy, as `class`, and its options, of a table that is created
    /// without
    pub default: BTreeMap<String, String>,
}

/// The thresholds at which single requests are warned of or refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Thresholds {
    /// Thresholds on sizes of reads. They count with `read_thresholds_enabled`.
    pub read_sizes: ReadSizes,
    /// tombstone_warn_threshold; None: never
    pub tombstone_warn: Option<u64>,
    /// tombstone_failure_threshold; None: never
    pub tombstone_failure: Option<u64>,
    /// batch_size_warn_threshold in bytes
    pub batch_size_warn: u64,
    /// batch_size_fail_threshold in bytes
    pub batch_size_fail: u64,
    /// replica_filtering_protection: cached_rows_warn_threshold and cached_rows_fail_threshold, in
    /// rows
    pub protected_rows: [u32; 2],
    /// unlogged_batch_across_partitions_warn_threshold, in partitions
    pub unlogged_batch_across_partitions_warn: u64,
}

/// Thresholds on sizes of reads, bytes; None: never.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ReadSizes {
    /// coordinator_read_size_warn_threshold: the values of a result
    pub coordinator_warn: Option<u64>,
    /// coordinator_read_size_fail_threshold
    pub coordinator_fail: Option<u64>,
    /// local_read_size_warn_threshold: what a replica loads for a read
    pub local_warn: Option<u64>,
    /// local_read_size_fail_threshold
    pub local_fail: Option<u64>,
    /// row_index_read_size_warn_threshold: the row index of a partition
    pub row_index_warn: Option<u64>,
    /// row_index_read_size_fail_threshold
    pub row_index_fail: Option<u64>,
}

/// The schema changes that are allowed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SchemaSwitches {
    /// default_keyspace_rf, at least 1: the copies of a keyspace whose statement names none
    pub default_keyspace_rf: u32,
    /// materialized_views_enabled: `CREATE MATERIALIZED VIEW`
    pub views: bool,
    /// drop_compact_storage_enabled: `ALTER TABLE … DROP COMPACT STORAGE`
    pub drop_compact_storage: bool,
    /// dynamic_data_masking_enabled: `MASKED WITH`
    pub masking: bool,
    /// user_defined_functions_enabled: `CREATE FUNCTION`, and calls of functions
    pub user_functions: bool,
    /// sasi_indexes_enabled: new indexes of the class SASIIndex
    pub sasi: bool,
    /// user_defined_functions_fail_timeout: the longest call of a function
    pub user_functions_fail_timeout: Duration,
    /// user_defined_functions_warn_timeout: the client is warned of longer calls; zero: never
    pub user_functions_warn_timeout: Duration,
}

/// The keys whose value is an address of this node, or the name of a host that has the address.
const ADDRESSES: [&str; 4] = ["broadcast_address", "broadcast_rpc_address", "listen_address", "rpc_address"];

impl Config {
    /// The names of hosts that stand for addresses of this node, each with its key.
    /// [`Config::load`] takes addresses alone: the caller looks the names up, and gives their
    /// addresses as further settings.
    pub fn host_names(yaml: Option<&str>, sets: &[String]) -> Vec<(&'static str, String)> {
        // mistakes are told when the configuration is read for good
        let Ok(values) = load::load(yaml, sets, true) else { return Vec::new() };
        let name_at = |key: &'static str| match &values.by_name.get(key)?.what {
            ParsedValue::Text(text) if is_host_name(text) => Some((key, text.clone())),
            _ => None,
        };
        ADDRESSES.into_iter().filter_map(name_at).collect()
    }

    /// The snitch that a cassandra.yaml and settings name, or the default one. None: a start would
    /// refuse them. Nothing else is asked of their values: names of hosts may stand in them.
    pub fn snitch_of(yaml: Option<&str>, sets: &[String]) -> Option<Snitch> {
        let values = load::load(yaml, sets, true).ok()?;
        let mut reader = reader::Reader::new(&values);
        let snitch = ring::snitch(&mut reader);
        reader.into_problems().is_empty().then_some(snitch)
    }

    /// The admin port that a cassandra.yaml and settings give, without a look at their other
    /// values. None: a start would refuse them.
    pub fn admin_port_of(yaml: Option<&str>, sets: &[String]) -> Option<AdminPort> {
        let values = load::load(yaml, sets, true).ok()?;
        let mut reader = reader::Reader::new(&values);
        // a start checks that callers are known, too: the port is where it is in any case
        let port = admin_port::admin_port(&mut reader, true);
        reader.into_problems().is_empty().then_some(port)
    }

    /// Reads the text of a cassandra.yaml and `key=value` settings. `lenient`: unknown and
    /// unhonoured keys are noted instead of refused.
    pub fn load(yaml: Option<&str>, sets: &[String], lenient: bool) -> Result<Self, ConfigError> {
        fields::build(load::load(yaml, sets, lenient)?)
    }

    /// The configuration with guardrails set anew: names of keys, each with its value as text,
    /// words of a list apart. None: off. An error says what is wrong without the key in front.
    pub fn with_guardrails(&self, sets: &[(String, Option<Vec<String>>)]) -> Result<Self, String> {
        let without_key =
            |problem: &String| problem.split_once(": ").map_or(problem.as_str(), |(_, why)| why).to_owned();
        let told = |error: ConfigError| error.problems.iter().map(without_key).collect::<Vec<_>>().join("; ");
        fields::build(load::changed(&self.values, &guardrails::given(sets)?).map_err(told)?).map_err(told)
    }

    /// Whether the file or a setting gives a value for the key.
    pub fn is_set(&self, name: &str) -> bool {
        self.values.by_name.get(name).is_some_and(|value| value.what != ParsedValue::Null)
    }

    /// The keys that the file or a setting gives, under their present names and in their order,
    /// without those that have no effect here.
    pub fn given(&self) -> impl Iterator<Item = &'static str> {
        let keys = catalogue::keys().iter().filter(|key| key.treatment != catalogue::Treatment::Any);
        keys.map(|key| key.name).filter(|name| self.is_set(name))
    }

    /// Notes for the log: keys that were ignored or have no effect.
    pub fn notes(&self) -> &[String] {
        &self.values.notes
    }

    /// The rows of `system_views.settings`: names and values; None: null.
    pub fn settings(&self) -> Vec<(String, Option<String>)> {
        settings::settings(self)
    }

    /// The value of a key, or its default.
    fn value(&self, key: &catalogue::Key) -> value::Value {
        match self.values.by_name.get(key.name) {
            Some(value) if value.what != ParsedValue::Null => value.clone(),
            _ => value::Value::of_default(key).expect("defaults are checked by a test"),
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self::load(None, &[], false).expect("the defaults are valid")
    }
}

/// Whether the value of an address is a name that has to be looked up.
fn is_host_name(text: &str) -> bool {
    !text.is_empty() && text != "localhost" && text.parse::<IpAddr>().is_err()
}

#[cfg(test)]
mod tests;
