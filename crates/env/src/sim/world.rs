//! Several machines in one seed: each with its disk, its clocks and its lives, over one network, on
//! one timeline.
//!
//! One scheduler, drawn from the seed, chooses what runs next among all machines. A step costs its
//! machine some virtual time, so machines work side by side: while one is busy others go on. When
//! nothing can run, the timeline moves to the first event: a timer, a segment on the network, the
//! end of a machine's work.
//!
//! The troubles of a machine: [`World::kill`] (its process ends, its kernel closes its
//! connections), [`World::power_cut`] (the disk loses data that was not synced, and its peers are
//! not told), [`World::pause`] (its process stands still while time and its kernel go on),
//! [`World::shift_wall_clock`] and [`World::set_drift`], the faults of its [`SimDisk`], and those
//! of the [`SimNetwork`]. After its process has ended [`World::env`] gives the next life's
//! environment, and switches the machine on.
//!
//! Not simulated: preemption inside a step, the memory model, a slow disk that keeps only one
//! thread of a machine waiting (a stall keeps the whole machine busy).

use std::future::Future;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use super::clock::{SimClock, Timeline};
use super::disk::SimDisk;
use super::network::{HostNetwork, Link, SimNetwork, address_of};
use super::programs::SimPrograms;
use super::random::SimRandom;
use super::tasks::{Queue, Ready};
use super::trace::Trace;
use crate::{Env, Random};

/// Streams of random numbers of a machine: its own, and its disk's. Machine `m` begins at `m *
/// STREAMS_OF_MACHINE`.
const STREAMS_OF_MACHINE: u64 = 16;
const STREAM_RANDOM: u64 = 0;
const STREAM_DISK: u64 = 1;
/// Streams of the simulation, numbered among those of the first machine.
const STREAM_SCHEDULE: u64 = 2;
const STREAM_DICE: u64 = 3;
const STREAM_NETWORK: u64 = 4;

/// Most nanoseconds that a step costs a machine among others: 20 microseconds.
const STEP_NANOS_MAX: u64 = 20_000;

struct Machine {
    clock: Arc<SimClock>,
    disk: Arc<SimDisk>,
    random: Arc<SimRandom>,
    tasks: Queue,
    is_paused: AtomicBool,
}

impl Machine {
    fn new(seed: u64, number: usize, clock: Arc<SimClock>, trace: &Arc<Trace>) -> Self {
        // Separate streams, so that a fault drawn does not change the numbers that the program
        // sees.
        let stream = |own: u64| SimRandom::new(seed, number as u64 * STREAMS_OF_MACHINE + own);
        Machine {
            disk: Arc::new(SimDisk::new(stream(STREAM_DISK), clock.clone(), trace.clone())),
            random: Arc::new(stream(STREAM_RANDOM)),
            tasks: Queue::new(number, clock.clone(), trace.clone()),
            clock,
            is_paused: AtomicBool::new(false),
        }
    }

    fn is_paused(&self) -> bool {
        self.is_paused.load(Ordering::Relaxed)
    }

    /// The tasks that can run on this machine at the present time.
    fn ready(&self, now: u64) -> Vec<Ready> {
        if self.is_paused() || self.clock.busy_until() > now { Vec::new() } else { self.tasks.ready() }
    }

    /// The time on the timeline at which this machine has something to do by itself; None: it has
    /// nothing.
    fn next_work(&self) -> Option<u64> {
        if self.is_paused() {
            return None;
        }
        let busy_until = self.clock.busy_until();
        let deadline = self.tasks.next_deadline().map(|deadline| deadline.max(busy_until));
        // Something is ready now and waits only for the machine.
        if self.tasks.ready().is_empty() { deadline } else { Some(busy_until) }
    }
}

/// The world: see the head of this file.
pub struct World {
    seed: u64,
    timeline: Arc<Timeline>,
    schedule: SimRandom,
    network: Arc<SimNetwork>,
    trace: Arc<Trace>,
    machines: Vec<Machine>,
    step_nanos_max: u64,
}

impl World {
    /// A world of so many new machines with empty disks, near each other.
    pub fn new(seed: u64, machines: usize) -> Self {
        Self::with(seed, machines, Link::NEAR, STEP_NANOS_MAX, false)
    }

    /// A world of one machine, whose steps cost no time and which moves the time by itself.
    pub(super) fn alone(seed: u64) -> Self {
        Self::with(seed, 1, Link::default(), 0, true)
    }

