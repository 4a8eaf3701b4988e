//! Repairs as state: parent sessions that this node takes part in, commands that it coordinates,
//! and results of other nodes that are waited for. The verbs are in `crate::repair`.

pub mod command;
pub mod options;
pub mod records;
pub mod schedule;
pub mod sessions;
pub mod settings;

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicI64};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use arc_swap::ArcSwap;
use bytes::Bytes;
use env::LocalFutureFactory;
use internode::payload::repair::{Prepare, SessionId, SyncResponse};
use schema::TableId;
use storage::flushed_table::FlushedTable;
use storage::received::TruncationEpoch;
use tokio::sync::{mpsc, oneshot};

use command::Command;
use records::{Records, RepairCounts};
use schedule::Schedule;
use sessions::LocalSession;
use settings::{RepairPermits, RepairSettings};

use crate::clock::uuid_text;

/// Most parent sessions that a node takes part in at a time. A further PREPARE is answered with a
/// failure.
pub(crate) const PARTICIPATIONS_MAX: usize = 256;
/// Most tasks of a parent session: validations and streams, one for each range, table and peer. A
/// further one is refused, and the repair ends with the refusal: it has to name fewer tables.
pub(crate) const TASKS_MAX: usize = 1 << 18;
/// Most sessions of incremental repairs that a node knows, ended ones included. For a further one
/// the oldest ended session whose data is released is forgotten; if there is none, it is refused.
pub(crate) const SESSIONS_MAX: usize = 4096;
/// Most commands that run or wait for their turn (`repair_command_pool_size`). A further one is
/// refused.
pub(crate) const RUNNING_MAX: usize = 64;
/// Commands that are remembered after their end, so that an operator sees how they ended.
pub(crate) const ENDED_MAX: usize = 64;

/// The name under which a result is waited for.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum RepairResultKey {
    /// The trees of a session's table at a node.
    Trees(SessionId, String, SocketAddr),
    /// The end of streams of a session's table between a source and a destination.
    Synced(SessionId, String, SocketAddr, SocketAddr),
    /// The outcome of a cleanup of Paxos under an id at a node.
    Paxos([u8; 16], SocketAddr),
    /// Whether a node has put the data of a session apart.
    Prepared(SessionId, SocketAddr),
    /// Whether a node promises to end a session well.
    Promised(SessionId, SocketAddr),
}

/// A result of another node.
#[derive(Debug)]
pub(crate) enum RepairResult {
    /// Trees as bytes; None: the validation failed.
    Trees(Option<Bytes>),
    /// The streams have ended.
    Synced(SyncResponse),
    /// The outcome of a cleanup of Paxos. None: everything is completed. Some: why not.
    Paxos(Option<String>),
    /// The answer of a participant to a step of a session.
    Vote(bool),
}

/// How far a task of a participant is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Progress {
    Running,
    Succeeded,
    Failed,
}

/// A task of a participant: a validation, or streams to a destination.
pub(crate) type TaskId = (SessionId, String, Option<SocketAddr>);

/// A parent session that this node takes part in.
pub(crate) struct Participation {
    /// The node that coordinates it.
    pub coordinator: SocketAddr,
    /// The coordinator's generation in gossip; None: it is not known.
    pub generation: Option<i32>,
    /// The repair as the coordinator told of it.
    pub prepare: Prepare,
    /// The begin of the repair on this node, by the truncations of the node: a later one of its
    /// tables ends the repair.
    pub since: TruncationEpoch,
    /// When the repair began on this node, or when its last task began or ended; milliseconds
    /// since 1970.
    pub last_used: AtomicI64,
    /// When a stream was seen last that may be one of the repair, milliseconds since 1970; 0: none
    /// was.
    pub last_streamed: AtomicI64,
    /// SSTables that are kept for validations of all replicas one after the other.
    pub flushed_tables: Mutex<BTreeMap<TableId, FlushedTable>>,
    /// The tasks that were asked for: a request that comes twice is not carried out twice.
    /// At most [`TASKS_MAX`].
    pub tasks: Mutex<BTreeMap<TaskId, Progress>>,
    /// The reason why nothing more is done for the session, a sentence without a full stop. Empty:
    /// the session goes on. Set once, and never removed.
    pub over: OnceLock<String>,
}

