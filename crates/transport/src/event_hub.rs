//! Events on their way from their publishers to the connections that asked for them.
//!
//! Any thread may publish, without waiting. Each worker has a bounded queue and hands the events
//! to its connections. A queue that overflows loses events, so the connections behind it are
//! closed: their drivers reconnect and read the state anew.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::mpsc::{self, error::TrySendError};

use crate::limits::WORKER_EVENTS_MAX;
use crate::protocol::Protocol;

/// Gives events to the workers.
pub struct EventHub<P: Protocol> {
    workers: Mutex<Vec<Subscriber<P>>>,
}

struct Subscriber<P: Protocol> {
    sender: mpsc::Sender<Arc<P::Event>>,
    overflowed: Arc<AtomicBool>,
}

/// A worker's end of the hub.
pub(crate) struct Subscription<P: Protocol> {
    receiver: mpsc::Receiver<Arc<P::Event>>,
    overflowed: Arc<AtomicBool>,
}

/// A message of the hub to a worker.
pub(crate) enum Published<P: Protocol> {
    Event(Arc<P::Event>),
    /// Some events before this point are lost.
    Overflow,
}

impl<P: Protocol> Default for EventHub<P> {
    fn default() -> Self {
        Self { workers: Mutex::default() }
    }
}

impl<P: Protocol> EventHub<P> {
    /// Gives an event to every connection that asked for its kind. Events come in the order in
    /// which they were published.
    pub fn publish(&self, event: P::Event) {
        let event = Arc::new(event);
        let mut workers = self.workers.lock().unwrap_or_else(PoisonError::into_inner);
        workers.retain(|worker| match worker.sender.try_send(event.clone()) {
            Ok(()) => true,
            Err(TrySendError::Full(_)) => {
                worker.overflowed.store(true, Ordering::Release);
                true
            }
            Err(TrySendError::Closed(_)) => false,
        });
    }

    pub(crate) fn subscribe(&self) -> Subscription<P> {
        let (sender, receiver) = mpsc::channel(WORKER_EVENTS_MAX);
        let overflowed = Arc::new(AtomicBool::new(false));
        let subscriber = Subscriber { sender, overflowed: overflowed.clone() };
        self.workers.lock().unwrap_or_else(PoisonError::into_inner).push(subscriber);
        Subscription { receiver, overflowed }
    }
}

impl<P: Protocol> Subscription<P> {
    /// The next event; `None` when the hub is gone.
    pub(crate) async fn next(&mut self) -> Option<Published<P>> {
        let event = self.receiver.recv().await?;
        if self.overflowed.swap(false, Ordering::AcqRel) {
            return Some(Published::Overflow);
        }
        Some(Published::Event(event))
    }
}
