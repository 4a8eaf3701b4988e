//! Start, several workers, drain.

use std::net::{TcpListener, TcpStream};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use native::{ResumeError, ServerHandle, ServerLimits, ServerOptions};
use protocol::response::{Event, StatusChange};

use crate::client::*;
use crate::handler::{eventually, options, start, start_with};

#[test]
fn workers_share_a_port() {
    let (server, seen) = start(ServerOptions { workers: 2, ..options() });
    let mut clients: Vec<Client> = (0..40).map(|_| Client::ready(server.address(), 5)).collect();
    for client in &mut clients {
        assert_eq!(client.ask("void").opcode, RESULT);
    }
    let open: Vec<u64> = server.worker_stats().iter().map(|stats| stats.connections.get()).collect();
    assert_eq!(open, [20, 20], "evenly, whatever the kernel did");
    drop(clients);
    eventually(|| server.connections().is_empty());
    assert_eq!(seen.connected.load(Ordering::SeqCst), 40);
    assert_eq!(seen.disconnected.load(Ordering::SeqCst), 40);
    server.shutdown();
}

#[test]
fn a_drain_answers_what_is_in_flight() {
    let (server, _) = start(options());
    let address = server.address();
    let mut client = Client::ready(address, 5);
    let mut idle = Client::ready(address, 4);
    client.query(1, "slow 300");
    eventually(|| server.bytes_in_flight() > 0);
    let draining = thread::spawn(move || server.shutdown());
    idle.assert_closed();
    assert_eq!(client.receive().stream, 1);
    client.assert_closed();
    draining.join().unwrap();
    assert!(std::net::TcpStream::connect(address).is_err());
}

#[test]
fn a_drain_has_an_end() {
    let limits = ServerLimits { drain_timeout: Duration::from_millis(200), ..ServerLimits::default() };
    let (server, seen) = start_with(limits);
    let mut client = Client::ready(server.address(), 4);
    client.query(1, "slow 60000");
    eventually(|| server.bytes_in_flight() > 0);
    let begin = Instant::now();
    server.shutdown();
    assert!(begin.elapsed() < Duration::from_secs(5));
    client.assert_closed();
    assert_eq!(seen.running.load(Ordering::SeqCst), 0);
}

#[test]
fn a_taken_port_is_an_error() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut options = options();
    options.address = taken.local_addr().unwrap();
    let env = env::real::env();
    let result =
        native::start(&env, options, |_| -> crate::handler::TestHandler { unreachable!("the port comes first") });
    assert_eq!(result.err().unwrap().kind(), std::io::ErrorKind::AddrInUse);
}

#[test]
fn half_closed_connections_get_their_answers() {
    let (server, _) = start(options());
    let mut client = Client::ready(server.address(), 4);
    client.query(1, "slow 100");
    client.socket.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(client.receive().stream, 1);
    client.assert_closed();
    drop(server);
}

/// A client that has closed its side may still read answers, but not without end: otherwise reads
/// for a client that is gone would go on.
#[test]
fn requests_of_a_client_that_is_gone_are_dropped() {
    let (server, seen) = start(options());
    let mut client = Client::ready(server.address(), 4);
    client.query(1, "slow 60000");
    eventually(|| seen.running.load(Ordering::SeqCst) == 1);
    drop(client);
    eventually(|| seen.running.load(Ordering::SeqCst) == 0);
    drop(server);
}

/// Waits for a future of the server's handle, as the thread of the admin port does.
fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

fn closing(handle: ServerHandle, force: bool) -> thread::JoinHandle<()> {
    thread::spawn(move || wait(handle.pause(force)))
}

#[test]
fn a_server_is_closed_and_opened_again() {
    let (server, _) = start(ServerOptions { workers: 2, ..options() });
    let (address, handle) = (server.address(), server.handle());
    handle.set_farewell(Event::Status(StatusChange::Down, address.ip(), address.port()));
    for _ in 0..3 {
        let mut waiting: Vec<Client> = (0..4).map(|_| Client::ready(address, 5)).collect();
        let mut registered = Client::ready(address, 4);
        registered.send(1, REGISTER, b"\0\x01\0\x0DSTATUS_CHANGE");
        assert_eq!(registered.receive().opcode, READY);
        waiting.iter_mut().for_each(|client| client.query(7, "slow 200"));
        eventually(|| handle.worker_stats().iter().map(|stats| stats.waited.get()).sum::<u64>() >= 4);
        let closing = closing(handle.clone(), false);
        let event = registered.receive();
        assert_eq!((event.stream, event.opcode), (-1, EVENT));
        assert!(event.body.starts_with(b"\0\x0DSTATUS_CHANGE\0\x04DOWN"));
        registered.assert_closed();
        for client in &mut waiting {
            assert_eq!((client.receive().stream, client.try_receive().is_none()), (7, true));
        }
        closing.join().unwrap();
        assert!(!handle.is_serving() && handle.connections().is_empty());
        assert_eq!(TcpStream::connect(address).unwrap_err().kind(), std::io::ErrorKind::ConnectionRefused);
        wait(handle.pause(false));
        wait(handle.resume()).unwrap();
        wait(handle.resume()).unwrap();
        assert!(handle.is_serving());
        assert_eq!(Client::ready(address, 5).ask("void").opcode, RESULT);
    }
    wait(handle.stop_serving());
    assert!(matches!(wait(handle.resume()), Err(ResumeError::Ended)));
    server.shutdown();
}

#[test]
fn closing_by_force_drops_what_is_in_flight() {
    let (server, seen) = start(options());
    let mut client = Client::ready(server.address(), 5);
    client.query(1, "slow 60000");
    eventually(|| seen.running.load(Ordering::SeqCst) == 1);
    closing(server.handle(), true).join().unwrap();
    client.assert_closed();
    assert_eq!(seen.running.load(Ordering::SeqCst), 0);
    assert_eq!(server.bytes_in_flight(), 0);
}

#[test]
fn a_port_that_was_taken_meanwhile_is_an_error() {
    let (server, _) = start(ServerOptions { workers: 2, ..options() });
    let handle = server.handle();
    wait(handle.pause(false));
    let taken = TcpListener::bind(server.address()).unwrap();
    let error = wait(handle.resume()).unwrap_err();
    assert!(matches!(error, ResumeError::Bind(_, error) if error.kind() == std::io::ErrorKind::AddrInUse));
    assert!(!handle.is_serving());
    drop(taken);
    wait(handle.resume()).unwrap();
    assert_eq!(Client::ready(server.address(), 5).ask("void").opcode, RESULT);
}

#[test]
fn requests_that_come_during_a_drain_are_told_so() {
    let (server, _) = start(options());
    let mut client = Client::ready(server.address(), 5);
    let mut idle = Client::ready(server.address(), 5);
    client.query(1, "slow 300");
    eventually(|| server.bytes_in_flight() > 0);
    let draining = thread::spawn(move || server.shutdown());
    idle.assert_closed();
    client.query(2, "void");
    client.query(3, &"void ".repeat(100_000));
    for stream in [2, 3] {
        let refused = client.receive();
        assert_eq!((refused.stream, refused.error_code()), (stream, 0x1001));
        assert_eq!(refused.error_text(), "Server is shutting down");
    }
    assert_eq!(client.receive().stream, 1);
    client.assert_closed();
    draining.join().unwrap();
}
