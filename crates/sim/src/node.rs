//! The subject that matters: one Helenus node, the program's own code from the connection layer
//! down to the commit log, and clients that speak the native protocol to it over the simulated
//! network.
//!
//! What clients do: writes and deletions of versioned keys with their own timestamps, conditional
//! writes and serial reads of contended keys, increments of counters, logged batches over two
//! tables. What must hold is what the judges say.
//!
//! Not checked here: schema changes under faults, several nodes (there is no ring yet), the admin
//! port (its server needs a runtime of the real machine).

mod client;
mod wire;
mod workload;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use config::Config;
use env::Random;
use env::sim::{DATA, World};
use server::memory::MemoryBudget;
use server::running::{RunningNode, StartOptions};

use crate::faults::{self, Machines};
use crate::judges::{Finding, atomic, bounds, counted, linearizable, of_versioned};
use crate::report::{Report, Settings};
use workload::Seen;

/// Where clients connect.
pub(crate) const PORT: u16 = 9042;
/// The machine of the node.
pub(crate) const NODE: usize = 0;
/// Machines with clients.
const CLIENTS: usize = 2;
/// How long clients may take to come to their end after all troubles are over.
const END_MAX: Duration = Duration::from_secs(1200);

/// Settings that keep files small, so that segments and memtables are full within a run.
const SETTINGS: [&str; 3] =
    ["commitlog_segment_size=1MiB", "commitlog_total_space=4MiB", "compaction_throughput=0MiB/s"];

/// Clients that do something else than they write down, to see the judges find it: their history is
/// that of a node that does it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Careless {
    /// An increment that was acknowledged is sent again, and both count as one: a node that applies
    /// the record of an increment twice.
    CountTwice,
    /// A batch is sent as two statements: a node that forgets the rest of a batch when it dies.
    SplitBatch,
}

/// Runs the node on a seed, and judges what was seen.
pub fn run(settings: Settings) -> Report {
    run_with(settings, None)
}

/// [`run`] with clients that are careless.
pub fn run_with(settings: Settings, careless: Option<Careless>) -> Report {
    let world = World::new(settings.seed, 1 + CLIENTS);
    let machines = Machines { servers: 1, clients: CLIENTS };
    let dice = world.dice();
    let seen = Seen::default();
    let mut node = start(&world, settings.seed);
    workload::prepare(&world, &seen);
    workload::start_all(&world, CLIENTS, &seen, settings.seconds, careless);
    let end = Duration::from_secs(settings.seconds);
    let mut ends = Vec::new();
    while world.elapsed() < end {
        world.run_for(Duration::from_millis(dice.below(2_000)));
        if !faults::trouble(&world, &dice, machines).is_empty() {
            drop(node);
            ends.push(world.elapsed().as_nanos() as u64);
            node = start(&world, settings.seed);
        }
    }
    faults::quiet(&world, machines);
    let done = world.run_until(END_MAX, || seen.working.load(Ordering::Relaxed) == 0);
    assert!(done, "seed {}: clients come to their end", settings.seed);
    workload::look_at_the_end(&world, &seen);
    let findings = judge(&world, &seen, &ends);
    drop(node);
    Report { seed: settings.seed, operations: seen.history.operations().len(), trace: world.trace(), findings }
}

/// Starts the node on what its disk has, as `helenus serve` does.
fn start(world: &World, seed: u64) -> RunningNode {
    let settings: Vec<String> = SETTINGS.iter().map(|setting| (*setting).to_owned()).collect();
    let config = Config::load(None, &settings, false).expect("the settings are keys of cassandra.yaml");
    let options = StartOptions {
        env: world.env(NODE),
        data_dir: Path::new(DATA).join("helenus"),
        schema_file: None,
        read_only: false,
        config,
        listen: SocketAddr::from(([0, 0, 0, 0], PORT)),
        admin: None,
        set_level: None,
        log: Arc::default(),
        workers: Some(2),
        shards: Some(2),
        // memtables so small that a run flushes them
        descriptors: None,
        memory: MemoryBudget { memtables: 256 << 10, ..MemoryBudget::of(64 << 20) },
    };
    server::running::start(options).unwrap_or_else(|error| panic!("seed {seed}: a sound disk starts, but: {error}"))
}

/// `ends`: when the node's processes had ended.
fn judge(world: &World, seen: &Seen, ends: &[u64]) -> Vec<Finding> {
    let (versioned, contended): (Vec<_>, Vec<_>) =
        seen.history.operations().into_iter().partition(|operation| operation.key >= workload::VERSIONED_FROM);
    let mut findings = of_versioned(&versioned, ends);
    findings.extend(linearizable::check(&contended));
    findings.extend(counted::check(&seen.counters()));
    findings.extend(atomic::check(&seen.batches()));
    findings.extend(bounds::check(&bounds::of_network(&world.network().figures())));
    findings
}
