//! Spans of requests to a collector of OpenTelemetry: OTLP over HTTP, as JSON.
//!
//! [`Otlp::sample`] chooses the requests: those of which a client's `traceparent`, in the custom
//! payload, says so, those that are traced in `system_traces`, and of the rest the share
//! `otlp_sample_ratio`. Spans that have ended wait in a queue for a task of its own, which posts
//! them to `otlp_endpoint`/v1/traces every [`PERIOD`], or as soon as there are [`BATCH_MAX`]. Spans
//! that find the queue full, and those whose batch the collector does not take, are lost and
//! counted. A node that stops sends those that wait ([`Otlp::flush`]), and waits [`FLUSH_MAX`] for
//! it at most. Without `otlp_endpoint` nothing of this file runs.

mod json;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

use cluster::Node;
use cluster::spans::{Span, SpanContext, SpanExporter, TRACEPARENT};
use cluster::traces::spans::OpenSpan;
use config::{Pem, Spans};
use env::{Env, Next, Wake};
use metrics::Counter;
use protocol::RequestEnvelope;
use tokio::sync::oneshot;
use ureq::Agent;
use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};

use crate::client_encryption;

/// Spans of one message to the collector.
const BATCH_MAX: usize = 512;
/// Spans that may wait. A further one is lost, and counted.
const QUEUE_MAX: usize = 2_048;
/// Bytes of the texts of spans that may wait. A further span is lost, and counted.
const QUEUE_SIZE_MAX: usize = 8 << 20;
/// Time between two messages while spans are few.
const PERIOD: Duration = Duration::from_secs(5);
/// Time after which a collector that has not answered counts as not having taken the spans.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Longest time that a node that stops waits for the collector to take the remaining spans.
const FLUSH_MAX: Duration = Duration::from_secs(3);

/// The way of spans to the collector.
pub struct Otlp {
    /// `otlp_endpoint` with the path of traces.
    url: String,
    /// `otlp_sample_ratio`, 0 to 1.
    ratio: f64,
    agent: Agent,
    resource: json::Resource,
    queue: Mutex<Queue>,
    wake: OnceLock<Wake>,
    /// Completed as soon as the queue is empty; None: the node is not about to stop.
    on_empty: Mutex<Option<oneshot::Sender<()>>>,
    /// Whether the last message was refused: a collector that is away is told of once.
    is_refused: AtomicBool,
    /// The spans so far, by their ends.
    pub counts: SpanCounts,
}

/// Spans by what has become of them.
#[derive(Default)]
pub struct SpanCounts {
    /// Spans that the collector has taken.
    pub sent: Counter,
    /// Spans lost because the queue was full.
    pub dropped: Counter,
    /// Spans lost because the collector refused them or did not answer.
    pub failed: Counter,
}

#[derive(Default)]
struct Queue {
    spans: VecDeque<Span>,
    /// Bytes of the texts of the queued spans.
    size: usize,
}

impl Otlp {
    /// Exports the spans of a node until the node ends. Err: `otlp_certificate` cannot be used.
    pub(crate) fn start(node: &Arc<Node>, spans: &Spans) -> Result<Arc<Self>, String> {
        let roots = spans.certificate.as_ref().map(|path| roots(&node.env, path)).transpose()?;
        let tls = TlsConfig::builder()
            .root_certs(roots.unwrap_or(RootCerts::PlatformVerifier))
            .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .build();
        let agent = Agent::config_builder().timeout_global(Some(TIMEOUT)).http_status_as_error(false).tls_config(tls);
        let otlp = Arc::new(Self {
            url: format!("{}/v1/traces", spans.endpoint.trim_end_matches('/')),
            ratio: spans.ratio,
            agent: agent.build().into(),
            resource: json::Resource::of(node),
            queue: Mutex::default(),
            wake: OnceLock::new(),
            on_empty: Mutex::default(),
            is_refused: AtomicBool::new(false),
            counts: SpanCounts::default(),
        });
        let weak: Weak<Self> = Arc::downgrade(&otlp);
        let step = move || weak.upgrade().map_or(Next::Done, |otlp| otlp.step());
        let wake = node.env.tasks.background("otlp", Box::new(step));
        wake.wake();
        let _ = otlp.wake.set(wake);
        node.set_span_exporter(Arc::clone(&otlp) as Arc<dyn SpanExporter>);
        Ok(otlp)
    }

    /// Sends the spans that wait, for a node that stops. A collector that needs longer than
    /// [`FLUSH_MAX`] does not get the rest.
    pub(crate) async fn flush(&self, env: &Env) {
        let (tell, told) = oneshot::channel();
        *self.on_empty.lock().unwrap_or_else(PoisonError::into_inner) = Some(tell);
        if let Some(wake) = self.wake.get() {
            wake.wake();
        }
        if env.timeout(FLUSH_MAX, told).await.is_err() {
            let url = &self.url;
            tracing::warn!(url, "the collector is slow to take spans while the node stops: the last ones are lost");
        }
    }

