//! The behaviour at each limit.

use std::io::Read;
use std::sync::atomic::Ordering;
use std::time::Duration;

use native::ServerLimits;

use crate::client::*;
use crate::handler::{eventually, start_with};

const MILLIS_200: Duration = Duration::from_millis(200);

#[test]
fn too_large_requests_are_refused_and_passed_over() {
    let limits = ServerLimits { frame_size_max: 1000, message_size_max: 1001, ..ServerLimits::default() };
    let (server, _) = start_with(limits);
    for version in [3, 4, 5] {
        for size in [2000, 300_000] {
            let mut client = Client::ready(server.address(), version);
            client.query(1, &"x".repeat(size));
            let answer = client.receive();
            assert_eq!((answer.stream, answer.error_code()), (1, 0x2200));
            let text = answer.error_text();
            let (start, end) = match version {
                5 => ("CQL Message of size ", " bytes exceeds allowed maximum of 1001 bytes"),
                _ => ("Request is too big: length ", " exceeds maximum allowed length 1000."),
            };
            assert!(text.starts_with(start) && text.ends_with(end), "{text}");
            assert_eq!(client.ask("void").opcode, RESULT);
        }
    }
    // what is small on the wire may be large inside
    let mut client = Client::ready_with(server.address(), 4, &[("COMPRESSION", "lz4")]);
    client.query(1, &"x".repeat(2000));
    assert_eq!(client.receive().error_text(), "Compressed frame exceeds the maximum frame size");
}

#[test]
fn requests_in_flight_per_connection() {
    let limits = ServerLimits { connection_requests_max: 4, ..ServerLimits::default() };
    let (server, seen) = start_with(limits);
    let mut client = Client::ready(server.address(), 4);
    let requests: Vec<_> = (0..20).map(|stream| (stream, QUERY, query(4, "slow 20"))).collect();
    client.send_all(&requests);
    let mut streams: Vec<i16> = (0..20).map(|_| client.receive().stream).collect();
    streams.sort_unstable();
    assert_eq!(streams, (0..20).collect::<Vec<i16>>());
    assert_eq!(seen.running_max.load(Ordering::SeqCst), 4);
}

/// Responses that become ready together and have no room together are sent one after the other,
/// though nothing else happens on the connection.
#[test]
fn responses_that_find_no_room_follow_by_themselves() {
    let limits = ServerLimits { out_size_max: 16, ..ServerLimits::default() };
    let (server, _) = start_with(limits);
    for version in [4, 5] {
        for verb in ["slow 50", "last 50"] {
            let mut client = Client::ready(server.address(), version);
            let requests: Vec<_> = (0..20).map(|stream| (stream, QUERY, query(version, verb))).collect();
            client.send_all(&requests);
            let mut streams: Vec<i16> = (0..20).map(|_| client.receive().stream).collect();
            streams.sort_unstable();
            assert_eq!(streams, (0..20).collect::<Vec<i16>>());
        }
    }
    assert_eq!(server.bytes_in_flight(), 0);
}

#[test]
fn bytes_in_flight_per_connection() {
    let limits = ServerLimits { connection_bytes_max: 20_000, ..ServerLimits::default() };
    let (server, seen) = start_with(limits);
    let mut client = Client::ready(server.address(), 4);
    let text = format!("slow 20 {}", "x".repeat(600));
    let requests: Vec<_> = (0..6).map(|stream| (stream, QUERY, query(4, &text))).collect();
    client.send_all(&requests);
    for _ in 0..6 {
        client.receive();
    }
    assert_eq!(seen.running_max.load(Ordering::SeqCst), 2);
}

#[test]
fn bytes_in_flight_in_all() {
    let limits = ServerLimits { total_bytes_max: 10, drain_timeout: MILLIS_200, ..ServerLimits::default() };
    let (server, _) = start_with(limits);
    let mut occupant = Client::ready(server.address(), 4);
    let mut thrower = Client::ready_with(server.address(), 4, &[("THROW_ON_OVERLOAD", "1")]);
    let mut waiter = Client::ready(server.address(), 5);
    occupant.query(1, "slow 300");
    eventually(|| server.bytes_in_flight() > 0);
    let refused = thrower.ask("void");
    assert_eq!(refused.error_code(), 0x1001);
    assert!(refused.error_text().contains("bytes in flight"));
    waiter.query(2, "void");
    assert_eq!(occupant.receive().stream, 1);
    assert_eq!(waiter.receive().stream, 2);
    assert_eq!(thrower.ask("void").opcode, RESULT);
    assert_eq!(server.bytes_in_flight(), 0);
    assert_eq!(server.worker_stats()[0].overloaded.get(), 1);
    // a connection that goes away gives back what it held
    occupant.query(1, "slow 60000");
    eventually(|| server.bytes_in_flight() > 0);
    server.shutdown();
}

