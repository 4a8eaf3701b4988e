//! Tables whose rows are made up when they are read: `system_virtual_schema` and `system_views`.
//!
//! Agrees with `org.apache.cassandra.db.virtual`: the same tables and columns (`schema::system`). What has no counterpart here
//! (streaming, repair, hints, internode connections, SAI, caches of authentication) exists and is empty.

mod figures;
mod node;
mod row;
mod stream;
mod virtual_schema;

use std::sync::Arc;

use cluster::read::Open;
use rows::{PartitionStream, ReadCommand};
use schema::TableMetadata;

use crate::services::Services;
use row::VirtualRow;

/// Opens streams of made-up rows.
pub fn opener(services: &Arc<Services>) -> Arc<Open> {
    let services = Arc::clone(services);
    Arc::new(move |command: &ReadCommand, _| {
        let rows = rows_of(&services, &command.table);
        let now = services.node.env.clock.now_micros();
        let partitions = stream::partitions(command, rows, now);
        Ok(Box::new(partitions) as Box<dyn PartitionStream>)
    })
}

fn rows_of(services: &Services, table: &TableMetadata) -> Vec<VirtualRow> {
    match (table.keyspace.as_str(), table.name.as_str()) {
        ("system_virtual_schema", name) => virtual_schema::rows(services, name),
        ("system_views", "settings") => node::settings(services),
        ("system_views", "clients") => node::clients(services),
        ("system_views", "caches") => node::caches(services),
        ("system_views", "thread_pools") => node::thread_pools(services),
        ("system_views", "sstable_tasks") => node::sstable_tasks(services),
        ("system_views", "snapshots") => node::snapshots(services),
        ("system_views", "system_properties") => node::system_properties(services),
        ("system_views", "gossip_info") => node::gossip_info(services),
        ("system_views", "cql_metrics") => figures::cql_metrics(services),
        ("system_views", "batch_metrics") => figures::batch_metrics(),
        ("system_views", name) => figures::of_tables(services, name),
        _ => Vec::new(),
    }
}
