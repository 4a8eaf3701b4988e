//! Tracing of requests: what was done and when, kept in `system_traces` for `trace_type_query_ttl`,
//! or exported as a span ([`crate::otlp`]), or both. Texts of statements come here without
//! passwords.
//!
//! Agrees with `org.apache.cassandra.tracing.{Tracing, TraceKeyspace}`: drivers and cqlsh read the
//! session until it has a duration.

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use cluster::Node;
use cluster::identity::inet;
use cluster::system_rows::SystemRow;
use cluster::traces::TracedEvents;
use cluster::traces::spans::OpenSpan;
use env::Instant;
use rows::Mutation;
use rows::command::TraceSink;

/// A traced request.
pub struct TraceSession {
    /// The session's id, a time UUID; None: the request is exported only.
    pub id: Option<[u8; 16]>,
    started_at: i64,
    events: TracedEvents,
}

/// The request as the session's row shows it.
pub struct TracedRequest {
    /// As Cassandra names it: `Execute CQL3 query`.
    pub request: &'static str,
    /// Address of the client.
    pub client: IpAddr,
    /// `query` without passwords, `consistency_level`, `page_size` and the like.
    pub parameters: Vec<(String, String)>,
}

impl TraceSession {
    /// Begins a session, a span, or both.
    pub fn begin(node: &Arc<Node>, begun: Instant, id: Option<[u8; 16]>, span: Option<OpenSpan>) -> Arc<Self> {
        let started_at = node.env.clock.now_micros();
        Arc::new(Self { id, started_at, events: TracedEvents::with_span(node, id, span, begun) })
    }

    /// Ends the session. Rows of which this node is a replica are in memtables when this returns.
    /// `error` names the reason of a request that failed; None: the request did not fail.
    pub async fn finish(&self, traced: &TracedRequest, error: Option<String>) {
        self.events.end_span(traced.request, traced.attributes(), error);
        self.events.finish(self.session_row(traced).into_iter().collect()).await;
    }

    fn session_row(&self, traced: &TracedRequest) -> Option<Mutation> {
        let id = self.id?;
        let node = &self.events.node;
        let schema = node.schema();
        let sessions = schema.table("system_traces", "sessions")?;
        let timestamp = node.clock.next_micros();
        let broadcast = node.identity.broadcast;
        let text = |text: &str| Bytes::copy_from_slice(text.as_bytes());
        let parameters = traced.parameters.iter().map(|(name, value)| (text(name), text(value))).collect::<Vec<_>>();
        let row = SystemRow::new(sessions, &[&id], &[], timestamp, Some(self.events.expiry()))
            .set("client", inet(traced.client))
            .set("command", text("QUERY"))
            .set("coordinator", inet(broadcast.ip()))
            .set("coordinator_port", i32::from(broadcast.port()).to_be_bytes().to_vec())
            .set("duration", self.events.elapsed().to_be_bytes().to_vec())
            .set_elements("parameters", parameters)
            .set("request", text(traced.request))
            .set("started_at", (self.started_at / 1000).to_be_bytes().to_vec());
        Some(row.finish())
    }
}

impl TracedRequest {
    /// The attributes of the request's span, by the names of OpenTelemetry's conventions for
    /// databases. Bound values stay in the node.
    fn attributes(&self) -> Vec<(&'static str, String)> {
        let of = |(name, value): &(String, String)| {
            let attribute = match name.as_str() {
                "query" => "db.query.text",
                "consistency_level" => "cassandra.consistency.level",
                "page_size" => "cassandra.page.size",
                _ => return None,
            };
            Some((attribute, value.clone()))
        };
        let fixed = [("db.system.name", "cassandra".to_owned()), ("client.address", self.client.to_string())];
        fixed.into_iter().chain(self.parameters.iter().filter_map(of)).collect()
    }
}

impl TraceSink for TraceSession {
    fn event(&self, activity: String) {
        self.events.event(activity);
    }

    fn session(&self) -> Option<[u8; 16]> {
        self.id
    }

    fn traceparent(&self) -> Option<String> {
        self.events.traceparent()
    }
}
