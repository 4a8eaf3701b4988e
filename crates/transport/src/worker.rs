//! A worker: one thread, one runtime, one listener, its own connections.
//!
//! Nothing on the way of a request leaves the thread. Three tasks stand beside the connections: the ticker looks for
//! timeouts, the event task hands events to registered connections, and the accept loop, which is the thread's main future,
//! brings connections until the server drains.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use env::Listener;
use tokio::sync::{Notify, mpsc, watch};

use crate::connection::control::{Control, Verdict};
use crate::connection::{Origin, serve};
use crate::event_hub::{Published, Subscription};
use crate::handler::RequestHandler;
use crate::limits::{ACCEPT_PAUSE, REFUSALS_MAX, TICK};
use crate::server::{Arrival, Phase, Shared};
use crate::stats::{ConnectionStats, WorkerStats};

/// What a worker's connections share, whatever its handler is.
pub(crate) struct WorkerCore {
    number: usize,
    pub shared: Arc<Shared>,
    pub stats: Arc<WorkerStats>,
    connections: RefCell<BTreeMap<u64, Rc<Control>>>,
    /// Connections over the limit that are being told so.
    refusals: Cell<usize>,
    /// Wakes the ticker when the first connection comes, and the drain when the last one is gone.
    changed: Notify,
}

impl WorkerCore {
    pub fn new(number: usize, shared: Arc<Shared>, stats: Arc<WorkerStats>) -> Self {
        Self { number, shared, stats, connections: RefCell::default(), refusals: Cell::new(0), changed: Notify::new() }
    }

    /// Bytes of requests that have ended; wakes who waits for them.
    pub fn release(&self, bytes: usize) {
        let before = self.shared.bytes_in_flight.fetch_sub(bytes, Ordering::Relaxed);
        let limit = self.shared.limits.total_bytes_max;
        let passes = before >= limit && before - bytes.min(before) < limit;
        if passes || before >= limit / 2 * 3 {
            self.wake_paused();
        }
    }

    /// There may be room for those who wait for it.
    pub fn wake_paused(&self) {
        self.for_each(|control| {
            if control.paused.get() {
                control.wake();
            }
        });
    }

    fn for_each(&self, mut visit: impl FnMut(&Rc<Control>)) {
        self.connections.borrow().values().for_each(&mut visit);
    }

    fn is_empty(&self) -> bool {
        self.connections.borrow().is_empty()
    }

