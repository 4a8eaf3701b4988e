//! A server: its workers, its start and its end, and its pauses.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use env::{Env, Joinable, LocalFutureFactory, SocketOptions};
use stdx::ByteBudget;
use tls::Tls;
use tokio::sync::{mpsc, watch};

use crate::event_hub::EventHub;
use crate::limits::{RESUME_MAX, ServerLimits};
use crate::protocol::Protocol;
use crate::session::Service;
use crate::shared::{Arrival, ArrivalQueue, Phase, Shared};
use crate::stats::{ConnectionRegistry, WorkerStats};
use crate::worker;
use crate::worker_core::WorkerCore;

/// The options that a server is started with.
pub struct ServerOptions<P: Protocol> {
    /// The address to listen on; port 0 takes any free one.
    pub address: SocketAddr,
    /// Number of workers; one for each core is right.
    pub workers: usize,
    /// Whether each worker is bound to a core.
    pub pin: bool,
    /// True: clients are served only after [`ServerHandle::resume`].
    pub is_closed: bool,
    /// Limits of connections and requests.
    pub limits: ServerLimits,
    /// How connections are encrypted; None: they are not.
    pub tls: Option<Tls>,
    /// The hub from which events come.
    pub events: Arc<EventHub<P>>,
    /// The memory that large results may take together. Results in out buffers count until they are
    /// written.
    pub results: Arc<ByteBudget>,
}

/// Why [`ServerHandle::resume`] did not make the server serve again.
#[derive(Debug)]
pub enum ResumeError {
    /// The server has ended for good, by [`ServerHandle::stop_serving`] or its own end.
    Ended,
    /// A worker cannot listen; most likely another program has taken the port.
    Bind(SocketAddr, io::Error),
}

impl fmt::Display for ResumeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended => f.write_str("the server has ended"),
            Self::Bind(address, error) => write!(f, "cannot listen on {address}: {error}"),
        }
    }
}

impl std::error::Error for ResumeError {}

/// A running server. Dropping it without [`Server::shutdown`] begins a drain and does not wait for
/// its end.
pub struct Server<P: Protocol> {
    address: SocketAddr,
    shared: Arc<Shared<P>>,
    workers: Vec<Box<dyn Joinable>>,
    worker_stats: Vec<Arc<WorkerStats>>,
    phase: watch::Sender<Phase>,
}

impl<P: Protocol> Server<P> {
    /// Starts the workers; returns when all of them listen. `make_service` is called on each
    /// worker's thread with its number.
    pub fn start<V: Service<Protocol = P>>(
        env: &Env,
        options: ServerOptions<P>,
        make_service: impl Fn(usize) -> V + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let workers = options.workers.max(1);
        let (arrival_queues, receivers): (Vec<ArrivalQueue>, Vec<_>) =
            (0..workers).map(|_| ArrivalQueue::new()).unzip();
        let ServerOptions { limits, tls, events, results, .. } = options;
        let shared = Arc::new(Shared::new(env, limits, tls, events, results, arrival_queues));
        let (phase, receiver) =
            watch::channel(if options.is_closed { Phase::Closed { force: false } } else { Phase::Serving });
        let make_service = Arc::new(make_service);
        let mut server = Self {
            address: options.address,
            shared: shared.clone(),
            workers: Vec::new(),
            worker_stats: Vec::new(),
            phase,
        };
        for (number, arrivals) in receivers.into_iter().enumerate() {
            let stats = Arc::new(WorkerStats::default());
            let start = WorkerStart {
                number,
                pin: options.pin,
                // the first one chooses the port
                address: server.address,
                shared: shared.clone(),
                stats: stats.clone(),
                phase: receiver.clone(),
                arrivals,
            };
            let (tell, told) = std::sync::mpsc::channel();
            let make_service = make_service.clone();
            let make: LocalFutureFactory =
                Box::new(move || Box::pin(start.run(move |number| make_service(number), tell)));
            server.workers.push(env.tasks.spawn_local_worker(&format!("worker-{number}"), make));
            server.worker_stats.push(stats);
            server.address = told.recv().unwrap_or_else(|_| Err(io::Error::other("a worker ended at its start")))?;
        }
        Ok(server)
    }