/// The state that the parts of repair share.
pub(crate) struct Repairs {
    /// The way to the thread of repair. Set when the node joins a ring.
    pub worker: OnceLock<mpsc::Sender<LocalFutureFactory>>,
    participations: Mutex<HashMap<SessionId, Arc<Participation>>>,
    sessions: Mutex<BTreeMap<SessionId, LocalSession>>,
    /// True once all sessions of `system.repairs` are in `sessions`. If they cannot be read it
    /// stays false until the next start: a session that is missing may have ended in any way.
    pub knows_sessions: AtomicBool,
    commands: Mutex<BTreeMap<i32, Arc<Command>>>,
    awaited: Mutex<HashMap<RepairResultKey, oneshot::Sender<RepairResult>>>,
    /// The course of repairs, for operators.
    pub records: Records,
    /// Counts of repairs since the start.
    pub counts: RepairCounts,
    /// The number of the last command.
    pub last_command: AtomicI32,
    /// The settings of repairs, and the turns that follow from them.
    pub permits: ArcSwap<RepairPermits>,
    /// The schedule of repairs that run without being asked for.
    pub schedule: Schedule,
}

impl Default for Repairs {
    fn default() -> Self {
        Self {
            worker: OnceLock::new(),
            participations: Mutex::default(),
            sessions: Mutex::default(),
            knows_sessions: AtomicBool::new(false),
            commands: Mutex::default(),
            awaited: Mutex::default(),
            records: Records::default(),
            counts: RepairCounts::default(),
            last_command: AtomicI32::new(0),
            permits: ArcSwap::from_pointee(RepairPermits::new(RepairSettings::default())),
            schedule: Schedule::default(),
        }
    }
}

/// Locks a mutex. A panic of another holder does not matter: it leaves the value as it was before.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Repairs {
    /// The parent sessions that this node takes part in.
    pub fn participations(&self) -> MutexGuard<'_, HashMap<SessionId, Arc<Participation>>> {
        lock(&self.participations)
    }

    /// A parent session that this node takes part in.
    pub fn participation(&self, id: &SessionId) -> Option<Arc<Participation>> {
        self.participations().get(id).cloned()
    }

    /// Whether this node takes part in a repair of a table.
    pub fn is_repaired(&self, table: TableId) -> bool {
        self.participations().values().any(|participation| participation.prepare.tables.contains(&table))
    }

    /// The sessions of incremental repairs that this node takes part in or has taken part in.
    pub fn sessions(&self) -> MutexGuard<'_, BTreeMap<SessionId, LocalSession>> {
        lock(&self.sessions)
    }

    /// Whether data counts as repaired in a preview of repaired data (`--validate`), by the
    /// statistics `repairedAt` (milliseconds since 1970, 0: unrepaired) and `pendingRepair` of its
    /// SSTable. Data of a session that has ended well counts before it is released: otherwise
    /// replicas would differ that release it at different times. Err: the session is under way, and
    /// the other replicas may see it in another state. Agrees with
    /// `org.apache.cassandra.streaming.PreviewKind`.
    pub fn counts_as_repaired(&self, repaired_at: i64, pending: Option<SessionId>) -> Result<bool, String> {
        let Some(id) = pending else { return Ok(repaired_at != 0) };
        match self.sessions().get(&id).map(|session| (session, session.outcome())) {
            None => Ok(false),
            Some((_, Some(outcome))) => Ok(outcome != 0),
            Some((session, None)) => Err(format!(
                "data is pending for incremental repair session {}, which is {} and not finalized: the preview of \
                 repaired data fails",
                uuid_text(&id),
                session.state.name()
            )),
        }
    }

    /// The commands that run, and the last ones that have ended, by number.
    pub fn commands(&self) -> MutexGuard<'_, BTreeMap<i32, Arc<Command>>> {
        lock(&self.commands)
    }

    /// Waits for a result. It replaces an earlier wait by the same name. Names whose wait was
    /// dropped are removed, because a repair that fails drops its waits at once.
    pub fn expect(&self, what: RepairResultKey) -> oneshot::Receiver<RepairResult> {
        let (tell, told) = oneshot::channel();
        let mut awaited = lock(&self.awaited);
        awaited.retain(|_, tell| !tell.is_closed());
        awaited.insert(what, tell);
        told
    }

    /// Gives a result that has come to its wait. There may be none: the result has come before, or
    /// the session has ended.
    pub fn tell(&self, what: &RepairResultKey, told: RepairResult) {
        let waiting = lock(&self.awaited).remove(what);
        if let Some(waiting) = waiting {
            // who waited may have gone
            let _ = waiting.send(told);
        }
    }

    /// Removes the wait for a result.
    pub fn forget(&self, what: &RepairResultKey) {
        lock(&self.awaited).remove(what);
    }
}

