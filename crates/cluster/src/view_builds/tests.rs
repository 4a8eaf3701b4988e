//! Builds of views, on one machine.

use rows::Mutation;
use storage::materialized::built::BuiltRange;
use types::Token;

use super::job::{Pause, Place, build_some};
use crate::system_rows::SystemRow;
use crate::testing::table;
use crate::testing::views::{keyspace_with_view, with_keyspace};

/// Rows of the partition 1 of `t`.
fn written(count: i32) -> Vec<Mutation> {
    let row = |c: i32| {
        let row = SystemRow::new(&table("ks", "t"), &[&1_i32.to_be_bytes()], &[&c.to_be_bytes()], 10, None);
        row.set("v", c.to_be_bytes().to_vec()).finish()
    };
    (0..count).map(row).collect()
}

/// A partition of many slices is built though somebody else holds its lock again and again: each
/// job goes on at the row where the one before it ended, and no entry is written twice.
#[test]
fn a_build_goes_on_where_it_was_held_up() {
    const ROWS: i32 = 10_000;
    let machine = with_keyspace(keyspace_with_view("1"));
    let node = &machine.node;
    // as if they had been written before the view was there
    node.engine.apply(&written(ROWS)).expect("applied");
    let views = node.engine.views();
    let view = views.all().next().expect("one view");
    let key = 1_i32.to_be_bytes();
    let range = BuiltRange { start: Token::MIN, end: Token(i64::MAX), last: None, keys: 0 };
    let mut place = Place { range, next: None };
    let mut jobs = 0;
    while !place.range.is_done() {
        jobs += 1;
        assert!(jobs < 10, "each job that has the lock passes its share");
        let held = node.replica.try_lock_base(view.base.id, &key).expect("nobody has it");
        let (refused, pause) = build_some(node, view, place, None).expect("no error");
        assert_eq!(pause, Pause::Locked);
        drop(held);
        let waited = machine.sim.block_on(node.replica.lock_base(view.base.id, &key));
        place = build_some(node, view, refused, Some(waited)).expect("no error").0;
    }
    assert!(jobs > 1, "the partition is more than the share of a job");
    let entries = node.engine.table(view.table.id).expect("the view").metrics.writes.get();
    assert_eq!((entries, place.range.keys), (ROWS as u64, 1));
    assert_eq!(machine.count("ks", "by_v"), ROWS as usize);
}
