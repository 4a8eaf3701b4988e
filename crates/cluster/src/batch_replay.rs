//! The state of replaying the batch log ([`crate::batchlog`]).

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64};

use env::Wake;

/// `batchlog_replay_throttle` of a stock configuration, bytes a second.
const THROTTLE_DEFAULT: u64 = 1 << 20;

/// What the node knows of its batch log.
pub(crate) struct BatchReplay {
    /// A record may stand there whose removal is missing. Set at the start, and cleared by a look that found the
    /// end of the table; a node that writes record and removal in one step leaves none.
    pub may_hold_records: AtomicBool,
    /// `batchlog_replay_throttle` in bytes a second; 0: replay does not pause.
    pub throttle: AtomicU64,
    /// Keeps the background task alive; empty where nothing is written.
    pub task: OnceLock<Wake>,
}

impl Default for BatchReplay {
    fn default() -> Self {
        let throttle = AtomicU64::new(THROTTLE_DEFAULT);
        Self { may_hold_records: AtomicBool::new(true), throttle, task: OnceLock::new() }
    }
}
