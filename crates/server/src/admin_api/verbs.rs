//! What an operator has done: flush, drain, snapshots. All return when it is done.

use std::sync::Arc;

use admin::api::Result;
use admin::model::{CacheChange, CacheKind, SnapshotInfo, SnapshotRequest, TableSelection, TransportChange};
use native::ResumeError;
use storage::{TableStore, snapshot};

use super::{NodeAdmin, failed, invalid, wait};

/// The tables of a selection, or why one is not there.
pub(super) fn selected(admin: &NodeAdmin, selection: &TableSelection) -> Result<Vec<Arc<TableStore>>> {
    let schema = admin.services.node.schema();
    for keyspace in &selection.keyspaces {
        let Some(known) = schema.keyspace(keyspace).filter(|known| !known.is_virtual) else {
            return invalid(format!("Keyspace [{keyspace}] does not exist."));
        };
        if let Some(table) = selection.tables.iter().find(|table| !known.tables.contains_key(*table)) {
            return invalid(format!("Unknown keyspace/cf pair ({keyspace}.{table})"));
        }
    }
    let wanted = |store: &Arc<TableStore>| {
        let table = store.table();
        (selection.keyspaces.is_empty() || selection.keyspaces.contains(&table.keyspace))
            && (selection.tables.is_empty() || selection.tables.contains(&table.name))
    };
    Ok(admin.engine().tables().into_iter().filter(wanted).collect())
}

pub(super) fn flush(admin: &NodeAdmin, selection: &TableSelection) -> Result<()> {
    flush_all(admin, &selected(admin, selection)?)
}

/// All are asked for before the first is waited for.
pub(super) fn flush_all(admin: &NodeAdmin, stores: &[Arc<TableStore>]) -> Result<()> {
    let flushes: Vec<_> = stores.iter().map(|store| admin.engine().flush(store)).collect();
    wait(async {
        for flush in flushes {
            flush.await.map_err(failed)?;
        }
        Ok(())
    })?
}

/// Clients are sent away, then everything is flushed.
pub(super) fn drain(admin: &NodeAdmin) -> Result<()> {
    if admin.engine().is_stopped() {
        return Ok(());
    }
    tracing::info!("draining");
    wait(async {
        admin.transport.stop_serving().await;
        admin.engine().drain().await.map_err(failed)
    })??;
    tracing::info!("drained");
    Ok(())
}

/// Closes the port of the native protocol, or opens it again.
/// Agrees with `StorageService.{stop,start}NativeTransport`, texts included.
pub(super) fn change_transport(admin: &NodeAdmin, change: TransportChange) -> Result<()> {
    match change {
        TransportChange::Close { force } => {
            wait(admin.transport.pause(force))?;
            tracing::info!("clients are no longer served (disablebinary)");
        }
        TransportChange::Open => match wait(admin.transport.resume())? {
            Ok(()) => tracing::info!("clients are served again (enablebinary)"),
            Err(ResumeError::Ended) => {
                return invalid("Unable to start native transport because the node was drained.");
            }
            Err(error) => return Err(failed(format!("Error starting native transport: {error}"))),
        },
    }
    Ok(())
}

pub(super) fn snapshots(admin: &NodeAdmin) -> Result<Vec<SnapshotInfo>> {
    let mut all = Vec::new();
    for store in admin.engine().tables() {
        let found = snapshot::list(admin.engine(), &store).map_err(failed)?;
        all.extend(found.into_iter().map(|snapshot| SnapshotInfo {
            name: snapshot.tag,
            keyspace: snapshot.keyspace,
            table: snapshot.table,
            true_size: snapshot.true_size,
            size_on_disk: snapshot.size,
            created_at: snapshot.created_at,
        }));
    }
    Ok(all)
}

pub(super) fn take_snapshot(admin: &NodeAdmin, request: &SnapshotRequest) -> Result<()> {
    let stores = of_request(admin, request)?;
    for store in &stores {
        let taken = snapshot::list(admin.engine(), store).map_err(failed)?;
        if taken.iter().any(|snapshot| snapshot.tag == request.name) {
            return Err(failed(format!("Snapshot {} already exists.", request.name)));
        }
    }
    if !request.skip_flush {
        flush_all(admin, &stores)?;
    }
    for store in &stores {
        snapshot::take(admin.engine(), store, &request.name).map_err(failed)?;
    }
    Ok(())
}

fn of_request(admin: &NodeAdmin, request: &SnapshotRequest) -> Result<Vec<Arc<TableStore>>> {
    if request.tables.is_empty() {
        return selected(admin, &TableSelection { keyspaces: request.keyspaces.clone(), tables: Vec::new() });
    }
    let store_of = |(keyspace, table): &(String, String)| match admin.engine().table_by_name(keyspace, table) {
        Some(store) => Ok(store),
        None => invalid(format!("Unknown keyspace/cf pair ({keyspace}.{table})")),
    };
    request.tables.iter().map(store_of).collect()
}

pub(super) fn clear_snapshots(admin: &NodeAdmin, name: Option<&str>, keyspaces: &[String]) -> Result<()> {
    for store in selected(admin, &TableSelection { keyspaces: keyspaces.to_vec(), tables: Vec::new() })? {
        snapshot::clear(admin.engine(), &store, name).map_err(failed)?;
    }
    Ok(())
}

pub(super) fn change_caches(admin: &NodeAdmin, change: CacheChange) -> Result<()> {
    let engine = admin.engine();
    match change {
        CacheChange::Invalidate(CacheKind::Keys) => engine.caches.keys.clear(),
        CacheChange::Invalidate(CacheKind::Rows) => engine.caches.rows.clear(),
        CacheChange::Capacities { keys, rows } => {
            engine.caches.set_capacities(Some(keys), Some(rows)).map_err(failed)?
        }
        CacheChange::KeysToSave { keys, rows } => engine.keeper.set_keys_to_save(keys, rows),
    }
    Ok(())
}
