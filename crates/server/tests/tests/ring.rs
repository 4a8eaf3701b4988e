//! Whole nodes of one ring, and a client that has several requests under way on one connection.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use config::Config;
use env::Stream;
use env::sim::{DATA, World};
use server::memory::MemoryBudget;
use server::running::{FirstPassword, RunningNode, StartOptions, start_driven};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Machines with nodes; the one behind them has the client.
const NODES: usize = 3;
/// Where clients connect.
const PORT: u16 = 9042;
/// The longest time that nodes take to see each other up.
const AGREEMENT_MAX: Duration = Duration::from_secs(120);

/// Opcodes of the protocol.
const ERROR: u8 = 0;
const STARTUP: u8 = 1;
const READY: u8 = 2;
const QUERY: u8 = 7;
const RESULT: u8 = 8;
const PREPARE: u8 = 9;
const EXECUTE: u8 = 10;

/// Consistency levels.
const ONE: u16 = 1;
const ALL: u16 = 5;

/// A ring of nodes that see each other up.
struct Ring {
    nodes: Vec<RunningNode>,
    /// Dropped behind the nodes, which run on it.
    world: World,
}

impl Ring {
    fn new(seed: u64) -> Self {
        let world = World::new(seed, NODES + 1);
        let nodes = (0..NODES).map(|machine| start(&world, machine)).collect();
        let ring = Self { nodes, world };
        let sees_all = |node: &RunningNode| {
            node.services.node.ring().endpoints().iter().filter(|endpoint| endpoint.is_up).count() == NODES
        };
        assert!(ring.world.run_until(AGREEMENT_MAX, || ring.nodes.iter().all(sees_all)), "seed {seed}: nodes agree");
        ring
    }

    /// A connection of the client to the first node.
    fn connect(&self) -> Client<'_> {
        let address = SocketAddr::new(self.world.address(0), PORT);
        let env = self.world.env(NODES);
        let stream = self.world.block_on(async { env.network.connect(address).await }).unwrap();
        let mut client = Client { world: &self.world, stream };
        let options = [&1_u16.to_be_bytes()[..], &short_text("CQL_VERSION"), &short_text("3.0.0")].concat();
        assert_eq!(client.ask(STARTUP, options).1, READY);
        client
    }
}

fn start(world: &World, machine: usize) -> RunningNode {
    let address = world.address(machine);
    let seeds = format!("{},{}", world.address(0), world.address(1));
    let settings = [
        format!("seed_provider={{class_name: SimpleSeedProvider, parameters: {{seeds: '{seeds}'}}}}"),
        format!("listen_address={address}"),
        format!("rpc_address={address}"),
        "auto_bootstrap=false".to_owned(),
        "cluster_name=sim".to_owned(),
        // a write waits for the log of its node, too
        "commitlog_sync=group".to_owned(),
        "commitlog_sync_group_window=10ms".to_owned(),
    ];
    let options = StartOptions {
        env: world.env(machine),
        data_dir: Path::new(DATA).join("helenus"),
        schema_file: None,
        read_only: false,
        config: Config::load(None, &settings, false).unwrap(),
        listen: SocketAddr::from(([0, 0, 0, 0], PORT)),
        admin: None,
        set_level: None,
        log: Arc::default(),
        workers: Some(1),
        shards: Some(1),
        memory: MemoryBudget::of(64 << 20),
        descriptors: None,
        first_password: FirstPassword::default(),
    };
    let started = start_driven(options, &|joining| {
        world.block_on(joining);
        Ok(())
    });
    started.unwrap_or_else(|error| panic!("seed {}: {error}", world.seed()))
}

/// A connection of version 4.
struct Client<'w> {
    world: &'w World,
    stream: Box<dyn Stream>,
}

impl Client<'_> {
    /// Sends requests with one write, each with its stream id.
    fn send(&mut self, requests: &[(i16, u8, Vec<u8>)]) {
        let mut bytes = Vec::new();
        for (stream, opcode, body) in requests {
            bytes.extend([4, 0]);
            bytes.extend(stream.to_be_bytes());
            bytes.push(*opcode);
            bytes.extend(u32::try_from(body.len()).unwrap().to_be_bytes());
            bytes.extend(body);
        }
        let stream = &mut self.stream;
        self.world.block_on(async { stream.write_all(&bytes).await }).unwrap();
    }

    /// The next answer: its stream id, its opcode and its body.
    fn receive(&mut self) -> (i16, u8, Vec<u8>) {
        let stream = &mut self.stream;
        self.world.block_on(async {
            let mut header = [0; 9];
            stream.read_exact(&mut header).await.unwrap();
            let [_, _, high, low, opcode, size @ ..] = header;
            let mut body = vec![0; u32::from_be_bytes(size) as usize];
            stream.read_exact(&mut body).await.unwrap();
            (i16::from_be_bytes([high, low]), opcode, body)
        })
    }

    fn ask(&mut self, opcode: u8, body: Vec<u8>) -> (i16, u8, Vec<u8>) {
        self.send(&[(1, opcode, body)]);
        self.receive()
    }

    fn query(&mut self, text: &str) {
        let body = [&long_text(text)[..], &ONE.to_be_bytes(), &[0_u8]].concat();
        let (_, opcode, answer) = self.ask(QUERY, body);
        assert_eq!(opcode, RESULT, "{text}: {}", String::from_utf8_lossy(&answer));
    }

    /// The id of a statement, as EXECUTE has it.
    fn prepare(&mut self, text: &str) -> Vec<u8> {
        let (_, opcode, answer) = self.ask(PREPARE, long_text(text));
        assert_eq!(opcode, RESULT, "{text}: {}", String::from_utf8_lossy(&answer));
        // behind the kind of the result
        let size = usize::from(u16::from_be_bytes([answer[4], answer[5]]));
        answer[4..6 + size].to_vec()
    }
}

fn short_text(text: &str) -> Vec<u8> {
    [&u16::try_from(text.len()).unwrap().to_be_bytes()[..], text.as_bytes()].concat()
}

fn long_text(text: &str) -> Vec<u8> {
    [&u32::try_from(text.len()).unwrap().to_be_bytes()[..], text.as_bytes()].concat()
}

/// The body of an EXECUTE without values.
fn execute(id: &[u8], level: u16) -> Vec<u8> {
    [id, &level.to_be_bytes()[..], &[0_u8]].concat()
}

/// A write that waits for a replica which cannot be reached does not hold up the answers of writes
/// behind it on the same connection.
#[test]
fn a_slow_replica_holds_up_no_other_write() {
    let ring = Ring::new(1);
    let mut client = ring.connect();
    client.query("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 3}");
    client.query("CREATE TABLE k.t (id int PRIMARY KEY, v int)");
    let id = client.prepare("INSERT INTO k.t (id, v) VALUES (1, 2)");
    // the node is not known to be down yet
    ring.world.network().partition(&[NODES - 1]);
    client.send(&[(1, EXECUTE, execute(&id, ALL)), (2, EXECUTE, execute(&id, ONE))]);
    let (stream, opcode, _) = client.receive();
    assert_eq!((stream, opcode), (2, RESULT));
    let (stream, opcode, body) = client.receive();
    assert_eq!((stream, opcode), (1, ERROR));
    assert_eq!(body[..4], 0x1100_i32.to_be_bytes(), "the write at ALL has timed out");
}
