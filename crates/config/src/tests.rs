//! Tests of configurations as people write them.

use std::time::Duration;

use super::*;

fn problems(yaml: &str) -> Vec<String> {
    Config::load(Some(yaml), &[], false).expect_err(yaml).problems
}

fn with(sets: &[&str]) -> Result<Config, ConfigError> {
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    Config::load(None, &sets, false)
}

#[test]
fn defaults_are_safe() {
    let config = Config::default();
    assert_eq!(config.commitlog.sync, CommitLogSync::Batch);
    assert_eq!((config.num_tokens, config.native_transport.port), (16, 9042));
    assert_eq!(config.timeouts.read, Duration::from_secs(5));
    assert_eq!(config.thresholds.tombstone_failure, Some(100_000));
    assert_eq!(config.compaction.throughput, Some(64 << 20));
    assert_eq!(config.commitlog.max_mutation_size, 16 << 20);
    assert!(config.notes().is_empty());
}

#[test]
fn periodic_sync_has_a_period_of_its_own() {
    let (period, lag_block) = (Duration::from_secs(10), Duration::from_secs(15));
    for config in [with(&["commitlog_sync=periodic"]), Config::load(Some("commitlog_sync: periodic"), &[], false)] {
        let config = config.expect("the period stands");
        assert_eq!(config.commitlog.sync, CommitLogSync::Periodic { period, lag_block });
        let shown = config.settings().into_iter().find(|(name, _)| name == "commitlog_sync_period");
        assert_eq!(shown.and_then(|(_, value)| value).as_deref(), Some("10000ms"));
    }
    let slower = with(&["commitlog_sync=periodic", "commitlog_sync_period=20s"]).expect("a period is given");
    let (period, lag_block) = (Duration::from_secs(20), Duration::from_secs(30));
    assert_eq!(slower.commitlog.sync, CommitLogSync::Periodic { period, lag_block });
}

#[test]
fn new_and_old_names_say_the_same() {
    let new = "commitlog_sync: periodic\ncommitlog_sync_period: 10s\nnative_transport_max_frame_size: 32MiB\n\
               compaction_throughput: 16MiB/s\nbatch_size_warn_threshold: 64KiB\nbatch_size_fail_threshold: 640KiB\ntrace_type_query_ttl: 1h";
    let old = "commitlog_sync: periodic\ncommitlog_sync_period_in_ms: 10000\nnative_transport_max_frame_size_in_mb: 32\n\
               compaction_throughput_mb_per_sec: 16\nbatch_size_warn_threshold_in_kb: 64\nbatch_size_fail_threshold_in_kb: 640\n\
               tracetype_query_ttl: 3600";
    for yaml in [new, old] {
        let config = Config::load(Some(yaml), &[], false).expect(yaml);
        let (period, lag_block) = (Duration::from_secs(10), Duration::from_secs(15));
        assert_eq!(config.commitlog.sync, CommitLogSync::Periodic { period, lag_block });
        assert_eq!(config.native_transport.max_frame_size, 32 << 20);
        assert_eq!(config.compaction.throughput, Some(16 << 20));
        assert_eq!((config.thresholds.batch_size_warn, config.trace_type_query_ttl), (64 << 10, 3600));
    }
}

/// Cassandra takes a negative number under a few old names, and refuses it under the others.
#[test]
fn negative_numbers_under_old_names() {
    let intervals = with(&["roles_update_interval_in_ms=-1", "roles_validity_in_ms=3000"]).expect("valid").auth.roles;
    assert_eq!(intervals.renewal_age(), intervals.validity);
    let sets = ["cache_load_timeout_seconds=-1", "validation_preview_purge_head_start_in_sec=-1"];
    let zero = with(&sets).expect("valid");
    assert_eq!((zero.caches.load_timeout, zero.repairs.preview_head_start), (Duration::ZERO, 0));
    for set in ["slow_query_log_timeout_in_ms=-1", "compaction_throughput_mb_per_sec=-1", "key_cache_size_in_mb=-1"] {
        let (name, _) = set.split_once('=').unwrap();
        assert_eq!(with(&[set]).expect_err(set).problems, [format!("{name}: '-1' is negative")]);
    }
}

