//! Several whole nodes (storage, membership, coordinator, replica) on machines of one seed, for the
//! tests of this crate. No server and no CQL: statements are mutations, and what a node has stored
//! is read from its engine.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use env::sim::{DATA, World};
use hints::StoreOptions;
use internode::MessagingVersion;
use rows::codec::encode_mutation;
use rows::live::TombstoneLimits;
use rows::{ColumnData, LiveRows, Mutation, PartitionRange, PartitionStream, ReadCommand, ReadError, WantedRows};
use schema::table::ColumnSpec;
use schema::{
    ColumnKind, KeyspaceMetadata, Replication, Schema, TableFlags, TableId, TableKind, TableMetadata, TableParams,
};
use storage::EngineOptions;
use storage::commitlog::{self, SyncMode};
use types::{Consistency, CqlType};

use crate::coordinator::error::{FailedRead, RequestError};
use crate::dynamic_snitch::DynamicSnitchOptions;
use crate::handoff::HandoffSettings;
use crate::hints::{HintOptions, Hintable};
use crate::identity::{IdentityOptions, local_table};
use crate::membership::JoinSettings;
use crate::node::{Node, Timeouts};
use crate::range_movement_state::MovementSettings;
use crate::replica::read::{ReadFigures, ReadRequest};
use crate::system_rows::{self, SystemRow};
use crate::testing::WINDOW;

/// The longest time that nodes take to see each other up, or one of them down.
const AGREEMENT_MAX: Duration = Duration::from_secs(120);

/// How often nodes forget the latencies of replicas.
pub(crate) const SNITCH_RESET: Duration = Duration::from_secs(60);

/// Nodes of one ring, one for each machine.
pub(crate) struct SimRing {
    pub world: World,
    /// By machine; None: its process has ended.
    nodes: Vec<Option<Arc<Node>>>,
    /// The data center of each.
    centers: Vec<String>,
    /// Bytes of a segment of the commit log.
    segment_size: u32,
    /// Bytes that a mutation may have, of nodes that are started from now on.
    pub mutation_size_max: u32,
    /// Tokens of machines that do not get those of their place.
    pub tokens: BTreeMap<usize, Vec<i64>>,
    /// Host ids of new nodes that take those of others.
    pub host_ids: BTreeMap<usize, [u8; 16]>,
    /// Addresses for drivers of machines that do not have them beside that for nodes.
    pub natives: BTreeMap<usize, SocketAddr>,
    /// The links that are encrypted.
    encryption: links::Scope,
    /// How nodes that are started move ranges: they do not bootstrap unless a test says so.
    pub movements: MovementSettings,
}

impl SimRing {
    /// A ring of new nodes that see each other up, one for each name of a data center. The tokens
    /// are spread evenly, in the order of the machines.
    pub fn new(seed: u64, centers: &[&str]) -> Self {
        Self::of(seed, centers, centers.len(), commitlog::Options::default().segment_size)
    }

    /// A ring of new nodes with these links encrypted.
    pub fn encrypted(seed: u64, centers: &[&str], encryption: links::Scope) -> Self {
        let mut ring = Self::begun(seed, centers, 0);
        ring.encryption = encryption;
        (0..centers.len()).for_each(|machine| ring.start(machine));
        ring.agree();
        ring
    }

    /// The certificates of the nodes; None: no link is encrypted.
    fn encryption(&self, machine: usize) -> Option<links::Encryption> {
        if self.encryption == links::Scope::None {
            return None;
        }
        let options = links::TlsOptions {
            identity: include_str!("../../../links/testdata/tls/node.pem").to_owned(),
            trusted: Some(include_str!("../../../links/testdata/tls/authority.pem").to_owned()),
            require_client_auth: true,
            ..links::TlsOptions::default()
        };
        let env = self.world.env(machine);
        Some(links::Encryption::open(&env, self.encryption, &options, &options).expect("good certificates"))
    }

    /// A ring of which only the first `started` nodes are started.
    pub fn begun(seed: u64, centers: &[&str], started: usize) -> Self {
        Self::of(seed, centers, started, commitlog::Options::default().segment_size)
    }

    /// All of them, with segments of the commit log of a size.
    pub fn with_segments(seed: u64, centers: &[&str], segment_size: u32) -> Self {
        Self::of(seed, centers, centers.len(), segment_size)
    }

