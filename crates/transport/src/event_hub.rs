//! Events on their way from whoever changes the schema or sees a node come and go to the clients that registered.
//!
//! Anyone publishes, on any thread, without waiting. Each worker has a bounded queue; it hands the events to its registered
//! connections. A queue that overflows loses events, so the connections behind it are closed: their drivers reconnect and
//! read the state anew.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use protocol::response::Event;
use tokio::sync::mpsc::{self, error::TrySendError};

use crate::limits::WORKER_EVENTS_MAX;

/// Spreads events to the workers.
#[derive(Debug, Default)]
pub struct EventHub {
    workers: Mutex<Vec<Subscriber>>,
}

#[derive(Debug)]
struct Subscriber {
    sender: mpsc::Sender<Arc<Event>>,
    overflowed: Arc<AtomicBool>,
}

/// A worker's end.
#[derive(Debug)]
pub(crate) struct Subscription {
    receiver: mpsc::Receiver<Arc<Event>>,
    overflowed: Arc<AtomicBool>,
}

/// What a worker gets.
#[derive(Debug)]
pub(crate) enum Published {
    Event(Arc<Event>),
    /// Events before this point are lost.
    Overflow,
}

impl EventHub {
    /// Tells every registered client, in the order of publishing.
    pub fn publish(&self, event: Event) {
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

    pub(crate) fn subscribe(&self) -> Subscription {
        let (sender, receiver) = mpsc::channel(WORKER_EVENTS_MAX);
        let overflowed = Arc::new(AtomicBool::new(false));
        let subscriber = Subscriber { sender, overflowed: overflowed.clone() };
        self.workers.lock().unwrap_or_else(PoisonError::into_inner).push(subscriber);
        Subscription { receiver, overflowed }
    }
}

impl Subscription {
    /// The next event; `None` when the hub is gone.
    pub(crate) async fn next(&mut self) -> Option<Published> {
        let event = self.receiver.recv().await?;
        if self.overflowed.swap(false, Ordering::AcqRel) {
            return Some(Published::Overflow);
        }
        Some(Published::Event(event))
    }
}
