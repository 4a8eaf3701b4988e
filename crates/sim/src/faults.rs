//! Troubles that happen to machines and their network, drawn from the seed.
//!
//! Troubles come one after the other: each begins, lasts for a while, and is over; then its
//! machine is started again if it has died. Troubles do not overlap, except connections that hang,
//! links that stay bad and clocks that stay wrong until the next trouble of that kind or the end.
//!
//! A trouble is drawn in two steps: [`Kinds::draw`] says which kind comes next, [`inject`] lets it
//! happen. Kinds that need more than machines and a network ([`Kind::needs_nodes`]) are carried out
//! by the subject of the run.
//!
//! Not here: messages that come twice or overtake each other on one connection, which TCP does not
//! let happen. Messages of different connections overtake each other under every bad link.

use std::time::Duration;

use env::Random;
use env::rare;
use env::sim::{EIO, EMFILE, ENOSPC, Fault, Link, Op, SimRandom, Stall, World};

/// The numbers of machines with servers and with clients. Servers are the first machines.
#[derive(Clone, Copy, Debug)]
pub struct Machines {
    /// Number of servers.
    pub servers: usize,
    /// Number of clients.
    pub clients: usize,
}

/// A kind of trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub enum Kind {
    /// A process is killed.
    Kill,
    /// A machine loses its power.
    PowerCut,
    /// All machines lose their power at one moment.
    PowerCutOfAll,
    /// The power goes in the middle of a step: until the machine is dead all operations of its
    /// disk fail.
    TornStep,
    /// Operations of a disk fail, it is full, or there are no descriptors left.
    DiskErrors,
    /// A sync or a read of a disk takes seconds.
    SlowDisk,
    /// A process stands still.
    Pause,
    /// A machine does not hear another one, which hears it.
    OneWay,
    /// A machine is cut off from all others, both ways.
    Partition,
    /// Connections are reset.
    Reset,
    /// A connection hangs: nothing moves on it, and neither side is told.
    Hang,
    /// A link loses, delays and is slow, so that messages of its connections overtake each other.
    BadLink,
    /// A wall clock steps.
    ClockStep,
    /// A machine's clocks run fast or slow.
    Drift,
    /// A process is stopped cleanly and started again.
    Restart,
    /// The schema changes.
    Schema,
}

/// The weights of the kinds when one is drawn.
const WEIGHTS: [(Kind, u64); 16] = [
    (Kind::Kill, 2),
    (Kind::PowerCut, 2),
    (Kind::PowerCutOfAll, 1),
    (Kind::TornStep, 1),
    (Kind::DiskErrors, 2),
    (Kind::SlowDisk, 1),
    (Kind::Pause, 1),
    (Kind::OneWay, 2),
    (Kind::Partition, 1),
    (Kind::Reset, 1),
    (Kind::Hang, 1),
    (Kind::BadLink, 1),
    (Kind::ClockStep, 1),
    (Kind::Drift, 1),
    (Kind::Restart, 1),
    (Kind::Schema, 1),
];

impl Kind {
    /// Whether the kind can only be carried out by a subject of whole nodes.
    pub fn needs_nodes(self) -> bool {
        matches!(self, Kind::Restart | Kind::Schema)
    }
}

/// A set of kinds of trouble that a run may have, a bit for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kinds(u32);

impl Kinds {
    /// The set of all kinds.
    pub const ALL: Kinds = Kinds(u32::MAX);

    /// The set of these kinds.
    pub fn of(kinds: &[Kind]) -> Self {
        Kinds(kinds.iter().fold(0, |bits, kind| bits | 1 << *kind as u32))
    }

    /// The set without the kinds that only whole nodes can have.
    #[must_use]
    pub fn of_machines(self) -> Self {
        let nodes: Vec<Kind> = WEIGHTS.iter().map(|(kind, _)| *kind).filter(|kind| kind.needs_nodes()).collect();
        Kinds(self.0 & !Kinds::of(&nodes).0)
    }

    /// The kinds of this set that are also among some others.
    #[must_use]
    pub fn among(self, others: &[Kind]) -> Self {
        Kinds(self.0 & Self::of(others).0)
    }

