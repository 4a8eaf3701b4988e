//! Requests to the builder of indexes (`crate::index::build`).

use std::collections::VecDeque;
use std::sync::Arc;

use env::Wake;
use env::sync::Mutex;
use tokio::sync::oneshot;

use crate::error::StorageError;
use crate::table::TableStore;

pub(crate) type Done = oneshot::Sender<Result<(), StorageError>>;

pub(crate) struct Request {
    pub(crate) base: Arc<TableStore>,
    pub(crate) index: String,
    pub(crate) done: Option<Done>,
}

/// Builds that were asked for, in order, and the task that does them.
#[derive(Default)]
pub struct IndexBuilder {
    pub(crate) queue: Mutex<VecDeque<Request>>,
    pub(crate) wake: Mutex<Option<Wake>>,
}

impl IndexBuilder {
    /// Asks for an index to be made.
    pub fn request(&self, base: &Arc<TableStore>, index: &str) {
        self.push(Request { base: Arc::clone(base), index: index.to_owned(), done: None });
    }

    /// How many wait.
    pub fn pending(&self) -> usize {
        self.queue.lock().expect("no panic inside").len()
    }

    /// Whether a build of this index waits.
    pub(crate) fn awaits(&self, base: &Arc<TableStore>, index: &str) -> bool {
        let queue = self.queue.lock().expect("no panic inside");
        queue.iter().any(|request| Arc::ptr_eq(&request.base, base) && request.index == index)
    }

    pub(crate) fn push(&self, request: Request) {
        self.queue.lock().expect("no panic inside").push_back(request);
        self.wake();
    }

    pub(crate) fn wake(&self) {
        if let Some(wake) = self.wake.lock().expect("no panic inside").as_ref() {
            wake.wake();
        }
    }
}
