//! The place of a request's span in the messages between nodes.
//!
//! A request is a trace of 16 bytes, the share of a node a span of 8 bytes ([`crate::spans`]).
//! Spans of replicas are beneath the coordinator's, which a message names in W3C's form
//! (`traceparent`) inside the map of custom parameters (ParamType CUSTOM_MAP); Cassandra's nodes do
//! not look at that map. A message that names only a tracing session, as those of Cassandra do,
//! makes a span in the trace with the session's id.

use std::sync::Arc;

use bytes::Bytes;
use internode::{Header, Parameter};
use stdx::Cursor;
use stdx::put::{put_utf, put_uvint, put_vbytes};

use crate::node::Node;
use crate::spans::{SpanContext, SpanExporter, TRACEPARENT};

/// Entries of a map of custom parameters that are looked at.
const ENTRIES_MAX: u64 = 16;
/// ParamType of the map of custom parameters.
const CUSTOM_MAP: i32 = 14;

/// A span that has begun.
pub struct OpenSpan {
    /// The trace and the id of this span.
    pub context: SpanContext,
    /// The span that this one is beneath; None: it is the first of its trace.
    pub parent: Option<[u8; 8]>,
}

impl OpenSpan {
    /// Begins a span beneath another, or the first one of a trace.
    pub fn begin(node: &Node, trace: [u8; 16], parent: Option<[u8; 8]>) -> Self {
        // zero is no span
        let span = node.env.random.next_u64().max(1).to_be_bytes();
        Self { context: SpanContext { trace, span }, parent }
    }

    /// The span of a node that is sent a message. None: no spans are exported, or the message
    /// belongs to no trace.
    pub(super) fn of_message(node: &Node, header: &Header, session: Option<[u8; 16]>) -> Option<Self> {
        node.spans.get()?;
        let custom = header.parameters.iter().find_map(|parameter| match parameter {
            Parameter::Other(CUSTOM_MAP, map) => traceparent_of(map),
            _ => None,
        });
        match (custom.as_deref().and_then(SpanContext::parse), session) {
            (Some((above, _)), _) => Some(Self::begin(node, above.trace, Some(above.span))),
            (None, Some(session)) => Some(Self::begin(node, session, None)),
            (None, None) => None,
        }
    }
}

impl Node {
    /// Makes spans from now on, and gives them to an exporter. Called once.
    pub fn set_span_exporter(&self, exporter: Arc<dyn SpanExporter>) {
        assert!(self.spans.set(exporter).is_ok(), "a node has one exporter of spans");
    }
}

/// The parameter of a message that names the span above.
pub(super) fn parameter(traceparent: &str) -> Parameter {
    let mut map = Vec::with_capacity(2 * TRACEPARENT.len() + traceparent.len());
    put_uvint(&mut map, 1);
    put_utf(&mut map, TRACEPARENT);
    put_vbytes(&mut map, traceparent.as_bytes());
    Parameter::Other(CUSTOM_MAP, Bytes::from(map))
}

/// The span above, of a map of custom parameters. None: the map does not name it, or is damaged.
fn traceparent_of(map: &[u8]) -> Option<String> {
    let mut cursor = Cursor::new(map);
    let entries = cursor.uvint().ok()?.min(ENTRIES_MAX);
    for _ in 0..entries {
        let (name, value) = (cursor.utf().ok()?, cursor.vbytes().ok()?);
        if name == TRACEPARENT {
            return String::from_utf8(value.to_vec()).ok();
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_map_of_custom_parameters() {
        let Parameter::Other(CUSTOM_MAP, map) = parameter("x") else { panic!("a map") };
        // CustomParamsSerializer: a count, a name behind two bytes of length, a value behind a vint
        assert_eq!(map, b"\x01\x00\x0btraceparent\x01x"[..]);
        assert_eq!(traceparent_of(&map).as_deref(), Some("x"));
        assert_eq!(traceparent_of(b"\x02\x00\x01a\x01b\x00\x0btraceparent\x01y").as_deref(), Some("y"));
        for cut in 0..map.len() {
            assert_eq!(traceparent_of(&map[..cut]), None);
        }
        assert_eq!(traceparent_of(b"\xff\xff\xff\xff\xff\xff\xff\xff\xff"), None);
    }
}
