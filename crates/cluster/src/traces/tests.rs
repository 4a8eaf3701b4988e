//! Tracing sessions of simulated rings.

use std::collections::BTreeSet;
use std::time::Duration;

use rows::{ColumnData, PartitionStream, ReadCommand, ReadError};

use super::*;
use crate::replica::read::{ReadFigures, ReadRequest};
use crate::system_rows;
use crate::testing::SimRing;

/// The nodes from which a machine has stored events.
fn sources(ring: &SimRing, machine: usize) -> BTreeSet<Bytes> {
    let engine = &ring.node(machine).engine;
    let schema = engine.schema();
    let table = schema.table("system_traces", "events").expect("a built-in table");
    let source = table.column_by_name("source").expect("a column of events").id;
    let rows = system_rows::read(engine, table, None).expect("readable");
    let source = |row: rows::Row| match row.column(source) {
        Some(ColumnData::Simple(cell)) => cell.value.clone(),
        _ => panic!("an event has a source"),
    };
    rows.into_iter().map(|(_, row)| source(row)).collect()
}

/// A request of three replicas: the replicas of the session have the events of all.
#[test]
fn every_node_with_a_share_tells_its_events() {
    for is_write in [false, true] {
        let ring = SimRing::new(41, &["dc1", "dc1", "dc1"]);
        ring.create_keyspace("ks", "SimpleStrategy", &[("replication_factor", "3")]);
        let node = Arc::clone(ring.node(0));
        let trace = Arc::new(TracedEvents::new(&node, node.uuids.next(), node.env.now()));
        let sink = Arc::clone(&trace) as Arc<dyn TraceSink>;
        ring.world.block_on(async {
            if is_write {
                let row = ring.row("ks", 1, 1, 5, 10);
                let written = node.write_traced(vec![row], Consistency::All, sink).await.expect("all are up");
                written.expect("others have a share").await.expect("written");
            } else {
                read(&node, ring.select_key("ks", 1), sink).await;
            }
            trace.finish(Vec::new()).await;
        });
        ring.world.run_for(Duration::from_secs(1));
        let counts = (0..3).map(|machine| sources(&ring, machine).len());
        let stored: Vec<usize> = counts.filter(|count| *count > 0).collect();
        assert_eq!(stored, [3, 3], "system_traces has two replicas, which hear of three nodes (write: {is_write})");
    }
}

/// Reads at ALL.
async fn read(node: &Node, command: ReadCommand, trace: Arc<dyn TraceSink>) {
    let request = ReadRequest { commands: vec![command], trace: Some(trace), sought: None, open: None, results: None };
    let pass = |stream: &mut dyn PartitionStream| {
        while stream.next_partition()?.is_some() {}
        Ok::<_, ReadError>(())
    };
    let is_blocked = |error: &ReadError| *error == ReadError::WouldBlock;
    let read = node.read(request, Consistency::All, &ReadFigures::default(), is_blocked, pass).await;
    read.expect("answered");
}