    fn of(seed: u64, centers: &[&str], started: usize, segment_size: u32) -> Self {
        let world = World::new(seed, centers.len());
        let nodes = centers.iter().map(|_| None).collect();
        let centers = centers.iter().map(|name| (*name).to_owned()).collect();
        let movements = MovementSettings { bootstraps: false, ..MovementSettings::default() };
        let mut ring = Self {
            world,
            nodes,
            centers,
            segment_size,
            mutation_size_max: commitlog::Options::default().mutation_size_max,
            tokens: BTreeMap::new(),
            host_ids: BTreeMap::new(),
            natives: BTreeMap::new(),
            encryption: links::Scope::None,
            movements,
        };
        (0..started).for_each(|machine| ring.start(machine));
        ring.agree();
        ring
    }

    /// The node of a machine.
    pub fn node(&self, machine: usize) -> &Arc<Node> {
        self.nodes[machine].as_ref().expect("the process lives")
    }

    /// The machines whose processes live.
    pub fn living(&self) -> Vec<usize> {
        (0..self.nodes.len()).filter(|machine| self.nodes[*machine].is_some()).collect()
    }

    /// By which the others know the node of a machine.
    pub fn address(&self, machine: usize) -> SocketAddr {
        SocketAddr::new(self.world.address(machine), 7000)
    }

    /// Starts the node of a machine on what its disk has. It has joined when this returns; the
    /// others may not have seen it yet.
    pub fn start(&mut self, machine: usize) {
        self.try_start(machine).expect("a seed answers");
    }

    /// Starts the node of a machine, which may not join. Err: the reason; its process has ended
    /// then.
    pub fn try_start(&mut self, machine: usize) -> Result<(), String> {
        let node = self.try_open(machine)?;
        let (_, settings) = self.options(machine);
        let joined = self.world.block_on(node.join(settings)).map_err(|error| error.to_string());
        if joined.is_err() {
            drop(node);
            self.kill(machine);
            return joined;
        }
        node.membership().expect("it has joined").set_ready(true);
        self.nodes[machine] = Some(node);
        Ok(())
    }

    /// Starts the node of a machine, which joins beside what the test does.
    pub fn spawn(&mut self, machine: usize) {
        let node = self.try_open(machine).expect("a sound disk opens");
        let (_, settings) = self.options(machine);
        self.nodes[machine] = Some(Arc::clone(&node));
        let join = move || -> std::pin::Pin<Box<dyn Future<Output = ()>>> {
            Box::pin(async move {
                if node.join(settings).await.is_ok() {
                    node.membership().expect("it has joined").set_ready(true);
                }
            })
        };
        drop(self.world.env(machine).tasks.spawn_local_worker("join", Box::new(join)));
    }

    /// The text of `system.local.bootstrapped` of a machine.
    pub fn saved_bootstrap_state(&self, machine: usize) -> Option<String> {
        let engine = &self.node(machine).engine;
        let local = local_table(engine);
        let rows = system_rows::read(engine, &local, None).expect("readable");
        rows.first().and_then(|(_, row)| system_rows::text(&local, row, "bootstrapped"))
    }

    /// Opens what the disk of a machine has; Err: why there is no node on it.
    pub fn try_open(&self, machine: usize) -> Result<Arc<Node>, String> {
        let env = self.world.env(machine);
        let (sync, segment_size, mutation_size_max) =
            (SyncMode::Group(WINDOW), self.segment_size, self.mutation_size_max);
        let capture = commitlog::CaptureOptions {
            directory: std::path::Path::new(DATA).join("cdc_raw"),
            total_space: 1 << 30,
            check_interval: Duration::from_millis(250),
            block_writes: true,
        };
        let commitlog = commitlog::Options {
            sync,
            segment_size,
            mutation_size_max,
            capture: Some(capture),
            ..commitlog::Options::default()
        };
        let options = EngineOptions {
            commitlog,
            tombstone_warn_threshold: 1_000,
            ..EngineOptions::with_small_budgets(std::path::Path::new(DATA))
        };
        let (engine, _) = storage::open(&env, options).expect("a sound disk opens");
        let local = local_table(&engine);
        let row = SystemRow::new(&local, &[b"local"], &[], 1, None);
        let row = row.set("data_center", self.centers[machine].clone()).finish();
        engine.apply(&[row]).expect("written");
        let (identity, _) = self.options(machine);
        let node = Node::open(engine, identity, Timeouts::default()).map_err(|error| error.to_string())?;
        let store = StoreOptions {
            directory: std::path::Path::new(DATA).join("hints"),
            version: hints::Version::V3,
            compression: None,
            settings: hints::Settings::default(),
        };
        let options = HintOptions { store, settings: HandoffSettings::default(), deliveries_max: 2 };
        node.start_hints(options).expect("a sound disk opens");
        Ok(node)
    }

