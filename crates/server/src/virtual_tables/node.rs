//! What the node says about itself: settings, clients, caches, pools, tasks, snapshots.
//!
//! Agrees with `SettingsTable`, `ClientsTable`, `CachesTable`, `ThreadPoolsTable`, `SSTableTasksTable`, `SnapshotsTable`,
//! `SystemPropertiesTable` and `GossipInfoTable`.

use std::sync::atomic::Ordering;

use cluster::clock::uuid_text;
use cluster::identity::RELEASE_VERSION;
use types::CqlType;

use super::row::VirtualRow;
use crate::services::Services;

/// `settings`
pub(super) fn settings(services: &Services) -> Vec<VirtualRow> {
    let rows = services.config.settings().into_iter();
    rows.map(|(name, value)| VirtualRow::default().text("name", &name).maybe_text("value", value.as_deref())).collect()
}

/// `clients`
pub(super) fn clients(services: &Services) -> Vec<VirtualRow> {
    let Some(connections) = services.connections() else { return Vec::new() };
    let mut rows = Vec::new();
    for connection in connections.list() {
        let details = connection.details();
        let entries: Vec<(&[u8], &[u8])> =
            details.options.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect();
        let options = types::collection::build_map(&CqlType::Text, entries);
        let address = connection.peer.ip();
        let mut row = VirtualRow::default()
            .inet("address", address)
            .int("port", i32::from(connection.peer.port()))
            .text("hostname", &address.to_string())
            .text("connection_stage", &connection.stage().name().to_lowercase())
            .bytes("client_options", options)
            .maybe_text("username", details.user.as_deref().or(Some("anonymous")))
            .maybe_text("driver_name", details.driver_name.as_deref())
            .maybe_text("driver_version", details.driver_version.as_deref())
            .maybe_text("keyspace_name", details.keyspace.as_deref())
            .count("request_count", connection.requests.get())
            .boolean("ssl_enabled", false);
        if let Some(version) = details.version {
            row = row.int("protocol_version", version as i32);
        }
        rows.push(row);
    }
    rows
}

/// `caches`: chunks; the others of Cassandra do not exist and are shown with nothing in them.
pub(super) fn caches(services: &Services) -> Vec<VirtualRow> {
    let chunks = &services.node.engine.chunk_cache;
    let (capacity, size, entries) = chunks.usage();
    let (hits, misses) = chunks.hits_and_misses();
    let shown = [
        ("chunks", capacity as u64, size, entries, hits, hits + misses),
        ("counters", 0, 0, 0, 0, 0),
        ("keys", 0, 0, 0, 0, 0),
        ("rows", 0, 0, 0, 0, 0),
    ];
    let uptime = services.uptime_seconds().max(1);
    shown
        .into_iter()
        .map(|(name, capacity, size, entries, hits, requests)| {
            let ratio = if requests == 0 { f64::NAN } else { hits as f64 / requests as f64 };
            VirtualRow::default()
                .text("name", name)
                .count("capacity_bytes", capacity)
                .count("size_bytes", size)
                .int("entry_count", i32::try_from(entries).unwrap_or(i32::MAX))
                .count("hit_count", hits)
                .double("hit_ratio", ratio)
                .count("request_count", requests)
                .count("recent_hit_rate_per_second", hits / uptime)
                .count("recent_request_rate_per_second", requests / uptime)
        })
        .collect()
}

