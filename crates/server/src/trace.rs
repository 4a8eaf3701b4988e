//! Tracing of requests: what was done and when, kept in `system_traces` for `trace_type_query_ttl`.
//! Texts of statements come here without passwords.
//!
//! Agrees with `org.apache.cassandra.tracing.{Tracing, TraceKeyspace}`: drivers and cqlsh read the
//! session until it has a duration.

use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use cluster::Node;
use cluster::identity::inet;
use cluster::operations;
use cluster::system_rows::SystemRow;
use env::Instant;
use rows::Mutation;
use rows::command::TraceSink;

/// Events of one session; further ones are left out.
const EVENTS_MAX: usize = 2_000;

/// A traced request.
pub struct TraceSession {
    /// The session's id, a time UUID.
    pub id: [u8; 16],
    node: Arc<Node>,
    begun: Instant,
    started_at: i64,
    ttl: u32,
    events: Mutex<Vec<Event>>,
}

struct Event {
    id: [u8; 16],
    activity: String,
    elapsed: i32,
    thread: String,
}

/// The request as the session's row shows it.
pub struct Subject {
    /// As Cassandra names it: `Execute CQL3 query`.
    pub request: &'static str,
    /// Address of the client.
    pub client: IpAddr,
    /// `query` without passwords, `consistency_level`, `page_size` and the like.
    pub parameters: Vec<(String, String)>,
}

impl TraceSession {
    /// Begins a session, to be kept for `ttl` seconds.
    pub fn begin(node: &Arc<Node>, begun: Instant, ttl: u32) -> Arc<Self> {
        let (id, started_at) = (node.uuids.next(), node.env.clock.now_micros());
        Arc::new(Self { id, node: Arc::clone(node), begun, started_at, ttl, events: Mutex::default() })
    }

    fn elapsed(&self) -> i32 {
        i32::try_from(self.node.env.elapsed(self.begun).as_micros()).unwrap_or(i32::MAX)
    }

    /// Ends the session: its rows are in memtables when this returns.
    pub fn finish(&self, subject: &Subject) {
        let mutations = self.mutations(subject);
        if let Err(error) = operations::traces::keep(&self.node, &mutations) {
            tracing::warn!(%error, "a trace cannot be kept");
        }
    }

    fn mutations(&self, subject: &Subject) -> Vec<Mutation> {
        let schema = self.node.schema();
        let (Some(sessions), Some(events)) =
            (schema.table("system_traces", "sessions"), schema.table("system_traces", "events"))
        else {
            return Vec::new();
        };
        let expiry = Some((self.ttl, self.node.env.clock.now_seconds()));
        let timestamp = self.node.clock.next_micros();
        let broadcast = self.node.identity.broadcast;
        let port = i32::from(broadcast.port()).to_be_bytes().to_vec();
        let text = |text: &str| Bytes::copy_from_slice(text.as_bytes());
        let parameters = subject.parameters.iter().map(|(name, value)| (text(name), text(value))).collect::<Vec<_>>();
        let session = SystemRow::new(sessions, &[&self.id], &[], timestamp, expiry)
            .set("client", inet(subject.client))
            .set("command", text("QUERY"))
            .set("coordinator", inet(broadcast.ip()))
            .set("coordinator_port", port.clone())
            .set("duration", self.elapsed().to_be_bytes().to_vec())
            .set_elements("parameters", parameters)
            .set("request", text(subject.request))
            .set("started_at", (self.started_at / 1000).to_be_bytes().to_vec())
            .finish();
        let mut mutations = Vec::new();
        for event in self.events.lock().expect("nothing panics inside").iter() {
            let row = SystemRow::new(events, &[&self.id], &[&event.id], timestamp, expiry)
                .set("activity", text(&event.activity))
                .set("source", inet(broadcast.ip()))
                .set("source_port", port.clone())
                .set("source_elapsed", event.elapsed.to_be_bytes().to_vec())
                .set("thread", text(&event.thread));
            mutations.push(row.finish());
        }
        mutations.push(session);
        mutations
    }
}

impl TraceSink for TraceSession {
    fn event(&self, activity: String) {
        let mut events = self.events.lock().expect("nothing panics inside");
        if events.len() < EVENTS_MAX {
            let (id, elapsed) = (self.node.uuids.next(), self.elapsed());
            let thread = std::thread::current().name().unwrap_or("").to_owned();
            events.push(Event { id, activity, elapsed, thread });
        }
    }
}
