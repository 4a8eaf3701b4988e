//! Fills the fields of [`Config`] from checked values and applies the rules between them
//! (`DatabaseDescriptor.applyAll`).

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use serde_json::{Map, Value as Json};

use crate::error::ConfigError;
use crate::load::Values;
use crate::reader::Reader;
use crate::value::ParsedValue;
use crate::{
    Caches, Compaction, Compatibility, Config, DiskFailurePolicy, FlushCompression, Memtable, NativeTransport,
    ReadSizes, SSTableFormat, SchemaSwitches, Thresholds, Timeouts,
};

/// Most tokens of a node.
const NUM_TOKENS_MAX: i64 = 1536;
/// Shorter timeouts are raised to this one (`LOWEST_ACCEPTED_TIMEOUT`).
const TIMEOUT_MIN: Duration = Duration::from_millis(10);

pub(crate) fn build(values: Values) -> Result<Config, ConfigError> {
    let mut reader = Reader::new(&values);
    let listen_address = reader.address_of_nodes("listen_address").unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
    let rpc_address = reader.address("rpc_address").unwrap_or(listen_address);
    let num_tokens = reader.num_tokens();
    let ring = crate::ring::ring(&mut reader);
    let sstable = reader.sstable_format(ring.compatibility);
    let auth = crate::auth::auth(&mut reader);
    let config = Config {
        cluster_name: reader.text("cluster_name").unwrap_or_default(),
        num_tokens,
        initial_tokens: reader.initial_tokens(num_tokens),
        data_file_directories: reader.data_file_directories(),
        local_system_data_file_directory: reader.text("local_system_data_file_directory"),
        saved_caches_directory: reader.text("saved_caches_directory"),
        hints_directory: reader.text("hints_directory"),
        sstable,
        uuid_sstable_identifiers: reader.boolean("uuid_sstable_identifiers_enabled"),
        commitlog_directory: reader.text("commitlog_directory"),
        listen_address,
        broadcast_address: reader.address_of_nodes("broadcast_address").unwrap_or(listen_address),
        rpc_address,
        broadcast_rpc_address: reader.broadcast_rpc_address(rpc_address),
        storage_port: reader.port("storage_port"),
        ring,
        hints: crate::hints::hints(&mut reader),
        streams: crate::streams::streams(&mut reader),
        repairs: crate::repairs::repairs(&mut reader),
        auto_repair: crate::auto_repair::auto_repair(&mut reader),
        data_resurrection: crate::startup::data_resurrection(&mut reader),
        native_transport: native_transport(&mut reader),
        client_encryption: reader.encryption("client_encryption_options"),
        admin_port: crate::admin_port::admin_port(&mut reader, auth.authenticates),
        auth,
        spans: crate::spans::spans(&mut reader),
        timeouts: timeouts(&mut reader),
        memtable: memtable(&mut reader),
        commitlog: crate::commit_log::commitlog(&mut reader),
        batchlog_replay_throttle: Some(reader.quantity("batchlog_replay_throttle")).filter(|rate| *rate > 0),
        compaction: compaction(&mut reader),
        column_index_size: reader.maybe_quantity("column_index_size"),
        caches: caches(&mut reader),
        flush_compression: reader.one_of(
            "flush_compression",
            &[("none", FlushCompression::None), ("fast", FlushCompression::Fast), ("table", FlushCompression::Table)],
        ),
        disk_failure_policy: reader.one_of(
            "disk_failure_policy",
            &[
                ("stop", DiskFailurePolicy::Stop),
                ("best_effort", DiskFailurePolicy::BestEffort),
                ("stop_paranoid", DiskFailurePolicy::StopParanoid),
                ("ignore", DiskFailurePolicy::Ignore),
                ("die", DiskFailurePolicy::Die),
            ],
        ),
        auto_snapshot: reader.boolean("auto_snapshot"),
        trace_type_query_ttl: u32::try_from(reader.duration("trace_type_query_ttl").as_secs()).unwrap_or(u32::MAX),
        prepared_statements_cache_size: reader.maybe_quantity("prepared_statements_cache_size"),
        max_value_size: reader.quantity("max_value_size"),
        thresholds: thresholds(&mut reader),
        read_thresholds: reader.boolean("read_thresholds_enabled"),
        schema: SchemaSwitches {
            default_keyspace_rf: default_keyspace_rf(&mut reader),
            views: reader.boolean("materialized_views_enabled"),
            drop_compact_storage: reader.boolean("drop_compact_storage_enabled"),
            masking: reader.boolean("dynamic_data_masking_enabled"),
            user_functions: reader.boolean("user_defined_functions_enabled"),
            sasi: reader.boolean("sasi_indexes_enabled"),
            user_functions_fail_timeout: reader.duration("user_defined_functions_fail_timeout"),
            user_functions_warn_timeout: warn_timeout_of_functions(&mut reader),
        },
        default_index: reader
            .boolean("default_secondary_index_enabled")
            .then(|| reader.text("default_secondary_index"))
            .flatten(),
        values: Values::default(),
    };
    let mut problems = reader.into_problems();
    problems.extend(crate::guardrails::problems(&values));
    if problems.is_empty() { Ok(Config { values, ..config }) } else { Err(ConfigError { problems }) }
}

