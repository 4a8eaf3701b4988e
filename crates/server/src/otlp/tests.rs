//! Spans of a node on a simulated machine, as a collector on this machine gets them.

use std::path::Path;
use std::rc::Rc;
use std::sync::mpsc;

use bytes::Bytes;
use cluster::Timeouts;
use env::Env;
use env::sim::{DATA, Sim};
use native::{ConnectionInfo, ConnectionStats, Handled, RequestHandler};
use protocol::request::{Query, QueryParameters, Request};
use protocol::{ProtocolVersion, ResponseEnvelope};
use serde_json::Value;
use storage::EngineOptions;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use types::Consistency;

use super::*;
use crate::{CqlHandler, Services, machine};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const ABOVE: &str = "00f067aa0ba902b7";

/// A collector on a real port, which answers each message with a status.
struct Collector {
    port: u16,
    messages: mpsc::Receiver<(String, Value)>,
}

impl Collector {
    fn start(status: &'static str) -> Self {
        let env = env::real::env();
        let (tell, told) = mpsc::channel();
        let (send, messages) = mpsc::channel();
        let of_worker = env.clone();
        drop(env.tasks.spawn_worker(
            "collector",
            Box::new(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
                runtime.block_on(collect(of_worker, status, tell, send));
            }),
        ));
        Self { port: told.recv().expect("the collector listens"), messages }
    }

    fn spans(&self) -> Vec<Value> {
        let messages = self.messages.try_iter().inspect(|(head, _)| {
            assert!(head.starts_with("POST /v1/traces HTTP/1.1\r\n"), "{head}");
            assert!(head.to_lowercase().contains("\r\ncontent-type: application/json\r\n"), "{head}");
        });
        let spans = messages.map(|(_, message)| message["resourceSpans"][0]["scopeSpans"][0]["spans"].clone());
        spans.flat_map(|spans| spans.as_array().expect("spans").clone()).collect()
    }
}

async fn collect(env: Env, status: &str, tell: mpsc::Sender<u16>, send: mpsc::Sender<(String, Value)>) {
    let mut listener = env.network.bind("127.0.0.1:0".parse().expect("an address"), false).expect("a port");
    tell.send(listener.local_address().expect("bound").port()).expect("the test waits");
    loop {
        let (mut stream, _) = env::accept(&mut *listener).await.expect("a connection");
        let mut request = Vec::new();
        let message = loop {
            stream.read_buf(&mut request).await.expect("more of the request");
            let text = String::from_utf8_lossy(&request);
            let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
            if let Ok(message) = serde_json::from_str(body) {
                break (format!("{head}\r\n"), message);
            }
        };
        if send.send(message).is_err() {
            return;
        }
        let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{{}}");
        stream.write_all(answer.as_bytes()).await.expect("answered");
    }
}

/// A node with one client, whose spans go to a port of this machine.
struct Machine {
    sim: Sim,
    services: Arc<Services>,
    handler: Rc<CqlHandler>,
}

impl Machine {
    fn new(port: u16, ratio: f64) -> Self {
        let sim = Sim::new(1);
        let options = EngineOptions::with_small_budgets(Path::new(DATA));
        let mut services = machine::start(&sim.env(), options, 1, Timeouts::default());
        let spans = Spans { endpoint: format!("http://127.0.0.1:{port}/"), certificate: None, ratio };
        let otlp = Otlp::start(&services.node, &spans).expect("no file is read");
        Arc::get_mut(&mut services).expect("no task of a node alone keeps its services").otlp = Some(otlp);
        let handler = Rc::new(CqlHandler::new(Arc::clone(&services)));
        Self { sim, services, handler }
    }

    fn otlp(&self) -> &Otlp {
        self.services.otlp.as_ref().expect("spans are exported")
    }

    fn query(&self, text: &str, traceparent: Option<&str>, tracing: bool) -> ResponseEnvelope {
        let stats = Arc::new(ConnectionStats::new(machine::address()));
        let version = ProtocolVersion::CURRENT;
        let client = self.handler.connect(ConnectionInfo { peer: machine::address(), version, user: None, stats });
        let value = |text: &str| Some(Bytes::copy_from_slice(text.as_bytes()));
        let custom_payload = traceparent.map(|text| ("traceparent".into(), value(text))).into_iter().collect();
        let parameters = QueryParameters::new(Consistency::One);
        let request = Request::Query(Query { query: text.to_owned().into(), parameters });
        let envelope = protocol::RequestEnvelope { version, stream: 1, tracing, custom_payload, request };
        let received = self.sim.env().now();
        self.sim.block_on(self.sim.env().sleep(Duration::from_millis(3)));
        match self.sim.block_on(Rc::clone(&self.handler).handle(client, envelope, received)) {
            Handled::Answered(answer) => answer,
            Handled::Last(wait) => self.sim.block_on(wait),
        }
    }

    fn pass_on(&self) {
        self.sim.advance(PERIOD + Duration::from_secs(1));
        self.sim.run_until_idle();
    }
}

fn attribute<'s>(span: &'s Value, key: &str) -> Option<&'s str> {
    let attributes = span["attributes"].as_array().expect("attributes");
    attributes.iter().find(|one| one["key"] == key).and_then(|one| one["value"]["stringValue"].as_str())
}