impl Participation {
    /// The SSTables of tables that are kept for validations.
    pub fn flushed_tables(&self) -> MutexGuard<'_, BTreeMap<TableId, FlushedTable>> {
        lock(&self.flushed_tables)
    }

    /// The tasks.
    pub fn tasks(&self) -> MutexGuard<'_, BTreeMap<TaskId, Progress>> {
        lock(&self.tasks)
    }
}

#[cfg(test)]
mod tests {
    use internode::payload::repair::consistent::SessionState;

    use super::*;

    #[test]
    fn what_nobody_waits_for_any_more_is_forgotten() {
        let repairs = Repairs::default();
        let node = |port| SocketAddr::from(([127, 0, 0, 1], port));
        let mut told: Vec<_> =
            (1..=3).map(|port| repairs.expect(RepairResultKey::Prepared([1; 16], node(port)))).collect();
        told.truncate(1);
        told.push(repairs.expect(RepairResultKey::Prepared([2; 16], node(1))));
        assert_eq!(lock(&repairs.awaited).len(), 2);
        repairs.tell(&RepairResultKey::Prepared([1; 16], node(1)), RepairResult::Vote(true));
        assert!(matches!(told[0].try_recv(), Ok(RepairResult::Vote(true))), "the others are still waited for");
    }

    /// As `PreviewKind.PreviewRepairedSSTablePredicate`.
    #[test]
    fn data_of_sessions_in_a_preview_of_repaired_data() {
        let repairs = Repairs::default();
        let address = SocketAddr::from(([127, 0, 0, 1], 7000));
        let sessions = [
            (1, SessionState::Repairing, 9),
            (2, SessionState::FinalizePromised, 9),
            (3, SessionState::Finalized, 9),
            (4, SessionState::Finalized, 0),
            (5, SessionState::Failed, 9),
        ];
        for (number, state, repaired_at) in sessions {
            let session = LocalSession {
                id: [number; 16],
                coordinator: address,
                tables: Vec::new(),
                ranges: Vec::new(),
                participants: vec![address],
                repaired_at,
                started_at: 0,
                last_update: 0,
                state,
            };
            repairs.sessions().insert(session.id, session);
        }
        // the second one is None where the preview fails
        let cases = [
            ((0, None), Some(false)),
            ((9, None), Some(true)),
            ((0, Some(1)), None),
            ((0, Some(2)), None),
            ((0, Some(3)), Some(true)),
            ((0, Some(4)), Some(false)),
            ((0, Some(5)), Some(false)),
            ((0, Some(6)), Some(false)),
        ];
        for ((repaired_at, pending), expected) in cases {
            let found = repairs.counts_as_repaired(repaired_at, pending.map(|number: u8| [number; 16]));
            assert_eq!(found.ok(), expected, "{repaired_at} {pending:?}");
        }
    }
}
