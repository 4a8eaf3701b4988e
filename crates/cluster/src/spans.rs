//! Spans of requests as values, for a collector of OpenTelemetry: the share of a node in a request.
//!
//! Knows no node: shares begin and end in [`crate::traces`], and go to whoever implements
//! [`SpanExporter`].

use std::fmt::Write;

/// Events of one span; further ones are counted only (the limit of OpenTelemetry's libraries).
pub const EVENTS_MAX: usize = 128;
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
    /// text has another form, and is ignored as W3C demands.
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
    /// When the span began, microseconds since 1970.
    pub started_micros: i64,
    /// How long the span took, microseconds.
    pub duration_micros: u32,
    /// Lines of the trace, each with the microseconds from the begin of the span.
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
}