    fn with(seed: u64, machines: usize, usual: Link, step_nanos_max: u64, is_alone: bool) -> Self {
        let (timeline, trace): (Arc<Timeline>, Arc<Trace>) = (Arc::default(), Arc::default());
        let clock = |number| Arc::new(SimClock::new(number, timeline.clone(), is_alone));
        let clocks: Vec<Arc<SimClock>> = (0..machines).map(clock).collect();
        let machine = |(number, clock): (usize, &Arc<SimClock>)| Machine::new(seed, number, clock.clone(), &trace);
        let machines = clocks.iter().enumerate().map(machine).collect();
        let random = SimRandom::new(seed, STREAM_NETWORK);
        World {
            seed,
            schedule: SimRandom::new(seed, STREAM_SCHEDULE),
            network: Arc::new(SimNetwork::new(clocks, usual, timeline.clone(), random, trace.clone())),
            timeline,
            trace,
            machines,
            step_nanos_max,
        }
    }

    fn machine(&self, machine: usize) -> &Machine {
        self.machines.get(machine).expect("a machine of this world")
    }

    /// The seed from which this world is computed.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The number of machines.
    pub fn machines(&self) -> usize {
        self.machines.len()
    }

    /// The environment of a machine's present life. A machine that lost its power is switched on.
    pub fn env(&self, machine: usize) -> Env {
        self.network.power_on(machine);
        let network = Arc::new(HostNetwork::new(self.network.clone(), machine));
        let machine = self.machine(machine);
        Env {
            clock: machine.clock.clone(),
            disk: Arc::new(machine.disk.handle()),
            random: machine.random.clone(),
            network,
            tasks: Arc::new(machine.tasks.handle()),
            programs: Arc::new(SimPrograms { disk: Arc::new(machine.disk.handle()) }),
        }
    }

    /// Whether a machine has no thread left for another task or worker, until this is called
    /// again.
    pub fn set_lack_of_threads(&self, machine: usize, lacks: bool) {
        self.machine(machine).tasks.set_lack_of_threads(lacks);
    }

    /// A machine's address on the network.
    pub fn address(&self, machine: usize) -> IpAddr {
        address_of(machine)
    }

    /// A machine's disk, to inject faults and to look at it.
    pub fn disk(&self, machine: usize) -> &SimDisk {
        &self.machine(machine).disk
    }

    /// The network, to change its links and to look at it.
    pub fn network(&self) -> &SimNetwork {
        &self.network
    }

    /// Numbers for the test itself, drawn from the seed. Each call begins the same stream.
    pub fn dice(&self) -> SimRandom {
        SimRandom::new(self.seed, STREAM_DICE)
    }

    /// Time since the simulation began.
    pub fn elapsed(&self) -> Duration {
        Duration::from_nanos(self.timeline.nanos())
    }

    /// Runs one task that is ready at the present time, chosen by the seed among all machines.
    /// `false`: there is none. Due events of the network happen first.
    pub fn step(&self) -> bool {
        if self.network.run_due() > 0 {
            return true;
        }
        let now = self.timeline.nanos();
        let of_machine = |machine| self.machine(machine).ready(now).into_iter().map(move |ready| (machine, ready));
        let ready: Vec<(usize, Ready)> = (0..self.machines.len()).flat_map(of_machine).collect();
        if ready.is_empty() {
            return false;
        }
        let choice = usize::try_from(self.schedule.below(ready.len() as u64)).expect("below a usize");
        let (number, ready) = *ready.get(choice).expect("chosen among those that are ready");
        let machine = self.machine(number);
        machine.tasks.run(ready);
        if self.step_nanos_max > 0 {
            machine.clock.spend(Duration::from_nanos(1 + self.schedule.below(self.step_nanos_max)));
        }
        true
    }

    /// The time of the next event if nothing is run before; None: there is none.
    fn next_time(&self) -> Option<u64> {
        let work = self.machines.iter().filter_map(Machine::next_work);
        work.chain(self.timeline.next_timer()).chain(self.network.next_event()).min()
    }

    /// Moves the time to the next event. `false`: there is none.
    fn move_on(&self) -> bool {
        let Some(next) = self.next_time() else { return false };
        self.timeline.move_to(next);
        true
    }

