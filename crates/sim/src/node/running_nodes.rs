//! The nodes of a run: how they are started, and the troubles that only whole nodes have.

use std::collections::BTreeMap;
use std::time::Duration;

use cluster::operations::gossip;
use config::Place;
use env::Random;
use env::defects::{Defect, is_on};
use env::sim::{SimRandom, World};
use server::running::{Drive, RunningNode, StartError};

use super::workload::{self, Observations};
use super::{CLIENTS, Layout};
use crate::faults::{self, Kind, Machines};
use crate::judges::bounds::Bound;
use crate::starting;

/// Settings that keep files small, so that segments and memtables are full within a run.
const SETTINGS: [&str; 3] =
    ["commitlog_segment_size=1MiB", "commitlog_total_space=4MiB", "compaction_throughput=0MiB/s"];

/// Most attempts of a node to join its ring. Each takes up to a minute, and troubles are over
/// before.
const JOINS_MAX: usize = 5;

/// Bytes that may wait on a link before it uses the reserve that all links share, and bytes of the
/// reserve. They are so few that a peer that stands still fills them, and more than the largest
/// message.
const QUEUE_SIZE: usize = 16 << 10;
const RESERVE_SIZE: usize = 256 << 10;

/// Longest time of a clean stop.
const STOP_MAX: Duration = Duration::from_secs(60);

/// For each node the most bytes that the queues of its links held beyond their own room, at the
/// moments at which they were looked at.
#[derive(Default)]
pub(super) struct Queues(BTreeMap<usize, usize>);

impl Queues {
    /// Looks at the queues of a node, and notes the largest size.
    fn look(&mut self, number: usize, node: &RunningNode) {
        let links = gossip::outbound(&node.services.node);
        let beyond = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX).saturating_sub(QUEUE_SIZE);
        let borrowed = links.iter().map(|link| beyond(link.pending.bytes)).sum();
        let most = self.0.entry(number).or_default();
        *most = (*most).max(borrowed);
    }

    /// The queues beside their bounds.
    pub fn bounds(&self) -> Vec<Bound> {
        let bound = |(number, seen): (&usize, &usize)| Bound {
            name: format!("the queues of node {number} beyond their own room"),
            seen: *seen,
            most: RESERVE_SIZE,
        };
        self.0.iter().map(bound).collect()
    }
}

/// The nodes that run, and the troubles so far.
pub(super) struct RunningNodes<'w> {
    world: &'w World,
    layout: Layout,
    /// Further settings of all nodes, besides those of every subject.
    settings: Vec<String>,
    observations: &'w Observations,
    /// The nodes by machine; None: the process has ended and was not started again yet.
    nodes: Vec<Option<RunningNode>>,
    /// When processes had ended, nanoseconds on the timeline.
    pub ends: Vec<u64>,
    /// The troubles, a line each.
    pub happened: Vec<String>,
    pub queues: Queues,
}

impl<'w> RunningNodes<'w> {
    /// Starts all nodes, one after the other.
    pub fn start(world: &'w World, layout: Layout, observations: &'w Observations) -> Self {
        Self::start_with(world, layout, observations, Vec::new())
    }

    /// Does the work of [`Self::start`] for nodes that repair each other by the schedule, if that
    /// is on.
    pub fn scheduled(world: &'w World, layout: Layout, observations: &'w Observations, is_on: bool) -> Self {
        Self::start_with(world, layout, observations, super::schedule::settings(is_on))
    }

    fn start_with(world: &'w World, layout: Layout, observations: &'w Observations, settings: Vec<String>) -> Self {
        let nodes = (0..layout.servers).map(|machine| Some(start(world, machine, layout, &settings))).collect();
        let (ends, happened, queues) = (Vec::new(), Vec::new(), Queues::default());
        RunningNodes { world, layout, settings, observations, nodes, ends, happened, queues }
    }

    /// The machines of the run: servers, then clients.
    pub fn machines(&self) -> Machines {
        Machines { servers: self.layout.servers, clients: CLIENTS }
    }

    /// The nodes that run.
    pub fn nodes(&self) -> impl Iterator<Item = &RunningNode> {
        self.nodes.iter().flatten()
    }

    /// Carries one trouble out, from its beginning to its end.
    pub fn inject(&mut self, dice: &SimRandom, kind: Kind) {
        let begun = faults::line(self.world, "");
        let words = match kind {
            Kind::Restart => self.restart(dice.below(self.layout.servers as u64) as usize),
            Kind::Schema => workload::alter(self.world, self.observations, dice, self.happened.len()),
            kind => {
                let trouble = faults::inject(self.world, dice, self.machines(), kind);
                self.look_at_queues();
                self.start_again(trouble.died);
                trouble.words
            }
        };
        self.happened.push(begun + &words);
    }

