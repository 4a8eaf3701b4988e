//! A node that is not there: the figures of the recorded run, for the tests of nodetool and of the
//! HTTP API.

use std::sync::{Arc, Mutex};

use crate::histogram::tests::of;
use crate::verb::{AdminError, Functions, LocalAdminApi, Result};
use crate::verbs::*;

/// The calls that were made of the node, and the values that were set.
#[derive(Default)]
pub struct Settings {
    pub calls: Vec<String>,
    pub trace_probability: f64,
    pub levels: Vec<(String, String)>,
    pub snapshots: Vec<SnapshotInfo>,
    pub throughput: u64,
    pub token_file: Option<String>,
    /// The ring; None: this node alone.
    pub ring: Option<RingInfo>,
    pub without_auto_compaction: Vec<String>,
    pub pending_hints: Vec<PendingHintsInfo>,
    pub streams: Vec<StreamSessionInfo>,
    pub read_repairs: ReadRepairCounts,
    /// The mode of operation; None: NORMAL.
    pub mode: Option<&'static str>,
    /// A compaction lasts for as long as this is locked; None: it ends at once.
    pub gate: Option<Arc<Mutex<()>>>,
}

/// The node.
pub struct FakeNode(pub Mutex<Settings>);

/// A new node with the functions of all verbs.
pub fn fake() -> Arc<LocalAdminApi<FakeNode>> {
    Arc::new(LocalAdminApi::new(FakeNode::default(), functions()))
}