/// The thresholds of 4.0 counted the keyspaces and tables that are built in.
#[test]
fn old_thresholds_of_keyspaces_and_tables_count_built_in_ones() {
    let shown = |config: &Config, name: &str| config.settings().into_iter().find(|(key, _)| key == name).unwrap().1;
    let config = with(&["keyspace_count_warn_threshold=40", "table_count_warn_threshold=150"]).expect("valid");
    assert_eq!((config.threshold("keyspaces").0, config.threshold("tables").0), (Some(35), Some(102)));
    for (config, name, value) in [
        (&config, "keyspace_count_warn_threshold", "40"),
        (&config, "tables_warn_threshold", "102"),
        (&Config::default(), "keyspace_count_warn_threshold", "4"),
        (&Config::default(), "table_count_warn_threshold", "47"),
        (&Config::default(), "tables_warn_threshold", "-1"),
    ] {
        assert_eq!(shown(config, name).as_deref(), Some(value), "{name}");
    }
    assert_eq!(with(&["keyspace_count_warn_threshold=4"]).expect("none").threshold("keyspaces").0, None);
    assert!(with(&["table_count_warn_threshold=48"]).is_err() && with(&["table_count_warn_threshold=50.5"]).is_err());
}

#[test]
fn a_key_under_both_of_its_names_is_refused() {
    let yaml = "read_request_timeout: 30s\nread_request_timeout_in_ms: 5000";
    let problem = "read_request_timeout_in_ms: read_request_timeout is its present name, and is given too";
    assert_eq!(problems(yaml), [problem]);
    let lenient = Config::load(Some(yaml), &[], true).expect("noted");
    assert_eq!(lenient.timeouts.read, Duration::from_secs(30));
    assert_eq!(lenient.notes(), [format!("{problem}; ignored")]);
    // a setting takes the place of the file's value under either name
    let sets = ["read_request_timeout_in_ms=7000".to_owned()];
    let config = Config::load(Some("read_request_timeout: 30s"), &sets, false).expect("valid");
    assert_eq!(config.timeouts.read, Duration::from_secs(7));
}

#[test]
fn settings_of_the_command_line_come_last() {
    let yaml = "num_tokens: 4\ncluster_name: file";
    let sets = ["num_tokens=8", "sstable.selected_format=bti", "data_file_directories=[/data]"].map(str::to_owned);
    let config = Config::load(Some(yaml), &sets, false).expect("valid");
    assert_eq!((config.num_tokens, config.cluster_name.as_str()), (8, "file"));
    assert_eq!(config.data_file_directories, ["/data"]);
    assert!(config.is_set("num_tokens") && !config.is_set("initial_token"));
}

#[test]
fn the_life_of_traced_repairs_and_the_head_start_of_previews() {
    let repairs = |sets: &[&str]| {
        let repairs = with(sets).expect("valid").repairs;
        (repairs.trace_ttl, repairs.preview_head_start)
    };
    assert_eq!(repairs(&[]), (7 * 86_400, 3600));
    assert_eq!(repairs(&["trace_type_repair_ttl=2d", "validation_preview_purge_head_start=10m"]), (2 * 86_400, 600));
    assert_eq!(repairs(&["tracetype_repair_ttl=60", "validation_preview_purge_head_start_in_sec=5"]), (60, 5));
}

