//! `ExportTraceServiceRequest` of OTLP in its JSON form, where ids are digits and 64-bit numbers
//! are strings.

use cluster::Node;
use cluster::spans::{Span, hex};
use serde_json::{Value, json};

/// SPAN_KIND_SERVER
const SERVER: u8 = 2;
/// STATUS_CODE_ERROR
const ERROR: u8 = 2;

/// The attributes that all spans of one process share.
pub(super) struct Resource(Value);

impl Resource {
    /// The attributes of a node, which do not change while the node runs.
    pub fn of(node: &Node) -> Self {
        let identity = &node.identity;
        Self(json!({
            "attributes": attributes(&[
                ("service.name", "helenus".to_owned()),
                ("service.namespace", identity.cluster_name.clone()),
                ("service.instance.id", hex(&identity.host_id)),
                ("service.version", env!("CARGO_PKG_VERSION").to_owned()),
                ("server.address", identity.broadcast.ip().to_string()),
            ]),
        }))
    }
}

/// The message of some spans.
pub(super) fn message(resource: &Resource, spans: &[Span]) -> String {
    let scope = json!({ "name": "helenus" });
    let spans: Vec<Value> = spans.iter().map(span).collect();
    json!({ "resourceSpans": [{ "resource": resource.0, "scopeSpans": [{ "scope": scope, "spans": spans }] }] })
        .to_string()
}

fn span(span: &Span) -> Value {
    let at = |micros: u32| nanos(span.started_micros.saturating_add(i64::from(micros)));
    let event = |(micros, text): &(u32, String)| json!({ "timeUnixNano": at(*micros), "name": text });
    json!({
        "traceId": hex(&span.context.trace),
        "spanId": hex(&span.context.span),
        "parentSpanId": span.parent.map_or(String::new(), |parent| hex(&parent)),
        "name": span.name,
        "kind": SERVER,
        "startTimeUnixNano": at(0),
        "endTimeUnixNano": at(span.duration_micros),
        "attributes": attributes(&span.attributes),
        "events": span.events.iter().map(event).collect::<Vec<_>>(),
        "droppedEventsCount": span.dropped_events,
        "status": span.error.as_ref().map_or_else(|| json!({}), |why| json!({ "code": ERROR, "message": why })),
    })
}

fn nanos(micros: i64) -> String {
    micros.saturating_mul(1000).to_string()
}

fn attributes(given: &[(&'static str, String)]) -> Vec<Value> {
    given.iter().map(|(key, value)| json!({ "key": key, "value": { "stringValue": value } })).collect()
}
