//! Figures of connections and workers, for programs that list or count them.
//!
//! A [`Counter`] has one writer, the connection's worker, which stores without a locked
//! instruction; anyone may read it. The registry is locked when a connection comes or goes and when
//! it is listed, never by a request.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tls::EncryptionInfo;

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

/// One connection: what every protocol has, and its own details, to which this dereferences.
#[derive(Debug)]
pub struct ConnectionStats<D> {
    /// The client's address and port.
    pub peer: SocketAddr,
    /// Requests read.
    pub requests: Counter,
    /// How the connection is encrypted. Set once, when the TLS handshake is done; not set: it is
    /// not encrypted.
    pub encrypted: OnceLock<EncryptionInfo>,
    details: D,
}

impl<D: Default> ConnectionStats<D> {
    /// A connection just accepted.
    pub fn new(peer: SocketAddr) -> Self {
        Self { peer, requests: Counter::default(), encrypted: OnceLock::new(), details: D::default() }
    }
}

impl<D> Deref for ConnectionStats<D> {
    type Target = D;

    fn deref(&self) -> &D {
        &self.details
    }
}

/// The counters of one worker, since its start.
#[derive(Debug, Default)]
pub struct WorkerStats {
    /// Connections that are open now.
    pub connections: Counter,
    /// Connections accepted.
    pub accepted: Counter,
    /// Connections refused over a limit.
    pub refused: Counter,
    /// Requests read.
    pub requests: Counter,
    /// Requests that were not answered at the first poll.
    pub waited: Counter,
    /// Requests refused because of too many bytes in flight.
    pub overloaded: Counter,
    /// Requests dropped after their time, or refused because it was over before they could be
    /// executed.
    pub timed_out: Counter,
    /// Messages that broke the protocol.
    pub protocol_errors: Counter,
    /// Handlers that panicked.
    pub panics: Counter,
    /// Reads of sockets that brought bytes.
    pub reads: Counter,
    /// Bytes that these reads brought.
    pub bytes_read: Counter,
    /// Writes to sockets that took bytes.
    pub writes: Counter,
    /// Bytes that these writes took.
    pub bytes_written: Counter,
}

/// A connection over a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TooManyConnections {
    /// The connection is over the limit of all connections, which is this.
    InAll(usize),
    /// The connection is over the limit of connections from one address, which is this.
    FromAddress(IpAddr, usize),
}

impl fmt::Display for TooManyConnections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InAll(limit) => write!(f, "Too many connections: the limit is {limit}"),
            Self::FromAddress(address, limit) => {
                write!(f, "Too many connections from {address}: the limit is {limit}")
            }
        }
    }
}

/// All connections of a server.
#[derive(Debug)]
pub struct ConnectionRegistry<D> {
    inner: Mutex<Registered<D>>,
}

#[derive(Debug)]
struct Registered<D> {
    /// The number that the next connection gets. Only grows.
    next: u64,
    connections: BTreeMap<u64, Arc<ConnectionStats<D>>>,
    /// Numbers of the connections that break a limit. They count for no limit: otherwise clients
    /// that are refused, and do not hang up, would take the places of others.
    refused: BTreeSet<u64>,
    /// Connections from each address, without those that break a limit.
    per_ip: BTreeMap<IpAddr, usize>,
}

impl<D> Default for ConnectionRegistry<D> {
    fn default() -> Self {
        let (connections, refused, per_ip) = (BTreeMap::new(), BTreeSet::new(), BTreeMap::new());
        Self { inner: Mutex::new(Registered { next: 0, connections, refused, per_ip }) }
    }
}

impl<D> ConnectionRegistry<D> {
    /// The connections open now, in the order in which they came.
    pub fn list(&self) -> Vec<Arc<ConnectionStats<D>>> {
        self.lock().connections.values().cloned().collect()
    }

    /// Number of open connections.
    pub fn len(&self) -> usize {
        self.lock().connections.len()
    }

    /// Whether there is no open connection.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Enters a connection. Returns its number, and the limit that it breaks.
    pub(crate) fn admit(
        &self,
        stats: Arc<ConnectionStats<D>>,
        limits: &ServerLimits,
    ) -> (u64, Option<TooManyConnections>) {
        let mut inner = self.lock();
        let address = stats.peer.ip();
        let all = inner.connections.len() - inner.refused.len();
        let of_address = inner.per_ip.get(&address).copied().unwrap_or(0);
        let broken = broken_limit(all, of_address, address, limits);
        let id = inner.next;
        inner.next += 1;
        let known = inner.connections.insert(id, stats);
        assert!(known.is_none(), "a connection's number is given once");
        if broken.is_some() {
            inner.refused.insert(id);
        } else {
            *inner.per_ip.entry(address).or_default() += 1;
        }
        assert!(inner.per_ip.len() <= inner.connections.len(), "an address is counted as long as it has connections");
        (id, broken)
    }

    pub(crate) fn remove(&self, id: u64) {
        let mut inner = self.lock();
        let Some(stats) = inner.connections.remove(&id) else {
            return;
        };
        if inner.refused.remove(&id) {
            return;
        }
        let address = stats.peer.ip();
        if let Some(count) = inner.per_ip.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                inner.per_ip.remove(&address);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Registered<D>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The limit that a further connection breaks while there are `all` connections, `of_address` of
/// them from its address; None: it breaks none.
fn broken_limit(all: usize, of_address: usize, address: IpAddr, limits: &ServerLimits) -> Option<TooManyConnections> {
    let broken = |count: usize, limit: Option<usize>| limit.filter(|limit| count >= *limit);
    broken(all, limits.connections_max).map(TooManyConnections::InAll).or_else(|| {
        broken(of_address, limits.connections_per_ip_max).map(|limit| TooManyConnections::FromAddress(address, limit))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An address that is at its limit opens further connections and does not hang up.
    #[test]
    fn refused_connections_take_no_place() {
        let registry = ConnectionRegistry::<()>::default();
        let limits =
            ServerLimits { connections_max: Some(3), connections_per_ip_max: Some(2), ..ServerLimits::default() };
        let admit =
            |address: [u8; 4]| registry.admit(Arc::new(ConnectionStats::new(SocketAddr::from((address, 1)))), &limits);
        let (one, other) = ([192, 0, 2, 1], [192, 0, 2, 2]);
        let (first, broken) = admit(one);
        assert_eq!((broken, admit(one).1), (None, None));
        let of_address = Some(TooManyConnections::FromAddress(IpAddr::from(one), 2));
        let (refused, broken) = admit(one);
        assert_eq!((broken, admit(one).1), (of_address, of_address));
        assert_eq!(admit(other).1, None, "there is a place for another address");
        assert_eq!(admit(other).1, Some(TooManyConnections::InAll(3)));
        registry.remove(refused);
        assert_eq!(admit(other).1, Some(TooManyConnections::InAll(3)), "one that had no place has left none");
        registry.remove(first);
        assert_eq!(admit(one).1, None, "the place of one that had it is free, though others were refused");
        assert_eq!(registry.len(), 6);
    }
}