/// A dotted setting changes one sub-key, at any depth. Sub-keys of the file and of other settings
/// stay.
#[test]
fn a_setting_of_one_sub_key_keeps_the_others() {
    let yaml = "client_encryption_options:
  enabled: true
  keystore: k.pem
  truststore: t.pem
  ssl_context_factory: {class_name: PEMBasedSslContextFactory}
";
    let load = |yaml: Option<&str>, sets: &[&str]| {
        let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
        Config::load(yaml, &sets, false).expect("valid")
    };
    let stricter = load(Some(yaml), &["client_encryption_options.require_client_auth=true"]);
    let stricter = stricter.client_encryption.expect("still encrypted");
    assert!(stricter.require_client_auth && !stricter.optional);
    assert_eq!(stricter.identity, Pem::File("k.pem".to_owned()));
    let deep = load(Some(yaml), &["client_encryption_options.ssl_context_factory.parameters.private_key=KEY"]);
    assert_eq!(deep.client_encryption.expect("still encrypted").identity, Pem::Text("KEY".to_owned()));
    let both = load(
        None,
        &[
            "server_encryption_options.ssl_context_factory.class_name=PEMBasedSslContextFactory",
            "server_encryption_options.keystore=k.pem",
            "server_encryption_options.truststore=t.pem",
            "server_encryption_options.internode_encryption=all",
        ],
    );
    assert_eq!(both.ring.encryption.map(|links| links.internode), Some(InternodeEncryption::All));
    let sets = ["client_encryption_options={enabled: false}".to_owned()];
    let whole = Config::load(Some(yaml), &sets, false).expect("valid");
    assert_eq!(whole.client_encryption, None, "a setting of the key itself replaces all of it");
}

#[test]
fn the_version_of_new_sstables() {
    for (yaml, format) in [
        ("", SSTableFormat::Bti),
        ("storage_compatibility_mode: UPGRADING", SSTableFormat::Bti),
        ("storage_compatibility_mode: CASSANDRA_4", SSTableFormat::Big4),
        ("{storage_compatibility_mode: CASSANDRA_4, sstable: {selected_format: big}}", SSTableFormat::Big4),
        ("sstable: {selected_format: big}", SSTableFormat::Big5),
        ("sstable: {selected_format: big, format: {big: {}, bti: }}", SSTableFormat::Big5),
        ("sstable: {format: {}}", SSTableFormat::Bti),
    ] {
        let config = Config::load(Some(yaml), &[], false).expect("valid");
        assert_eq!(config.sstable, format, "{yaml}");
    }
}

