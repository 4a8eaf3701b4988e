//! Commit log, mutations, schema, statements, protocol.

use std::sync::Arc;

use bytes::BytesMut;
use protocol::segment::{SegmentEncoder, SegmentFormat};
use rows::codec::encode_mutation;
use rows::{Mutation, PartitionUpdate, Unfiltered};
use schema::system_schema::rows_of;
use schema::{KeyspaceMetadata, Schema, TableMetadata};

use crate::bodies::{mutation_table, schema_rows as rows_body};
use crate::fixtures::{FileSet, content, file, root};

/// Bytes of a segment of Cassandra that a seed has: some dozen of its records.
const SEGMENT_LENGTH: usize = 6000;

fn cassandras_segment(version: u8) -> Vec<u8> {
    let directory = root().join(format!("commitlog/v{version}"));
    let entries = std::fs::read_dir(&directory).expect("the fixtures of the commit log");
    let mut paths = entries.flatten().map(|entry| entry.path());
    let path = paths.find(|path| path.extension().is_some_and(|ending| ending == "gz")).expect("a segment");
    file(&path)
}

/// Segments of both versions, cut to their first records.
pub fn segments() -> Vec<Vec<u8>> {
    let cut = |version| {
        let mut segment = cassandras_segment(version);
        segment.truncate(SEGMENT_LENGTH);
        segment
    };
    let small = |version| {
        let mut segment = cassandras_segment(version);
        segment.truncate(700);
        segment
    };
    vec![cut(7), cut(8), small(8)]
}

/// Records of Cassandra for its own tables, and the partitions of SSTables as mutations.
///
/// # Panics
/// When a fixture cannot be read.
pub fn mutations() -> Vec<Vec<u8>> {
    let records = storage::commitlog::fuzzing::records(&cassandras_segment(8));
    let mut seeds: Vec<Vec<u8>> = records.iter().take(40).map(|record| record.to_vec()).collect();
    for (number, table) in ["dels_desc", "ck_nested", "types_all", "st_basic"].iter().enumerate() {
        let set = FileSet::of_cassandra(table, "da");
        let mut id = schema::TableId([7; 16]);
        id.0[15] = number as u8;
        let mut as_written = TableMetadata::clone(&mutation_table(id).expect("a table"));
        as_written.id = id;
        let as_written = Arc::new(as_written);
        let sstable = set.open(&set.disk()).expect("a whole SSTable");
        for (head, unfiltereds) in content(&sstable).into_iter().take(3) {
            let mut update = PartitionUpdate::new(Arc::clone(&as_written), head.key);
            update.deletion = head.deletion;
            update.static_row = head.static_row.map(|row| *row);
            update.rows = unfiltereds.into_iter().filter_map(as_row).take(6).collect();
            let mut out = Vec::new();
            encode_mutation(&mut out, &Mutation::of(update));
            seeds.push(out);
        }
    }
    seeds
}

fn as_row(unfiltered: Unfiltered) -> Option<rows::Row> {
    if let Unfiltered::Row(row) = unfiltered { Some(row) } else { None }
}

/// Manifests of snapshots.
pub fn manifests() -> Vec<Vec<u8>> {
    vec![
        br#"{"files":["da-1-bti-Data.db"],"created_at":"2026-11-21T08:11:02.123Z","expires_at":null,"ephemeral":false}"#.to_vec(),
        br#"{ "files" : [ ], "created_at" : "1970-01-01T00:00:00Z" }"#.to_vec(),
    ]
}

/// Manifests of backups.
pub fn backups() -> Vec<Vec<u8>> {
    let head = r#"{"format":1,"tag":"t","node":{"cluster":"c","host_id":"5f-1","address":"127.0.0.1","data_center":"dc1","rack":"r1","tokens":[-5,7],"version":"0.1.0"},"created_at":1,"keyspaces":[{"name":"ks","replication":[["class","SimpleStrategy"]]}],"tables":["#;
    let table = r#"{"keyspace":"ks","name":"t","id":"01","schema":"","files":[{"name":".i/da-1-bti-Data.db","key":"nodes/5f-1/x@0a","size":3,"sha256":"00"}]}"#;
    vec![format!("{head}]}}").into_bytes(), format!("{head}{table}]}}").into_bytes()]
}

