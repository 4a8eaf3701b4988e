//! Tracing sessions of simulated rings.

use std::collections::BTreeSet;
use std::time::Duration;

use rows::{ColumnData, PartitionStream, ReadCommand, ReadError};

use super::*;
use crate::coordinator::cas::Cas;
use crate::paxos::{PaxosOptions, PaxosVariant};
use crate::replica::read::{ReadFigures, ReadRequest};
use crate::system_rows;
use crate::testing::SimRing;

/// The nodes from which a machine has stored events.
fn sources(ring: &SimRing, machine: usize) -> BTreeSet<Bytes> {
    stored(ring, machine, "source").into_iter().collect()
}

/// The events that a machine has stored.
fn told(ring: &SimRing, machine: usize) -> Vec<String> {
    stored(ring, machine, "activity").iter().map(|line| String::from_utf8_lossy(line).into_owned()).collect()
}

/// The values of a column of the events that a machine has stored.
fn stored(ring: &SimRing, machine: usize, column: &str) -> Vec<Bytes> {
    let engine = &ring.node(machine).engine;
    let schema = engine.schema();
    let table = schema.table("system_traces", "events").expect("a built-in table");
    let column = table.column_by_name(column).expect("a column of events").id;
    let rows = system_rows::read(engine, table, None).expect("readable");
    let value = |row: rows::Row| match row.column(column) {
        Some(ColumnData::Simple(cell)) => cell.value.clone(),
        _ => panic!("an event has each column"),
    };
    rows.into_iter().map(|(_, row)| value(row)).collect()
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Kind {
    Read,
    Repair,
    Write,
    LoggedBatch,
    Counter,
    Conditional(PaxosVariant),
}

/// A request of three replicas: the replicas of the session have the events of all.
#[test]
fn every_node_with_a_share_tells_its_events() {
    let conditional = [PaxosVariant::V1, PaxosVariant::V2].map(Kind::Conditional);
    for kind in [Kind::Read, Kind::Repair, Kind::Write, Kind::LoggedBatch, Kind::Counter].into_iter().chain(conditional)
    {
        let ring = SimRing::new(41, &["dc1", "dc1", "dc1"]);
        ring.create_keyspace("ks", "SimpleStrategy", &[("replication_factor", "3")]);
        let node = Arc::clone(ring.node(0));
        let trace = Arc::new(TracedEvents::new(&node, node.uuids.next(), node.env.now()));
        let sink = Arc::clone(&trace) as Arc<dyn TraceSink>;
        ring.world.block_on(async {
            let (row, all) = (ring.row("ks", 1, 1, 5, 10), Consistency::All);
            let written = match kind {
                Kind::Read => {
                    read(&node, ring.select_key("ks", 1), sink).await;
                    None
                }
                Kind::Repair => {
                    // of its data, digests and repairs: those of the replicas that lack the row
                    ring.node(0).engine.apply(&[row]).expect("written");
                    read(&node, ring.select_key("ks", 1), sink).await;
                    None
                }
                Kind::Write => node.write_traced(vec![row], all, sink).await.expect("all are up"),
                Kind::LoggedBatch => {
                    let rows = vec![row, ring.row("ks", 2, 1, 5, 10)];
                    node.write_batch(rows, all, Some(sink)).await.expect("all are up")
                }
                Kind::Counter => {
                    let one = ring.increment("ks", 1, 1, 10);
                    node.add_to_counters(vec![one], all, None, Some(sink)).await.expect("all are up")
                }
                Kind::Conditional(variant) => {
                    node.set_paxos(PaxosOptions { variant, ..PaxosOptions::default() });
                    let (table, key) = (&row.updates[0].table, &row.updates[0].key);
                    let serial = Consistency::Serial;
                    let cas = Cas { table, key, serial, commit: all, trace: Some(&*sink) };
                    let command = ring.select_key("ks", 1);
                    let decide = async |_| Ok::<_, ()>(Some(row.clone()));
                    node.compare_and_set(cas, &command, decide).await.expect("all are up");
                    None
                }
            };
            if let Some(written) = written {
                written.await.expect("written");
            }
            trace.finish(Vec::new()).await;
        });
        ring.world.run_for(Duration::from_secs(1));
        let counts = (0..3).map(|machine| sources(&ring, machine).len());
        let stored: Vec<usize> = counts.filter(|count| *count > 0).collect();
        assert_eq!(stored, [3, 3], "system_traces has two replicas, which hear of three nodes ({kind:?})");
        let lines: Vec<String> = (0..3).flat_map(|machine| told(&ring, machine)).collect();
        for verb in verbs_of(kind) {
            let received = format!("{verb} message received from");
            assert!(lines.iter().any(|line| line.starts_with(&received)), "{kind:?}: {received}: {lines:#?}");
        }
    }
}

/// Spans that have ended on a machine.
#[derive(Default)]
struct Ended(Mutex<Vec<Span>>);

impl crate::spans::SpanExporter for Ended {
    fn export(&self, span: Span) {
        self.0.lock().expect("no panic inside").push(span);
    }
}

/// A request that is exported and in no session: a span of each node, those of the replicas beneath
/// the coordinator's, and no rows. A session that another kind of node traces is a trace, too.
#[test]
fn shares_of_a_request_are_spans_of_one_trace() {
    for (session, exported) in [(None, true), (Some([7; 16]), true), (Some([7; 16]), false)] {
        let ring = SimRing::new(43, &["dc1", "dc1", "dc1"]);
        ring.create_keyspace("ks", "SimpleStrategy", &[("replication_factor", "3")]);
        let node = Arc::clone(ring.node(0));
        let ended: Vec<Arc<Ended>> = (0..3).map(|_| Arc::default()).collect();
        (0..3).for_each(|machine| ring.node(machine).set_span_exporter(Arc::clone(&ended[machine]) as _));
        let span = exported.then(|| OpenSpan::begin(&node, [9; 16], None));
        let context = span.as_ref().map(|span| span.context);
        let trace = Arc::new(TracedEvents::with_span(&node, session, span, node.env.now()));
        ring.world.block_on(async {
            let sink = Arc::clone(&trace) as Arc<dyn TraceSink>;
            let row = ring.row("ks", 1, 1, 5, 10);
            let written = node.write_traced(vec![row], Consistency::All, sink).await.expect("all are up");
            if let Some(written) = written {
                written.await.expect("written");
            }
            trace.event("done".to_owned());
            trace.end_span("INSERT", vec![("a", "b".to_owned())], None);
            trace.finish(Vec::new()).await;
        });
        ring.world.run_for(Duration::from_secs(1));
        let spans = |machine: usize| ended[machine].0.lock().expect("no panic inside").clone();
        let of_trace = if exported { [9; 16] } else { [7; 16] };
        for machine in [1, 2] {
            let span = spans(machine).into_iter().find(|span| span.name == "MUTATION_REQ").expect("a share");
            assert_eq!((span.context.trace, span.parent), (of_trace, context.map(|context| context.span)));
            assert!(span.events[0].1.starts_with("MUTATION_REQ message received from"), "{span:?}");
        }
        let first: Vec<Span> = spans(0).into_iter().filter(|span| span.name == "INSERT").collect();
        assert_eq!(first.iter().map(|span| Some(span.context)).collect::<Vec<_>>(), Vec::from_iter(context.map(Some)));
        assert!(first.iter().all(|span| span.parent.is_none() && span.events.iter().any(|(_, text)| text == "done")));
        let rows: usize = (0..3).map(|machine| told(&ring, machine).len()).sum();
        assert_eq!(rows > 0, session.is_some(), "rows are for those who have asked for them");
    }
}

/// The requests that replicas have been sent for a kind of statement.
fn verbs_of(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Read => &["READ_REQ"],
        Kind::Repair => &["READ_REQ", "READ_REPAIR_REQ"],
        Kind::Write => &["MUTATION_REQ"],
        Kind::LoggedBatch => &["BATCH_STORE_REQ", "MUTATION_REQ", "BATCH_REMOVE_REQ"],
        Kind::Counter => &["MUTATION_REQ"],
        Kind::Conditional(PaxosVariant::V1) => &["PAXOS_PREPARE_REQ", "PAXOS_PROPOSE_REQ", "PAXOS_COMMIT_REQ"],
        Kind::Conditional(_) => &["PAXOS2_PREPARE_REQ", "PAXOS2_PROPOSE_REQ", "PAXOS_COMMIT_REQ"],
    }
}

/// Reads at ALL.
async fn read(node: &Node, command: ReadCommand, trace: Arc<dyn TraceSink>) {
    let request = ReadRequest { trace: Some(trace), ..ReadRequest::of(vec![command]) };
    let pass = |stream: &mut dyn PartitionStream| {
        while stream.next_partition()?.is_some() {
            while stream.next_unfiltered()?.is_some() {}
        }
        Ok::<_, ReadError>(())
    };
    let read = node.read(request, Consistency::All, &ReadFigures::default(), pass).await;
    read.expect("answered");
}