    /// How the node of a machine is started.
    pub fn options(&self, machine: usize) -> (IdentityOptions, JoinSettings) {
        let address = self.address(machine);
        let tokens = self.nodes.len() as i128;
        let token = i128::from(i64::MIN) + (machine as i128 + 1) * ((1 << 64) / tokens) - 1;
        let identity = IdentityOptions {
            initial_tokens: self
                .tokens
                .get(&machine)
                .cloned()
                .unwrap_or(vec![i64::try_from(token).expect("on the ring")]),
            host_id: self.host_ids.get(&machine).copied(),
            takes_place: self.movements.replaces.is_some(),
            native: self.natives.get(&machine).copied().unwrap_or(SocketAddr::new(address.ip(), 9042)),
            joins: true,
            ..super::alone(address, 1)
        };
        let settings = JoinSettings {
            seeds: vec![self.address(0), self.address(1 % self.nodes.len())],
            seed_names: None,
            version: MessagingVersion::V13,
            compression: links::Scope::None,
            encryption: self.encryption(machine),
            links: links::LinkSettings { reserve: 1 << 20, ..Default::default() },
            convict_threshold: 8.0,
            sstable_versions: "bti-da".to_owned(),
            prefers_local: false,
            tells_internal_address: false,
            movements: self.movements,
            dynamic_snitch: Some(DynamicSnitchOptions {
                update_interval: Duration::from_millis(100),
                reset_interval: SNITCH_RESET,
                badness_threshold: 1.0,
            }),
            batch_hosts: Default::default(),
            repairs: Default::default(),
            streams: Default::default(),
            places: Default::default(),
        };
        (identity, settings)
    }

    /// Ends the process of a machine; nobody is told.
    pub fn kill(&mut self, machine: usize) {
        self.world.kill(machine);
        self.nodes[machine] = None;
    }

    /// Ends a machine: its disk loses what was not synced.
    pub fn power_cut(&mut self, machine: usize) {
        self.world.power_cut(machine);
        self.nodes[machine] = None;
    }

    /// Removes what the disk of a machine without a process has.
    pub fn wipe(&self, machine: usize) {
        let disk = self.world.env(machine).disk;
        let names = disk.list_dir(std::path::Path::new(DATA)).expect("a sound disk lists");
        for path in names.iter().map(|entry| std::path::Path::new(DATA).join(&entry.name)) {
            disk.remove_dir_all(&path).or_else(|_| disk.remove_file(&path)).expect("a sound disk removes");
        }
    }

    /// Runs until every node sees those up whose processes live, and no other.
    pub fn agree(&self) {
        let sees = |node: &Arc<Node>| {
            let ring = node.ring();
            let up = |machine: usize| {
                let address = self.address(machine);
                ring.endpoints().iter().any(|endpoint| endpoint.address == address && endpoint.is_up)
            };
            (0..self.nodes.len()).all(|machine| up(machine) == self.nodes[machine].is_some())
        };
        let agreed = self.world.run_until(AGREEMENT_MAX, || self.nodes.iter().flatten().all(sees));
        assert!(agreed, "seed {}: nodes see who is up", self.world.seed());
    }

    /// Creates a keyspace on every node, with the tables `t (k int, c int, v int, PRIMARY KEY (k,
    /// c))` and `counters (k int PRIMARY KEY, n counter)` under the same ids everywhere.
    pub fn create_keyspace(&self, name: &str, class: &str, options: &[(&str, &str)]) {
        for machine in self.living() {
            self.create_keyspace_through(machine, name, class, options);
        }
    }

    /// Creates a keyspace as `create_keyspace` does, through one node, which tells the others.
    pub fn create_keyspace_through(&self, machine: usize, name: &str, class: &str, options: &[(&str, &str)]) {
        let decide = with_keyspace(name, class, options);
        let changed = self.world.block_on(self.node(machine).change_schema(decide));
        changed.expect("stored").map(drop).expect("not refused");
    }

    /// Creates a keyspace as `create_keyspace` does, on some of the nodes, which tell nobody of it.
    pub fn create_keyspace_untold(&self, machines: &[usize], name: &str, class: &str, options: &[(&str, &str)]) {
        for machine in machines {
            let node = self.node(*machine);
            let changed = storage::schema_change::change(&node.engine, with_keyspace(name, class, options));
            assert!(changed.expect("stored").is_ok(), "not refused");
            node.renew_ring();
        }
    }