#[test]
fn refusals_name_the_key() {
    let cases = [
        ("num_token: 8", "num_token: no such key (did you mean num_tokens?)"),
        ("colour_of_the_logo: red", "colour_of_the_logo: no such key"),
        (
            "transient_replication_enabled: true",
            "transient_replication_enabled: exists in Cassandra, but is not honoured yet at this value (ours: false)",
        ),
        (
            "reject_repair_compaction_threshold: 1024",
            "reject_repair_compaction_threshold: exists in Cassandra, but is not honoured yet at this value (ours: 2147483647)",
        ),
        (
            "repair_disk_headroom_reject_ratio: 0.2",
            "repair_disk_headroom_reject_ratio: exists in Cassandra, but is not honoured yet at this value (ours: 0.0)",
        ),
        (
            "snapshot_links_per_second: 10",
            "snapshot_links_per_second: exists in Cassandra, but is not honoured yet at this value (ours: 0)",
        ),
        (
            "automatic_sstable_upgrade: true",
            "automatic_sstable_upgrade: exists in Cassandra, but is not honoured yet at this value (ours: false)",
        ),
        (
            "use_deterministic_table_id: true",
            "use_deterministic_table_id: exists in Cassandra, but is not honoured yet at this value (ours: false)",
        ),
        (
            "repaired_data_tracking_for_range_reads_enabled: true",
            "repaired_data_tracking_for_range_reads_enabled: exists in Cassandra, but is not honoured yet at this value (ours: false)",
        ),
        (
            "authenticator: MutualTlsAuthenticator",
            "authenticator: 'MutualTlsAuthenticator' is none of AllowAllAuthenticator, PasswordAuthenticator",
        ),
        (
            "authenticator: {class_name: PasswordAuthenticator, parameters: {a: b}}",
            "authenticator: parameters of the class are not honoured",
        ),
        (
            "authorizer: CassandraAuthorizer",
            "authorizer: CassandraAuthorizer needs authenticator: PasswordAuthenticator",
        ),
        (
            "network_authorizer: CassandraNetworkAuthorizer",
            "network_authorizer: CassandraNetworkAuthorizer needs authenticator: PasswordAuthenticator",
        ),
        (
            "storage_compatibility_mode: CASSANDRA_6",
            "storage_compatibility_mode: 'CASSANDRA_6' is none of CASSANDRA_4, UPGRADING, NONE",
        ),
        (
            "{storage_compatibility_mode: CASSANDRA_4, sstable: {selected_format: bti}}",
            "sstable: selected_format bti is not available in storage_compatibility_mode CASSANDRA_4",
        ),
        ("sstable: {selected_format: tri}", "sstable: selected_format 'tri' is none of big, bti"),
        ("sstable: {selected_format: 5}", "sstable: selected_format '5' is none of big, bti"),
        (
            "sstable: {selectedformat: big}",
            "sstable: selectedformat is no sub-key here (these are: selected_format, format)",
        ),
        (
            "sstable: {format: {bti: {row_index_granularity: 4KiB}}}",
            "sstable: format: options of formats are not honoured: leave them out",
        ),
        (
            "replica_filtering_protection: {cached_rows_threshold: 1}",
            "replica_filtering_protection: cached_rows_threshold is no sub-key here (these are: cached_rows_warn_threshold, \
             cached_rows_fail_threshold)",
        ),
        ("data_file_directories: [/a, /b, /a]", "data_file_directories: names /a twice"),
        (
            "read_request_timeout: 5000",
            "read_request_timeout: '5000' is not a number with a unit (accepted: ms, s, m, h, d; case matters, no negative values)",
        ),
        ("num_tokens: many", "num_tokens: 'many' is not a whole number"),
        ("num_tokens: 0", "num_tokens: must be between 1 and 1536"),
        ("commitlog_sync: sometimes", "commitlog_sync: 'sometimes' is none of batch, group, periodic"),
        (
            "{commitlog_sync: periodic, commitlog_sync_period: 0ms}",
            "commitlog_sync_period: missing value, needed by commitlog_sync: periodic",
        ),
        ("max_mutation_size: 32MiB", "commitlog_segment_size: must be at least twice the size of max_mutation_size"),
        ("rpc_address: somewhere", "rpc_address: 'somewhere' is not an IP address"),
        ("listen_address: 0.0.0.0\nrpc_address: 10.0.0.5", "listen_address: cannot be a wildcard address (0.0.0.0)"),
        ("broadcast_address: '::'", "broadcast_address: cannot be a wildcard address (::)"),
        (
            "client_encryption_options: {enabled: true}",
            "client_encryption_options: keystores of Java (JKS, PKCS12) are not read; say ssl_context_factory: {class_name: \
             PEMBasedSslContextFactory} and give PEM, which `openssl pkcs12 -in KEYSTORE -nodes` makes of a PKCS12 one",
        ),
        ("- a\n- b", "the configuration is not a list of keys and values"),
    ];
    for (yaml, problem) in cases {
        assert_eq!(problems(yaml), [problem], "{yaml}");
    }
    let sets = with(&["nonsense"]).expect_err("no value").problems;
    assert_eq!(sets, ["--set nonsense: must be key=value"]);
    let wildcard = with(&["rpc_address=0.0.0.0"]).expect_err("needs a broadcast address").problems;
    assert_eq!(wildcard.len(), 1);
}

/// Clients connect to the address that other nodes connect to, unless the file says another one.
#[test]
fn clients_are_served_at_the_listen_address() {
    let rpc = |yaml: &str| Config::load(Some(yaml), &[], false).expect(yaml).rpc_address.to_string();
    assert_eq!(rpc("cluster_name: a"), "127.0.0.1");
    assert_eq!(rpc("listen_address: 10.0.0.5"), "10.0.0.5");
    assert_eq!(rpc("listen_address: 10.0.0.5\nrpc_address:"), "10.0.0.5");
    assert_eq!(rpc("listen_address: 10.0.0.5\nrpc_address: 127.0.0.1"), "127.0.0.1");
}

#[test]
fn an_index_has_a_kind_without_using() {
    let kind = |yaml: &str| Config::load(Some(yaml), &[], false).expect(yaml).default_index;
    assert_eq!(kind("cluster_name: a").as_deref(), Some("legacy_local_table"));
    assert_eq!(kind("default_secondary_index: sai").as_deref(), Some("sai"));
    assert_eq!(kind("default_secondary_index: sai\ndefault_secondary_index_enabled: false"), None);
}

