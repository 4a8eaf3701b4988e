//! A ring of three simulated nodes, and a fourth machine that loads SSTables of Cassandra into it.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)] // the fixtures are read as any program does

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bulk::{
    Access, GraceChange, LoadResult, Options, Planned, TableName, Throttle, WantedKeyspace, WantedTable, Watch,
};
use env::sim::{DATA, World};
use env::{Env, LocalFuture, LocalFutureFactory};
use server::running::{RunningNode, start_driven};
use sim::starting::{self, PORT};
use sstable::Descriptor;

const NODES: usize = 3;
const TABLE: &str = "comp_pk_ck";
/// Bytes of a node's memtables: so few that it flushes.
const MEMTABLES: u64 = 256 << 10;
/// Rows of the table.
const ROWS: usize = 180;

struct Bench {
    world: Arc<World>,
    _nodes: Vec<RunningNode>,
}

impl Bench {
    /// A ring with the keyspace and the table, and the SSTables of a version on the loader's disk.
    fn new(seed: u64) -> Self {
        let world = Arc::new(World::new(seed, NODES + 1));
        let nodes = (0..NODES).map(|machine| start(&world, machine)).collect();
        let bench = Self { world, _nodes: nodes };
        bench.world.run_for(Duration::from_secs(30));
        let keyspace = "CREATE KEYSPACE fx WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 2}";
        let schema = std::fs::read_to_string(fixture().join("schema.cql")).unwrap();
        let table: String = schema.lines().filter(|line| !line.starts_with("--")).collect::<Vec<_>>().join("\n");
        for statement in [keyspace, table.trim_end().trim_end_matches(';')] {
            let (access, statement) = (bench.access(), statement.to_owned());
            bench.on_loader(move |env| {
                Box::pin(async move { access.open(&env).await.unwrap().execute(&statement).await.unwrap() })
            });
        }
        bench
    }

    fn access(&self) -> Access {
        let nodes = (0..NODES).map(|machine| self.world.address(machine).to_string()).collect();
        Access { nodes, port: PORT, login: None, tls: None }
    }

    /// Runs a future on the loader's machine.
    fn on_loader<T: Send + 'static>(
        &self,
        work: impl FnOnce(Env) -> std::pin::Pin<Box<dyn Future<Output = T>>> + Send + 'static,
    ) -> T {
        let env = self.world.env(NODES);
        let (tell, told) = tokio::sync::oneshot::channel();
        let of_thread = env.clone();
        let make: LocalFutureFactory =
            Box::new(move || -> LocalFuture { Box::pin(async move { drop(tell.send(work(of_thread).await)) }) });
        let worker = env.tasks.spawn_local_worker("load", make);
        let answer = self.world.block_on(told).unwrap();
        worker.join().unwrap();
        answer
    }

    fn load(&self, version: &str, connections_per_host: usize, watch: Arc<dyn Watch>) -> Result<LoadResult, String> {
        let sstables = self.copied(version);
        let options = Options {
            access: self.access(),
            keyspace: "fx".to_owned(),
            table: TABLE.to_owned(),
            storage_port: None,
            internode_tls: None,
            ignored: Vec::new(),
            connections_per_host,
            throttle: Throttle::default(),
        };
        self.on_loader(move |env| Box::pin(async move { bulk::run(&env, options, sstables, watch).await }))
    }

    /// The fixture's SSTables, on the simulated disk of the loader.
    fn copied(&self, version: &str) -> Vec<Descriptor> {
        let (disk, to) = (self.world.env(NODES).disk, Path::new(DATA).join(version));
        disk.create_dir_all(&to).unwrap();
        let mut found = Vec::new();
        for entry in std::fs::read_dir(fixture().join(version)).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            let Some((descriptor, Some(component))) = Descriptor::parse(&to, &name) else { continue };
            disk.create(&to.join(&name)).unwrap().write_all(&std::fs::read(&path).unwrap()).unwrap();
            if component == sstable::Component::Data {
                found.push(descriptor);
            }
        }
        found
    }

    /// How many rows the ring has.
    fn rows(&self) -> usize {
        let access = self.access();
        let answer = self.on_loader(|env| {
            Box::pin(async move { access.open(&env).await.unwrap().ask(&format!("SELECT * FROM fx.{TABLE}")).await })
        });
        answer.unwrap().rows.len()
    }
}

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/fixtures").join(TABLE)
}

fn start(world: &World, machine: usize) -> RunningNode {
    let mut settings = starting::ring_settings(world, machine).to_vec();
    settings.push("num_tokens=4".to_owned());
    // version 13 of messages in one ring of two
    let mode = if world.seed().is_multiple_of(2) { "NONE" } else { "CASSANDRA_4" };
    settings.push(format!("storage_compatibility_mode={mode}"));
    let mut options = starting::options(world, machine, &settings);
    options.memory.memtables = MEMTABLES;
    start_driven(options, &starting::drive(world)).unwrap()
}

