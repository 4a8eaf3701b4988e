//! The statements of clients, and what is known of their outcome.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use env::Random;
use env::sim::{SimRandom, World};

use super::client::Client;
use super::wire::{Answer, EACH_QUORUM, NODE_LOCAL, ONE, QUORUM, SERIAL};
use super::{ClientDefect, Layout};
use crate::history::{Action, History, Outcome};
use crate::judges::atomic::Batches;
use crate::judges::counted::Counted;

/// Number of clients on a machine.
const PER_MACHINE: usize = 4;
/// Number of keys of conditional writes.
const CONTENDED_KEYS: u64 = 2;
/// First key with a single writer.
pub(crate) const VERSIONED_FROM: u64 = 100;
const COUNTERS: u64 = 3;
/// Bytes of text in a batch. They make sure that a peer that stands still fills the queue to it.
const PAD_SIZE: usize = 8 << 10;

/// The tables. Each node is told to make them, with the same ids. The keys of `first` and `second`
/// differ, so that a batch of both is of two partitions, which are two mutations.
const TABLES: [&str; 5] = [
    "versioned (k int PRIMARY KEY, v bigint)",
    "contended (k int PRIMARY KEY, v bigint)",
    "counters (k int PRIMARY KEY, n counter)",
    "first (id bigint PRIMARY KEY, pad text)",
    "second (id bigint, tag text, PRIMARY KEY ((id, tag)))",
];

/// The keyspace of all tables.
pub(super) const KEYSPACE: &str = "sim";

/// The columns of each table that are compared between nodes; the first is the key.
const CONTENTS: [(&str, &str); 5] = [
    ("versioned", "k, v, writetime(v)"),
    ("contended", "k, v"),
    ("counters", "k, n"),
    ("first", "id"),
    ("second", "id"),
];

/// The name of a data center, by its number.
pub(super) fn center_name(number: usize) -> String {
    format!("dc{}", number + 1)
}

/// The statements of the schema, in which each node has a copy of each partition.
fn schema(layout: Layout) -> Vec<String> {
    let copies = layout.members / layout.centers;
    let replication = match layout.centers {
        1 => format!("{{'class': 'SimpleStrategy', 'replication_factor': {copies}}}"),
        centers => {
            let factors: String = (0..centers).map(|number| format!(", '{}': {copies}", center_name(number))).collect();
            format!("{{'class': 'NetworkTopologyStrategy'{factors}}}")
        }
    };
    let keyspace = format!("CREATE KEYSPACE IF NOT EXISTS sim WITH replication = {replication}");
    let table = |(number, table): (usize, &str)| {
        format!("CREATE TABLE IF NOT EXISTS sim.{table} WITH id = 00000000-0000-4000-8000-00000000000{number}")
    };
    std::iter::once(keyspace).chain(TABLES.into_iter().enumerate().map(table)).collect()
}

/// The observations of clients; clones share them.
#[derive(Clone)]
pub(crate) struct Observations {
    pub layout: Layout,
    pub history: History,
    counters: Arc<Mutex<BTreeMap<u64, Counted>>>,
    batches: Arc<Mutex<Batches>>,
    /// Number of clients that are still at work.
    pub working: Arc<AtomicUsize>,
}

impl Observations {
    /// Observations before the first operation.
    pub fn of(layout: Layout) -> Self {
        let (history, counters, batches) = (History::default(), Arc::default(), Arc::default());
        Self { layout, history, counters, batches, working: Arc::default() }
    }

    /// The level of reads and writes. EACH_QUORUM of two data centers is also a QUORUM of all
    /// nodes.
    fn level(&self, random: &dyn Random) -> u16 {
        match self.layout {
            Layout { servers: 1, .. } => ONE,
            Layout { centers: 1, .. } => QUORUM,
            _ if random.below(2) == 0 => EACH_QUORUM,
            _ => QUORUM,
        }
    }

    pub fn counters(&self) -> Vec<(u64, Counted)> {
        lock(&self.counters).iter().map(|(key, counted)| (*key, *counted)).collect()
    }