    /// A row of `t`.
    pub fn row(&self, keyspace: &str, k: i32, c: i32, v: i32, timestamp: i64) -> Mutation {
        let (k, c) = (k.to_be_bytes(), c.to_be_bytes());
        let row = SystemRow::new(&table(keyspace, "t"), &[&k], &[&c], timestamp, None);
        row.set("v", v.to_be_bytes().to_vec()).finish()
    }

    /// An increment of `counters`.
    pub fn increment(&self, keyspace: &str, k: i32, by: i64, timestamp: i64) -> Mutation {
        let table = table(keyspace, "counters");
        let mut mutation = SystemRow::new(&table, &[&k.to_be_bytes()], &[], timestamp, None).finish();
        let row = mutation.updates[0].rows.first_mut().expect("one row");
        row.liveness = rows::Liveness::EMPTY;
        row.add_increment(table.regulars[0].id, timestamp, by);
        mutation
    }

    /// Writes through a node as coordinator, and waits for what comes of it.
    pub fn write(&self, through: usize, mutations: Vec<Mutation>, level: Consistency) -> Result<(), RequestError> {
        let node = Arc::clone(self.node(through));
        self.world.block_on(async {
            match node.write(mutations, level).await? {
                Some(wait) => wait.await,
                None => Ok(()),
            }
        })
    }

    /// Applies mutations on one machine alone, as if no other replica had been reached.
    pub fn apply_alone(&self, machine: usize, mutations: &[Mutation]) {
        self.node(machine).engine.apply(mutations).expect("applied");
    }

    /// A read of `t` without limits.
    pub fn select(&self, keyspace: &str, range: PartitionRange) -> ReadCommand {
        let now = self.world.env(0).clock.now_seconds();
        ReadCommand { now, ..ReadCommand::whole(&table(keyspace, "t"), range) }
    }

    /// A read of the partition `k` of `t` without limits.
    pub fn select_key(&self, keyspace: &str, k: i32) -> ReadCommand {
        let key = system_rows::partition_key(&table(keyspace, "t"), &[&k.to_be_bytes()]);
        self.select(keyspace, PartitionRange::Key(key))
    }

    /// The live rows (k, c, v) that a node as coordinator reads, as many as the first command
    /// wants.
    pub fn read(
        &self,
        through: usize,
        commands: Vec<ReadCommand>,
        level: Consistency,
    ) -> Result<Vec<(i32, i32, i32)>, FailedRead<ReadError>> {
        self.search(through, commands, None, level)
    }

    /// The live rows (k, c, v) that a node as coordinator reads among those that are looked for.
    /// The caller checks the conditions once more, as a statement does.
    pub fn search(
        &self,
        through: usize,
        commands: Vec<ReadCommand>,
        wanted_rows: Option<Arc<WantedRows>>,
        level: Consistency,
    ) -> Result<Vec<(i32, i32, i32)>, FailedRead<ReadError>> {
        self.world.block_on(self.search_at(through, commands, wanted_rows, level))
    }

    /// [`Self::search`], beside other things.
    pub async fn search_at(
        &self,
        through: usize,
        commands: Vec<ReadCommand>,
        wanted_rows: Option<Arc<WantedRows>>,
        level: Consistency,
    ) -> Result<Vec<(i32, i32, i32)>, FailedRead<ReadError>> {
        let node = Arc::clone(self.node(through));
        let first = commands.first().expect("a read has a command").clone();
        let number = |bytes: &[u8]| i32::from_be_bytes(bytes.try_into().expect("an int"));
        let build = move |stream: &mut dyn PartitionStream| {
            let mut live = LiveRows::new(stream, Arc::clone(&first.table), first.now, TombstoneLimits::NONE);
            let (mut rows, mut last) = (Vec::new(), None);
            while let Some(partition) = live.next_partition()? {
                assert_ne!(last, Some(partition.key.clone()), "a partition comes once");
                last = Some(partition.key.clone());
                let here = rows.len().saturating_add(first.limits.per_partition as usize);
                while rows.len() < here.min(first.limits.rows as usize)
                    && let Some(row) = live.next_row()?
                {
                    let clustering = row.clustering.iter().flatten().next().cloned().unwrap_or_default();
                    let value = match row.columns.first() {
                        Some(ColumnData::Simple(cell)) => number(&cell.value),
                        _ => 0,
                    };
                    rows.push((number(&partition.key.key), number(&clustering), value));
                }
                if rows.len() >= first.limits.rows as usize {
                    break;
                }
            }
            Ok(rows)
        };
        let request = ReadRequest { wanted_rows, ..ReadRequest::of(commands) };
        node.read(request, level, &ReadFigures::default(), build).await
    }

