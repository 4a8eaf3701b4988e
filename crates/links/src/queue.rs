//! The queue of one outbound link: bounded in bytes, emptied by the link's task, filled from any
//! thread.
//!
//! Each queue has room of its own ([`crate::LinkSettings::queue`]). Bytes beyond it are taken from
//! two reserves: one that the links to a peer share, so that one peer that cannot be reached does
//! not take the room of the others, and one that all links of the node share.

use std::collections::VecDeque;
use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use env::defects::{Defect, is_on};
use internode::{Envelope, LinkType};
use tokio::sync::Notify;

use crate::counts::{OutboundCounters, OutboundCounts};

/// Why a message was not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refused {
    /// The link's queue is full: the peer is too slow, or cannot be reached.
    Full,
    /// The message is larger than any message may be (`internode_max_message_size`).
    TooLarge,
    /// Links to [`PEERS_MAX`](crate::limits::PEERS_MAX) peers are open, and none to further peers
    /// are opened.
    TooManyPeers,
    /// This node stops.
    Ended,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full => "the queue to the peer is full",
            Self::TooLarge => "the message is larger than internode_max_message_size",
            Self::TooManyPeers => "there are links to too many peers",
            Self::Ended => "the node ends",
        })
    }
}

impl std::error::Error for Refused {}

/// Bytes that several queues may hold beyond the room of each.
#[derive(Debug)]
pub(crate) struct Reserve {
    size: usize,
    /// Bytes that are not taken.
    left: AtomicUsize,
}

impl Reserve {
    /// A reserve of `size` bytes, of which nothing is taken.
    pub(crate) fn new(size: usize) -> Self {
        Self { size, left: AtomicUsize::new(size) }
    }

    fn take(&self, size: usize) -> bool {
        let taken = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(size));
        let (Ok(left) | Err(left)) = taken;
        assert!(left <= self.size || is_on(Defect::NoBound), "bytes of a reserve are given back once");
        taken.is_ok()
    }

    fn give_back(&self, size: usize) {
        self.left.fetch_add(size, Ordering::Relaxed);
    }
}

/// The bytes of a queue, and the reserves that it may use beyond.
#[derive(Clone, Debug)]
pub(crate) struct QueueCapacity {
    /// Bytes that the queue holds without taking from a reserve.
    pub(crate) own: usize,
    /// The reserve of the links to one peer.
    pub(crate) of_peer: Arc<Reserve>,
    /// The reserve of all links of the node.
    pub(crate) of_all: Arc<Reserve>,
}

impl QueueCapacity {
    /// Takes bytes from both reserves. False: one of them has not so many left, and nothing is
    /// taken.
    fn take(&self, size: usize) -> bool {
        if size == 0 {
            return true;
        }
        if !self.of_peer.take(size) {
            return false;
        }
        let is_taken = self.of_all.take(size);
        if !is_taken {
            self.of_peer.give_back(size);
        }
        is_taken
    }

    fn give_back(&self, size: usize) {
        if size == 0 {
            return;
        }
        self.of_peer.give_back(size);
        self.of_all.give_back(size);
    }
}

#[derive(Default)]
struct Waiting {
    messages: VecDeque<Envelope>,
    /// Bytes of the messages.
    bytes: usize,
    ended: bool,
}

impl Waiting {
    /// Bytes that the queue has taken from the reserves, if its own room is `room`.
    fn borrowed(&self, room: usize) -> usize {
        self.bytes.saturating_sub(room)
    }
}

/// The queue.
pub(crate) struct Queue {
    waiting: Mutex<Waiting>,
    filled: Notify,
    /// True: the connection has to be closed. Set by other threads, reset by the link.
    is_reset: AtomicBool,
    reset: Notify,
    capacity: QueueCapacity,
    pub(crate) counts: OutboundCounters,
}

/// Bytes for which a message counts: its payload, and room for its header.
fn charge(message: &Envelope) -> usize {
    message.payload.len() + 64
}

impl Queue {
    pub(crate) fn new(capacity: QueueCapacity) -> Self {
        Self {
            waiting: Mutex::default(),
            filled: Notify::new(),
            is_reset: AtomicBool::new(false),
            reset: Notify::new(),
            capacity,
            counts: OutboundCounters::default(),
        }
    }

