//! Virtual tables, whose rows are made when they are read: `system_virtual_schema` and
//! `system_views`. One file a table, or a family of tables that differ by one figure.
//!
//! Agrees with `org.apache.cassandra.db.virtual`: the same tables and columns (`schema::system`),
//! the same refusals. Tables about things that this node does not have are listed in [`empty`]. The
//! rows of a table are made for each read and then dropped; no request does extra work only so that
//! a table can show it.

mod attached_indexes;
mod batch_metrics;
mod cache_keys;
mod caches;
mod cidr_filtering;
mod clients;
mod cql_metrics;
mod empty;
mod gossip_info;
mod internode;
mod partition_stream;
mod pending_hints;
mod repairs;
mod row;
mod settings;
mod snapshots;
mod sstable_tasks;
mod streaming;
mod system_logs;
mod system_properties;
mod table_metrics;
mod thread_pools;
mod virtual_schema;
mod write;

use std::sync::Arc;

use cluster::replica::read::Open;
use rows::{PartitionStream, ReadCommand, ReadContext, ReadError, ReadMode};
use schema::TableMetadata;

use crate::services::Services;
use row::VirtualRow;
pub use write::{apply, truncate};

/// Makes the rows of a table.
type MakeRows = fn(&Services) -> Vec<VirtualRow>;

/// Deletes a partition by the components of its key.
type DeletePartition = fn(&Services, &[&[u8]]);

/// A virtual table and the function that makes its rows.
struct VirtualTable {
    keyspace: &'static str,
    name: &'static str,
    rows: MakeRows,
    /// Whether partitions stand in the reversed order of their keys.
    newest_first: bool,
    /// Whether `rows` waits for the disk. Such rows are not made on a worker, whose clients would
    /// wait as well.
    reads_disk: bool,
    /// The changes that the table takes; None: the table is read only.
    mutable: Option<Mutable>,
}

/// The changes that a virtual table takes.
struct Mutable {
    /// Carries out a DELETE of one partition; None: it is refused.
    delete_partition: Option<DeletePartition>,
    /// Carries out a TRUNCATE.
    truncate: fn(&Services),
}

impl VirtualTable {
    const fn of_views(name: &'static str, rows: MakeRows) -> Self {
        Self { keyspace: "system_views", name, rows, newest_first: false, reads_disk: false, mutable: None }
    }
}

/// Every family of tables.
const FAMILIES: &[&[VirtualTable]] = &[
    batch_metrics::TABLES,
    cache_keys::TABLES,
    caches::TABLES,
    cidr_filtering::TABLES,
    clients::TABLES,
    cql_metrics::TABLES,
    attached_indexes::TABLES,
    empty::TABLES,
    pending_hints::TABLES,
    repairs::TABLES,
    gossip_info::TABLES,
    internode::TABLES,
    settings::TABLES,
    snapshots::TABLES,
    sstable_tasks::TABLES,
    streaming::TABLES,
    system_logs::TABLES,
    system_properties::TABLES,
    table_metrics::TABLES,
    thread_pools::TABLES,
    virtual_schema::TABLES,
];

fn find(table: &TableMetadata) -> Option<&'static VirtualTable> {
    let mut all = FAMILIES.iter().flat_map(|family| family.iter());
    all.find(|known| known.name == table.name && known.keyspace == table.keyspace)
}

/// Opens reads of virtual tables.
pub fn opener(services: &Arc<Services>) -> Arc<Open> {
    let services = Arc::clone(services);
    Arc::new(move |command: &ReadCommand, context: &ReadContext| {
        let now = services.node.env.clock.now_micros();
        let (rows, newest_first) = match find(&command.table) {
            Some(table) if table.reads_disk && context.mode == ReadMode::Inline => return Err(ReadError::WouldBlock),
            Some(table) => ((table.rows)(&services), table.newest_first),
            None => (Vec::new(), false),
        };
        Ok(Box::new(partition_stream::partitions(command, rows, newest_first, now)) as Box<dyn PartitionStream>)
    })
}

/// The warnings that clients are given beside what they read.
pub fn warnings(commands: &[ReadCommand]) -> impl Iterator<Item = String> {
    commands.iter().filter_map(settings::warning)
}

/// A size as an int. A size that does not fit is shown as the largest int.
fn int(value: usize) -> i32 {
    i32::try_from(value).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_virtual_table_of_the_schema_has_its_rows() {
        let schema = schema::system::schema();
        let mut expected = 0;
        for keyspace in schema.keyspaces.values().filter(|keyspace| keyspace.is_virtual) {
            for table in keyspace.tables.values() {
                assert!(find(table).is_some(), "{}.{}", table.keyspace, table.name);
                expected += 1;
            }
        }
        assert_eq!(FAMILIES.iter().map(|family| family.len()).sum::<usize>(), expected);
    }
}