/// The snitch is known before the names of hosts are looked up.
#[test]
fn the_snitch_is_read_alone() {
    let snitch = |yaml: &str, sets: &[&str]| {
        let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
        Config::snitch_of(Some(yaml), &sets)
    };
    let package = "org.apache.cassandra.locator.";
    assert_eq!(snitch("listen_address: a-host", &[]), Some(Snitch::Simple));
    assert_eq!(snitch(&format!("endpoint_snitch: {package}Ec2Snitch"), &[]), Some(Snitch::Ec2));
    assert_eq!(snitch("endpoint_snitch: Ec2Snitch", &["endpoint_snitch=SimpleSnitch"]), Some(Snitch::Simple));
    assert_eq!((snitch("endpoint_snitch: Mine", &[]), snitch("a: [", &[])), (None, None));
}

/// Addresses of the node may be names of hosts, in the file and in settings.
#[test]
fn names_of_hosts_are_found() {
    let yaml = "listen_address: node1.example.com\nrpc_address: localhost\nbroadcast_address: 10.0.0.1\nno_key: 1";
    let sets = ["broadcast_rpc_address=public".to_owned(), "listen_address=node2".to_owned()];
    let names = |sets: &[String]| Config::host_names(Some(yaml), sets);
    let name = |key, name: &str| (key, name.to_owned());
    assert_eq!(names(&[]), [name("listen_address", "node1.example.com")]);
    assert_eq!(names(&sets), [name("broadcast_rpc_address", "public"), name("listen_address", "node2")]);
    assert!(Config::host_names(None, &["rpc_address='::1'".to_owned()]).is_empty());
}

#[test]
fn classes_of_auth_have_short_and_long_names() {
    let yaml =
        "authenticator: org.apache.cassandra.auth.PasswordAuthenticator\nauthorizer: {class_name: CassandraAuthorizer}";
    let config = Config::load(Some(yaml), &[], false).expect("valid");
    assert!(config.auth.authenticates && config.auth.authorizes && !config.auth.restricts_datacenters);
    assert_eq!(config.auth.threads, 4);
}

/// Each of the twelve keys changes its own field of its own cache, and no other.
#[test]
fn each_cache_of_auth_has_keys_of_its_own() {
    let caches = |auth: &Auth| [auth.roles, auth.permissions, auth.credentials];
    let usual = caches(&Config::default().auth);
    let seconds = Duration::from_secs;
    for (at, name) in ["roles", "permissions", "credentials"].into_iter().enumerate() {
        let before = usual[at];
        let changes = [
            ("validity=7s", AuthCache { validity: seconds(7), ..before }),
            ("validity_in_ms=7000", AuthCache { validity: seconds(7), ..before }),
            ("update_interval=1500ms", AuthCache { update_interval: Some(Duration::from_millis(1500)), ..before }),
            ("cache_max_entries=3", AuthCache { entries_max: 3, ..before }),
            ("cache_active_update=true", AuthCache { updates_actively: true, ..before }),
        ];
        for (key, expected) in changes {
            let found = caches(&with(&[&format!("{name}_{key}")]).expect(key).auth);
            let mut wanted = usual;
            wanted[at] = expected;
            assert_eq!(found, wanted, "{name}_{key}");
        }
    }
    assert_eq!(problems("roles_cache_max_entries: -1").len(), 1);
}