/// The functions of all verbs; their bodies are below.
pub fn functions() -> Functions<FakeNode> {
    let mut functions = Functions::default();
    functions
        .add(|node: &FakeNode, _: &GetNode| node.node())
        .add(|node: &FakeNode, get: &GetRing| node.ring(get))
        .add(|node: &FakeNode, _: &GetSchemaVersions| node.schema_versions())
        .add(|node: &FakeNode, _: &GetKeyspaces| node.keyspaces())
        .add(|node: &FakeNode, _: &GetTokenFile| Ok(node.0.lock().expect("no panic inside").token_file.clone()))
        .add(|node: &FakeNode, _: &Drain| node.called("drain".to_owned()))
        .add(|node: &FakeNode, change: &TransportChange| node.called(format!("transport {change:?}")))
        .add(|node: &FakeNode, _: &GetGossip| node.gossip())
        .add(|node: &FakeNode, movement: &RangeMovement| node.called(format!("movement {movement:?}")))
        .add(|node: &FakeNode, _: &ResumeBootstrap| {
            node.called("resume bootstrap".to_owned())?;
            Ok(Some("nothing was heard of 10.0.0.2:7000 for 400 s".to_owned()))
        })
        .add(|_: &FakeNode, _: &GetRemovalStatus| Ok("No token removals in process.".to_owned()))
        .add(|node: &FakeNode, request: &CleanupRequest| {
            node.called(format!("cleanup {:?} {:?} {}", request.tables.keyspaces, request.tables.tables, request.jobs))
        })
        .add(|_: &FakeNode, _: &GetSeeds| Ok(vec!["/10.0.0.2:7000".to_owned(), "/10.0.0.3:7000".to_owned()]))
        .add(|_: &FakeNode, _: &ReloadSeeds| Ok(Some(Vec::new())))
        .add(|node: &FakeNode, _: &ReloadCertificates| node.called("reload certificates".to_owned()))
        .add(|node: &FakeNode, change: &GossipChange| node.called(format!("gossip {change:?}")))
        .add(|node: &FakeNode, _: &GetMessages| {
            let small = MessagePool { completed: 2, ..MessagePool::default() };
            let read_repairs = node.0.lock().expect("no panic inside").read_repairs;
            Ok(MessagePools { small, read_repairs, ..MessagePools::default() })
        })
        .add(|_: &FakeNode, _: &GetMessageCounts| {
            let read = MessageCounts { verb: "READ_REQ".to_owned(), received: 7, dropped: 2 };
            Ok(vec![read, MessageCounts { verb: "PING_REQ".to_owned(), ..MessageCounts::default() }])
        })
        .add(|_: &FakeNode, of: &GetProfile| {
            let worker = ThreadUse {
                name: "worker-0".to_owned(),
                id: 7,
                cpu_micros: 1_500_000,
                queued_micros: 20_000,
                turns: 9,
            };
            let memory = vec![("anonymous".to_owned(), 3 << 20)];
            let micros = of.duration_millis * 1_000;
            Ok(Profile { micros, threads: vec![worker], memory, disk_read: 2048, ..Profile::default() })
        })
        .add(|_: &FakeNode, _: &GetSlowStatements| Ok(SlowStatements::default()))
        .add(|_: &FakeNode, _: &GetLog| Ok(vec![LogEntry { message: "a line".to_owned(), ..LogEntry::default() }]))
        .add(|_: &FakeNode, _: &GetSchema| Ok(Vec::new()))
        .add(|node: &FakeNode, _: &GetTables| node.tables())
        .add(|node: &FakeNode, _: &GetClientLatencies| node.client_latencies())
        .add(|node: &FakeNode, _: &GetPools| node.pools())
        .add(|node: &FakeNode, _: &GetMetrics| node.metrics())
        .add(|node: &FakeNode, flush: &Flush| node.flush(&flush.tables))
        .add(|node: &FakeNode, get: &GetAutoCompaction| node.auto_compaction(&get.tables))
        .add(|node: &FakeNode, set: &SetAutoCompaction| node.set_auto_compaction(&set.tables, set.on))
        .add(|_: &FakeNode, _: &GetCompactionThresholds| Ok((4, 32)))
        .add(|node: &FakeNode, set: &SetCompactionThresholds| {
            node.called(format!("thresholds {} {} {} {}", set.keyspace, set.table, set.min, set.max))
        })
        .add(|node: &FakeNode, _: &GetCompactions| node.compactions())
        .add(|node: &FakeNode, _: &GetCompactionHistory| node.compaction_history())
        .add(|node: &FakeNode, request: &CompactRequest| node.compact(request))
        .add(|node: &FakeNode, request: &StopRequest| node.called(format!("{request:?}")))
        .add(|node: &FakeNode, set: &SetConcurrentCompactors| {
            node.called(format!("concurrent compactors {}", set.count))
        })
        .add(|node: &FakeNode, set: &SetCompactionThroughput| node.set_compaction_throughput(set.bytes_per_second))
        .add(|node: &FakeNode, of: &GetEndpoints| node.endpoints(&of.keyspace, &of.table, &of.key))
        .add(|node: &FakeNode, of: &GetSSTables| node.sstables(&of.keyspace, &of.table, &of.key, of.hex))
        .add(|node: &FakeNode, of: &GetTombstones| node.tombstones(&of.keyspace, &of.table, of.top))
        .add(|node: &FakeNode, request: &ImportRequest| node.import(request))
        .add(|node: &FakeNode, request: &RepairRequest| node.repair(request))
        .add(|node: &FakeNode, _: &StopRepairs| node.called("stop repairs".to_owned()))
        .add(|_: &FakeNode, of: &GetTableCompaction| {
            let options =
                vec![("class".to_owned(), "org.apache.cassandra.db.compaction.LeveledCompactionStrategy".to_owned())];
            Ok(if of.keyspace == "shop" { vec![("items".to_owned(), options)] } else { Vec::new() })
        })
        .add(|node: &FakeNode, get: &GetRepair| node.repair_events(get))
        .add(|_: &FakeNode, get: &GetRepairSessions| Ok(repair_sessions(get)))
        .add(|_: &FakeNode, get: &GetPendingRepairs| Ok(pending_repairs(get)))
        .add(|_: &FakeNode, get: &GetRepaired| Ok(repaired(get)))
        .add(|_: &FakeNode, request: &CleanUpRepairs| Ok(cleaned_up(request)))
        .add(|node: &FakeNode, cancel: &CancelRepair| node.called(format!("{cancel:?}")))
        .add(|_: &FakeNode, _: &GetRepairSchedule| Ok(repair_schedule()))
        .add(|_: &FakeNode, _: &GetRepairSettings| {
            let full = vec![("parallel_repair_count".to_owned(), "3".to_owned())];
            Ok(RepairSettingsInfo { is_on: true, check_seconds: 300, full })
        })
        .add(|node: &FakeNode, set: &SetRepairSetting| node.called(format!("repair {} {}", set.name, set.value)))
        .add(|_: &FakeNode, of: &GetViewBuild| Ok(view_build(of)))
        .add(|node: &FakeNode, of: &Refresh| node.called(format!("refresh {} {}", of.keyspace, of.table)))
        .add(|node: &FakeNode, of: &RebuildIndexes| {
            node.called(format!("rebuild_index {} {} {}", of.keyspace, of.table, of.indexes.join(" ")))
        })
        .add(|node: &FakeNode, request: &SSTableRequest| node.work_on_sstables(request))
        .add(|node: &FakeNode, _: &GetSnapshots| node.snapshots())
        .add(|node: &FakeNode, request: &SnapshotRequest| node.take_snapshot(request))
        .add(|node: &FakeNode, request: &RingSnapshotRequest| {
            node.called(format!("ring snapshot {request:?}")).map(|()| Vec::new())
        })
        .add(|node: &FakeNode, clear: &ClearSnapshots| {
            node.called(format!("clear {:?} {:?}", clear.name, clear.keyspaces))
        })
        .add(|node: &FakeNode, clear: &ClearOldSnapshots| {
            node.called(format!("clear {:?} {:?}", clear.older_than, clear.keyspaces))
        })
        .add(|node: &FakeNode, change: &CacheChange| node.called(format!("caches {change:?}")))
        .add(|node: &FakeNode, change: &AuthCacheChange| node.called(format!("auth caches {change:?}")))
        .add(|_: &FakeNode, _: &GetAuthCache| {
            Ok(AuthCacheInfo {
                validity_millis: 2000,
                update_interval_millis: 1000,
                entries_max: 1000,
                updates_actively: false,
            })
        })
        .add(|_: &FakeNode, _: &GetHandoff| {
            let disabled_data_centers = Vec::new();
            Ok(HandoffInfo {
                is_enabled: true,
                is_paused: false,
                disabled_data_centers,
                window_millis: 10_800_000,
                throttle: 1 << 20,
            })
        })
        .add(|node: &FakeNode, change: &HandoffChange| node.called(format!("handoff {change:?}")))
        .add(|node: &FakeNode, _: &GetPendingHints| Ok(node.0.lock().expect("no panic inside").pending_hints.clone()))
        .add(|node: &FakeNode, _: &GetStreams| Ok(node.0.lock().expect("no panic inside").streams.clone()))
        .add(|_: &FakeNode, _: &GetStreamThroughput| {
            Ok(StreamThroughputInfo { all: 24 << 20, inter_dc: 25_000_000, entire: 24 << 20, entire_inter_dc: 0 })
        })
        .add(|node: &FakeNode, set: &SetStreamThroughput| node.called(format!("{set:?}")))
        .add(|node: &FakeNode, _: &GetTraceProbability| node.trace_probability())
        .add(|node: &FakeNode, set: &SetTraceProbability| node.set_trace_probability(set.probability))
        .add(|node: &FakeNode, get: &GetTimeout| node.timeout(get.kind))
        .add(|node: &FakeNode, set: &SetTimeout| node.called(format!("timeout {} {}", set.kind.name(), set.millis)))
        .add(|_: &FakeNode, _: &GetGuardrails| Ok(guardrails()))
        .add(|node: &FakeNode, set: &SetGuardrails| node.called(format!("guardrails {:?}", set.settings)))
        .add(|node: &FakeNode, _: &GetLoggingLevels| node.logging_levels())
        .add(|node: &FakeNode, set: &SetLoggingLevel| node.set_logging_level(&set.logger, &set.level))
        .add(|node: &FakeNode, request: &SampleRequest| node.sample(request))
        .add(|node: &FakeNode, of: &ScheduleSampling| node.schedule_sampling(&of.sample, of.interval_millis))
        .add(|node: &FakeNode, of: &StopSampling| node.stop_sampling(of.keyspace.as_deref(), of.table.as_deref()))
        .add(|_: &FakeNode, _: &GetSamplingJobs| Ok(vec![("shop".into(), "orders".into())]));
    functions
}

