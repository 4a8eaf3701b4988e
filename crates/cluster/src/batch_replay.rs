//! The state of replaying the batch log ([`crate::batchlog`]).

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::Waker;

use env::Wake;
use types::DecoratedKey;

/// `batchlog_replay_throttle` of a stock configuration, bytes a second.
const THROTTLE_DEFAULT: u64 = 1 << 20;
/// Most records that wait for hints. A further record is sent again like any other.
const HINTED_MAX: usize = 1 << 16;

/// The state of the replay of this node's batch log.
pub(crate) struct BatchReplay {
    /// True while the batch log may hold a record without its removal. Set at the start and
    /// whenever a record is written without its removal, and cleared by a look that finds no
    /// record. A node that writes record and removal in one step leaves no such record.
    may_hold_records: AtomicBool,
    /// The last record of the page before. The next page begins behind it, so that records which
    /// cannot be applied do not stop those behind them. None: the next page begins at the first
    /// record.
    pub behind: Mutex<Option<DecoratedKey>>,
    /// Ids of records whose mutations every replica has, or has a hint for. The records are
    /// removed when these hints are durable.
    hinted: Mutex<Vec<[u8; 16]>>,
    /// `batchlog_replay_throttle` in bytes a second; 0: replay does not pause.
    pub throttle: AtomicU64,
    /// True: the node was one of several when it ended. Its records may be of partitions that
    /// others hold, so it waits until it has joined again.
    pub waits_for_others: AtomicBool,
    /// The log was told that there are records of messaging versions that cannot be read.
    pub told_unreadable: AtomicBool,
    /// Keeps the background task alive; empty where nothing is written.
    pub task: OnceLock<Wake>,
}

impl BatchReplay {
    /// Whether a look at the batch log may find a record.
    pub fn may_find_records(&self) -> bool {
        self.may_hold_records.load(Ordering::Acquire)
    }

    /// Called when a look begins. A record that is written from now on has a further look, even if
    /// this look misses it.
    pub fn begin_look(&self) {
        self.may_hold_records.swap(false, Ordering::AcqRel);
    }

    /// Has the record of this id removed by the next look, once the hints that were kept so far
    /// are durable.
    pub fn wait_for_hints(&self, id: [u8; 16]) {
        let mut hinted = self.hinted.lock().unwrap_or_else(PoisonError::into_inner);
        if hinted.len() < HINTED_MAX {
            hinted.push(id);
        }
    }

    /// Takes the ids of the records that wait for hints.
    pub fn take_hinted(&self) -> Vec<[u8; 16]> {
        std::mem::take(&mut *self.hinted.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Wakes the background task; None: it has not begun.
    pub fn waker(&self) -> Option<Waker> {
        self.task.get().map(|task| Waker::from(Arc::new(ReplayWaker(task.clone()))))
    }

    /// Notes that the next look may find a record.
    pub fn expect_records(&self) {
        self.may_hold_records.store(true, Ordering::Release);
    }
}

/// A waker of the background task.
struct ReplayWaker(Wake);

impl std::task::Wake for ReplayWaker {
    fn wake(self: Arc<Self>) {
        self.0.wake();
    }
}

impl Default for BatchReplay {
    fn default() -> Self {
        let throttle = AtomicU64::new(THROTTLE_DEFAULT);
        let task = OnceLock::new();
        let (may_hold_records, waits_for_others) = (AtomicBool::new(true), AtomicBool::new(false));
        let (behind, hinted, told_unreadable) = (Mutex::new(None), Mutex::default(), AtomicBool::new(false));
        Self { may_hold_records, behind, hinted, throttle, waits_for_others, told_unreadable, task }
    }
}