    /// The address on which the server listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The connections open now.
    pub fn connections(&self) -> &Arc<ConnectionRegistry<P::Details>> {
        &self.shared.registry
    }

    /// The counters of each worker.
    pub fn worker_stats(&self) -> &[Arc<WorkerStats>] {
        &self.worker_stats
    }

    /// Bytes of requests that wait for something.
    pub fn bytes_in_flight(&self) -> usize {
        self.shared.bytes_in_flight() + self.shared.large_bytes()
    }

    /// A handle for watching the server, and for closing it by `nodetool drain` or
    /// `disablebinary`.
    pub fn handle(&self) -> ServerHandle<P> {
        ServerHandle {
            address: self.address,
            shared: Arc::clone(&self.shared),
            worker_stats: self.worker_stats.clone(),
            phase: self.phase.clone(),
        }
    }

    /// Stops accepting, lets requests in flight finish within the drain timeout, closes all, and
    /// waits for the workers' end.
    pub fn shutdown(mut self) {
        self.phase.send_replace(Phase::Ended);
        for worker in self.workers.drain(..) {
            if let Err(panic) = worker.join() {
                tracing::error!(panic, "a worker had panicked");
            }
        }
    }
}

/// A view of a running server.
pub struct ServerHandle<P: Protocol> {
    address: SocketAddr,
    shared: Arc<Shared<P>>,
    worker_stats: Vec<Arc<WorkerStats>>,
    phase: watch::Sender<Phase>,
}

impl<P: Protocol> Clone for ServerHandle<P> {
    fn clone(&self) -> Self {
        Self {
            address: self.address,
            shared: Arc::clone(&self.shared),
            worker_stats: self.worker_stats.clone(),
            phase: self.phase.clone(),
        }
    }
}

impl<P: Protocol> ServerHandle<P> {
    /// Sets the event that is sent to the connections that asked for its kind before the server
    /// closes them.
    pub fn set_farewell(&self, event: P::Event) {
        self.shared.set_farewell(event);
    }

    /// The address on which the server listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Whether clients can connect.
    pub fn is_serving(&self) -> bool {
        *self.phase.borrow() == Phase::Serving
    }

    /// The counters of each worker.
    pub fn worker_stats(&self) -> &[Arc<WorkerStats>] {
        &self.worker_stats
    }

    /// The connections open now.
    pub fn connections(&self) -> &Arc<ConnectionRegistry<P::Details>> {
        &self.shared.registry
    }

    /// Bytes of requests that wait for something.
    pub fn bytes_in_flight(&self) -> usize {
        self.shared.bytes_in_flight() + self.shared.large_bytes()
    }

    /// Stops accepting for good, lets requests in flight finish within the drain timeout and closes
    /// all connections. Registered connections are sent the farewell first.
    pub async fn stop_serving(&self) {
        self.leave(Phase::Ended).await;
    }

    /// Stops accepting until [`ServerHandle::resume`] and closes all connections, as
    /// [`ServerHandle::stop_serving`] does. With `force` requests in flight are dropped.
    pub async fn pause(&self, force: bool) {
        self.leave(Phase::Closed { force }).await;
    }

    /// Begins the work of [`ServerHandle::pause`] without `force`, and waits for nothing.
    pub fn begin_pause(&self) {
        self.begin_leaving(Phase::Closed { force: false });
    }

    /// Changes the phase of a serving server. A server that does not serve stays as it is, except
    /// that a closed one may end.
    fn begin_leaving(&self, next: Phase) {
        self.phase.send_if_modified(|phase| {
            let changes = *phase == Phase::Serving || (next == Phase::Ended && *phase != Phase::Ended);
            if changes {
                *phase = next;
            }
            changes
        });
    }