impl Default for FakeNode {
    fn default() -> Self {
        let settings = Settings { throughput: 64 << 20, ..Settings::default() };
        Self(Mutex::new(settings))
    }
}

const TOKENS: [i64; 16] = [
    -9221494177246114148,
    -7631489624732215510,
    -6012466329035172212,
    -5034320876519058137,
    -3255686575695471008,
    -2159644675460532719,
    -1068347564768320459,
    -223970917277158703,
    1216297312625424535,
    2287797928965457348,
    3305649333707884363,
    4123321266320235158,
    5199077147545814697,
    5934992840256708338,
    7014365647704309996,
    8257885653384901968,
];

impl FakeNode {
    fn called(&self, call: String) -> Result<()> {
        self.0.lock().expect("no panic inside").calls.push(call);
        Ok(())
    }
}

fn orders() -> TableStats {
    let mut read_latency = of(&[(103, 10), (149, 70), (258, 16), (310, 2), (446, 1), (535, 1)]);
    read_latency.sum = 14_334;
    let mut write_latency = of(&[(3, 10), (17, 1000), (24, 500), (35, 390), (42, 70), (60, 29), (446, 1)]);
    write_latency.sum = 38_083;
    TableStats {
        keyspace: "shop".to_owned(),
        table: "orders".to_owned(),
        sstable_count: 1,
        max_sstable_size: 29_304,
        space_used_live: 29_304,
        space_used_total: 29_304,
        compression_ratio: 0.365_505_544_266_124_75,
        estimated_partitions: 100,
        memtable_switch_count: 1,
        read_latency,
        write_latency,
        sstables_per_read: of(&[]),
        live_rows_per_read: of(&[(20, 100)]),
        tombstones_per_read: of(&[(1, 100)]),
        partition_size: of(&[(642, 99), (535, 0), (642, 1)]),
        cell_count: of(&[(42, 100)]),
        bytes_unrepaired: 62_497,
        bloom_filter_space_used: 136,
        bloom_filter_memory: 128,
        compression_metadata_memory: 32,
        min_partition_size: 536,
        max_partition_size: 642,
        mean_partition_size: 642,
        ..TableStats::default()
    }
}

