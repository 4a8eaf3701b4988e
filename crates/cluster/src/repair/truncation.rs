//! TRUNCATE ends the repairs of its table that this node takes part in, whichever node coordinates
//! them. Each node truncates at its own time: a repair that goes on would bring rows back from a
//! replica that is truncated later, and an incremental one could count rows as repaired that a
//! replica does not have.
//!
//! 1. Validations of the table end, and so does putting its data apart.
//! 2. The node takes part in these repairs no more: what is asked of it for them is refused, and so
//!    are files of tables of which it takes part in no other repair (`crate::streaming`).
//! 3. Sessions of incremental repairs fail, unless their end was promised: then only the
//!    coordinator may still fail them.
//! 4. Streams of repairs that are about the table end. The other tables of such a repair are
//!    repaired by the next one.
//! 5. The coordinator is told.
//!
//! Agrees with `org.apache.cassandra.service.ActiveRepairService.abort` as
//! `ColumnFamilyStore.truncateBlocking` calls it, which does 1 and 2.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use internode::Verb;
use internode::payload::repair::SessionId;
use internode::payload::repair::consistent::SessionState;
use schema::TableId;
use storage::TableStore;
use storage::strategy::kind::Kind;

use super::{consistent, participant};
use crate::clock::uuid_text;
use crate::node::Node;
use crate::repair_state::records::End;

impl Node {
    /// Ends the repairs of a table, which is truncated, and of its views. The table comes first.
    pub(crate) fn end_repairs_of(self: &Arc<Self>, stores: &[Arc<TableStore>]) {
        let Some(table) = stores.first() else { return };
        let tables: Vec<TableId> = stores.iter().map(|store| store.id).collect();
        let why = format!("{} was truncated", table.name());
        let repairs = repairs_of(self, &tables);
        if !repairs.is_empty() {
            let sessions = repairs.keys().map(uuid_text).collect::<Vec<_>>().join(", ");
            tracing::info!("Stopping parent sessions [{sessions}] due to truncation of tableId={}", table.id);
        }
        for (id, coordinator) in &repairs {
            participant::clean_up(self, id, End::Failure(why.clone()));
            end_session(self, id, *coordinator, &why);
        }
        self.engine.compactions.stop(|running| {
            tables.contains(&running.table_id) && matches!(running.kind, Kind::Validation | Kind::Anticompaction)
        });
        self.end_streams_of_repairs(&tables, &why);
        let local = self.identity.broadcast;
        for (id, coordinator) in repairs.into_iter().filter(|(_, coordinator)| *coordinator != local) {
            let here = Arc::clone(self);
            let is_told = self.repair_task(move || async move {
                consistent::tell(&here, coordinator, Verb::FailedSessionMsg, id.to_vec()).await;
            });
            if !is_told {
                tracing::warn!(%coordinator, "too much waits: a coordinator is not told that a repair has ended");
            }
        }
    }
}

/// The repairs of tables that this node takes part in, with their coordinators; also sessions of
/// incremental repairs of which a stop has left nothing but the session.
fn repairs_of(node: &Node, tables: &[TableId]) -> BTreeMap<SessionId, SocketAddr> {
    let mut repairs = BTreeMap::new();
    for (id, participation) in node.repairs.participations().iter() {
        if participation.prepare.tables.iter().any(|table| tables.contains(table)) {
            repairs.insert(*id, participation.coordinator);
        }
    }
    for session in node.repairs.sessions().values().filter(|session| !session.has_ended()) {
        if session.tables.iter().any(|table| tables.contains(table)) {
            repairs.insert(session.id, session.coordinator);
        }
    }
    repairs
}

/// Ends a repair as far as this node can end it.
fn end_session(node: &Arc<Node>, id: &SessionId, coordinator: SocketAddr, why: &str) {
    for command in node.repairs.commands().values().filter(|command| command.id == *id) {
        command.cancel(why);
    }
    let state = node.repairs.sessions().get(id).map(|session| session.state);
    // a coordinator that has not told anybody of the good end may fail the session in any case
    if coordinator == node.identity.broadcast || state != Some(SessionState::FinalizePromised) {
        consistent::fail(node, id);
    }
}
