//! Whole nodes of one ring, and a client that has several requests under way on one connection.

use std::net::SocketAddr;
use std::time::Duration;

use admin::verbs::AuthCacheKind;
use bytes::Bytes;
use config::AuthCache;
use env::Stream;
use env::sim::World;
use server::running::{RunningNode, start_driven};
use sim::starting::{self, PORT};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use types::DecoratedKey;

/// Machines with nodes; the one behind them has the client.
const NODES: usize = 3;
/// The longest time that nodes take to see each other up.
const AGREEMENT_MAX: Duration = Duration::from_secs(120);

/// Attempts, one a second, at what takes a while: the default superuser is made when the nodes know
/// each other.
const ATTEMPTS_MAX: u32 = 60;

/// Opcodes of the protocol.
const ERROR: u8 = 0;
const STARTUP: u8 = 1;
const READY: u8 = 2;
const AUTHENTICATE: u8 = 3;
const QUERY: u8 = 7;
const RESULT: u8 = 8;
const PREPARE: u8 = 9;
const EXECUTE: u8 = 10;
const AUTH_RESPONSE: u8 = 15;
const AUTH_SUCCESS: u8 = 16;

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
        Self::with(seed, &[])
    }

    /// A ring whose nodes have these keys besides their own.
    fn with(seed: u64, keys: &[&str]) -> Self {
        let world = World::new(seed, NODES + 1);
        let nodes = (0..NODES).map(|machine| start(&world, machine, keys)).collect();
        let ring = Self { nodes, world };
        let sees_all = |node: &RunningNode| {
            node.services.node.ring().endpoints().iter().filter(|endpoint| endpoint.is_up).count() == NODES
        };
        assert!(ring.world.run_until(AGREEMENT_MAX, || ring.nodes.iter().all(sees_all)), "seed {seed}: nodes agree");
        ring
    }

    /// A connection of the client to a node, with the answer to STARTUP.
    fn open(&self, machine: usize) -> (Client<'_>, u8) {
        let address = SocketAddr::new(self.world.address(machine), PORT);
        let env = self.world.env(NODES);
        let stream = self.world.block_on(async { env.network.connect(address).await }).unwrap();
        let mut client = Client { world: &self.world, stream, is_tracing: false };
        let options = [&1_u16.to_be_bytes()[..], &short_text("CQL_VERSION"), &short_text("3.0.0")].concat();
        let (_, answer, _) = client.ask(STARTUP, options);
        (client, answer)
    }

    /// A connection to the first node, where nobody logs in.
    fn connect(&self) -> Client<'_> {
        let (client, answer) = self.open(0);
        assert_eq!(answer, READY);
        client
    }

    /// A connection of a user whose password is his name, once the ring knows him.
    fn log_in(&self, machine: usize, user: &str) -> Client<'_> {
        for _ in 0..ATTEMPTS_MAX {
            let (mut client, answer) = self.open(machine);
            assert_eq!(answer, AUTHENTICATE);
            let (_, answer, _) = client.ask(AUTH_RESPONSE, long_text(&format!("\0{user}\0{user}")));
            if answer == AUTH_SUCCESS {
                return client;
            }
            self.world.run_for(Duration::from_secs(1));
        }
        panic!("{user} cannot log in")
    }

    /// Whether a machine alone has a partition.
    fn has_alone(&self, machine: usize, keyspace: &str, key: &[u8]) -> bool {
        let ring = self.nodes[0].services.node.ring();
        let token = DecoratedKey::new(Bytes::copy_from_slice(key)).token;
        let replicas = ring.placement(keyspace).unwrap().natural(token).to_vec();
        let address = self.world.address(machine);
        replicas.iter().all(|id| ring.endpoint(*id).address.ip() == address)
    }

    /// A name whose rows in `system_auth` are on a machine alone.
    fn role_of(&self, machine: usize) -> String {
        let mut names = (0..1000).map(|number| format!("app_{number}"));
        names.find(|name| self.has_alone(machine, "system_auth", name.as_bytes())).unwrap()
    }
}

