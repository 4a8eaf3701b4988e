//! The state of replaying the batch log ([`crate::batchlog`]).

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};

use env::Wake;
use types::DecoratedKey;

/// `batchlog_replay_throttle` of a stock configuration, bytes a second.
const THROTTLE_DEFAULT: u64 = 1 << 20;

/// The state of the replay of this node's batch log.
pub(crate) struct BatchReplay {
    /// A record may stand there whose removal is missing. Set at the start and whenever a record is
    /// written without its removal, and cleared by a look that finds no record; a node that writes
    /// record and removal in one step leaves none.
    may_hold_records: AtomicBool,
    /// The last record of the page before. The next page begins behind it, so that records which
    /// cannot be applied do not stop those behind them. None: it begins at the first record.
    pub behind: Mutex<Option<DecoratedKey>>,
    /// `batchlog_replay_throttle` in bytes a second; 0: replay does not pause.
    pub throttle: AtomicU64,
    /// The node was one of several when it ended. Its records may be of partitions that others
    /// hold, so it waits until it has joined again.
    pub waits_for_others: AtomicBool,
    /// Keeps the background task alive; empty where nothing is written.
    pub task: OnceLock<Wake>,
}

impl BatchReplay {
    /// Whether a look at the batch log may find a record.
    pub fn may_find_records(&self) -> bool {
        self.may_hold_records.load(Ordering::Acquire)
    }

    /// A look begins. Whoever writes a record from now on is not overlooked: the next look comes.
    pub fn begin_look(&self) {
        self.may_hold_records.swap(false, Ordering::AcqRel);
    }

    /// There may be a record for the next look.
    pub fn expect_records(&self) {
        self.may_hold_records.store(true, Ordering::Release);
    }
}

impl Default for BatchReplay {
    fn default() -> Self {
        let throttle = AtomicU64::new(THROTTLE_DEFAULT);
        let task = OnceLock::new();
        let (may_hold_records, waits_for_others) = (AtomicBool::new(true), AtomicBool::new(false));
        Self { may_hold_records, behind: Mutex::new(None), throttle, waits_for_others, task }
    }
}