    /// Whether a kind is in the set.
    pub fn has(self, kind: Kind) -> bool {
        self.0 >> kind as u32 & 1 == 1
    }

    /// The kind that comes next; None: no kind may come.
    pub fn draw(self, dice: &SimRandom) -> Option<Kind> {
        let among = || WEIGHTS.iter().filter(|(kind, _)| self.has(*kind));
        let mut left = dice.below(among().map(|(_, weight)| weight).sum::<u64>().max(1));
        for (kind, weight) in among() {
            match left.checked_sub(*weight) {
                Some(rest) => left = rest,
                None => return Some(*kind),
            }
        }
        None
    }
}

/// A trouble that is over.
#[derive(Clone, Debug, Default)]
pub struct InjectedFault {
    /// The trouble, for those who read the report.
    pub words: String,
    /// The servers whose processes have ended: they have to be started again.
    pub died: Vec<usize>,
}

impl InjectedFault {
    fn to(words: String) -> Self {
        InjectedFault { words, died: Vec::new() }
    }
}

/// A link that loses, delays and is slow.
const BAD: Link =
    Link { delay_min_micros: 100, delay_max_micros: 50_000, loss_percent: 10, bytes_per_second: 64 << 10 };

/// Carries one trouble out, from its beginning to its end.
pub fn inject(world: &World, dice: &SimRandom, machines: Machines, kind: Kind) -> InjectedFault {
    let all = (machines.servers + machines.clients) as u64;
    let server = dice.below(machines.servers as u64) as usize;
    let other = dice.below(all) as usize;
    let network = world.network();
    let lasts = Duration::from_millis(dice.below(4_000));
    let words = match kind {
        Kind::Kill => return end_processes(world, &[server], lasts, World::kill, "kill"),
        Kind::PowerCut => return end_processes(world, &[server], lasts, World::power_cut, "power cut"),
        Kind::PowerCutOfAll => {
            let servers: Vec<usize> = (0..machines.servers).collect();
            return end_processes(world, &servers, lasts, World::power_cut, "power cut");
        }
        Kind::DiskErrors => {
            let words = break_disk(world, dice, server);
            world.run_for(lasts);
            world.disk(server).heal();
            // a log that met an error takes nothing more until the next start
            return end_processes(world, &[server], lasts, World::kill, &format!("{words}, then kill"));
        }
        Kind::TornStep => {
            world.disk(server).power_cut_after(dice.below(60));
            world.run_for(Duration::from_millis(dice.below(300)));
            return end_processes(world, &[server], lasts, World::power_cut, "power cut in the middle of a step");
        }
        Kind::Pause => {
            world.pause(server);
            format!("pause of {server}")
        }
        Kind::OneWay => {
            let (from, to) = if dice.chance(50) { (server, other) } else { (other, server) };
            network.block(from, to);
            format!("{to} does not hear {from}")
        }
        Kind::Partition => {
            // of several data centers one may be cut off, with the clients there
            let (half, first_client) = (machines.servers / 2, machines.servers);
            let group: Vec<usize> = match half > 1 && dice.chance(50) {
                true => (0..half).chain([first_client]).collect(),
                false => vec![server],
            };
            network.partition(&group);
            format!("{group:?} are cut off")
        }
        Kind::Reset => {
            let count = (0..1 + dice.below(4)).filter(|_| network.reset_one(server, other)).count();
            format!("{count} connections between {server} and {other} are reset")
        }
        Kind::Hang => {
            let hangs = if network.hang_one(server, other) { "a" } else { "no" };
            format!("{hangs} connection between {server} and {other} hangs")
        }
        Kind::BadLink => {
            network.set_link(server, other, BAD);
            network.set_link(other, server, BAD);
            format!("the link between {server} and {other} is bad")
        }
        Kind::ClockStep | Kind::Drift | Kind::SlowDisk => {
            disturb_clock_or_disk(world, dice, server, kind, machines.servers > 1)
        }
        Kind::Restart | Kind::Schema => unreachable!("{kind:?} is a matter of whole nodes"),
    };
    world.run_for(lasts);
    world.resume(server);
    let is_healed = dice.chance(70);
    if is_healed {
        network.heal();
    }
    InjectedFault::to(format!("{words} for {} ms{}", lasts.as_millis(), if is_healed { "" } else { " and longer" }))
}

