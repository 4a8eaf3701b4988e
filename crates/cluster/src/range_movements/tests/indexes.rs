//! The hidden tables of legacy indexes when ranges move.

use std::sync::Arc;

use schema::{IndexKind, IndexMetadata, KeyspaceMetadata, TableMetadata};

use super::{KEYS, PATIENCE, agree_on_members, ring_of};
use crate::operations::tables::{self, Selection};
use crate::range_movements::cleanup;
use crate::testing::SimRing;

/// The entries of a legacy index go with their rows. They would stay for ever otherwise, until a
/// search by each value meets them.
#[test]
fn a_cleanup_takes_the_entries_of_indexes_along() {
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
    let index = |ring: &SimRing, machine: usize| {
        let store = ring.node(machine).engine.table_by_name("ks", "t").expect("open");
        store.view().index("by_v").cloned()
    };
    let is_built = |machine: &usize| index(&ring, *machine).is_some_and(|index| index.state.is_built());
    assert!(ring.world.run_until(PATIENCE, || [0, 1].iter().all(is_built)), "the index is built");
    ring.start(2);
    agree_on_members(&ring, &[0, 1, 2]);
    let mut removed = 0;
    for machine in [0, 1] {
        // each row has a value of its own, which is a partition of the index
        let entries = |ring: &SimRing| {
            let view = index(ring, machine).expect("it was made").store.view();
            view.sstables.iter().map(|sstable| sstable.partition_count()).sum::<u64>()
        };
        let node = Arc::clone(ring.node(machine));
        let all = Selection { keyspaces: &[], tables: &[] };
        ring.world.block_on(tables::flush(&node, all)).expect("flushed");
        let before = entries(&ring);
        ring.world.block_on(cleanup::cleanup(&node, all, 1)).expect("cleaned up");
        let stored = (0..KEYS).filter(|k| !ring.stored(machine, "ks", *k).is_empty()).count();
        assert_eq!((before, entries(&ring)), (KEYS as u64, stored as u64));
        removed += KEYS as usize - stored;
    }
    assert!(removed > 0, "the new node has taken ranges over");
}