/// default_keyspace_rf, which must be what a CREATE KEYSPACE without a factor is allowed.
fn default_keyspace_rf(reader: &mut Reader<'_>) -> u32 {
    let factor = reader.maybe_int("default_keyspace_rf").unwrap_or(1);
    let least = reader.maybe_int("minimum_replication_factor_fail_threshold").unwrap_or(-1);
    if factor < 1 {
        reader.problem("default_keyspace_rf", "cannot be less than 1");
    } else if factor < least {
        let why = format!("({factor}) cannot be less than minimum_replication_factor_fail_threshold ({least})");
        reader.problem("default_keyspace_rf", &why);
    }
    u32::try_from(factor).unwrap_or(1)
}

fn native_transport(reader: &mut Reader<'_>) -> NativeTransport {
    let max_frame_size = reader.quantity("native_transport_max_frame_size");
    let max_message_size = reader.maybe_quantity("native_transport_max_message_size");
    let in_flight = reader.maybe_quantity("native_transport_max_request_data_in_flight");
    if max_message_size.is_some_and(|size| in_flight.is_some_and(|limit| size > limit)) {
        reader.problem(
            "native_transport_max_message_size",
            "must not exceed native_transport_max_request_data_in_flight",
        );
    }
    NativeTransport {
        start: reader.boolean("start_native_transport"),
        port: reader.port("native_transport_port"),
        keepalive: reader.boolean("rpc_keepalive"),
        max_frame_size,
        max_message_size,
        max_concurrent_connections: reader.limit("native_transport_max_concurrent_connections"),
        max_concurrent_connections_per_ip: reader.limit("native_transport_max_concurrent_connections_per_ip"),
        max_request_data_in_flight: in_flight,
        max_request_data_in_flight_per_ip: reader.maybe_quantity("native_transport_max_request_data_in_flight_per_ip"),
        idle_timeout: Some(reader.duration("native_transport_idle_timeout")).filter(|timeout| !timeout.is_zero()),
        allow_older_protocols: reader.boolean("native_transport_allow_older_protocols"),
        throw_on_overload: reader.boolean("native_transport_throw_on_overload"),
    }
}

