//! Operations of a table beside others that only read its SSTables: validations, verifications,
//! builds of indexes and views.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use super::dropping::Node;
use crate::compaction::choice::{take_free, unmark};
use crate::requests::operations::{Operation, Status, Work};
use crate::requests::progress::Running;
use crate::strategy::kind::Kind;
use crate::{Engine, TableStore};

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
pub fn begin(engine: &Engine, store: &TableStore, kind: Kind) {
    let table = store.table();
    engine.compactions.begin(Running {
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
        begin(&node.engine, &store, kind);
        let compacted = node.sim.block_on(node.engine.compact(&store));
        assert_eq!(compacted.is_ok(), kind != Kind::Cleanup, "{kind:?}: {compacted:?}");
        let left = if kind == Kind::Cleanup { 2 } else { 1 };
        assert_eq!(store.view().sstables.len(), left, "{kind:?}");
    }
}

/// Where a compaction that a strategy chose has SSTables, an operator's waits for it, whatever only
/// reads them meanwhile; an operation that has SSTables for itself refuses it.
#[test]
fn operations_that_only_read_are_in_nobodys_way() {
    for kind in [Kind::Validation, Kind::IndexBuild, Kind::ViewBuild, Kind::Cleanup] {
        let (node, store) = with_two_sstables();
        let (taken, busy) = take_free(&store, |_| true);
        assert_eq!((taken.len(), busy.len()), (2, 0));
        begin(&node.engine, &store, kind);
        let major = Operation::new(Kind::MajorCompaction, Work::Major { split: false }, 0);
        let mut compacted = pin!(node.engine.operate(&store, major));
        let env = node.sim.env();
        let early = node.sim.block_on(env.timeout(Duration::from_secs(1), compacted.as_mut()));
        if kind == Kind::Cleanup {
            let ended = early.expect("it does not wait").expect("nothing fails");
            assert_eq!(ended.status, Status::UnableToCancel);
            continue;
        }
        assert!(early.is_err(), "{kind:?} is in the way: {early:?}");
        unmark(&store, &taken);
        node.engine.compactor.wake();
        let ended = node.sim.block_on(compacted).expect("nothing fails");
        assert_eq!((ended.status, store.view().sstables.len()), (Status::Successful, 1), "{kind:?}");
    }
}