#[test]
fn the_log_is_compressed_and_captured_as_the_keys_say() {
    for (yaml, parameters) in [
        ("commitlog_compression: ZstdCompressor", None),
        ("commitlog_compression: [{class_name: ZstdCompressor}]", None),
        ("commitlog_compression: {class_name: ZstdCompressor, parameters: [{compression_level: 5}]}", Some("5")),
        ("commitlog_compression: [{class_name: ZstdCompressor, parameters: {compression_level: '5'}}]", Some("5")),
    ] {
        let config = Config::load(Some(yaml), &[], false).expect("valid");
        let compression = config.commitlog.compression.clone().expect("named");
        assert_eq!(compression.class, "ZstdCompressor", "{yaml}");
        assert_eq!(compression.parameters.get("compression_level").map(String::as_str), parameters, "{yaml}");
        let shown = config.settings().into_iter().find(|(name, _)| name == "commitlog_compression.parameters");
        assert_eq!(shown.unwrap().1.unwrap(), parameters.map_or("{}", |_| "{compression_level=5}"), "{yaml}");
    }
    assert_eq!(with(&[]).unwrap().commitlog.cdc, None);
    let cdc =
        with(&["cdc_enabled=true", "cdc_total_space=8MiB", "cdc_block_writes=false"]).unwrap().commitlog.cdc.unwrap();
    assert_eq!(
        (cdc.total_space, cdc.block_writes, cdc.check_interval),
        (Some(8 << 20), false, Duration::from_millis(250))
    );
}

#[test]
fn modes_of_access_to_the_log_are_those_that_cassandra_takes_except_direct() {
    let compressed = "commitlog_compression=LZ4Compressor";
    for mode in ["legacy", "auto", "mmap"] {
        assert!(with(&[&format!("commitlog_disk_access_mode={mode}")]).is_ok(), "{mode}");
    }
    for mode in ["legacy", "auto", "standard"] {
        assert!(with(&[&format!("commitlog_disk_access_mode={mode}"), compressed]).is_ok(), "{mode}");
    }
    for mode in ["standard", "direct", "mmap_index_only", "x"] {
        assert!(with(&[&format!("commitlog_disk_access_mode={mode}")]).is_err(), "{mode}");
    }
    for mode in ["mmap", "direct"] {
        assert!(with(&[&format!("commitlog_disk_access_mode={mode}"), compressed]).is_err(), "{mode}");
    }
}

#[test]
fn all_problems_are_told_at_once() {
    assert_eq!(problems("num_token: 8\nread_request_timeout: 5\nodd_key: 1").len(), 3);
}

#[test]
fn lenient_notes_and_goes_on() {
    let yaml = "odd_key: 1\ntransient_replication_enabled: true\nnum_tokens: 4";
    let config = Config::load(Some(yaml), &[], true).expect("lenient");
    assert_eq!(config.num_tokens, 4);
    assert_eq!(
        config.notes(),
        [
            "odd_key: no such key; ignored",
            "transient_replication_enabled: exists in Cassandra, but is not honoured yet at this value (ours: false); ignored"
        ]
    );
}

/// The keys and values of a stock file of 5.0, without `storage_compatibility_mode: CASSANDRA_4`.
const STOCK: &str = "
cluster_name: 'Test Cluster'
num_tokens: 16
allocate_tokens_for_local_replication_factor: 3
hinted_handoff_enabled: true
max_hint_window: 3h
hinted_handoff_throttle: 1024KiB
max_hints_delivery_threads: 2
hints_flush_period: 10000ms
max_hints_file_size: 128MiB
auto_hints_cleanup_enabled: false
batchlog_replay_throttle: 1024KiB
authenticator: {class_name: AllowAllAuthenticator}
authorizer: {class_name: AllowAllAuthorizer}
role_manager: {class_name: CassandraRoleManager, parameters: }
network_authorizer: {class_name: AllowAllNetworkAuthorizer}
cidr_authorizer: {class_name: AllowAllCIDRAuthorizer}
roles_validity: 2000ms
permissions_validity: 2000ms
credentials_validity: 2000ms
partitioner: org.apache.cassandra.dht.Murmur3Partitioner
cdc_enabled: false
disk_failure_policy: stop
commit_failure_policy: stop
prepared_statements_cache_size:
key_cache_size:
key_cache_save_period: 4h
row_cache_size: 0MiB
row_cache_save_period: 0s
counter_cache_size:
counter_cache_save_period: 7200s
commitlog_sync: periodic
commitlog_sync_period: 10000ms
commitlog_segment_size: 32MiB
seed_provider:
  - class_name: org.apache.cassandra.locator.SimpleSeedProvider
    parameters:
      - seeds: \"127.0.0.1:7000\"
