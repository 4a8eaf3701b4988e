//! Incremental repair: sessions whose participants agree that data counts as repaired.
//!
//! ```text
//! coordinator                       participant
//! PREPARE_CONSISTENT_REQ        →   the unrepaired data of the ranges is put apart
//!                               ←   PREPARE_CONSISTENT_RSP
//! validation and streams of the data that was put apart, as in a full repair
//! FINALIZE_PROPOSE              →   the promise is durable
//!                               ←   FINALIZE_PROMISE
//! FINALIZE_COMMIT               →   the data counts as repaired
//! ```
//!
//! FAILED_SESSION at any step before the commit: the data counts as unrepaired, as before. A
//! participant that has heard nothing for an hour asks the others (STATUS_REQ), and after a day
//! without an answer of the coordinator the session has failed. After a restart sessions that had
//! not promised have failed; one that has promised waits for the outcome, unless this node is its
//! coordinator. This module is the participant; [`coordinator_session`] the coordinator,
//! [`sweep`] what time brings. Agrees with `org.apache.cassandra.repair.consistent.LocalSessions`.

pub(super) mod coordinator_session;
mod prepare;
pub(crate) mod sweep;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::future::join_all;
use internode::Verb;
use internode::payload::repair::consistent::{PrepareConsistent, SessionState, Status, Vote};
use internode::payload::repair::{Prepare, Preview, SessionId};
use membership::Request;

use super::messages::is_up;
use super::participant::Refusal;
use super::ranges;
use crate::clock::uuid_text;
use crate::node::Node;
use crate::repair_state::sessions::{LocalSession, TABLE, may_become};
use crate::repair_state::{Participation, RepairResult, RepairResultKey, SESSIONS_MAX};
use crate::system_rows;

/// Seconds that a node waits after a start for a peer to be up, to which it has to tell a failure.
const PEER_SECONDS_MAX: u32 = 60;

fn now_seconds(node: &Node) -> i64 {
    node.env.clock.now_micros() / 1_000_000
}

/// Writes a session's row.
fn save(node: &Node, session: &LocalSession) -> Result<(), Refusal> {
    let schema = node.schema();
    let table = schema.table("system", TABLE).ok_or("there is no table system.repairs")?;
    let row = session.row(table, node.clock.next_micros());
    node.engine.apply(&[row]).map(drop).map_err(|error| format!("a repair session cannot be written: {error}"))
}

/// Moves a session to another state. `Ok(false)`: there is no such session, or it is not in the
/// expected state. Err: the step is not possible.
fn step(node: &Arc<Node>, id: &SessionId, expected: Option<SessionState>, to: SessionState) -> Result<bool, Refusal> {
    let mut sessions = node.repairs.sessions();
    let Some(session) = sessions.get_mut(id) else { return Ok(false) };
    if expected.is_some_and(|expected| session.state != expected) {
        return Ok(false);
    }
    if !may_become(session.state, to) {
        return Err(format!("Invalid state transition {} -> {}", session.state.name(), to.name()));
    }
    let was_under_way = !session.has_ended();
    let changed = LocalSession { state: to, last_update: now_seconds(node), ..session.clone() };
    save(node, &changed)?;
    *session = changed;
    let has_ended = was_under_way && session.has_ended();
    drop(sessions);
    tracing::info!(session = uuid_text(id), state = to.name(), "an incremental repair goes on");
    if has_ended && to == SessionState::Finalized {
        end_previews(node, id);
    }
    if has_ended {
        let here = Arc::clone(node);
        // without a thread of repair the node is alone; the next start releases the data
        node.repair_task(move || async move { sweep::release(&here).await });
    }
    Ok(true)
}

/// Marks a session as failed. A session that has ended stays as it is.
pub(crate) fn fail(node: &Arc<Node>, id: &SessionId) {
    let has_ended = node.repairs.sessions().get(id).is_none_or(LocalSession::has_ended);
    if !has_ended && let Err(why) = step(node, id, None, SessionState::Failed) {
        tracing::error!(why, session = uuid_text(id), "a repair session cannot be set to FAILED");
    }
}

/// Ends a session for an operator. Err: it has ended already.
pub(super) fn cancel(node: &Arc<Node>, id: &SessionId) -> Result<(), Refusal> {
    step(node, id, None, SessionState::Failed)?;
    end_command(node, id);
    Ok(())
}