    /// Changes the phase of a serving server, and waits until no worker listens and no connection
    /// is left, for as long as a drain may take.
    async fn leave(&self, next: Phase) {
        self.begin_leaving(next);
        let begun = self.shared.env.now();
        let is_left = || self.shared.listening.load(Ordering::Acquire) == 0 && self.shared.registry.is_empty();
        while !is_left() && self.shared.env.elapsed(begun) < self.shared.limits.drain_timeout {
            self.shared.env.sleep(PHASE_POLL).await;
        }
    }

    /// Listens again after [`ServerHandle::pause`]; returns when every worker does. A server that
    /// serves stays as it is. On an error the server is closed as before.
    ///
    /// Call it within a runtime.
    pub async fn resume(&self) -> Result<(), ResumeError> {
        match *self.phase.borrow() {
            Phase::Serving => return Ok(()),
            Phase::Closed { .. } => {}
            Phase::Ended => return Err(ResumeError::Ended),
        }
        // workers share the port, so only a listener that does not share finds another program
        // there
        let probe = self.shared.env.network.bind(self.address, false).map(drop);
        probe.map_err(|error| ResumeError::Bind(self.address, error))?;
        drop(self.shared.take_bind_error());
        self.phase.send_if_modified(|phase| {
            let is_closed = matches!(phase, Phase::Closed { .. });
            if is_closed {
                *phase = Phase::Serving;
            }
            is_closed
        });
        let begun = self.shared.env.now();
        while self.is_serving() && self.shared.listening.load(Ordering::Acquire) < self.worker_stats.len() {
            let failed = self
                .shared
                .take_bind_error()
                .or_else(|| (self.shared.env.elapsed(begun) > RESUME_MAX).then(|| io::ErrorKind::TimedOut.into()));
            if let Some(error) = failed {
                self.phase.send_replace(Phase::Closed { force: false });
                return Err(ResumeError::Bind(self.address, error));
            }
            self.shared.env.sleep(PHASE_POLL).await;
        }
        match *self.phase.borrow() {
            Phase::Ended => Err(ResumeError::Ended),
            Phase::Serving | Phase::Closed { .. } => Ok(()),
        }
    }
}

/// Time between two looks whether the workers have followed a change of phase.
const PHASE_POLL: Duration = Duration::from_millis(5);

impl<P: Protocol> Drop for Server<P> {
    fn drop(&mut self) {
        self.phase.send_replace(Phase::Ended);
    }
}

/// The values that a worker's thread starts with.
struct WorkerStart<P: Protocol> {
    number: usize,
    pin: bool,
    address: SocketAddr,
    shared: Arc<Shared<P>>,
    stats: Arc<WorkerStats>,
    phase: watch::Receiver<Phase>,
    arrivals: mpsc::Receiver<Arrival>,
}

impl<P: Protocol> WorkerStart<P> {
    /// The worker's whole life, on its thread. The thread that starts the worker waits for its
    /// address or its error.
    async fn run<V: Service<Protocol = P>>(
        self,
        make_service: impl Fn(usize) -> V,
        tell: std::sync::mpsc::Sender<io::Result<SocketAddr>>,
    ) {
        if self.pin {
            self.shared.env.tasks.pin_to_core(self.number);
        }
        let options = SocketOptions::keepalive(self.shared.limits.keepalive);
        let bound = self.shared.env.network.bind_with(self.address, true, options).and_then(|listener| {
            let address = listener.local_address()?;
            Ok((listener, address))
        });
        let (listener, address) = match bound {
            Ok(bound) => bound,
            Err(error) => return drop(tell.send(Err(error))),
        };
        let core = Rc::new(WorkerCore::new(self.number, self.shared.clone(), self.stats));
        let service = Rc::new(make_service(self.number));
        drop(tell.send(Ok(address)));
        worker::run(core, service, address, listener, self.arrivals, self.phase).await;
    }
}