concurrent_reads: 32
concurrent_writes: 32
concurrent_counter_writes: 32
concurrent_materialized_view_writes: 32
memtable_allocation_type: heap_buffers
index_summary_capacity:
index_summary_resize_interval: 60m
trickle_fsync: false
trickle_fsync_interval: 10240KiB
storage_port: 7000
ssl_storage_port: 7001
listen_address: localhost
start_native_transport: true
native_transport_port: 9042
native_transport_allow_older_protocols: true
rpc_address: localhost
rpc_keepalive: true
incremental_backups: false
snapshot_before_compaction: false
auto_snapshot: true
snapshot_links_per_second: 0
automatic_sstable_upgrade: false
reject_repair_compaction_threshold: 2147483647
repair_disk_headroom_reject_ratio: 0
use_deterministic_table_id: false
column_index_cache_size: 2KiB
concurrent_materialized_view_builders: 1
compaction_throughput: 64MiB/s
sstable_preemptive_open_interval: 50MiB
uuid_sstable_identifiers_enabled: false
read_request_timeout: 5000ms
range_request_timeout: 10000ms
write_request_timeout: 2000ms
counter_write_request_timeout: 5000ms
cas_contention_timeout: 1000ms
truncate_request_timeout: 60000ms
request_timeout: 10000ms
slow_query_log_timeout: 500ms
endpoint_snitch: SimpleSnitch
dynamic_snitch_update_interval: 100ms
dynamic_snitch_reset_interval: 600000ms
dynamic_snitch_badness_threshold: 1.0
server_encryption_options:
  internode_encryption: none
  legacy_ssl_storage_port_enabled: false
  keystore: conf/.keystore
  require_client_auth: false
client_encryption_options:
  enabled: false
  keystore: conf/.keystore
  require_client_auth: false
internode_compression: dc
inter_dc_tcp_nodelay: false
trace_type_query_ttl: 1d
trace_type_repair_ttl: 7d
user_defined_functions_enabled: false
transparent_data_encryption_options:
  enabled: false
  chunk_length_kb: 64
tombstone_warn_threshold: 1000
tombstone_failure_threshold: 100000
replica_filtering_protection:
  cached_rows_warn_threshold: 2000
  cached_rows_fail_threshold: 32000
batch_size_warn_threshold: 5KiB
batch_size_fail_threshold: 50KiB
unlogged_batch_across_partitions_warn_threshold: 10
audit_logging_options:
  enabled: false
  logger:
    - class_name: BinAuditLogger
diagnostic_events_enabled: false
repaired_data_tracking_for_range_reads_enabled: false
report_unconfirmed_repaired_data_mismatches: false
materialized_views_enabled: false
transient_replication_enabled: false
sasi_indexes_enabled: false
drop_compact_storage_enabled: false
dynamic_data_masking_enabled: false
";

#[test]
fn a_stock_file_starts() {
    let config = Config::load(Some(STOCK), &[], false).expect("accepted");
    assert!(matches!(config.commitlog.sync, CommitLogSync::Periodic { .. }));
    assert_eq!(config.timeouts.cas_contention, Duration::from_secs(1));
    let complete = format!("{STOCK}storage_compatibility_mode: CASSANDRA_4\n");
    let complete = Config::load(Some(&complete), &[], false).expect("accepted");
    assert_eq!((config.sstable, complete.sstable), (SSTableFormat::Bti, SSTableFormat::Big4));
}

#[test]
fn settings_show_every_key() {
    let config = with(&["max_hint_window=1h", "batch_size_warn_threshold=6KiB", "batch_size_fail_threshold=60KiB"])
        .expect("valid");
    let settings = config.settings();
    let value = |name: &str| settings.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_deref());
    assert_eq!(value("max_hint_window"), Some(Some("1h")));
    assert_eq!(value("batch_size_warn_threshold_in_kb"), Some(Some("6")));
    assert_eq!(value("authenticator.class_name"), Some(Some("AllowAllAuthenticator")));
    assert_eq!(value("broadcast_address"), Some(None));
    assert!(settings.is_sorted());
    assert!(settings.len() > 450);
}