/// Called when a participant, or an operator of one, tells that a session has failed, or that the
/// participant has given a full repair up.
pub(crate) fn participant_failed(node: &Arc<Node>, from: SocketAddr, id: &SessionId) {
    fail(node, id);
    end_command(node, id);
    for command in node.repairs.commands().values().filter(|command| command.id == *id) {
        command.cancel(&format!("/{from} has given repair {} up: its log says why", uuid_text(id)));
    }
}

/// Ends the incremental repair of a session, if this node coordinates it.
fn end_command(node: &Node, id: &SessionId) {
    let commands = node.repairs.commands();
    for command in commands.values().filter(|command| command.id == *id && command.options.is_incremental) {
        command.cancel(&format!("Incremental repair session {} has failed", uuid_text(id)));
    }
}

/// Ends the previews of repaired data that this node coordinates, if a session has ended well that
/// is about some of their data: the replicas may have been looked at before and after it. Agrees
/// with `RepairSession.onIRStateChange`.
fn end_previews(node: &Node, id: &SessionId) {
    let Some(session) = node.repairs.sessions().get(id).cloned() else { return };
    let is_met = |preview: &Prepare| {
        preview.preview == Preview::Repaired
            && preview.tables.iter().any(|table| session.tables.contains(table))
            && preview.ranges.iter().any(|one| session.ranges.iter().any(|other| ranges::intersects(*one, *other)))
    };
    let participations: Vec<_> = node.repairs.participations().values().cloned().collect();
    let met: Vec<SessionId> =
        participations.iter().map(|of| &of.prepare).filter(|of| is_met(of)).map(|of| of.parent).collect();
    for command in node.repairs.commands().values().filter(|command| met.contains(&command.id)) {
        let why = "An incremental repair with session id";
        command.cancel(&format!("{why} {} finished during this preview repair runtime", uuid_text(id)));
    }
}

/// Tells a node until it has acknowledged; a node that cannot be told learns it later by
/// STATUS_REQ.
pub(super) async fn tell(node: &Node, to: SocketAddr, verb: Verb, payload: Vec<u8>) {
    if let Err(error) = node.tell_repair(to, verb, payload).await {
        tracing::warn!(%error, peer = %to, verb = verb.name(), "a participant of a repair cannot be told");
    }
}

/// Tells the coordinator how a step has gone; the coordinator may be this node.
async fn vote(node: &Node, to: SocketAddr, verb: Verb, session: SessionId, is_yes: bool) {
    let participant = node.identity.broadcast;
    if to == participant {
        let awaited = match verb {
            Verb::FinalizePromiseMsg => RepairResultKey::Promised(session, participant),
            _ => RepairResultKey::Prepared(session, participant),
        };
        return node.repairs.tell(&awaited, RepairResult::Vote(is_yes));
    }
    tell(node, to, verb, Vote { session, participant, is_yes }.encode()).await;
}

fn run<F: Future<Output = ()> + 'static>(
    node: &Node,
    make: impl FnOnce() -> F + Send + 'static,
) -> Result<(), Refusal> {
    node.repair_task(make).then_some(()).ok_or_else(|| "too many tasks of repair wait".to_owned())
}

/// PREPARE_CONSISTENT_REQ: puts the data of the session apart, and tells the coordinator then. A
/// request that comes again is answered again once the data is apart, since the first answer may
/// have been lost. Err: nothing is begun.
pub(crate) fn begin(node: &Arc<Node>, request: PrepareConsistent) -> Result<(), Refusal> {
    let PrepareConsistent { session: id, coordinator, participants } = request;
    let Some(participation) = node.repairs.participation(&id) else {
        let here = Arc::clone(node);
        run(node, move || async move { vote(&here, coordinator, Verb::PrepareConsistentRsp, id, false).await })?;
        return Err(format!("Unknown repair {}", uuid_text(&id)));
    };
    let prepare = &participation.prepare;
    if !prepare.is_incremental || prepare.preview != Preview::None {
        return Err("the repair is not incremental".to_owned());
    }
    let now = now_seconds(node);
    let session = LocalSession {
        id,
        coordinator,
        tables: prepare.tables.clone(),
        ranges: prepare.ranges.clone(),
        participants,
        repaired_at: prepare.repaired_at,
        started_at: now,
        last_update: now,
        state: SessionState::Preparing,
    };
    let here = Arc::clone(node);
    let is_full = {
        let sessions = node.repairs.sessions();
        sessions.len() >= SESSIONS_MAX && !sessions.contains_key(&id)
    };
    if is_full {
        sweep::make_room(node);
    }
    let known = {
        let mut sessions = node.repairs.sessions();
        let known = sessions.get(&id).map(|session| session.state);
        if known.is_none() {
            if sessions.len() >= SESSIONS_MAX {
                return Err(format!("this node knows {SESSIONS_MAX} repair sessions already"));
            }
            save(node, &session)?;
            sessions.insert(id, session);
        }
        known
    };
    match known {
        None => {}
        Some(SessionState::Preparing) => return Ok(()),
        Some(state) => {
            let is_yes = state != SessionState::Failed;
            return run(node, move || async move {
                vote(&here, coordinator, Verb::PrepareConsistentRsp, id, is_yes).await;
            });
        }
    }
    let begun = run(node, move || async move {
        let is_yes = prepared(&here, &participation).await;
        vote(&here, coordinator, Verb::PrepareConsistentRsp, id, is_yes).await;
    });
    // otherwise a request that comes again, because the refusal was lost, would be acknowledged,
    // and the coordinator would wait for a vote for ever
    if begun.is_err() {
        fail(node, &id);
    }
    begun
}