    /// Moves the time; tasks that are due become ready.
    pub fn advance(&self, duration: Duration) {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        self.timeline.move_to(self.timeline.nanos().saturating_add(nanos));
    }

    /// Runs everything for so long, in virtual time.
    pub fn run_for(&self, duration: Duration) {
        self.run_until(duration, || false);
    }

    /// Runs everything until `is_done` gives true, for `limit` at most. Gives the last answer of
    /// `is_done`.
    pub fn run_until(&self, limit: Duration, mut is_done: impl FnMut() -> bool) -> bool {
        let limit = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
        let end = self.timeline.nanos().saturating_add(limit);
        loop {
            if is_done() {
                return true;
            }
            if self.step() {
                continue;
            }
            match self.next_time().filter(|next| *next <= end) {
                Some(next) => self.timeline.move_to(next),
                None => {
                    self.timeline.move_to(end);
                    return is_done();
                }
            }
        }
    }

    /// Completes `future`, running everything between its polls, and moving time when all wait.
    ///
    /// # Panics
    /// When the future waits for something that nothing is going to do.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        let flag = Arc::new(Flag(AtomicBool::new(true)));
        let waker = Waker::from(flag.clone());
        let mut context = Context::from_waker(&waker);
        let mut future = pin!(future);
        loop {
            let woken = flag.0.load(Ordering::Acquire);
            if woken && !(self.schedule.chance(50) && self.step()) {
                flag.0.store(false, Ordering::Release);
                if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
                    return output;
                }
            } else if !woken && !self.step() && !self.move_on() {
                let woken = flag.0.load(Ordering::Acquire);
                assert!(woken, "seed {}: the future waits and nothing is going to wake it", self.seed);
            }
        }
    }

    /// Ends a machine's process: memory, tasks, locks and timers are gone; the disk keeps all
    /// written data, and the kernel closes connections.
    pub fn kill(&self, machine: usize) {
        self.trace.record("kill", &[machine as u64]);
        self.end_life(machine, false);
    }

    /// Ends a machine as [`Self::kill`] does, but the disk loses or tears data that was not
    /// synced, and connections end without a message. The machine is off until [`Self::env`] is
    /// called.
    pub fn power_cut(&self, machine: usize) {
        self.trace.record("power cut", &[machine as u64]);
        self.end_life(machine, true);
    }

    fn end_life(&self, number: usize, power_cut: bool) {
        let machine = self.machine(number);
        machine.disk.end_life(power_cut);
        self.network.end_life(number, power_cut);
        // Disk and network end before the tasks, so that nothing that a task does while it is
        // dropped reaches them.
        machine.tasks.end_life();
        machine.clock.end_life();
        machine.is_paused.store(false, Ordering::Relaxed);
    }

    /// Stops a machine's process for a while; its clocks and its kernel go on.
    pub fn pause(&self, machine: usize) {
        self.trace.record("pause", &[machine as u64]);
        self.machine(machine).is_paused.store(true, Ordering::Relaxed);
    }

    /// Ends [`Self::pause`].
    pub fn resume(&self, machine: usize) {
        self.trace.record("resume", &[machine as u64]);
        self.machine(machine).is_paused.store(false, Ordering::Relaxed);
    }

    /// Moves a machine's wall clock alone, as an administrator or NTP does.
    pub fn shift_wall_clock(&self, machine: usize, micros: i64) {
        self.machine(machine).clock.shift_wall(micros);
    }

    /// Sets a machine's wall clock to the right time, as NTP does after faults of its clocks.
    pub fn correct_wall_clock(&self, machine: usize) {
        self.machine(machine).clock.correct_wall();
    }

    /// Makes a machine's clocks fast by so many parts per million from now on (slow if negative).
    pub fn set_drift(&self, machine: usize, ppm: i64) {
        self.machine(machine).clock.set_drift(ppm);
    }

    /// A digest of every disk operation, step, segment and crash so far, with its count.
    pub fn trace(&self) -> (u64, u64) {
        self.trace.digest()
    }
}

/// Ends the cycle of references: closures of tasks hold environments, which hold the queue of
/// tasks.
impl Drop for World {
    fn drop(&mut self) {
        for (number, machine) in self.machines.iter().enumerate() {
            self.network.end_life(number, true);
            machine.tasks.end_life();
            machine.clock.end_life();
        }
    }
}

struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Release);
    }
}

#[cfg(test)]
mod tests;