fn timeouts(reader: &mut Reader<'_>) -> Timeouts {
    let timeout = |name: &str| reader.duration(name).max(TIMEOUT_MIN);
    Timeouts {
        request: timeout("request_timeout"),
        read: timeout("read_request_timeout"),
        range: timeout("range_request_timeout"),
        write: timeout("write_request_timeout"),
        counter_write: timeout("counter_write_request_timeout"),
        cas_contention: timeout("cas_contention_timeout"),
        truncate: timeout("truncate_request_timeout"),
        native_transport: timeout("native_transport_timeout"),
        slow_query_log: Some(reader.duration("slow_query_log_timeout")).filter(|timeout| !timeout.is_zero()),
    }
}

fn caches(reader: &mut Reader<'_>) -> Caches {
    let period = |period: Duration| Some(period).filter(|period| !period.is_zero());
    Caches {
        file_size: reader.maybe_quantity("file_cache_size"),
        key_size: reader.maybe_quantity("key_cache_size"),
        row_size: reader.quantity("row_cache_size"),
        key_save_period: period(reader.duration("key_cache_save_period")),
        row_save_period: period(reader.duration("row_cache_save_period")),
        key_keys_to_save: reader.limit("key_cache_keys_to_save").unwrap_or(0),
        row_keys_to_save: reader.limit("row_cache_keys_to_save").unwrap_or(0),
        load_timeout: reader.duration("cache_load_timeout"),
    }
}

fn memtable(reader: &mut Reader<'_>) -> Memtable {
    let spaces = [reader.maybe_quantity("memtable_heap_space"), reader.maybe_quantity("memtable_offheap_space")];
    let space = spaces.iter().flatten().copied().reduce(u64::saturating_add);
    if space == Some(0) {
        reader.problem("memtable_heap_space", "must be positive");
    }
    let cleanup_threshold = reader.maybe_double("memtable_cleanup_threshold");
    if cleanup_threshold.is_some_and(|share| !(0.01..=0.99).contains(&share)) {
        reader.problem("memtable_cleanup_threshold", "must be between 0.01 and 0.99");
    }
    Memtable { space, cleanup_threshold }
}

/// The compaction of tables that are created without `compaction`: the value of
/// cassandra_latest.yaml of 5.0.
pub(crate) const DEFAULT_COMPACTION: (&str, [(&str, &str); 5]) = (
    "UnifiedCompactionStrategy",
    [
        ("scaling_parameters", "T4"),
        ("max_sstables_to_compact", "64"),
        ("target_sstable_size", "1GiB"),
        ("sstable_growth", "0.3333333333333333"),
        ("min_sstable_size", "100MiB"),
    ],
);

fn default_compaction(reader: &Reader<'_>) -> BTreeMap<String, String> {
    let value = reader.value("default_compaction");
    if value.what == ParsedValue::Null {
        let (class, options) = DEFAULT_COMPACTION;
        let options = options.into_iter().chain([("class", class)]);
        return options.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    }
    let mut options: BTreeMap<String, String> = value.parameters().into_iter().collect();
    options.insert("class".to_owned(), value.text);
    options
}

fn compaction(reader: &mut Reader<'_>) -> Compaction {
    let compactors = reader.maybe_int("concurrent_compactors");
    if compactors.is_some_and(|compactors| compactors <= 0) {
        reader.problem("concurrent_compactors", "must be strictly greater than 0");
    }
    let usable_part = reader.maybe_double("max_space_usable_for_compactions_in_percentage").unwrap_or(1.0);
    if !(0.0..=1.0).contains(&usable_part) {
        reader.problem("max_space_usable_for_compactions_in_percentage", "must be between 0 and 1");
    }
    Compaction {
        min_free: reader.quantity("min_free_space_per_drive"),
        usable_part,
        concurrent_compactors: compactors.and_then(|compactors| u32::try_from(compactors).ok()),
        throughput: Some(reader.quantity("compaction_throughput")).filter(|rate| *rate > 0),
        on_startup: reader.boolean("autocompaction_on_startup_enabled"),
        default: default_compaction(reader),
    }
}

/// The thresholds of `replica_filtering_protection` where it does not say others.
const PROTECTED_ROWS: [u32; 2] = [2_000, 32_000];

