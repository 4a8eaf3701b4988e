//! The native transport: its workers, what they share, its start and its end.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use env::{Detached, Env, Joinable, MakeLocal};
use protocol::ProtocolVersion;
use protocol::response::Event;
use stdx::Share;
use tokio::sync::{mpsc, watch};

use crate::authenticator::{AllowAll, Authenticator};
use crate::event_hub::EventHub;
use crate::handler::RequestHandler;
use crate::limits::{ARRIVALS_MAX, ServerLimits};
use crate::stats::{ConnectionRegistry, WorkerStats};
use crate::tls::Tls;
use crate::worker::{self, WorkerCore};

/// What a server is started with.
pub struct ServerOptions {
    /// Where to listen; port 0 takes any free one.
    pub address: SocketAddr,
    /// How many workers; one a core is right.
    pub workers: usize,
    /// Bind each worker to a core.
    pub pin: bool,
    /// See there.
    pub limits: ServerLimits,
    /// Who may connect.
    pub authenticator: Arc<dyn Authenticator>,
    /// How connections are encrypted, if they are.
    pub tls: Option<Tls>,
    /// Where events come from.
    pub events: Arc<EventHub>,
    /// What large results are counted in; those that are compressed count on until they are written.
    pub results: Arc<Share>,
    /// What SUPPORTED says besides versions and compressions: `CQL_VERSION` first.
    pub cql_version: String,
}

impl ServerOptions {
    /// One worker on this address, with default limits, for everybody.
    pub fn new(address: SocketAddr) -> Self {
        Self {
            address,
            workers: 1,
            pin: false,
            limits: ServerLimits::default(),
            authenticator: Arc::new(AllowAll),
            tls: None,
            events: Arc::default(),
            results: Share::new(usize::MAX),
            cql_version: "3.4.7".to_owned(),
        }
    }
}

/// What the workers are to do. Set by [`ServerHandle`], followed by every worker.
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
        /// Requests in flight are dropped, not finished.
        force: bool,
    },
    /// End all connections, then the worker itself.
    Ended,
}

/// Why [`ServerHandle::resume`] did not bring the server back.
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

/// What all workers share. The only thing in it that requests write is the count of bytes in flight, and only those that wait.
pub(crate) struct Shared {
    pub env: Env,
    pub limits: ServerLimits,
    pub authenticator: Arc<dyn Authenticator>,
    pub tls: Option<Tls>,
    pub events: Arc<EventHub>,
    pub registry: Arc<ConnectionRegistry>,
    pub supported: Vec<(String, Vec<String>)>,
    /// Of requests that wait for something.
    pub bytes_in_flight: AtomicUsize,
    /// Large bodies from their first byte on until they are answered: half of the limit, so that small requests need not wait for them.
    pub large_bodies: Arc<Share>,
    /// See [`ServerOptions::results`].
    pub results: Arc<Share>,
    /// One a worker.
    pub doors: Vec<Door>,
    /// Workers that listen now.
    pub listening: AtomicUsize,
    /// Why a worker could not listen again; taken by [`ServerHandle::resume`].
    pub bind_error: Mutex<Option<io::Error>>,
    /// The event that registered connections are sent before they are closed: the node goes down.
    pub farewell: Mutex<Option<Arc<Event>>>,
}

/// A connection on its way to the worker that will serve it.
pub(crate) type Arrival = (Box<dyn Detached>, SocketAddr);

/// How connections come to a worker that another one has accepted.
///
/// The kernel spreads connections by a hash of their addresses: of few connections, as drivers open them, all may come to one
/// worker. So the one that accepts hands on what another has more room for.
pub(crate) struct Door {
    /// Connections that the worker has or is about to get.
    pub assigned: AtomicUsize,
    pub sender: mpsc::Sender<Arrival>,
}

impl Shared {
    /// Nothing more is taken, not even of those who wait for nothing yet: they may have half as much besides, so that a few who ask for
    /// much and wait are not in the way of all.
    pub fn is_full(&self) -> bool {
        self.bytes_in_flight.load(Ordering::Relaxed) >= self.limits.total_bytes_max / 2 * 3
    }