/// The rows of a keyspace with a table and a type of many columns.
pub fn schema_rows() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for table in ["ck_nested", "st_basic", "key_only", "types_all"] {
        let mut keyspace = KeyspaceMetadata::clone(built_in());
        "ks".clone_into(&mut keyspace.name);
        keyspace.tables.clear();
        let table = FileSet::of_cassandra(table, "da").table;
        keyspace.tables.insert(table.name.clone(), table);
        seeds.push(rows_body::print(&rows_of(&keyspace)));
    }
    seeds
}

fn built_in() -> &'static Arc<KeyspaceMetadata> {
    static SCHEMA: std::sync::LazyLock<Schema> = std::sync::LazyLock::new(schema::system::schema);
    SCHEMA.keyspace("system_schema").expect("the keyspace of the schema")
}

/// The statements that made the fixtures' tables, and some of each other kind.
pub fn statements() -> Vec<Vec<u8>> {
    let mut seeds: Vec<Vec<u8>> =
        ["ck_udt", "types_all", "cnt", "wide_ci"].map(|table| file(&root().join(table).join("schema.cql"))).into();
    for text in [
        "SELECT a, count(*), ttl(b) FROM ks.t WHERE k IN (1, 2) AND (c, d) > (?, :x) ORDER BY c DESC LIMIT 3 ALLOW FILTERING",
        "INSERT INTO t (k, m, v) VALUES (0x00ff, {'a': [1, 2], 'b': []}, [1.5, -2e3]) IF NOT EXISTS USING TTL 5 AND TIMESTAMP 9",
        "BEGIN BATCH UPDATE t SET l[3] = 'x', s = s + {1}, u.f = null WHERE k = 1 IF v = 2; DELETE m['a'] FROM t WHERE k = 1; APPLY BATCH",
        "CREATE TABLE t (k frozen<map<int, tuple<text, vector<float, 3>>>>, c int, PRIMARY KEY ((k), c)) WITH CLUSTERING ORDER BY (c DESC)",
    ] {
        seeds.push(text.into());
    }
    seeds.retain(|seed| seed.len() < 4000);
    seeds
}

/// Configurations.
pub fn configs() -> Vec<Vec<u8>> {
    vec![
        b"cluster_name: 'x'\nnum_tokens: 16\ncommitlog_sync: periodic\ncommitlog_sync_period: 10000ms\n".to_vec(),
        b"sstable:\n  selected_format: bti\nmemtable:\n  configurations:\n    default:\n      inherits: trie\n"
            .to_vec(),
    ]
}

/// Names of types.
pub fn type_names() -> Vec<Vec<u8>> {
    let marshal = "org.apache.cassandra.db.marshal.";
    [
        format!("{marshal}ReversedType({marshal}MapType({marshal}UTF8Type,{marshal}FrozenType({marshal}ListType({marshal}Int32Type))))"),
        format!("{marshal}UserType(ks,6e616d65,66:{marshal}Int32Type,67:{marshal}VectorType({marshal}FloatType , 3))"),
        "CompositeType(UTF8Type,DynamicCompositeType(a=>BytesType),PartitionerDefinedOrder(x:TimeUUIDType))".to_owned(),
        "frozen<map<int, tuple<text, vector<float, 3>>>>".to_owned(),
        "TupleType(DecimalType,IntegerType,DurationType,InetAddressType,EmptyType,DateType,LexicalUUIDType)".to_owned(),
    ]
    .map(String::into_bytes)
    .into()
}

