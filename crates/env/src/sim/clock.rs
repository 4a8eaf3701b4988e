//! Virtual time: stands still until moved, and wakes the timers that it passes.

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

#[derive(Default)]
struct Time {
    nanos: u64,
    wall_shift_micros: i64,
    timers_made: u64,
    /// By deadline, then by age.
    timers: BTreeMap<(u64, u64), Waker>,
}

pub(super) struct SimClock(Arc<Mutex<Time>>);

impl SimClock {
    pub(super) fn new() -> Self {
        SimClock(Arc::new(Mutex::new(Time::default())))
    }

    pub(super) fn advance(&self, duration: Duration) {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        let target = lock(&self.0).nanos.saturating_add(nanos);
        self.move_to(target);
    }

    pub(super) fn shift_wall(&self, micros: i64) {
        lock(&self.0).wall_shift_micros += micros;
    }

    /// Moves to the next timer or to `deadline`, whichever comes first; `false` when there is neither.
    pub(super) fn advance_to(&self, deadline: Option<u64>) -> bool {
        let timer = lock(&self.0).timers.first_key_value().map(|((at, _), _)| *at);
        let Some(target) = timer.into_iter().chain(deadline).min() else {
            return false;
        };
        self.move_to(target);
        true
    }

    pub(super) fn end_life(&self) {
        let timers = std::mem::take(&mut lock(&self.0).timers);
        drop(timers);
    }

    fn move_to(&self, target: u64) {
        let due = {
            let mut time = lock(&self.0);
            time.nanos = time.nanos.max(target);
            let later = time.timers.split_off(&(target.saturating_add(1), 0));
            std::mem::replace(&mut time.timers, later)
        };
        due.into_values().for_each(Waker::wake);
    }
}

impl Clock for SimClock {
    fn now_micros(&self) -> i64 {
        let time = lock(&self.0);
        WALL_START_MICROS + time.wall_shift_micros + i64::try_from(time.nanos / 1000).unwrap_or(i64::MAX / 2)
    }

    fn monotonic_nanos(&self) -> u64 {
        lock(&self.0).nanos
    }

    fn sleep(&self, duration: Duration) -> Sleep {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        let mut time = lock(&self.0);
        time.timers_made += 1;
        Box::pin(Timer { key: (time.nanos.saturating_add(nanos), time.timers_made), time: self.0.clone() })
    }
}

struct Timer {
    key: (u64, u64),
    time: Arc<Mutex<Time>>,
}

impl Future for Timer {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut time = lock(&self.time);
        if time.nanos >= self.key.0 {
            return Poll::Ready(());
        }
        time.timers.insert(self.key, context.waker().clone());
        Poll::Pending
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        let waker = lock(&self.time).timers.remove(&self.key);
        drop(waker);
    }
}