fn items() -> TableStats {
    let mut write_latency = of(&[(10, 1), (17, 5), (20, 4), (535, 1)]);
    write_latency.sum = 715;
    TableStats {
        keyspace: "shop".to_owned(),
        table: "items".to_owned(),
        sstable_count: 1,
        max_sstable_size: 5286,
        space_used_live: 5286,
        space_used_total: 5286,
        compression_ratio: 0.7343,
        estimated_partitions: 10,
        memtable_switch_count: 1,
        read_latency: of(&[]),
        write_latency,
        partition_size: of(&[(20, 1), (24, 9)]),
        cell_count: of(&[(1, 10)]),
        bytes_unrepaired: 207,
        bloom_filter_space_used: 24,
        bloom_filter_memory: 16,
        compression_metadata_memory: 8,
        min_partition_size: 18,
        max_partition_size: 24,
        mean_partition_size: 24,
        ..TableStats::default()
    }
}

fn keyspace(name: &str, class: &str, factor: Option<u32>, tables: &[&str]) -> KeyspaceInfo {
    KeyspaceInfo {
        name: name.to_owned(),
        replication_class: class.to_owned(),
        replication_options: factor
            .map(|factor| ("replication_factor".to_owned(), factor.to_string()))
            .into_iter()
            .collect(),
        tables: tables.iter().map(|table| (*table).to_owned()).collect(),
        table_ids: (1..=tables.len()).map(|number| format!("{number:032x}")).collect(),
    }
}

fn entry(
    id: &str,
    names: (&str, &str),
    at: i64,
    bytes: (u64, u64),
    merged: (u32, u64),
    kind: &str,
) -> CompactionHistoryEntry {
    CompactionHistoryEntry {
        id: id.to_owned(),
        keyspace: names.0.to_owned(),
        table: names.1.to_owned(),
        compacted_at: at,
        bytes_in: bytes.0,
        bytes_out: bytes.1,
        rows_merged: vec![merged],
        properties: vec![("compaction_type".to_owned(), kind.to_owned())],
    }
}

/// The endpoint of the node in a ring of its own.
pub fn endpoint(node: NodeInfo) -> EndpointInfo {
    EndpointInfo {
        address: node.address,
        storage_port: node.storage_port,
        rpc_address: node.rpc_address,
        native_port: node.native_port,
        host_id: node.host_id,
        data_center: node.data_center,
        rack: node.rack,
        is_up: true,
        state: EndpointState::Normal,
        load: Some(node.load),
        release_version: Some(node.release_version),
        schema_version: Some(node.schema_version),
        tokens: node.tokens,
        owns: Some(1.0),
    }
}

impl FakeNode {
    pub fn node(&self) -> Result<NodeInfo> {
        Ok(NodeInfo {
            host_id: "3cba1d95-7197-4a36-adab-d6f7139b492b".to_owned(),
            cluster_name: "Test Cluster".to_owned(),
            release_version: "5.0.8".to_owned(),
            helenus_version: "0.1.0".to_owned(),
            snitch: "org.apache.cassandra.locator.SimpleSnitch".to_owned(),
            dynamic_snitch: true,
            partitioner: "org.apache.cassandra.dht.Murmur3Partitioner".to_owned(),
            data_center: "datacenter1".to_owned(),
            rack: "rack1".to_owned(),
            address: "127.0.0.1".to_owned(),
            storage_port: 7000,
            rpc_address: "127.0.0.1".to_owned(),
            native_port: 9042,
            gossip_active: true,
            native_transport_active: true,
            mode: self.0.lock().expect("no panic inside").mode.unwrap_or("NORMAL").to_owned(),
            schema_version: "ae161058-45b9-3f9a-a388-15618625d21f".to_owned(),
            sstable_version: "bti-da".to_owned(),
            load: 151_265,
            uncompressed_load: 230_738,
            generation: 1_795_253_870,
            uptime_seconds: 374,
            memory_used: 126_437_294,
            memory_max: 1 << 30,
            exceptions: 0,
            chunk_cache: CacheInfo::default(),
            key_cache: CacheInfo::default(),
            key_cache_save_period: 14_400,
            row_cache: CacheInfo::default(),
            row_cache_save_period: 0,
            percent_repaired: 100.0,
            tokens: TOKENS.to_vec(),
            bootstrap_state: "COMPLETED".to_owned(),
        })
    }

