//! A ring that changes while clients work: nodes join, leave, move, are removed and are replaced,
//! and a node dies at a drawn moment of each change.
//!
//! Three of four machines are members at first; each key has three copies. One change follows the
//! other, drawn from the seed:
//!
//! 1. The change begins. At a drawn moment the node that changes, or another member, is killed
//!    (`kill -9`) or loses its power; the network may be bad meanwhile.
//! 2. A node that has died is started again on its disk, and the operator repeats a change that
//!    has not come to its end, until it has.
//! 3. All members agree on the list of members.
//!
//! The first two machines are seeds, which never bootstrap: they only move, and the others make
//! every kind of change. A node that is to be removed or replaced is dead for good: its disk is
//! wiped. Cassandra's rule holds for both: the ring is repaired before, because rows that the dead
//! node had together with only a minority would be lost with it.
//!
//! Judged beside what [`super`] judges of clients: members agree (`judges::members`), and replicas
//! are equal after repair and cleanup (`judges::equal`).

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cluster::Node;
use cluster::operations::OperationError;
use cluster::operations::tables::{self, Selection};
use cluster::range_movements::{Mode, cleanup, decommission, relocation, removal};
use cluster::repair::command::EventKind;
use cluster::repair::options::RepairOptions;
use cluster::system_rows;
use env::sim::{Link, SimRandom, World};
use env::{LocalFutureFactory, Random};
use server::running::{RunningNode, StartError};

use super::running_nodes::{open, settings_of};
use super::workload::{self, KEYSPACE, Observations};
use super::{CLIENTS, END_MAX, Layout, SETTLE};
use crate::faults::{self, Machines};
use crate::judges::{Finding, Rulings, atomic, bounds, counted, equal, linearizable, members};
use crate::report::{Report, Settings};
use crate::starting;

/// Number of machines with nodes.
const SERVERS: usize = 4;
/// Three of them are members at the beginning.
const LAYOUT: Layout = Layout { servers: SERVERS, centers: 1, members: 3 };
/// Number of seeds, which are the first machines.
const SEEDS: usize = 2;
/// Most attempts of an operator for one change: one attempt is disturbed, the others are not.
const ATTEMPTS_MAX: usize = 12;
/// The longest time that a change, a repair, or members to agree may take without troubles.
const PATIENCE: Duration = Duration::from_secs(600);
/// Milliseconds after the beginning of a change within which a node dies.
const HIT_WITHIN_MILLIS: u64 = 25_000;

/// A link that is slow and loses a little.
const POOR: Link =
    Link { delay_min_micros: 100, delay_max_micros: 20_000, loss_percent: 2, bytes_per_second: 256 << 10 };

/// A change of the ring.
#[derive(Clone, Copy, Debug)]
enum Change {
    /// The machine that is no member becomes one.
    Join(usize),
    /// A member hands everything on and leaves.
    Leave(usize),
    /// A member owns another token.
    Move(usize, i64),
    /// A member that is dead for good is removed.
    Remove(usize),
    /// A new node replaces a member that is dead for good. On the same machine it also has the
    /// same address.
    Replace { dead: usize, by: usize },
}

/// A death: the machine, the kind and the time.
#[derive(Clone, Copy, Debug)]
struct PlannedDeath {
    machine: usize,
    /// True: the disk loses the data that was not synced.
    loses_power: bool,
    /// Time after the beginning of the change.
    after: Duration,
}

/// The machines, the nodes that run on them, and the set of members.
struct ChangingRing<'w> {
    world: &'w World,
    dice: SimRandom,
    nodes: Vec<Option<RunningNode>>,
    members: BTreeSet<usize>,
    /// The changes, a line each.
    happened: Vec<String>,
}

