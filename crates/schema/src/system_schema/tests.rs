//! Tests: a keyspace survives the way through rows, and a change writes the right rows.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::*;
use crate::table::ColumnSpec;
use crate::{ColumnKind, Replication, Schema, TableFlags, TableId, TableKind, system};

fn spec(name: &str, kind: ColumnKind, position: usize, ty: CqlType) -> ColumnSpec {
    ColumnSpec { name: name.to_owned(), kind, position, ty, reversed: kind == ColumnKind::Clustering }
}

fn udt(name: &str, fields: &[(&str, CqlType)]) -> Arc<UserType> {
    let fields = fields.iter().map(|(name, ty)| ((*name).to_owned(), ty.clone())).collect();
    Arc::new(UserType { keyspace: "ks".to_owned(), name: name.to_owned(), fields })
}

fn keyspace() -> KeyspaceMetadata {
    let street = udt("street", &[("name", CqlType::Text)]);
    let address = udt("address", &[("street", CqlType::Udt(Arc::clone(&street), true))]);
    let specs = vec![
        spec("k", ColumnKind::PartitionKey, 0, CqlType::Int),
        spec("c", ColumnKind::Clustering, 0, CqlType::Text),
        spec("s", ColumnKind::Static, 0, CqlType::Udt(Arc::clone(&address), false)),
        spec("v", ColumnKind::Regular, 0, CqlType::List { element: Arc::new(CqlType::Int), frozen: false }),
    ];
    let dropped = DroppedColumn {
        name: "gone".to_owned(),
        ty: CqlType::Text,
        kind: ColumnKind::Regular,
        dropped_time: 1_795_254_378_933_000,
    };
    let dropped = BTreeMap::from([("gone".to_owned(), dropped)]);
    let id = TableId([7; 16]);
    let params = TableParams { cdc: Some(true), ..TableParams::default() };
    let table =
        TableMetadata::new(id, "ks", "t", TableKind::Regular, TableFlags::COMPOUND, params, specs, dropped, None);
    KeyspaceMetadata {
        name: "ks".to_owned(),
        durable_writes: true,
        replication: Replication::simple(1),
        tables: BTreeMap::from([("t".to_owned(), Arc::new(table))]),
        user_types: BTreeMap::from([("street".to_owned(), street), ("address".to_owned(), address)]),
        function_rows: Vec::new(),
        functions: BTreeMap::new(),
        aggregates: BTreeMap::new(),
        is_virtual: false,
    }
}

#[test]
fn a_keyspace_comes_back_from_its_rows() {
    let keyspace = keyspace();
    let loaded = Schema::from_rows(rows_of(&keyspace), None);
    assert_eq!(loaded.schema.keyspace("ks").map(Arc::as_ref), Some(&keyspace));
    assert!(loaded.schema.table_by_id(TableId([7; 16])).is_some());
    assert!(loaded.schema.table("system", "local").is_some());
    assert_eq!(loaded.unreadable, Vec::<String>::new());
}

#[test]
fn masks_come_back_and_go_with_their_columns() {
    let unmasked = keyspace();
    let mut masked = unmasked.clone();
    let mut table = TableMetadata::clone(&unmasked.tables["t"]);
    let mask = ColumnMask {
        keyspace: "system".to_owned(),
        function: "mask_inner".to_owned(),
        argument_types: vec![CqlType::Int, CqlType::Int, CqlType::Text],
        arguments: vec![Some(int(1)), None, Some(text("#"))],
    };
    table.masks.insert("c".to_owned(), mask);
    masked.tables.insert("t".to_owned(), Arc::new(table));
    let loaded = Schema::from_rows(rows_of(&masked), None);
    assert_eq!(loaded.schema.keyspace("ks").map(Arc::as_ref), Some(&masked));
    assert_eq!(loaded.ignored, Vec::<String>::new());
    let deletes = |writes: &[SchemaWrite]| {
        let mask = |write: &&SchemaWrite| matches!(write, SchemaWrite::DeleteRow { table: SchemaTable::ColumnMasks, clustering, .. } if clustering[1] == "c");
        writes.iter().filter(mask).count()
    };
    assert_eq!(deletes(&diff(Some(&masked), Some(&unmasked))), 1);
    assert_eq!(deletes(&diff(Some(&unmasked), Some(&masked))), 0);
    let without = KeyspaceMetadata { tables: BTreeMap::new(), ..unmasked.clone() };
    assert_eq!(deletes(&diff(Some(&without), Some(&unmasked))), 1);
    assert_eq!(deletes(&diff(Some(&without), Some(&masked))), 0);
    // Cassandra leaves the masks of a table that is dropped
    assert_eq!(deletes(&diff(Some(&masked), Some(&without))), 0);
    // Cassandra leaves the mask of a column that was dropped
    let mut rows = rows_of(&masked);
    rows.retain(|row| row.table != SchemaTable::Columns || row.clustering[1] != "s");
    rows.iter_mut().filter(|row| row.table == SchemaTable::ColumnMasks).for_each(|row| row.clustering[1] = text("s"));
    let loaded = Schema::from_rows(rows, None).schema;
    assert!(loaded.table("ks", "t").is_some_and(|table| table.masks.is_empty()));
}