    fn ring(&self, get: &GetRing) -> Result<RingInfo> {
        self.called(format!("ring {:?}", get.keyspace))?;
        if let Some(ring) = &self.0.lock().expect("no panic inside").ring {
            return Ok(ring.clone());
        }
        let node = self.node()?;
        let starts = node.tokens.last().into_iter().chain(&node.tokens);
        let range = |(start, end): (&i64, &i64)| RangeInfo { start: *start, end: *end, replicas: vec![0] };
        let ranges = starts.zip(&node.tokens).map(range).collect();
        Ok(RingInfo { endpoints: vec![endpoint(node)], note: None, ranges })
    }

    fn schema_versions(&self) -> Result<Vec<SchemaVersion>> {
        let version = |endpoint: EndpointInfo| SchemaVersion {
            address: endpoint.address,
            storage_port: endpoint.storage_port,
            version: endpoint.schema_version.filter(|_| endpoint.is_up),
        };
        Ok(self.ring(&GetRing { keyspace: None })?.endpoints.into_iter().map(version).collect())
    }

    fn gossip(&self) -> Result<Vec<GossipState>> {
        let node = self.node()?;
        let status = "NORMAL,-1068347564768320459";
        let states = [
            ("STATUS", 29, status),
            ("LOAD", 401, "118320.0"),
            ("SCHEMA", 410, &node.schema_version),
            ("DC", 8, &node.data_center),
            ("RACK", 10, &node.rack),
            ("RELEASE_VERSION", 5, &node.release_version),
            ("RPC_ADDRESS", 4, &node.rpc_address),
            ("NET_VERSION", 1, "13"),
            ("HOST_ID", 2, &node.host_id),
            ("RPC_READY", 31, "true"),
            ("NATIVE_ADDRESS_AND_PORT", 3, "127.0.0.1:9042"),
            ("STATUS_WITH_PORT", 28, status),
            ("SSTABLE_VERSIONS", 6, "bti-da"),
            ("TOKENS", 27, "\0\0"),
        ];
        let states = states.map(|(name, version, value)| (name.to_owned(), version, value.to_owned()));
        let this = GossipState {
            address: node.address,
            storage_port: node.storage_port,
            generation: 1_795_253_870,
            heartbeat: 420,
            states: states.to_vec(),
            phi: None,
        };
        Ok(vec![this])
    }

    fn keyspaces(&self) -> Result<Vec<KeyspaceInfo>> {
        Ok(vec![
            keyspace("system_traces", "SimpleStrategy", Some(2), &["events", "sessions"]),
            keyspace("system_distributed", "SimpleStrategy", Some(3), &[]),
            keyspace("system_auth", "SimpleStrategy", Some(1), &[]),
            keyspace("shop", "SimpleStrategy", Some(1), &["items", "orders"]),
            keyspace("system_schema", "LocalStrategy", None, &[]),
            keyspace("system", "LocalStrategy", None, &["local"]),
        ])
    }

    fn tables(&self) -> Result<Vec<TableStats>> {
        Ok(vec![orders(), items()])
    }

    fn client_latencies(&self) -> Result<ClientLatencies> {
        Ok(ClientLatencies {
            read: of(&[(124, 4), (372, 46), (642, 25), (1597, 20), (2759, 4), (3311, 1)]),
            write: of(&[(86, 10), (258, 50), (310, 20), (535, 15), (924, 3), (1109, 1), (8239, 1)]),
            range: of(&[(642, 4), (2299, 46), (5722, 25), (14237, 20), (29521, 5)]),
            ..ClientLatencies::default()
        })
    }

    fn compactions(&self) -> Result<CompactionStats> {
        Ok(CompactionStats {
            concurrent_compactors: 2,
            completed: 4,
            bytes_compacted: 48_117,
            fifteen_minute_rate: 8.2 / 60.0,
            mean_rate: 38.83 / 3600.0,
            throughput: self.0.lock().expect("no panic inside").throughput,
            ..CompactionStats::default()
        })
    }