/// Runs a ring that changes on a seed, and judges what was seen.
pub fn run(settings: Settings) -> Report {
    let world = World::new(settings.seed, SERVERS + CLIENTS);
    let observations = Observations::of(LAYOUT);
    let (nodes, happened) = ((0..SERVERS).map(|_| None).collect(), Vec::new());
    let mut changing_ring =
        ChangingRing { world: &world, dice: world.dice(), nodes, members: (0..LAYOUT.members).collect(), happened };
    (0..LAYOUT.members).for_each(|machine| changing_ring.start_member(machine));
    workload::prepare(&world, &observations);
    let end = world.elapsed() + Duration::from_secs(settings.seconds);
    workload::start_all(&world, CLIENTS, &observations, end, None);
    let mut astray = Vec::new();
    while world.elapsed() < end && (changing_ring.happened.len() as u64) < settings.steps && astray.is_empty() {
        world.run_for(Duration::from_millis(changing_ring.dice.below(3_000)));
        let change = changing_ring.draw();
        changing_ring.carry_out(change);
        astray = changing_ring.judge_members();
    }
    faults::end_faults(&world, Machines { servers: SERVERS, clients: CLIENTS });
    let done = world.run_until(END_MAX, || observations.working.load(Ordering::Relaxed) == 0);
    assert!(done, "seed {}: clients come to their end", settings.seed);
    world.run_for(SETTLE);
    workload::read_all_keys(&world, &observations);
    let rulings = judge(&world, &observations, &changing_ring, astray);
    let happened = std::mem::take(&mut changing_ring.happened);
    drop(changing_ring);
    let operations = observations.history.operations().len();
    Report { seed: settings.seed, operations, trace: world.trace(), happened, rare: Vec::new(), rulings }
}

/// Judges the run. `astray`: findings on members while the ring changed.
fn judge(
    world: &World,
    observations: &Observations,
    changing_ring: &ChangingRing<'_>,
    astray: Vec<Finding>,
) -> Rulings {
    let (versioned, contended): (Vec<_>, Vec<_>) =
        observations.history.operations().into_iter().partition(|operation| operation.key >= workload::VERSIONED_FROM);
    let mut rulings = Rulings::default();
    let is_whole = astray.is_empty();
    rulings.add_versioned(&versioned, &[]);
    rulings.add("linearizable", linearizable::check(&contended));
    rulings.add("counted", counted::check(&observations.counters()));
    rulings.add("atomic", atomic::check(&observations.batches()));
    rulings.add("bounds", bounds::check(&bounds::of_network(&world.network().figures())));
    rulings.add("members", astray);
    if is_whole {
        changing_ring.repair();
        changing_ring.clean_up();
        rulings.add("equal", changing_ring.judge_replicas());
    }
    rulings
}

