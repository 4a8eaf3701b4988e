//! The state that a worker's connections share, whatever their protocol is: their entries, and the
//! news for all of them (timeouts, events, a drain).
//!
//! What must hold: a connection stands in `connections`, in the registry and in the count of its
//! arrival queue from its [`Entry`]'s making to its drop.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::sync::Notify;

use crate::control::{CloseReason, Control};
use crate::event_hub::{Published, Subscription};
use crate::limits::{REFUSALS_MAX, TICK};
use crate::protocol::Protocol;
use crate::shared::{Arrival, Shared};
use crate::stats::{ConnectionStats, TooManyConnections, WorkerStats};

/// The state of a worker: see the head of this file.
pub(crate) struct WorkerCore<P: Protocol> {
    number: usize,
    pub shared: Arc<Shared<P>>,
    pub stats: Arc<WorkerStats>,
    /// This worker's connections by their numbers in the registry.
    connections: RefCell<BTreeMap<u64, Rc<Control<P>>>>,
    /// Wakes the ticker when the first connection comes, and the drain when the last one is gone.
    changed: Notify,
}

impl<P: Protocol> WorkerCore<P> {
    pub fn new(number: usize, shared: Arc<Shared<P>>, stats: Arc<WorkerStats>) -> Self {
        Self { number, shared, stats, connections: RefCell::default(), changed: Notify::new() }
    }

    /// Notes that requests of so many bytes have ended: wakes the connections that wait for them.
    pub fn release(&self, bytes: usize) {
        let before = self.shared.release(bytes);
        let limit = self.shared.limits.total_bytes_max;
        let passes = before >= limit && before - bytes.min(before) < limit;
        if passes || before >= limit / 2 * 3 {
            self.wake_paused();
        }
    }

    /// Wakes the connections that wait for room. Called when there may be some again.
    pub fn wake_paused(&self) {
        self.for_each(|control| {
            if control.paused.get() {
                control.wake();
            }
        });
    }

    pub fn for_each(&self, mut visit: impl FnMut(&Rc<Control<P>>)) {
        self.connections.borrow().values().for_each(&mut visit);
    }

    pub fn is_empty(&self) -> bool {
        self.connections.borrow().is_empty()
    }

    /// Looks at all timeouts, again and again, for as long as the worker runs.
    pub async fn tick(&self) {
        loop {
            if self.is_empty() {
                self.changed.notified().await;
                continue;
            }
            self.shared.env.sleep(TICK).await;
            let now = self.shared.env.now();
            let full = self.shared.is_full();
            self.for_each(|control| {
                control.tick(now, &self.shared.limits);
                if control.paused.get() && !full {
                    control.wake();
                }
            });
        }
    }

    /// Brings events to the connections that asked for them.
    pub async fn hand_out_events(&self, mut subscription: Subscription<P>) {
        while let Some(published) = subscription.next().await {
            self.for_each(|control| match &published {
                Published::Event(event) => control.notify(event),
                Published::Overflow if control.is_registered() => control.close(CloseReason::TooManyEvents),
                Published::Overflow => {}
            });
        }
    }

    pub fn close_all(&self, close_reason: CloseReason) {
        self.for_each(|control| control.close(close_reason));
    }

    /// Waits for the end of the last connection.
    pub async fn wait_until_empty(&self) {
        while !self.is_empty() {
            self.changed.notified().await;
        }
    }

    /// Gives a new connection to the worker that has the fewest. Gives it back if that is this
    /// worker, or if it is not certain that another one has fewer.
    pub fn hand_to_least_loaded(&self, arrival: Arrival) -> Option<Arrival> {
        let arrival_queues = &self.shared.arrival_queues;
        let load = |number: &usize| arrival_queues[*number].assigned.load(Ordering::Relaxed);
        let others = (0..arrival_queues.len()).filter(|number| *number != self.number);
        let idlest = others.min_by_key(load).filter(|number| load(number) < load(&self.number));
        let Some(number) = idlest else {
            arrival_queues[self.number].assigned.fetch_add(1, Ordering::Relaxed);
            return Some(arrival);
        };
        arrival_queues[number].assigned.fetch_add(1, Ordering::Relaxed);
        let refused = arrival_queues[number].sender.try_send(arrival).err()?;
        arrival_queues[number].assigned.fetch_sub(1, Ordering::Relaxed);
        arrival_queues[self.number].assigned.fetch_add(1, Ordering::Relaxed);
        Some(refused.into_inner())
    }

    /// Closes a connection that was handed over too late: this worker does not serve it.
    pub fn close_arrival(&self, arrival: Arrival) {
        self.shared.arrival_queues[self.number].assigned.fetch_sub(1, Ordering::Relaxed);
        drop(arrival);
    }

    /// Enters a connection that this worker serves. Some: the limit that it breaks.
    pub fn register(self: &Rc<Self>, peer: SocketAddr) -> (Entry<P>, Option<TooManyConnections>) {
        self.stats.accepted.add(1);
        let stats: Arc<ConnectionStats<P::Details>> = Arc::new(ConnectionStats::new(peer));
        let (id, refusal) = self.shared.registry.admit(stats.clone(), &self.shared.limits);
        let control = Rc::new(Control::new(self.shared.env.now()));
        self.connections.borrow_mut().insert(id, control.clone());
        self.stats.connections.add(1);
        self.changed.notify_waiters();
        if refusal.is_some() {
            self.stats.refused.add(1);
            self.shared.refusals.fetch_add(1, Ordering::Relaxed);
        }
        (Entry { core: self.clone(), id, is_refused: refusal.is_some(), stats, control }, refusal)
    }

    /// Whether more refused connections are open than are told why: a worker closes the newest one
    /// without an answer.
    pub fn has_many_refusals(&self) -> bool {
        self.shared.refusals.load(Ordering::Relaxed) > REFUSALS_MAX
    }
}

/// A connection's entry in its worker and in the registry, which is removed when this is dropped.
pub(crate) struct Entry<P: Protocol> {
    pub core: Rc<WorkerCore<P>>,
    /// The connection's number in the registry.
    id: u64,
    is_refused: bool,
    pub stats: Arc<ConnectionStats<P::Details>>,
    pub control: Rc<Control<P>>,
}

impl<P: Protocol> Drop for Entry<P> {
    fn drop(&mut self) {
        let core = &self.core;
        core.connections.borrow_mut().remove(&self.id);
        core.shared.registry.remove(self.id);
        core.stats.connections.subtract(1);
        core.shared.arrival_queues[core.number].assigned.fetch_sub(1, Ordering::Relaxed);
        if self.is_refused {
            core.shared.refusals.fetch_sub(1, Ordering::Relaxed);
        }
        if core.is_empty() {
            core.changed.notify_waiters();
            core.changed.notify_one();
        }
    }
}
