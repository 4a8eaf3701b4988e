//! Materialized views for operators. Agrees with
//! `org.apache.cassandra.service.StorageService.getViewBuildStatuses`.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use rows::{ColumnData, ReadError};
use types::Consistency;

use super::{Result, failed};
use crate::node::Node;
use crate::system_rows::partition_key;

/// The status of a node that has told nothing.
const UNKNOWN: &str = "UNKNOWN";
/// Most rows that are read: more nodes than a ring has.
const NODES_MAX: u32 = 100_000;

/// The state of each node's build of a view, as `system_distributed` has it.
pub async fn build_statuses(node: &Node, keyspace: &str, view: &str) -> Result<Vec<(SocketAddr, String)>> {
    let schema = node.schema();
    let mut told: BTreeMap<Vec<u8>, String> = BTreeMap::new();
    if let Some(table) = schema.table("system_distributed", "view_build_status") {
        let key = partition_key(table, &[keyspace.as_bytes(), view.as_bytes()]);
        let read = node.read_rows_at::<ReadError>(table, Some(key), Consistency::One, NODES_MAX).await;
        let status = table.column_by_name("status").map(|column| column.id);
        for (_, row) in read.map_err(|error| failed(format!("{error:?}")))? {
            let host = row.clustering.first().cloned().flatten().unwrap_or_default().to_vec();
            let cell = match status.and_then(|id| row.column(id)) {
                Some(ColumnData::Simple(cell)) => String::from_utf8_lossy(&cell.value).into_owned(),
                _ => UNKNOWN.to_owned(),
            };
            told.insert(host, cell);
        }
    }
    let ring = node.ring();
    let status = |host: &[u8]| told.get(host).cloned().unwrap_or_else(|| UNKNOWN.to_owned());
    Ok(ring.endpoints().iter().map(|endpoint| (endpoint.address, status(&endpoint.host_id))).collect())
}