fn warn_timeout_of_functions(reader: &mut Reader<'_>) -> Duration {
    const KEY: &str = "user_defined_functions_warn_timeout";
    let warn = reader.duration(KEY);
    if warn > reader.duration("user_defined_functions_fail_timeout") {
        reader.problem(KEY, "must not be above user_defined_functions_fail_timeout");
    }
    warn
}

fn thresholds(reader: &mut Reader<'_>) -> Thresholds {
    let batch_size_warn = reader.quantity("batch_size_warn_threshold");
    let batch_size_fail = reader.quantity("batch_size_fail_threshold");
    if batch_size_fail < batch_size_warn {
        reader.problem("batch_size_fail_threshold", "must not be below batch_size_warn_threshold");
    }
    let protected_rows = protected_rows(reader);
    Thresholds {
        protected_rows,
        read_sizes: ReadSizes {
            coordinator_warn: reader.maybe_quantity("coordinator_read_size_warn_threshold"),
            coordinator_fail: reader.maybe_quantity("coordinator_read_size_fail_threshold"),
            local_warn: reader.maybe_quantity("local_read_size_warn_threshold"),
            local_fail: reader.maybe_quantity("local_read_size_fail_threshold"),
            row_index_warn: reader.maybe_quantity("row_index_read_size_warn_threshold"),
            row_index_fail: reader.maybe_quantity("row_index_read_size_fail_threshold"),
        },
        tombstone_warn: reader.limit("tombstone_warn_threshold"),
        tombstone_failure: reader.limit("tombstone_failure_threshold"),
        batch_size_warn,
        batch_size_fail,
        unlogged_batch_across_partitions_warn: reader
            .limit("unlogged_batch_across_partitions_warn_threshold")
            .unwrap_or(u64::MAX),
    }
}

/// The thresholds of `replica_filtering_protection`, to warn and to fail.
fn protected_rows(reader: &mut Reader<'_>) -> [u32; 2] {
    const KEY: &str = "replica_filtering_protection";
    const SUB_KEYS: [&str; 2] = ["cached_rows_warn_threshold", "cached_rows_fail_threshold"];
    let ParsedValue::Json(Json::Object(given)) = reader.value(KEY).what else { return PROTECTED_ROWS };
    reader.refuse_other_sub_keys(KEY, &given, &SUB_KEYS);
    let mut rows = PROTECTED_ROWS;
    for (name, rows) in SUB_KEYS.into_iter().zip(&mut rows) {
        match given.get(name).map(|number| number.as_u64().and_then(|number| u32::try_from(number).ok())) {
            None => {}
            Some(Some(number)) => *rows = number,
            Some(None) => reader.problem(KEY, &format!("{name} must be a number of rows")),
        }
    }
    rows
}

/// Whether `sstable.format` is null, or a map that gives no format an option.
fn is_without_options(format: &Json) -> bool {
    let is_empty = |options: &Json| options.is_null() || options.as_object().is_some_and(Map::is_empty);
    format.is_null() || format.as_object().is_some_and(|formats| formats.values().all(is_empty))
}

