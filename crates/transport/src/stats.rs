//! What is known of connections and workers, for `system_views.clients`, `nodetool clientstats` and metrics.
//!
//! Counters have one writer, the connection's worker, which stores without a locked instruction; anyone may read them. What
//! seldom changes stands behind a mutex. The registry is locked when a connection comes or goes and when it is listed.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use protocol::{ErrorMessage, ProtocolVersion};

use crate::limits::ServerLimits;

/// A counter with a single writer.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds; only the owning worker may call it.
    pub fn add(&self, amount: u64) {
        self.0.store(self.get().wrapping_add(amount), Ordering::Relaxed);
    }

    /// Subtracts; only the owning worker may call it.
    pub fn subtract(&self, amount: u64) {
        self.0.store(self.get().wrapping_sub(amount), Ordering::Relaxed);
    }

    /// The count.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// How far a connection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Stage {
    /// Accepted; OPTIONS and STARTUP are expected.
    Established = 0,
    /// AUTH_RESPONSE is expected.
    Authenticating = 1,
    /// Requests are served.
    Ready = 2,
}

impl Stage {
    /// As `system_views.clients` shows it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Established => "ESTABLISHED",
            Self::Authenticating => "AUTHENTICATING",
            Self::Ready => "READY",
        }
    }
}

/// What STARTUP, authentication and USE say.
#[derive(Clone, Debug, Default)]
pub struct ClientDetails {
    /// Once an envelope has been read.
    pub version: Option<ProtocolVersion>,
    /// All options of STARTUP, in its order.
    pub options: Vec<(String, String)>,
    /// `DRIVER_NAME`
    pub driver_name: Option<Arc<str>>,
    /// `DRIVER_VERSION`
    pub driver_version: Option<Arc<str>>,
    /// The connection's keyspace.
    pub keyspace: Option<Arc<str>>,
    /// Who authenticated.
    pub user: Option<Arc<str>>,
}

/// One connection.
#[derive(Debug)]
pub struct ConnectionStats {
    /// The client's address and port.
    pub peer: SocketAddr,
    /// Requests read.
    pub requests: Counter,
    stage: AtomicU8,
    details: Mutex<ClientDetails>,
}

impl ConnectionStats {
    /// A connection just accepted.
    pub fn new(peer: SocketAddr) -> Self {
        Self { peer, requests: Counter::default(), stage: AtomicU8::new(0), details: Mutex::default() }
    }

    /// How far it has come.
    pub fn stage(&self) -> Stage {
        match self.stage.load(Ordering::Relaxed) {
            0 => Stage::Established,
            1 => Stage::Authenticating,
            _ => Stage::Ready,
        }
    }

    pub(crate) fn set_stage(&self, stage: Stage) {
        self.stage.store(stage as u8, Ordering::Relaxed);
    }

    /// A copy of the details.
    pub fn details(&self) -> ClientDetails {
        self.details.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Changes the details.
    pub fn update(&self, change: impl FnOnce(&mut ClientDetails)) {
        change(&mut self.details.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// USE was executed.
    pub fn set_keyspace(&self, keyspace: &str) {
        self.update(|details| details.keyspace = Some(Arc::from(keyspace)));
    }
}

/// The counters of one worker.
#[derive(Debug, Default)]
pub struct WorkerStats {
    /// Connections open now.
    pub connections: Counter,
    /// Connections accepted.
    pub accepted: Counter,
    /// Connections refused over a limit.
    pub refused: Counter,
    /// Requests read.
    pub requests: Counter,
    /// Requests that could not be answered at the first poll.
    pub waited: Counter,
    /// Requests answered OVERLOADED.
    pub overloaded: Counter,
    /// Requests dropped after their time.
    pub timed_out: Counter,
    /// Requests and envelopes that broke the protocol.
    pub protocol_errors: Counter,
    /// Handlers that panicked.
    pub panics: Counter,
    /// Reads of sockets that brought something.
    pub reads: Counter,
    /// Bytes they brought.
    pub bytes_read: Counter,
    /// Writes to sockets that took something.
    pub writes: Counter,
    /// Bytes they took.
    pub bytes_written: Counter,
}

/// All connections of a server.
#[derive(Debug, Default)]
pub struct ConnectionRegistry {
    inner: Mutex<Registered>,
}

#[derive(Debug, Default)]
struct Registered {
    next: u64,
    connections: BTreeMap<u64, Arc<ConnectionStats>>,
    per_ip: BTreeMap<IpAddr, usize>,
}

impl ConnectionRegistry {
    /// The connections open now, in the order of their coming.
    pub fn list(&self) -> Vec<Arc<ConnectionStats>> {
        self.lock().connections.values().cloned().collect()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.lock().connections.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Enters a connection; says what it is told if it may not stay.
    pub(crate) fn admit(&self, stats: Arc<ConnectionStats>, limits: &ServerLimits) -> (u64, Option<ErrorMessage>) {
        let mut inner = self.lock();
        let address = stats.peer.ip();
        let all = inner.connections.len();
        let of_address = inner.per_ip.entry(address).or_default();
        *of_address += 1;
        let refusal = refusal(all, *of_address - 1, address, limits);
        let id = inner.next;
        inner.next += 1;
        inner.connections.insert(id, stats);
        (id, refusal)
    }

    pub(crate) fn remove(&self, id: u64) {
        let mut inner = self.lock();
        let Some(stats) = inner.connections.remove(&id) else {
            return;
        };
        let address = stats.peer.ip();
        if let Some(count) = inner.per_ip.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                inner.per_ip.remove(&address);
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Registered> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// With so many connections there already.
fn refusal(all: usize, of_address: usize, address: IpAddr, limits: &ServerLimits) -> Option<ErrorMessage> {
    let over = |count: usize, limit: Option<usize>| limit.filter(|limit| count >= *limit);
    if let Some(limit) = over(all, limits.connections_max) {
        let text = format!("Too many connections: the limit is {limit}");
        return Some(ErrorMessage::overloaded(text));
    }
    let limit = over(of_address, limits.connections_per_ip_max)?;
    let text = format!("Too many connections from {address}: the limit is {limit}");
    Some(ErrorMessage::overloaded(text))
}