    pub fn is_overloaded(&self) -> bool {
        self.bytes_in_flight.load(Ordering::Relaxed) >= self.limits.total_bytes_max
    }

    /// See the field.
    pub fn farewell(&self) -> Option<Arc<Event>> {
        self.farewell.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn bind_error(&self) -> Option<io::Error> {
        self.bind_error.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// A running native transport. Dropping it without [`Server::shutdown`] begins a drain and does not wait for it.
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    workers: Vec<Box<dyn Joinable>>,
    worker_stats: Vec<Arc<WorkerStats>>,
    phase: watch::Sender<Phase>,
}

impl Server {
    /// Starts the workers; returns when all of them listen. `make_handler` is called on each worker's thread with its number.
    pub fn start<H: RequestHandler>(
        env: &Env,
        options: ServerOptions,
        make_handler: impl Fn(usize) -> H + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let workers = options.workers.max(1);
        let (doors, receivers): (Vec<Door>, Vec<_>) = (0..workers).map(|_| door()).unzip();
        let large_bodies = Share::new(options.limits.total_bytes_max / 2);
        let shared = Arc::new(Shared {
            env: env.clone(),
            limits: options.limits,
            authenticator: options.authenticator,
            tls: options.tls,
            events: options.events,
            registry: Arc::default(),
            supported: supported(&options.cql_version),
            bytes_in_flight: AtomicUsize::new(0),
            large_bodies,
            results: options.results,
            doors,
            listening: AtomicUsize::new(0),
            bind_error: Mutex::default(),
            farewell: Mutex::default(),
        });
        let (phase, receiver) = watch::channel(Phase::Serving);
        let make_handler = Arc::new(make_handler);
        let mut server = Self {
            address: options.address,
            shared: shared.clone(),
            workers: Vec::new(),
            worker_stats: Vec::new(),
            phase,
        };
        for (number, arrivals) in receivers.into_iter().enumerate() {
            let stats = Arc::new(WorkerStats::default());
            let seat = Seat {
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
            let make_handler = make_handler.clone();
            let make: MakeLocal = Box::new(move || Box::pin(seat.run(move |number| make_handler(number), tell)));
            server.workers.push(env.tasks.spawn_local_worker(&format!("worker-{number}"), make));
            server.worker_stats.push(stats);
            server.address = told.recv().unwrap_or_else(|_| Err(io::Error::other("a worker ended at its start")))?;
        }
        Ok(server)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The connections open now.
    pub fn connections(&self) -> &Arc<ConnectionRegistry> {
        &self.shared.registry
    }

    /// The counters of each worker.
    pub fn worker_stats(&self) -> &[Arc<WorkerStats>] {
        &self.worker_stats
    }

    /// Bytes of requests that wait for something.
    pub fn bytes_in_flight(&self) -> usize {
        self.shared.bytes_in_flight.load(Ordering::Relaxed) + self.shared.large_bodies.used()
    }

    /// Sets the event that registered connections are sent before the server closes them.
    pub fn set_farewell(&self, event: Event) {
        *self.shared.farewell.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(event));
    }

    /// For whoever watches it, or closes it by `nodetool drain` or `disablebinary`.
    pub fn handle(&self) -> ServerHandle {
        ServerHandle {
            address: self.address,
            shared: Arc::clone(&self.shared),
            worker_stats: self.worker_stats.clone(),
            phase: self.phase.clone(),
        }
    }

    /// Stops accepting, lets requests in flight finish within the drain timeout, closes all, and waits for the workers' end.
    pub fn shutdown(mut self) {
        self.phase.send_replace(Phase::Ended);
        for worker in self.workers.drain(..) {
            if let Err(panic) = worker.join() {
                tracing::error!(panic, "a worker had panicked");
            }
        }
    }
}

/// A view of a running native transport.
#[derive(Clone)]
pub struct ServerHandle {
    address: SocketAddr,
    shared: Arc<Shared>,
    worker_stats: Vec<Arc<WorkerStats>>,
    phase: watch::Sender<Phase>,
}

impl ServerHandle {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Clients can connect.
    pub fn is_serving(&self) -> bool {
        *self.phase.borrow() == Phase::Serving
    }

    /// The counters of each worker.
    pub fn worker_stats(&self) -> &[Arc<WorkerStats>] {
        &self.worker_stats
    }

    /// The connections open now.
    pub fn connections(&self) -> &Arc<ConnectionRegistry> {
        &self.shared.registry
    }

    /// Bytes of requests that wait for something.
    pub fn bytes_in_flight(&self) -> usize {
        self.shared.bytes_in_flight.load(Ordering::Relaxed) + self.shared.large_bodies.used()
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

    /// Changes the phase of a serving server and waits until nobody listens and no connection is
    /// left; so long as a drain may take. A server that does not serve stays as it is, but one that
    /// is closed may end.
    async fn leave(&self, next: Phase) {
        self.phase.send_if_modified(|phase| {
            let changes = *phase == Phase::Serving || (next == Phase::Ended && *phase != Phase::Ended);
            if changes {
                *phase = next;
            }
            changes
        });
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
        // workers share the port, so only a listener that does not share finds another program there
        let probe = self.shared.env.network.bind(self.address, false).map(drop);
        probe.map_err(|error| ResumeError::Bind(self.address, error))?;
        drop(self.shared.bind_error());
        self.phase.send_if_modified(|phase| {
            let is_closed = matches!(phase, Phase::Closed { .. });
            if is_closed {
                *phase = Phase::Serving;
            }
            is_closed
        });
        while self.is_serving() && self.shared.listening.load(Ordering::Acquire) < self.worker_stats.len() {
            if let Some(error) = self.shared.bind_error() {
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

/// Between two looks whether the workers have followed a change of phase.
const PHASE_POLL: Duration = Duration::from_millis(5);

impl Drop for Server {
    fn drop(&mut self) {
        self.phase.send_replace(Phase::Ended);
    }
}

fn door() -> (Door, mpsc::Receiver<Arrival>) {
    let (sender, receiver) = mpsc::channel(ARRIVALS_MAX);
    (Door { assigned: AtomicUsize::new(0), sender }, receiver)
}

/// In the order in which Cassandra sends them.
fn supported(cql_version: &str) -> Vec<(String, Vec<String>)> {
    let versions = ProtocolVersion::ALL.map(|version| version.name().to_owned()).to_vec();
    vec![
        ("PROTOCOL_VERSIONS".to_owned(), versions),
        ("COMPRESSION".to_owned(), vec!["snappy".to_owned(), "lz4".to_owned()]),
        ("CQL_VERSION".to_owned(), vec![cql_version.to_owned()]),
    ]
}

/// What a worker's thread starts with.
struct Seat {
    number: usize,
    pin: bool,
    address: SocketAddr,
    shared: Arc<Shared>,
    stats: Arc<WorkerStats>,
    phase: watch::Receiver<Phase>,
    arrivals: mpsc::Receiver<Arrival>,
}

impl Seat {
    /// The worker's whole life, on its thread. Who starts it waits for the address or the error that it tells.
    async fn run<H: RequestHandler>(
        self,
        make_handler: impl Fn(usize) -> H,
        tell: std::sync::mpsc::Sender<io::Result<SocketAddr>>,
    ) {
        if self.pin {
            self.shared.env.tasks.pin_to_core(self.number);
        }
        let bound = self.shared.env.network.bind(self.address, true).and_then(|listener| {
            let address = listener.local_address()?;
            Ok((listener, address))
        });
        let (listener, address) = match bound {
            Ok(bound) => bound,
            Err(error) => return drop(tell.send(Err(error))),
        };
        let core = Rc::new(WorkerCore::new(self.number, self.shared.clone(), self.stats));
        let handler = Rc::new(make_handler(self.number));
        drop(tell.send(Ok(address)));
        worker::run(core, handler, address, listener, self.arrivals, self.phase).await;
    }
}