/// Puts the data of a session apart; gives whether the session goes on.
async fn prepared(node: &Arc<Node>, participation: &Participation) -> bool {
    let id = participation.prepare.parent;
    let apart = prepare::anticompact(node, participation).await;
    match apart.and_then(|()| step(node, &id, Some(SessionState::Preparing), SessionState::Prepared)) {
        Ok(is_prepared) => is_prepared,
        Err(why) => {
            tracing::warn!(why, session = uuid_text(&id), "data of an incremental repair cannot be put apart");
            fail(node, &id);
            false
        }
    }
}

/// Called when the first validation of the session begins on this node.
pub(super) fn mark_repairing(node: &Arc<Node>, id: &SessionId) -> Result<(), Refusal> {
    step(node, id, None, SessionState::Repairing).map(drop)
}

/// FINALIZE_PROPOSE: promises, durably, to end the session well when the coordinator says so.
pub(crate) fn propose(node: &Arc<Node>, from: SocketAddr, id: SessionId) -> Result<(), Refusal> {
    if !node.repairs.sessions().contains_key(&id) {
        let here = Arc::clone(node);
        run(node, move || async move { tell(&here, from, Verb::FailedSessionMsg, id.to_vec()).await })?;
        return Err(format!("Unknown repair session {}", uuid_text(&id)));
    }
    let here = Arc::clone(node);
    run(node, move || async move {
        let stepped = step(&here, &id, Some(SessionState::Repairing), SessionState::FinalizePromised);
        // proposed again: the first promise may have been lost on its way
        let is_known = stepped == Ok(false) && may_still_end_well(&here, &id);
        // otherwise a crash could take the promise back after the coordinator has relied on it
        let promised = match stepped {
            Ok(is_new) if is_new || is_known => here.engine.log.sync().await.map_err(|error| error.to_string()),
            Ok(_) => Err("the session has failed here, or nothing was repaired in it".to_owned()),
            Err(why) => Err(why),
        };
        match promised {
            Ok(()) => vote(&here, from, Verb::FinalizePromiseMsg, id, true).await,
            // the coordinator may have the first promise, and may have ended the session well
            Err(why) if is_known => {
                tracing::error!(why, session = uuid_text(&id), "a promise of a repair session cannot be told again");
            }
            Err(why) => {
                tracing::error!(why, session = uuid_text(&id), "a repair session cannot be promised");
                fail(&here, &id);
                match from == here.identity.broadcast {
                    true => end_command(&here, &id),
                    false => tell(&here, from, Verb::FailedSessionMsg, id.to_vec()).await,
                }
            }
        }
    })
}

/// Whether a session was promised already, or has ended well: the proposal has come again.
fn may_still_end_well(node: &Node, id: &SessionId) -> bool {
    let state = node.repairs.sessions().get(id).map(|session| session.state);
    matches!(state, Some(SessionState::FinalizePromised | SessionState::Finalized))
}

/// FINALIZE_COMMIT: the data of the session counts as repaired. `Ok(false)`: the session has ended
/// already, or was not promised.
pub(crate) fn commit(node: &Arc<Node>, id: &SessionId) -> Result<bool, Refusal> {
    if !node.repairs.sessions().contains_key(id) {
        return Err(format!("Unknown repair session {}", uuid_text(id)));
    }
    step(node, id, Some(SessionState::FinalizePromised), SessionState::Finalized)
}