#[test]
fn column_ids_outlive_a_reload() {
    let mut schema = system::schema();
    schema.put_keyspace(keyspace());
    let loaded = Schema::from_rows(rows_of(&keyspace()), Some(&schema)).schema;
    assert_eq!(loaded.table("ks", "t"), schema.table("ks", "t"));
}

#[test]
fn only_what_changed_is_written() {
    let before = keyspace();
    assert_eq!(diff(Some(&before), Some(&before)), []);
    let mut after = before.clone();
    let old = Arc::clone(&after.tables["t"]);
    let mut specs = old.specs();
    specs.retain(|spec| spec.name != "v");
    specs.push(spec("w", ColumnKind::Regular, 0, CqlType::Int));
    let table = TableMetadata::new(
        old.id,
        "ks",
        "t",
        old.kind,
        old.flags,
        old.params.clone(),
        specs,
        old.dropped.clone(),
        Some(&old),
    );
    after.tables.insert("t".to_owned(), Arc::new(table));
    let writes = diff(Some(&before), Some(&after));
    let shown: Vec<String> = writes
        .iter()
        .map(|write| match write {
            SchemaWrite::Put { row, replaces } => {
                format!("put {} {:?} {replaces}", row.table.name(), row.clustering)
            }
            SchemaWrite::DeleteRow { table, clustering, .. } => format!("delete {} {clustering:?}", table.name()),
            SchemaWrite::DeletePartition { table, .. } => format!("delete all {}", table.name()),
        })
        .collect();
    assert_eq!(
        shown,
        [
            "put keyspaces [] false",
            "put tables [b\"t\"] true",
            "delete columns [b\"t\", b\"v\"]",
            "delete column_masks [b\"t\", b\"w\"]",
            "put columns [b\"t\", b\"w\"] false"
        ]
    );
    assert_eq!(diff(Some(&before), None).len(), SchemaTable::ALL.len());
    let is_row = |write: &&SchemaWrite| matches!(write, SchemaWrite::Put { .. });
    assert_eq!(diff(None, Some(&before)).iter().filter(is_row).count(), rows_of(&before).len());
}

/// One broken table does not keep the others, and the rest of its keyspace, from being read.
#[test]
fn broken_rows_are_named() {
    let read = |rows: Vec<SchemaRow>| {
        // without columns it is what is left of a table that somebody has dropped
        let is_wanted = rows.iter().any(|row| row.table == SchemaTable::Columns);
        let loaded = Schema::from_rows(rows, None);
        assert!(loaded.schema.keyspace("ks").is_some());
        assert_eq!(loaded.schema.table("ks", "t"), None);
        assert_eq!(loaded.left_out.contains_key(&TableId([7; 16])), is_wanted);
        let by_name = loaded.schema.left_out_table("ks", "t");
        assert_eq!(by_name.map(|table| (table.id, table.is_view)), is_wanted.then_some((TableId([7; 16]), false)));
        let names = BTreeSet::from(["ks".to_owned()]);
        assert_eq!(loaded.schema.with_rows(&names, &[]).schema.left_out.len(), 0, "its rows are gone");
        loaded.unreadable
    };
    let mut rows = rows_of(&keyspace());
    rows.retain(|row| row.table != SchemaTable::Columns);
    assert_eq!(read(rows), ["No partition columns found for table ks.t in system_schema.columns"]);
    let mut rows = rows_of(&keyspace());
    rows.retain(|row| row.table != SchemaTable::Types || row.clustering[0] != "street");
    let expected = [
        "Cannot resolve UDTs for keyspace ks: some types are missing",
        "system_schema.columns: type of ks.t.s is missing or unreadable",
    ];
    assert_eq!(read(rows), expected);
    // a table of Thrift whose names of columns are numbers: files have other bytes than the text
    let mut rows = rows_of(&keyspace());
    let columns = rows.iter_mut().filter(|row| row.table == SchemaTable::Columns && row.clustering[1] == "v");
    let cells = columns.flat_map(|row| &mut row.cells).filter(|(name, _)| name == "column_name_bytes");
    cells.for_each(|(_, value)| *value = bigint(1));
    let expected = "ks.t has the column v, whose name in files is not this text (column_name_bytes): such tables, which \
                    Thrift could make, are not served";
    assert_eq!(read(rows), [expected]);
    let mut rows = rows_of(&keyspace());
    rows.iter_mut().for_each(|row| row.cells.retain(|(name, _)| name != "gc_grace_seconds"));
    assert_eq!(read(rows), ["system_schema.tables: gc_grace_seconds of ks.t is missing or unreadable"]);
}

