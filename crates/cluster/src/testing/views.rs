//! Tables with materialized views, for the tests of this crate.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use rows::Row;
use rows::views::ViewFilter;
use schema::table::ColumnSpec;
use schema::{
    ColumnKind, KeyspaceMetadata, Replication, Schema, TableFlags, TableId, TableKind, TableMetadata, TableParams,
    ViewDefinition,
};
use storage::Engine;
use types::{CqlType, DecoratedKey};

use super::{SimNode, SimRing, table};

/// The WHERE of a view that has every row.
struct Everything;

impl ViewFilter for Everything {
    fn selects(&self, _: &DecoratedKey, _: &[Option<Bytes>]) -> bool {
        true
    }

    fn matches(&self, _: &DecoratedKey, _: &Row, _: u32) -> bool {
        true
    }
}

/// From now on tables with views take writes, and their views have every row.
pub(crate) fn show_everything(engine: &Engine) {
    let filter =
        |_: &Arc<Schema>, _: &Arc<TableMetadata>, _: &TableMetadata| Ok(Arc::new(Everything) as Arc<dyn ViewFilter>);
    engine.set_view_filters(Box::new(filter));
}

/// A keyspace with the table `t` (k, c, v) and its view `by_v` (v, k, c).
pub(crate) fn keyspace_with_view(factor: &str) -> KeyspaceMetadata {
    let base = table("ks", "t");
    let view = view_by_v(&base, "by_v", TableId([9; 16]), &[]);
    keyspace_of(factor, vec![base, view])
}

/// A table `notes` (k, c, v, b) with a blob.
pub(crate) fn notes() -> Arc<TableMetadata> {
    let specs = vec![
        spec("k", ColumnKind::PartitionKey, 0, CqlType::Int),
        spec("c", ColumnKind::Clustering, 0, CqlType::Int),
        spec("v", ColumnKind::Regular, 0, CqlType::Int),
        spec("b", ColumnKind::Regular, 0, CqlType::Blob),
    ];
    let (id, flags, params) = (TableId([8; 16]), TableFlags::COMPOUND, TableParams::default());
    let kind = TableKind::Regular;
    Arc::new(TableMetadata::new(id, "ks", "notes", kind, flags, params, specs, BTreeMap::new(), None))
}

/// A keyspace with the table `notes` and views (v, k, c, b) of it with these names.
pub(crate) fn keyspace_of_notes(factor: &str, views: &[&str]) -> KeyspaceMetadata {
    let base = notes();
    let ids = (20..).map(|number: u8| TableId([number; 16]));
    let views = views.iter().zip(ids).map(|(name, id)| view_by_v(&base, name, id, &[("b", CqlType::Blob)]));
    let mut tables: Vec<_> = views.collect();
    tables.push(base);
    keyspace_of(factor, tables)
}

/// The keyspace `ks` with these tables.
pub(crate) fn keyspace_of(factor: &str, tables: Vec<Arc<TableMetadata>>) -> KeyspaceMetadata {
    let options = [("replication_factor".to_owned(), factor.to_owned())].into();
    KeyspaceMetadata {
        name: "ks".to_owned(),
        durable_writes: true,
        replication: Replication { class: "org.apache.cassandra.locator.SimpleStrategy".to_owned(), options },
        tables: tables.into_iter().map(|table| (table.name.clone(), table)).collect(),
        user_types: BTreeMap::new(),
        function_rows: Vec::new(),
        functions: Default::default(),
        aggregates: Default::default(),
        is_virtual: false,
    }
}

/// A view (v, k, c) of a table of `ks` with such columns, which shows these columns besides.
pub(crate) fn view_by_v(
    base: &TableMetadata,
    name: &str,
    id: TableId,
    shown: &[(&str, CqlType)],
) -> Arc<TableMetadata> {
    let mut specs = vec![
        spec("v", ColumnKind::PartitionKey, 0, CqlType::Int),
        spec("k", ColumnKind::Clustering, 0, CqlType::Int),
        spec("c", ColumnKind::Clustering, 1, CqlType::Int),
    ];
    specs.extend(shown.iter().map(|(name, ty)| spec(name, ColumnKind::Regular, 0, ty.clone())));
    let (flags, params) = (TableFlags::COMPOUND, TableParams::default());
    let mut view = TableMetadata::new(id, "ks", name, TableKind::View, flags, params, specs, BTreeMap::new(), None);
    view.view = Some(ViewDefinition {
        base_id: base.id,
        base_name: base.name.clone(),
        include_all_columns: true,
        where_clause: String::new(),
        has_base_column_in_key: view.has_column_in_key_beyond(base),
    });
    Arc::new(view)
}

fn spec(name: &str, kind: ColumnKind, position: usize, ty: CqlType) -> ColumnSpec {
    ColumnSpec { name: name.to_owned(), kind, position, ty, reversed: false }
}

/// A node with a keyspace whose tables have views.
pub(crate) fn with_keyspace(keyspace: KeyspaceMetadata) -> SimNode {
    let machine = SimNode::new(Duration::from_secs(2));
    let engine = &machine.node.engine;
    show_everything(engine);
    let changed = storage::schema_change::change(engine, |schema| Ok::<_, ()>(schema.with_keyspace(keyspace)));
    assert!(changed.expect("stored").is_ok(), "not refused");
    machine
}

/// Creates a keyspace whose tables have views on every node of a ring, or may get some.
pub(crate) fn create_on(ring: &SimRing, keyspace: &KeyspaceMetadata) {
    ring.living().into_iter().for_each(|machine| show_everything(&ring.node(machine).engine));
    change_on(ring, keyspace);
}

/// Changes a keyspace on every node of a ring.
pub(crate) fn change_on(ring: &SimRing, keyspace: &KeyspaceMetadata) {
    for machine in ring.living() {
        let keyspace = keyspace.clone();
        let decide = move |schema: &Schema| Ok::<_, ()>(schema.with_keyspace(keyspace));
        let changed = ring.world.block_on(ring.node(machine).change_schema(decide));
        assert!(changed.expect("stored").is_ok(), "not refused");
    }
}

/// Numbers which are keys of partitions of `t`, and values of partitions of its views, of which a
/// machine is the first replica.
pub(crate) fn owned_by(ring: &SimRing, machine: usize, count: usize) -> Vec<i32> {
    let (snapshot, of) = (ring.node(0).ring(), ring.address(machine));
    let is_there = |k: &i32| {
        let token = ring.row("ks", *k, 0, 0, 1).key.token;
        let replicas = snapshot.placement("ks").expect("a keyspace").natural(token);
        replicas.first().is_some_and(|id| snapshot.endpoint(*id).address == of)
    };
    (0..).filter(is_there).take(count).collect()
}
