//! The course of sessions in time: the data of ended sessions is released, and they are at last
//! forgotten; silent sessions are asked for, and at last given up. Agrees with
//! `LocalSessions.cleanup`.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use internode::Verb;
use internode::payload::repair::SessionId;
use internode::payload::repair::consistent::SessionState;
use internode::payload::token_ranges::Tokens;
use membership::Request;
use repair::repaired_state::{RepairedState, common};
use rows::{DeletionTime, Mutation, PartitionUpdate};
use schema::TableId;
use storage::{TableStore, repair_sessions};

use super::now_seconds;
use crate::node::Node;
use crate::repair::messages::is_up;
use crate::repair::ranges;
use crate::repair_state::options::RepairOptions;
use crate::repair_state::sessions::{LocalSession, TABLE};
use crate::system_rows;

/// Seconds of silence after which the other participants are asked
/// (`cassandra.repair_status_check_timeout_seconds`).
const STATUS_AFTER: i64 = 60 * 60;
/// Seconds of silence after which a session has failed (`cassandra.repair_fail_timeout_seconds`).
const FAIL_AFTER: i64 = 24 * 60 * 60;
/// Seconds after its end when a session is forgotten (`cassandra.repair_delete_timeout_seconds`).
const FORGET_AFTER: i64 = 24 * 60 * 60;

/// The outcome of a session for its data; None: it has not ended, or is not known. A session
/// without a row has failed.
pub(crate) fn outcome(node: &Node, id: &SessionId) -> Option<i64> {
    match node.repairs.sessions().get(id) {
        Some(session) => session.outcome(),
        None => node.repairs.knows_sessions.load(Ordering::Acquire).then_some(0),
    }
}

/// Releases the data of all sessions that have ended, as far as no compaction has it now.
pub(crate) async fn release(node: &Arc<Node>) {
    let stores = node.engine.stores().into_iter();
    for store in stores.filter(|store| !repair_sessions::pending(store).is_empty()) {
        let (here, name) = (Arc::clone(node), store.name());
        let job = move || repair_sessions::release(&here.engine, &store, |id| outcome(&here, id));
        match node.env.blocking_long("release repaired data", job).await {
            Ok(Ok(done)) if done != Default::default() => {
                tracing::info!(
                    table = name,
                    released = done.released.len(),
                    busy = done.busy.len(),
                    "data of ended repairs"
                );
            }
            Ok(Ok(_)) => {}
            Ok(Err(error)) => tracing::error!(%error, table = name, "data of ended repairs cannot be released"),
            Err(full) => tracing::debug!(%full, table = name, "data of ended repairs is released later"),
        }
    }
}

/// Looks at the age of all sessions.
pub(crate) fn age(node: &Arc<Node>) {
    let now = now_seconds(node);
    let sessions: Vec<LocalSession> = node.repairs.sessions().values().cloned().collect();
    for session in &sessions {
        let silent = now - session.last_update;
        match session.has_ended() {
            true if silent > FORGET_AFTER => forget_if_needless(node, session, &sessions),
            false if silent > FAIL_AFTER => super::fail(node, &session.id),
            false if silent > STATUS_AFTER => ask(node, session),
            _ => {}
        }
    }
}

fn ask(node: &Node, session: &LocalSession) {
    let Some(messenger) = node.messenger() else { return };
    let others = session.participants.iter().filter(|one| **one != node.identity.broadcast && is_up(node, **one));
    for participant in others {
        messenger.tell(
            *participant,
            Request::new(Verb::StatusReq, session.id.to_vec(), node.repair_request_timeout())
                .without_failure_response(),
        );
    }
}

/// Forgets an ended session that has no data, and whose ranges were all repaired later, as far as
/// this node still holds them: otherwise they would count as never repaired after a restart.
fn forget_if_needless(node: &Node, session: &LocalSession, all: &[LocalSession]) {
    let stores = stores_of(node, session);
    let is_later = |store: &Arc<TableStore>| {
        let ranges = still_held(node, &store.table().keyspace, &session.ranges);
        ranges.is_empty() || repaired(all, store.id).since(&ranges) > session.repaired_at
    };
    let is_needless = session.state == SessionState::Failed || stores.iter().all(is_later);
    if is_needless && !has_data(&stores, session) {
        forget(node, session);
    }
}

/// Forgets the ended session without data that is the oldest, so that a further one finds room.
/// Operators are told then that its ranges were never repaired.
pub(super) fn make_room(node: &Node) {
    let age = |session: &LocalSession| session.has_ended().then_some((session.last_update, session.id));
    let mut ended: Vec<(i64, SessionId)> = node.repairs.sessions().values().filter_map(age).collect();
    ended.sort_unstable();
    let known = |(_, id): (i64, SessionId)| node.repairs.sessions().get(&id).cloned();
    let oldest = ended.into_iter().filter_map(known).find(|session| !has_data(&stores_of(node, session), session));
    if let Some(oldest) = oldest {
        forget(node, &oldest);
    }
}

fn stores_of(node: &Node, session: &LocalSession) -> Vec<Arc<TableStore>> {
    session.tables.iter().filter_map(|table| node.engine.table(*table)).collect()
}

/// Whether a session has data of its tables that is not released.
fn has_data(stores: &[Arc<TableStore>], session: &LocalSession) -> bool {
    stores.iter().any(|store| repair_sessions::pending(store).contains_key(&session.id))
}

fn forget(node: &Node, session: &LocalSession) {
    let schema = node.schema();
    let Some(table) = schema.table("system", TABLE) else { return };
    let deletion = DeletionTime::new(node.clock.next_micros(), node.env.clock.now_seconds());
    let removed = PartitionUpdate::new(Arc::clone(table), system_rows::partition_key(table, &[&session.id]));
    match node.engine.apply(&[Mutation::of(PartitionUpdate { deletion, ..removed })]) {
        Ok(_) => drop(node.repairs.sessions().remove(&session.id)),
        Err(error) => tracing::warn!(%error, "an ended repair session cannot be forgotten"),
    }
}

/// The parts of ranges of a keyspace that this node holds. All of them where it holds none of the
/// keyspace: the ring may not be known yet.
fn still_held(node: &Node, keyspace: &str, ranges: &[Tokens]) -> Vec<Tokens> {
    let ring = node.ring();
    let held = ring.placement(keyspace).map(|placement| ranges::of_node(&ring, placement, &RepairOptions::default()));
    match held.filter(|held| !held.is_empty()) {
        Some(held) => common(ranges, &held),
        None => ranges.to_vec(),
    }
}

/// The ranges of a table that sessions have repaired.
pub(crate) fn repaired(sessions: &[LocalSession], table: TableId) -> RepairedState {
    let counts = |session: &&LocalSession| {
        session.state == SessionState::Finalized && session.repaired_at > 0 && session.tables.contains(&table)
    };
    RepairedState::new(sessions.iter().filter(counts).map(|session| (&session.ranges[..], session.repaired_at)))
}
