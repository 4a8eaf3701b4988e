//! The events of a tracing session on this node: of a request that this node coordinates, or of a
//! message that another node has sent.
//!
//! A message of a traced request names the session (TRACE_SESSION). Each node that has a share in
//! the session writes its own events, with itself as their source, at level ANY: they come to the
//! replicas of the session's rows. Agrees with `org.apache.cassandra.tracing.{Tracing,
//! TraceStateImpl,TraceKeyspace}`.
//!
//! Where spans are exported ([`spans`]) a share is a span too, and may be that alone: then nothing
//! is written into `system_traces`.

pub mod spans;

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use env::Instant;
use internode::{Header, Parameter};
use rows::Mutation;
use rows::command::TraceSink;
use types::Consistency;

use crate::identity::inet;
use crate::node::Node;
use crate::spans::Span;
use crate::system_rows::SystemRow;
use spans::OpenSpan;

/// Events of one session on one node; further ones are left out.
const EVENTS_MAX: usize = 2_000;

/// `trace_type_query_ttl` of a stock configuration, seconds.
pub(crate) const TTL_DEFAULT: u32 = 86_400;

/// TRACE_TYPE of the request of a client.
const QUERY: u8 = 1;

/// A share in a tracing session, in an exported trace, or in both.
pub struct TracedEvents {
    /// The session's id, a time UUID; None: no rows are written.
    session: Option<[u8; 16]>,
    /// The span of this share; None: none is exported.
    span: Option<OpenSpan>,
    /// TTL of the session's rows, seconds; it depends on whether a request of a client or a repair
    /// is traced.
    ttl: u32,
    /// This node.
    pub node: Arc<Node>,
    begun: Instant,
    events: Mutex<Vec<Event>>,
}

struct Event {
    id: [u8; 16],
    activity: String,
    /// Microseconds since the share began.
    elapsed: i32,
    thread: String,
}

impl TracedEvents {
    /// A share that begins at a time.
    pub fn new(node: &Arc<Node>, session: [u8; 16], begun: Instant) -> Self {
        Self::with_span(node, Some(session), None, begun)
    }

    /// As [`TracedEvents::new`], with a span; without a session no rows are written.
    pub fn with_span(node: &Arc<Node>, session: Option<[u8; 16]>, span: Option<OpenSpan>, begun: Instant) -> Self {
        let ttl = node.trace_ttl.load(Ordering::Relaxed);
        Self { session, span, ttl, node: Arc::clone(node), begun, events: Mutex::default() }
    }

    /// A share in the session of a repair, which begins now.
    pub(crate) fn of_repair(node: &Arc<Node>, session: [u8; 16]) -> Self {
        let ttl = node.repairs.permits.load().settings.trace_ttl;
        Self { ttl, ..Self::new(node, session, node.env.now()) }
    }

    /// The share of a node that is sent a message. None: the message is not traced.
    pub(crate) fn of_message(node: &Arc<Node>, header: &Header) -> Option<Self> {
        if header.parameters.is_empty() {
            return None;
        }
        let session = header.parameters.iter().find_map(|parameter| match parameter {
            Parameter::TraceSession(session) => Some(*session),
            _ => None,
        });
        let span = OpenSpan::of_message(node, header, session);
        if let Some(session) = session.filter(|_| header.parameters.contains(&Parameter::TraceType(REPAIR))) {
            return Some(Self { span, ..Self::of_repair(node, session) });
        }
        let is_traced = session.is_some() || span.is_some();
        is_traced.then(|| Self::with_span(node, session, span, node.env.now()))
    }

