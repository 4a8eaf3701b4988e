//! The example subject: registers that are replicated on several machines, by majorities (Attiya,
//! Bar-Noy, Dolev).
//!
//! Only for testing the harness: it has a switch for each defect that a judge must find
//! ([`Defect`]). Without a defect its registers are linearizable as long as disks keep what was
//! synced.
//!
//! A client coordinates. To write, it asks all replicas for the newest stamp, and when a majority
//! has answered it sends the value with a greater stamp; the write is done when a majority has
//! stored it. To read, it asks all replicas, takes the newest value of a majority, and stores that
//! on a majority before it gives it. A deletion is a write of nothing.

mod client;
mod message;
mod replica;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use env::sim::{DATA, Link, World};

use crate::faults::{self, Machines};
use crate::history::History;
use crate::judges::bounds::{self, Bound};
use crate::judges::{Rulings, equal, linearizable};
use crate::report::{Report, Settings};

pub use message::Stamped;

/// Number of replicas of the register.
const REPLICAS: usize = 3;
/// Number of machines with clients.
const CLIENTS: usize = 2;

/// Links so different that operations overlap in every way.
const FAR: Link = Link { delay_min_micros: 100, delay_max_micros: 25_000, loss_percent: 0, bytes_per_second: 0 };

/// First key with a single writer; those below are contended.
pub(crate) const VERSIONED_FROM: u64 = 100;

/// Most requests that wait in a replica.
pub(crate) const INBOX_MAX: usize = 4;

/// A defect of the register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Defect {
    /// A replica acknowledges a value that it has not synced.
    NoSync,
    /// A read asks one replica only.
    ReadOne,
    /// A replica sometimes makes a value up.
    MakeUp,
    /// A replica forgets a deletion.
    ForgetDeletion,
    /// The last repair leaves a replica out.
    RepairOne,
    /// The queue of a replica has no bound.
    NoBound,
}

/// The state that replicas and clients share with the harness.
#[derive(Clone)]
pub(crate) struct Shared {
    pub defect: Option<Defect>,
    pub history: History,
    /// The largest number of requests that waited in a replica.
    pub inbox_most: Arc<AtomicUsize>,
    /// Number of clients that are still at work.
    pub working: Arc<AtomicUsize>,
}

/// Runs the register on a seed, and judges what was seen.
pub fn run(settings: Settings, defect: Option<Defect>) -> Report {
    let world = World::new(settings.seed, REPLICAS + CLIENTS);
    world.network().set_usual_link(FAR);
    let machines = Machines { servers: REPLICAS, clients: CLIENTS };
    let dice = world.dice();
    let (history, inbox_most, working) = (History::default(), Arc::default(), Arc::default());
    let shared = Shared { defect, history, inbox_most, working };
    (0..REPLICAS).for_each(|machine| replica::start(&world, machine, &shared));
    client::start_all(&world, &shared, settings.seconds);
    let end = Duration::from_secs(settings.seconds);
    let (kinds, mut happened) = (settings.kinds.of_machines(), Vec::new());
    while world.elapsed() < end {
        world.run_for(Duration::from_millis(env::Random::below(&dice, 1_000)));
        let kind = kinds.draw(&dice).filter(|_| (happened.len() as u64) < settings.steps);
        let Some(kind) = kind else { continue };
        let trouble = faults::inject(&world, &dice, machines, kind);
        happened.push(faults::line(&world, &trouble.words));
        trouble.died.into_iter().for_each(|dead| replica::start(&world, dead, &shared));
    }
    faults::end_faults(&world, machines);
    let done = world.run_until(Duration::from_secs(600), || shared.working.load(Ordering::Relaxed) == 0);
    assert!(done, "seed {}: clients come to their end", settings.seed);
    client::repair(&world, &shared);
    let rulings = judge(&world, &shared);
    let operations = shared.history.operations().len();
    Report { seed: settings.seed, operations, trace: world.trace(), happened, rare: Vec::new(), rulings }
}

fn judge(world: &World, shared: &Shared) -> Rulings {
    let (versioned, contended): (Vec<_>, Vec<_>) =
        shared.history.operations().into_iter().partition(|operation| operation.key >= VERSIONED_FROM);
    let contents: Vec<BTreeMap<u64, Stamped>> = (0..REPLICAS).map(|machine| content(world, machine)).collect();
    let inbox = Bound { name: "inbox".to_owned(), seen: shared.inbox_most.load(Ordering::Relaxed), most: INBOX_MAX };
    let mut queues = bounds::of_network(&world.network().figures());
    queues.push(inbox);
    let mut rulings = Rulings::default();
    rulings.add_versioned(&versioned, &[]);
    rulings.add("linearizable", linearizable::check(&contended));
    rulings.add("equal", equal::check(&contents));
    rulings.add("bounds", bounds::check(&queues));
    rulings
}

/// The records on the disk of a replica.
fn content(world: &World, machine: usize) -> BTreeMap<u64, Stamped> {
    let env = world.env(machine);
    let names = env.disk.list_dir(Path::new(DATA)).expect("a sound disk lists");
    let of_entry = |entry: env::DirEntry| {
        let key = entry.name.strip_prefix("register-")?.parse().ok()?;
        Some((key, replica::load(&env, key).expect("a sound disk reads")?))
    };
    names.into_iter().filter_map(of_entry).collect()
}
