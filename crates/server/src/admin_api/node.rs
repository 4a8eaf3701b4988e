//! The node itself, its keyspaces and its end.

use std::time::Duration;

use admin::verbs::{Drain, GetKeyspaces, GetNode, GetTokenFile, KeyspaceInfo, NodeInfo, TransportChange};
use admin::{Functions, Result};
use cluster::clock::uuid_text;
use cluster::identity::{PARTITIONER, RELEASE_VERSION};
use cluster::operations::state::{self, StorageState};
use cluster::operations::{caches, gossip, tables};
use cluster::range_movements::Mode;
use native::ResumeError;

use super::{NodeAdmin, failed, invalid, of_operation, process, runtime, table_stats};

/// The package of the classes of endpoint_snitch.
const SNITCHES: &str = "org.apache.cassandra.locator";

pub(super) fn add_to(functions: &mut Functions<NodeAdmin>) {
    functions.add(info).add(keyspaces).add(token_file).add(drain).add(change_transport);
}

fn info(admin: &NodeAdmin, _: &GetNode) -> Result<NodeInfo> {
    let (services, node) = (&admin.services, admin.cluster());
    let identity = &node.identity;
    let stores = tables::all(node);
    let loads =
        stores.iter().map(|store| table_stats::load(store)).fold((0, 0), |sum, load| (sum.0 + load.0, sum.1 + load.1));
    let caches = caches::usages(node);
    let serving = admin.transport.is_serving();
    let state = state::state(node);
    let version = state::options(node).sstable_version;
    let panics: u64 = admin.transport.worker_stats().iter().map(|worker| worker.panics.get()).sum();
    let mode = match state {
        StorageState::Serving => node.mode().to_string(),
        StorageState::Draining => "DRAINING".to_owned(),
        StorageState::Drained => "DRAINED".to_owned(),
    };
    Ok(NodeInfo {
        host_id: uuid_text(&identity.host_id),
        cluster_name: identity.cluster_name.clone(),
        release_version: RELEASE_VERSION.to_owned(),
        helenus_version: env!("CARGO_PKG_VERSION").to_owned(),
        snitch: format!("{SNITCHES}.{}", services.config.ring.snitch.class()),
        dynamic_snitch: services.config.ring.dynamic_snitch.is_some(),
        partitioner: PARTITIONER.to_owned(),
        data_center: identity.data_center.clone(),
        rack: identity.rack.clone(),
        address: identity.broadcast.ip().to_string(),
        storage_port: identity.broadcast.port(),
        rpc_address: identity.native.ip().to_string(),
        native_port: admin.transport.address().port(),
        // a node alone has nobody to gossip with; what Cassandra says of one that could
        gossip_active: gossip::is_active(node).unwrap_or(state == StorageState::Serving),
        native_transport_active: serving,
        mode,
        schema_version: uuid_text(&services.node.schema().version),
        sstable_version: format!("{}-{}", version.format().name(), version.name()),
        load: loads.0,
        uncompressed_load: loads.1,
        generation: i64::from(identity.generation),
        uptime_seconds: services.uptime_seconds(),
        memory_used: process::usage(&services.node.env).resident,
        memory_max: admin.memory.total,
        exceptions: panics + state::background_failures(node),
        chunk_cache: super::caches::info(&caches.chunks),
        key_cache: super::caches::info(&caches.keys),
        key_cache_save_period: period(services.config.caches.key_save_period),
        row_cache: super::caches::info(&caches.rows),
        row_cache_save_period: period(services.config.caches.row_save_period),
        percent_repaired: table_stats::percent_repaired(stores.iter().flat_map(|store| store.view().sstables.clone())),
        tokens: node.ring().local().tokens.iter().map(|token| token.0).collect(),
        bootstrap_state: match node.mode() {
            Mode::Decommissioned => "DECOMMISSIONED".to_owned(),
            Mode::Starting if !identity.is_bootstrapped => "NEEDS_BOOTSTRAP".to_owned(),
            Mode::Joining | Mode::JoiningFailed => "IN_PROGRESS".to_owned(),
            _ => "COMPLETED".to_owned(),
        },
    })
}

fn period(period: Option<Duration>) -> u64 {
    period.map_or(0, |period| period.as_secs())
}

/// Stored keyspaces in the order of their names.
fn keyspaces(admin: &NodeAdmin, _: &GetKeyspaces) -> Result<Vec<KeyspaceInfo>> {
    let schema = admin.cluster().schema();
    let stored = schema.keyspaces.values().filter(|keyspace| !keyspace.is_virtual);
    let shown = stored.map(|keyspace| KeyspaceInfo {
        name: keyspace.name.clone(),
        replication_class: keyspace.replication.short_class().to_owned(),
        replication_options: keyspace.replication.options.clone().into_iter().collect(),
        tables: keyspace.tables.keys().cloned().collect(),
        table_ids: keyspace.tables.values().map(|table| table.id.to_hex()).collect(),
    });
    Ok(shown.collect())
}

fn token_file(admin: &NodeAdmin, _: &GetTokenFile) -> Result<Option<String>> {
    Ok(admin.token_file.clone())
}

/// Sends clients away, tells the other nodes, then flushes everything.
fn drain(admin: &NodeAdmin, _: &Drain) -> Result<()> {
    if state::state(admin.cluster()) == StorageState::Drained {
        return Ok(());
    }
    tracing::info!("draining");
    runtime()?.block_on(async {
        gossip::set_ready(admin.cluster(), false);
        admin.transport.stop_serving().await;
        admin.cluster().stop_streams();
        admin.cluster().stop_membership().await;
        state::drain(admin.cluster()).await.map_err(failed)
    })?;
    tracing::info!("drained");
    Ok(())
}

/// Closes the port of the native protocol, or opens it again.
/// Agrees with `StorageService.{stop,start}NativeTransport`, texts included.
fn change_transport(admin: &NodeAdmin, change: &TransportChange) -> Result<()> {
    if matches!(change, TransportChange::Open) {
        state::check_may_start(admin.cluster(), "native transport").map_err(of_operation)?;
    }
    match *change {
        TransportChange::Close { force } => {
            gossip::set_ready(admin.cluster(), false);
            runtime()?.block_on(admin.transport.pause(force));
            tracing::info!("clients are no longer served (disablebinary)");
        }
        TransportChange::Open => match runtime()?.block_on(admin.transport.resume()) {
            Ok(()) => {
                gossip::set_ready(admin.cluster(), true);
                tracing::info!("clients are served again (enablebinary)");
            }
            Err(ResumeError::Ended) => {
                return invalid("Unable to start native transport because the node was drained.");
            }
            Err(error) => return Err(failed(format!("Error starting native transport: {error}"))),
        },
    }
    Ok(())
}