    pub fn batches(&self) -> Batches {
        lock(&self.batches).clone()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs a client's work on a machine; `observations.working` counts it.
fn spawn<F: Future<Output = ()> + 'static>(
    world: &World,
    machine: usize,
    observations: &Observations,
    work: impl FnOnce(Client) -> F + Send + 'static,
) {
    let (env, working, servers) = (world.env(machine), observations.working.clone(), observations.layout.servers);
    let own = env.clone();
    working.fetch_add(1, Ordering::Relaxed);
    let body = move || async move {
        work(Client::new(own, servers)).await;
        working.fetch_sub(1, Ordering::Relaxed);
    };
    env.tasks.spawn_local_worker("client", Box::new(move || Box::pin(body())));
}

fn wait(world: &World, observations: &Observations) {
    let done = world.run_until(Duration::from_secs(600), || observations.working.load(Ordering::Relaxed) == 0);
    assert!(done, "seed {}: without troubles a client comes to its end", world.seed());
}

/// Creates the tables.
pub(super) fn prepare(world: &World, observations: &Observations) {
    for server in 0..observations.layout.members {
        let schema = schema(observations.layout);
        spawn(world, observations.layout.servers, observations, move |mut client| async move {
            client.connect_only_to(server);
            for statement in schema {
                client.ask_until_answered(&statement, ONE).await;
            }
        });
        wait(world, observations);
    }
}

/// Starts all clients; each works until `end` on the timeline.
pub(super) fn start_all(
    world: &World,
    machines: usize,
    observations: &Observations,
    end: Duration,
    defect: Option<ClientDefect>,
) {
    for number in 0..machines * PER_MACHINE {
        let (of_client, all) = (observations.clone(), (machines * PER_MACHINE) as u64);
        let worker = move |client| Worker { client, observations: of_client, number, all, last: 0, defect }.work(end);
        spawn(world, observations.layout.servers + number / PER_MACHINE, observations, worker);
    }
}

/// Reads every key once more.
pub(super) fn read_all_keys(world: &World, observations: &Observations) {
    let of_client = observations.clone();
    spawn(world, observations.layout.servers, observations, move |client| async move {
        let mut worker = Worker { client, observations: of_client, number: usize::MAX, all: 0, last: 0, defect: None };
        let versioned: BTreeSet<u64> = worker.observations.history.operations().iter().map(|one| one.key).collect();
        for key in versioned {
            worker.client.connect().await;
            worker.operate(key, Action::Read).await;
        }
        let level = worker.observations.level(&*worker.client.env.random);
        for row in worker.client.ask_until_answered("SELECT k, n FROM sim.counters", level).await {
            let [Some(key), Some(value)] = row[..] else { panic!("two numbers are expected, not {row:?}") };
            lock(&worker.observations.counters).entry(key as u64).or_default().value = value as u64;
        }
        for (place, table) in ["first", "second"].into_iter().enumerate() {
            let rows = worker.client.ask_until_answered(&format!("SELECT id FROM sim.{table}"), level).await;
            let numbers = rows.into_iter().flatten().flatten().map(|number| number as u64).collect();
            lock(&worker.observations.batches).tables[place] = numbers;
        }
    });
    wait(world, observations);
}

/// Rows by table and key.
pub(super) type Rows = BTreeMap<(&'static str, i64), Vec<Option<i64>>>;

/// The rows that each node has on its own.
pub(super) fn contents(world: &World, observations: &Observations) -> Vec<Rows> {
    let of_node = |server: usize| {
        let contents: Arc<Mutex<Rows>> = Arc::default();
        let found = Arc::clone(&contents);
        spawn(world, observations.layout.servers, observations, move |mut client| async move {
            client.connect_only_to(server);
            for (table, columns) in CONTENTS {
                let rows = client.ask_until_answered(&format!("SELECT {columns} FROM sim.{table}"), NODE_LOCAL).await;
                let keyed = |row: Vec<Option<i64>>| Some(((table, (*row.first()?)?), row));
                lock(&found).extend(rows.into_iter().filter_map(keyed));
            }
        });
        wait(world, observations);
        std::mem::take(&mut *lock(&contents))
    };
    (0..observations.layout.servers).map(of_node).collect()
}

/// The names of the tables.
pub(super) fn table_names() -> impl Iterator<Item = &'static str> {
    CONTENTS.into_iter().map(|(name, _)| name)
}

/// Sets the gc_grace of all tables, seconds.
pub(super) fn set_grace(world: &World, observations: &Observations, grace: i64) {
    spawn(world, observations.layout.servers, observations, move |mut client| async move {
        client.connect_only_to(0);
        for table in table_names() {
            client.ask_until_answered(&format!("ALTER TABLE sim.{table} WITH gc_grace_seconds = {grace}"), ONE).await;
        }
    });
    wait(world, observations);
}

/// The time for which a node is cut off, so that no message reaches it later.
const CUT_OFF: Duration = Duration::from_secs(15);
/// Number of rows that are written or deleted while a node is cut off.
const WRITES_WITHOUT_A_NODE: u64 = 6;

/// Writes and deletes rows at ONE while a node is cut off. `rows`: the rows that have to be there
/// in the end.
pub(super) fn write_without_a_node(
    world: &World,
    observations: &Observations,
    cut_off: usize,
    keys: u64,
    rows: &mut BTreeMap<i64, i64>,
) {
    let server = (cut_off + 1) % observations.layout.servers;
    let mut statements = Vec::new();
    for _ in 0..WRITES_WITHOUT_A_NODE {
        let (key, version) = (world.dice().below(keys) as i64, world.elapsed().as_micros() as i64 + 1);
        let version = version + statements.len() as i64;
        statements.push(match world.dice().below(3) {
            0 => {
                rows.remove(&key);
                format!("DELETE FROM sim.versioned USING TIMESTAMP {version} WHERE k = {key}")
            }
            _ => {
                rows.insert(key, version);
                format!("INSERT INTO sim.versioned (k, v) VALUES ({key}, {version}) USING TIMESTAMP {version}")
            }
        });
    }
    world.network().partition(&[cut_off]);
    spawn(world, observations.layout.servers, observations, move |mut client| async move {
        client.connect_only_to(server);
        for statement in statements {
            client.ask_until_answered(&statement, ONE).await;
        }
    });
    wait(world, observations);
    world.run_for(CUT_OFF);
    world.network().heal();
}

/// The versioned rows that each node has on its own.
pub(super) fn versioned(world: &World, observations: &Observations) -> Vec<BTreeMap<i64, i64>> {
    let of_node = |rows: Rows| {
        let of_row = |((table, key), row): ((&str, i64), Vec<Option<i64>>)| {
            Some((key, (*row.get(1)?)?)).filter(|_| table == "versioned")
        };
        rows.into_iter().filter_map(of_row).collect()
    };
    contents(world, observations).into_iter().map(of_node).collect()
}

/// Asks a node for a change of the schema, once. Gives the change in words.
pub(super) fn alter(world: &World, observations: &Observations, dice: &SimRandom, number: usize) -> String {
    let server = dice.below(observations.layout.servers as u64) as usize;
    let text = match dice.below(3) {
        0 => format!("CREATE TABLE IF NOT EXISTS sim.later{number} (k int PRIMARY KEY, v int)"),
        1 => format!("ALTER TABLE sim.contended WITH comment = 'number {number}'"),
        _ => format!("ALTER TABLE sim.versioned ADD extra{number} int"),
    };
    let words = format!("{server} is asked for {text}");
    spawn(world, observations.layout.servers, observations, move |mut client| async move {
        client.connect_only_to(server);
        client.connect().await;
        // nobody waits for the answer: the change is in force in the end, or it is not
        let _ = client.ask(&text, ONE).await;
    });
    words
}

struct Worker {
    client: Client,
    observations: Observations,
    number: usize,
    /// Number of clients.
    all: u64,
    /// The last number that this client has used for a value or version.
    last: u64,
    defect: Option<ClientDefect>,
}

/// The outcome of a statement.
enum StatementOutcome {
    Rows(Vec<Vec<Option<i64>>>),
    /// The statement certainly changed nothing.
    Refused,
    Unknown,
}

impl Worker {
    async fn work(mut self, end: Duration) {
        let now = |worker: &Worker| worker.client.env.now().as_nanos();
        while Duration::from_nanos(now(&self)) < end {
            self.client.connect().await;
            self.last += 1;
            let draw = |bound| self.client.env.random.below(bound);
            let (own, other) = (VERSIONED_FROM + self.number as u64, VERSIONED_FROM + draw(self.all.max(1)));
            let contended = draw(CONTENDED_KEYS);
            match draw(12) {
                0 | 1 => drop(self.operate(own, Action::Write(self.last)).await),
                2 => drop(self.operate(own, Action::Delete(self.last)).await),
                3 | 4 => drop(self.operate(other, Action::Read).await),
                5 => drop(self.operate(contended, Action::Read).await),
                6..=8 => self.compare_and_set(contended).await,
                9 => self.count().await,
                _ => self.batch().await,
            }
            let pause = self.client.env.random.below(60);
            self.client.env.sleep(Duration::from_millis(pause)).await;
        }
    }

