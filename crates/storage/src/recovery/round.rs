//! A round of a replay: records that were read, copied and put apart by shard, so that shards can be replayed side by side while the next round
//! is read.
//!
//! All updates of a mutation are of one partition key, and tables are split alike: so a mutation goes to one shard whatever its tables, and the
//! records of a partition stay in order.

use bytes::{Bytes, BytesMut};

use crate::commitlog::LogPosition;

/// A list keeps its memory for the next round up to here: a single record may be far larger than a round otherwise is.
const CAPACITY_KEPT_MAX: usize = 2 << 20;

/// The records of a round that go to one shard, in order.
#[derive(Default)]
pub(super) struct List {
    bytes: BytesMut,
    /// Where each one's entry ends in the log, and its bytes here.
    records: Vec<(LogPosition, usize)>,
}

impl List {
    /// Bytes of its records.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn push(&mut self, position: LogPosition, record: &[u8]) {
        self.bytes.extend_from_slice(record);
        self.records.push((position, self.bytes.len()));
    }

    /// Gives the records to `replay` until it fails, and is empty afterwards.
    pub(super) fn replay<E>(&mut self, mut replay: impl FnMut(LogPosition, &Bytes) -> Result<(), E>) -> Result<(), E> {
        let bytes = std::mem::take(&mut self.bytes).freeze();
        let mut start = 0;
        let replayed = self.records.drain(..).try_for_each(|(position, end)| {
            let record = bytes.slice(start..end);
            start = end;
            replay(position, &record)
        });
        // memtables copy what they keep, so nobody holds a part of it
        self.bytes = bytes.try_into_mut().unwrap_or_default();
        if self.bytes.capacity() > CAPACITY_KEPT_MAX {
            self.bytes = BytesMut::new();
        }
        self.bytes.clear();
        replayed
    }
}

/// See the head of the file.
pub(super) struct Round {
    /// One a shard.
    pub lists: Vec<List>,
    /// Where the last record ends that was read.
    pub last: LogPosition,
    /// Records read, those that need no replay included.
    pub read: u64,
    /// Of these, those that need none.
    pub skipped: u64,
    /// Bytes in the lists.
    pub bytes: usize,
    /// No round follows.
    pub is_last: bool,
}

impl Round {
    pub(super) fn new(shards: usize) -> Self {
        let lists = std::iter::repeat_with(List::default).take(shards).collect();
        Round { lists, last: LogPosition::NONE, read: 0, skipped: 0, bytes: 0, is_last: false }
    }

    /// Begins anew; its lists are empty.
    pub(super) fn begin(&mut self) {
        (self.read, self.skipped, self.bytes) = (0, 0, 0);
    }

    /// A record for a shard.
    pub(super) fn push(&mut self, shard: usize, position: LogPosition, record: &[u8]) {
        self.bytes += record.len();
        if let Some(list) = self.lists.get_mut(shard) {
            list.push(position, record);
        }
    }
}
