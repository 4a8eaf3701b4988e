//! Tests: the body of each code byte by byte, and the older forms.

use super::*;

const CL: Consistency = Consistency::LocalQuorum;

fn encoded(kind: ErrorKind, version: ProtocolVersion) -> (i32, Vec<u8>) {
    let mut out = BytesMut::new();
    ErrorMessage::new(kind, "m").encode(&mut out, version);
    let code = i32::from_be_bytes(out[..4].try_into().unwrap());
    let length = usize::from(u16::from_be_bytes([out[4], out[5]]));
    (code, out[6 + length..].to_vec())
}

fn failures() -> Vec<ReplicaFailure> {
    vec![ReplicaFailure {
        endpoint: "127.0.0.2:7000".parse().unwrap(),
        reason: types::FailureReason::ReadTooManyTombstones,
    }]
}

fn read_failure() -> ErrorKind {
    ErrorKind::ReadFailure { consistency: CL, received: 1, block_for: 2, failures: failures(), data_present: true }
}

fn write_failure() -> ErrorKind {
    let write_type = WriteKind::Simple;
    ErrorKind::WriteFailure { consistency: CL, received: 1, block_for: 2, failures: failures(), write_type }
}

fn cas_timeout() -> ErrorKind {
    let contentions = Some(3);
    ErrorKind::WriteTimeout { consistency: CL, received: 1, block_for: 2, write_type: WriteKind::Cas, contentions }
}

#[test]
fn bodies() {
    const COUNTS: [u8; 10] = [0, 6, 0, 0, 0, 1, 0, 0, 0, 2];
    let with = |tail: &[u8]| [&COUNTS, tail].concat();
    let cases: Vec<(ErrorKind, i32, Vec<u8>)> = vec![
        (ErrorKind::Server, 0, vec![]),
        (ErrorKind::Protocol, 0xA, vec![]),
        (ErrorKind::BadCredentials, 0x100, vec![]),
        (ErrorKind::Unavailable { consistency: CL, required: 1, alive: 2 }, 0x1000, with(&[])),
        (ErrorKind::Overloaded, 0x1001, vec![]),
        (ErrorKind::IsBootstrapping, 0x1002, vec![]),
        (ErrorKind::Truncate, 0x1003, vec![]),
        (cas_timeout(), 0x1100, with(b"\0\x03CAS\0\x03")),
        (
            ErrorKind::ReadTimeout { consistency: CL, received: 1, block_for: 2, data_present: false },
            0x1200,
            with(&[0]),
        ),
        (read_failure(), 0x1300, with(&[0, 0, 0, 1, 4, 127, 0, 0, 2, 0, 1, 1])),
        (
            ErrorKind::FunctionFailure {
                keyspace: "k".into(),
                function: "f".into(),
                argument_types: vec!["int".into()],
            },
            0x1400,
            b"\0\x01k\0\x01f\0\x01\0\x03int".to_vec(),
        ),
        (write_failure(), 0x1500, with(b"\0\0\0\x01\x04\x7f\0\0\x02\0\x01\0\x06SIMPLE")),
        (ErrorKind::CdcWriteFailure, 0x1600, vec![]),
        (ErrorKind::CasWriteUnknown { consistency: CL, received: 1, block_for: 2 }, 0x1700, with(&[])),
        (ErrorKind::Syntax, 0x2000, vec![]),
        (ErrorKind::Unauthorized, 0x2100, vec![]),
        (ErrorKind::Invalid, 0x2200, vec![]),
        (ErrorKind::Config, 0x2300, vec![]),
        (ErrorKind::AlreadyExists { keyspace: "k".into(), table: "t".into() }, 0x2400, b"\0\x01k\0\x01t".to_vec()),
        (ErrorKind::Unprepared { id: Bytes::from_static(&[1, 2]) }, 0x2500, vec![0, 2, 1, 2]),
    ];
    for (kind, code, body) in cases {
        assert_eq!(encoded(kind.clone(), ProtocolVersion::V5), (code, body), "{kind:?}");
    }
}

#[test]
fn older_forms() {
    use ProtocolVersion::{V3, V4};
    const COUNTS: [u8; 10] = [0, 6, 0, 0, 0, 1, 0, 0, 0, 2];
    let with = |tail: &[u8]| [&COUNTS, tail].concat();
    assert_eq!(encoded(read_failure(), V4), (0x1300, with(&[0, 0, 0, 1, 1])));
    assert_eq!(encoded(read_failure(), V3), (0x1200, with(&[1])));
    assert_eq!(encoded(write_failure(), V4), (0x1500, with(b"\0\0\0\x01\0\x06SIMPLE")));
    assert_eq!(encoded(write_failure(), V3), (0x1100, with(b"\0\x06SIMPLE")));
    assert_eq!(encoded(cas_timeout(), V4), (0x1100, with(b"\0\x03CAS")));
    let unknown = ErrorKind::CasWriteUnknown { consistency: CL, received: 1, block_for: 2 };
    assert_eq!(encoded(unknown, V4), (0x1100, with(b"\0\x03CAS")));
    assert_eq!(encoded(ErrorKind::CdcWriteFailure, V3), (0x2200, vec![]));
    assert_eq!(encoded(ErrorKind::CdcWriteFailure, V4), (0x1600, vec![]));
    let text = |kind: ErrorKind, version: ProtocolVersion| {
        let mut out = BytesMut::new();
        ErrorMessage::new(kind, "m").encode(&mut out, version);
        let length = usize::from(u16::from_be_bytes([out[4], out[5]]));
        String::from_utf8(out[6..6 + length].to_vec()).unwrap()
    };
    assert_eq!(text(ErrorKind::CdcWriteFailure, V3), "ERROR CDC_WRITE_FAILURE: m");
    assert_eq!(text(cas_timeout(), V4), "Operation timed out - received only 1 responses.");
    assert_eq!(text(cas_timeout(), ProtocolVersion::V5), "m");
}