    async fn ask(&mut self, text: &str, level: u16) -> StatementOutcome {
        match self.client.ask(text, level).await {
            Some(Answer::Rows(rows)) => StatementOutcome::Rows(rows),
            // overloaded, bootstrapping, unavailable: refused before anything was done
            Some(Answer::Error(0x1000..=0x1003, _)) => StatementOutcome::Refused,
            Some(Answer::Error(code, said)) => {
                assert!(code < 0x2000, "{text} is right, but: {said}");
                StatementOutcome::Unknown
            }
            None => StatementOutcome::Unknown,
        }
    }

    /// A number that no other client uses.
    fn unique(&self) -> u64 {
        (self.number as u64 + 1) << 32 | self.last
    }

    async fn compare_and_set(&mut self, key: u64) {
        // what is there now is likely to be there in a moment, unless somebody else changes it
        let Some(from) = self.operate(key, Action::Read).await else { return };
        let to = self.unique();
        self.client.connect().await;
        self.operate(key, Action::CompareAndSet { from, to }).await;
    }

    /// Carries an operation out. Gives the value that a read showed; None: it is no read, or has
    /// failed.
    async fn operate(&mut self, key: u64, action: Action) -> Option<Option<u64>> {
        let begun = self.client.env.now().as_nanos();
        let number = self.observations.history.begin(self.number, key, action, begun);
        let is_versioned = key >= VERSIONED_FROM;
        let (text, level) = statement(key, action, is_versioned, self.observations.level(&*self.client.env.random));
        let came = self.ask(&text, level).await;
        let outcome = match (action, came) {
            (Action::Read, StatementOutcome::Rows(rows)) => Outcome::Value(first_value(&rows)),
            (Action::Read, _) | (_, StatementOutcome::Refused) => Outcome::Failed,
            (_, StatementOutcome::Unknown) => Outcome::Unknown,
            (Action::CompareAndSet { .. }, StatementOutcome::Rows(rows)) => of_condition(&rows),
            (_, StatementOutcome::Rows(_)) => Outcome::Done,
        };
        self.observations.history.end(number, outcome, self.client.env.now().as_nanos());
        match outcome {
            Outcome::Value(value) => Some(value),
            _ => None,
        }
    }

