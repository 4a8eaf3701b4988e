//! A worker: one thread, one runtime, one listener, its own connections.
//!
//! Nothing on the way of a request leaves the thread. Three tasks stand beside the connections: the ticker looks for
//! timeouts, the event task hands events to registered connections, and the accept loop, which is the thread's main future,
//! brings connections until the server drains.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use env::{Listener, Stream};
use protocol::ErrorMessage;
use tokio::sync::{Notify, watch};

use crate::connection::control::{Control, Verdict};
use crate::connection::{Origin, serve};
use crate::event_hub::{Published, Subscription};
use crate::handler::RequestHandler;
use crate::limits::{ACCEPT_PAUSE, REFUSALS_MAX, TICK};
use crate::server::{Phase, Shared};
use crate::stats::{ConnectionStats, WorkerStats};

/// What a worker's connections share, whatever its handler is.
pub(crate) struct WorkerCore {
    pub shared: Arc<Shared>,
    pub stats: Arc<WorkerStats>,
    connections: RefCell<BTreeMap<u64, Rc<Control>>>,
    /// Connections over the limit that are being told so.
    refusals: Cell<usize>,
    /// Wakes the ticker when the first connection comes, and the drain when the last one is gone.
    changed: Notify,
}

impl WorkerCore {
    pub fn new(shared: Arc<Shared>, stats: Arc<WorkerStats>) -> Self {
        Self {
            shared,
            stats,
            connections: RefCell::default(),
            refusals: Cell::new(0),
            changed: Notify::new(),
        }
    }

    /// Bytes of requests that have ended; wakes who waits for them.
    pub fn release(&self, bytes: usize) {
        let before = self
            .shared
            .bytes_in_flight
            .fetch_sub(bytes, Ordering::Relaxed);
        if before >= self.shared.limits.total_bytes_max {
            self.for_each(|control| {
                if control.paused.get() {
                    control.wake();
                }
            });
        }
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
            let overloaded = self.shared.is_overloaded();
            self.for_each(|control| {
                control.tick(now, &self.shared.limits);
                if control.paused.get() && !overloaded {
                    control.wake();
                }
            });
        }
    }

    async fn hand_out_events(&self, mut subscription: Subscription) {
        while let Some(published) = subscription.next().await {
            self.for_each(|control| match &published {
                Published::Event(event) => control.notify(event),
                Published::Overflow if control.is_registered() => {
                    control.sentence(Verdict::TooManyEvents)
                }
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

    /// What a new connection from this address is told, if it may not stay.
    fn refusal(&self, address: IpAddr) -> Option<ErrorMessage> {
        let limits = &self.shared.limits;
        if limits.connections_max.is_none() && limits.connections_per_ip_max.is_none() {
            return None;
        }
        let (all, of_address) = self.shared.registry.counts(address);
        let over = |count: usize, limit: Option<usize>| limit.filter(|limit| count >= *limit);
        if let Some(limit) = over(all, limits.connections_max) {
            return Some(ErrorMessage::overloaded(format!(
                "Too many connections: the limit is {limit}"
            )));
        }
        let limit = over(of_address, limits.connections_per_ip_max)?;
        Some(ErrorMessage::overloaded(format!(
            "Too many connections from {address}: the limit is {limit}"
        )))
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
        if self.refused {
            core.refusals.set(core.refusals.get() - 1);
        }
        if core.is_empty() {
            core.changed.notify_waiters();
            core.changed.notify_one();
        }
    }
}

/// Accepts connections until the server drains, then sees them to their end.
pub(crate) async fn run<H: RequestHandler>(
    core: Rc<WorkerCore>,
    handler: Rc<H>,
    mut listener: Box<dyn Listener>,
    mut phase: watch::Receiver<Phase>,
) {
    let ticker = core.clone();
    tokio::task::spawn_local(async move { ticker.tick().await });
    let (events, subscription) = (core.clone(), core.shared.events.subscribe());
    tokio::task::spawn_local(async move { events.hand_out_events(subscription).await });
    loop {
        tokio::select! {
            biased;
            _ = phase.wait_for(|phase| *phase != Phase::Serving) => break,
            accepted = env::accept(&mut *listener) => match accepted {
                Ok((stream, peer)) => accept(&core, &handler, stream, peer),
                Err(error) => {
                    tracing::warn!(%error, "cannot accept connections");
                    core.shared.env.sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }
    drop(listener);
    core.sentence_all(Verdict::Drain);
    let limit = core.shared.limits.drain_timeout;
    if core
        .shared
        .env
        .timeout(limit, core.wait_until_empty())
        .await
        .is_err()
    {
        tracing::warn!(
            connections = core.stats.connections.get(),
            "requests in flight dropped at the end of the drain"
        );
        core.sentence_all(Verdict::Stop);
        core.wait_until_empty().await;
    }
}

fn accept<H: RequestHandler>(
    core: &Rc<WorkerCore>,
    handler: &Rc<H>,
    stream: Box<dyn Stream>,
    peer: SocketAddr,
) {
    core.stats.accepted.add(1);
    let refusal = core.refusal(peer.ip());
    if let Some(refusal) = &refusal {
        core.stats.refused.add(1);
        tracing::warn!(%peer, "{}", refusal.message);
        if core.refusals.get() >= REFUSALS_MAX {
            return;
        }
        core.refusals.set(core.refusals.get() + 1);
    }
    let refused = refusal.is_some();
    let control = Rc::new(Control::new(core.shared.env.now()));
    let stats = Arc::new(ConnectionStats::new(peer));
    let id = core.shared.registry.add(stats.clone());
    let entry = Entry {
        core: core.clone(),
        id,
        refused,
    };
    core.connections.borrow_mut().insert(id, control.clone());
    core.stats.connections.add(1);
    core.changed.notify_waiters();
    let origin = Origin {
        core: core.clone(),
        control,
        stats,
        peer,
        refusal,
    };
    let handler = handler.clone();
    tokio::task::spawn_local(async move {
        let _entry = entry;
        serve(origin, handler, stream).await;
    });
}