/// Of a table that was in force, a broken row changes nothing; another table of the same name is
/// not taken for it.
#[test]
fn a_table_that_becomes_unreadable_stays_as_it_was() {
    let schema = Schema::from_rows(rows_of(&keyspace()), None).schema;
    let names = BTreeSet::from(["ks".to_owned()]);
    let mut rows = rows_of(&keyspace());
    rows.retain(|row| row.table != SchemaTable::Columns);
    let loaded = schema.with_rows(&names, &rows);
    assert_eq!(loaded.schema.table("ks", "t"), schema.table("ks", "t"));
    assert_eq!((loaded.unreadable.len(), loaded.schema.left_out.len()), (1, 0));
    let of_table = |row: &&mut SchemaRow| row.table == SchemaTable::Tables;
    let row = rows.iter_mut().find(of_table).expect("a row");
    row.cells.retain(|(name, _)| name != "id");
    row.cells.push(("id".to_owned(), Bytes::from_static(&[9; 16])));
    assert_eq!(schema.with_rows(&names, &rows).schema.table("ks", "t"), None);
    assert_eq!(schema.with_rows(&names, &[]).schema.keyspace("ks"), None);
}

/// A table of a built-in keyspace that an earlier version did not have is there all the same, and
/// the keyspace itself cannot go.
#[test]
fn built_in_keyspaces_stay_whole() {
    let schema = system::schema();
    let auth = schema.keyspace("system_auth").expect("built in");
    let mut rows = rows_of(auth);
    rows.retain(|row| row.clustering.first().is_none_or(|table| table != "cidr_groups"));
    let loaded = Schema::from_rows(rows, None);
    assert_eq!(loaded.schema.keyspace("system_auth"), Some(auth));
    let names = BTreeSet::from(["system_auth".to_owned()]);
    assert_eq!(schema.with_rows(&names, &[]).schema.keyspace("system_auth"), Some(auth));
}

/// A built-in table has the columns of today over rows of an earlier version, and keeps a column
/// that it has beyond them.
#[test]
fn built_in_tables_have_the_columns_of_today() {
    let built_in = system::schema();
    let traces = built_in.keyspace("system_traces").expect("built in");
    let mut rows = rows_of(traces);
    let is_of_events = |row: &SchemaRow| row.table == SchemaTable::Columns && row.clustering[0] == "events";
    let is_thread = |row: &&SchemaRow| is_of_events(row) && row.clustering[1] == "thread";
    let mut added = rows.iter().find(is_thread).expect("a column").clone();
    added.clustering[1] = text("added");
    let names = added.cells.iter_mut().filter(|(name, _)| name == "column_name_bytes");
    names.for_each(|(_, value)| *value = text("added"));
    rows.retain(|row| !is_of_events(row) || row.clustering[1] != "source_port");
    rows.push(added);
    let loaded = Schema::from_rows(rows, None).schema;
    let names = |schema: &Schema| -> BTreeSet<String> {
        let events = schema.table("system_traces", "events").expect("built in");
        events.specs().into_iter().map(|spec| spec.name).collect()
    };
    let mut expected = names(&built_in);
    expected.insert("added".to_owned());
    assert_eq!(names(&loaded), expected);
    let events = loaded.table("system_traces", "events").expect("built in");
    assert_eq!(events.column_by_name("source_port").map(|column| &column.ty), Some(&CqlType::Int));
    assert!(loaded.table_by_id(events.id).is_some_and(|table| Arc::ptr_eq(table, events)));
}

