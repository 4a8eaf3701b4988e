//! Tests: requests as drivers send them, byte by byte; then cut off and mutated.

use bytes::{BufMut, Bytes, BytesMut};
use types::{BatchKind, Consistency};

use super::*;

fn decode(version: ProtocolVersion, opcode: u8, flags: u8, body: &[u8]) -> Result<RequestEnvelope, DecodeError> {
    let header = Header { version, flags, stream: 3, opcode, body_size: body.len() as u32 };
    RequestEnvelope::decode(&header, &Bytes::copy_from_slice(body))
}

fn request(version: ProtocolVersion, opcode: u8, body: &[u8]) -> Request {
    decode(version, opcode, 0, body).unwrap().request
}

const V3: ProtocolVersion = ProtocolVersion::V3;
const V4: ProtocolVersion = ProtocolVersion::V4;
const V5: ProtocolVersion = ProtocolVersion::V5;

#[test]
fn startup() {
    let body = b"\0\x03\0\x0BCQL_VERSION\0\x053.4.7\0\x0bcompression\0\x03lz4\0\x11THROW_ON_OVERLOAD\0\x011";
    let Request::Startup(startup) = request(V4, 1, body) else { panic!() };
    assert_eq!(startup.option("CQL_VERSION"), Some("3.4.7"));
    assert_eq!(startup.option("COMPRESSION"), Some("lz4"));
    assert_eq!(startup.option("THROW_ON_OVERLOAD"), Some("1"));
    assert_eq!(startup.option("DRIVER_NAME"), None);
    assert_eq!(startup.check_cql_version(), Ok(()));
}

#[test]
fn cql_versions() {
    let with = |version: &str| {
        let options = vec![("CQL_VERSION".to_owned(), Text::from(version.to_owned()))];
        Startup { options }.check_cql_version()
    };
    assert_eq!(with("3.0.0"), Ok(()));
    assert_eq!(with("4.0.0"), Ok(()));
    assert!(with("2.0.0").unwrap_err().contains("not supported by the binary protocol"));
    assert!(with("x").is_err());
    assert_eq!(Startup::default().check_cql_version().unwrap_err(), "Missing value CQL_VERSION in STARTUP message");
}

#[test]
fn auth_response() {
    let Request::AuthResponse(response) = request(V4, 15, b"\0\0\0\x0A\0cass\0pass") else { panic!() };
    assert_eq!(response.plain(), Some(("cass", "pass")));
    assert_eq!(format!("{response:?}"), "AuthResponse(..)");
    let Request::AuthResponse(response) = request(V4, 15, b"\xff\xff\xff\xff") else { panic!() };
    assert_eq!(response.plain(), None);
}

#[test]
fn register() {
    let body = b"\0\x02\0\x0DSCHEMA_CHANGE\0\x0DSTATUS_CHANGE";
    let Request::Register(register) = request(V5, 11, body) else { panic!() };
    assert_eq!(register.events, [EventType::SchemaChange, EventType::StatusChange]);
    let unknown = decode(V5, 11, 0, b"\0\x01\0\x03BAD").unwrap_err();
    assert_eq!(unknown.to_string(), "Invalid value 'BAD' for Type");
    assert!(!unknown.is_fatal());
    let trace = decode(V3, 11, 0, b"\0\x01\0\x0ETRACE_COMPLETE").unwrap_err();
    assert_eq!(trace.to_string(), "Event TRACE_COMPLETE not valid for protocol version 3/v3");
}

/// The body of a QUERY with every parameter.
fn full_query(version: ProtocolVersion, named: bool) -> Vec<u8> {
    let mut out = BytesMut::new();
    out.put_slice(b"\0\0\0\x08SELECT *\0\x06");
    let named_flag = if named { 0x40 } else { 0 };
    if version >= V5 {
        out.put_u32(0x1BF | named_flag)
    } else {
        out.put_u8(0x3F | named_flag as u8)
    };
    out.put_u16(3);
    for (name, value) in [("a", &b"\0\0\0\x02xy"[..]), ("b", b"\xff\xff\xff\xff"), ("c", b"\xff\xff\xff\xfe")] {
        if named {
            out.put_slice(&[0, 1]);
            out.put_slice(name.as_bytes());
        }
        out.put_slice(value);
    }
    out.put_i32(5000);
    out.put_slice(b"\0\0\0\x03pag");
    out.put_u16(9);
    out.put_i64(1_700_000_000_000_000);
    if version >= V5 {
        out.put_slice(b"\0\x02ks");
        out.put_u32(4_000_000_000);
    }
    out.to_vec()
}

