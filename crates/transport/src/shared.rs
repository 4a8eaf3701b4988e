//! The state that all workers of a server share, and how a connection comes from one worker to
//! another.
//!
//! Requests write only the count of bytes in flight in it, and only requests that wait do.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use env::{Detached, Env, Instant};
use stdx::ByteBudget;
use tls::Tls;
use tokio::sync::mpsc;

use crate::event_hub::EventHub;
use crate::limits::{ARRIVALS_MAX, ServerLimits, WARNING_INTERVAL};
use crate::protocol::Protocol;
use crate::stats::ConnectionRegistry;

/// The phase of the server: set by `ServerHandle`, followed by every worker.
///
/// ```text
/// Serving <--> Closed      nodetool disablebinary, enablebinary
/// Serving or Closed --> Ended
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Listen and serve.
    Serving,
    /// Do not listen; end all connections and wait for another phase.
    Closed {
        /// True: requests in flight are dropped, not finished.
        force: bool,
    },
    /// End all connections, then the worker itself.
    Ended,
}

/// The state that all workers share: see the head of this file.
pub(crate) struct Shared<P: Protocol> {
    pub env: Env,
    pub limits: ServerLimits,
    pub tls: Option<Tls>,
    pub events: Arc<EventHub<P>>,
    pub registry: Arc<ConnectionRegistry<P::Details>>,
    /// Bytes of requests that wait for something.
    bytes_in_flight: AtomicUsize,
    /// Bytes of large bodies, from their first byte until they are answered. Their limit is half
    /// of that of bytes in flight, so that small requests need not wait for large ones.
    pub large_bodies: Arc<ByteBudget>,
    /// Bytes of large requests that are executed, with everything that is made of them. Their
    /// limit is that of large bodies. A request whose body has room waits for requests that have
    /// grown, and these wait for no room, so no requests wait for each other.
    pub grown: Arc<ByteBudget>,
    /// Bytes of large results, see `ServerOptions::results`.
    pub results: Arc<ByteBudget>,
    /// The arrival queue of each worker.
    pub arrival_queues: Vec<ArrivalQueue>,
    /// Number of workers that listen now.
    pub listening: AtomicUsize,
    /// Number of connections over the limit that are being told so, of all workers: their
    /// descriptors must not grow with the number of cores.
    pub refusals: AtomicUsize,
    /// Refused connections that the log has not been told of.
    pub unlogged_refusals: SuppressedWarnings,
    /// Failed attempts of all workers to accept a connection that the log has not been told of.
    pub unaccepted: SuppressedWarnings,
    /// Why a worker could not listen again; taken by `ServerHandle::resume`. None: there was no
    /// error.
    bind_error: Mutex<Option<io::Error>>,
    /// The event that is sent to registered connections before they are closed, that the node goes
    /// down. None: none is sent.
    farewell: Mutex<Option<Arc<P::Event>>>,
}

/// Connections that were refused, or could not be accepted, of which the log has not been told:
/// clients that are over a limit connect again at once, and where descriptors are short each worker
/// tries ten times a second. A line for each would rotate everything else out of the log.
#[derive(Default)]
pub(crate) struct SuppressedWarnings {
    count: AtomicU64,
    /// When a line was written last, in nanoseconds; 0: never.
    told_at: AtomicU64,
}

impl SuppressedWarnings {
    /// Counts a connection. Some: a line may be written to the log now, and stands for so many
    /// connections.
    pub fn add(&self, now: Instant) -> Option<u64> {
        self.count.fetch_add(1, Ordering::Relaxed);
        let at = now.as_nanos().max(1);
        let since = |last: u64| now.since(Instant::from_nanos(last));
        let due = |last: u64| (last == 0 || since(last) >= WARNING_INTERVAL).then_some(at);
        self.told_at.fetch_update(Ordering::Relaxed, Ordering::Relaxed, due).ok()?;
        Some(self.count.swap(0, Ordering::Relaxed))
    }
}

/// A connection on its way to the worker that will serve it.
pub(crate) type Arrival = (Box<dyn Detached>, SocketAddr);

