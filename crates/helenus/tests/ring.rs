//! A ring on one machine, as its users have it: three processes that find each other, one that is
//! killed and comes back, and what a driver is told of it.

// A client of these tests stands outside the house.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::unwrap_used, missing_docs)]

#[path = "ring/roles.rs"]
mod roles;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const NODES: usize = 3;

/// The longest time that anything here may take: a machine may be busy.
const PATIENCE: Duration = Duration::from_secs(90);

/// Ports that are free on all addresses, and addresses that belong to this test alone.
struct Addresses {
    storage_port: u16,
    port: u16,
    admin_port: u16,
    net: String,
}

impl Addresses {
    fn new() -> Self {
        let listeners: Vec<_> = (0..3).map(|_| TcpListener::bind("0.0.0.0:0").unwrap()).collect();
        let port = |at: usize| listeners[at].local_addr().unwrap().port();
        static RINGS: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let pid = std::process::id() + 7 * RINGS.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Self {
            storage_port: port(0),
            port: port(1),
            admin_port: port(2),
            net: format!("127.{}.{}", 1 + pid % 250, 1 + pid / 250 % 250),
        }
    }

    fn address(&self, number: usize) -> String {
        format!("{}.{}", self.net, number + 1)
    }
}

struct Node {
    process: Child,
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

struct Ring {
    addresses: Addresses,
    directory: PathBuf,
    /// Keys of cassandra.yaml with their values, for each node.
    settings: &'static [&'static str],
    nodes: Vec<Option<Node>>,
}

