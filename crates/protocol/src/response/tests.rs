//! Tests: responses byte by byte, for each version.

use std::sync::Arc;

use types::CqlType;

use super::*;

const V3: ProtocolVersion = ProtocolVersion::V3;
const V4: ProtocolVersion = ProtocolVersion::V4;
const V5: ProtocolVersion = ProtocolVersion::V5;

fn body(response: impl Into<Response>, version: ProtocolVersion) -> Vec<u8> {
    let mut out = BytesMut::new();
    response.into().encode(&mut out, version);
    out.to_vec()
}

fn column(table: &str, name: &str, cql_type: CqlType) -> ColumnSpec {
    ColumnSpec { keyspace: "ks".into(), table: table.into(), name: name.into(), cql_type }
}

fn rows(columns: Vec<ColumnSpec>) -> Rows {
    Rows::new(Arc::new(ResultMetadata::new(columns)), 1, Bytes::from_static(b"\0\0\0\x01v"))
}

#[test]
fn envelopes() {
    let mut out = BytesMut::new();
    ResponseEnvelope::new(7, Response::Void).encode(&mut out, V4, None);
    assert_eq!(out[..], [0x84, 0, 0, 7, 8, 0, 0, 0, 4, 0, 0, 0, 1]);
    out.clear();
    ResponseEnvelope::new(-1, Response::Ready).encode(&mut out, ProtocolVersion::V6, None);
    assert_eq!(out[..], [0x86, 0x10, 0xff, 0xff, 2, 0, 0, 0, 0]);
}

#[test]
fn extras_precede_the_message() {
    let extras = ResponseExtras {
        tracing_id: Some([9; 16]),
        warnings: vec!["w".into()],
        custom_payload: vec![(Text::from("k"), Some(Bytes::from_static(b"v")))],
    };
    let envelope = ResponseEnvelope { stream: 1, extras: Some(Box::new(extras)), response: Response::Void };
    let mut out = BytesMut::new();
    envelope.encode(&mut out, V4, None);
    assert_eq!(out[1], 0x0E);
    assert_eq!(&out[9..25], [9; 16]);
    assert_eq!(&out[25..], b"\0\x01\0\x01w\0\x01\0\x01k\0\0\0\x01v\0\0\0\x01");
    out.clear();
    envelope.encode(&mut out, V3, None);
    assert_eq!(out[1], 0x02);
    assert_eq!(out.len(), 9 + 16 + 4);
}

#[test]
fn compressed_bodies() {
    let mut result = rows(vec![column("t", "c", CqlType::Int)]);
    result.body = Bytes::from(vec![0; 5000]);
    let envelope = ResponseEnvelope::new(1, Response::Rows(Box::new(result)));
    let mut plain = BytesMut::new();
    envelope.encode(&mut plain, V4, None);
    for compression in [Compression::Lz4, Compression::Snappy] {
        let mut out = BytesMut::from(&b"before"[..]);
        envelope.encode(&mut out, V4, Some(compression));
        let out = &out[6..];
        assert_eq!(out[1], flags::COMPRESSED);
        assert_eq!(u32::from_be_bytes(out[5..9].try_into().unwrap()) as usize, out.len() - 9);
        assert_eq!(compression.decompress(&out[9..], 1 << 20).unwrap(), plain[9..]);
    }
}

#[test]
fn small_messages() {
    assert_eq!(body(Response::Authenticate("a".into()), V4), b"\0\x01a");
    assert_eq!(body(Response::SetKeyspace("ks".into()), V4), b"\0\0\0\x03\0\x02ks");
    assert_eq!(body(Response::AuthSuccess(None), V4), [0xff; 4]);
    assert_eq!(body(Response::AuthChallenge(Some(Bytes::from_static(b"x"))), V4), b"\0\0\0\x01x");
    let supported = Response::Supported(vec![("K".into(), vec!["a".into(), "b".into()])]);
    assert_eq!(body(supported, V4), b"\0\x01\0\x01K\0\x02\0\x01a\0\x01b");
}

#[test]
fn rows_of_one_table() {
    let encoded = body(Response::Rows(Box::new(rows(vec![column("t", "c", CqlType::Int)]))), V4);
    let expected = b"\0\0\0\x02\0\0\0\x01\0\0\0\x01\0\x02ks\0\x01t\0\x01c\0\x09\0\0\0\x01\0\0\0\x01v";
    assert_eq!(encoded, expected);
}

#[test]
fn rows_of_two_tables() {
    let columns = vec![column("t", "c", CqlType::Int), column("u", "d", CqlType::Text)];
    let encoded = body(Response::Rows(Box::new(rows(columns))), V4);
    let expected =
        b"\0\0\0\x02\0\0\0\0\0\0\0\x02\0\x02ks\0\x01t\0\x01c\0\x09\0\x02ks\0\x01u\0\x01d\0\x0d\0\0\0\x01\0\0\0\x01v";
    assert_eq!(encoded, expected);
}

