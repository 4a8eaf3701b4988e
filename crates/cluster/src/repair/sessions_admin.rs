//! Sessions of incremental repairs as operators see and end them. Agrees with the verbs of
//! `org.apache.cassandra.service.ActiveRepairServiceMBean`.

use std::sync::Arc;
use std::time::Duration;

use internode::Verb;
use internode::payload::repair::SessionId;
use internode::payload::repair::consistent::SessionState;
use internode::payload::token_ranges::Tokens;
use schema::system::is_local_keyspace;
use storage::{TableStore, repair_sessions};

use super::consistent::{self, sweep};
use super::ranges;
use crate::clock::uuid_text;
use crate::node::Node;
use crate::operations::{OperationError, Result};
use crate::repair_state::options::RepairOptions;
use crate::repair_state::sessions::LocalSession;

/// Number of tries to get data that a compaction has, and the time between two tries.
const FORCED_TRIES: u32 = 50;
const FORCED_PAUSE: Duration = Duration::from_millis(100);

/// Tables that an operator means.
#[derive(Clone, Copy, Debug, Default)]
pub struct TableChoice<'a> {
    /// A keyspace; None: all that have other replicas.
    pub keyspace: Option<&'a str>,
    /// Names of tables; empty: all.
    pub tables: &'a [String],
    /// The range that is looked at; None: all ranges that the node holds.
    pub range: Option<Tokens>,
}

/// Data of some sessions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PendingSum {
    /// Bytes of data files.
    pub bytes: u64,
    /// SSTables.
    pub sstables: usize,
    /// Sessions.
    pub sessions: usize,
}

/// The ranges of a table that are repaired.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RepairedRanges {
    /// Keyspace.
    pub keyspace: String,
    /// Table.
    pub table: String,
    /// Ranges, each with the milliseconds since 1970 when it was repaired; 0: never.
    pub sections: Vec<(Tokens, i64)>,
}

/// The data of a table that ended sessions gave back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReleasedData {
    /// Keyspace.
    pub keyspace: String,
    /// Table.
    pub table: String,
    /// Sessions all of whose data was released.
    pub released: usize,
    /// Sessions of which a compaction has some data.
    pub busy: usize,
}

/// Data of a table that sessions have.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PendingRepairs {
    /// Keyspace.
    pub keyspace: String,
    /// Table.
    pub table: String,
    /// Data of sessions under way.
    pub pending: PendingSum,
    /// Data of sessions that have ended well.
    pub finalized: PendingSum,
    /// Data of sessions that have failed, or that are not known.
    pub failed: PendingSum,
}

/// The chosen tables in the order of their names, each with the ranges that are looked at.
fn chosen(node: &Node, choice: TableChoice<'_>) -> Result<Vec<(Arc<TableStore>, Vec<Tokens>)>> {
    let ring = node.ring();
    let schema = node.schema();
    if let Some(name) = choice.keyspace.filter(|name| schema.keyspace(name).is_none()) {
        return Err(OperationError::Invalid(format!("Keyspace [{name}] does not exist.")));
    }
    let mut found = Vec::new();
    for store in node.engine.stores() {
        let table = store.table();
        let is_meant = choice.keyspace.is_none_or(|keyspace| table.keyspace == keyspace)
            && !is_local_keyspace(&table.keyspace)
            && (choice.tables.is_empty() || choice.tables.contains(&table.name));
        let Some(placement) = ring.placement(&table.keyspace).filter(|_| is_meant) else { continue };
        let held = || ranges::of_node(&ring, placement, &RepairOptions::default());
        let ranges = choice.range.map_or_else(held, |range| vec![range]);
        found.push((store, ranges));
    }
    found.sort_by_key(|(store, _)| (store.table().keyspace.clone(), store.table().name.clone()));
    Ok(found)
}

fn is_about(session: &LocalSession, ranges: &[Tokens]) -> bool {
    session.ranges.iter().any(|one| ranges.iter().any(|other| ranges::intersects(*one, *other)))
}

impl Node {
    /// The sessions that this node knows, oldest first; those that have ended only where `all` are
    /// wanted.
    pub fn repair_sessions(&self, all: bool, range: Option<Tokens>) -> Vec<LocalSession> {
        let sessions = self.repairs.sessions();
        let is_meant = |session: &&LocalSession| {
            (all || !session.has_ended()) && range.is_none_or(|range| is_about(session, &[range]))
        };
        let mut found: Vec<_> = sessions.values().filter(is_meant).cloned().collect();
        found.sort_by_key(|session| (session.started_at, session.id));
        found
    }

