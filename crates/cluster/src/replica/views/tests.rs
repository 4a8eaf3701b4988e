//! Writes to a table with a view, on one machine.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use rows::views::ViewFilter;
use rows::{DeletionTime, Mutation, PartitionUpdate, Row};
use schema::table::ColumnSpec;
use schema::{
    ColumnKind, KeyspaceMetadata, Replication, Schema, TableFlags, TableId, TableKind, TableMetadata, TableParams,
    ViewDefinition,
};
use types::{CqlType, DecoratedKey};

use crate::stripes::Held;
use crate::system_rows::{self, SystemRow};
use crate::testing::{SimNode, poll, table};

/// The WHERE of a view that has every row.
struct Everything;

impl ViewFilter for Everything {
    fn selects(&self, _: &DecoratedKey, _: &[Option<bytes::Bytes>]) -> bool {
        true
    }

    fn matches(&self, _: &DecoratedKey, _: &Row, _: u32) -> bool {
        true
    }
}

/// The keyspace `ks` with the table `t` (k, c, v) and its view `by_v` (v, k, c).
fn keyspace() -> KeyspaceMetadata {
    let base = table("ks", "t");
    let spec = |(name, kind, position): (&str, ColumnKind, usize)| ColumnSpec {
        name: name.to_owned(),
        kind,
        position,
        ty: CqlType::Int,
        reversed: false,
    };
    let columns =
        [("v", ColumnKind::PartitionKey, 0), ("k", ColumnKind::Clustering, 0), ("c", ColumnKind::Clustering, 1)];
    let (id, flags, params) = (TableId([9; 16]), TableFlags::COMPOUND, TableParams::default());
    let specs = columns.map(spec).into();
    let mut view = TableMetadata::new(id, "ks", "by_v", TableKind::View, flags, params, specs, BTreeMap::new(), None);
    view.view = Some(ViewDefinition {
        base_id: base.id,
        base_name: "t".to_owned(),
        include_all_columns: true,
        where_clause: String::new(),
        has_base_column_in_key: view.has_column_in_key_beyond(&base),
    });
    let options = [("replication_factor".to_owned(), "1".to_owned())].into();
    KeyspaceMetadata {
        name: "ks".to_owned(),
        durable_writes: true,
        replication: Replication { class: "org.apache.cassandra.locator.SimpleStrategy".to_owned(), options },
        tables: [base, Arc::new(view)].map(|table| (table.name.clone(), table)).into(),
        user_types: BTreeMap::new(),
        kept: Vec::new(),
        functions: Default::default(),
        aggregates: Default::default(),
        is_virtual: false,
    }
}

/// A node with that keyspace.
fn with_view() -> SimNode {
    let machine = SimNode::new(Duration::from_secs(2));
    let engine = &machine.node.engine;
    let filter =
        |_: &Arc<Schema>, _: &Arc<TableMetadata>, _: &TableMetadata| Ok(Arc::new(Everything) as Arc<dyn ViewFilter>);
    engine.set_view_filters(Box::new(filter));
    let changed = storage::schema_change::change(engine, |schema| Ok::<_, ()>(schema.with_keyspace(keyspace())));
    assert!(changed.expect("stored").is_ok(), "not refused");
    machine
}

/// A row of the partition 1 of `t`.
fn row(c: i32, timestamp: i64) -> Mutation {
    let row = SystemRow::new(&table("ks", "t"), &[&1_i32.to_be_bytes()], &[&c.to_be_bytes()], timestamp, None);
    row.set("v", c.to_be_bytes().to_vec()).finish()
}

/// The deletion of a partition reads all of its rows for the view, which may take longer than
/// anybody waits. It happens all the same, and gives its locks back.
#[test]
fn a_wide_write_ends_though_nobody_waits_for_it() {
    const ROWS: i32 = 100;
    let machine = with_view();
    let counts = || (machine.count("ks", "t"), machine.count("ks", "by_v"));
    let base = table("ks", "t");
    let write = |c: i32, timestamp: i64| {
        machine.sim.block_on(machine.node.replica.apply(&[row(c, timestamp)], Held::new())).expect("applied");
    };
    (0..ROWS).for_each(|c| write(c, 10));
    assert_eq!(counts(), (ROWS as usize, ROWS as usize));
    let key = system_rows::partition_key(&base, &[&1_i32.to_be_bytes()]);
    let mut update = PartitionUpdate::new(Arc::clone(&base), key);
    update.deletion = DeletionTime::new(20, machine.node.env.clock.now_seconds());
    let deletion = [Mutation::of(update)];
    assert!(poll(pin!(machine.node.replica.apply(&deletion, Held::new()))).is_pending(), "a job reads the rows");
    // the future is dropped
    assert_eq!(counts(), (ROWS as usize, ROWS as usize));
    machine.sim.run_until_idle();
    assert_eq!(counts(), (0, 0));
    write(1, 30);
    assert_eq!(counts(), (1, 1));
}

/// A TRUNCATE waits for the writes that have begun, and these may take minutes. Those that come
/// later are not held up for as long.
#[test]
fn a_truncation_that_waits_for_a_wide_write_lets_others_pass() {
    let machine = with_view();
    let node = &machine.node;
    let wide = Arc::clone(&node.replica.views.gate).try_read_owned().expect("nobody closes the gate");
    let writes = async {
        for c in 0..5 {
            node.env.sleep(Duration::from_millis(400)).await;
            let write = [row(c, 10)];
            let applied = node.env.timeout(node.timeouts().write, node.replica.apply(&write, Held::new())).await;
            applied.expect("in time").expect("applied");
        }
        assert_eq!((machine.count("ks", "t"), machine.count("ks", "by_v")), (5, 5));
        drop(wide);
    };
    let (truncated, ()) = machine.sim.block_on(async { tokio::join!(node.truncate("ks", "t"), writes) });
    truncated.expect("truncated");
    assert_eq!((machine.count("ks", "t"), machine.count("ks", "by_v")), (0, 0));
}

/// A TRUNCATE that is given up in the middle empties a table and its views all the same: no repair
/// would take the rows of a view away.
#[test]
fn a_truncation_ends_with_its_views_though_nobody_waits_for_it() {
    let machine = with_view();
    let node = &machine.node;
    machine.sim.block_on(node.replica.apply(&[row(1, 10)], Held::new())).expect("applied");
    let given_up = node.env.timeout(Duration::from_millis(1), node.truncate("ks", "t"));
    assert!(machine.sim.block_on(given_up).is_err(), "its client goes away");
    machine.sim.block_on(node.env.sleep(Duration::from_secs(5)));
    assert_eq!((machine.count("ks", "t"), machine.count("ks", "by_v")), (0, 0));
}