/// The policies in the rows of a table that Cassandra 3 made are those of today: a coordinator that
/// does not know `99PERCENTILE` would never ask another replica.
#[test]
fn policies_of_cassandra_3_are_read() {
    for (stored, read) in [("99PERCENTILE", "99p"), ("99.0percentile", "99p"), ("50.0ms", "50ms"), ("NONE", "NEVER")] {
        let mut rows = rows_of(&keyspace());
        let of_table = |row: &&mut SchemaRow| row.table == SchemaTable::Tables;
        let row = rows.iter_mut().find(of_table).expect("a row");
        let policies = ["speculative_retry", "additional_write_policy"];
        let cells = row.cells.iter_mut().filter(|(name, _)| policies.contains(&name.as_str()));
        cells.for_each(|(_, value)| *value = text(stored));
        let loaded = Schema::from_rows(rows, None).schema;
        let params = &loaded.table("ks", "t").expect("read").params;
        assert_eq!([params.speculative_retry.as_str(), params.additional_write_policy.as_str()], [read; 2], "{stored}");
    }
}

/// Where the rows of all columns are passed for each table, this test takes far longer.
#[test]
fn columns_of_many_tables_are_read() {
    const TABLES: u32 = 10_000;
    let mut keyspace = keyspace();
    let table = Arc::clone(&keyspace.tables["t"]);
    for number in 0..TABLES {
        let mut other = TableMetadata::clone(&table);
        other.name = format!("t{number}");
        other.id.0[..4].copy_from_slice(&number.to_be_bytes());
        keyspace.tables.insert(other.name.clone(), Arc::new(other));
    }
    let loaded = Schema::from_rows(rows_of(&keyspace), None);
    assert_eq!(loaded.unreadable, [""; 0]);
    let read = loaded.schema.keyspace("ks").expect("it was read");
    assert!(read.tables == keyspace.tables, "each table has its columns");
}

/// An option of a table with tens of thousands of columns changes, which writes none of them. Where
/// each column is compared with all others, this test takes minutes.
#[test]
fn columns_of_a_wide_table_are_looked_up() {
    let key = std::iter::once(spec("k", ColumnKind::PartitionKey, 0, CqlType::Int));
    let others = (0..30_000).map(|number| spec(&format!("c{number:05}"), ColumnKind::Regular, 0, CqlType::Int));
    let (specs, params) = (key.chain(others).collect(), TableParams::default());
    let (id, flags) = (TableId([7; 16]), TableFlags::COMPOUND);
    let table = TableMetadata::new(id, "ks", "t", TableKind::Regular, flags, params, specs, BTreeMap::new(), None);
    let mut before = keyspace();
    let mut after = before.clone();
    let mut altered = table.clone();
    altered.params.comment = "wide".to_owned();
    before.tables.insert("t".to_owned(), Arc::new(table));
    after.tables.insert("t".to_owned(), Arc::new(altered));
    assert_eq!(diff(Some(&before), Some(&after)).len(), 2, "the keyspace and the table");
}

/// User types in the rows of another node, or of a directory, that double with each step are left
/// out where they become too large.
#[test]
fn user_types_that_are_too_large_are_left_out() {
    let mut keyspace = keyspace();
    let mut last = udt("t0", &[("a", CqlType::Int), ("b", CqlType::Int)]);
    for number in 1..40 {
        keyspace.user_types.insert(last.name.clone(), Arc::clone(&last));
        let field = CqlType::Udt(last, true);
        last = udt(&format!("t{number}"), &[("a", field.clone()), ("b", field)]);
    }
    let loaded = Schema::from_rows(rows_of(&keyspace), None);
    let taken = &loaded.schema.keyspace("ks").expect("it was read").user_types;
    assert!(taken.contains_key("address") && taken.contains_key("t20") && !taken.contains_key("t21"));
    assert!(loaded.unreadable[0].starts_with("The type ks.t21: Types may take 256 MiB"), "{:?}", loaded.unreadable);
    assert!(loaded.schema.table("ks", "t").is_some(), "it has other types");
}
