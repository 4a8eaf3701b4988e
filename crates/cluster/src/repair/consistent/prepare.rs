//! Puts the data of an incremental repair apart, table by table. Agrees with
//! `org.apache.cassandra.db.repair.PendingAntiCompaction`.

use std::sync::Arc;
use std::time::Duration;

use internode::payload::repair::consistent::SessionState;
use storage::repair_sessions;
use storage::requests::operations::AnticompactedRanges;
use storage::token_ranges::TokenRanges;

use crate::node::Node;
use crate::repair::ranges;
use crate::repair_state::Participation;
use crate::repair_state::sessions::LocalSession;

/// Longest time for which it is tried to get the SSTables of a table
/// (`cassandra.acquire_retry_seconds`).
const ACQUIRE_MAX: Duration = Duration::from_secs(60);
/// Time between two tries (`cassandra.acquire_sleep_ms`).
const ACQUIRE_PAUSE: Duration = Duration::from_secs(1);

/// Puts apart the data that this node has in the repair's ranges. Err: why not all of it is apart.
pub(super) async fn anticompact(node: &Node, participation: &Participation) -> Result<(), String> {
    let prepare = &participation.prepare;
    let id = prepare.parent;
    for table in &prepare.tables {
        let store = node.engine.table(*table).ok_or_else(|| format!("table {table} was dropped"))?;
        let keyspace = store.table().keyspace.clone();
        let ring = node.ring();
        let placement = ring.placement(&keyspace).ok_or_else(|| format!("keyspace {keyspace} is gone"))?;
        let held: Vec<_> = ranges::held(&ring, placement, &prepare.ranges);
        let pairs: Vec<_> = held.iter().map(|range| (range.start, range.end)).collect();
        let apart = Arc::new(AnticompactedRanges { session: id, ranges: TokenRanges::new(&pairs) });
        let begun = node.env.now();
        loop {
            let is_finalized = |other: &[u8; 16]| {
                let sessions = node.repairs.sessions();
                sessions.get(other).is_some_and(|session| session.state == SessionState::Finalized)
            };
            let Err(error) = repair_sessions::anticompact(&node.engine, &store, &apart, is_finalized).await else {
                break;
            };
            if let Some(why) = participation.over.get() {
                return Err(format!("{why} ({error})"));
            }
            if node.env.elapsed(begun) >= ACQUIRE_MAX || node.engine.is_draining() {
                return Err(error.to_string());
            }
            tracing::info!(%error, table = store.name(), "data of an incremental repair is not apart yet");
            node.env.sleep(ACQUIRE_PAUSE).await;
            let has_ended = node.repairs.sessions().get(&id).is_none_or(LocalSession::has_ended);
            if has_ended || participation.over.get().is_some() {
                return Err(error.to_string());
            }
        }
    }
    Ok(())
}
