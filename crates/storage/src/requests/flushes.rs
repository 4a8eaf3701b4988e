//! Requests to the flusher (`crate::flusher`): tables, or memtables that are frozen, to be written
//! out.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Context;

use env::defects::{Defect, is_on};
use env::sync::Mutex;
use env::sync::atomic::{AtomicU64, Ordering};
use env::{Instant, Wake};
use metrics::Counter;
use tokio::sync::oneshot;

use crate::commitlog::WaitDurable;
use crate::error::StorageError;
use crate::table::TableStore;
use crate::table::view::FlushSet;

/// Told when a flush has ended.
pub type Done = oneshot::Sender<Result<(), StorageError>>;

pub(crate) struct Request {
    pub(crate) store: Arc<TableStore>,
    /// Memtables that are frozen already, for example because a flush of them has failed; None:
    /// the flush freezes those that are active when the request has its turn.
    pub(crate) set: Option<Arc<FlushSet>>,
    pub(crate) done: Vec<Done>,
    /// The time of the next try; None: at once.
    pub(crate) again_at: Option<Instant>,
    /// Whether a try has failed: flushes of other tables do not wait for the next one.
    pub(crate) has_failed: bool,
    /// The wait until the log has the records of the memtables; None: the flush does not wait for
    /// the log.
    pub(crate) logged: Option<WaitDurable>,
    /// The time until which the flush waits for the end of a shortage of the log; None: no
    /// shortage was met.
    pub(crate) waits_for_log_until: Option<Instant>,
}

impl Request {
    fn new(store: &Arc<TableStore>, set: Option<Arc<FlushSet>>, done: Option<Done>) -> Self {
        let done = done.into_iter().collect();
        let store = Arc::clone(store);
        Self { store, set, done, again_at: None, has_failed: false, logged: None, waits_for_log_until: None }
    }

    pub(crate) fn is_due(&mut self, now: Instant, context: &mut Context<'_>) -> bool {
        self.again_at.is_none_or(|at| at <= now)
            && self.logged.as_mut().is_none_or(|logged| Pin::new(logged).poll(context).is_ready())
    }
}

/// Requests to flush, in order. At most one for each table waits.
#[derive(Default)]
pub struct Flusher {
    pub(crate) queue: Mutex<VecDeque<Request>>,
    pub(crate) wake: Mutex<Option<Wake>>,
    /// Tries of flushes that have failed since the start.
    pub(crate) failures: Counter,
    /// Flushes that are being written.
    pub(crate) active: AtomicU64,
    /// Flushes that were written since the start, those of dropped tables too.
    pub(crate) completed: Counter,
}

/// The flushes of all tables.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlushFigures {
    /// Flushes that are being written.
    pub active: u64,
    /// Flushes that wait for their turn, or for their next try.
    pub pending: u64,
    /// Flushes that were written since the start.
    pub completed: u64,
}

impl Flusher {
    /// Asks for a flush of a table; `done` is told of its end.
    pub fn request(&self, store: &Arc<TableStore>, done: Option<Done>) {
        if is_on(Defect::WakeFirst) {
            self.wake();
        }
        let mut queue = self.queue.lock().expect("no panic inside");
        let waiting = queue.iter_mut().find(|request| request.set.is_none() && Arc::ptr_eq(&request.store, store));
        match waiting {
            Some(request) => request.done.extend(done),
            None => queue.push_back(Request::new(store, None, done)),
        }
        drop(queue);
        if !is_on(Defect::WakeFirst) {
            self.wake();
        }
    }

    pub(crate) fn wake(&self) {
        if let Some(wake) = self.wake.lock().expect("no panic inside").as_ref() {
            wake.wake();
        }
    }

    /// Asks for frozen memtables of a table to be written out; `done` is told of its end.
    pub fn request_set(&self, store: &Arc<TableStore>, set: Arc<FlushSet>, done: Option<Done>) {
        self.queue.lock().expect("no panic inside").push_back(Request::new(store, Some(set), done));
        self.wake();
    }

    /// The tables whose flush has failed and is tried again and again; a table may be named more
    /// than once. None: a flush that has not failed is due.
    pub(crate) fn failed(&self) -> Option<Vec<Arc<TableStore>>> {
        let queue = self.queue.lock().expect("no panic inside");
        queue.iter().map(|request| request.has_failed.then(|| Arc::clone(&request.store))).collect()
    }

    /// Whether memtables of a table are frozen and wait for their flush, or for its next try.
    pub(crate) fn is_behind(&self, store: &Arc<TableStore>) -> bool {
        let queue = self.queue.lock().expect("no panic inside");
        queue.iter().any(|request| request.set.is_some() && Arc::ptr_eq(&request.store, store))
    }

    /// The figures of all flushes.
    pub fn figures(&self) -> FlushFigures {
        let active = self.active.load(Ordering::Relaxed);
        FlushFigures { active, pending: self.pending() as u64, completed: self.completed.get() }
    }

    /// Number of tables that wait.
    pub fn pending(&self) -> usize {
        self.queue.lock().expect("no panic inside").len()
    }
}
