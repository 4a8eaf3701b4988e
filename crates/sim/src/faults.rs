//! Troubles that happen to machines and their network, drawn from the seed.
//!
//! One trouble after the other: it begins, lasts for a while, and is over; then its machine is
//! started again if it has died. Troubles do not overlap, but for connections that hang, links that
//! stay bad and clocks that stay wrong until the next trouble of that kind or the end.

use std::time::Duration;

use env::Random;
use env::sim::{EIO, EMFILE, ENOSPC, Fault, Link, Op, SimRandom, Stall, World};

/// Machines by what runs on them: servers first, then clients.
#[derive(Clone, Copy, Debug)]
pub struct Machines {
    /// How many servers.
    pub servers: usize,
    /// How many clients.
    pub clients: usize,
}

/// A link that loses, delays and is slow.
const BAD: Link =
    Link { delay_min_micros: 100, delay_max_micros: 50_000, loss_percent: 10, bytes_per_second: 64 << 10 };

/// Lets one trouble happen, from its beginning to its end. Gives the servers whose processes have
/// ended: they have to be started again.
pub fn trouble(world: &World, dice: &SimRandom, machines: Machines) -> Vec<usize> {
    let all = (machines.servers + machines.clients) as u64;
    let server = dice.below(machines.servers as u64) as usize;
    let other = dice.below(all) as usize;
    let network = world.network();
    let lasts = Duration::from_millis(dice.below(4_000));
    match dice.below(16) {
        0 | 1 => return die(world, &[server], lasts, World::kill),
        2 | 3 => return die(world, &[server], lasts, World::power_cut),
        14 | 15 => {
            spoil(world, dice, server);
            world.run_for(lasts);
            world.disk(server).heal();
            // a log that met an error takes nothing more until the next start
            return die(world, &[server], lasts, World::kill);
        }
        13 => return die(world, &(0..machines.servers).collect::<Vec<_>>(), lasts, World::power_cut),
        4 => {
            // the power goes in the middle of a step: until the machine is dead nothing on its disk
            // succeeds
            world.disk(server).power_cut_after(dice.below(60));
            world.run_for(Duration::from_millis(dice.below(300)));
            return die(world, &[server], lasts, World::power_cut);
        }
        5 => world.pause(server),
        6 => network.block(server, other),
        7 => network.block(other, server),
        8 => network.partition(&[server]),
        9 => (0..1 + dice.below(4)).for_each(|_| {
            network.reset_one(server, other);
        }),
        10 => {
            network.hang_one(server, other);
        }
        11 => {
            network.set_link(server, other, BAD);
            network.set_link(other, server, BAD);
        }
        _ => distort(world, dice, server, machines.servers > 1),
    }
    world.run_for(lasts);
    world.resume(server);
    if dice.chance(70) {
        network.heal();
    }
    Vec::new()
}

/// Ends processes at one moment, and waits while they are gone.
fn die(world: &World, servers: &[usize], lasts: Duration, end: fn(&World, usize)) -> Vec<usize> {
    servers.iter().for_each(|server| end(world, *server));
    world.run_for(lasts / 4);
    servers.to_vec()
}

/// Operations of the disk that fail for a while.
const FAILING: [Op; 9] =
    [Op::Open, Op::Create, Op::Read, Op::Write, Op::Sync, Op::Rename, Op::Link, Op::Remove, Op::SyncDir];

/// A disk that fails, is full, or has no descriptors left.
fn spoil(world: &World, dice: &SimRandom, server: usize) {
    let op = FAILING[dice.below(FAILING.len() as u64) as usize];
    let errno = match dice.below(3) {
        0 => EIO,
        1 => ENOSPC,
        _ => EMFILE,
    };
    let (skip, times) = (dice.below(20), 1 + dice.below(4));
    world.disk(server).inject(Fault { op, path: String::new(), skip, times, errno });
}

/// Clocks that are wrong, and a disk that takes its time.
fn distort(world: &World, dice: &SimRandom, server: usize, is_ring: bool) {
    match dice.below(3) {
        // messages between nodes are worth nothing when clocks differ by more than a write may take
        0 if is_ring => world.shift_wall_clock(server, dice.below(200_000) as i64 - 100_000),
        0 => world.shift_wall_clock(server, dice.below(10_000_000) as i64 - 5_000_000),
        1 => world.set_drift(server, dice.below(100_000) as i64 - 50_000),
        _ => {
            let op = if dice.chance(70) { Op::Sync } else { Op::Read };
            let duration = Duration::from_millis(dice.below(3_000));
            world.disk(server).stall(Stall { op, path: String::new(), skip: dice.below(5), times: 1, duration });
        }
    }
}

/// All troubles are over; dead machines are still dead.
pub fn quiet(world: &World, machines: Machines) {
    world.network().heal();
    for server in 0..machines.servers {
        world.disk(server).heal();
        world.resume(server);
        world.set_drift(server, 0);
    }
}
