//! The counts of links: what `system_views.internode_outbound`,
//! `internode_inbound` and `nodetool netstats` show.
//!
//! Counters belong to a link (a peer and a type), not to a connection, so they go on when a
//! connection ends and another one is made. They only grow while the node runs. Readers take a
//! snapshot: [`OutboundCounts`] for the links that this node opens, [`InboundCounts`] for those
//! that peers open. `org.apache.cassandra.net.OutboundConnection`, `InboundMessageHandlers`.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use internode::LinkType;

use crate::limits::PEERS_MAX;

/// A number of messages and of their bytes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct MessageCount {
    /// Number of messages.
    pub count: u64,
    /// Bytes of their headers and payloads, without frames. A message that was never written is
    /// counted with the bytes that the queue charges for it.
    pub bytes: u64,
}

/// The counter behind a [`MessageCount`].
#[derive(Default, Debug)]
pub(crate) struct MessageCounter {
    count: AtomicU64,
    bytes: AtomicU64,
}

impl MessageCounter {
    pub(crate) fn add(&self, count: usize, bytes: usize) {
        if count > 0 {
            self.count.fetch_add(count as u64, Ordering::Relaxed);
            self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        }
    }

    pub(crate) fn load(&self) -> MessageCount {
        MessageCount { count: self.count.load(Ordering::Relaxed), bytes: self.bytes.load(Ordering::Relaxed) }
    }
}

/// Counters of one link that this node opens.
#[derive(Default, Debug)]
pub(crate) struct OutboundCounters {
    pub(crate) sent: MessageCounter,
    pub(crate) expired: MessageCounter,
    pub(crate) overloaded: MessageCounter,
    pub(crate) errors: MessageCounter,
    pub(crate) attempts: AtomicU64,
    pub(crate) connections: AtomicU64,
    pub(crate) is_open: AtomicBool,
}

/// One link that this node opens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OutboundCounts {
    /// The broadcast address of the node at the other end.
    pub peer: SocketAddr,
    /// The kind of the link: urgent, small or large messages.
    pub link: LinkType,
    /// Whether there is a connection now.
    pub is_open: bool,
    /// The messages that wait in the queue now.
    pub pending: MessageCount,
    /// Bytes of the queue that are charged to the reserve that all links share.
    pub reserve_bytes: u64,
    /// Messages that were written to the socket.
    pub sent: MessageCount,
    /// Messages that were too old when their turn came.
    pub expired: MessageCount,
    /// Messages that were refused, because the queue was full.
    pub overloaded: MessageCount,
    /// Messages that were on their way to the socket when the connection ended. They may have
    /// arrived.
    pub errors: MessageCount,
    /// Attempts to connect, successful ones included.
    pub attempts: u64,
    /// Successful attempts, handshake included.
    pub connections: u64,
}

impl OutboundCounts {
    /// Messages that never arrived as far as this node knows (`nodetool netstats`, "dropped").
    pub fn dropped(&self) -> u64 {
        self.expired.count + self.overloaded.count + self.errors.count
    }
}

impl OutboundCounters {
    pub(crate) fn add(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// A snapshot of the counters. `waiting`: messages in the queue; `reserve`: bytes of them that
    /// are charged to the reserve.
    pub(crate) fn counts(
        &self,
        peer: SocketAddr,
        link: LinkType,
        waiting: (usize, usize),
        reserve: usize,
    ) -> OutboundCounts {
        OutboundCounts {
            peer,
            link,
            is_open: self.is_open.load(Ordering::Relaxed),
            pending: MessageCount { count: waiting.0 as u64, bytes: waiting.1 as u64 },
            reserve_bytes: reserve as u64,
            sent: self.sent.load(),
            expired: self.expired.load(),
            overloaded: self.overloaded.load(),
            errors: self.errors.load(),
            attempts: self.attempts.load(Ordering::Relaxed),
            connections: self.connections.load(Ordering::Relaxed),
        }
    }
}

/// Counters of one link that a peer opens.
#[derive(Default, Debug)]
pub(crate) struct InboundCounters {
    pub(crate) received: MessageCounter,
    pub(crate) expired: MessageCounter,
    pub(crate) errors: MessageCounter,
    pub(crate) processed: MessageCounter,
    pub(crate) damaged: AtomicU64,
    pub(crate) closed: AtomicU64,
    pub(crate) open: AtomicU64,
}

/// One link that a peer opens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InboundCounts {
    /// The broadcast address of the node at the other end, as its handshake says.
    pub peer: SocketAddr,
    /// The kind of the link.
    pub link: LinkType,
    /// Number of connections that are open now.
    pub open: u64,
    /// Messages that came.
    pub received: MessageCount,
    /// Messages that were too old when they came. They are not executed.
    pub expired: MessageCount,
    /// Messages that could not be read.
    pub errors: MessageCount,
    /// Messages that the receiver has taken and could read.
    pub processed: MessageCount,
    /// Damaged frames whose messages were lost while the connection went on.
    pub damaged_frames: u64,
    /// Connections that were closed because the peer broke the protocol.
    pub closed: u64,
}

/// The counters of all links that peers open.
#[derive(Default)]
pub(crate) struct InboundCountersByPeer(Mutex<HashMap<(SocketAddr, LinkType), Arc<InboundCounters>>>);

impl InboundCountersByPeer {
    /// The counters of a link. Beyond [`PEERS_MAX`] peers a connection gets counters that are not
    /// shown. The address in a handshake is chosen by the peer, so the number of entries must have
    /// a bound.
    pub(crate) fn of(&self, peer: SocketAddr, link: LinkType) -> Arc<InboundCounters> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(counters) = all.get(&(peer, link)) {
            return Arc::clone(counters);
        }
        let counters = Arc::<InboundCounters>::default();
        if all.len() < PEERS_MAX * LinkType::MESSAGING.len() {
            all.insert((peer, link), Arc::clone(&counters));
        }
        counters
    }

    pub(crate) fn forget(&self, peer: SocketAddr) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).retain(|(of, _), _| *of != peer);
    }

    /// A snapshot of all counters, ordered by peer and link.
    pub(crate) fn counts(&self) -> Vec<InboundCounts> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let counts = |(&(peer, link), counters): (&(SocketAddr, LinkType), &Arc<InboundCounters>)| InboundCounts {
            peer,
            link,
            open: counters.open.load(Ordering::Relaxed),
            received: counters.received.load(),
            expired: counters.expired.load(),
            errors: counters.errors.load(),
            processed: counters.processed.load(),
            damaged_frames: counters.damaged.load(Ordering::Relaxed),
            closed: counters.closed.load(Ordering::Relaxed),
        };
        let mut counts: Vec<_> = all.iter().map(counts).collect();
        counts.sort_by_key(|counts| (counts.peer, counts.link.number()));
        counts
    }
}

/// Counts a connection as open for as long as this value exists.
pub(crate) struct OpenConnection(Arc<InboundCounters>);

impl OpenConnection {
    pub(crate) fn new(counters: &Arc<InboundCounters>) -> Self {
        counters.open.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(counters))
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}
