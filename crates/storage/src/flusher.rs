//! The flusher: one background task that writes memtables out, one table at a time.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use env::{Next, Wake};
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
            None => queue.push_back(Request { store: Arc::clone(store), set: None, done: done.into_iter().collect() }),
        }
        drop(queue);
        if let Some(wake) = self.wake.lock().expect("no panic inside").as_ref() {
            wake.wake();
        }
    }

    /// Asks for frozen memtables of a table to be written out.
    pub fn request_set(&self, store: &Arc<TableStore>, set: Arc<FlushSet>) {
        let request = Request { store: Arc::clone(store), set: Some(set), done: Vec::new() };
        self.queue.lock().expect("no panic inside").push_back(request);
        if let Some(wake) = self.wake.lock().expect("no panic inside").as_ref() {
            wake.wake();
        }
    }

    /// How many tables wait.
    pub fn pending(&self) -> usize {
        self.queue.lock().expect("no panic inside").len()
    }

    fn step(&self, engine: &Arc<Engine>) -> Next {
        let Some(mut request) = self.queue.lock().expect("no panic inside").pop_front() else { return Next::Idle };
        let set = match request.set.take() {
            Some(set) => Some(set),
            None => request.store.switch_memtables(request.store.table(), None, || engine.log.position()),
        };
        let result = match &set {
            None => Ok(()),
            Some(set) => flush::flush_set(engine, &request.store, set).map(|_| ()),
        };
        let failed = result.is_err();
        if let Err(error) = &result {
            tracing::error!(table = request.store.name(), %error, "a flush failed and will be tried again");
        }
        for done in request.done.drain(..) {
            // who asked may have gone
            let _ = done.send(result.clone());
        }
        if failed {
            request.set = set;
            self.queue.lock().expect("no panic inside").push_back(request);
            return Next::After(RETRY);
        }
        engine.compactor.wake();
        Next::Again
    }
}
