//! Requests to the builder of indexes (`crate::index::build`).

use std::collections::VecDeque;
use std::sync::Arc;

use env::Wake;
use env::sync::Mutex;
use schema::TableId;
use tokio::sync::oneshot;

use crate::error::StorageError;
use crate::table::TableStore;

pub(crate) type Done = oneshot::Sender<Result<(), StorageError>>;

pub(crate) struct Request {
    pub(crate) base: Arc<TableStore>,
    pub(crate) index: String,
    pub(crate) done: Option<Done>,
}

impl Request {
    /// Whether this asks for a build of the index.
    pub(crate) fn is_of(&self, base: &Arc<TableStore>, index: &str) -> bool {
        Arc::ptr_eq(&self.base, base) && self.index == index
    }
}

/// Builds that were asked for, in order, and the task that does them.
#[derive(Default)]
pub struct IndexBuilder {
    pub(crate) queue: Mutex<VecDeque<Request>>,
    /// Tables of which no build notes an index as complete, each once for every [`Held`]. Their
    /// number is that of imports and streams under way. Locked behind `queue`.
    held: Mutex<Vec<TableId>>,
    pub(crate) wake: Mutex<Option<Wake>>,
}

impl IndexBuilder {
    /// Asks for an index to be made.
    pub fn request(&self, base: &Arc<TableStore>, index: &str) {
        add(&mut self.queue.lock().expect("no panic inside"), base, index);
        self.wake();
    }

    /// Keeps builds from noting indexes of a table as complete: SSTables are about to come whose
    /// rows a build that runs already does not have.
    pub(crate) fn hold(&self, table: TableId) -> Held<'_> {
        // a build that ends looks and notes under this lock
        let _none_ends = self.queue.lock().expect("no panic inside");
        self.held.lock().expect("no panic inside").push(table);
        Held { builder: self, table }
    }

    /// Whether no index of the table is to be noted as complete.
    pub(crate) fn is_held(&self, table: TableId) -> bool {
        self.held.lock().expect("no panic inside").contains(&table)
    }

    /// Number of builds that wait.
    pub fn pending(&self) -> usize {
        self.queue.lock().expect("no panic inside").len()
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

/// While this is there, no build notes an index of a table as complete.
pub(crate) struct Held<'b> {
    builder: &'b IndexBuilder,
    table: TableId,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let mut held = self.builder.held.lock().expect("no panic inside");
        if let Some(at) = held.iter().position(|table| *table == self.table) {
            held.swap_remove(at);
        }
    }
}

/// Adds a build of an index to those that wait. A build that waits already serves too: when it
/// begins it reads the table as it is then. One that somebody is told of does not, because after an
/// error it is not tried again.
pub(crate) fn add(queue: &mut VecDeque<Request>, base: &Arc<TableStore>, index: &str) {
    if !queue.iter().any(|request| request.done.is_none() && request.is_of(base, index)) {
        queue.push_back(Request { base: Arc::clone(base), index: index.to_owned(), done: None });
    }
}
