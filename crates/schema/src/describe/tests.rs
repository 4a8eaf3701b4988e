//! Tests: tables built here give the recorded answers to DESCRIBE (`../cql/testdata/describe`).

use std::collections::BTreeMap;
use std::sync::Arc;

use super::*;
use crate::table::ColumnSpec;
use crate::{ColumnKind, Options, Replication, TableFlags, TableId, TableKind, system};

macro_rules! recorded {
    ($name:literal) => {
        include_str!(concat!("../../../cql/testdata/describe/", $name, ".txt"))
    };
}

/// The CREATE statement of the element that begins with this line.
fn statement<'a>(answer: &'a str, head: &str) -> &'a str {
    let start = answer.find(&format!("\n# {head}\n")).expect(head) + head.len() + 4;
    let rest = &answer[start..];
    rest.split("\n# ").next().unwrap_or(rest).trim_end()
}

fn keyspace(name: &str) -> KeyspaceMetadata {
    KeyspaceMetadata {
        name: name.to_owned(),
        durable_writes: true,
        replication: Replication::simple(1),
        tables: BTreeMap::new(),
        user_types: BTreeMap::new(),
        function_rows: Vec::new(),
        functions: BTreeMap::new(),
        aggregates: BTreeMap::new(),
        is_virtual: false,
    }
}

fn shop() -> KeyspaceMetadata {
    let mut shop = keyspace("shop");
    for (name, fields) in [
        ("street", &[("name", "text"), ("number", "int")][..]),
        ("address", &[("street", "frozen<street>"), ("zip", "text"), ("phones", "frozen<set<text>>")]),
        ("OddType", &[("Field A", "int"), ("select", "text")]),
    ] {
        let fields = fields.iter().map(|(field, ty)| ((*field).to_owned(), ty_of(&shop, ty))).collect();
        let udt = UserType { keyspace: "shop".to_owned(), name: name.to_owned(), fields };
        shop.user_types.insert(name.to_owned(), Arc::new(udt));
    }
    shop
}

fn ty_of(keyspace: &KeyspaceMetadata, text: &str) -> CqlType {
    type_text::parse(text, &|name| keyspace.user_types.get(name).cloned()).expect(text)
}

/// Builds a table from columns as `p name type`: p partition key, c clustering, d descending
/// clustering, s static, r regular.
fn made(keyspace: &KeyspaceMetadata, name: &str, columns: &[(char, &str, &str)], params: TableParams) -> TableMetadata {
    let mut specs: Vec<ColumnSpec> = Vec::new();
    for (kind, column, ty) in columns {
        let (kind, reversed) = match kind {
            'p' => (ColumnKind::PartitionKey, false),
            'c' => (ColumnKind::Clustering, false),
            'd' => (ColumnKind::Clustering, true),
            's' => (ColumnKind::Static, false),
            _ => (ColumnKind::Regular, false),
        };
        let position = specs.iter().filter(|spec| spec.kind == kind).count();
        specs.push(ColumnSpec { name: (*column).to_owned(), kind, position, ty: ty_of(keyspace, ty), reversed });
    }
    let id = TableId::from_hex("66cc4370e59011f18d07ad9415c13406").expect("hex");
    let flags = TableFlags::COMPOUND;
    TableMetadata::new(id, &keyspace.name, name, TableKind::Regular, flags, params, specs, BTreeMap::new(), None)
}