/// A reader of `system_views.settings` sees no private key and no password, however deep it stands
/// in the file.
#[test]
fn settings_show_no_secret() {
    let yaml = "
client_encryption_options:
  enabled: true
  optional: true
  keystore: /etc/key.s3cr3t
  ssl_context_factory:
    class_name: PEMBasedSslContextFactory
    parameters:
      private_key: |
        -----BEGIN PRIVATE KEY-----
        s3cr3t
        -----END PRIVATE KEY-----
      private_key_password: s3cr3t
      trusted_certificates: a certificate
server_encryption_options:
  internode_encryption: none
  outbound_keystore_password: s3cr3t
  nested: [{token_secret: s3cr3t}]
";
    let config = Config::load(Some(yaml), &[], false).expect("known keys");
    let settings = config.settings();
    for (name, value) in &settings {
        assert!(!value.as_ref().is_some_and(|value| value.contains("s3cr3t")), "{name}: {value:?}");
    }
    assert!(!format!("{config:?}").contains("s3cr3t"));
    let value = |name: &str| settings.iter().find(|(known, _)| known == name).and_then(|(_, value)| value.as_deref());
    let factory = "client_encryption_options.ssl_context_factory";
    assert_eq!(value(&format!("{factory}.class_name")), Some("PEMBasedSslContextFactory"));
    assert_eq!(
        value(&format!("{factory}.parameters")),
        Some("{private_key=<REDACTED>, private_key_password=<REDACTED>, trusted_certificates=a certificate}")
    );
    assert_eq!(value(factory), None);
    let compaction = "default_compaction: {class_name: SizeTieredCompactionStrategy, parameters: {password: s3cr3t}}";
    let settings = Config::load(Some(compaction), &[], false).expect("known keys").settings();
    assert!(settings.contains(&("default_compaction.parameters".to_owned(), Some("{password=<REDACTED>}".to_owned()))));
}

/// The error says where, and does not quote the lines around, which the log of a service would
/// keep.
#[test]
fn a_file_that_is_no_yaml_is_not_quoted() {
    let broken = "client_encryption_options:\n  keystore_password: s3cr3t\n  enabled: [\nnum_tokens: 1\n";
    let error = Config::load(Some(broken), &[], false).expect_err("no YAML").to_string();
    assert!(error.contains("line 3 column 12") && !error.contains("s3cr3t"), "{error}");
}

#[test]
fn new_tables_have_the_strategy_of_the_configuration() {
    let of = |yaml: &str| {
        let config = Config::load((!yaml.is_empty()).then_some(yaml), &[], false).expect(yaml);
        let options: Vec<String> =
            config.compaction.default.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let shown = config.settings().into_iter().filter(|(name, _)| name.starts_with("default_compaction."));
        (options.join(" "), shown.map(|(_, value)| value.unwrap_or_else(|| "null".to_owned())).collect::<Vec<_>>())
    };
    let (unified, shown) = of("");
    assert_eq!(
        unified,
        "class=UnifiedCompactionStrategy max_sstables_to_compact=64 min_sstable_size=100MiB scaling_parameters=T4 \
         sstable_growth=0.3333333333333333 target_sstable_size=1GiB"
    );
    // Cassandra's own default is not shown either
    assert_eq!(shown, ["null", "null"]);
    let (tiered, shown) = of("default_compaction: SizeTieredCompactionStrategy");
    assert_eq!(
        (tiered.as_str(), shown),
        ("class=SizeTieredCompactionStrategy", vec!["SizeTieredCompactionStrategy".into(), "{}".into()])
    );
    let leveled =
        "default_compaction:\n  class_name: LeveledCompactionStrategy\n  parameters:\n    sstable_size_in_mb: 64";
    let listed = "default_compaction:\n  - class_name: LeveledCompactionStrategy\n    parameters:\n      - sstable_size_in_mb: 64";
    for yaml in [leveled, listed] {
        let (options, shown) = of(yaml);
        assert_eq!(options, "class=LeveledCompactionStrategy sstable_size_in_mb=64");
        assert_eq!(shown, ["LeveledCompactionStrategy", "{sstable_size_in_mb=64}"]);
    }
    assert_eq!(problems("default_compaction: {parameters: {a: b}}"), ["default_compaction: must have a class_name"]);
}