    /// Exports the span of this share, if it has one: a share is one span, so this is called once,
    /// and before the share is finished. `error` says why the request failed.
    pub fn end_span(&self, name: &str, attributes: Vec<(&'static str, String)>, error: Option<String>) {
        let (Some(span), Some(exporter)) = (&self.span, self.node.spans.get()) else { return };
        let events = self.events.lock().expect("nothing panics inside");
        let told = events.iter().take(crate::spans::EVENTS_MAX);
        exporter.export(Span {
            context: span.context,
            parent: span.parent,
            name: name.to_owned(),
            attributes,
            started_micros: self.node.env.clock.now_micros() - i64::from(self.elapsed()),
            duration_micros: self.elapsed().unsigned_abs(),
            events: told.map(|event| (event.elapsed.unsigned_abs(), event.activity.clone())).collect(),
            dropped_events: events.len().saturating_sub(crate::spans::EVENTS_MAX),
            error,
        });
    }

    /// Microseconds since this share of the session began.
    pub fn elapsed(&self) -> i32 {
        i32::try_from(self.node.env.elapsed(self.begun).as_micros()).unwrap_or(i32::MAX)
    }

    /// TTL of the session's rows, and the present second.
    pub fn expiry(&self) -> (u32, u32) {
        (self.ttl, self.node.env.clock.now_seconds())
    }

    /// The events as one mutation. None: there are none.
    fn mutation(&self) -> Option<Mutation> {
        let session = self.session?;
        let schema = self.node.schema();
        let table = schema.table("system_traces", "events")?;
        let timestamp = self.node.clock.next_micros();
        let broadcast = self.node.identity.broadcast;
        let events = std::mem::take(&mut *self.events.lock().expect("nothing panics inside"));
        let text = |text: &str| Bytes::copy_from_slice(text.as_bytes());
        let rows = events.iter().map(|event| {
            SystemRow::new(table, &[&session], &[&event.id], timestamp, Some(self.expiry()))
                .set("activity", text(&event.activity))
                .set("source", inet(broadcast.ip()))
                .set("source_port", i32::from(broadcast.port()).to_be_bytes().to_vec())
                .set("source_elapsed", event.elapsed.to_be_bytes().to_vec())
                .set("thread", text(&event.thread))
                .finish()
        });
        rows.reduce(|mut all, one| {
            let rows = one.updates.into_iter().flat_map(|update| update.rows);
            rows.for_each(|row| all.updates[0].add_row(row));
            all
        })
    }

    /// Ends the share: its events, and `rows` beside them, are on their way to their replicas when
    /// this returns, and in the memtables of this node if it is one of them. A crash may lose
    /// them.
    pub async fn finish(&self, rows: Vec<Mutation>) {
        let mutations: Vec<Mutation> = self.mutation().into_iter().chain(rows).collect();
        if mutations.is_empty() {
            return;
        }
        if let Err(error) = self.node.write(mutations, Consistency::Any).await {
            tracing::warn!(?error, "a trace cannot be kept");
        }
    }
}

impl TraceSink for TracedEvents {
    fn event(&self, activity: String) {
        let mut events = self.events.lock().expect("nothing panics inside");
        if events.len() < EVENTS_MAX {
            let (id, elapsed) = (self.node.uuids.next(), self.elapsed());
            let thread = std::thread::current().name().unwrap_or("").to_owned();
            events.push(Event { id, activity, elapsed, thread });
        }
    }

    fn session(&self) -> Option<[u8; 16]> {
        self.session
    }

    fn traceparent(&self) -> Option<String> {
        self.span.as_ref().map(|span| span.context.traceparent())
    }
}

/// Traces what this node does with a mutation of which it is a replica.
pub fn describe_write(node: &Node, trace: &dyn TraceSink, mutation: &Mutation) {
    trace.event("Appending to commitlog".to_owned());
    let (shard, _) = node.shard_of(mutation.key.token);
    for update in &mutation.updates {
        trace.event(format!("Adding to {} memtable of shard {shard}", update.table.name));
    }
}

/// TRACE_TYPE of a repair.
const REPAIR: u8 = 2;

/// The parameters of a message of a traced repair.
pub(crate) fn parameters_of_repair(trace: Option<&dyn TraceSink>) -> Vec<Parameter> {
    match trace.and_then(TraceSink::session) {
        Some(session) => vec![Parameter::TraceSession(session), Parameter::TraceType(REPAIR)],
        None => Vec::new(),
    }
}

/// The parameters of a message of a traced request.
pub(crate) fn parameters(trace: Option<&dyn TraceSink>) -> Vec<Parameter> {
    let Some(trace) = trace else { return Vec::new() };
    let session = trace.session().map(|session| [Parameter::TraceSession(session), Parameter::TraceType(QUERY)]);
    let span = trace.traceparent().map(|text| spans::parameter(&text));
    session.into_iter().flatten().chain(span).collect()
}

#[cfg(test)]
mod tests;
