//! The subjects that matter: Helenus, the program's own code from the connection layer down to the
//! commit log, and clients that speak the native protocol to it over the simulated network. One
//! node, or a ring of three.
//!
//! What clients do: writes and deletions of versioned keys with their own timestamps, conditional
//! writes and serial reads of contended keys, increments of counters, logged batches over two
//! tables. In the ring each key has three copies, clients connect to any node, and read and write
//! at QUORUM; conditional writes and serial reads are agreed on by Paxos. What must hold is what
//! the judges say.
//!
//! Not checked here: schema changes under faults, the admin port (its server needs a runtime of the
//! real machine). In the ring clocks are wrong by a few hundred milliseconds at most: a node whose
//! clock is behind by more than a write may take is one that nobody hears.

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
use server::running::{RunningNode, StartError, StartOptions};

use crate::faults::{self, Machines};
use crate::judges::{Finding, atomic, bounds, counted, linearizable, of_versioned};
use crate::report::{Report, Settings};
use workload::Seen;

/// Where clients connect.
pub(crate) const PORT: u16 = 9042;
/// Machines with clients.
const CLIENTS: usize = 2;
/// How long clients may take to come to their end after all troubles are over.
const END_MAX: Duration = Duration::from_secs(1200);

/// Settings that keep files small, so that segments and memtables are full within a run.
const SETTINGS: [&str; 3] =
    ["commitlog_segment_size=1MiB", "commitlog_total_space=4MiB", "compaction_throughput=0MiB/s"];

/// The time that batches and hints need at most to come to their end when all troubles are over:
/// the record of a batch is looked at every ten seconds.
const SETTLE: Duration = Duration::from_secs(60);

/// Attempts of a node to join its ring. Each takes up to a minute, and troubles are over before.
const JOINS_MAX: usize = 5;

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

/// Runs so many nodes, which are the first machines, on a seed, and judges what was seen.
pub fn run(settings: Settings, servers: usize) -> Report {
    run_among(settings, servers, None)
}

/// [`run`] of one node with clients that are careless.
pub fn run_with(settings: Settings, careless: Option<Careless>) -> Report {
    run_among(settings, 1, careless)
}

fn run_among(settings: Settings, servers: usize, careless: Option<Careless>) -> Report {
    let world = World::new(settings.seed, servers + CLIENTS);
    let machines = Machines { servers, clients: CLIENTS };
    let dice = world.dice();
    let seen = Seen::of(servers);
    let mut nodes: Vec<Option<RunningNode>> =
        (0..servers).map(|machine| Some(start(&world, machine, servers))).collect();
    workload::prepare(&world, &seen);
    // a ring takes its time to stand
    let end = world.elapsed() + Duration::from_secs(settings.seconds);
    workload::start_all(&world, CLIENTS, &seen, end, careless);
    let mut ends = Vec::new();
    while world.elapsed() < end {
        world.run_for(Duration::from_millis(dice.below(2_000)));
        let ended = faults::trouble(&world, &dice, machines);
        if !ended.is_empty() {
            ended.iter().for_each(|machine| drop(nodes[*machine].take()));
            ends.push(world.elapsed().as_nanos() as u64);
            ended.into_iter().for_each(|machine| nodes[machine] = Some(start(&world, machine, servers)));
        }
    }
    faults::quiet(&world, machines);
    let done = world.run_until(END_MAX, || seen.working.load(Ordering::Relaxed) == 0);
    assert!(done, "seed {}: clients come to their end", settings.seed);
    if servers > 1 {
        world.run_for(SETTLE);
    }
    workload::look_at_the_end(&world, &seen);
    let findings = judge(&world, &seen, &ends);
    drop(nodes);
    Report { seed: settings.seed, operations: seen.history.operations().len(), trace: world.trace(), findings }
}

/// Starts a node on what its disk has, as `helenus serve` does. One that finds nobody of its ring,
/// because the network is bad, is started again.
fn start(world: &World, machine: usize, servers: usize) -> RunningNode {
    for _ in 0..JOINS_MAX {
        match try_start(world, machine, servers) {
            Ok(node) => return node,
            Err(StartError::Join(_)) => {
                world.kill(machine);
                world.network().heal();
            }
            Err(error) => panic!("seed {}: a sound disk starts, but: {error}", world.seed()),
        }
    }
    panic!("seed {}: a node finds its ring over a sound network", world.seed())
}

/// The settings of a node: of the ring, where there are several.
fn settings_of(world: &World, machine: usize, servers: usize) -> Vec<String> {
    let mut settings: Vec<String> = SETTINGS.iter().map(|setting| (*setting).to_owned()).collect();
    if servers > 1 {
        let address = world.address(machine);
        let seeds = format!("{},{}", world.address(0), world.address(1));
        settings.extend([
            format!("seed_provider={{class_name: SimpleSeedProvider, parameters: {{seeds: '{seeds}'}}}}"),
            format!("listen_address={address}"),
            format!("rpc_address={address}"),
            "auto_bootstrap=false".to_owned(),
            "cluster_name=sim".to_owned(),
        ]);
    }
    settings
}

fn try_start(world: &World, machine: usize, servers: usize) -> Result<RunningNode, StartError> {
    let settings = settings_of(world, machine, servers);
    let config = Config::load(None, &settings, false).expect("the settings are keys of cassandra.yaml");
    let options = StartOptions {
        env: world.env(machine),
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
    server::running::start_driven(options, &|joining| {
        world.block_on(joining);
        Ok(())
    })
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