    /// Begins the span of a request. `session`: that of `system_traces`, if the request is traced.
    /// None: the request is not exported.
    pub(crate) fn sample(
        &self,
        node: &Node,
        envelope: &RequestEnvelope,
        session: Option<[u8; 16]>,
    ) -> Option<OpenSpan> {
        if let Some((above, is_exported)) = traceparent(envelope) {
            let is_wanted = is_exported || session.is_some();
            return is_wanted.then(|| OpenSpan::begin(node, above.trace, Some(above.span)));
        }
        let trace = match session {
            Some(session) => session,
            None if (node.env.random.next_u64() as f64) < self.ratio * u64::MAX as f64 => {
                let mut trace = [0; 16];
                node.env.random.fill(&mut trace);
                trace
            }
            None => return None,
        };
        Some(OpenSpan::begin(node, trace, None))
    }

    fn step(&self) -> Next {
        let batch: Vec<Span> = {
            let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
            let count = queue.spans.len().min(BATCH_MAX);
            let batch: Vec<Span> = queue.spans.drain(..count).collect();
            queue.size -= batch.iter().map(size).sum::<usize>();
            batch
        };
        let count = batch.len();
        if count == 0 {
            if let Some(tell) = self.on_empty.lock().unwrap_or_else(PoisonError::into_inner).take() {
                // the receiver is gone where the stop has not waited so long
                let _ = tell.send(());
            }
            return Next::After(PERIOD);
        }
        match self.post(&json::message(&self.resource, &batch)) {
            Ok(()) => {
                self.counts.sent.add(count as u64);
                if self.is_refused.swap(false, Ordering::Relaxed) {
                    tracing::info!(url = self.url, "the collector takes spans again");
                }
            }
            Err(error) => {
                self.counts.failed.add(count as u64);
                if !self.is_refused.swap(true, Ordering::Relaxed) {
                    tracing::warn!(url = self.url, error, "the collector does not take spans, which are lost");
                }
            }
        }
        let is_stopping = self.on_empty.lock().unwrap_or_else(PoisonError::into_inner).is_some();
        if count == BATCH_MAX || is_stopping { Next::Again } else { Next::After(PERIOD) }
    }

    fn post(&self, message: &str) -> Result<(), String> {
        let request = self.agent.post(&self.url).header("Content-Type", "application/json");
        let answer = request.send(message).map_err(|error| error.to_string())?;
        let status = answer.status();
        if status.is_success() { Ok(()) } else { Err(format!("HTTP status {status}")) }
    }
}

impl SpanExporter for Otlp {
    fn export(&self, span: Span) {
        let size = size(&span);
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        if queue.spans.len() >= QUEUE_MAX || queue.size + size > QUEUE_SIZE_MAX {
            drop(queue);
            return self.counts.dropped.add(1);
        }
        queue.spans.push_back(span);
        queue.size += size;
        let is_batch = queue.spans.len() == BATCH_MAX;
        drop(queue);
        if is_batch && let Some(wake) = self.wake.get() {
            wake.wake();
        }
    }
}

/// Bytes of a span's texts.
fn size(span: &Span) -> usize {
    let attributes = span.attributes.iter().map(|(_, value)| value.len());
    let events = span.events.iter().map(|(_, text)| text.len());
    let error = span.error.as_ref().map_or(0, String::len);
    size_of::<Span>() + span.name.len() + error + attributes.chain(events).sum::<usize>()
}

/// The certificates of a PEM file, one of which has signed that of the collector.
fn roots(env: &Env, path: &str) -> Result<RootCerts, String> {
    let behind_key = |why: String| format!("otlp_certificate: {why}");
    let text = client_encryption::text(env, &Pem::File(path.to_owned())).map_err(behind_key)?;
    let mut certificates = Vec::new();
    for item in parse_pem(text.as_bytes()) {
        if let PemItem::Certificate(certificate) = item.map_err(|error| behind_key(format!("{path}: {error}")))? {
            certificates.push(certificate);
        }
    }
    match certificates.is_empty() {
        true => Err(behind_key(format!("{path} has no certificate"))),
        false => Ok(RootCerts::new_with_certs(&certificates)),
    }
}

/// The client's span, and whether the client exports it.
fn traceparent(envelope: &RequestEnvelope) -> Option<(SpanContext, bool)> {
    let (_, value) = envelope.custom_payload.iter().find(|(name, _)| &**name == TRACEPARENT)?;
    SpanContext::parse(std::str::from_utf8(value.as_deref()?).ok()?)
}

#[cfg(test)]
mod tests;