    fn compaction_history(&self) -> Result<Vec<CompactionHistoryEntry>> {
        let schema = |table| ("system_schema", table);
        Ok(vec![
            entry(
                "116d40a0-e590-11f1-8d07-ad9415c13406",
                schema("keyspaces"),
                1_795_254_235_595,
                (553, 267),
                (1, 6),
                "Compaction",
            ),
            entry(
                "1176dd90-e590-11f1-8d07-ad9415c13406",
                schema("columns"),
                1_795_254_235_688,
                (8282, 8018),
                (1, 6),
                "Compaction",
            ),
            entry(
                "118164e0-e590-11f1-8d07-ad9415c13406",
                schema("tables"),
                1_795_254_235_715,
                (4387, 3842),
                (1, 6),
                "Compaction",
            ),
            entry(
                "258328c0-e590-11f1-8d07-ad9415c13406",
                ("shop", "orders"),
                1_795_254_269_282,
                (22843, 22843),
                (1, 100),
                "Major compaction",
            ),
            entry(
                "3a15d770-e58f-11f1-8d07-ad9415c13406",
                ("system", "local"),
                1_795_253_874_337,
                (810, 687),
                (7, 1),
                "Compaction",
            ),
        ])
    }

    fn pools(&self) -> Result<Vec<PoolStats>> {
        let pool = |name: &str, completed| PoolStats {
            name: name.to_owned(),
            active: 0,
            pending: 0,
            completed,
            blocked: 0,
            all_time_blocked: 0,
        };
        Ok(vec![pool("MutationStage", 2012), pool("ReadStage", 245), pool("Native-Transport-Auth-Requests", 0)])
    }

    fn metrics(&self) -> Result<NodeMetrics> {
        let foreign = ForeignRequests { total: 6, by_keyspace: vec![("shop".to_owned(), [1, 2, 3])] };
        let requests = vec![("QUERY".to_owned(), 7)];
        let hints = HintCounts {
            not_stored: 12,
            past_window: 5,
            succeeded: 40,
            failed: 2,
            timed_out: 3,
            expired: 4,
            damaged: 1,
            for_unowned_ranges: 6,
        };
        Ok(NodeMetrics { connections: 3, requests, foreign, hints, ..NodeMetrics::default() })
    }

    fn endpoints(&self, keyspace: &str, table: &str, key: &str) -> Result<Vec<String>> {
        self.called(format!("endpoints {keyspace} {table} {key}"))?;
        Ok(vec!["127.0.0.1".to_owned()])
    }

    fn sstables(&self, keyspace: &str, table: &str, key: &str, hex: bool) -> Result<SSTablesOfKey> {
        self.called(format!("sstables {key} {hex}"))?;
        let directory = format!("/var/lib/cassandra/data/{keyspace}/{table}-117297d0e59011f18d07ad9415c13406");
        let file = |level, id| (level, format!("{directory}/da-{id}-bti-Data.db"));
        Ok(match table {
            "items" => SSTablesOfKey { is_leveled: true, files: vec![file(2, 7), file(0, 9), file(1, 8)] },
            _ => SSTablesOfKey { is_leveled: false, files: vec![file(0, 1)] },
        })
    }

    fn tombstones(&self, keyspace: &str, table: &str, top: u32) -> Result<Vec<String>> {
        self.called(format!("tombstones {keyspace} {table} {top}"))?;
        let text = |id| format!("da-{id}-bti: 0 tombstones in 0 of 7 partitions (9 rows)\n");
        Ok(if table == "items" { Vec::new() } else { vec![text(1), text(2)] })
    }

    /// The table says how it ends.
    fn repair(&self, request: &RepairRequest) -> Result<Option<i32>> {
        self.called(format!("{request:?}"))?;
        Ok(match (request.keyspace.as_str(), request.tables.first().map(String::as_str)) {
            ("shop", Some("items")) => Some(2),
            ("shop", _) => Some(1),
            _ => None,
        })
    }

    fn repair_events(&self, get: &GetRepair) -> Result<RepairEvents> {
        let event = |kind, text: &str| RepairEvent { at: 1_795_254_269_282, kind, text: text.to_owned() };
        let events = match (get.number, get.from) {
            (_, 0) => vec![event(RepairEventKind::Start, "Starting repair command #1")],
            (1, 1) => {
                let done = "Repair session 7 for range [(1,2]] finished";
                vec![event(RepairEventKind::Progress(57), done), event(RepairEventKind::Complete, "finished")]
            }
            (2, 1) => vec![event(RepairEventKind::Error, "Repair command #2 failed with error it")],
            _ => Vec::new(),
        };
        Ok(RepairEvents { events, has_ended: get.from > 1 })
    }

    fn import(&self, request: &ImportRequest) -> Result<Vec<String>> {
        self.called(format!("{request:?}"))?;
        if request.directories.iter().any(|directory| directory == "/nowhere") {
            return Err(AdminError::Failed("Directory /nowhere does not exist".to_owned()));
        }
        Ok(request.directories.iter().filter(|directory| directory.contains("bad")).cloned().collect())
    }