#[test]
fn large_requests_wait_for_each_other_and_small_ones_for_none_of_them() {
    for version in [4, 5] {
        let (server, _) = start_with(ServerLimits { total_bytes_max: 200_000, ..ServerLimits::default() });
        let text = format!("void {}", "x".repeat(150_000));
        // the first has room and sends half of it
        let mut first = Client::ready(server.address(), version);
        first.query_begun(1, &text, 140_000);
        eventually(|| server.bytes_in_flight() > 0);
        let mut second = Client::ready(server.address(), version);
        second.query(2, &text);
        assert!(!second.receives_within(MILLIS_200), "the second waits unread");
        let mut thrower = Client::ready_with(server.address(), version, &[("THROW_ON_OVERLOAD", "1")]);
        thrower.query(3, &text);
        assert_eq!(thrower.receive().error_code(), 0x1001);
        assert_eq!(thrower.ask("void").opcode, RESULT, "what was refused is passed over");
        let mut small = Client::ready(server.address(), version);
        assert_eq!(small.ask("void").opcode, RESULT);
        // it goes away and leaves its room
        drop(first);
        assert_eq!(second.receive().stream, 2);
        assert_eq!(server.bytes_in_flight(), 0);
    }
}

#[test]
fn a_large_request_that_stalls_is_given_up() {
    let limits = ServerLimits { total_bytes_max: 200_000, write_timeout: MILLIS_200, ..ServerLimits::default() };
    let (server, _) = start_with(limits);
    let text = format!("void {}", "x".repeat(150_000));
    let mut first = Client::ready(server.address(), 4);
    first.query_begun(1, &text, 140_000);
    eventually(|| server.bytes_in_flight() > 0);
    let mut second = Client::ready(server.address(), 4);
    second.query(2, &text);
    first.assert_closed();
    assert_eq!(second.receive().stream, 2);
}

#[test]
fn statements_that_are_large_once_they_are_parsed_wait_for_each_other() {
    let (server, seen) = start_with(ServerLimits { total_bytes_max: 200_000, ..ServerLimits::default() });
    let text = format!("slow 50 {}", "x".repeat(20_000));
    let mut clients: Vec<Client> = (0..4).map(|_| Client::ready(server.address(), 4)).collect();
    clients.iter_mut().for_each(|client| client.query(1, &text));
    let mut small = Client::ready(server.address(), 4);
    assert_eq!(small.ask("void").opcode, RESULT);
    for client in &mut clients {
        assert_eq!(client.receive().opcode, RESULT);
    }
    assert!(seen.running_max.load(Ordering::SeqCst) <= 2, "one at a time, and the small one");
}

/// Bodies that are small enough to be read at one time are executed one after the other where each
/// of them is large once it is parsed. One that is answered makes room for the next.
#[test]
fn requests_that_were_read_together_grow_one_after_the_other() {
    const BODY: usize = 70_000;
    let (server, seen) = start_with(ServerLimits { total_bytes_max: 1 << 20, ..ServerLimits::default() });
    let bytes = envelope(4, 0, 1, QUERY, &query(4, &format!("slow 100 {}", "x".repeat(BODY))));
    let (begin, rest) = bytes.split_at(1000);
    let mut clients: Vec<Client> = (0..5).map(|_| Client::ready(server.address(), 4)).collect();
    clients.iter_mut().for_each(|client| client.send_raw(begin));
    eventually(|| server.bytes_in_flight() >= 5 * BODY);
    clients.iter_mut().for_each(|client| client.send_raw(rest));
    for client in &mut clients {
        assert_eq!(client.receive().opcode, RESULT);
    }
    assert_eq!((seen.running_max.load(Ordering::SeqCst), server.bytes_in_flight()), (1, 0));
}

#[test]
fn connections_in_all_and_per_address() {
    let all = ServerLimits { connections_max: Some(2), ..ServerLimits::default() };
    let per_ip = ServerLimits { connections_per_ip_max: Some(2), ..ServerLimits::default() };
    for (limits, text) in
        [(all, "Too many connections: the limit is 2"), (per_ip, "Too many connections from 127.0.0.1: the limit is 2")]
    {
        let (server, _) = start_with(limits);
        let first = Client::ready(server.address(), 4);
        let mut second = Client::ready(server.address(), 5);
        for version in [4, 5] {
            let mut third = Client::connect(server.address(), version);
            let answer = third.startup(&[]);
            assert_eq!((answer.version, answer.error_code()), (0x80 | version, 0x1001));
            assert_eq!(answer.error_text(), text);
            third.assert_closed();
        }
        assert_eq!(second.ask("void").opcode, RESULT);
        drop(first);
        eventually(|| server.connections().len() == 1);
        Client::ready(server.address(), 4);
    }
}