#[test]
fn a_request_arrives_beneath_the_span_of_its_client() {
    let collector = Collector::start("200 OK");
    let machine = Machine::new(collector.port, 0.0);
    let query = "SELECT release_version FROM system.local";
    machine.query(query, None, false);
    machine.query(query, Some(&format!("00-{TRACE}-{ABOVE}-00")), false);
    machine.query(query, Some("no such form"), false);
    machine.query(query, Some(&format!("00-{TRACE}-{ABOVE}-01")), false);
    let secret = "CREATE ROLE r WITH PASSWORD = 's3cr3t'";
    machine.query(secret, Some(&format!("00-{TRACE}-{ABOVE}-01")), false);
    machine.query("SELECT * FROM no.such", Some(&format!("00-{TRACE}-{ABOVE}-01")), false);
    machine.pass_on();
    let spans = collector.spans();
    assert_eq!(spans.len(), 3, "those that their clients export: {spans:?}");
    let span = &spans[0];
    assert_eq!((&span["traceId"], &span["parentSpanId"]), (&TRACE.into(), &ABOVE.into()));
    assert_eq!(span["spanId"].as_str().map(str::len), Some(16));
    assert_eq!((&span["name"], &span["kind"]), (&"Execute CQL3 query".into(), &2.into()));
    assert_eq!(attribute(span, "db.query.text"), Some(query));
    assert_eq!(attribute(span, "cassandra.consistency.level"), Some("ONE"));
    assert_eq!(attribute(span, "client.address"), Some("127.0.0.1"));
    let at = |of: &Value| of.as_str().and_then(|text| text.parse::<i64>().ok()).expect("digits");
    let (started, ended) = (at(&span["startTimeUnixNano"]), at(&span["endTimeUnixNano"]));
    assert!(ended - started >= 3_000_000, "three milliseconds had gone when the request was looked at");
    let events = span["events"].as_array().expect("events");
    assert!(events.iter().any(|event| event["name"].as_str().is_some_and(|name| name.starts_with("Parsing "))));
    assert!(events.iter().all(|event| (started..=ended).contains(&at(&event["timeUnixNano"]))), "{events:?}");
    assert_eq!(span["status"], serde_json::json!({}));
    assert!(!spans[1].to_string().contains("s3cr3t"), "{}", spans[1]);
    assert_eq!(spans[2]["status"]["code"], 2, "{}", spans[2]);
    assert_eq!(machine.otlp().counts.sent.get(), 3);
}

#[test]
fn traced_and_sampled_requests_are_exported() {
    let collector = Collector::start("200 OK");
    let machine = Machine::new(collector.port, 0.0);
    let rows = |machine: &Machine| {
        let answer = machine.query("SELECT session_id FROM system_traces.sessions", None, false);
        match answer.response {
            protocol::Response::Rows(rows) => rows.row_count,
            other => panic!("{other:?}"),
        }
    };
    let answer = machine.query("SELECT key FROM system.local", None, true);
    let session = answer.extras.and_then(|extras| extras.tracing_id).expect("a session");
    machine.pass_on();
    let spans = collector.spans();
    assert_eq!(
        spans.iter().map(|span| &span["traceId"]).collect::<Vec<_>>(),
        [&Value::from(cluster::spans::hex(&session))]
    );
    assert_eq!(rows(&machine), 1);
    let machine = Machine::new(collector.port, 1.0);
    (0..5).for_each(|_| drop(machine.query("SELECT key FROM system.local", None, false)));
    machine.pass_on();
    let traces: std::collections::BTreeSet<String> =
        collector.spans().iter().map(|span| span["traceId"].to_string()).collect();
    assert_eq!(traces.len(), 5, "each is a trace of its own");
    assert_eq!(rows(&machine), 0, "nothing is written for what is exported only");
}

#[test]
fn spans_that_wait_are_sent_when_the_node_stops() {
    let collector = Collector::start("200 OK");
    let machine = Machine::new(collector.port, 1.0);
    let count = BATCH_MAX + 3;
    (0..count).for_each(|_| machine.otlp().export(span(1)));
    let begun = machine.sim.env().now();
    machine.sim.block_on(machine.otlp().flush(&machine.sim.env()));
    assert!(machine.sim.env().elapsed(begun) < PERIOD, "the next message is not waited for");
    assert_eq!(collector.spans().len(), count);
    assert_eq!(machine.otlp().counts.sent.get(), count as u64);
}

#[test]
fn a_certificate_that_cannot_be_used_is_named() {
    let machine = Machine::new(1, 0.0);
    let options = |path: &str| Spans { endpoint: "https://x".into(), certificate: Some(path.into()), ratio: 0.0 };
    let error = Otlp::start(&machine.services.node, &options("/none.pem")).err().expect("refused");
    assert!(error.starts_with("otlp_certificate: /none.pem: "), "{error}");
}

fn span(text: usize) -> Span {
    Span {
        context: SpanContext { trace: [1; 16], span: [1; 8] },
        parent: None,
        name: "x".repeat(text),
        attributes: Vec::new(),
        started_micros: 0,
        duration_micros: 0,
        events: Vec::new(),
        dropped_events: 0,
        error: None,
    }
}

#[test]
fn spans_that_nobody_takes_are_counted() {
    for (status, port_is_open) in [("503 Service Unavailable", true), ("200 OK", false)] {
        let collector = Collector::start(status);
        let port = if port_is_open { collector.port } else { 1 };
        let machine = Machine::new(port, 1.0);
        machine.query("SELECT key FROM system.local", None, false);
        machine.pass_on();
        let counts = &machine.otlp().counts;
        assert_eq!((counts.sent.get(), counts.failed.get()), (0, 1), "{status} {port_is_open}");
    }
    let machine = Machine::new(1, 1.0);
    (0..QUEUE_MAX + 3).for_each(|_| machine.otlp().export(span(1)));
    assert_eq!(machine.otlp().counts.dropped.get(), 3);
    machine.pass_on();
    (0..3).for_each(|_| machine.otlp().export(span(QUEUE_SIZE_MAX / 2)));
    assert_eq!(machine.otlp().counts.dropped.get(), 5, "two large ones and what stands beside them are too much");
}