    /// Bytes of all SSTables that sessions have.
    pub fn pending_repair_bytes(&self) -> u64 {
        let of_store =
            |store: &Arc<TableStore>| repair_sessions::pending(store).values().map(|data| data.bytes).sum::<u64>();
        self.engine.stores().iter().map(of_store).sum()
    }

    /// How much data of tables sessions have.
    pub fn pending_repairs(&self, choice: TableChoice<'_>) -> Result<Vec<PendingRepairs>> {
        let mut all = Vec::new();
        for (store, ranges) in chosen(self, choice)? {
            let table = store.table();
            let (keyspace, name) = (table.keyspace.clone(), table.name.clone());
            let mut found = PendingRepairs { keyspace, table: name, ..PendingRepairs::default() };
            for (id, data) in repair_sessions::pending(&store) {
                let session = self.repairs.sessions().get(&id).cloned();
                if session.as_ref().is_some_and(|session| !is_about(session, &ranges)) {
                    continue;
                }
                let sum = match session.map(|session| session.state) {
                    Some(SessionState::Finalized) => &mut found.finalized,
                    None | Some(SessionState::Failed) => &mut found.failed,
                    Some(_) => &mut found.pending,
                };
                sum.bytes += data.bytes;
                sum.sstables += data.sstables;
                sum.sessions += 1;
            }
            all.push(found);
        }
        Ok(all)
    }

    /// Since when the ranges of tables are repaired.
    pub fn repaired_ranges(&self, choice: TableChoice<'_>) -> Result<Vec<RepairedRanges>> {
        let sessions: Vec<LocalSession> = self.repairs.sessions().values().cloned().collect();
        let of_table = |(store, ranges): (Arc<TableStore>, Vec<Tokens>)| {
            let sections = sweep::repaired(&sessions, store.id).sections(&ranges);
            let sections = sections.into_iter().map(|section| (section.range, section.repaired_at)).collect();
            let table = store.table();
            RepairedRanges { keyspace: table.keyspace.clone(), table: table.name.clone(), sections }
        };
        Ok(chosen(self, choice)?.into_iter().map(of_table).collect())
    }

    /// Releases data of sessions that have ended.
    pub async fn clean_up_repairs(&self, choice: TableChoice<'_>, force: bool) -> Result<Vec<ReleasedData>> {
        let mut all = Vec::new();
        for (store, _) in chosen(self, choice)? {
            let mut done = self.release(&store)?;
            for _ in 0..FORCED_TRIES {
                if !force || done.busy.is_empty() {
                    break;
                }
                self.engine.compactions.stop(|running| running.table_id == store.id && running.automatic);
                self.env.sleep(FORCED_PAUSE).await;
                let again = self.release(&store)?;
                done.released.extend(again.released);
                done.busy = again.busy;
            }
            let table = store.table();
            all.push(ReleasedData {
                keyspace: table.keyspace.clone(),
                table: table.name.clone(),
                released: done.released.difference(&done.busy).count(),
                busy: done.busy.len(),
            });
        }
        Ok(all)
    }

    fn release(&self, store: &Arc<TableStore>) -> Result<repair_sessions::Released> {
        let released = repair_sessions::release(&self.engine, store, |id| sweep::outcome(self, id));
        released.map_err(|error| OperationError::Failed(error.to_string()))
    }

    /// Ends a session that has not ended: it has failed. The other participants are told.
    pub fn cancel_repair(self: &Arc<Self>, id: SessionId, force: bool) -> Result<()> {
        let invalid = |why: String| Err(OperationError::Invalid(why));
        let text = uuid_text(&id);
        let Some(session) = self.repairs.sessions().get(&id).cloned() else {
            return invalid(format!("Session {text} does not exist"));
        };
        let local = self.identity.broadcast;
        if !force && session.coordinator != local {
            let coordinator = session.coordinator;
            return invalid(format!("Cancel session {text} from it's coordinator (/{coordinator}) or use --force"));
        }
        consistent::cancel(self, &id).map_err(OperationError::Invalid)?;
        for to in session.participants.into_iter().filter(|to| *to != local) {
            let here = Arc::clone(self);
            self.repair_task(move || async move {
                consistent::tell(&here, to, Verb::FailedSessionMsg, id.to_vec()).await;
            });
        }
        Ok(())
    }
}
