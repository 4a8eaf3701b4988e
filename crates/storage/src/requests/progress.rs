//! Compactions that run, and those that ended: for nodetool and the virtual tables.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

use env::sync::Mutex;
use env::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use schema::TableId;

use crate::strategy::kind::Kind;

/// Finished compactions that are remembered; the oldest is forgotten.
const HISTORY_MAX: usize = 1000;

/// A compaction that runs.
pub struct Running {
    /// Names it.
    pub id: [u8; 16],
    /// The table's id.
    pub table_id: TableId,
    /// Keyspace.
    pub keyspace: String,
    /// Table.
    pub table: String,
    /// The kind of operation.
    pub kind: Kind,
    /// A strategy chose it: it gives way to what an operator asks for.
    pub automatic: bool,
    /// How many SSTables go in.
    pub sstables: usize,
    /// Bytes that go in.
    pub total: u64,
    /// Bytes of these that lie behind it so far.
    pub done: AtomicU64,
    /// Somebody wants it to end.
    pub stop: AtomicBool,
}

/// A compaction that ended.
#[derive(Clone, Debug)]
pub struct Finished {
    /// Names it.
    pub id: [u8; 16],
    /// Keyspace.
    pub keyspace: String,
    /// Table.
    pub table: String,
    /// When, milliseconds since 1970.
    pub at_millis: i64,
    /// Bytes that went in.
    pub bytes_in: u64,
    /// Bytes that came out.
    pub bytes_out: u64,
    /// The kind of operation.
    pub kind: Kind,
    /// How many partitions came from how many SSTables.
    pub merged: Vec<(u32, u64)>,
}

/// Told of each compaction that ended well.
pub type OnFinished = Box<dyn Fn(&Finished) + Send + Sync>;

/// All of them.
#[derive(Default)]
pub struct Compactions {
    running: Mutex<Vec<Arc<Running>>>,
    history: Mutex<VecDeque<Finished>>,
    on_finished: OnceLock<OnFinished>,
    /// How many ended well.
    pub completed: AtomicU64,
    /// Bytes they read.
    pub bytes_compacted: AtomicU64,
    /// How many ended before their end.
    pub aborted: AtomicU64,
    /// How many were begun with fewer SSTables than were chosen, for want of disk.
    pub reduced: AtomicU64,
    /// SSTables that were left out of these.
    pub left_out: AtomicU64,
}

impl Compactions {
    /// Sets the function that is called, on the compacting thread, for each compaction that ended
    /// well. Only the first call counts.
    pub fn set_on_finished(&self, tell: OnFinished) {
        let _ = self.on_finished.set(tell);
    }

    /// One begins.
    pub fn begin(&self, running: Running) -> Arc<Running> {
        let running = Arc::new(running);
        self.running.lock().expect("no panic inside").push(Arc::clone(&running));
        running
    }

    /// An operation was ended before all was done.
    pub fn aborted(&self, running: &Arc<Running>) {
        self.forget(running);
        self.aborted.fetch_add(1, Ordering::Relaxed);
    }

    fn forget(&self, running: &Arc<Running>) {
        self.running.lock().expect("no panic inside").retain(|other| !Arc::ptr_eq(other, running));
    }

    /// An operation ended well; `finished`: it wrote something that the history knows.
    pub fn ended(&self, running: &Arc<Running>, finished: Option<Finished>) {
        self.forget(running);
        let Some(finished) = finished else { return };
        if let Some(tell) = self.on_finished.get() {
            tell(&finished);
        }
        self.completed.fetch_add(1, Ordering::Relaxed);
        self.bytes_compacted.fetch_add(finished.bytes_in, Ordering::Relaxed);
        let mut history = self.history.lock().expect("no panic inside");
        if history.len() == HISTORY_MAX {
            history.pop_front();
        }
        history.push_back(finished);
    }

    /// Asks those of a kind to end.
    pub fn stop_kind(&self, kind: Kind) {
        self.stop(|running| running.kind == kind);
    }

    /// Asks one to end.
    pub fn stop_id(&self, id: [u8; 16]) {
        self.stop(|running| running.id == id);
    }

    /// Asks those to end of which `which` says so.
    pub fn stop(&self, which: impl Fn(&Running) -> bool) {
        let running = self.running.lock().expect("no panic inside");
        running.iter().filter(|running| which(running)).for_each(|running| running.stop.store(true, Ordering::Relaxed));
    }

    /// Compactions that run.
    pub fn running(&self) -> Vec<Arc<Running>> {
        self.running.lock().expect("no panic inside").clone()
    }

    /// Compactions that ended, oldest first.
    pub fn history(&self) -> Vec<Finished> {
        self.history.lock().expect("no panic inside").iter().cloned().collect()
    }
}