/// Ends processes at one moment, and waits while they are gone.
fn end_processes(
    world: &World,
    servers: &[usize],
    lasts: Duration,
    end: fn(&World, usize),
    words: &str,
) -> InjectedFault {
    servers.iter().for_each(|server| end(world, *server));
    world.run_for(lasts / 4);
    InjectedFault { words: format!("{words} of {servers:?}, {} ms", (lasts / 4).as_millis()), died: servers.to_vec() }
}

/// Operations of the disk that fail for a while.
const FAILING: [Op; 9] =
    [Op::Open, Op::Create, Op::Read, Op::Write, Op::Sync, Op::Rename, Op::Link, Op::Remove, Op::SyncDir];

/// Has a disk fail, be full, or lack descriptors.
fn break_disk(world: &World, dice: &SimRandom, server: usize) -> String {
    let op = FAILING[dice.below(FAILING.len() as u64) as usize];
    let (errno, why) = match dice.below(3) {
        0 => (EIO, "EIO"),
        1 => (ENOSPC, "ENOSPC"),
        _ => (EMFILE, "EMFILE"),
    };
    let (skip, times) = (dice.below(20), 1 + dice.below(4));
    world.disk(server).inject(Fault { op, path: String::new(), skip, times, errno });
    format!("{times} of {op:?} fail on {server} with {why}")
}

/// Has clocks be wrong, or a disk be slow.
fn disturb_clock_or_disk(world: &World, dice: &SimRandom, server: usize, kind: Kind, is_ring: bool) -> String {
    match kind {
        Kind::ClockStep => {
            // messages between nodes are worth nothing when clocks differ by more than a write may
            // take
            let most: u64 = if is_ring { 200_000 } else { 10_000_000 };
            let micros = dice.below(most) as i64 - most as i64 / 2;
            world.shift_wall_clock(server, micros);
            format!("the clock of {server} steps by {} ms", micros / 1000)
        }
        Kind::Drift => {
            let parts = dice.below(100_000) as i64 - 50_000;
            world.set_drift(server, parts);
            format!("the clocks of {server} drift by {parts} millionths")
        }
        _ => {
            let op = if dice.chance(70) { Op::Sync } else { Op::Read };
            let duration = Duration::from_millis(dice.below(3_000));
            world.disk(server).stall(Stall { op, path: String::new(), skip: dice.below(5), times: 1, duration });
            format!("a {op:?} on {server} takes {} ms", duration.as_millis())
        }
    }
}

/// A line of the report, with the time on the timeline.
pub fn line(world: &World, words: &str) -> String {
    format!("{:9.3} s  {words}", world.elapsed().as_secs_f64())
}

/// Ends all troubles; dead machines stay dead. The clocks of several nodes agree again: otherwise
/// the offset that a drift has left would make each message too old for ever. Rare events by which
/// requests fail do not happen any more.
pub fn end_faults(world: &World, machines: Machines) {
    rare::stop_failures();
    world.network().heal();
    for server in 0..machines.servers {
        world.disk(server).heal();
        world.resume(server);
        world.set_drift(server, 0);
        if machines.servers > 1 {
            world.correct_wall_clock(server);
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;

    #[test]
    fn each_kind_is_drawn_and_only_those_that_may_come() {
        assert_eq!(WEIGHTS.map(|(kind, _)| kind)[..], *Kind::value_variants(), "each kind has its weight");
        let dice = World::new(1, 1).dice();
        let drawn = |kinds: Kinds| {
            let mut drawn: Vec<Kind> = (0..1_000).filter_map(|_| kinds.draw(&dice)).collect();
            drawn.sort();
            drawn.dedup();
            drawn
        };
        assert_eq!(drawn(Kinds::ALL), Kind::value_variants());
        assert_eq!(drawn(Kinds::of(&[Kind::Hang, Kind::Schema])), [Kind::Hang, Kind::Schema]);
        assert_eq!(drawn(Kinds::of(&[Kind::Hang, Kind::Schema]).of_machines()), [Kind::Hang]);
        assert_eq!(drawn(Kinds::of(&[])), []);
    }
}