/// Two values with their type.
pub fn values() -> Vec<Vec<u8>> {
    let seed = |ty: &str, a: &[u8], b: &[u8]| [&[ty.len() as u8], ty.as_bytes(), &[a.len() as u8], a, b].concat();
    let list: &[u8] = b"\0\0\0\x02\0\0\0\x04\0\0\0\x01\0\0\0\x04\xff\xff\xff\xff";
    let mut seeds = vec![
        seed("ListType(Int32Type)", list, &list[..12]),
        seed("SetType(DecimalType)", b"\0\0\0\x01\0\0\0\x05\0\0\0\x02\x7f", b"\0\0\0\0"),
        seed("MapType(Int32Type,Int32Type)", b"\0\0\0\x01\0\0\0\x04\0\0\0\x01\0\0\0\x04\0\0\0\x09", b""),
        seed("TupleType(UTF8Type,IntegerType)", b"\0\0\0\x01a\0\0\0\x02\x01\0", b"\0\0\0\x01b\xff\xff\xff\xff"),
        seed("VectorType(UTF8Type , 2)", b"\x01a\x01b", b"\x01a\x02bc"),
        seed("VectorType(FloatType , 2)", &[0x3f, 0x80, 0, 0, 0x40, 0, 0, 0], &[0; 8]),
        seed("CompositeType(UTF8Type,Int32Type)", b"\0\x01a\0\0\x04\0\0\0\x01\0", b"\0\x01b\0"),
        seed("DynamicCompositeType(a=>BytesType,i=>Int32Type)", b"\x80a\0\x01x\0", b"\x80i\0\x04\0\0\0\x01\0"),
        seed("UserType(ks,6e,66:Int32Type,67:UTF8Type)", b"\0\0\0\x04\0\0\0\x01\0\0\0\x01x", b"\0\0\0\x04\0\0\0\x01"),
    ];
    for ty in [
        "AsciiType",
        "LongType",
        "BytesType",
        "BooleanType",
        "CounterColumnType",
        "DecimalType",
        "DoubleType",
        "FloatType",
        "Int32Type",
        "UTF8Type",
        "TimestampType",
        "UUIDType",
        "IntegerType",
        "TimeUUIDType",
        "InetAddressType",
        "SimpleDateType",
        "TimeType",
        "ShortType",
        "ByteType",
        "DurationType",
        "EmptyType",
        "LexicalUUIDType",
        "DateType",
    ] {
        seeds.push(seed(
            ty,
            &[0, 0, 0, 1, 0x80, 7, 0x10, 9],
            &[1, 2, 3, 4, 0x90, 6, 0x1f, 8, 9, 10, 11, 12, 13, 14, 15, 16],
        ));
    }
    seeds
}

fn envelope(version: u8, opcode: u8, body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u32).to_be_bytes();
    [&[version, 0, 0, 1, opcode], &length[..], body].concat()
}

/// Frames of requests.
pub fn requests() -> Vec<Vec<u8>> {
    let startup = b"\0\x01\0\x0bCQL_VERSION\0\x053.4.7";
    let query =
        b"\0\0\0\x08SELECT 1\0\x01\x3f\0\x02\0\0\0\x01a\xff\xff\xff\xff\0\0\0\x64\0\0\0\x02pp\0\x08\0\0\0\0\0\0\0\x05";
    let batch = b"\0\0\x02\0\0\0\0\x01x\0\x01\0\0\0\x01a\x01\0\x02id\0\0\0\x01\0";
    let execute = b"\0\x02id\0\x01\x01\0\x01\0\0\0\x04\0\0\0\x07";
    vec![
        envelope(4, 1, startup),
        envelope(4, 5, b""),
        envelope(4, 7, query),
        envelope(3, 13, batch),
        envelope(4, 10, execute),
        envelope(4, 11, b"\0\x01\0\x0dSCHEMA_CHANGE"),
        envelope(4, 15, b"\0\0\0\x0a\0cass\0pass"),
        envelope(5, 9, b"\0\0\0\x08SELECT 1\0\0\0\x01\0\x02ks"),
    ]
}

/// Connections of version 5.
pub fn envelopes() -> Vec<Vec<u8>> {
    let connection = |first: u8, format| {
        let mut out = BytesMut::from(&[first][..]);
        let mut encoder = SegmentEncoder::new(format);
        for version_4 in requests() {
            let mut whole = version_4;
            whole[0] = 5;
            encoder.append(&mut out, |out| out.extend_from_slice(&whole));
        }
        encoder.finish(&mut out);
        out.to_vec()
    };
    vec![connection(0, SegmentFormat::Plain), connection(1, SegmentFormat::Lz4)]
}

/// Compressed bodies.
pub fn compressed() -> Vec<Vec<u8>> {
    let methods = [protocol::Compression::Lz4, protocol::Compression::Snappy];
    let text: Vec<u8> = (0..900u32).flat_map(|number| (number / 7).to_le_bytes()).collect();
    let compress = |(first, method): (usize, protocol::Compression)| {
        let mut out = BytesMut::from(&[first as u8][..]);
        out.extend_from_slice(&text);
        method.compress_tail(&mut out, 1);
        out.to_vec()
    };
    methods.into_iter().enumerate().map(compress).collect()
}