#[test]
fn tables_are_described_as_recorded() {
    let shop = shop();
    let plain = TableParams::default();
    let uncompressed =
        TableParams { compression: BTreeMap::from([("enabled".into(), "false".into())]), ..plain.clone() };
    let cases = [
        (recorded!("table_shop_simple"), "simple", vec![('p', "id", "int"), ('r', "name", "text")], plain.clone()),
        (recorded!("table_shop_only_key"), "only_key", vec![('p', "id", "uuid")], plain.clone()),
        (
            recorded!("table_shop_compound"),
            "compound",
            vec![
                ('p', "a", "int"),
                ('p', "b", "text"),
                ('d', "c", "timeuuid"),
                ('c', "d", "bigint"),
                ('r', "v", "text"),
            ],
            plain.clone(),
        ),
        (
            recorded!("table_shop_nested"),
            "nested",
            vec![
                ('p', "k", "int"),
                ('r', "l", "list<int>"),
                ('r', "s", "set<text>"),
                ('r', "m", "map<text, int>"),
                ('r', "fl", "frozen<list<int>>"),
                ('r', "fm", "frozen<map<text, set<int>>>"),
                ('r', "t", "tuple<int, text>"),
                ('r', "u", "address"),
                ('r', "fu", "frozen<address>"),
                ('r', "v", "vector<float, 3>"),
                ('r', "lt", "list<frozen<tuple<int, text>>>"),
                ('r', "o", "\"OddType\""),
            ],
            plain.clone(),
        ),
        (
            recorded!("table_shop_quotedtable"),
            "QuotedTable",
            vec![('p', "Key", "int"), ('c', "select", "text"), ('r', "white space", "int"), ('r', "lower", "int")],
            plain,
        ),
        (
            recorded!("table_shop_uncompressed"),
            "uncompressed",
            vec![('p', "k", "int"), ('r', "v", "text")],
            uncompressed,
        ),
    ];
    for (answer, name, columns, params) in cases {
        let described = table(&made(&shop, name, &columns, params), false);
        assert_eq!(described, statement(answer, &format!("shop | table | {}", maybe_quote(name))));
    }
}

#[test]
fn statics_stand_before_the_other_columns() {
    let columns = [('p', "k", "text"), ('c', "c", "int"), ('r', "v", "double"), ('s', "s", "text")];
    let described = table(&made(&shop(), "with_static", &columns, TableParams::default()), false);
    assert_eq!(described, statement(recorded!("table_shop_with_static"), "shop | table | with_static"));
}