/// Takes note of what was planned and sent.
#[derive(Default)]
struct Noted(Mutex<(Vec<Planned>, u64)>);

impl Watch for Noted {
    fn planned(&self, plan: &[Planned]) {
        self.0.lock().unwrap().0 = plan.to_vec();
    }

    fn sent(&self, _peer: SocketAddr, bytes: u64) {
        self.0.lock().unwrap().1 += bytes;
    }
}

#[test]
fn every_version_comes_to_its_replicas_in_either_version_of_messages() {
    for (seed, version) in [(1, "nb"), (2, "nb"), (4, "da")] {
        let bench = Bench::new(seed);
        let noted = Arc::new(Noted::default());
        let loaded = bench.load(version, 2, Arc::clone(&noted) as Arc<dyn Watch>).unwrap();
        assert!(loaded.failures().next().is_none(), "seed {seed}: {loaded:?}");
        let (planned, sent) = noted.0.lock().unwrap().clone();
        assert_eq!(planned.iter().map(|planned| planned.bytes).sum::<u64>(), sent, "seed {seed}");
        assert_eq!(planned.len(), NODES);
        assert_eq!(bench.rows(), ROWS, "seed {seed}");
    }
}

#[test]
fn what_a_ring_lacks_of_a_schema_is_made_once() {
    let bench = Bench::new(8);
    let create = "CREATE KEYSPACE fx WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}";
    let wanted = WantedKeyspace { name: "fx".to_owned(), create: create.to_owned() };
    let statements = [
        "CREATE TYPE fx.place (n int)",
        "CREATE TABLE fx.made (k int PRIMARY KEY, v int, at frozen<place>)",
        "CREATE INDEX made_v ON fx.made (v)",
        "CREATE MATERIALIZED VIEW fx.seen AS SELECT * FROM fx.made WHERE k IS NOT NULL AND v IS NOT NULL PRIMARY KEY (v, k)",
    ];
    let table = |name: &str, statements: &[&str]| {
        let (keyspace, text) = ("fx".to_owned(), statements.join(";\n"));
        WantedTable { keyspace, name: name.to_owned(), text }
    };
    let tables = [table("made", &statements[..3]), table("seen", &[statements[0], statements[3]])];
    for (count, expected) in [(1, 3), (2, 1), (2, 0)] {
        let (access, keyspace, tables) = (bench.access(), wanted.clone(), tables[..count].to_vec());
        let made = bench.on_loader(move |env| {
            Box::pin(async move { bulk::make_schema(&env, &access, &[keyspace], &tables).await })
        });
        assert_eq!(made, Ok(expected));
    }
    // deletions of a new table stay until its loader says that all is there, whoever made the table
    let of_made = ("fx".to_owned(), "made".to_owned());
    let of_roles = ("system_auth".to_owned(), "roles".to_owned());
    let grace = |of: &TableName| {
        let access = bench.access();
        let graces = bench.on_loader(move |env| Box::pin(async move { bulk::graces(&env, &access).await }));
        graces.unwrap().get(of).copied()
    };
    let change = |change: GraceChange| {
        let (access, tables) = (bench.access(), BTreeSet::from([of_roles.clone(), of_made.clone()]));
        bench
            .on_loader(move |env| Box::pin(async move { bulk::set_graces(&env, &access, &tables, change).await }))
            .unwrap();
    };
    assert_eq!(grace(&of_made), Some(864_000 + bulk::RAISE));
    let of_old = ("fx".to_owned(), TABLE.to_owned());
    assert_eq!(grace(&of_old), Some(864_000), "a table that was there stays as it was");
    for (asked, expected) in [
        (GraceChange::Raise, 864_000 + bulk::RAISE),
        (GraceChange::SetBack, 864_000),
        (GraceChange::SetBack, 864_000),
        (GraceChange::Raise, 864_000 + bulk::RAISE),
    ] {
        change(asked);
        assert_eq!(grace(&of_made), Some(expected), "{asked:?}");
        assert_eq!(grace(&of_roles), Some(7_776_000), "nobody may alter a built-in table");
    }
}

/// Cuts a node off as soon as bytes flow.
struct Cutting(Arc<World>);

impl Watch for Cutting {
    fn planned(&self, _plan: &[Planned]) {
        self.0.network().partition(&[2]);
    }
}

#[test]
fn a_node_that_is_cut_off_is_told_of_and_the_load_is_repeated() {
    let bench = Bench::new(6);
    let loaded = bench.load("da", 1, Arc::new(Cutting(Arc::clone(&bench.world)))).unwrap();
    let failed: Vec<_> = loaded.failures().map(|end| end.planned.peer.ip()).collect();
    assert_eq!(failed, [bench.world.address(2)], "{loaded:?}");
    bench.world.network().heal();
    bench.world.run_for(Duration::from_secs(60));
    let again = bench.load("da", 1, Arc::new(Noted::default())).unwrap();
    assert!(again.failures().next().is_none(), "{again:?}");
    assert_eq!(bench.rows(), ROWS);
}