    /// The keyspace says how it ends.
    fn work_on_sstables(&self, request: &SSTableRequest) -> Result<SSTableOutcome> {
        self.called(format!("{request:?}"))?;
        match (request.keyspace.as_str(), request.tables.first().map(String::as_str)) {
            ("shop", Some("corrupt")) => {
                Err(AdminError::Failed("Invalid SSTable da-1-bti-Data.db, please force a full repair".to_owned()))
            }
            ("shop", Some("stopped")) => Ok(SSTableOutcome { status: 1, lines: Vec::new() }),
            ("shop", Some("busy")) => Ok(SSTableOutcome { status: 2, lines: vec!["a line".to_owned()] }),
            _ => Ok(SSTableOutcome::default()),
        }
    }

    fn flush(&self, tables: &TableSelection) -> Result<()> {
        self.called(format!("flush {:?} {:?}", tables.keyspaces, tables.tables))
    }

    fn compact(&self, request: &CompactRequest) -> Result<()> {
        let CompactRequest { tables, what } = request;
        self.called(format!("compact {:?} {:?} {what:?}", tables.keyspaces, tables.tables))?;
        let gate = self.0.lock().expect("no panic inside").gate.clone();
        if let Some(gate) = gate {
            drop(gate.lock().expect("no panic inside"));
        }
        Ok(())
    }

    fn auto_compaction(&self, tables: &TableSelection) -> Result<Vec<(String, String, bool)>> {
        let off = self.0.lock().expect("no panic inside").without_auto_compaction.clone();
        let named =
            |keyspace: &str| tables.keyspaces.is_empty() || tables.keyspaces.iter().any(|name| name == keyspace);
        let all = [("shop", "items"), ("shop", "orders")].into_iter().filter(|(keyspace, _)| named(keyspace));
        let one =
            |(keyspace, table): (&str, &str)| (keyspace.into(), table.into(), !off.iter().any(|name| name == table));
        Ok(all.map(one).collect())
    }

    fn set_auto_compaction(&self, tables: &TableSelection, on: bool) -> Result<()> {
        let mut settings = self.0.lock().expect("no panic inside");
        settings.without_auto_compaction = if on { Vec::new() } else { tables.tables.clone() };
        drop(settings);
        self.called(format!("auto compaction {:?} {:?} {on}", tables.keyspaces, tables.tables))
    }

    fn snapshots(&self) -> Result<Vec<SnapshotInfo>> {
        Ok(self.0.lock().expect("no panic inside").snapshots.clone())
    }

    fn take_snapshot(&self, request: &SnapshotRequest) -> Result<()> {
        if request.name == "taken" {
            return Err(AdminError::Failed("Snapshot taken already exists.".to_owned()));
        }
        self.called(format!("snapshot {request:?}"))
    }

    fn trace_probability(&self) -> Result<f64> {
        Ok(self.0.lock().expect("no panic inside").trace_probability)
    }

    fn set_trace_probability(&self, probability: f64) -> Result<()> {
        self.0.lock().expect("no panic inside").trace_probability = probability;
        Ok(())
    }

    fn timeout(&self, kind: TimeoutKind) -> Result<u64> {
        Ok(match kind {
            TimeoutKind::Read | TimeoutKind::CounterWrite => 5000,
            TimeoutKind::Range | TimeoutKind::Misc => 10_000,
            TimeoutKind::Write => 2000,
            TimeoutKind::CasContention => 1800,
            TimeoutKind::Truncate => 60_000,
        })
    }

    fn set_compaction_throughput(&self, bytes_a_second: u64) -> Result<()> {
        self.0.lock().expect("no panic inside").throughput = bytes_a_second;
        Ok(())
    }

    fn sample(&self, request: &SampleRequest) -> Result<Samples> {
        let sample = |value: &str, count| Sample { table: "shop.orders".into(), value: value.into(), count, error: 0 };
        let of = |name: &String| match name.as_str() {
            "READS" => vec![sample("1", 168), sample("2", 84)],
            "READ_ROW_COUNT" => vec![sample("1", 100), sample("1", 100)],
            _ => Vec::new(),
        };
        if request.table.as_deref() == Some("nosuch") {
            return Err(AdminError::Invalid("ColumnFamilyStore for shop/nosuch not found.".to_owned()));
        }
        self.called(format!("{request:?}"))?;
        Ok(request.samplers.iter().map(|name| (name.clone(), of(name))).collect())
    }

    fn schedule_sampling(&self, request: &SampleRequest, interval_millis: u64) -> Result<bool> {
        self.called(format!("{request:?} every {interval_millis}"))?;
        Ok(request.keyspace.is_none())
    }