    /// Runs for as long as the worker does.
    async fn tick(&self) {
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

    async fn hand_out_events(&self, mut subscription: Subscription) {
        while let Some(published) = subscription.next().await {
            self.for_each(|control| match &published {
                Published::Event(event) => control.notify(event),
                Published::Overflow if control.is_registered() => control.sentence(Verdict::TooManyEvents),
                Published::Overflow => {}
            });
        }
    }

    fn sentence_all(&self, verdict: Verdict) {
        self.for_each(|control| control.sentence(verdict));
    }

    /// Waits for the last connection's end.
    async fn wait_until_empty(&self) {
        while !self.is_empty() {
            self.changed.notified().await;
        }
    }

    /// Gives a new connection to the worker that has the fewest, which this one is in case of doubt; then it comes back.
    fn hand_on(&self, arrival: Arrival) -> Option<Arrival> {
        let doors = &self.shared.doors;
        let load = |number: &usize| doors[*number].assigned.load(Ordering::Relaxed);
        let others = (0..doors.len()).filter(|number| *number != self.number);
        let idlest = others.min_by_key(load).filter(|number| load(number) < load(&self.number));
        let Some(number) = idlest else {
            doors[self.number].assigned.fetch_add(1, Ordering::Relaxed);
            return Some(arrival);
        };
        doors[number].assigned.fetch_add(1, Ordering::Relaxed);
        let refused = doors[number].sender.try_send(arrival).err()?;
        doors[number].assigned.fetch_sub(1, Ordering::Relaxed);
        doors[self.number].assigned.fetch_add(1, Ordering::Relaxed);
        Some(refused.into_inner())
    }
}

/// A connection's place in the books, kept until it ends however it ends.
struct Entry {
    core: Rc<WorkerCore>,
    id: u64,
    refused: bool,
}

impl Drop for Entry {
    fn drop(&mut self) {
        let core = &self.core;
        core.connections.borrow_mut().remove(&self.id);
        core.shared.registry.remove(self.id);
        core.stats.connections.subtract(1);
        core.shared.doors[core.number].assigned.fetch_sub(1, Ordering::Relaxed);
        if self.refused {
            core.refusals.set(core.refusals.get() - 1);
        }
        if core.is_empty() {
            core.changed.notify_waiters();
            core.changed.notify_one();
        }
    }
}

/// Runs a worker through the phases of its server until that ends.
pub(crate) async fn run<H: RequestHandler>(
    core: Rc<WorkerCore>,
    handler: Rc<H>,
    address: SocketAddr,
    listener: Box<dyn Listener>,
    mut arrivals: mpsc::Receiver<Arrival>,
    mut phase: watch::Receiver<Phase>,
) {
    let ticker = core.clone();
    tokio::task::spawn_local(async move { ticker.tick().await });
    let (events, subscription) = (core.clone(), core.shared.events.subscribe());
    tokio::task::spawn_local(async move { events.hand_out_events(subscription).await });
    let mut next = Some(listener);
    while let Some(listener) = next {
        let left = accept_while_serving(&core, &handler, listener, &mut arrivals, &mut phase).await;
        see_off(&core, left).await;
        next = listen_again(&core, address, &mut arrivals, &mut phase).await;
    }
}

/// Accepts connections as long as the server serves; says which phase came then. The listener is
/// closed.
async fn accept_while_serving<H: RequestHandler>(
    core: &Rc<WorkerCore>,
    handler: &Rc<H>,
    mut listener: Box<dyn Listener>,
    arrivals: &mut mpsc::Receiver<Arrival>,
    phase: &mut watch::Receiver<Phase>,
) -> Phase {
    core.shared.listening.fetch_add(1, Ordering::AcqRel);
    let left = loop {
        tokio::select! {
            biased;
            left = phase.wait_for(|phase| *phase != Phase::Serving) => break left.map_or(Phase::Ended, |phase| *phase),
            Some(arrival) = arrivals.recv() => serve_here(core, handler, arrival),
            accepted = env::accept_detached(&mut *listener) => match accepted {
                Ok(arrival) => {
                    if let Some(arrival) = core.hand_on(arrival) {
                        serve_here(core, handler, arrival);
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept connections");
                    core.shared.env.sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    };
    drop(listener);
    core.shared.listening.fetch_sub(1, Ordering::AcqRel);
    left
}

/// Sees all connections to their end: requests in flight have the time of a drain, unless they are
/// to be dropped.
async fn see_off(core: &Rc<WorkerCore>, left: Phase) {
    if let Some(event) = core.shared.farewell() {
        core.for_each(|control| control.notify(&event));
    }
    let force = left == Phase::Closed { force: true };
    core.sentence_all(if force { Verdict::Stop } else { Verdict::Drain });
    let limit = core.shared.limits.drain_timeout;
    if core.shared.env.timeout(limit, core.wait_until_empty()).await.is_err() {
        tracing::warn!(
            connections = core.stats.connections.get(),
            "requests in flight dropped at the end of the drain"
        );
        core.sentence_all(Verdict::Stop);
        core.wait_until_empty().await;
    }
    assert!(core.is_empty(), "no connection outlives the phase in which it was accepted");
}

/// Waits until the server serves again and listens; None: it has ended. A connection that another
/// worker still hands over meanwhile is closed.
async fn listen_again(
    core: &Rc<WorkerCore>,
    address: SocketAddr,
    arrivals: &mut mpsc::Receiver<Arrival>,
    phase: &mut watch::Receiver<Phase>,
) -> Option<Box<dyn Listener>> {
    loop {
        let asked = tokio::select! {
            biased;
            Some(_) = arrivals.recv() => {
                core.shared.doors[core.number].assigned.fetch_sub(1, Ordering::Relaxed);
                continue;
            }
            asked = phase.wait_for(|phase| !matches!(phase, Phase::Closed { .. })) => asked.map_or(Phase::Ended, |phase| *phase),
        };
        if asked == Phase::Ended {
            return None;
        }
        match core.shared.env.network.bind(address, true) {
            Ok(listener) => return Some(listener),
            Err(error) => {
                tracing::warn!(%address, %error, "cannot listen again");
                *core.shared.bind_error.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                // the one who asked closes the server again; until then others may accept
                core.shared.env.sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Serves a connection on this thread; it is counted in this worker's door already.
fn serve_here<H: RequestHandler>(core: &Rc<WorkerCore>, handler: &Rc<H>, (detached, peer): Arrival) {
    core.stats.accepted.add(1);
    let stats = Arc::new(ConnectionStats::new(peer));
    let (id, refusal) = core.shared.registry.admit(stats.clone(), &core.shared.limits);
    let entry = Entry { core: core.clone(), id, refused: refusal.is_some() };
    let control = Rc::new(Control::new(core.shared.env.now()));
    core.connections.borrow_mut().insert(id, control.clone());
    core.stats.connections.add(1);
    core.refusals.set(core.refusals.get() + usize::from(entry.refused));
    core.changed.notify_waiters();
    if let Some(refusal) = &refusal {
        core.stats.refused.add(1);
        tracing::warn!(%peer, "{}", refusal.message);
        if core.refusals.get() > REFUSALS_MAX {
            return;
        }
    }
    let stream = match detached.attach() {
        Ok(stream) => stream,
        Err(error) => return tracing::warn!(%peer, %error, "cannot serve a connection"),
    };
    let origin = Origin { core: core.clone(), control, stats, peer, refusal };
    let handler = handler.clone();
    tokio::task::spawn_local(async move {
        let _entry = entry;
        let stream = match &origin.core.shared.tls {
            None => stream,
            Some(tls) => match tls.accept(stream).await {
                Ok(stream) => stream,
                Err(error) => return tracing::debug!(%peer, %error, "no connection: the TLS handshake failed"),
            },
        };
        serve(origin, handler, stream).await;
    });
}