    async fn count(&mut self) {
        let key = self.client.env.random.below(COUNTERS);
        let text = format!("UPDATE sim.counters SET n = n + 1 WHERE k = {key}");
        let level = self.observations.level(&*self.client.env.random);
        let came = self.ask(&text, level).await;
        if matches!(came, StatementOutcome::Rows(_)) && self.defect == Some(ClientDefect::CountTwice) {
            self.ask(&text, level).await;
        }
        let mut counters = lock(&self.observations.counters);
        let counted = counters.entry(key).or_default();
        match came {
            StatementOutcome::Rows(_) => counted.acknowledged += 1,
            StatementOutcome::Unknown => counted.unknown += 1,
            StatementOutcome::Refused => {}
        }
    }

    async fn batch(&mut self) {
        let id = self.unique();
        lock(&self.observations.batches).sent.insert(id);
        let level = self.observations.level(&*self.client.env.random);
        let first = format!("INSERT INTO sim.first (id, pad) VALUES ({id}, '{}')", "x".repeat(PAD_SIZE));
        let second = format!("INSERT INTO sim.second (id, tag) VALUES ({id}, 'second')");
        if self.defect == Some(ClientDefect::SplitBatch) {
            self.ask(&first, level).await;
            self.client.connect().await;
            self.ask(&second, level).await;
            return;
        }
        let text = format!("BEGIN BATCH {first}; {second}; APPLY BATCH");
        if let StatementOutcome::Rows(_) = self.ask(&text, level).await {
            lock(&self.observations.batches).acknowledged.insert(id);
        }
    }
}

/// The statement of an operation, and its level. Timestamps of a versioned key are its versions. A
/// change of a contended key is decided at SERIAL, and written at the usual level.
fn statement(key: u64, action: Action, is_versioned: bool, level: u16) -> (String, u16) {
    match action {
        Action::Read if is_versioned => (format!("SELECT v FROM sim.versioned WHERE k = {key}"), level),
        Action::Read => (format!("SELECT v FROM sim.contended WHERE k = {key}"), SERIAL),
        Action::Write(version) => {
            (format!("INSERT INTO sim.versioned (k, v) VALUES ({key}, {version}) USING TIMESTAMP {version}"), level)
        }
        Action::Delete(version) => {
            (format!("DELETE FROM sim.versioned USING TIMESTAMP {version} WHERE k = {key}"), level)
        }
        Action::CompareAndSet { from: None, to } => {
            (format!("INSERT INTO sim.contended (k, v) VALUES ({key}, {to}) IF NOT EXISTS"), level)
        }
        Action::CompareAndSet { from: Some(from), to } => {
            (format!("UPDATE sim.contended SET v = {to} WHERE k = {key} IF v = {from}"), level)
        }
    }
}

fn first_value(rows: &[Vec<Option<i64>>]) -> Option<u64> {
    rows.first().and_then(|row| *row.first()?).map(|value| value as u64)
}

/// The outcome of a conditional statement: the first column says whether it was applied, the last
/// is the value that was there.
fn of_condition(rows: &[Vec<Option<i64>>]) -> Outcome {
    match rows.first().map(Vec::as_slice) {
        Some([Some(1), ..]) => Outcome::Done,
        Some([Some(0)]) => Outcome::Refused(None),
        Some([Some(0), .., value]) => Outcome::Refused(value.map(|value| value as u64)),
        other => panic!("a conditional statement answers with one row, not {other:?}"),
    }
}
