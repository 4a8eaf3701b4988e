//! `snapshots`: the snapshots on disk. Agrees with `SnapshotsTable`; no snapshot is ephemeral and
//! none expires. The directories of all snapshots are read, each of whose files is looked at: that
//! may take seconds, and is not done on a worker.

use cluster::operations::snapshots;

use super::VirtualTable;
use super::row::VirtualRow;
use crate::services::Services;

pub(super) const TABLES: &[VirtualTable] =
    &[VirtualTable { reads_disk: true, ..VirtualTable::of_views("snapshots", rows) }];

fn rows(services: &Services) -> Vec<VirtualRow> {
    // a directory that cannot be read hides the snapshots of its own table only
    let found = snapshots::list_readable(&services.node);
    let row = |snapshot: snapshots::Snapshot| {
        VirtualRow::default()
            .text("name", &snapshot.tag)
            .text("keyspace_name", &snapshot.keyspace)
            .text("table_name", &snapshot.table)
            .boolean("ephemeral", false)
            .maybe_bigint("created_at", snapshot.created_at)
            .count("size_on_disk", snapshot.size)
            .count("true_size", snapshot.true_size)
    };
    found.into_iter().map(row).collect()
}