    fn look_at_queues(&mut self) {
        for (number, node) in self.nodes.iter().enumerate() {
            node.iter().for_each(|node| self.queues.look(number, node));
        }
    }

    /// Starts the nodes whose processes have ended.
    fn start_again(&mut self, died: Vec<usize>) {
        if died.is_empty() {
            return;
        }
        died.iter().for_each(|machine| drop(self.nodes[*machine].take()));
        self.ends.push(self.world.elapsed().as_nanos() as u64);
        for machine in died {
            self.nodes[machine] = Some(start(self.world, machine, self.layout, &self.settings));
        }
    }

    /// Stops a node cleanly, and starts it again.
    fn restart(&mut self, machine: usize) -> String {
        let node = self.nodes[machine].take().expect("between troubles all nodes run");
        let env = self.world.env(machine);
        let stopped = self.world.block_on(env.timeout(STOP_MAX, node.shutdown()));
        let words = match stopped {
            Ok(Ok(())) => "a clean stop".to_owned(),
            Ok(Err(error)) => format!("a stop, not clean: {error}"),
            Err(_) => panic!("seed {}: node {machine} does not stop within {STOP_MAX:?}", self.world.seed()),
        };
        self.world.kill(machine);
        self.start_again(vec![machine]);
        format!("{words} of {machine}")
    }
}

/// Starts a node on what its disk has, as `helenus serve` does. A node that finds no other node of
/// its ring, because the network is bad, is started again.
fn start(world: &World, machine: usize, layout: Layout, more: &[String]) -> RunningNode {
    for _ in 0..JOINS_MAX {
        match try_start(world, machine, layout, more) {
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

/// The settings of a node. If there are several nodes they are those of a ring.
pub(super) fn settings_of(world: &World, machine: usize, layout: Layout) -> Vec<String> {
    let mut settings: Vec<String> = SETTINGS.iter().map(|setting| (*setting).to_owned()).collect();
    if layout.servers > 1 {
        settings.extend(starting::ring_settings(world, machine));
        settings.extend([
            format!("paxos_variant={}", variant_of(world.seed(), machine)),
            format!("internode_application_send_queue_capacity={QUEUE_SIZE}B"),
            format!("internode_application_send_queue_reserve_global_capacity={RESERVE_SIZE}B"),
        ]);
    }
    if is_on(Defect::NoWait) {
        // the wait that the defect leaves out is so long that power cuts fall into it
        settings.extend(["commitlog_sync=group".to_owned(), "commitlog_sync_group_window=1s".to_owned()]);
    }
    if layout.centers > 1 {
        settings.push("endpoint_snitch=GossipingPropertyFileSnitch".to_owned());
    }
    settings
}

/// `paxos_variant` of a node: of three seeds one has both, one v2 alone, and one v1 alone.
fn variant_of(seed: u64, machine: usize) -> &'static str {
    match (seed % 3, machine) {
        (0, 0) | (2, _) => "v1",
        _ => "v2",
    }
}

/// Bytes of the memtables of a node: so few that a run flushes them. With the smallest value a
/// memtable is flushed with a row or two, and half of a run's CPU time is spent in flushes and
/// compactions.
fn room_of_memtables(seed: u64) -> u64 {
    (256 << 10) << (seed % 4)
}

fn try_start(world: &World, machine: usize, layout: Layout, more: &[String]) -> Result<RunningNode, StartError> {
    let settings = [settings_of(world, machine, layout), more.to_vec()].concat();
    open(world, machine, layout, &settings, &starting::drive(world))
}

/// Starts a node with these settings; `drive` waits for its join.
pub(super) fn open(
    world: &World,
    machine: usize,
    layout: Layout,
    settings: &[String],
    drive: Drive<'_>,
) -> Result<RunningNode, StartError> {
    let mut options = starting::options(world, machine, settings);
    if layout.centers > 1 {
        let data_center = workload::center_name(layout.center(machine));
        options.config.ring.location.own = Some(Place { data_center, rack: format!("rack{machine}") });
    }
    options.workers = Some(2);
    options.shards = Some(2);
    options.memory.memtables = room_of_memtables(world.seed());
    server::running::start_driven(options, drive)
}