#[test]
fn options_are_described_as_recorded() {
    let map = |pairs: &[(&str, &str)]| {
        crate::OptionValue::Map(pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect())
    };
    let text = |text: &str| crate::OptionValue::Text(text.to_owned());
    let options: Options = [
        ("comment", text("it's a table")),
        ("bloom_filter_fp_chance", text("0.1")),
        ("caching", map(&[("keys", "NONE"), ("rows_per_partition", "10")])),
        ("compaction", map(&[("class", "LeveledCompactionStrategy"), ("sstable_size_in_mb", "32")])),
        ("compression", map(&[("class", "ZstdCompressor"), ("compression_level", "5"), ("chunk_length_in_kb", "64")])),
        ("crc_check_chance", text("0.5")),
        ("default_time_to_live", text("86400")),
        ("gc_grace_seconds", text("3600")),
        ("max_index_interval", text("1024")),
        ("min_index_interval", text("64")),
        ("memtable_flush_period_in_ms", text("60000")),
        ("speculative_retry", text("50ms")),
        ("additional_write_policy", text("90p")),
        ("read_repair", text("NONE")),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect();
    let params = TableParams::create(&options).expect("valid");
    let described = table(&made(&shop(), "options", &[('p', "k", "int"), ('r', "v", "text")], params), false);
    assert_eq!(described, statement(recorded!("table_shop_options"), "shop | table | options"));
}

#[test]
fn internals_show_the_id_and_dropped_columns() {
    let columns = [('p', "k", "int"), ('c', "seq", "int"), ('r', "v", "text"), ('r', "added", "list<int>")];
    let mut altered = made(&shop(), "altered", &columns, TableParams::default());
    let dropped = DroppedColumn {
        name: "gone".to_owned(),
        ty: CqlType::Text,
        kind: ColumnKind::Regular,
        dropped_time: 1_795_254_378_933_000,
    };
    altered.dropped.insert("gone".to_owned(), dropped);
    let answer = recorded!("table_shop_altered_with_internals");
    assert_eq!(table(&altered, true), statement(answer, "shop | table | altered"));
    assert_eq!(table(&altered, false), statement(recorded!("table_shop_altered"), "shop | table | altered"));
}

#[test]
fn built_in_tables_are_described_as_recorded() {
    let schema = system::schema();
    let describe = |keyspace: &str, name: &str| table(schema.table(keyspace, name).expect(name), false);
    assert_eq!(describe("system", "local"), statement(recorded!("table_system_local"), "system | table | local"));
    let answer = recorded!("table_system_views_clients");
    assert_eq!(describe("system_views", "clients"), statement(answer, "system_views | table | clients"));
    let answer = recorded!("keyspace_system_traces");
    let traces = schema.keyspace("system_traces").expect("built in");
    assert_eq!(super::keyspace(traces), statement(answer, "system_traces | keyspace | system_traces"));
}

#[test]
fn keyspaces_types_and_indexes_are_described_as_recorded() {
    let shop = shop();
    let answer = recorded!("keyspace_shop");
    assert_eq!(super::keyspace(&shop), statement(answer, "shop | keyspace | shop"));
    let order: Vec<_> = types_by_dependency(&shop).iter().map(|udt| udt.name.clone()).collect();
    assert_eq!(order, ["OddType", "street", "address"]);
    for udt in shop.user_types.values() {
        assert_eq!(user_type(udt), statement(answer, &format!("shop | type | {}", maybe_quote(&udt.name))));
    }
    let simple = made(&shop, "simple", &[('p', "id", "int"), ('r', "name", "text")], TableParams::default());
    let options = BTreeMap::from([("target".to_owned(), "name".to_owned())]);
    let by_name = IndexMetadata { name: "simple_by_name".to_owned(), kind: IndexKind::Composites, options };
    assert_eq!(index(&simple, &by_name), statement(answer, "shop | index | simple_by_name"));
    let mut mixed = keyspace("MixedCase");
    mixed.durable_writes = false;
    mixed.replication = Replication::from_options(
        "MixedCase",
        &BTreeMap::from([("class".into(), "NetworkTopologyStrategy".into()), ("datacenter1".into(), "1".into())]),
        None,
        &["datacenter1"],
        1,
    )
    .expect("valid");
    let answer = recorded!("keyspace_mixedcase");
    assert_eq!(super::keyspace(&mixed), statement(answer, "\"MixedCase\" | keyspace | \"MixedCase\""));
}

/// As in Cassandra, the types that a type uses come in the order of its fields, not by name.
#[test]
fn used_types_come_in_the_order_of_fields() {
    let mut keyspace = keyspace("ks");
    let mut add = |name: &str, fields: Vec<CqlType>| {
        let fields = fields.into_iter().enumerate().map(|(at, ty)| (format!("f{at}"), ty)).collect();
        let udt = Arc::new(UserType { keyspace: "ks".to_owned(), name: name.to_owned(), fields });
        keyspace.user_types.insert(name.to_owned(), Arc::clone(&udt));
        CqlType::Udt(udt, true)
    };
    let [z, y, b] = ["z", "y", "b"].map(|name| add(name, vec![CqlType::Int]));
    let x = add("x", vec![CqlType::Tuple(vec![y, b].into())]);
    add("a", vec![CqlType::List { element: Arc::new(z), frozen: true }, x]);
    add("c", Vec::new());
    let order: Vec<_> = types_by_dependency(&keyspace).iter().map(|udt| udt.name.clone()).collect();
    assert_eq!(order, ["z", "y", "b", "x", "a", "c"]);
}

/// Each type is made with all others behind it. To take every way through them would take minutes.
#[test]
fn types_that_use_many_others_are_ordered() {
    let mut keyspace = keyspace("ks");
    for number in (0..32).rev() {
        let fields = keyspace.user_types.iter().map(|(name, udt)| (name.clone(), CqlType::Udt(Arc::clone(udt), true)));
        let (name, fields) = (format!("t{number:02}"), fields.collect());
        let udt = UserType { keyspace: "ks".to_owned(), name: name.clone(), fields };
        keyspace.user_types.insert(name, Arc::new(udt));
    }
    let order: Vec<_> = types_by_dependency(&keyspace).iter().map(|udt| udt.name.clone()).collect();
    let expected: Vec<_> = (0..32).rev().map(|number| format!("t{number:02}")).collect();
    assert_eq!(order, expected);
}