#[test]
fn query_with_every_parameter() {
    for version in ProtocolVersion::ALL {
        for named in [false, true] {
            let Request::Query(query) = request(version, 7, &full_query(version, named)) else { panic!() };
            assert_eq!(query.query, "SELECT *");
            let parameters = query.parameters;
            assert_eq!(parameters.consistency, Consistency::LocalQuorum);
            let third = if version == V3 { Value::Null } else { Value::Unset };
            let values: Vec<Value> = parameters.values.iter().collect();
            assert_eq!(values, [Value::Bytes(Bytes::from_static(b"xy")), Value::Null, third]);
            assert_eq!(parameters.values.names().len(), if named { 3 } else { 0 });
            assert_eq!(parameters.values.position_of("b"), named.then_some(1));
            assert_eq!(parameters.values.size(), 2);
            assert!(parameters.skip_metadata);
            assert_eq!(parameters.page_size, Some(5000));
            assert_eq!(parameters.paging_state.as_deref(), Some(&b"pag"[..]));
            assert_eq!(parameters.serial_consistency, Some(Consistency::LocalSerial));
            assert_eq!(parameters.timestamp, Some(1_700_000_000_000_000));
            let v5 = version >= V5;
            assert_eq!(parameters.keyspace.as_deref(), v5.then_some("ks"));
            assert_eq!(parameters.now_in_seconds, v5.then_some(4_000_000_000));
        }
    }
}

#[test]
fn values_share_the_frame() {
    let body = Bytes::from(full_query(V4, false));
    let header = Header { version: V4, flags: 0, stream: 0, opcode: 7, body_size: body.len() as u32 };
    let envelope = RequestEnvelope::decode(&header, &body).unwrap();
    let Request::Query(query) = envelope.request else { panic!() };
    let Some(Value::Bytes(value)) = query.parameters.values.get(0) else { panic!() };
    assert!(body.as_ptr_range().contains(&value.as_ptr()));
    assert!(query.parameters.values.get(3).is_none());
}

#[test]
fn prepare_and_execute() {
    let Request::Prepare(prepare) = request(V5, 9, b"\0\0\0\x01q\0\0\0\x01\0\x02ks") else { panic!() };
    assert_eq!((&*prepare.query, prepare.keyspace.as_deref()), ("q", Some("ks")));
    let Request::Prepare(prepare) = request(V4, 9, b"\0\0\0\x01q") else { panic!() };
    assert_eq!(prepare.keyspace, None);

    let Request::Execute(execute) = request(V5, 10, b"\0\x02id\0\x02md\0\x0A\0\0\0\0") else { panic!() };
    assert_eq!((&*execute.id, execute.result_metadata_id.as_deref()), (&b"id"[..], Some(&b"md"[..])));
    assert_eq!(execute.parameters, QueryParameters::new(Consistency::LocalOne));
    let Request::Execute(execute) = request(V4, 10, b"\0\x02id\0\x01\0") else { panic!() };
    assert_eq!(execute.result_metadata_id, None);
}

#[test]
fn batch() {
    let mut body = b"\x01\0\x02\0\0\0\0\x01q\0\x01\0\0\0\x01v\x01\0\x02id\0\0\0\x04".to_vec();
    body.extend_from_slice(&[0x30, 0, 8, 0, 0, 0, 0, 0, 0, 0, 5]);
    let Request::Batch(batch) = request(V4, 13, &body) else { panic!() };
    assert_eq!(batch.kind, BatchKind::Unlogged);
    assert_eq!(batch.statements.len(), 2);
    assert_eq!(batch.statements[0].values().get(0), Some(Value::Bytes(Bytes::from_static(b"v"))));
    assert!(matches!(&batch.statements[1], BatchStatement::Prepared { id, .. } if id == "id"));
    assert_eq!(batch.parameters.serial_consistency, Some(Consistency::Serial));
    assert_eq!(batch.parameters.timestamp, Some(5));
    assert_eq!(decode(V4, 13, 0, b"\x03\0\0").unwrap_err(), DecodeError::BatchType(3));
    assert_eq!(decode(V4, 13, 0, b"\0\0\x01\x02").unwrap_err(), DecodeError::BatchKind(2));
}