    fn stop_sampling(&self, keyspace: Option<&str>, table: Option<&str>) -> Result<bool> {
        self.called(format!("stop sampling {keyspace:?} {table:?}"))?;
        Ok(keyspace.is_none())
    }

    fn logging_levels(&self) -> Result<Vec<(String, String)>> {
        let levels = &self.0.lock().expect("no panic inside").levels;
        Ok(std::iter::once(("ROOT".to_owned(), "INFO".to_owned())).chain(levels.iter().cloned()).collect())
    }

    fn set_logging_level(&self, logger: &str, level: &str) -> Result<()> {
        self.0.lock().expect("no panic inside").levels.push((logger.to_owned(), level.to_owned()));
        Ok(())
    }
}

/// The sessions of a Cassandra 5.0.8 whose repair was interrupted.
fn repair_sessions(get: &GetRepairSessions) -> Vec<RepairSessionInfo> {
    let session = |id: &str, state: &str, idle_seconds| RepairSessionInfo {
        id: id.to_owned(),
        state: state.to_owned(),
        idle_seconds,
        coordinator: "127.30.0.31:7000".to_owned(),
        participants: vec!["127.30.0.31:7000".to_owned(), "127.30.0.32:7000".to_owned()],
    };
    let under_way = session("94640ad0-e76a-11f1-bf3a-19622c1f19f7", "PREPARED", 105);
    match (get.range, get.all) {
        (Some(_), _) => Vec::new(),
        (None, true) => vec![session("93112500-e76a-11f1-bf3a-19622c1f19f7", "FINALIZED", 107), under_way],
        (None, false) => vec![under_way],
    }
}

fn pending_repairs(get: &GetPendingRepairs) -> Vec<PendingRepairInfo> {
    let (keyspace, table) = (get.of.keyspace.clone().unwrap_or_else(|| "shop".to_owned()), "items".to_owned());
    let pending = PendingRepairData { bytes: 50_834, sstables: 1, sessions: 1 };
    let failed = PendingRepairData { bytes: 101_668, sstables: 2, sessions: 1 };
    vec![PendingRepairInfo { keyspace, table, pending, failed, ..PendingRepairInfo::default() }]
}

fn repaired(get: &GetRepaired) -> Vec<RepairedInfo> {
    let info = |table: &str, sections| RepairedInfo { keyspace: "shop".to_owned(), table: table.to_owned(), sections };
    match get.of.range {
        Some((start, end)) => vec![info("items", vec![(start, 3, 1_795_457_998_177), (3, end, 0)])],
        None => vec![info("items", vec![(i64::MIN, i64::MIN, 1_795_457_998_177)])],
    }
}

fn cleaned_up(request: &CleanUpRepairs) -> Vec<CleanedUpRepairs> {
    let unsuccessful = u64::from(!request.force);
    vec![CleanedUpRepairs { keyspace: "shop".to_owned(), table: "items".to_owned(), successful: 2, unsuccessful }]
}

fn repair_schedule() -> RepairScheduleInfo {
    let table = |name: &str, age_seconds| ScheduledTable {
        keyspace: "shop".to_owned(),
        table: name.to_owned(),
        age_seconds,
        grace_seconds: 864_000,
        due: 1,
        blocked: 0,
    };
    RepairScheduleInfo {
        off: None,
        phase: "due".to_owned(),
        active: vec!["94640ad0-e76a-11f1-bf3a-19622c1f19f7".to_owned()],
        tables: vec![table("items", Some(7200)), table("orders", None)],
        usual_latency: 1234,
        latency: 2500,
    }
}

/// Of view `done` all nodes have told that they are ready; of any other one has begun.
fn view_build(of: &GetViewBuild) -> Vec<ViewBuildInfo> {
    let info = |host: &str, status: &str| ViewBuildInfo { host: host.to_owned(), status: status.to_owned() };
    let second = if of.view == "done" { "SUCCESS" } else { "STARTED" };
    vec![info("127.0.0.1", "SUCCESS"), info("127.0.0.2", second)]
}

fn guardrails() -> Vec<(String, Option<String>)> {
    let of = |name: &str, value: Option<&str>| (name.to_owned(), value.map(str::to_owned));
    vec![
        of("group_by_enabled", Some("true")),
        of("sai_sstable_indexes_per_query_fail_threshold", Some("-1")),
        of("sai_sstable_indexes_per_query_warn_threshold", Some("32")),
        of("sai_string_term_size_fail_threshold", Some("8KiB")),
        of("table_properties_warned", Some("[]")),
        of("data_disk_usage_max_disk_size", None),
    ]
}