impl Ring {
    /// Starts all nodes at once and waits until they are ready.
    fn start(directory: &Path, settings: &'static [&'static str]) -> Self {
        let nodes = (0..NODES).map(|_| None).collect();
        let mut ring = Self { addresses: Addresses::new(), directory: directory.to_owned(), settings, nodes };
        let started: Vec<_> = (0..NODES).map(|number| ring.spawn(number)).collect();
        for (number, process) in started.into_iter().enumerate() {
            ring.nodes[number] = Some(ready(process));
        }
        ring
    }

    fn spawn(&self, number: usize) -> Child {
        let addresses = &self.addresses;
        let storage_port = format!("storage_port={}", addresses.storage_port);
        let mut command = Command::new(env!("CARGO_BIN_EXE_helenus"));
        command.args(["serve", "--memory", "128M", "--cluster-name", "ring", "--data-dir"]);
        command.arg(self.directory.join(format!("n{number}")));
        command.args([
            "--listen",
            &addresses.address(number),
            "--seeds",
            &addresses.address(0),
            "--set",
            &storage_port,
        ]);
        // the least that is allowed: a node that is killed is found out after twelve seconds
        command.args(["--set", "phi_convict_threshold=5"]);
        command.args(["--port", &addresses.port.to_string(), "--admin-port", &addresses.admin_port.to_string()]);
        command.args(self.settings.iter().flat_map(|setting| ["--set", setting]));
        let log = std::fs::File::create(self.directory.join(format!("n{number}.log"))).unwrap();
        command.stdout(Stdio::piped()).stderr(log).spawn().unwrap()
    }

    fn nodetool(&self, number: usize, verb: &str) -> String {
        let mut command = Command::new(env!("CARGO_BIN_EXE_helenus"));
        command.args([
            "nodetool",
            "-h",
            &self.addresses.address(number),
            "-p",
            &self.addresses.admin_port.to_string(),
            verb,
        ]);
        let output = command.output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    /// Stops a node as its operator does: the others are told before the process has ended.
    fn stop(&mut self, number: usize) {
        let mut node = self.nodes[number].take().unwrap();
        assert!(Command::new("kill").args(["-TERM", &node.process.id().to_string()]).status().unwrap().success());
        assert!(node.process.wait().unwrap().success());
    }

    /// The letters that a node shows of each node.
    fn letters(&self, asked: usize) -> Vec<String> {
        let status = self.nodetool(asked, "status");
        let of = |number: usize| {
            let address = format!("  {} ", self.addresses.address(number));
            let line = status.lines().find(|line| line.contains(&address));
            line.map(|line| line[..2].to_owned()).unwrap_or_default()
        };
        (0..NODES).map(of).collect()
    }

    /// Waits until these nodes show these letters.
    fn await_letters(&self, asked: &[usize], letters: [&str; NODES]) {
        let begun = Instant::now();
        while !asked.iter().all(|asked| self.letters(*asked) == letters) {
            let seen: Vec<_> = asked.iter().map(|asked| self.letters(*asked)).collect();
            assert!(begun.elapsed() < PATIENCE, "{letters:?} are awaited: {seen:?}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

fn ready(mut process: Child) -> Node {
    let mut line = String::new();
    BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.starts_with("helenus ready:"), "{line}");
    Node { process }
}

/// A driver as far as this test needs it: version 4 of the protocol, one question at a time.
struct Driver(TcpStream);

impl Driver {
    fn connect(ring: &Ring, number: usize) -> Self {
        let socket = TcpStream::connect((ring.addresses.address(number), ring.addresses.port)).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut driver = Self(socket);
        driver.send(1, b"\0\x01\0\x0bCQL_VERSION\0\x053.4.7");
        driver.receive();
        driver
    }

    fn send(&mut self, opcode: u8, body: &[u8]) {
        let mut frame = vec![4, 0, 0, 1, opcode];
        frame.extend(u32::try_from(body.len()).unwrap().to_be_bytes());
        frame.extend(body);
        self.0.write_all(&frame).unwrap();
    }

    /// Opcode and body of the next frame.
    fn receive(&mut self) -> (u8, Vec<u8>) {
        let mut header = [0; 9];
        self.0.read_exact(&mut header).unwrap();
        let mut body = vec![0; u32::from_be_bytes(header[5..].try_into().unwrap()) as usize];
        self.0.read_exact(&mut body).unwrap();
        (header[4], body)
    }

    /// The rows of a table.
    fn count(&mut self, table: &str) -> u64 {
        let query = format!("SELECT count(*) FROM {table}");
        let mut body = u32::try_from(query.len()).unwrap().to_be_bytes().to_vec();
        body.extend(query.as_bytes());
        body.extend([0, 1, 0]); // ONE, no flags
        self.send(7, &body);
        // a warning, that no partition key is given, comes before the rows
        let (opcode, body) = self.receive();
        assert_eq!(opcode, 8, "{}", String::from_utf8_lossy(&body));
        // the only value of the only row
        u64::from_be_bytes(*body.last_chunk().unwrap())
    }

    fn register(&mut self) {
        self.send(11, b"\0\x02\0\x0fTOPOLOGY_CHANGE\0\x0dSTATUS_CHANGE");
        assert_eq!(self.receive().0, 2);
    }

    /// The next event: its kind and what has happened, and the last number of the address.
    fn event(&mut self) -> (String, String, u8) {
        let (opcode, body) = self.receive();
        assert_eq!(opcode, 12);
        let text = |at: usize| {
            let length = usize::from(u16::from_be_bytes([body[at], body[at + 1]]));
            (String::from_utf8(body[at + 2..at + 2 + length].to_vec()).unwrap(), at + 2 + length)
        };
        let (kind, at) = text(0);
        let (what, at) = text(at);
        assert_eq!(body[at], 4, "an IPv4 address");
        (kind, what, body[at + 4])
    }
}

#[test]
fn three_processes_are_a_ring() {
    let directory = tempfile::tempdir().unwrap();
    let mut ring = Ring::start(directory.path(), &[]);
    ring.await_letters(&[0, 1, 2], ["UN", "UN", "UN"]);
    // a node of which drivers have not been told that it is up is not told of as down either
    let begun = Instant::now();
    while ring.nodetool(0, "gossipinfo").matches(":true").count() < NODES {
        assert!(begun.elapsed() < PATIENCE, "{}", ring.nodetool(0, "gossipinfo"));
        std::thread::sleep(Duration::from_millis(100));
    }
    let mut driver = Driver::connect(&ring, 0);
    assert_eq!(driver.count("system.peers_v2"), 2);
    assert_eq!(driver.count("system.peers"), 2);
    assert_eq!(driver.count("system_views.gossip_info"), 3);
    driver.register();

    // killed: nobody is told, the failure detector finds out
    ring.nodes[2] = None;
    ring.await_letters(&[0, 1], ["UN", "UN", "DN"]);
    let status = |what: &str| ("STATUS_CHANGE".to_owned(), what.to_owned(), 3);
    // the news of the start may still be on its way when the driver registers
    let of_start = |what: &str| ["NEW_NODE", "UP"].contains(&what);
    let first = std::iter::repeat_with(|| driver.event()).find(|(_, what, _)| !of_start(what));
    assert_eq!(first, Some(status("DOWN")));
    ring.nodes[2] = Some(ready(ring.spawn(2)));
    ring.await_letters(&[0, 1, 2], ["UN", "UN", "UN"]);
    assert_eq!(driver.event(), status("UP"));
    assert!(ring.nodetool(2, "gossipinfo").contains("STATUS_WITH_PORT"));

    // stopped: the others are told at once, before the process has ended
    ring.stop(1);
    assert_eq!(ring.letters(0), ["UN", "DN", "UN"]);
    assert_eq!(driver.event(), ("STATUS_CHANGE".to_owned(), "DOWN".to_owned(), 2));
}

/// The nodes have process groups of their own, which no signal of the terminal reaches.
#[test]
fn a_ring_ends_with_its_terminal_and_by_ring_down() {
    let directory = tempfile::tempdir().unwrap();
    let addresses = Addresses::new();
    let first = 100 + std::process::id() % 100;
    let node = (format!("127.0.0.{first}"), addresses.port);
    let up = || {
        // the tests may run where hangups are ignored, which programs inherit
        let mut command = Command::new("env");
        command.args(["--default-signal=HUP", env!("CARGO_BIN_EXE_helenus"), "ring", "up", "1", "--memory", "128M"]);
        command.args(["--first", &first.to_string(), "--data-dir"]).arg(directory.path().join("ring"));
        for (key, port) in [("native_transport_port", addresses.port), ("storage_port", addresses.storage_port)] {
            command.args(["--set", &format!("{key}={port}")]);
        }
        let mut ring = Node { process: command.stdout(Stdio::piped()).spawn().unwrap() };
        let mut line = String::new();
        BufReader::new(ring.process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.starts_with("helenus ring ready:"), "{line}");
        assert!(TcpStream::connect(&node).is_ok());
        ring
    };
    let down = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_helenus"));
        command.args(["ring", "down", "--data-dir"]).arg(directory.path().join("ring")).output().unwrap()
    };

    let mut ring = up();
    assert!(Command::new("kill").args(["-HUP", &ring.process.id().to_string()]).status().unwrap().success());
    assert!(ring.process.wait().unwrap().success());
    assert!(TcpStream::connect(&node).is_err());
    let refused = down();
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("no `ring up` runs"), "{refused:?}");

    let mut ring = up();
    let stopped = down();
    assert!(stopped.status.success(), "{stopped:?}");
    assert!(String::from_utf8_lossy(&stopped.stdout).ends_with(" has ended\n"), "{stopped:?}");
    assert!(TcpStream::connect(&node).is_err());
    assert!(ring.process.wait().unwrap().success());
}

/// The directory of a node in another rack is not started.
#[test]
fn what_would_lose_data_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let addresses = Addresses::new();
    let command = |data: &str, extra: &[&str]| {
        let storage_port = format!("storage_port={}", addresses.storage_port);
        let mut command = Command::new(env!("CARGO_BIN_EXE_helenus"));
        command.args(["serve", "--memory", "128M", "--port", "0", "--admin-port", "0", "--set", &storage_port]);
        command.arg("--data-dir").arg(directory.path().join(data)).args(extra);
        command
    };
    let refused = |data: &str, extra: &[&str]| {
        let output = command(data, extra).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8(output.stderr).unwrap()
    };
    let mut first =
        ready(command("old", &["--rack", "r1"]).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap());
    assert!(Command::new("kill").args(["-TERM", &first.process.id().to_string()]).status().unwrap().success());
    assert!(first.process.wait().unwrap().success());
    let said = refused("old", &["--rack", "r2"]);
    assert!(said.contains("Cannot start node if snitch's rack (r2) differs from previous rack (r1)"), "{said}");
}
