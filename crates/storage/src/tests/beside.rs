//! Operations of a table beside others that only read its SSTables: validations, verifications,
//! builds of indexes and views.

use std::sync::Arc;

use super::dropping::Node;
use crate::TableStore;
use crate::requests::progress::Running;
use crate::strategy::kind::Kind;

/// A node with two SSTables of the table `u`.
fn with_two_sstables() -> (Node, Arc<TableStore>) {
    let node = Node::open(31, false);
    let store = node.store("u");
    for k in 0..2 {
        node.engine.apply(&[node.row("u", k)]).expect("room");
        node.sim.block_on(node.engine.flush(&store)).expect("a sound disk flushes");
    }
    (node, store)
}

/// An operation that has more to read than any disk holds, and that nobody chose.
fn begin(node: &Node, store: &TableStore, kind: Kind) {
    let table = store.table();
    node.engine.compactions.begin(Running {
        id: [1; 16],
        table_id: store.id,
        keyspace: table.keyspace.clone(),
        table: table.name.clone(),
        kind,
        automatic: false,
        sstables: 2,
        total: u64::MAX / 2,
        done: Default::default(),
        stop: Default::default(),
    });
}

/// Only operations that write SSTables take room on the disk from a compaction.
#[test]
fn operations_that_only_read_take_no_room() {
    for kind in [Kind::Validation, Kind::Verify, Kind::IndexBuild, Kind::ViewBuild, Kind::Cleanup] {
        let (node, store) = with_two_sstables();
        begin(&node, &store, kind);
        let compacted = node.sim.block_on(node.engine.compact(&store));
        assert_eq!(compacted.is_ok(), kind != Kind::Cleanup, "{kind:?}: {compacted:?}");
        let left = if kind == Kind::Cleanup { 2 } else { 1 };
        assert_eq!(store.view().sstables.len(), left, "{kind:?}");
    }
}