/// The way by which a worker gets connections that another worker has accepted.
///
/// The kernel spreads connections by a hash of their addresses: of few connections, as drivers open
/// them, all may come to one worker. So the worker that accepts one hands it to the worker with the
/// fewest.
pub(crate) struct ArrivalQueue {
    /// Number of connections that the worker has or is about to get.
    pub assigned: AtomicUsize,
    pub sender: mpsc::Sender<Arrival>,
}

impl ArrivalQueue {
    pub fn new() -> (Self, mpsc::Receiver<Arrival>) {
        let (sender, receiver) = mpsc::channel(ARRIVALS_MAX);
        (Self { assigned: AtomicUsize::new(0), sender }, receiver)
    }
}

impl<P: Protocol> Shared<P> {
    pub fn new(
        env: &Env,
        limits: ServerLimits,
        tls: Option<Tls>,
        events: Arc<EventHub<P>>,
        results: Arc<ByteBudget>,
        arrival_queues: Vec<ArrivalQueue>,
    ) -> Self {
        let large_bodies = ByteBudget::new(limits.total_bytes_max / 2);
        Self {
            env: env.clone(),
            limits,
            tls,
            events,
            registry: Arc::default(),
            bytes_in_flight: AtomicUsize::new(0),
            grown: ByteBudget::new(large_bodies.limit()),
            large_bodies,
            results,
            arrival_queues,
            listening: AtomicUsize::new(0),
            refusals: AtomicUsize::new(0),
            unlogged_refusals: SuppressedWarnings::default(),
            unaccepted: SuppressedWarnings::default(),
            bind_error: Mutex::default(),
            farewell: Mutex::default(),
        }
    }

    /// Bytes of requests that wait, without those of large bodies.
    pub fn bytes_in_flight(&self) -> usize {
        self.bytes_in_flight.load(Ordering::Relaxed)
    }

    /// Counts the bytes of a request that waits.
    pub fn charge(&self, bytes: usize) {
        self.bytes_in_flight.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Stops counting the bytes of requests. Returns the number that was counted before.
    pub fn release(&self, bytes: usize) -> usize {
        let before = self.bytes_in_flight.fetch_sub(bytes, Ordering::Relaxed);
        assert!(before >= bytes, "bytes in flight are released once");
        before
    }

    /// Whether not even connections without a request in flight may execute one. The limit is half
    /// as high again as that of [`Shared::is_overloaded`], so that a few connections that ask for
    /// much and wait do not stop all others.
    pub fn is_full(&self) -> bool {
        self.bytes_in_flight() >= self.limits.total_bytes_max / 2 * 3
    }

    /// Bytes of all large requests, those that have grown included.
    pub fn large_bytes(&self) -> usize {
        self.large_bodies.used().saturating_add(self.grown.used())
    }

    /// Whether no further large body is read.
    pub fn has_many_large(&self) -> bool {
        self.large_bytes() >= self.large_bodies.limit()
    }

    /// Whether connections that have requests in flight may execute no further ones.
    pub fn is_overloaded(&self) -> bool {
        self.bytes_in_flight() >= self.limits.total_bytes_max
    }

    /// The event that is sent before connections are closed; None: none is.
    pub fn farewell(&self) -> Option<Arc<P::Event>> {
        self.farewell.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn set_farewell(&self, event: P::Event) {
        *self.farewell.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(event));
    }

    /// Takes the reason why a worker could not listen again; None: there was no error.
    pub fn take_bind_error(&self) -> Option<io::Error> {
        self.bind_error.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub fn set_bind_error(&self, error: io::Error) {
        *self.bind_error.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_connections_are_told_once_a_minute() {
        let (unlogged_refusals, at) =
            (SuppressedWarnings::default(), |millis: u64| Instant::from_nanos(millis * 1_000_000));
        let told: Vec<_> = (0..1000).filter_map(|millis| unlogged_refusals.add(at(millis))).collect();
        assert_eq!(told, [1], "a line in a second");
        let pause = u64::try_from(WARNING_INTERVAL.as_millis()).expect("a short time");
        assert_eq!(unlogged_refusals.add(at(pause + 1)), Some(1000));
        assert_eq!(unlogged_refusals.add(at(pause + 2)), None);
    }
}
