//! The flusher: one background task that writes memtables out, one table at a time. A flush that failed is tried again after a while; meanwhile
//! other tables have their turn, whose directories may be on another disk.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use env::{Instant, Next, Wake};
use tokio::sync::oneshot;

use crate::engine::Engine;
use crate::error::StorageError;
use crate::flush;
use crate::table::TableStore;
use crate::view::FlushSet;

/// Pause before a failed flush is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// Told when a flush has ended.
pub type Done = oneshot::Sender<Result<(), StorageError>>;

struct Request {
    store: Arc<TableStore>,
    /// Memtables whose flush failed before; None: those that are active when the request has its turn.
    set: Option<Arc<FlushSet>>,
    done: Vec<Done>,
    /// Not before; None: at once.
    again_at: Option<Instant>,
}

/// Requests to flush, in order; at most one of a table waits.
#[derive(Default)]
pub struct Flusher {
    queue: Mutex<VecDeque<Request>>,
    wake: Mutex<Option<Wake>>,
}

impl Flusher {
    /// Registers the task.
    pub fn start(engine: &Arc<Engine>) {
        let weak: Weak<Engine> = Arc::downgrade(engine);
        let step = move || match weak.upgrade() {
            None => Next::Done,
            Some(engine) => engine.flusher.step(&engine),
        };
        let wake = engine.env.tasks.background("flush", Box::new(step));
        wake.wake();
        *engine.flusher.wake.lock().expect("no panic inside") = Some(wake);
    }

    /// Asks for a flush of a table; `done` is told of its end.
    pub fn request(&self, store: &Arc<TableStore>, done: Option<Done>) {
        let mut queue = self.queue.lock().expect("no panic inside");
        let waiting = queue.iter_mut().find(|request| request.set.is_none() && Arc::ptr_eq(&request.store, store));
        match waiting {
            Some(request) => request.done.extend(done),
            None => {
                let done = done.into_iter().collect();
                queue.push_back(Request { store: Arc::clone(store), set: None, done, again_at: None });
            }
        }
        drop(queue);
        if let Some(wake) = self.wake.lock().expect("no panic inside").as_ref() {
            wake.wake();
        }
    }

    /// Asks for frozen memtables of a table to be written out.
    pub fn request_set(&self, store: &Arc<TableStore>, set: Arc<FlushSet>) {
        let request = Request { store: Arc::clone(store), set: Some(set), done: Vec::new(), again_at: None };
        self.queue.lock().expect("no panic inside").push_back(request);
        if let Some(wake) = self.wake.lock().expect("no panic inside").as_ref() {
            wake.wake();
        }
    }

    /// How many tables wait.
    pub fn pending(&self) -> usize {
        self.queue.lock().expect("no panic inside").len()
    }

    /// The first request whose time has come; otherwise when to come again.
    fn next(&self, now: Instant) -> Result<Request, Next> {
        let mut queue = self.queue.lock().expect("no panic inside");
        let is_due = |request: &Request| request.again_at.is_none_or(|at| at <= now);
        if let Some(request) = queue.iter().position(is_due).and_then(|due| queue.remove(due)) {
            return Ok(request);
        }
        let earliest = queue.iter().filter_map(|request| request.again_at).min();
        Err(earliest.map_or(Next::Idle, |at| Next::After(at.since(now))))
    }

    fn step(&self, engine: &Arc<Engine>) -> Next {
        let mut request = match self.next(engine.env.now()) {
            Ok(request) => request,
            Err(next) => return next,
        };
        let set = request.set.take().or_else(|| flush::freeze(engine, &request.store));
        let result = match &set {
            None => Ok(()),
            Some(set) => flush::flush_set(engine, &request.store, set).map(|_| ()),
        };
        for done in request.done.drain(..) {
            // who asked may have gone
            let _ = done.send(result.clone());
        }
        match result {
            Ok(()) => engine.compactor.wake(),
            Err(error) => {
                tracing::error!(table = request.store.name(), %error, "a flush failed and will be tried again");
                let again_at = Some(engine.env.now().plus(RETRY));
                self.put_back(Request { set, again_at, ..request });
            }
        }
        Next::Again
    }

    /// Unless the same is in the queue already.
    fn put_back(&self, failed: Request) {
        let mut queue = self.queue.lock().expect("no panic inside");
        let is_same = |other: &Arc<FlushSet>| failed.set.as_ref().is_some_and(|set| Arc::ptr_eq(set, other));
        if !queue.iter().any(|request| request.set.as_ref().is_some_and(is_same)) {
            queue.push_back(failed);
        }
    }
}
