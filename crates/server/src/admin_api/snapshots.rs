//! Snapshots of tables: list, take and clear, over `cluster::operations::snapshots`.

use admin::verbs::{
    ClearOldSnapshots, ClearSnapshots, GetSnapshots, RingSnapshotInfo, RingSnapshotRequest, SnapshotAge, SnapshotInfo,
    SnapshotRequest,
};
use admin::{Functions, Result};
use cluster::operations::tables::{self, Selection};
use cluster::operations::{self, old_snapshots, ring_snapshot, snapshots};

use super::{NodeAdmin, of_operation, wait};

pub(super) fn add_to(functions: &mut Functions<NodeAdmin>) {
    functions.add(list).add(take).add(take_on_all).add(clear).add(clear_old);
}

fn list(admin: &NodeAdmin, _: &GetSnapshots) -> Result<Vec<SnapshotInfo>> {
    let found = snapshots::list(admin.cluster()).map_err(of_operation)?;
    let shown = found.into_iter().map(|snapshot| SnapshotInfo {
        name: snapshot.tag,
        keyspace: snapshot.keyspace,
        table: snapshot.table,
        table_id: snapshot.table_id,
        true_size: snapshot.true_size,
        size_on_disk: snapshot.size,
        created_at: snapshot.created_at,
    });
    Ok(shown.collect())
}

fn take(admin: &NodeAdmin, request: &SnapshotRequest) -> Result<()> {
    let node = admin.cluster();
    let stores = match request.tables.is_empty() {
        true => tables::selected(node, Selection { keyspaces: &request.keyspaces, tables: &[] }),
        false => {
            let named = request.tables.iter().map(|(keyspace, table)| tables::named(node, keyspace, table));
            named.collect::<operations::Result<_>>()
        }
    };
    let taken = wait(snapshots::take(node, &request.name, &stores.map_err(of_operation)?, request.skip_flush));
    admin.snapshot_sizes.forget();
    taken
}

fn take_on_all(admin: &NodeAdmin, request: &RingSnapshotRequest) -> Result<Vec<RingSnapshotInfo>> {
    let shares = wait(ring_snapshot::take(admin.cluster(), &request.name, &request.keyspaces));
    admin.snapshot_sizes.forget();
    let shown = shares?.into_iter().map(|share| RingSnapshotInfo {
        address: share.address.to_string(),
        tables: share.tables,
        failure: share.failure,
    });
    Ok(shown.collect())
}

fn clear(admin: &NodeAdmin, request: &ClearSnapshots) -> Result<()> {
    let cleared = snapshots::clear(admin.cluster(), request.name.as_deref(), &request.keyspaces);
    admin.snapshot_sizes.forget();
    cleared.map_err(of_operation)
}

fn clear_old(admin: &NodeAdmin, request: &ClearOldSnapshots) -> Result<()> {
    let before_millis = match request.older_than {
        SnapshotAge::Seconds(seconds) => {
            let now = admin.cluster().env.clock.now_micros() / 1000;
            now.saturating_sub_unsigned(seconds.saturating_mul(1000))
        }
        SnapshotAge::TakenAt(millis) => millis,
    };
    let cleared = old_snapshots::clear(admin.cluster(), before_millis, &request.keyspaces);
    admin.snapshot_sizes.forget();
    cleared.map_err(of_operation)
}