#[test]
fn idle_connections_are_closed() {
    let (server, _) = start_with(ServerLimits { idle_timeout: Some(MILLIS_200), ..ServerLimits::default() });
    let mut idle = Client::ready(server.address(), 4);
    let mut busy = Client::ready(server.address(), 4);
    busy.query(1, "slow 600");
    idle.assert_closed();
    assert_eq!(busy.receive().opcode, RESULT, "a connection that waits for an answer is not idle");
}

/// A client that takes a long answer slowly sends nothing meanwhile, and is not idle.
#[test]
fn a_connection_that_takes_an_answer_is_not_idle() {
    const SIZE: usize = 24 << 20;
    let (server, _) = start_with(ServerLimits { idle_timeout: Some(MILLIS_200), ..ServerLimits::default() });
    let mut client = Client::ready(server.address(), 4);
    client.query(1, &format!("rows {SIZE}"));
    let (mut taken, mut piece) = (0, vec![0; 1 << 20]);
    while taken < SIZE {
        // much longer than the limit for all of it; the kernel holds a part of it besides
        std::thread::sleep(Duration::from_millis(40));
        let size = client.socket.read(&mut piece).unwrap();
        assert!(size > 0, "closed after {taken} bytes");
        taken += size;
    }
}

#[test]
fn startup_takes_its_time_but_not_more() {
    let (server, _) = start_with(ServerLimits { startup_timeout: MILLIS_200, ..ServerLimits::default() });
    let mut client = Client::connect(server.address(), 4);
    let mut ready = Client::ready(server.address(), 4);
    client.send(0, OPTIONS, &[]);
    assert_eq!(client.receive().opcode, SUPPORTED);
    client.assert_closed();
    assert_eq!(ready.ask("void").opcode, RESULT);
}

#[test]
fn requests_time_out() {
    let (server, seen) = start_with(ServerLimits { request_timeout: MILLIS_200, ..ServerLimits::default() });
    let mut client = Client::ready(server.address(), 5);
    client.query(1, "slow 60000");
    client.query(2, "slow 100");
    assert_eq!(client.receive().stream, 2);
    let answer = client.receive();
    assert_eq!((answer.stream, answer.error_code()), (1, 0x1001));
    assert_eq!(answer.error_text(), "Request did not finish within 200 ms");
    assert_eq!(seen.running.load(Ordering::SeqCst), 0);
    assert_eq!(client.ask("void").opcode, RESULT);
}

/// Under overload requests wait for others; one that has waited for too long is not executed, for
/// its client has asked again by then.
#[test]
fn a_request_that_could_not_begin_in_time_is_refused() {
    let queue_timeout = Duration::from_secs(1);
    let limits = ServerLimits { total_bytes_max: 10, queue_timeout, ..ServerLimits::default() };
    let (server, seen) = start_with(limits);
    let mut client = Client::ready(server.address(), 4);
    // both are read at once, and there is room for one
    client.send_all(&[(1, QUERY, query(4, "slow 1500")), (2, QUERY, query(4, "slow 1"))]);
    assert_eq!(client.receive().opcode, RESULT);
    let refused = client.receive();
    assert_eq!((refused.stream, refused.error_code()), (2, 0x1001));
    assert_eq!(refused.error_text(), "Query timed out before it could start");
    assert_eq!((seen.running_max.load(Ordering::SeqCst), server.worker_stats()[0].timed_out.get()), (1, 1));
    assert_eq!(client.ask("void").opcode, RESULT);
}

#[test]
fn slow_readers_stop_being_served_and_are_closed() {
    let limits = ServerLimits { write_timeout: Duration::from_millis(500), ..ServerLimits::default() };
    let (server, seen) = start_with(limits);
    let mut client = Client::ready(server.address(), 4);
    let requests: Vec<_> = (0..1000).map(|stream| (stream, QUERY, query(4, "rows 1000000"))).collect();
    client.send_all(&requests);
    eventually(|| server.connections().is_empty());
    // what sockets buffer, and little more
    let requests = server.worker_stats()[0].requests.get();
    assert!(requests < 50, "{requests} requests were executed");
    assert_eq!(seen.disconnected.load(Ordering::SeqCst), 1);
}