impl ChangingRing<'_> {
    /// The next change: with three members a node comes, is replaced or moves; with four a node
    /// leaves.
    fn draw(&self) -> Change {
        let below = |bound: usize| self.dice.below(bound as u64) as usize;
        let outside = (SEEDS..SERVERS).find(|machine| !self.members.contains(machine));
        let movable: Vec<usize> = self.members.iter().copied().filter(|machine| *machine >= SEEDS).collect();
        let one = movable[below(movable.len())];
        match (outside, below(8)) {
            (Some(by), 0..=2) => Change::Join(by),
            (Some(by), 3 | 4) => Change::Replace { dead: one, by },
            (None, 0 | 1) => Change::Leave(one),
            (None, 2..=4) => Change::Remove(one),
            // a new disk in the same machine
            (_, 5) => Change::Replace { dead: one, by: one },
            _ => {
                let mover = self.members.iter().copied().nth(below(self.members.len()));
                Change::Move(mover.unwrap_or(one), self.dice.next_u64() as i64)
            }
        }
    }

    /// Draws a death while a node changes; None: no node dies.
    fn draw_death(&self, changing: usize) -> Option<PlannedDeath> {
        let after = Duration::from_millis(self.dice.below(HIT_WITHIN_MILLIS));
        let loses_power = self.dice.chance(50);
        let lives = |machine: &usize| *machine != changing && self.nodes[*machine].is_some();
        let others: Vec<usize> = self.members.iter().copied().filter(lives).collect();
        let machine = match self.dice.below(4) {
            0 => return None,
            1 => others[self.dice.below(others.len() as u64) as usize],
            _ => changing,
        };
        Some(PlannedDeath { machine, loses_power, after })
    }

    /// Carries a change out, whatever troubles come, and waits until all members know it.
    fn carry_out(&mut self, change: Change) {
        let network = self.world.network();
        if let Change::Remove(dead) | Change::Replace { dead, .. } = change {
            self.repair();
            self.lose(dead);
        }
        if self.dice.chance(30) {
            let (from, to) = (self.dice.below(SERVERS as u64) as usize, self.dice.below(SERVERS as u64) as usize);
            network.set_link(from, to, POOR);
        }
        let changing = match change {
            Change::Join(machine) | Change::Leave(machine) | Change::Move(machine, _) => machine,
            Change::Replace { by, .. } => by,
            Change::Remove(dead) => self.other_than(dead),
        };
        let mut death = self.draw_death(changing);
        let begun = faults::line(self.world, &format!("{change:?}, with {death:?}"));
        for attempt in 1.. {
            if self.attempt(change, death.take()) {
                break;
            }
            network.heal();
            let seed = self.world.seed();
            assert!(attempt < ATTEMPTS_MAX, "seed {seed}: this comes to its end: {begun}");
            self.world.run_for(Duration::from_secs(5));
        }
        network.heal();
        self.happened.push(begun);
    }

    /// One attempt of an operator. True: the change has come to its end.
    fn attempt(&mut self, change: Change, death: Option<PlannedDeath>) -> bool {
        match change {
            Change::Join(machine) => self.join(machine, None, death),
            Change::Replace { dead, by } => self.join(by, Some(dead), death),
            Change::Leave(machine) => self.leave(machine, death),
            Change::Move(machine, token) => {
                let owns = |changing_ring: &Self| {
                    let tokens = changing_ring.node(machine).ring().local().tokens.clone();
                    tokens.iter().any(|owned| owned.0 == token)
                };
                owns(self)
                    || self.ask(machine, death, move |node| async move {
                        relocation::relocate(&node, &token.to_string()).await
                    })
                    || owns(self)
            }
            Change::Remove(dead) => self.remove(dead, death),
        }
    }

    fn node(&self, machine: usize) -> Arc<Node> {
        Arc::clone(&self.nodes[machine].as_ref().expect("a member runs").services.node)
    }

    /// Lets a new node join, in the place of a dead one if there is one.
    fn join(&mut self, machine: usize, replaces: Option<usize>, death: Option<PlannedDeath>) -> bool {
        let mut settings = settings_of_grown(self.world, machine);
        settings.push("auto_bootstrap=true".to_owned());
        if let Some(dead) = replaces {
            settings.push(format!("replace_address_first_boot={}", self.world.address(dead)));
        }
        let death_at = death.map(|death| (death, self.world.elapsed() + death.after));
        let has_died = Cell::new(false);
        let opened = open(self.world, machine, LAYOUT, &settings, &|mut joining| {
            let Some((death, at)) = death_at.filter(|_| !has_died.get()) else {
                self.world.block_on(joining);
                return Ok(());
            };
            let rest = at.saturating_sub(self.world.elapsed());
            let clock = self.world.env(SERVERS);
            let has_joined = self.world.block_on(async {
                tokio::select! {
                    biased;
                    () = &mut joining => true,
                    () = clock.sleep(rest) => false,
                }
            });
            if has_joined {
                return Ok(());
            }
            has_died.set(true);
            end_machine(self.world, death);
            if death.machine == machine {
                return Err(StartError::Join("it was killed".to_owned()));
            }
            self.world.block_on(joining);
            Ok(())
        });
        if let Some(death) = death.filter(|death| has_died.get() && death.machine != machine) {
            self.start_again(death.machine);
        }
        match opened {
            // not all of its data has come
            Ok(node) if node.services.node.mode() != Mode::Normal => {
                self.world.kill(machine);
                drop(node);
                false
            }
            Ok(node) => {
                self.nodes[machine] = Some(node);
                self.members.retain(|member| Some(*member) != replaces);
                self.members.insert(machine);
                true
            }
            Err(StartError::Join(_)) => {
                self.world.kill(machine);
                false
            }
            Err(error) => panic!("seed {}: a sound disk starts, but: {error}", self.world.seed()),
        }
    }

    /// Has a node carry out `act` while the run goes on, and strikes meanwhile; nodes that died
    /// are started again. True: it was carried out.
    fn ask<F>(
        &mut self,
        machine: usize,
        death: Option<PlannedDeath>,
        act: impl FnOnce(Arc<Node>) -> F + Send + 'static,
    ) -> bool
    where
        F: Future<Output = Result<(), OperationError>> + 'static,
    {
        let (node, told) = (self.node(machine), Arc::new(Mutex::new(None)));
        let tell = Arc::clone(&told);
        let make: LocalFutureFactory = Box::new(move || {
            Box::pin(async move {
                let done = act(node).await.is_ok();
                *tell.lock().unwrap_or_else(PoisonError::into_inner) = Some(done);
            })
        });
        drop(self.world.env(machine).tasks.spawn_local_worker("change", make));
        let came = || *told.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(death) = death
            && !self.world.run_until(death.after, || came().is_some())
        {
            end_machine(self.world, death);
            self.world.run_for(Duration::from_millis(self.dice.below(1_000)));
            self.start_again(death.machine);
            if death.machine == machine {
                return false;
            }
        }
        self.world.run_until(PATIENCE, || came().is_some());
        came() == Some(true)
    }

    fn leave(&mut self, machine: usize, death: Option<PlannedDeath>) -> bool {
        // it may have left for good just before it was killed, and the others wait for its word
        if self.nodes[machine].is_none() {
            return self.remove(machine, None);
        }
        let has_left = self.ask(machine, death, |node| async move { decommission::decommission(&node, false).await });
        let is_gone = has_left && self.node(machine).mode() == Mode::Decommissioned;
        if is_gone {
            self.lose(machine);
            self.members.remove(&machine);
        }
        is_gone
    }

    /// Has a member remove one that is dead for good.
    fn remove(&mut self, dead: usize, death: Option<PlannedDeath>) -> bool {
        let asked = self.other_than(dead);
        let address = self.world.address(dead);
        let id = |changing_ring: &Self| {
            let ring = changing_ring.node(asked).ring();
            let found = ring.endpoints().iter().find(|endpoint| endpoint.address.ip() == address);
            found.map(|endpoint| types::literal::print_uuid(&endpoint.host_id))
        };
        if let Some(id) = id(self) {
            self.ask(asked, death, move |node| async move { removal::remove(&node, &id).await });
        }
        let is_gone = id(self).is_none();
        if is_gone {
            self.members.remove(&dead);
        }
        is_gone
    }

    /// A member other than this machine.
    fn other_than(&self, dead: usize) -> usize {
        self.members.iter().copied().find(|machine| *machine != dead).expect("a ring has members")
    }

    /// Starts the node of a machine whose process has ended. A node that was decommissioned at the
    /// end of its last life does not start.
    fn start_again(&mut self, machine: usize) {
        drop(self.nodes[machine].take());
        if !self.members.contains(&machine) {
            return;
        }
        self.start_member(machine);
    }

    fn start_member(&mut self, machine: usize) {
        let settings = settings_of_grown(self.world, machine);
        for _ in 0..ATTEMPTS_MAX {
            match open(self.world, machine, LAYOUT, &settings, &starting::drive(self.world)) {
                Ok(node) => {
                    self.nodes[machine] = Some(node);
                    return;
                }
                Err(StartError::Join(_)) => {
                    self.world.kill(machine);
                    self.world.network().heal();
                }
                Err(StartError::Node(why)) if why.to_string().contains("This node was decommissioned") => {
                    return self.lose(machine);
                }
                Err(error) => panic!("seed {}: a sound disk starts, but: {error}", self.world.seed()),
            }
        }
        panic!("seed {}: a member finds its ring over a sound network", self.world.seed())
    }

    /// Takes a machine as dead for good: another one, with an empty disk, has its address.
    fn lose(&mut self, machine: usize) {
        self.world.kill(machine);
        drop(self.nodes[machine].take());
        self.world.disk(machine).replace();
    }

    /// Repairs everything through each member, one after the other.
    fn repair(&self) {
        self.world.network().heal();
        self.wait_for_agreement();
        for machine in &self.members {
            let command = self.node(*machine).start_repair(KEYSPACE, RepairOptions::default());
            let Ok(Some(command)) = command else { panic!("seed {}: a repair begins", self.world.seed()) };
            let has_ended = self.world.run_until(PATIENCE, || command.has_ended());
            let (events, _) = command.events(0);
            let failed = events.iter().find(|event| event.kind == EventKind::Error);
            assert!(has_ended && failed.is_none(), "seed {}: a repair ends well: {failed:?}", self.world.seed());
        }
    }

    /// Removes the partitions of others from each member.
    fn clean_up(&self) {
        for machine in &self.members {
            let node = self.node(*machine);
            let cleaned = self.world.block_on(async move {
                let all = Selection { keyspaces: &[], tables: &[] };
                tables::flush(&node, all).await?;
                cleanup::cleanup(&node, all, 1).await
            });
            cleaned.expect("nobody moves, and disks are sound");
        }
    }

    /// The members that a member knows.
    fn known_to(&self, machine: usize) -> members::Known {
        let ring = self.node(machine).ring();
        let shown = |endpoint: &ring::Endpoint| {
            let up = if endpoint.is_up { "up" } else { "down" };
            let tokens: Vec<i64> = endpoint.tokens.iter().map(|token| token.0).collect();
            (endpoint.address.ip().to_string(), format!("{up} {} {tokens:?}", endpoint.state.letter()))
        };
        ring.endpoints().iter().map(shown).collect()
    }

    /// Each member by its own knowledge of itself.
    fn as_they_are(&self) -> members::Known {
        let own = |machine: &usize| {
            let address = self.world.address(*machine).to_string();
            let known = self.known_to(*machine).remove(&address).unwrap_or_default();
            (address, known.replace(" L ", " ? ").replace(" M ", " ? "))
        };
        self.members.iter().map(own).collect()
    }

    /// Waits until members agree on the list of members; gives up after a while.
    fn wait_for_agreement(&self) {
        self.world.run_until(PATIENCE, || self.judge_known().is_empty());
    }

    fn judge_known(&self) -> Vec<Finding> {
        let known =
            self.members.iter().map(|machine| (self.world.address(*machine).to_string(), self.known_to(*machine)));
        members::check(&self.as_they_are(), &known.collect())
    }

    fn judge_members(&self) -> Vec<Finding> {
        self.wait_for_agreement();
        self.judge_known()
    }

    /// Compares what the replicas of each key have on their disks.
    fn judge_replicas(&self) -> Vec<Finding> {
        let stored: BTreeMap<usize, BTreeMap<u64, u64>> =
            self.members.iter().map(|machine| (*machine, self.stored(*machine))).collect();
        let keys: BTreeSet<u64> = stored.values().flat_map(|rows| rows.keys().copied()).collect();
        let ring = self.node(0).ring();
        let placement = ring.placement(KEYSPACE).expect("the keyspace is placed");
        let of_key = |key: u64| {
            let bytes = (key as u32).to_be_bytes();
            let token = types::DecoratedKey::new(bytes::Bytes::copy_from_slice(&bytes)).token;
            let holds = |machine: &&usize| {
                let address = self.world.address(**machine);
                placement.natural(token).iter().any(|id| ring.endpoint(*id).address.ip() == address)
            };
            let one = |machine: &usize| stored[machine].get(&key).map(|value| (key, *value)).into_iter().collect();
            equal::check(&self.members.iter().filter(holds).map(one).collect::<Vec<BTreeMap<u64, u64>>>())
        };
        keys.into_iter().flat_map(of_key).collect()
    }

    /// The live rows of the versioned keys that a machine has.
    fn stored(&self, machine: usize) -> BTreeMap<u64, u64> {
        let node = self.node(machine);
        let schema = node.schema();
        let table = schema.table(KEYSPACE, "versioned").expect("the table is there");
        let rows = node.read_system_rows(table).expect("a sound disk reads");
        let number = |bytes: &[u8]| bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
        let of_row = |(key, row): &(types::DecoratedKey, rows::Row)| {
            Some((number(&key.key), number(system_rows::value(table, row, "v")?)))
        };
        rows.iter().filter_map(of_row).collect()
    }
}

/// Kills a machine's process, or takes its power.
fn end_machine(world: &World, death: PlannedDeath) {
    match death.loses_power {
        true => world.power_cut(death.machine),
        false => world.kill(death.machine),
    }
}

/// The settings of a node of this ring.
fn settings_of_grown(world: &World, machine: usize) -> Vec<String> {
    let mut settings = settings_of(world, machine, LAYOUT);
    settings.extend(["num_tokens=1".to_owned(), "ring_delay=10s".to_owned()]);
    settings
}