fn start(world: &World, machine: usize, keys: &[&str]) -> RunningNode {
    let mut settings = starting::ring_settings(world, machine).to_vec();
    // a write waits for the log of its node, too
    settings.extend(["commitlog_sync=group", "commitlog_sync_group_window=10ms"].map(str::to_owned));
    settings.extend(keys.iter().map(|key| (*key).to_owned()));
    let started = start_driven(starting::options(world, machine, &settings), &starting::drive(world));
    started.unwrap_or_else(|error| panic!("seed {}: {error}", world.seed()))
}

/// A connection of version 4.
struct Client<'w> {
    world: &'w World,
    stream: Box<dyn Stream>,
    /// Requests are to be traced.
    is_tracing: bool,
}

impl Client<'_> {
    /// Sends requests with one write, each with its stream id.
    fn send(&mut self, requests: &[(i16, u8, Vec<u8>)]) {
        let mut bytes = Vec::new();
        for (stream, opcode, body) in requests {
            bytes.extend([4, if self.is_tracing { 2 } else { 0 }]);
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
        let (opcode, answer) = self.try_query(text);
        assert_eq!(opcode, RESULT, "{text}: {}", String::from_utf8_lossy(&answer));
    }

    /// The opcode and the body of an answer.
    fn try_query(&mut self, text: &str) -> (u8, Vec<u8>) {
        self.query_at(text, ONE)
    }

    fn query_at(&mut self, text: &str, level: u16) -> (u8, Vec<u8>) {
        let body = [&long_text(text)[..], &level.to_be_bytes(), &[0_u8]].concat();
        let (_, opcode, answer) = self.ask(QUERY, body);
        (opcode, answer)
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

/// Requests of a user do not wait while what is known of him is read again behind
/// `roles_update_interval`; what was read is in force soon after.
#[test]
fn nobody_waits_for_roles_that_are_only_due() {
    const FAR: usize = NODES - 1;
    const SYSTEM: &str = "SELECT key FROM system.local";
    let keys = [
        "authenticator=PasswordAuthenticator",
        "authorizer=CassandraAuthorizer",
        "roles_validity=600s",
        "roles_update_interval=1s",
        "permissions_validity=600s",
        "permissions_update_interval=1s",
    ];
    let ring = Ring::with(2, &keys);
    let mut operator = ring.log_in(1, "cassandra");
    operator.query("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 3}");
    operator.query("CREATE TABLE k.t (id int PRIMARY KEY)");
    let user = ring.role_of(FAR);
    operator.query(&format!("CREATE ROLE {user} WITH PASSWORD = '{user}' AND LOGIN = true"));
    let mut client = ring.log_in(0, &user);
    client.query(SYSTEM);
    ring.world.run_for(Duration::from_secs(3));
    // the node that has his rows is not known to be down yet
    ring.world.network().partition(&[FAR]);
    let begun = ring.world.elapsed();
    client.query(SYSTEM);
    let took = ring.world.elapsed() - begun;
    assert!(took < Duration::from_millis(500), "{took:?}");
    ring.world.network().heal();
    let select = "SELECT * FROM k.t";
    assert_eq!(client.try_query(select).0, ERROR, "he may not read the table");
    // links may need a moment until they are as they were
    let soon = |client: &mut Client<'_>, text: &str| {
        let is_done = (0..ATTEMPTS_MAX).any(|_| {
            ring.world.run_for(Duration::from_secs(1));
            client.try_query(text).0 == RESULT
        });
        assert!(is_done, "{text}");
    };
    soon(&mut operator, &format!("GRANT SELECT ON KEYSPACE k TO {user}"));
    soon(&mut client, select);
}

/// The trace of a write says of the replicas that their commit log has it, and of no other node.
#[test]
fn a_trace_names_the_nodes_that_have_the_write() {
    const LINE: &[u8] = b"Appending to commitlog";
    let ring = Ring::new(3);
    let mut client = ring.connect();
    client.query("CREATE KEYSPACE one WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    client.query("CREATE TABLE one.t (id int PRIMARY KEY)");
    // through the first node, which has the second of the two keys
    for (count, machine) in [(1, NODES - 1), (2, 0)] {
        let key = (0..1000_i32).find(|key| ring.has_alone(machine, "one", &key.to_be_bytes())).unwrap();
        client.is_tracing = true;
        client.query(&format!("INSERT INTO one.t (id) VALUES ({key})"));
        client.is_tracing = false;
        // each node writes its own events
        ring.world.run_for(Duration::from_secs(5));
        let (opcode, events) = client.query_at("SELECT activity FROM system_traces.events", ALL);
        assert_eq!(opcode, RESULT, "{}", String::from_utf8_lossy(&events));
        let found = events.windows(LINE.len()).filter(|window| *window == LINE).count();
        assert_eq!(found, count, "{}", String::from_utf8_lossy(&events));
    }
}

/// DESCRIBE CLUSTER names every node that holds a range of the keyspace, not its owner alone.
#[test]
fn describe_cluster_names_all_replicas() {
    let ring = Ring::new(4);
    let mut client = ring.connect();
    client.query("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 3}");
    client.query("USE k");
    let (opcode, answer) = client.try_query("DESCRIBE CLUSTER");
    let answer = String::from_utf8_lossy(&answer);
    assert_eq!(opcode, RESULT, "{answer}");
    let tokens = ring.nodes[0].services.node.ring().tokens().count();
    for machine in 0..NODES {
        let name = format!("/{}:", ring.world.address(machine));
        assert_eq!(answer.matches(&name).count(), tokens, "{name} in {answer}");
    }
}

/// A node alone streams nothing, and shows its operator the throughputs of its configuration.
#[test]
fn a_node_alone_has_the_stream_throughputs_of_its_configuration() {
    let world = World::new(5, 1);
    let settings = ["stream_throughput_outbound=100MiB/s".to_owned()];
    let started = start_driven(starting::options(&world, 0, &settings), &starting::drive(&world));
    let node = started.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(node.services.node.stream_settings().throughput, 100 << 20);
}

/// `system_views.settings` has the caches of `system_auth` as nodetool has changed them.
#[test]
fn changed_caches_of_roles_are_shown() {
    let ring = Ring::with(6, &["authenticator=PasswordAuthenticator", "credentials_update_interval=1s"]);
    let mut operator = ring.log_in(0, "cassandra");
    let auth = ring.nodes[0].services.auth.as_ref().unwrap();
    let change = |kind: AuthCacheKind, validity: u64| {
        let before = auth.cache_settings(kind).unwrap();
        auth.set_cache(kind, AuthCache { validity: Duration::from_secs(validity), ..before });
    };
    change(AuthCacheKind::Credentials, 7);
    change(AuthCacheKind::NetworkPermissions, 9);
    for (name, value) in [
        ("credentials_validity", "7000ms"),
        ("credentials_validity_in_ms", "7000"),
        ("credentials_update_interval", "1s"),
        ("roles_validity", "9000ms"),
        ("permissions_validity", "2s"),
    ] {
        let select = format!("SELECT value FROM system_views.settings WHERE name = '{name}'");
        let (opcode, answer) = operator.try_query(&select);
        assert_eq!(opcode, RESULT, "{}", String::from_utf8_lossy(&answer));
        assert!(answer.ends_with(&long_text(value)), "{name}: {}", String::from_utf8_lossy(&answer));
    }
    let before = auth.cache_settings(AuthCacheKind::Credentials).unwrap();
    auth.set_cache(AuthCacheKind::Credentials, AuthCache { update_interval: None, ..before });
    let select = "SELECT value FROM system_views.settings WHERE name = 'credentials_update_interval'";
    assert!(operator.try_query(select).1.ends_with(&(-1_i32).to_be_bytes()), "not set any more");
}