/// The flag for names says nothing about the values of the statements, which come by position.
#[test]
fn names_of_a_batch_are_passed_over() {
    let statement = b"\0\0\x01\0\0\0\0\x01q\0\x01\0\0\0\x01v\0\x01";
    // flags and what follows: names alone; values with names, and a page size behind them
    let parameters: [(&[u8], Option<i32>); 2] = [(b"\x40", None), (b"\x45\0\x01\0\x01n\0\0\0\x01w\0\0\0\x07", Some(7))];
    for (parameters, page_size) in parameters {
        let Request::Batch(batch) = request(V4, 13, &[&statement[..], parameters].concat()) else { panic!() };
        let values = batch.statements[0].values();
        assert_eq!(values.get(0), Some(Value::Bytes(Bytes::from_static(b"v"))));
        assert!(values.names().is_empty() && batch.parameters.values.is_empty());
        assert_eq!(batch.parameters.page_size, page_size);
    }
}

#[test]
fn refusals() {
    let cases: [(ProtocolVersion, u8, u8, &[u8], &str); 6] = [
        (V4, 7, 0, b"\0\0\0\x01q\0\x0C\0", "Unknown code 12 for a consistency level"),
        (V4, 7, 0, b"\0\0\0\x01q\0\x01\x20\x80\0\0\0\0\0\0\0", "Out of bound timestamp"),
        (V4, 7, 0, b"\0\0\0\x01q\0\x01\x01\0\x01\xff\xff\xff\xfd", "Invalid length -3"),
        (V4, 4, 0, b"", "Unknown opcode 4"),
        (V3, 5, 4, b"\0\0", "Received frame with CUSTOM_PAYLOAD flag for native protocol version < 4"),
        (V4, 9, 0, b"\0\0\0\x05qu", "Not enough bytes to read a query"),
    ];
    for (version, opcode, flags, body, text) in cases {
        let error = decode(version, opcode, flags, body).unwrap_err().to_string();
        assert!(error.starts_with(text), "{error}");
    }
}

#[test]
fn payload_and_tracing() {
    let envelope = decode(V4, 5, 0x06, b"\0\x01\0\x01k\0\0\0\x01v").unwrap();
    assert!(envelope.tracing);
    assert_eq!(envelope.custom_payload, [(Text::from("k"), Some(Bytes::from_static(b"v")))]);
    assert_eq!(envelope.stream, 3);
    assert_eq!(envelope.request.opcode(), Opcode::Options);
}

/// A prefix of a request, or a request with one changed byte, never makes the decoder panic;
/// prefixes are refused.
#[test]
fn cut_and_mutated() {
    let bodies: [(u8, Vec<u8>); 5] = [
        (7, full_query(V5, true)),
        (10, b"\0\x02id\0\x02md\0\x0A\0\0\0\x01\0\x01\0\0\0\x01v".to_vec()),
        (13, b"\x01\0\x02\0\0\0\0\x01q\0\x01\0\0\0\x01v\x01\0\x02id\0\0\0\x04\0\0\0\0".to_vec()),
        (1, b"\0\x01\0\x0BCQL_VERSION\0\x053.4.7".to_vec()),
        (11, b"\0\x01\0\x0DSCHEMA_CHANGE".to_vec()),
    ];
    for (opcode, body) in bodies {
        assert!(decode(V5, opcode, 0, &body).is_ok());
        for cut in 0..body.len() {
            assert!(decode(V5, opcode, 0, &body[..cut]).is_err(), "opcode {opcode} cut at {cut}");
        }
        for position in 0..body.len() {
            for byte in [0, 1, 0x7f, 0x80, 0xff] {
                let mut mutated = body.clone();
                mutated[position] = byte;
                for version in ProtocolVersion::ALL {
                    if let Ok(envelope) = decode(version, opcode, 0x04, &mutated) {
                        let _ = format!("{envelope:?}");
                    }
                    if let Ok(envelope) = decode(version, opcode, 0, &mutated) {
                        let _ = format!("{envelope:?}");
                    }
                }
            }
        }
    }
}
