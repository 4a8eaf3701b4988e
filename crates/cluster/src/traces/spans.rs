//! Spans of requests, for a collector of OpenTelemetry: the share of each node, and how the shares
//! of several nodes come together.
//!
//! A request is a trace of 16 bytes, the share of a node a span of 8 bytes. Spans of replicas are
//! beneath the coordinator's, which a message names in W3C's form (`traceparent`) inside the map of
//! custom parameters (ParamType CUSTOM_MAP); Cassandra's nodes do not look at it. A message that
//! names only a tracing session, as those of Cassandra do, makes a span in the trace with the
//! session's id.

use std::fmt::Write;
use std::sync::Arc;

use bytes::Bytes;
use internode::{Header, Parameter};
use stdx::Cursor;
use stdx::put::{put_utf, put_uvint, put_vbytes};

use crate::node::Node;

/// Events of one span; further ones are counted only (the limit of OpenTelemetry's libraries).
pub const EVENTS_MAX: usize = 128;
/// Entries of a map of custom parameters that are looked at.
const ENTRIES_MAX: u64 = 16;
/// ParamType of the map of custom parameters.
const CUSTOM_MAP: i32 = 14;
/// The name of W3C's header.
pub const TRACEPARENT: &str = "traceparent";

/// The place of a span: its trace and its own id.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SpanContext {
    /// The trace.
    pub trace: [u8; 16],
    /// The span.
    pub span: [u8; 8],
}

impl SpanContext {
    /// W3C's text form of a span that is exported.
    pub fn traceparent(&self) -> String {
        format!("00-{}-{}-01", hex(&self.trace), hex(&self.span))
    }

    /// Reads W3C's text form; the second part tells whether the sender exports its span. None: the
    /// text is none, and W3C wants it passed over.
    pub fn parse(text: &str) -> Option<(Self, bool)> {
        let mut parts = text.split('-');
        let (version, trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let [version] = bytes_of::<1>(version)?;
        let [flags] = bytes_of::<1>(flags)?;
        // later versions may have more parts
        if version == 0xFF || (version == 0 && parts.next().is_some()) {
            return None;
        }
        let context = Self { trace: bytes_of(trace)?, span: bytes_of(span)? };
        (context.trace != [0; 16] && context.span != [0; 8]).then_some((context, flags & 1 == 1))
    }
}

/// Digits of bytes.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a String takes all");
        text
    })
}

/// The bytes of digits; W3C allows small letters only.
fn bytes_of<const N: usize>(text: &str) -> Option<[u8; N]> {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if text.len() != 2 * N || !text.bytes().all(is_digit) {
        return None;
    }
    let mut bytes = [0; N];
    for (place, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * place..2 * place + 2)?, 16).ok()?;
    }
    Some(bytes)
}

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

/// A span that has ended.
#[derive(Clone, PartialEq, Debug)]
pub struct Span {
    /// The trace and the id of this span.
    pub context: SpanContext,
    /// The span that this one is beneath; None: it is the first of its trace.
    pub parent: Option<[u8; 8]>,
    /// The request, or the verb of the message.
    pub name: String,
    /// Names of OpenTelemetry's conventions, with their values.
    pub attributes: Vec<(&'static str, String)>,
    /// When it began, microseconds since 1970.
    pub started_micros: i64,
    /// How long it took, microseconds.
    pub duration_micros: u32,
    /// What was done, each with the microseconds since the span began.
    pub events: Vec<(u32, String)>,
    /// Events beyond [`EVENTS_MAX`].
    pub dropped_events: usize,
    /// Why the request failed; None: it did not.
    pub error: Option<String>,
}

/// A receiver of spans that have ended. Workers call it, so an implementation must not wait.
pub trait SpanExporter: Send + Sync {
    /// Takes a span that has ended.
    fn export(&self, span: Span);
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
    fn the_form_of_w3c() {
        // from the recommendation
        let text = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let (context, is_exported) = SpanContext::parse(text).expect("a context");
        assert!(is_exported && context.span == [0x00, 0xf0, 0x67, 0xaa, 0x0b, 0xa9, 0x02, 0xb7]);
        assert_eq!(context.traceparent(), text);
        let (_, is_exported) = SpanContext::parse(&text.replace("-01", "-00")).expect("a context");
        assert!(!is_exported);
        assert!(SpanContext::parse(&text.replace("00-4b", "01-4b").replace("-01", "-01-more")).is_some(), "later");
        for broken in [
            "",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            &text.replace("00-4b", "ff-4b"),
            &text.to_uppercase(),
            &text.replace("-01", "-01-more"),
            &text.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32)),
            &text.replace("00f067aa0ba902b7", &"0".repeat(16)),
            &text.replace("4bf9", "4b"),
        ] {
            assert_eq!(SpanContext::parse(broken), None, "{broken}");
        }
    }

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
