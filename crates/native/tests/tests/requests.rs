//! Pipelining, order, broken frames, panics.

use std::sync::atomic::Ordering;

use crate::client::*;
use crate::handler::{eventually, options, start};

#[test]
fn pipelined_requests_share_reads_and_writes() {
    const REQUESTS: i16 = 500;
    // of a millisecond; on a busy machine the whole takes some
    const TURNS_MAX: u64 = 20;
    let (server, _) = start(options());
    for version in [4, 5] {
        let mut client = Client::ready(server.address(), version);
        let requests: Vec<_> = (0..REQUESTS).map(|stream| (stream, QUERY, query(version, "void"))).collect();
        let stats = &server.worker_stats()[0];
        let (reads, writes) = (stats.reads.get(), stats.writes.get());
        client.send_all(&requests);
        for stream in 0..REQUESTS {
            let answer = client.receive();
            assert_eq!((answer.stream, answer.opcode), (stream, RESULT));
        }
        // 500 requests of 20 bytes are one or two reads; nothing but their number and the end of a
        // turn may force writes
        let (reads, writes) = (stats.reads.get() - reads, stats.writes.get() - writes);
        assert!(reads <= 8, "{reads} reads");
        assert!(writes <= reads + 1 + TURNS_MAX, "{writes} writes for {reads} reads");
    }
}

#[test]
fn who_waits_does_not_hold_up_others() {
    let (server, seen) = start(options());
    for version in [4, 5] {
        let mut client = Client::ready(server.address(), version);
        client.query(1, "slow 200");
        client.query(2, "slow 100");
        client.query(3, "void");
        let order: Vec<i16> = (0..3).map(|_| client.receive().stream).collect();
        assert_eq!(order, [3, 2, 1]);
    }
    assert_eq!(seen.running.load(Ordering::SeqCst), 0);
    assert_eq!(server.bytes_in_flight(), 0);
}

#[test]
fn many_waiting_requests_are_answered_together() {
    let (server, _) = start(options());
    let mut client = Client::ready(server.address(), 5);
    let requests: Vec<_> = (0..200).map(|stream| (stream, QUERY, query(5, "slow 50"))).collect();
    let writes = server.worker_stats()[0].writes.get();
    client.send_all(&requests);
    let mut streams: Vec<i16> = (0..200).map(|_| client.receive().stream).collect();
    streams.sort_unstable();
    assert_eq!(streams, (0..200).collect::<Vec<i16>>());
    assert!(server.worker_stats()[0].writes.get() - writes <= 20);
    assert_eq!(server.worker_stats()[0].waited.get(), 200);
}

#[test]
fn frames_in_pieces() {
    let (server, _) = start(options());
    for version in [4, 5] {
        let mut client = Client::ready(server.address(), version);
        let mut other = Client::ready(server.address(), version);
        // what the other client would send, a byte at a time
        let bytes = if version == 4 {
            envelope(4, 0, 7, QUERY, &query(4, "void"))
        } else {
            let mut out = bytes::BytesMut::new();
            let mut encoder = protocol::segment::SegmentEncoder::new(protocol::segment::SegmentFormat::Plain);
            let envelope = envelope(5, 0, 7, QUERY, &query(5, "void"));
            encoder.append(&mut out, |out| out.extend_from_slice(&envelope));
            encoder.finish(&mut out);
            out.to_vec()
        };
        for byte in bytes {
            client.send_raw(&[byte]);
        }
        assert_eq!(client.receive().stream, 7);
        assert_eq!(other.ask("void").opcode, RESULT);
    }
}

#[test]
fn broken_frames_end_their_connection_and_no_other() {
    let (server, _) = start(options());
    let mut bystander = Client::ready(server.address(), 4);
    let cases: [(&str, Vec<u8>); 5] = [
        ("a negative length", vec![4, 0, 0, 5, 7, 0xff, 0, 0, 0]),
        ("a response", envelope(0x84, 0, 5, 7, &[])),
        ("an unknown opcode", envelope(4, 0, 5, 0x20, &[])),
        ("compression without agreement", envelope(4, 1, 5, QUERY, &query(4, "void"))),
        ("another protocol", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec()),
    ];
    for (what, bytes) in cases {
        let mut client = Client::ready(server.address(), 4);
        client.query(1, "void");
        client.receive();
        client.send_raw(&bytes);
        let answer = client.receive();
        assert_eq!(answer.error_code(), 0x0A, "{what}");
        if !bytes.starts_with(b"GET") {
            assert_eq!(answer.stream, 5, "{what}");
        }
        client.assert_closed();
        assert_eq!(bystander.ask("void").opcode, RESULT);
    }
    let mut client = Client::ready(server.address(), 4);
    client.send(1, REGISTER, b"\0\x01\0\x03BAD");
    assert_eq!(client.receive().error_text(), "Invalid value 'BAD' for Type");
    assert_eq!(client.ask("void").opcode, RESULT, "a refused value does not end the connection");
}