impl Reader<'_> {
    /// An address that other nodes are told. A wildcard would lead each of them to itself.
    fn address_of_nodes(&mut self, name: &str) -> Option<IpAddr> {
        let address = self.address(name)?;
        if address.is_unspecified() {
            self.problem(name, &format!("cannot be a wildcard address ({address})"));
        }
        Some(address)
    }

    fn broadcast_rpc_address(&mut self, rpc_address: IpAddr) -> IpAddr {
        let address = self.address("broadcast_rpc_address").unwrap_or(rpc_address);
        if address.is_unspecified() {
            self.problem(
                "broadcast_rpc_address",
                "if rpc_address is a wildcard address, this must be set to another than a wildcard",
            );
        }
        address
    }

    fn num_tokens(&mut self) -> u32 {
        let tokens = self.maybe_int("num_tokens").unwrap_or(0);
        if !(1..=NUM_TOKENS_MAX).contains(&tokens) {
            self.problem("num_tokens", &format!("must be between 1 and {NUM_TOKENS_MAX}"));
        }
        u32::try_from(tokens).unwrap_or(1)
    }

    fn initial_tokens(&mut self, num_tokens: u32) -> Vec<i64> {
        let Some(text) = self.text("initial_token") else { return Vec::new() };
        let tokens: Result<Vec<i64>, _> = text.split(',').map(|token| token.trim().parse()).collect();
        match tokens {
            Ok(tokens) if tokens.len() == num_tokens as usize => tokens,
            Ok(tokens) => {
                let problem = format!("has {} tokens, but num_tokens is {num_tokens}", tokens.len());
                self.problem("initial_token", &problem);
                Vec::new()
            }
            Err(_) => {
                self.problem("initial_token", "must be numbers separated by commas");
                Vec::new()
            }
        }
    }

    /// The encryption of a port to which clients connect, with the sub-keys of
    /// client_encryption_options.
    pub(crate) fn encryption(&mut self, name: &str) -> Option<crate::ClientEncryption> {
        let ParsedValue::Json(Json::Object(map)) = self.value(name).what else { return None };
        crate::encryption::client_encryption(&map).unwrap_or_else(|problem| {
            self.problem(name, &problem);
            None
        })
    }

    pub(crate) fn server_encryption(&mut self) -> Option<crate::ServerEncryption> {
        let ParsedValue::Json(Json::Object(map)) = self.value("server_encryption_options").what else { return None };
        crate::encryption::server_encryption(&map).unwrap_or_else(|problem| {
            self.problem("server_encryption_options", &problem);
            None
        })
    }

    fn data_file_directories(&mut self) -> Vec<String> {
        let ParsedValue::Json(Json::Array(items)) = self.value("data_file_directories").what else { return Vec::new() };
        let mut directories: Vec<String> = Vec::new();
        for item in &items {
            match item.as_str() {
                Some(directory) if !directories.iter().any(|known| known == directory) => {
                    directories.push(directory.to_owned());
                }
                Some(directory) => self.problem("data_file_directories", &format!("names {directory} twice")),
                None => self.problem("data_file_directories", "must be a list of directories"),
            }
        }
        directories
    }

    /// The format and version of new SSTables. Agrees with the choice of the newest version by
    /// `BigFormat` and `BtiFormat`. If no format is named and the mode does not allow bti, it is
    /// big, as in Cassandra.
    fn sstable_format(&mut self, compatibility: Compatibility) -> SSTableFormat {
        let is_4 = compatibility == Compatibility::Cassandra4;
        let given = match self.value("sstable").what {
            ParsedValue::Json(Json::Object(given)) => given,
            _ => Map::new(),
        };
        self.refuse_other_sub_keys("sstable", &given, &["selected_format", "format"]);
        if !given.get("format").is_none_or(is_without_options) {
            self.problem("sstable", "format: options of formats are not honoured: leave them out");
        }
        let selected = match given.get("selected_format") {
            None | Some(Json::Null) => None,
            Some(Json::String(name)) => Some(name.clone()),
            Some(other) => Some(other.to_string()),
        };
        match (selected.as_deref(), is_4) {
            (Some("bti"), true) => {
                let why = "selected_format bti is not available in storage_compatibility_mode CASSANDRA_4";
                self.problem("sstable", why);
                SSTableFormat::Bti
            }
            (None | Some("bti"), false) => SSTableFormat::Bti,
            (Some("big"), false) => SSTableFormat::Big5,
            (None | Some("big"), true) => SSTableFormat::Big4,
            (Some(other), _) => {
                self.problem("sstable", &format!("selected_format '{other}' is none of big, bti"));
                SSTableFormat::Bti
            }
        }
    }
}
