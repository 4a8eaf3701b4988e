//! Start, several workers, drain.

use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use transport::{ServerLimits, ServerOptions};

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
    let result = transport::Server::start(&env, options, |_| -> crate::handler::TestHandler {
        unreachable!("the port comes first")
    });
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

/// Who has closed its side may still read answers, but not for ever: reads for a client that is gone would go on for nobody.
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
