//! `nodetool cleanup`: removes the partitions that belong to other nodes: those that this node had
//! before others joined, or before it moved.
//!
//! SSTables are written again without these partitions; those that have none are left alone. Then
//! the tables of legacy indexes are written again without the entries of these partitions, whatever
//! was found in the base: a cleanup before may have ended between the two. Entries of any token are
//! in each SSTable of an index, so that nothing can be left alone there, unless all ranges of the
//! ring are this node's.
//! Refused while this node is about to get ranges (what has come for them would go), and while it
//! is no member, leaves or moves (its ranges are none, or other ones in a moment). For a while
//! after another node has taken ranges over, writes of them still come here
//! ([`ring::FormerTokens`]); a cleanup waits for the end of that, so that it removes these
//! writes too.
//! `org.apache.cassandra.service.StorageService.forceKeyspaceCleanup`,
//! `db.compaction.CompactionManager.performCleanup`.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use ring::{Placement, Replication};
use schema::TableKind;
use sstable::SSTable;
use storage::compaction::kind::Kind;
use storage::compaction::operation::{Operation, Status, Work};
use storage::table::TableStore;
use storage::token_ranges::TokenRanges;
use types::Token;

use crate::node::Node;
use crate::operations::tables::{Selection, selected};
use crate::operations::{OperationError, Result};
use crate::range_movement_state::Mode;

/// The time between two looks at the ring.
const PAUSE: Duration = Duration::from_millis(100);

/// Cleans tables up, `jobs` SSTables of a table at a time. A node alone has everything.
///
/// The tables may take hours, and the ring may change meanwhile: what belongs to this node is
/// looked up for each table at the moment in which its SSTables are chosen. SSTables that come
/// later, with data of ranges that this node gets then, are not among these.
pub async fn cleanup(node: &Node, selection: Selection<'_>, jobs: usize) -> Result<()> {
    for store in selected(node, selection)? {
        clean_up(node, &store, jobs).await?;
        // the rows first: an entry without its row is passed over, and a row without its entry
        // would be missed if its range came back to this node now
        let indexes = Arc::clone(&store.view().indexes);
        for index in indexes.iter() {
            clean_up(node, &index.store, jobs).await?;
        }
    }
    Ok(())
}

/// Cleans up a table or the table of an index; again if the ring has changed before the SSTables
/// were chosen.
async fn clean_up(node: &Node, store: &Arc<TableStore>, jobs: usize) -> Result<()> {
    while !try_to_clean_up(node, store, jobs).await? {
        tracing::info!(table = store.name(), "the ring has changed while a cleanup waited for the table");
    }
    Ok(())
}

/// One attempt to clean a table up. False: nothing was done, because this node's ranges had
/// changed by the time at which the SSTables were about to be chosen.
async fn try_to_clean_up(node: &Node, store: &Arc<TableStore>, jobs: usize) -> Result<bool> {
    wait_for_former_ranges(node).await;
    let failed = |why: String| OperationError::Failed(why);
    let table = store.table();
    let Some(ranges) = kept(node, &table.keyspace).map_err(failed)? else { return Ok(true) };
    let ranges = Arc::new(ranges);
    let is_current: Arc<OnceLock<bool>> = Arc::default();
    let (of_select, chosen) = (Arc::clone(&ranges), Arc::clone(&is_current));
    let (weak, keyspace) = (node.weak(), table.keyspace.clone());
    // partitions of an index are values: entries of any row may be in each of its SSTables
    let whole_ring = (table.kind == TableKind::Index).then_some((Token(i64::MIN + 1), Token::MAX));
    // an operation that waits for another one has its SSTables chosen when that one has ended
    let select = move |sstable: &SSTable| {
        let look = || {
            let now = weak.upgrade().map(|node| kept(&node, &keyspace));
            now.is_none_or(|now| now.is_ok_and(|now| now.as_ref() == Some(&*of_select)))
        };
        let (first, last) = whole_ring.unwrap_or_else(|| (sstable.first_key().token, sstable.last_key().token));
        *chosen.get_or_init(look) && !of_select.contains_all(first, last)
    };
    let operation = Operation {
        select: Box::new(select),
        kept: Some(ranges),
        ..Operation::new(Kind::Cleanup, Work::Rewrite, jobs)
    };
    let ended = node.engine.operate(store, operation).await.map_err(|error| failed(error.to_string()))?;
    if ended.status != Status::Successful {
        return Err(failed(format!("Cleanup of {}.{} was stopped before its end", table.keyspace, table.name)));
    }
    Ok(is_current.get() != Some(&false))
}

/// Waits until this node is a former replica of no range any more.
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

/// The ranges of a keyspace that belong to this node at this moment; None: all ranges do, or the
/// keyspace is not of the ring. Err: the ranges are about to change, or the node is no member.
fn kept(node: &Node, keyspace: &str) -> std::result::Result<Option<TokenRanges>, String> {
    let mode = node.mode();
    if mode != Mode::Normal {
        return Err(format!("Cleanup cannot run in {mode} state; wait for status to become normal or restart"));
    }
    let ring = node.ring();
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
