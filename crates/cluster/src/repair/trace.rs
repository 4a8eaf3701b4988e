//! `nodetool repair --trace`: a repair as a tracing session. Each line is an event of
//! `system_traces.events` and, for the operator who waits, a notification of the command.
//!
//! 1. The session begins with the command ([`RepairTrace::begin`]). Requests for snapshots, trees
//!    and streams name it, and the replicas write events of their own.
//! 2. While the command runs, the events of the replicas are looked for every second and told with
//!    the replica's address before them.
//! 3. Behind the last line the session gets its row in `system_traces.sessions`.
//!
//! At most [`EVENTS_MAX`] events of replicas are told. Agrees with the tracing of
//! `org.apache.cassandra.repair.RepairCoordinator`.

use std::collections::HashSet;
use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use rows::ReadError;
use rows::command::TraceSink;
use schema::TableMetadata;
use types::Consistency;

use crate::identity::inet;
use crate::node::Node;
use crate::repair_state::command::{Command, Event, EventKind};
use crate::system_rows::{self, SystemRow};
use crate::traces::TracedEvents;

/// Time between two looks for events of the replicas.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Events of replicas that are read and told.
const EVENTS_MAX: u32 = 2_000;

/// A traced repair.
pub(super) struct RepairTrace {
    node: Arc<Node>,
    /// The session's id, a time UUID.
    session: [u8; 16],
    events: Arc<TracedEvents>,
    /// When the session began, milliseconds since 1970.
    started_at: i64,
    /// `keyspace` and `columnFamilies`, as Cassandra keeps them.
    parameters: [(&'static str, String); 2],
    /// Ids of the events of replicas that were told.
    told: Mutex<HashSet<Bytes>>,
}

impl RepairTrace {
    /// Begins the session of a command whose operator has asked for it.
    pub fn begin(node: &Arc<Node>, command: &Command, tables: &[Arc<TableMetadata>]) -> Option<Self> {
        if !command.options.is_traced {
            return None;
        }
        let session = node.uuids.next();
        let events = Arc::new(TracedEvents::of_repair(node, session));
        command.trace_to(Arc::clone(&events) as Arc<dyn TraceSink>);
        let names: Vec<_> = tables.iter().map(|table| format!("{}.{}", table.keyspace, table.name)).collect();
        let parameters = [("keyspace", command.keyspace.clone()), ("columnFamilies", names.join(", "))];
        let started_at = node.env.clock.now_micros() / 1000;
        Some(Self { node: Arc::clone(node), session, events, started_at, parameters, told: Mutex::default() })
    }

    /// Does the work of the command, and tells the events of the replicas meanwhile.
    pub async fn beside<T>(&self, command: &Command, work: impl Future<Output = T>) -> T {
        let done = tokio::select! {
            biased;
            done = work => done,
            never = self.follow(command) => match never {},
        };
        self.tell_others(command).await;
        done
    }

    /// Tells the events of the replicas until it is dropped.
    async fn follow(&self, command: &Command) -> Infallible {
        loop {
            self.node.env.sleep(LOOK_EVERY).await;
            self.tell_others(command).await;
        }
    }

    /// Ends the session: its row and this node's events are on their way to their replicas.
    pub async fn end(self) {
        let row = self.session_row();
        self.events.finish(row.into_iter().collect()).await;
    }

    /// Tells the events of replicas that were not told yet.
    async fn tell_others(&self, command: &Command) {
        let schema = self.node.schema();
        let Some(table) = schema.table("system_traces", "events") else { return };
        let key = system_rows::partition_key(table, &[&self.session]);
        let found = self.node.read_rows_at::<ReadError>(table, Some(key), Consistency::One, EVENTS_MAX).await;
        let Ok(found) = found else {
            return tracing::debug!("the events of replicas cannot be read now");
        };
        let own = inet(self.node.identity.broadcast.ip());
        for (_, row) in found {
            let value = |name: &str| system_rows::value(table, &row, name);
            let (Some(source), Some(Some(id))) = (value("source"), row.clustering.iter().next()) else { continue };
            if *source == own || !self.told.lock().unwrap_or_else(PoisonError::into_inner).insert(id.clone()) {
                continue;
            }
            let activity = system_rows::text(table, &row, "activity").unwrap_or_default();
            let text = format!("{}: {activity}", shown(source));
            command.note(Event {
                at_millis: self.node.env.clock.now_micros() / 1000,
                kind: EventKind::Notification,
                text,
            });
        }
    }

    /// The row of `system_traces.sessions`.
    fn session_row(&self) -> Option<rows::Mutation> {
        let node = &self.node;
        let schema = node.schema();
        let sessions = schema.table("system_traces", "sessions")?;
        let (timestamp, broadcast) = (node.clock.next_micros(), node.identity.broadcast);
        let text = |text: &str| Bytes::copy_from_slice(text.as_bytes());
        let parameters: Vec<_> = self.parameters.iter().map(|(name, value)| (text(name), text(value))).collect();
        let row = SystemRow::new(sessions, &[&self.session], &[], timestamp, Some(self.events.expiry()))
            .set("command", text("REPAIR"))
            .set("coordinator", inet(broadcast.ip()))
            .set("coordinator_port", i32::from(broadcast.port()).to_be_bytes().to_vec())
            .set("duration", self.events.elapsed().to_be_bytes().to_vec())
            .set_elements("parameters", parameters)
            .set("request", text("repair"))
            .set("started_at", self.started_at.to_be_bytes().to_vec());
        Some(row.finish())
    }
}

/// An address from its bytes, as Java prints it.
fn shown(source: &[u8]) -> String {
    let address =
        <[u8; 4]>::try_from(source).map(IpAddr::from).or_else(|_| <[u8; 16]>::try_from(source).map(IpAddr::from));
    address.map(|address| format!("/{address}")).unwrap_or_default()
}

impl Command {
    /// A line of the trace, which the operator reads too. Nothing where the repair is not traced.
    pub(super) fn trace(&self, node: &Node, line: impl FnOnce() -> String) {
        let Some(sink) = self.traced() else { return };
        let text = line();
        sink.event(text.clone());
        self.note(Event { at_millis: node.env.clock.now_micros() / 1000, kind: EventKind::Notification, text });
    }
}

/// A line of this node in a session that another node traces; it is on its way to its replicas when
/// this returns.
pub(super) async fn tell(node: &Arc<Node>, session: Option<[u8; 16]>, line: String) {
    if let Some(session) = session {
        let share = TracedEvents::of_repair(node, session);
        share.event(line);
        share.finish(Vec::new()).await;
    }
}
