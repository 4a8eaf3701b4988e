//! The flusher: one background task that writes memtables out, one table at a time. A flush that failed is tried again after a while; meanwhile
//! other tables have their turn, whose directories may be on another disk.
//!
//! Memtables are written when the commit log has what they hold, and not before: a mutation of several tables, a schema change above all, would
//! otherwise survive a death in the one table that was flushed in that moment, and be lost in the others. A log that has failed will not have it;
//! then schema tables are not flushed any more, since what was acknowledged of them is in the log.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, Weak};
use std::task::{Context, Waker};
use std::time::Duration;

use env::{Instant, Next, Wake};
use tokio::sync::oneshot;

use crate::commitlog::{LogError, WaitDurable};
use crate::engine::Engine;
use crate::error::StorageError;
use crate::table::TableStore;
use crate::table::view::FlushSet;
use crate::{flush, schema_tables};

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
    /// Not before the log has what is in the memtables.
    logged: Option<WaitDurable>,
}

impl Request {
    fn new(store: &Arc<TableStore>, set: Option<Arc<FlushSet>>, done: Option<Done>) -> Self {
        Self { store: Arc::clone(store), set, done: done.into_iter().collect(), again_at: None, logged: None }
    }

    fn is_due(&mut self, now: Instant, context: &mut Context<'_>) -> bool {
        self.again_at.is_none_or(|at| at <= now)
            && self.logged.as_mut().is_none_or(|logged| Pin::new(logged).poll(context).is_ready())
    }
}

/// Wakes one of the engine's background tasks, which waits for a future.
struct Waking {
    engine: Weak<Engine>,
    wake: fn(&Engine),
}

impl std::task::Wake for Waking {
    fn wake(self: Arc<Self>) {
        if let Some(engine) = self.engine.upgrade() {
            (self.wake)(&engine);
        }
    }
}

/// The waker of a background task; `wake` has it make a step.
pub(crate) fn waker(engine: &Arc<Engine>, wake: fn(&Engine)) -> Waker {
    Waker::from(Arc::new(Waking { engine: Arc::downgrade(engine), wake }))
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
            None => queue.push_back(Request::new(store, None, done)),
        }
        drop(queue);
        self.wake();
    }

    fn wake(&self) {
        if let Some(wake) = self.wake.lock().expect("no panic inside").as_ref() {
            wake.wake();
        }
    }

    /// Asks for frozen memtables of a table to be written out; `done` is told of its end.
    pub fn request_set(&self, store: &Arc<TableStore>, set: Arc<FlushSet>, done: Option<Done>) {
        self.queue.lock().expect("no panic inside").push_back(Request::new(store, Some(set), done));
        self.wake();
    }

    /// How many tables wait.
    pub fn pending(&self) -> usize {
        self.queue.lock().expect("no panic inside").len()
    }

    /// The first request whose time has come; otherwise when to come again.
    fn next(&self, engine: &Arc<Engine>) -> Result<Request, Next> {
        let now = engine.env.now();
        let waker = waker(engine, |engine| engine.flusher.wake());
        let mut context = Context::from_waker(&waker);
        let mut queue = self.queue.lock().expect("no panic inside");
        let due = queue.iter_mut().position(|request| request.is_due(now, &mut context));
        if let Some(request) = due.and_then(|due| queue.remove(due)) {
            return Ok(request);
        }
        let earliest = queue.iter().filter_map(|request| request.again_at).filter(|at| *at > now).min();
        Err(earliest.map_or(Next::Idle, |at| Next::After(at.since(now))))
    }

    fn step(&self, engine: &Arc<Engine>) -> Next {
        let mut request = match self.next(engine) {
            Ok(request) => request,
            Err(next) => return next,
        };
        if engine.log.is_stopped() && request.store.table().keyspace == schema_tables::KEYSPACE {
            tell(&mut request, &Err(LogError::Stopped.into()));
            return Next::Again;
        }
        let set = request.set.take().or_else(|| flush::freeze(engine, &request.store));
        if let Some(set) = &set
            && !engine.log.is_settled(set.up_to)
        {
            let (set, logged) = (Some(Arc::clone(set)), Some(engine.log.sync()));
            self.queue.lock().expect("no panic inside").push_back(Request { set, logged, ..request });
            return Next::Again;
        }
        let result = match &set {
            None => Ok(()),
            Some(set) => flush::flush_set(engine, &request.store, set).map(|_| ()),
        };
        tell(&mut request, &result);
        match result {
            Ok(()) => engine.compactor.wake(),
            Err(error) => {
                tracing::error!(table = request.store.name(), %error, "a flush failed and will be tried again");
                let again_at = Some(engine.env.now().plus(RETRY));
                self.put_back(Request { set, again_at, logged: None, ..request });
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

fn tell(request: &mut Request, result: &Result<(), StorageError>) {
    for done in request.done.drain(..) {
        // who asked may have gone
        let _ = done.send(result.clone());
    }
}
