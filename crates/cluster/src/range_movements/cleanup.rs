//! `nodetool cleanup`: partitions that belong to other nodes are removed: what a node had before
//! others joined, or before it moved.
//!
//! SSTables are written again without these partitions; those that have none are left alone.
//! Refused while this node is about to get ranges: what has come for them would go. For a while
//! after another node has taken ranges over, writes of them still come here ([`ring::Former`]);
//! a cleanup waits for the end of that, so that it removes these writes too.
//! `org.apache.cassandra.service.StorageService.forceKeyspaceCleanup`,
//! `db.compaction.CompactionManager.performCleanup`.

use std::sync::Arc;
use std::time::Duration;

use ring::{Placement, Replication, Ring};
use sstable::SSTable;
use storage::compaction::kind::Kind;
use storage::compaction::operation::{Operation, Status, Work};
use storage::token_ranges::TokenRanges;

use crate::node::Node;
use crate::operations::tables::{Selection, selected};
use crate::operations::{OperationError, Result};

/// The time between two looks at the ring.
const PAUSE: Duration = Duration::from_millis(100);

/// Cleans tables up, `jobs` SSTables of a table at a time. A node alone has everything.
pub async fn cleanup(node: &Node, selection: Selection<'_>, jobs: usize) -> Result<()> {
    wait_for_former_ranges(node).await;
    let ring = node.ring();
    let failed = |why: String| OperationError::Failed(why);
    for store in selected(node, selection)? {
        let table = store.table();
        let Some(ranges) = kept(&ring, &table.keyspace).map_err(failed)? else { continue };
        let ranges = Arc::new(ranges);
        let of_select = Arc::clone(&ranges);
        let select =
            move |sstable: &SSTable| !of_select.contain_all(sstable.first_key().token, sstable.last_key().token);
        let operation = Operation {
            select: Box::new(select),
            kept: Some(ranges),
            ..Operation::new(Kind::Cleanup, Work::Rewrite, jobs)
        };
        let ended = node.engine.operate(&store, operation).await.map_err(|error| failed(error.to_string()))?;
        if ended.status != Status::Successful {
            return Err(failed(format!("Cleanup of {}.{} was stopped before its end", table.keyspace, table.name)));
        }
    }
    Ok(())
}

/// Waits until no ranges are left that this node held a moment ago.
async fn wait_for_former_ranges(node: &Node) {
    let takes_writes_of_others = || {
        let ring = node.ring();
        let of_this = |placement: &Placement| {
            placement.ranges().any(|(_, end, _)| placement.former(end).contains(&ring.local_id()))
        };
        !ring.former().is_empty() && ring.placements().any(of_this)
    };
    if takes_writes_of_others() {
        tracing::info!("a cleanup waits until no writes come of ranges that this node has lost a moment ago");
        while takes_writes_of_others() {
            node.env.sleep(PAUSE).await;
        }
    }
}

/// The ranges of a keyspace that belong to this node; None: all, or nobody else's.
fn kept(ring: &Ring, keyspace: &str) -> std::result::Result<Option<TokenRanges>, String> {
    let Some(placement) = ring.placement(keyspace).filter(|placement| placement.replication != Replication::Local)
    else {
        return Ok(None);
    };
    let local = ring.local_id();
    if placement.ranges().any(|(_, end, _)| placement.pending(end).contains(&local)) {
        return Err("Node is involved in cluster membership changes. Not safe to run cleanup.".to_owned());
    }
    let own: Vec<_> = placement
        .ranges()
        .filter(|(.., replicas)| replicas.contains(&local))
        .map(|(start, end, _)| (start, end))
        .collect();
    Ok(Some(TokenRanges::new(&own)))
}
