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
    /// Tables of which no index is noted as complete. Locked behind `queue`.
    held: Mutex<HeldTables>,
    pub(crate) wake: Mutex<Option<Wake>>,
}

#[derive(Default)]
struct HeldTables {
    /// Each table once for every [`Held`]: their number is that of imports and streams under way.
    tables: Vec<TableId>,
    /// Indexes of these tables that are made again when their table is not held any more, each
    /// once.
    lacking: Vec<(Arc<TableStore>, String)>,
}

impl HeldTables {
    fn note_lacking(&mut self, base: &Arc<TableStore>, index: &str) {
        if !self.lacking.iter().any(|(other, name)| Arc::ptr_eq(other, base) && name == index) {
            self.lacking.push((Arc::clone(base), index.to_owned()));
        }
    }
}

impl IndexBuilder {
    /// Asks for an index to be made.
    pub fn request(&self, base: &Arc<TableStore>, index: &str) {
        add(&mut self.queue.lock().expect("no panic inside"), base, index);
        self.wake();
    }

    /// Keeps indexes of a table from being noted as complete: SSTables are about to come whose
    /// rows a build that runs already does not have. The `lacking` indexes are made again at the
    /// end.
    pub(crate) fn hold<'i>(&self, base: &Arc<TableStore>, lacking: impl Iterator<Item = &'i str>) -> Held<'_> {
        // a build that ends looks and notes under this lock
        let _none_ends = self.queue.lock().expect("no panic inside");
        let mut held = self.held.lock().expect("no panic inside");
        held.tables.push(base.id);
        lacking.for_each(|index| held.note_lacking(base, index));
        Held { builder: self, table: base.id, is_over: false }
    }

    /// Whether an index that seems to be complete is not to be noted as that, because its table is
    /// held. The index is made again then, when the table is not held any more: nobody else may
    /// ask for that, and a start would take the index for incomplete. The caller holds the lock of
    /// the queue.
    pub(crate) fn holds_back(&self, base: &Arc<TableStore>, index: &str) -> bool {
        let mut held = self.held.lock().expect("no panic inside");
        let is_held = held.tables.contains(&base.id);
        if is_held {
            held.note_lacking(base, index);
        }
        is_held
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

/// As long as a value of this type lives, no index of its table is noted as complete. At the end
/// the indexes that lack rows are asked for, also where the SSTables did not come.
pub(crate) struct Held<'b> {
    builder: &'b IndexBuilder,
    table: TableId,
    /// Whether the hold on the table has ended.
    is_over: bool,
}

impl Held<'_> {
    /// Ends the hold on the table for a caller that has the lock of the queue.
    pub(crate) fn end(mut self, queue: &mut VecDeque<Request>) {
        self.release(queue);
    }

    fn release(&mut self, queue: &mut VecDeque<Request>) {
        self.is_over = true;
        let mut held = self.builder.held.lock().expect("no panic inside");
        if let Some(at) = held.tables.iter().position(|table| *table == self.table) {
            held.tables.swap_remove(at);
        }
        if held.tables.contains(&self.table) {
            return;
        }
        let (lacking, others): (Vec<_>, Vec<_>) =
            std::mem::take(&mut held.lacking).into_iter().partition(|(base, _)| base.id == self.table);
        held.lacking = others;
        lacking.iter().for_each(|(base, index)| add(queue, base, index));
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let builder = self.builder;
        self.release(&mut builder.queue.lock().expect("no panic inside"));
        builder.wake();
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
