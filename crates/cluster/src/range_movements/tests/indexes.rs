//! The hidden tables of legacy indexes when ranges move.

use std::sync::Arc;
use std::task::Poll;

use schema::{IndexKind, IndexMetadata, KeyspaceMetadata, TableMetadata};
use storage::table::view::View;

use super::{KEYS, PATIENCE, agree_on_members, ring_of};
use crate::operations::tables::{self, Selection};
use crate::range_movements::cleanup;
use crate::testing::SimRing;

/// A ring of two whose table has a legacy index, and into which a third node has come since.
fn ring_with_an_index() -> SimRing {
    let mut ring = ring_of(2, 2);
    let node = Arc::clone(ring.node(0));
    let changed = ring.world.block_on(node.change_schema(|schema| {
        let options = [("target".to_owned(), "v".to_owned())].into();
        let by_v = IndexMetadata { name: "by_v".to_owned(), kind: IndexKind::Composites, options };
        let mut keyspace = KeyspaceMetadata::clone(schema.keyspace("ks").expect("it was made"));
        let mut table = TableMetadata::clone(schema.table("ks", "t").expect("it was made"));
        table.indexes.insert(by_v.name.clone(), by_v);
        keyspace.tables.insert("t".to_owned(), Arc::new(table));
        Ok::<_, ()>(schema.with_keyspace(keyspace))
    }));
    changed.expect("stored").expect("not refused");
    let is_built = |machine: &usize| {
        let store = ring.node(*machine).engine.table_by_name("ks", "t").expect("open");
        store.view().index("by_v").is_some_and(|index| index.state.is_built())
    };
    assert!(ring.world.run_until(PATIENCE, || [0, 1].iter().all(is_built)), "the index is built");
    ring.start(2);
    agree_on_members(&ring, &[0, 1, 2]);
    let all = Selection { keyspaces: &[], tables: &[] };
    for machine in [0, 1] {
        ring.world.block_on(tables::flush(ring.node(machine), all)).expect("flushed");
        assert_eq!(partitions(&ring, machine), (KEYS as u64, KEYS as u64));
    }
    ring
}

/// The partitions in SSTables of a table and of its index. Each row has a value of its own, which
/// is a partition of the index.
fn partitions(ring: &SimRing, machine: usize) -> (u64, u64) {
    let count = |view: Arc<View>| view.sstables.iter().map(|sstable| sstable.partition_count()).sum::<u64>();
    let view = ring.node(machine).engine.table_by_name("ks", "t").expect("open").view();
    let index = view.index("by_v").expect("it was made").store.view();
    (count(view), count(index))
}

/// The entries of a legacy index go with their rows. They would stay for ever otherwise, until a
/// search by each value meets them.
#[test]
fn a_cleanup_takes_the_entries_of_indexes_along() {
    let ring = ring_with_an_index();
    let all = Selection { keyspaces: &[], tables: &[] };
    let mut removed = 0;
    for machine in [0, 1] {
        ring.world.block_on(cleanup::cleanup(ring.node(machine), all, 1)).expect("cleaned up");
        let stored = (0..KEYS).filter(|k| !ring.stored(machine, "ks", *k).is_empty()).count();
        assert_eq!(partitions(&ring, machine).1, stored as u64);
        removed += KEYS as usize - stored;
    }
    assert!(removed > 0, "the new node has taken ranges over");
}

/// A cleanup is cut off when the rows have gone, and another one takes their entries. The second
/// node's ranges have no gap between them, so that the other one finds nothing among the rows.
#[test]
fn a_cleanup_takes_entries_that_one_before_has_left() {
    let ring = ring_with_an_index();
    let all = Selection { keyspaces: &[], tables: &[] };
    ring.world.block_on(async {
        let has_rows_cleaned = std::future::poll_fn(|_| match partitions(&ring, 1).0 < KEYS as u64 {
            true => Poll::Ready(()),
            // the end of the cleanup of the table wakes this task
            false => Poll::Pending,
        });
        tokio::select! {
            biased;
            () = has_rows_cleaned => {}
            result = cleanup::cleanup(ring.node(1), all, 1) => panic!("the entries are left: {result:?}"),
        }
    });
    let (rows, entries) = partitions(&ring, 1);
    assert_eq!(entries, KEYS as u64);
    ring.world.block_on(cleanup::cleanup(ring.node(1), all, 1)).expect("cleaned up");
    assert_eq!(partitions(&ring, 1), (rows, rows));
}