/// `thread_pools`: what there is instead of Cassandra's stages, under their names.
pub(super) fn thread_pools(services: &Services) -> Vec<VirtualRow> {
    let node = &services.node;
    let engine = &node.engine;
    let requests = &services.requests;
    let count = |histogram: &metrics::Histogram| histogram.snapshot().count();
    let (reads, writes) =
        (count(&requests.read) + count(&requests.range), count(&requests.write) + count(&requests.batch));
    let all = reads + writes + count(&requests.prepare) + count(&requests.other);
    let compactions = engine.compactions.running().len();
    let cores = node.env.tasks.cores();
    let compacted = engine.compactions.completed.load(Ordering::Relaxed);
    [
        ("CompactionExecutor", compactions, engine.options.concurrent_compactors, 0, compacted),
        ("MemtableFlushWriter", 0, 1, engine.flusher.pending(), 0),
        ("MutationStage", 0, cores, 0, writes),
        ("Native-Transport-Requests", 0, cores, 0, all),
        ("ReadStage", 0, env::BLOCKING_THREADS_MAX, 0, reads),
    ]
    .into_iter()
    .map(|(name, active, limit, pending, completed)| {
        let int = |value: usize| i32::try_from(value).unwrap_or(i32::MAX);
        VirtualRow::default()
            .text("name", name)
            .int("active_tasks", int(active))
            .int("active_tasks_limit", int(limit))
            .int("pending_tasks", int(pending))
            .count("completed_tasks", completed)
            .bigint("blocked_tasks", 0)
            .bigint("blocked_tasks_all_time", 0)
    })
    .collect()
}

/// `sstable_tasks`
pub(super) fn sstable_tasks(services: &Services) -> Vec<VirtualRow> {
    let running = services.node.engine.compactions.running();
    running
        .iter()
        .map(|task| {
            let done = task.done.load(Ordering::Relaxed);
            VirtualRow::default()
                .text("keyspace_name", &task.keyspace)
                .text("table_name", &task.table)
                .bytes("task_id", task.id.to_vec())
                .double("completion_ratio", done as f64 / task.total.max(1) as f64)
                .text("kind", &task.kind.name().to_lowercase())
                .count("progress", done)
                .int("sstables", i32::try_from(task.sstables).unwrap_or(i32::MAX))
                .count("total", task.total)
                .text("unit", "bytes")
        })
        .collect()
}

/// `snapshots`
pub(super) fn snapshots(services: &Services) -> Vec<VirtualRow> {
    let engine = &services.node.engine;
    let mut rows = Vec::new();
    for store in engine.tables() {
        let found = storage::snapshot::list(engine, &store).unwrap_or_default();
        rows.extend(found.into_iter().map(|snapshot| {
            VirtualRow::default()
                .text("name", &snapshot.tag)
                .text("keyspace_name", &snapshot.keyspace)
                .text("table_name", &snapshot.table)
                .boolean("ephemeral", false)
                .maybe_bigint("created_at", snapshot.created_at)
                .count("size_on_disk", snapshot.size)
                .count("true_size", snapshot.true_size)
        }));
    }
    rows
}

/// `system_properties`: a program without a JVM has few.
pub(super) fn system_properties(services: &Services) -> Vec<VirtualRow> {
    let data = services.node.engine.options.data_directory().display().to_string();
    [
        ("cassandra.release_version", RELEASE_VERSION),
        ("helenus.version", env!("CARGO_PKG_VERSION")),
        ("helenus.data_directory", data.as_str()),
        ("os.arch", std::env::consts::ARCH),
        ("os.name", std::env::consts::OS),
    ]
    .into_iter()
    .map(|(name, value)| VirtualRow::default().text("name", name).text("value", value))
    .collect()
}

/// `gossip_info`: this node.
pub(super) fn gossip_info(services: &Services) -> Vec<VirtualRow> {
    let identity = &services.node.identity;
    let version = services.node.schema().version;
    vec![
        VirtualRow::default()
            .inet("address", identity.broadcast.ip())
            .int("port", i32::from(identity.broadcast.port()))
            .text("hostname", &identity.broadcast.ip().to_string())
            .int("generation", i32::try_from(identity.generation).unwrap_or(i32::MAX))
            .int("heartbeat", i32::try_from(services.uptime_seconds()).unwrap_or(i32::MAX))
            .text("dc", &identity.data_center)
            .text("rack", &identity.rack)
            .text("host_id", &uuid_text(&identity.host_id))
            .text("native_address_and_port", &identity.native.to_string())
            .text("release_version", RELEASE_VERSION)
            .text("rpc_address", &identity.native.ip().to_string())
            .text("rpc_ready", "true")
            .text("schema", &uuid_text(&version))
            .text("status", &format!("NORMAL,{}", identity.tokens.first().map_or(0, |token| token.0)))
            .text("status_with_port", &format!("NORMAL,{}", identity.tokens.first().map_or(0, |token| token.0))),
    ]
}
