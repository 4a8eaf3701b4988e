//! Which conditions are left to replicas.

use std::collections::BTreeMap;

use rows::PartitionRange;
use rows::filter::Operator;
use schema::table::ColumnSpec;
use schema::{TableFlags, TableId, TableKind, TableParams};
use types::CqlType;

use super::*;

/// A table with an index, read whole.
fn command() -> ReadCommand {
    let column = |(name, kind): (&str, ColumnKind)| ColumnSpec {
        name: name.to_owned(),
        kind,
        position: 0,
        ty: match name {
            "tags" => CqlType::Set { element: Arc::new(CqlType::Int), frozen: false },
            "frozen" => CqlType::Set { element: Arc::new(CqlType::Int), frozen: true },
            _ => CqlType::Int,
        },
        reversed: false,
    };
    let columns = [
        ("k", ColumnKind::PartitionKey),
        ("c", ColumnKind::Clustering),
        ("s", ColumnKind::Static),
        ("a", ColumnKind::Regular),
        ("b", ColumnKind::Regular),
        ("frozen", ColumnKind::Regular),
        ("tags", ColumnKind::Regular),
    ];
    let table = TableMetadata::new(
        TableId::of_system_table("ks", "x"),
        "ks",
        "x",
        TableKind::Regular,
        TableFlags::COMPOUND,
        TableParams::default(),
        columns.map(column).into(),
        BTreeMap::new(),
        None,
    );
    ReadCommand::whole(&Arc::new(table), PartitionRange::all())
}

/// The names of the columns whose conditions `replicas` replicas are asked to check; None: none of
/// them. `!`: their answers need protection.
fn left(names: &str, replicas: usize) -> Option<String> {
    let command = command();
    let expression = |name: &str| {
        let column = command.table.column_by_name(name).expect("a column").id;
        Expression::Simple { column, operator: Operator::Eq, value: vec![0; 4].into() }
    };
    let wanted_rows = WantedRows { expressions: names.split(' ').map(expression).collect(), rows: 3 };
    let filtering = Filtering::of(&command, &wanted_rows, replicas)?;
    let name = |expression: &Expression| {
        let column = expression.column().and_then(|id| command.table.column(id));
        column.map(|column| column.name.clone()).unwrap_or_default()
    };
    let left: Vec<String> = filtering.filter.expressions.iter().map(name).collect();
    // rows are counted only where nothing is left to the coordinator
    assert_eq!(filtering.rows == 3, left.len() == names.split(' ').count());
    assert_eq!(filtering.filter.needs_reconciliation, replicas > 1);
    Some(left.join(" ") + if filtering.needs_protection { " !" } else { "" })
}

#[test]
fn one_replica_checks_everything() {
    assert_eq!(left("k c s a b", 1).as_deref(), Some("k c s a b"));
}

#[test]
fn several_replicas_check_what_they_can_alone() {
    for (names, expected) in [
        ("k", Some("k")),
        ("c", Some("c !")),
        ("a", Some("a !")),
        ("a b", Some("a !")),
        ("k s", Some("k")),
        ("s", None),
        ("c b s", Some("c b !")),
        ("a a", Some("a a !")),
        ("frozen frozen", Some("frozen frozen !")),
        // the elements may come from different replicas
        ("tags tags", Some("tags !")),
        ("c tags tags", Some("c tags !")),
        ("a tags", Some("a !")),
    ] {
        assert_eq!(left(names, 2).as_deref(), expected, "{names}");
    }
}

/// Replicas read rows by name in another way than slices, which their digests show.
#[test]
fn rows_are_asked_for_by_name() {
    use internode::payload::read_request::Rows;
    let name = |c: i32| -> rows::ClusteringValues { [Some(c.to_be_bytes().to_vec().into())].into_iter().collect() };
    let asked = |slices: Vec<rows::Slice>| {
        let command = command();
        let slices = rows::Slices::normalized(slices, &command.table.comparator);
        Question::of(&ReadCommand { slices, ..command }).clustering.rows
    };
    let rows = [1, 3].map(name);
    assert_eq!(asked(rows.clone().map(rows::Slice::of_prefix).into()), Rows::Names(rows.into()));
    let whole = vec![rows::Slice::of_prefix(name(1)), rows::Slice::all()];
    assert!(matches!(asked(whole), Rows::Slices(_)), "a slice of several rows has no name");
}