#[test]
fn rows_without_columns_and_with_more_pages() {
    let mut result = rows(vec![column("t", "c", CqlType::Int)]);
    result.skip_metadata = true;
    result.paging_state = Some(Bytes::from_static(b"pg"));
    let encoded = body(Response::Rows(Box::new(result)), V4);
    assert_eq!(encoded, b"\0\0\0\x02\0\0\0\x07\0\0\0\x01\0\0\0\x02pg\0\0\0\x01\0\0\0\x01v");
}

#[test]
fn changed_metadata_overrides_skipping() {
    let mut result = rows(vec![column("t", "c", CqlType::Int)]);
    result.skip_metadata = true;
    result.metadata_changed = true;
    let id = *result.metadata.id();
    let encoded = body(Response::Rows(Box::new(result.clone())), V5);
    assert_eq!(&encoded[..14], b"\0\0\0\x02\0\0\0\x09\0\0\0\x01\0\x10");
    assert_eq!(encoded[14..30], id);
    assert_eq!(&encoded[30..], b"\0\x02ks\0\x01t\0\x01c\0\x09\0\0\0\x01\0\0\0\x01v");
    let v4 = body(Response::Rows(Box::new(result)), V4);
    assert_eq!(v4, b"\0\0\0\x02\0\0\0\x05\0\0\0\x01\0\0\0\x01\0\0\0\x01v");
}

#[test]
fn prepared() {
    let prepared = Prepared {
        id: Bytes::from_static(b"id"),
        markers: Arc::from([column("t", "k", CqlType::Int)]),
        partition_key_markers: Arc::from([0u16]),
        result: Arc::new(ResultMetadata::empty()),
    };
    let encode = |version| body(Response::Prepared(Box::new(prepared.clone())), version);
    let markers = b"\0\x02ks\0\x01t\0\x01k\0\x09\0\0\0\x04\0\0\0\0";
    assert_eq!(encode(V3), [&b"\0\0\0\x04\0\x02id\0\0\0\x01\0\0\0\x01"[..], markers].concat());
    assert_eq!(encode(V4), [&b"\0\0\0\x04\0\x02id\0\0\0\x01\0\0\0\x01\0\0\0\x01\0\0"[..], markers].concat());
    // the MD5 of no bytes
    let id = b"\xd4\x1d\x8c\xd9\x8f\x00\xb2\x04\xe9\x80\x09\x98\xec\xf8\x42\x7e";
    let v5 = [b"\0\0\0\x04\0\x02id\0\x10", &id[..], b"\0\0\0\x01\0\0\0\x01\0\0\0\x01\0\0", markers].concat();
    assert_eq!(encode(V5), v5);
}

#[test]
fn schema_changes() {
    let change = |target| SchemaChange { kind: SchemaChangeKind::Created, keyspace: "ks".into(), target };
    let encode = |target, version| body(Response::SchemaChange(Box::new(change(target))), version);
    assert_eq!(encode(SchemaChangeTarget::Keyspace, V4), b"\0\0\0\x05\0\x07CREATED\0\x08KEYSPACE\0\x02ks");
    let table = SchemaChangeTarget::Table("t".into());
    assert_eq!(encode(table, V3), b"\0\0\0\x05\0\x07CREATED\0\x05TABLE\0\x02ks\0\x01t");
    let function = SchemaChangeTarget::Function("f".into(), vec!["int".into()]);
    let expected = b"\0\0\0\x05\0\x07CREATED\0\x08FUNCTION\0\x02ks\0\x01f\0\x01\0\x03int";
    assert_eq!(encode(function.clone(), V4), expected);
    assert_eq!(encode(function, V3), b"\0\0\0\x05\0\x07UPDATED\0\x08KEYSPACE\0\x02ks");
}

#[test]
fn events() {
    let up = Event::Status(StatusChange::Up, "127.0.0.1".parse().unwrap(), 9042);
    let expected = b"\0\x0dSTATUS_CHANGE\0\x02UP\x04\x7f\0\0\x01\0\0\x23\x52";
    assert_eq!(body(Response::Event(Box::new(up)), V4), expected);
    let new = Event::Topology(TopologyChange::NewNode, "::1".parse().unwrap(), 9042);
    let encoded = body(Response::Event(Box::new(new)), V4);
    assert_eq!(&encoded[..28], b"\0\x0fTOPOLOGY_CHANGE\0\x08NEW_NODE\x10");
}

#[test]
fn types_per_version() {
    let encode = |cql_type: &CqlType, version| {
        let mut out = BytesMut::new();
        type_option::put_type(&mut out, cql_type, version);
        out.to_vec()
    };
    assert_eq!(encode(&CqlType::Duration, V5), [0, 0x15]);
    let duration = b"\0\0\0\x2Corg.apache.cassandra.db.marshal.DurationType";
    assert_eq!(encode(&CqlType::Duration, V4), duration);
    assert_eq!(encode(&CqlType::SmallInt, V4), [0, 0x13]);
    assert_eq!(&encode(&CqlType::SmallInt, V3)[..2], [0, 0]);
    assert_eq!(encode(&CqlType::Text, V3), [0, 0x0D]);
}