/// STATUS_REQ: tells how far a session is here, its good end once that is durable. A session
/// without a row has failed; as long as the rows are not read nothing is said.
pub(crate) async fn send_status(node: &Node, to: SocketAddr, id: SessionId) {
    let known = node.repairs.sessions().get(&id).map(|session| session.state);
    let missing = || node.repairs.knows_sessions.load(Ordering::Acquire).then_some(SessionState::Failed);
    let Some(state) = known.or_else(missing) else { return };
    // otherwise a crash could take the end back after the other node has relied on it
    if state == SessionState::Finalized
        && let Err(error) = node.engine.log.sync().await
    {
        return tracing::warn!(%error, peer = %to, "the good end of a repair session is not durable, and not told");
    }
    let status = Status { session: id, state }.encode();
    if let Some(messenger) = node.messenger() {
        messenger
            .tell(to, Request::new(Verb::StatusRsp, status, node.repair_request_timeout()).without_failure_response());
    }
}

/// STATUS_RSP: only the end of a session elsewhere changes it here. The news that a session goes on
/// counts from its coordinator, and at its coordinator. Otherwise participants whose coordinator is
/// gone for good would keep the session for ever by telling each other of it, as those of Cassandra
/// do.
pub(crate) fn receive_status(node: &Arc<Node>, from: SocketAddr, status: &Status) -> Result<(), Refusal> {
    match status.state {
        ended @ (SessionState::Finalized | SessionState::Failed) => step(node, &status.session, None, ended).map(drop),
        _ => {
            if let Some(session) = node.repairs.sessions().get_mut(&status.session)
                && (session.coordinator == from || session.coordinator == node.identity.broadcast)
            {
                session.last_update = now_seconds(node);
            }
            Ok(())
        }
    }
}

/// Reads the sessions that this node has taken part in. Those that a stop has interrupted have
/// failed, unless they were promised to another node; whoever coordinates them is told. Until this
/// is done, and for good where it cannot be done, data of sessions that are not known stays apart.
pub(super) fn restore(node: &Arc<Node>) {
    let schema = node.schema();
    let Some(table) = schema.table("system", TABLE) else { return };
    let rows = match system_rows::read(&node.engine, table, None) {
        Ok(rows) => rows,
        Err(error) => return tracing::error!(%error, "repair sessions cannot be read: their data stays apart"),
    };
    let mut interrupted = Vec::new();
    for (key, row) in rows.iter().take(SESSIONS_MAX) {
        match LocalSession::of_row(table, &key.key, row) {
            Some(session) => {
                let is_own = session.coordinator == node.identity.broadcast;
                if !session.has_ended() && (is_own || session.state != SessionState::FinalizePromised) {
                    interrupted.push(session.id);
                }
                node.repairs.sessions().insert(session.id, session);
            }
            None => tracing::warn!(key = ?key.key, "a row of system.repairs cannot be read; its data is released"),
        }
    }
    match rows.len() {
        0..=SESSIONS_MAX => node.repairs.knows_sessions.store(true, Ordering::Release),
        count => tracing::error!(
            count,
            "system.repairs has more than {SESSIONS_MAX} sessions, of which the others are not read: their data stays \
             apart"
        ),
    }
    let mut told = Vec::new();
    for id in interrupted {
        fail(node, &id);
        let Some(session) = node.repairs.sessions().get(&id).cloned() else { continue };
        // nobody can have committed without this node's promise; the good end of its own sessions
        // is told once that is durable
        let is_own = session.coordinator == node.identity.broadcast;
        let others = if is_own { session.participants } else { vec![session.coordinator] };
        told.extend(others.into_iter().filter(|to| *to != node.identity.broadcast).map(|to| (id, to)));
    }
    let here = Arc::clone(node);
    // one task for all: few fit into the channel
    node.repair_task(move || async move {
        join_all(told.into_iter().map(|(id, to)| tell_failure_when_up(&here, id, to))).await;
    });
}

/// Tells a node that a session has failed, as soon as the node is up.
async fn tell_failure_when_up(node: &Node, id: SessionId, to: SocketAddr) {
    for _ in 0..PEER_SECONDS_MAX {
        if is_up(node, to) {
            break;
        }
        node.env.sleep(Duration::from_secs(1)).await;
    }
    tell(node, to, Verb::FailedSessionMsg, id.to_vec()).await;
}
