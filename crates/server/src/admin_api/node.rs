//! The node itself and its keyspaces.

use std::time::Duration;

use admin::model::{CacheInfo, KeyspaceInfo, NodeInfo};
use cluster::clock::uuid_text;
use cluster::identity::{PARTITIONER, RELEASE_VERSION};
use storage::caches::Usage;

use super::{NodeAdmin, process, tables};

/// endpoint_snitch: the only one.
const SNITCH: &str = "org.apache.cassandra.locator.SimpleSnitch";

pub(super) fn info(admin: &NodeAdmin) -> NodeInfo {
    let (services, engine) = (&admin.services, admin.engine());
    let identity = &services.node.identity;
    let loads = engine
        .tables()
        .into_iter()
        .map(|store| tables::load(&store))
        .fold((0, 0), |sum, load| (sum.0 + load.0, sum.1 + load.1));
    let serving = admin.transport.is_serving();
    let mode = match (engine.is_stopped(), engine.is_draining()) {
        (true, _) => "DRAINED",
        (false, true) => "DRAINING",
        (false, false) => "NORMAL",
    };
    NodeInfo {
        host_id: uuid_text(&identity.host_id),
        cluster_name: identity.cluster_name.clone(),
        release_version: RELEASE_VERSION.to_owned(),
        helenus_version: env!("CARGO_PKG_VERSION").to_owned(),
        snitch: SNITCH.to_owned(),
        partitioner: PARTITIONER.to_owned(),
        data_center: identity.data_center.clone(),
        rack: identity.rack.clone(),
        address: identity.broadcast.ip().to_string(),
        storage_port: identity.broadcast.port(),
        rpc_address: identity.native.ip().to_string(),
        native_port: admin.transport.address().port(),
        // a node alone has nobody to gossip with; what Cassandra says of one that could
        gossip_active: !engine.is_draining(),
        native_transport_active: serving,
        mode: mode.to_owned(),
        schema_version: uuid_text(&services.node.schema().version),
        load: loads.0,
        uncompressed_load: loads.1,
        generation: i64::from(identity.generation),
        uptime_seconds: services.uptime_seconds(),
        memory_used: process::usage(&services.node.env).resident,
        memory_max: admin.memory.total,
        exceptions: admin.transport.worker_stats().iter().map(|worker| worker.panics.get()).sum(),
        chunk_cache: of_cache(&engine.caches.chunks.usage()),
        key_cache: of_cache(&engine.caches.keys.usage()),
        key_cache_save_period: period(services.config.caches.key_save_period),
        row_cache: of_cache(&engine.caches.rows.usage()),
        row_cache_save_period: period(services.config.caches.row_save_period),
        percent_repaired: tables::percent_repaired(
            engine.tables().iter().flat_map(|store| store.view().sstables.clone()),
        ),
        tokens: identity.tokens.iter().map(|token| token.0).collect(),
        bootstrap_state: "COMPLETED".to_owned(),
    }
}

fn of_cache(usage: &Usage) -> CacheInfo {
    CacheInfo {
        entries: usage.entries,
        size: usage.size,
        capacity: usage.capacity,
        hits: usage.hits,
        requests: usage.requests(),
    }
}

fn period(period: Option<Duration>) -> u64 {
    period.map_or(0, |period| period.as_secs())
}

/// Stored keyspaces; the order is by name.
pub(super) fn keyspaces(admin: &NodeAdmin) -> Vec<KeyspaceInfo> {
    let schema = admin.services.node.schema();
    let stored = schema.keyspaces.values().filter(|keyspace| !keyspace.is_virtual);
    stored
        .map(|keyspace| KeyspaceInfo {
            name: keyspace.name.clone(),
            replication_class: keyspace.replication.short_class().to_owned(),
            replication_options: keyspace.replication.options.clone().into_iter().collect(),
            tables: keyspace.tables.keys().cloned().collect(),
        })
        .collect()
}
