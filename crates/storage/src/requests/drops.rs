//! Requests to the dropper (`crate::drops`): tables that the schema does not have any more, to be
//! removed from the disk.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;

use env::sync::Mutex;
use env::{Instant, Wake};
use schema::{TableId, TableKind};

use crate::error::StorageError;
use crate::table::TableStore;

/// Called once: when the first try has ended, or when it has waited for compactions for a while.
pub type Done = Box<dyn FnOnce(Result<(), StorageError>) + Send>;

pub(crate) type Flush = Pin<Box<dyn Future<Output = Result<(), StorageError>> + Send>>;

/// The next step of a table.
pub(crate) enum Stage {
    Flush(Option<Flush>),
    Release,
    Snapshot,
    Files,
}

/// A dropped table.
pub(crate) struct Dropped {
    pub(crate) store: Arc<TableStore>,
    pub(crate) stage: Stage,
    /// The time of the next try; None: no try has failed.
    pub(crate) again_at: Option<Instant>,
    /// Since when the removal of the files waits for compactions, streams and imports to end; None:
    /// it does not.
    pub(crate) waits_since: Option<Instant>,
    pub(crate) done: Option<Done>,
}

/// The files of a dropped table that was left out of the schema: nothing of it is open.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LeftOutFiles {
    pub(crate) id: TableId,
    pub(crate) keyspace: String,
    pub(crate) table: String,
    /// The directories that the table may have.
    pub(crate) directories: Vec<PathBuf>,
    /// A snapshot is taken before the files go. False again once it is taken.
    pub(crate) takes_snapshot: bool,
    /// The time of the next try; None: no try has failed.
    pub(crate) again_at: Option<Instant>,
}

/// Dropped tables whose files are still there, and the task that removes them. Their number is
/// bounded by that of the tables that there were.
#[derive(Default)]
pub struct Dropper {
    pub(crate) queue: Mutex<VecDeque<Dropped>>,
    /// Dropped tables that were left out of the schema.
    pub(crate) left_out: Mutex<Vec<LeftOutFiles>>,
    /// Tables whose directories are still needed, from the moment in which the schema does not have
    /// them any more until their files are removed: nobody else takes an empty directory away. With
    /// the first directory of each.
    pub(crate) under_way: Mutex<BTreeMap<TableId, PathBuf>>,
    /// Indexes that were dropped without their table, in the same states: the first directory of
    /// each. An index that is made again under the name has its files there.
    pub(crate) indexes: Mutex<BTreeSet<PathBuf>>,
    /// Tables that were dropped since the process began, and those that were dropped before and
    /// whose rows the log had at the start: it may still have them. The ids stay for as long as
    /// the process lives.
    pub(crate) dropped: Mutex<BTreeSet<TableId>>,
    /// Directories that had SSTables at the start, of tables that the schema did not have then: the
    /// files of a DROP whose process has ended before they were removed, or what an operator has
    /// put there. Empty where the start could not look.
    pub(crate) left_behind: Mutex<BTreeSet<PathBuf>>,
    pub(crate) wake: Mutex<Option<Wake>>,
}

impl Dropper {
    /// Asks for the removal of a table that the schema, durably, does not have any more. `done` is
    /// told of the end of the first try.
    pub fn request(&self, store: &Arc<TableStore>, done: Option<Done>) {
        let stage = if store.table().kind == TableKind::Index { Stage::Files } else { Stage::Flush(None) };
        let dropped = Dropped { store: Arc::clone(store), stage, again_at: None, waits_since: None, done };
        self.queue.lock().expect("no panic inside").push_back(dropped);
        self.wake();
    }

    /// Asks for the removal of the files of a table that was left out of the schema, and that the
    /// schema, durably, does not have any more.
    pub fn request_left_out(&self, files: LeftOutFiles) {
        self.left_out.lock().expect("no panic inside").push(files);
        self.wake();
    }

    /// Called when a table that was left out of the schema is dropped; a request to remove its
    /// files follows.
    pub(crate) fn begin_left_out(&self, files: &LeftOutFiles) {
        if let Some(first) = files.directories.first() {
            self.under_way.lock().expect("no panic inside").insert(files.id, first.clone());
        }
        self.note_dropped(files.id);
    }

    /// Called when the files of a table that was left out are removed.
    pub(crate) fn end_left_out(&self, files: &LeftOutFiles) {
        self.under_way.lock().expect("no panic inside").remove(&files.id);
    }

    /// Called when the schema does not have this table or index any more; a request to remove it
    /// follows.
    pub(crate) fn begin(&self, store: &TableStore) {
        if store.table().kind == TableKind::Index {
            self.indexes.lock().expect("no panic inside").insert(store.directory.clone());
            return;
        }
        self.under_way.lock().expect("no panic inside").insert(store.id, store.directory.clone());
        self.dropped.lock().expect("no panic inside").insert(store.id);
    }

    /// Called when the files of a table or index are removed, or belong to one that was made
    /// again.
    pub(crate) fn end(&self, store: &TableStore) {
        if store.table().kind == TableKind::Index {
            self.indexes.lock().expect("no panic inside").remove(&store.directory);
            return;
        }
        self.under_way.lock().expect("no panic inside").remove(&store.id);
    }

    /// Whether the directory of a dropped table is still needed.
    pub(crate) fn is_under_way(&self, id: TableId) -> bool {
        self.under_way.lock().expect("no panic inside").contains_key(&id)
    }

    /// Whether the files of a dropped table lie in this directory, the first of the table's.
    pub(crate) fn has_table_in(&self, directory: &Path) -> bool {
        self.under_way.lock().expect("no panic inside").values().any(|known| known == directory)
    }

    /// Whether the files of a dropped index lie in this directory, the first of the index's.
    pub(crate) fn has_index_in(&self, directory: &Path) -> bool {
        self.indexes.lock().expect("no panic inside").contains(directory)
    }

    /// Called at a start where the log has rows of a table that the schema does not have.
    pub(crate) fn note_dropped(&self, id: TableId) {
        self.dropped.lock().expect("no panic inside").insert(id);
    }

    /// Whether the log may have rows of a dropped table of this id.
    pub(crate) fn was_dropped(&self, id: TableId) -> bool {
        self.dropped.lock().expect("no panic inside").contains(&id)
    }

    /// Whether a directory had SSTables of no table of the schema at the start.
    pub(crate) fn was_left_behind(&self, directory: &Path) -> bool {
        self.left_behind.lock().expect("no panic inside").contains(directory)
    }

    /// Number of tables that wait.
    pub fn pending(&self) -> usize {
        let left_out = self.left_out.lock().expect("no panic inside").len();
        self.queue.lock().expect("no panic inside").len() + left_out
    }

    pub(crate) fn wake(&self) {
        if let Some(wake) = self.wake.lock().expect("no panic inside").as_ref() {
            wake.wake();
        }
    }
}
