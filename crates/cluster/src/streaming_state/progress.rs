//! How far a session is, in files and bytes: for `nodetool netstats`, virtual tables and metrics.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use streaming::{Operation, PlanId, Summary};

/// Most files of a session that are remembered by name, each way. For further files only sums are
/// kept.
const FILES_MAX: usize = 10_000;

/// Sums of files and bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Totals {
    /// Files, the components of SSTables that go whole counted one by one.
    pub files: u64,
    /// Bytes as they go over the link.
    pub bytes: u64,
}

impl Totals {
    fn of(summaries: &[Summary]) -> Self {
        let positive = |number: i64| u64::try_from(number).unwrap_or(0);
        Self {
            files: summaries.iter().map(|summary| positive(i64::from(summary.files))).sum(),
            bytes: summaries.iter().map(|summary| positive(summary.bytes)).sum(),
        }
    }
}

/// A file on its way.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FileProgress {
    /// Bytes that were sent or received.
    pub done: u64,
    /// All bytes of the file.
    pub total: u64,
}

/// How far a session is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SessionProgress {
    /// The plan.
    pub plan: PlanId,
    /// The other end.
    pub peer: SocketAddr,
    /// The session's number among those of the plan with this peer.
    pub index: i32,
    /// The peer has opened the session.
    pub follows: bool,
    /// Why data is streamed.
    pub operation: Operation,
    /// When the session began, milliseconds since 1970.
    pub begun_millis: i64,
    /// Milliseconds since the session began; for a session that has ended, the time that it took.
    pub millis: u64,
    /// The end of the session, an error as a sentence; None: it runs.
    pub end: Option<Result<(), String>>,
    /// The files and bytes that the peers have announced.
    pub to_receive: Totals,
    /// The part of these that has come.
    pub received: Totals,
    /// The files and bytes that this node has announced.
    pub to_send: Totals,
    /// The part of these that was sent, and that its receivers have taken.
    pub sent: Totals,
    /// Files that were sent again, because the link that took them was lost.
    pub resent: u64,
    /// Files that come, by their names on this node. Empty once the session has ended.
    pub receiving: BTreeMap<String, FileProgress>,
    /// Files that are sent, by their names on this node. Empty once the session has ended.
    pub sending: BTreeMap<String, FileProgress>,
}

/// The files that go one way in a session.
#[derive(Default)]
pub(crate) struct DirectionProgress {
    pub announced: Vec<Summary>,
    pub done: Totals,
    /// Number of files that have begun again over another link.
    pub again: u64,
    pub files: BTreeMap<String, FileProgress>,
}

impl DirectionProgress {
    /// The files and bytes that were announced.
    pub fn total(&self) -> Totals {
        Totals::of(&self.announced)
    }

    /// Called when a file begins, perhaps again: the bytes of an earlier attempt do not count any
    /// more.
    pub fn rewind(&mut self, name: &str) {
        if let Some(file) = self.files.get_mut(name) {
            self.done.bytes = self.done.bytes.saturating_sub(file.done);
            file.done = 0;
        }
    }

    /// Notes that more bytes of a file have passed.
    fn pass(&mut self, name: &str, bytes: u64, total: u64) {
        self.done.bytes += bytes;
        if let Some(file) = self.files.get_mut(name) {
            file.done += bytes;
        } else if self.files.len() < FILES_MAX {
            self.files.insert(name.to_owned(), FileProgress { done: bytes, total });
        }
    }
}

/// How far a session is.
#[derive(Default)]
pub(crate) struct Progress {
    receiving: Mutex<DirectionProgress>,
    sending: Mutex<DirectionProgress>,
}

impl Progress {
    pub fn receiving(&self) -> MutexGuard<'_, DirectionProgress> {
        self.receiving.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn sending(&self) -> MutexGuard<'_, DirectionProgress> {
        self.sending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes that were announced and have not come.
    pub fn left_to_receive(&self) -> u64 {
        let way = self.receiving();
        way.total().bytes.saturating_sub(way.done.bytes)
    }

    /// Notes that more bytes of a file have come.
    pub fn receive(&self, name: &str, bytes: u64, total: u64) {
        self.receiving().pass(name, bytes, total);
    }

    /// Notes that more bytes of a file were sent.
    pub fn send(&self, name: &str, bytes: u64, total: u64) {
        self.sending().pass(name, bytes, total);
    }
}
