//! The subjects that matter: Helenus, the program's own code from the connection layer down to the
//! commit log, and clients that speak the native protocol to it over the simulated network. One
//! node, a ring of three, or two data centers of three nodes each with a long way between them.
//!
//! Clients make writes and deletions of versioned keys with their own timestamps, conditional
//! writes and serial reads of contended keys, increments of counters, logged batches over two
//! tables. In a ring each node has a copy of each key, clients connect to any node, and read and
//! write at QUORUM, over data centers at EACH_QUORUM too; conditional writes and serial reads are
//! agreed on by Paxos v1, v2 or both. The judges say which properties must hold; after the last
//! trouble the ring comes to rest, is repaired, and the nodes themselves are looked at.
//!
//! Not checked here: the admin port (its server needs a runtime of the real machine). A ring whose
//! nodes come and go is [`topology`], one that repairs itself is [`schedule`]. In a ring clocks are
//! wrong by a few hundred milliseconds at most: the messages of a node whose clock is behind by
//! more than a write may take are too old for all others.

mod client;
mod inspection;
mod running_nodes;
pub mod schedule;
#[cfg(test)]
mod tests;
pub mod topology;
mod wire;
mod workload;

use std::sync::atomic::Ordering;
use std::time::Duration;

use env::Random;
use env::sim::{Link, World};

use crate::faults;
use crate::judges::{Finding, Rulings, agreement, atomic, bounds, converged, counted, equal, linearizable};
use crate::report::{Report, Settings};
use running_nodes::RunningNodes;
use workload::Observations;

/// Number of machines with clients.
const CLIENTS: usize = 2;
/// Longest time that clients may take to end after all troubles are over.
const END_MAX: Duration = Duration::from_secs(1200);

/// The time that batches, hints and schemas need at most to come to their end when all troubles are
/// over: the record of a batch is looked at every ten seconds, and a change of the schema whose
/// push was lost is asked for sixty seconds after gossip has told of it.
const SETTLE: Duration = Duration::from_secs(90);

/// The nodes of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Number of nodes. They are the first machines.
    pub servers: usize,
    /// Number of data centers. The nodes are divided among them, the first nodes in the first one.
    pub centers: usize,
    /// Number of nodes that are members at the beginning. Each key has as many copies.
    pub members: usize,
}

/// A node that is alone.
pub const NODE: Layout = Layout { servers: 1, centers: 1, members: 1 };
/// A ring.
pub const RING: Layout = Layout { servers: 3, centers: 1, members: 3 };
/// A ring over two data centers.
pub const CENTERS: Layout = Layout { servers: 6, centers: 2, members: 6 };

/// The way from a data center to the other.
const FAR: Link =
    Link { delay_min_micros: 20_000, delay_max_micros: 45_000, loss_percent: 0, bytes_per_second: 4 << 20 };

/// Clients that do something else than they write down, for tests of the judges: their history
/// looks like that of a node with the defect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientDefect {
    /// An increment that was acknowledged is sent again, and both count as one: as with a node
    /// that applies the record of an increment twice.
    CountTwice,
    /// A batch is sent as two statements: as with a node that forgets the rest of a batch when it
    /// dies.
    SplitBatch,
}

impl Layout {
    /// The data center of a machine. Machines with clients are assigned to data centers in turn.
    pub(crate) fn center(&self, machine: usize) -> usize {
        match machine.checked_sub(self.servers) {
            Some(client) => client % self.centers,
            None => machine * self.centers / self.servers,
        }
    }

    /// Makes the links between data centers slow.
    fn lay_links(&self, world: &World) {
        let machines = self.servers + CLIENTS;
        for (from, to) in (0..machines).flat_map(|from| (0..machines).map(move |to| (from, to))) {
            if self.center(from) != self.center(to) {
                world.network().set_lasting_link(from, to, FAR);
            }
        }
    }
}

/// Runs nodes on a seed, and judges what was seen.
pub fn run(settings: Settings, layout: Layout) -> Report {
    run_with(settings, layout, None)
}

/// [`run`] with clients that have a defect.
pub fn run_with(settings: Settings, layout: Layout, defect: Option<ClientDefect>) -> Report {
    let world = World::new(settings.seed, layout.servers + CLIENTS);
    layout.lay_links(&world);
    let dice = world.dice();
    let observations = Observations::of(layout);
    let mut running = RunningNodes::start(&world, layout, &observations);
    workload::prepare(&world, &observations);
    // a ring takes its time to stand
    let end = world.elapsed() + Duration::from_secs(settings.seconds);
    workload::start_all(&world, CLIENTS, &observations, end, defect);
    while world.elapsed() < end {
        world.run_for(Duration::from_millis(dice.below(2_000)));
        let kind = settings.kinds.draw(&dice).filter(|_| (running.happened.len() as u64) < settings.steps);
        if let Some(kind) = kind {
            running.inject(&dice, kind);
        }
    }
    faults::end_faults(&world, running.machines());
    let done = world.run_until(END_MAX, || observations.working.load(Ordering::Relaxed) == 0);
    assert!(done, "seed {}: clients come to their end", settings.seed);
    if layout.servers > 1 {
        world.run_for(SETTLE);
    }
    workload::read_all_keys(&world, &observations);
    let rulings = judge(&world, &observations, &mut running);
    let (operations, happened) = (observations.history.operations().len(), std::mem::take(&mut running.happened));
    drop(running);
    Report { seed: settings.seed, operations, trace: world.trace(), happened, rare: Vec::new(), rulings }
}

fn judge(world: &World, observations: &Observations, running: &mut RunningNodes<'_>) -> Rulings {
    let (versioned, contended): (Vec<_>, Vec<_>) =
        observations.history.operations().into_iter().partition(|operation| operation.key >= workload::VERSIONED_FROM);
    let mut rulings = Rulings::default();
    rulings.add_versioned(&versioned, &running.ends);
    rulings.add("linearizable", linearizable::check(&contended));
    rulings.add("counted", counted::check(&observations.counters()));
    rulings.add("atomic", atomic::check(&observations.batches()));
    let mut queues = bounds::of_network(&world.network().figures());
    queues.extend(running.queues.bounds());
    rulings.add("bounds", bounds::check(&queues));
    if observations.layout.servers > 1 {
        rulings.add("agreement", agreement::check(&inspection::schema_versions(running)));
        rulings.add("converged", converged::check(&inspection::views(running)));
        rulings.add("equal", after_repair(world, observations, running));
    }
    rulings
}

/// Repairs everything, and compares the rows of the nodes.
fn after_repair(world: &World, observations: &Observations, running: &RunningNodes<'_>) -> Vec<Finding> {
    match inspection::repair(world, running) {
        Ok(()) => equal::check(&workload::contents(world, observations)),
        Err(what) => vec![Finding { judge: "equal", what: format!("the ring cannot be repaired: {what}") }],
    }
}