/// The header says where a body ends: one that cannot be read costs its request alone, unless the
/// client has not begun yet.
#[test]
fn a_broken_body_costs_its_request_alone() {
    const BATCH: u8 = 13;
    let (server, _) = start(options());
    let cases: [(&str, u8, &[u8]); 3] = [
        ("a cut body", QUERY, b"\0\0\0\x09void"),
        ("a text that is not UTF-8", QUERY, b"\0\0\0\x01\xff\0\x01\0\0\0\0"),
        ("a batch of an unknown kind", BATCH, b"\x07\0\0\0\x01\0\0\0\0"),
    ];
    for version in [4, 5] {
        let mut client = Client::ready(server.address(), version);
        client.query(0, "slow 100");
        for (stream, (_, opcode, body)) in (1..).zip(cases) {
            client.send(stream, opcode, body);
        }
        // on a busy machine the slow one may be answered before the last of the others
        for _ in 0..=cases.len() {
            let answer = client.receive();
            match usize::try_from(answer.stream - 1).ok().and_then(|case| cases.get(case)) {
                Some((what, ..)) => assert_eq!(answer.error_code(), 0x0A, "{what}"),
                None => assert_eq!((answer.stream, answer.opcode), (0, RESULT)),
            }
        }
        assert_eq!(client.ask("void").opcode, RESULT);
    }
    let mut client = Client::connect(server.address(), 4);
    client.send(5, STARTUP, b"\0\x01\0");
    let answer = client.receive();
    assert_eq!((answer.stream, answer.error_code()), (5, 0x0A));
    client.assert_closed();
}

#[test]
fn broken_segments_end_their_connection() {
    let (server, _) = start(options());
    let mut out = bytes::BytesMut::new();
    let mut encoder = protocol::segment::SegmentEncoder::new(protocol::segment::SegmentFormat::Plain);
    let envelope = envelope(5, 0, 7, QUERY, &query(5, "void"));
    encoder.append(&mut out, |out| out.extend_from_slice(&envelope));
    encoder.finish(&mut out);
    for position in [0, 4, 10, out.len() - 1] {
        let mut broken = out.clone();
        broken[position] ^= 0x10;
        let mut client = Client::ready(server.address(), 5);
        client.send_raw(&broken);
        let answer = client.receive();
        assert_eq!(answer.error_code(), 0x0A);
        assert!(answer.error_text().contains("checksum"), "{}", answer.error_text());
        client.assert_closed();
    }
}

#[test]
fn a_panic_fails_its_request_only() {
    let (server, seen) = start(options());
    let mut client = Client::ready(server.address(), 4);
    client.query(1, "slow 100");
    client.query(2, "panic");
    let answer = client.receive();
    assert_eq!((answer.stream, answer.error_code()), (2, 0));
    assert_eq!(client.receive().stream, 1);
    assert_eq!(server.worker_stats()[0].panics.get(), 1);
    drop(client);
    eventually(|| seen.disconnected.load(Ordering::SeqCst) == 1);
}

/// Requests of which only the last wait is left are answered in their order, and no other request
/// waits behind them.
#[test]
fn last_waits_end_in_order() {
    let (server, seen) = start(options());
    for version in [4, 5] {
        let mut client = Client::ready(server.address(), version);
        for (stream, text) in [(1, "last 200"), (2, "last 1"), (3, "slow-last 50"), (4, "slow 100"), (5, "void")] {
            client.query(stream, text);
        }
        let order: Vec<i16> = (0..5).map(|_| client.receive().stream).collect();
        assert_eq!(order, [5, 4, 1, 2, 3]);
        let requests: Vec<_> = (0..200).map(|stream| (stream, QUERY, query(version, "last 50"))).collect();
        let writes = server.worker_stats()[0].writes.get();
        client.send_all(&requests);
        let streams: Vec<i16> = (0..200).map(|_| client.receive().stream).collect();
        assert_eq!(streams, (0..200).collect::<Vec<i16>>());
        // they began a little apart
        let writes = server.worker_stats()[0].writes.get() - writes;
        assert!(writes <= 60, "{writes} writes");
    }
    assert_eq!((seen.running.load(Ordering::SeqCst), server.bytes_in_flight()), (0, 0));
}

#[test]
fn a_panic_in_a_last_wait_fails_its_request_only() {
    let (server, _) = start(options());
    let mut client = Client::ready(server.address(), 4);
    for (stream, text) in [(1, "last 1"), (2, "last-panic"), (3, "last 1")] {
        client.query(stream, text);
    }
    let answers: Vec<_> = (0..3).map(|_| client.receive()).map(|answer| (answer.stream, answer.opcode)).collect();
    assert_eq!(answers, [(1, RESULT), (2, ERROR), (3, RESULT)]);
    assert_eq!((server.worker_stats()[0].panics.get(), server.bytes_in_flight()), (1, 0));
}

#[test]
fn last_waits_of_a_client_that_is_gone_are_dropped() {
    let (server, seen) = start(options());
    let mut client = Client::ready(server.address(), 4);
    client.query(1, "last 60000");
    client.query(2, "last 60000");
    eventually(|| seen.running.load(Ordering::SeqCst) == 2);
    drop(client);
    eventually(|| seen.running.load(Ordering::SeqCst) == 0 && server.bytes_in_flight() == 0);
}