    /// The capacity of this queue, whose reserves further links to the peer share.
    pub(crate) fn capacity(&self) -> &QueueCapacity {
        &self.capacity
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends a message, if the queue or the reserves have room for it.
    pub(crate) fn push(&self, message: Envelope) -> Result<(), Refused> {
        let size = charge(&message);
        let mut waiting = self.lock();
        if waiting.ended {
            return Err(Refused::Ended);
        }
        let before = waiting.borrowed(self.capacity.own);
        let beyond = (waiting.bytes + size).saturating_sub(self.capacity.own) - before;
        if !self.capacity.take(beyond) && !is_on(Defect::NoBound) {
            self.counts.overloaded.add(1, size);
            return Err(Refused::Full);
        }
        waiting.bytes += size;
        waiting.messages.push_back(message);
        drop(waiting);
        self.filled.notify_one();
        Ok(())
    }

    /// Takes messages of about `size_max` bytes, at least one if there is one that is not too old.
    pub(crate) fn take(&self, size_max: usize, now_millis: i64) -> Vec<Envelope> {
        let mut waiting = self.lock();
        let before = waiting.borrowed(self.capacity.own);
        let (mut taken, mut size) = (Vec::new(), 0);
        let (mut expired, mut expired_bytes) = (0, 0);
        while let Some(message) = waiting.messages.pop_front() {
            let charged = charge(&message);
            if message.header.is_expired(now_millis) {
                waiting.bytes -= charged;
                expired += 1;
                expired_bytes += charged;
                continue;
            }
            if !taken.is_empty() && size + charged > size_max {
                waiting.messages.push_front(message);
                break;
            }
            waiting.bytes -= charged;
            size += charged;
            taken.push(message);
        }
        assert!(!waiting.messages.is_empty() || waiting.bytes == 0, "an empty queue is charged nothing");
        assert!(size <= size_max || taken.len() == 1, "beyond the size that is asked for only one message is taken");
        self.capacity.give_back(before - waiting.borrowed(self.capacity.own));
        drop(waiting);
        self.counts.expired.add(expired, expired_bytes);
        taken
    }

    /// Drops messages that are too old. True: others are left.
    pub(crate) fn drop_expired(&self, now_millis: i64) -> bool {
        let mut waiting = self.lock();
        let borrowed = waiting.borrowed(self.capacity.own);
        let Waiting { messages, bytes, .. } = &mut *waiting;
        let (before, bytes_before) = (messages.len(), *bytes);
        messages.retain(|message| {
            let fresh = !message.header.is_expired(now_millis);
            *bytes -= if fresh { 0 } else { charge(message) };
            fresh
        });
        assert_eq!(*bytes, messages.iter().map(charge).sum::<usize>(), "a queue is charged for what waits in it");
        let (left, expired, expired_bytes) = (messages.len(), before - messages.len(), bytes_before - *bytes);
        self.capacity.give_back(borrowed - waiting.borrowed(self.capacity.own));
        drop(waiting);
        self.counts.expired.add(expired, expired_bytes);
        left > 0
    }

    /// Completes when a message waits. False: the queue has ended.
    pub(crate) async fn wait_for_message(&self) -> bool {
        loop {
            let notified = self.filled.notified();
            {
                let waiting = self.lock();
                if waiting.ended {
                    return false;
                }
                if !waiting.messages.is_empty() {
                    return true;
                }
            }
            notified.await;
        }
    }

    /// Completes when the connection has to be closed.
    pub(crate) async fn reset(&self) {
        loop {
            let notified = self.reset.notified();
            if self.is_reset.swap(false, Ordering::AcqRel) {
                return;
            }
            notified.await;
        }
    }

    /// Called when a connection is made: earlier requests to close one do not concern it.
    pub(crate) fn connected(&self) {
        self.is_reset.store(false, Ordering::Release);
    }

    /// Gives up the waiting messages, and asks for the connection to be closed.
    pub(crate) fn drop_messages_and_close(&self) {
        let mut waiting = self.lock();
        self.capacity.give_back(waiting.borrowed(self.capacity.own));
        let dropped = std::mem::take(&mut waiting.messages);
        let bytes = std::mem::take(&mut waiting.bytes);
        assert_eq!(bytes, dropped.iter().map(charge).sum::<usize>(), "a queue is charged for what waits in it");
        drop(waiting);
        self.counts.expired.add(dropped.len(), bytes);
        self.is_reset.store(true, Ordering::Release);
        self.reset.notify_waiters();
    }

    /// Ends the queue: it takes no message any more, and gives up the waiting ones.
    pub(crate) fn end(&self) {
        let mut waiting = self.lock();
        self.capacity.give_back(waiting.borrowed(self.capacity.own));
        *waiting = Waiting { ended: true, ..Waiting::default() };
        drop(waiting);
        self.filled.notify_one();
    }

    /// Numbers of waiting messages and of their bytes.
    pub(crate) fn waiting(&self) -> (usize, usize) {
        let waiting = self.lock();
        (waiting.messages.len(), waiting.bytes)
    }

    /// The counts of the link of this queue.
    pub(crate) fn counts(&self, peer: SocketAddr, link: LinkType) -> OutboundCounts {
        let waiting = self.lock();
        let (held, borrowed) = ((waiting.messages.len(), waiting.bytes), waiting.borrowed(self.capacity.own));
        drop(waiting);
        self.counts.counts(peer, link, held, borrowed)
    }
}
