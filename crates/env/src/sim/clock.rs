//! Virtual time: one timeline that all machines of a simulation share, and the clocks of each
//! machine on it.
//!
//! The timeline stands still until the simulation moves it, and wakes the timers that it passes. A
//! machine's monotonic clock may drift against it, and its wall clock may be shifted besides. A
//! machine that spends time, in a step or in a call of its disk, is ahead of the timeline: its
//! clocks show the later time, and it runs nothing more until the timeline has come there. A
//! machine that is alone moves the timeline itself instead.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use super::lock;
use crate::{Clock, Sleep};

/// Wall time of every new machine: 1 January 2026, UTC.
const WALL_START_MICROS: i64 = 1_767_225_600_000_000;

const MILLION: i128 = 1_000_000;

/// The timeline: see the head of this file.
#[derive(Default)]
pub(super) struct Timeline(Mutex<MachineClock>);

#[derive(Default)]
struct MachineClock {
    /// Nanoseconds since the simulation began.
    nanos: u64,
    timers_made: u64,
    /// Timers by their time on the timeline, then by age; each with the number of its machine.
    timers: BTreeMap<(u64, u64), (usize, Waker)>,
}

impl Timeline {
    pub(super) fn nanos(&self) -> u64 {
        lock(&self.0).nanos
    }

    /// The time on the timeline at which the next timer ends; None: there is none.
    pub(super) fn next_timer(&self) -> Option<u64> {
        lock(&self.0).timers.first_key_value().map(|((at, _), _)| *at)
    }

    /// Moves forward to `target`, and wakes the timers that are due. Does nothing if `target` is
    /// past.
    pub(super) fn move_to(&self, target: u64) {
        let due = {
            let mut course = lock(&self.0);
            course.nanos = course.nanos.max(target);
            let first_later = (course.nanos.saturating_add(1), 0);
            let later = course.timers.split_off(&first_later);
            std::mem::replace(&mut course.timers, later)
        };
        due.into_values().for_each(|(_, waker)| waker.wake());
    }

    fn next_number(&self) -> u64 {
        let mut course = lock(&self.0);
        course.timers_made += 1;
        course.timers_made
    }

    fn set_timer(&self, key: (u64, u64), machine: usize, waker: Waker) {
        let replaced = lock(&self.0).timers.insert(key, (machine, waker));
        drop(replaced);
    }

    fn remove_timer(&self, key: (u64, u64)) {
        let removed = lock(&self.0).timers.remove(&key);
        drop(removed);
    }

    fn end_life(&self, machine: usize) {
        let ended: Vec<Waker> = {
            let mut course = lock(&self.0);
            let (ended, kept): (BTreeMap<_, _>, BTreeMap<_, _>) =
                std::mem::take(&mut course.timers).into_iter().partition(|(_, (owner, _))| *owner == machine);
            course.timers = kept;
            ended.into_values().map(|(_, waker)| waker).collect()
        };
        drop(ended);
    }
}

/// The clocks of one machine.
pub(super) struct SimClock {
    machine: usize,
    timeline: Arc<Timeline>,
    /// True: the machine is the only one, and the timeline moves when it spends time.
    is_alone: bool,
    state: Arc<Mutex<Reading>>,
}

#[derive(Default)]
struct Reading {
    /// The monotonic clock's reading when the timeline stood at `since`.
    base: u64,
    since: u64,
    /// Parts per million by which the monotonic clock is fast.
    drift_ppm: i64,
    wall_shift_micros: i64,
    /// The time on the timeline up to which the machine is busy.
    busy_until: u64,
}

impl Reading {
    /// The monotonic reading at a point of the timeline.
    fn at(&self, nanos: u64) -> u64 {
        let passed = i128::from(nanos.saturating_sub(self.since));
        let local = passed + passed * i128::from(self.drift_ppm) / MILLION;
        self.base.saturating_add(u64::try_from(local).unwrap_or(u64::MAX))
    }