    /// The rows (c, v) of a partition of `t` that a machine has stored.
    pub fn stored(&self, machine: usize, keyspace: &str, k: i32) -> Vec<(i32, i32)> {
        let rows = self.rows_of(machine, keyspace, "t", k);
        let number = |bytes: &[u8]| i32::from_be_bytes(bytes.try_into().expect("an int"));
        rows.iter().map(|(clustering, value)| (number(clustering), number(value))).collect()
    }

    /// The value of a counter that a machine has stored.
    pub fn counted(&self, machine: usize, keyspace: &str, k: i32) -> i64 {
        let rows = self.rows_of(machine, keyspace, "counters", k);
        rows.first().map_or(0, |(_, value)| rows::counter::total(value))
    }

    /// How many live rows of a built-in table a machine has.
    pub fn count(&self, machine: usize, keyspace: &str, name: &str) -> usize {
        let engine = &self.node(machine).engine;
        let schema = engine.schema();
        let table = schema.table(keyspace, name).expect("a built-in table");
        system_rows::read(engine, table, None).expect("readable").len()
    }

    fn rows_of(&self, machine: usize, keyspace: &str, name: &str, k: i32) -> Vec<(Bytes, Bytes)> {
        let table = table(keyspace, name);
        let key = system_rows::partition_key(&table, &[&k.to_be_bytes()]);
        let rows = system_rows::read(&self.node(machine).engine, &table, Some(key)).expect("readable");
        rows.into_iter()
            .map(|(_, row)| {
                let clustering = row.clustering.iter().flatten().next().cloned().unwrap_or_default();
                let value = row.columns.first().map(|column| match column {
                    ColumnData::Simple(cell) => cell.value.clone(),
                    ColumnData::Complex(_) => panic!("no collections here"),
                });
                (clustering, value.unwrap_or_default())
            })
            .collect()
    }
}

/// The change that creates a keyspace of these tests.
fn with_keyspace(
    name: &str,
    class: &str,
    options: &[(&str, &str)],
) -> impl FnOnce(&Schema) -> Result<Schema, ()> + Send + use<> {
    let options = options.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let class = format!("org.apache.cassandra.locator.{class}");
    let keyspace = KeyspaceMetadata {
        name: name.to_owned(),
        durable_writes: true,
        replication: Replication { class, options },
        tables: [table(name, "t"), table(name, "counters")].map(|table| (table.name.clone(), table)).into(),
        user_types: BTreeMap::new(),
        function_rows: Vec::new(),
        functions: Default::default(),
        aggregates: Default::default(),
        is_virtual: false,
    };
    move |schema| Ok(schema.with_keyspace(keyspace))
}

/// A mutation that may become a hint.
pub(crate) fn hintable(mutation: &Mutation) -> Hintable {
    let mut payload = Vec::new();
    encode_mutation(&mut payload, mutation);
    Hintable::new(mutation, payload.into())
}

/// A table of these tests.
pub(crate) fn table(keyspace: &str, name: &str) -> Arc<TableMetadata> {
    let column = |name: &str, kind, ty| ColumnSpec { name: name.to_owned(), kind, position: 0, ty, reversed: false };
    let is_counter = name == "counters";
    let specs = match is_counter {
        true => vec![
            column("k", ColumnKind::PartitionKey, CqlType::Int),
            column("n", ColumnKind::Regular, CqlType::Counter),
        ],
        false => vec![
            column("k", ColumnKind::PartitionKey, CqlType::Int),
            column("c", ColumnKind::Clustering, CqlType::Int),
            column("v", ColumnKind::Regular, CqlType::Int),
        ],
    };
    let flags = TableFlags { counter: is_counter, ..TableFlags::COMPOUND };
    Arc::new(TableMetadata::new(
        TableId::of_system_table(keyspace, name),
        keyspace,
        name,
        TableKind::Regular,
        flags,
        TableParams::default(),
        specs,
        BTreeMap::new(),
        None,
    ))
}

/// Nodes find each other, see who has died, and see the node come back.
#[test]
fn a_ring_forms_and_sees_who_is_gone() {
    let mut ring = SimRing::new(1, &["dc1", "dc1", "dc2"]);
    assert_eq!(ring.node(0).ring().data_centers().into_keys().collect::<Vec<_>>(), ["dc1", "dc2"]);
    ring.kill(2);
    ring.agree();
    ring.start(2);
    ring.agree();
    ring.create_keyspace("ks", "SimpleStrategy", &[("replication_factor", "3")]);
    assert_eq!(ring.stored(2, "ks", 1), []);
}