    /// The time on the timeline at which the monotonic clock first shows `local`.
    fn when(&self, local: u64) -> u64 {
        let left = i128::from(local.saturating_sub(self.base));
        let rate = MILLION + i128::from(self.drift_ppm);
        let nanos = (left * MILLION + rate - 1) / rate;
        self.since.saturating_add(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

impl SimClock {
    pub(super) fn new(machine: usize, timeline: Arc<Timeline>, is_alone: bool) -> Self {
        SimClock { machine, timeline, is_alone, state: Arc::default() }
    }

    /// The present time of this machine on the timeline.
    pub(super) fn present(&self) -> u64 {
        self.timeline.nanos().max(self.busy_until())
    }

    /// The time on the timeline up to which the machine is busy.
    pub(super) fn busy_until(&self) -> u64 {
        lock(&self.state).busy_until
    }

    /// Keeps the machine busy for so long.
    pub(super) fn spend(&self, duration: Duration) {
        let target = self.present().saturating_add(nanos_of(duration));
        if self.is_alone {
            self.timeline.move_to(target);
        } else {
            lock(&self.state).busy_until = target;
        }
    }

    pub(super) fn shift_wall(&self, micros: i64) {
        lock(&self.state).wall_shift_micros += micros;
    }

    /// Sets the wall clock to the time that it would show if neither clock had ever been wrong.
    pub(super) fn correct_wall(&self) {
        let present = self.present();
        let mut state = lock(&self.state);
        let micros = |nanos: u64| i64::try_from(nanos / 1000).unwrap_or(i64::MAX / 2);
        state.wall_shift_micros = micros(present) - micros(state.at(present));
    }

    /// Makes the clocks fast by so many parts per million from now on (slow if negative).
    pub(super) fn set_drift(&self, ppm: i64) {
        assert!(ppm.abs() < 500_000, "a clock that is off by half is no clock");
        let present = self.present();
        let mut state = lock(&self.state);
        state.base = state.at(present);
        state.since = present;
        state.drift_ppm = ppm;
    }

    /// The time on the timeline at which the monotonic clock first shows this reading.
    pub(super) fn when(&self, local: u64) -> u64 {
        lock(&self.state).when(local)
    }

    pub(super) fn end_life(&self) {
        self.timeline.end_life(self.machine);
    }
}

impl Clock for SimClock {
    fn now_micros(&self) -> i64 {
        let local = self.monotonic_nanos();
        let shift = lock(&self.state).wall_shift_micros;
        WALL_START_MICROS + shift + i64::try_from(local / 1000).unwrap_or(i64::MAX / 2)
    }

    fn monotonic_nanos(&self) -> u64 {
        let present = self.present();
        lock(&self.state).at(present)
    }

    fn sleep(&self, duration: Duration) -> Sleep {
        let deadline = self.monotonic_nanos().saturating_add(nanos_of(duration));
        let clock = SimClock {
            machine: self.machine,
            timeline: self.timeline.clone(),
            is_alone: self.is_alone,
            state: self.state.clone(),
        };
        Box::pin(Timer { deadline, number: self.timeline.next_number(), set: None, clock })
    }
}

fn nanos_of(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

struct Timer {
    /// The end of the sleep, on the machine's monotonic clock.
    deadline: u64,
    number: u64,
    /// The key of its timer on the timeline; None: it does not wait.
    set: Option<(u64, u64)>,
    clock: SimClock,
}

impl Timer {
    fn unset(&mut self) {
        if let Some(key) = self.set.take() {
            self.clock.timeline.remove_timer(key);
        }
    }
}

impl Future for Timer {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.unset();
        if self.clock.monotonic_nanos() >= self.deadline {
            return Poll::Ready(());
        }
        let key = (self.clock.when(self.deadline), self.number);
        self.clock.timeline.set_timer(key, self.clock.machine, context.waker().clone());
        self.set = Some(key);
        Poll::Pending
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        self.unset();
    }
}
